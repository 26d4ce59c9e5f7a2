"""English sentences of our own: every measurement is in double brackets, with its value."""

from .cases import check

LINES = [
    "WBC ⟦11.2 → 11.2⟧, Hgb ⟦12.3 → 12.3⟧, platelets ⟦150,000 → 150000⟧, creatinine of ⟦1.2 → 1.2⟧",
    "INR was ⟦2.1 → 2.1⟧, K+ ⟦4.2 → 4.2⟧, potassium ⟦4.2 mEq/L → 4.2 meq/L⟧, glucose ⟦110 "
    "mg/dl → 110 mg/dL⟧",
    "HR ⟦80 → 80⟧, RR ⟦18 → 18⟧, T ⟦98.6 F → 98.6 [degF]⟧, O2 sat ⟦98% → 98 %⟧ on room air",
    "T ⟦36.5 → 36.5⟧, P ⟦80 → 80⟧, R ⟦18 → 18⟧. Pulse of ⟦80 → 80⟧. Temp ⟦37.2 C → 37.2 Cel⟧.",
    "⟦1,200 mg → 1200 mg⟧, ⟦1.200 mg → 1.2 mg⟧, ⟦12,000.5 mg → 12000.5 mg⟧, ⟦0.5 mg → 0.5 "
    "mg⟧, ⟦.5 mg → 0.5 mg⟧",
    "⟦10 x 10^9/L → 10 10*9/L⟧, ⟦4.5 K/uL → 4.5 10*3/uL⟧, ⟦<1000 cells/mm 3 → <1000 /mm3⟧, "
    "⟦50 mg/m 2 → 50 mg/m2⟧",
    "⟦0.05 mg/kg/day → 0.05 mg/kg/d⟧, ⟦500 mg per day → 500 mg/d⟧, ⟦40 mL/min → 40 mL/min⟧",
    "⟦150 pounds → 150 [lb_av]⟧, ⟦5 feet → 5 [ft_i]⟧ ⟦4 inches → 4 [in_i]⟧, BMI ⟦31.2 → 31.2⟧",
    "a ⟦3-cm → 3 cm⟧ mass, a ⟦5 mm → 5 mm⟧ nodule, ⟦eight percent → 8 %⟧ (⟦8% → 8 %⟧)",
    "a ⟦27 pack year → 27 {pack-year}⟧ history, ⟦two tablets → 2 {tablet}⟧, ⟦1/2 tablet → "
    "0.5 {tablet}⟧, ⟦10 units → 10 U⟧ of insulin",
    "⟦5.5 → 5.5 %⟧ and ⟦11.6% → 11.6 %⟧, ejection fraction of ⟦55% → 55 %⟧",
    "GCS ⟦15 → 15⟧. He rates the pain at ⟦2/10 → 2⟧.",
    # Compared.
    "⟦less than 40% → <40 %⟧, ⟦at least a 3% → >=3 %⟧ rise, ⟦up to 24 hours → duration <=24"
    " h⟧, ⟦> 5% → >5 %⟧, ⟦about 3 cm → ~3 cm⟧",
    "⟦65 years or older → age >=65 a⟧. ⟦40 mg or more → >=40 mg⟧.",
    "⟦aged 65 years or older → age >=65 a⟧, ⟦more than 5 pounds → >5 [lb_av]⟧, ⟦longer than"
    " 6 days → duration >6 d⟧",
    # Joined.
    "⟦80 to 90 mg → range 80..90 mg⟧, ⟦3-5 cm → range 3..5 cm⟧, ⟦between 3 and 5 cm → range"
    " 3..5 cm⟧, ⟦75%-90% → range 75..90 %⟧",
    "⟦one to two weeks → duration 1..2 wk⟧, ⟦4-6 weeks → duration 4..6 wk⟧, ⟦25 or 30 years"
    " → duration 25..30 a⟧",
    "⟦3 x 4 cm → size 3x4 cm⟧, ⟦3.5 cm x 2.1 cm → size 3.5x2.1 cm⟧, ⟦4 by 5 cm → size 4x5 "
    "cm⟧, ⟦20mm X 13mm → size 20x13 mm⟧",
    "BP ⟦120/80 → blood_pressure 120..80 mm[Hg]⟧, BP⟦150/110 → blood_pressure 150..110 "
    "mm[Hg]⟧, blood pressure was ⟦130 over 80 → blood_pressure 130..80 mm[Hg]⟧, ⟦140/90 "
    "mmHg → blood_pressure 140..90 mm[Hg]⟧",
    # Times.
    "⟦6 days → duration 6 d⟧, ⟦two weeks → duration 2 wk⟧ later, a ⟦4-day → duration 4 d⟧ "
    "history, a ⟦2-h → duration 2 h⟧ delay, three or four",
    "⟦a week → duration 1 wk⟧ ago, for ⟦a week → duration 1 wk⟧, ⟦half an hour → duration "
    "0.5 h⟧, ⟦two and a half weeks → duration 2.5 wk⟧, ⟦a year → duration 1 a⟧ ago",
    "⟦3/7 → duration 3 d⟧ hx of cough, LMP ⟦2/52 → duration 2 wk⟧ ago",
    "A ⟦65-year-old → age 65 a⟧ man, ⟦65 year old → age 65 a⟧, ⟦72 y/o → age 72 a⟧, ⟦67y/o "
    "→ age 67 a⟧, ⟦21 yo → age 21 a⟧",
    "⟦3-month-old → age 3 mo⟧, ⟦aged 40 → age 40 a⟧, at the age of ⟦59 → age 59 a⟧, ⟦3-1/2 "
    "years of age → age 3.5 a⟧, ⟦eighty three years old → age 83 a⟧",
    # Frequencies.
    "⟦25 mg → 25 mg⟧ p.o. ⟦b.i.d. → frequency 2 d⟧, ⟦81 mg → 81 mg⟧ ⟦daily → frequency 1 "
    "d⟧, ⟦q8h → frequency 3 d⟧, ⟦q.8h → frequency 3 d⟧, ⟦every 8 hours → frequency 3 d⟧",
    "⟦every other day → frequency 0.5 d⟧, ⟦twice a day → frequency 2 d⟧, ⟦three times daily"
    " → frequency 3 d⟧, ⟦once a day → frequency 1 d⟧, ⟦5 days a week → frequency 5 wk⟧",
    "⟦every 4-6 hours → frequency 4..6 d⟧, ⟦every three weeks → frequency 0.3333 wk⟧, ⟦4-5 "
    "times a day → frequency 4..5 d⟧, ⟦twice daily → frequency 2 d⟧, ⟦TID → frequency 3 d⟧",
    "activities of daily living, on a daily basis",
    # Dates.
    "⟦May 2011 → date 2011-05⟧, ⟦May 3, 2011 → date 2011-05-03⟧, ⟦3 May 2011 → date "
    "2011-05-03⟧, ⟦03/12/2014 → date 2014-03-12⟧, ⟦8/31/93 → date 1993-08-31⟧",
    "in ⟦2009 → date 2009⟧, since ⟦1995 → date 1995⟧, ⟦06/2021 → date 2021-06⟧, in ⟦March "
    "two thousand and eight → date 2008-03⟧",
    "on May 3, on 3/12, in May, in the 1990s, in her 60s",
    # Of notes.
    "Ms. Birchall, age in years: ⟦86 → age 86 a⟧, chart 81710973",
    "A ⟦11 year → age 11 a⟧ female child, for ⟦5 years → duration 5 a⟧ women had pain",
    "over a ⟦12-24 hour → duration 12..24 h⟧ period, ⟦over 5 years → duration >5 a⟧",
    "plt ⟦250K → 250 10*3⟧, WBC ⟦12 K → 12 10*3⟧, Na ⟦138 → 138⟧ K ⟦4.2 → 4.2⟧",
    "temperature of ⟦101.2 degrees → 101.2 [degF]⟧, ⟦2ppd → 2 {packs}/d⟧",
    "RR of ⟦22 B/min → 22 /min⟧",
    "⟦0.5 mg/kg/hr → 0.5 mg/kg/h⟧, ⟦2 L/min → 2 L/min⟧, HR ⟦90 L/min → 90 /min⟧",
    "azithromycin x⟦3 days → duration 3 d⟧, cardiac ablation x3",
    "in ⟦1987 → date 1987⟧, ⟦1990 → date 1990⟧ and ⟦2005 → date 2005⟧, of 2000 patients",
    "two sons ⟦54 → age 54 a⟧ and ⟦57 years old → age 57 a⟧, fever of ⟦102 → 102⟧",
    "Na ⟦140 → 140⟧ K ⟦4.5 → 4.5⟧ Cl ⟦100 → 100⟧, ⟦20 cl → 20 cL⟧",
    "a ⟦12F → 12 [Ch]⟧ catheter, Foley ⟦16 F → 16 [Ch]⟧, T ⟦98.6F → 98.6 [degF]⟧",
]
NONE = [
    "T12, C5-6, L4-5, 3D, 2D echo, T2 image, IL-2, 5-HT, 5-FU, CD4, COVID-19, alpha2beta1",
    "type 2 diabetes, stage 3, grade 2, gravida 2, para 1, POD 3, day 10, 3rd toe, one patient",
    "2 units of packed red cells, 3 children, four episodes, several days, visual acuity 20/40",
    "Advair 250/50, SOLIQUA 100/33, 3 of 30, (5.3), 2,4,6-trisubstituted, ( 5.1 , 8.4 )",
    "HR 1.4 (CI 0.9 - 2.1), at 10:30, c.62G > A, once, twice when I was there",
    "[3H]spiperone binding sites",
    "may have 3, march 5, call 555-123-4567, room 12, ZIP 12345",
    "Apgar 9/10/10",
    "38+5 weeks, 38 5/7 weeks",
    "Height 5'10\"",
    "Insulin 20-0-18 UI",
    "BP 90s/60s",
    "45F with cough, a 45 F with fever",
]


def test_measurements() -> None:
    check("en", LINES)


def test_no_measurements() -> None:
    check("en", NONE)
