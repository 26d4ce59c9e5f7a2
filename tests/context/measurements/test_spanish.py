"""Spanish sentences of our own: every measurement is in double brackets, with its value."""

from .cases import check

LINES = [
    "Hb ⟦11,5 gr/dl → 11.5 g/dL⟧ Fe ⟦38 → 38⟧ AST ⟦52 → 52⟧ ALT ⟦64 → 64⟧.",
    "Glucosa ⟦154 mg/dl → 154 mg/dL⟧, Na ⟦137 mEq/L → 137 meq/L⟧, K ⟦4,2 → 4.2⟧ y Cl ⟦101 → 101⟧.",
    "Leucocitos ⟦11.200 → 11200⟧ (neutrófilos ⟦76% → 76 %⟧)",
    "plaquetas ⟦150.000/mm3 → 150000 /mm3⟧",
    "leucocitos ⟦11,200/mm3 → 11200 /mm3⟧",
    "⟦25.000 leucocitos/mm3 → 25000 /mm3⟧",
    "Leucocitos ⟦7,2 x 10^3/µL → 7.2 10*3/uL⟧, ⟦7.2 x10e9/L → 7.2 10*9/L⟧ y ⟦7,2 ×10⁹/L → "
    "7.2 10*9/L⟧",
    "Hematíes ⟦4,5 millones/mm3 → 4.5 10*6/mm3⟧, plaquetas ⟦250 mil/mm3 → 250 10*3/mm3⟧",
    "VSG ⟦33 mm/1ª hora → 33 mm/h⟧, PCR ⟦4,16 mg/L → 4.16 mg/L⟧ (normal ⟦< 1 → <1⟧)",
    "TSH ⟦5 µUI/ml → 5 u[IU]/mL⟧, HCG ⟦650 mUI/mL → 650 m[IU]/mL⟧, GGT ⟦45 UI/L → 45 [IU]/L⟧",
    "Temperatura ⟦38,5ºC → 38.5 Cel⟧, ⟦37,2 °C → 37.2 Cel⟧ y pico de ⟦39º → 39 Cel⟧",
    "Lassegue a ⟦40º → 40 deg⟧. Flexión de ⟦90 grados → 90 deg⟧.",
    "Fiebre de ⟦38,5 grados → 38.5 Cel⟧.",
    "Control en ⟦1m → duration 1 mo⟧. Caída desde ⟦3 m → 3 m⟧.",
    "febrícula de ⟦37'5ºC → 37.5 Cel⟧ y ⟦37 ' 5ºC → 37.5 Cel⟧",
    "FC ⟦80 lpm → 80 /min⟧, FR ⟦18 rpm → 18 /min⟧, SatO2 ⟦98% → 98 %⟧",
    "FC: ⟦110 → 110⟧, FR ⟦24 → 24⟧, SatO2 ⟦94 → 94⟧",
    "pH ⟦7,35 → 7.35⟧, pCO2 ⟦45 → 45⟧, INR ⟦2.1 → 2.1⟧, Glasgow ⟦15/15 → 15⟧, EVA ⟦8/10 → 8⟧",
    "EB ⟦-5,2 → -5.2⟧. T-score ⟦-2,5 → -2.5⟧. Esfera ⟦-3,00 D → -3 [diop]⟧.",
    "⟦1.200 mg → 1200 mg⟧, ⟦1.200,5 mg → 1200.5 mg⟧, ⟦1,5 mg → 1.5 mg⟧, ⟦0.125 mg → 0.125 "
    "mg⟧, ⟦1.250.000 UI → 1250000 [IU]⟧",
    "⟦10 mg/kg/día → 10 mg/kg/d⟧ y ⟦1 mg al día → 1 mg/d⟧ y ⟦6 mg por día → 6 mg/d⟧",
    "⟦200 mg/m² → 200 mg/m2⟧ y ⟦30 ml/min/1,73 m2 → 30 mL/min/{1.73_m2}⟧ e IMC ⟦31 kg/m2 → "
    "31 kg/m2⟧",
    "proteinuria de ⟦3 g/24 h → 3 g/(24.h)⟧, diuresis ⟦1500 ml/24h → 1500 mL/(24.h)⟧",
    "residuo de ⟦330 cc → 330 cm3⟧, ⟦2gr → 2 g⟧ de cefalotina, ⟦500ml → 500 mL⟧",
    "⟦16mm de Hg → 16 mm[Hg]⟧ y ⟦300 mmHg → 300 mm[Hg]⟧",
    "fumador de ⟦10 cigarrillos/día → 10 {cigarettes}/d⟧ (⟦20 paquetes-año → 20 {pack-year}⟧)",
    "⟦1/2 comprimido → 0.5 {tablet}⟧, ⟦½ comp → 0.5 {tablet}⟧, ⟦dos comprimidos → 2 "
    "{tablet}⟧, ⟦1 1/2 comp → 1.5 {tablet}⟧",
    "CA 19-9 ⟦45 U/ml → 45 U/mL⟧, CA 125: ⟦35 → 35⟧, HbA1c ⟦7,2% → 7.2 %⟧",
    "lesiones de ⟦16 → 16 mm⟧, ⟦13 → 13 mm⟧ y ⟦6 mm → 6 mm⟧",
    "tubo ⟦28 Fr → 28 [Ch]⟧, dosis de ⟦50 Gy → 50 Gy⟧, ⟦1,5 T → 1.5 T⟧",
    "⟦8 mitosis por 10 campos de gran aumento → 8 {mitoses}/(10.[HPF])⟧",
    # Compared.
    "⟦< 0,5 mg/dL → <0.5 mg/dL⟧, ⟦<0,5 mg/dL → <0.5 mg/dL⟧, ⟦>= 3 mg → >=3 mg⟧, ⟦≥3 mg → "
    ">=3 mg⟧, ⟦> 38ºC → >38 Cel⟧",
    "⟦más de 3 días → duration >3 d⟧, ⟦menos de 24 horas → duration <24 h⟧, ⟦unos 5 cm → ~5 cm⟧",
    "⟦aproximadamente 8 cm → ~8 cm⟧, ⟦hasta 12 ng/ml → <=12 ng/mL⟧, ⟦al menos 3 g → >=3 g⟧",
    "⟦8 días aproximadamente → duration ~8 d⟧. ⟦65 años o más → age >=65 a⟧.",
    "talla ⟦inferior a -2,5 → <-2.5⟧",
    # Ranges.
    "⟦3-5 cm → range 3..5 cm⟧, ⟦entre 3 y 5 cm → range 3..5 cm⟧, de ⟦3 a 5 cm → range 3..5 cm⟧",
    "⟦10-25 leucocitos por campo → range 10..25 /[HPF]⟧",
    "⟦75%-90% → range 75..90 %⟧ y FC ⟦80-90 → range 80..90⟧",
    "de 6 a ⟦5 cm → 5 cm⟧",
    "de ⟦6 ng/ml → 6 ng/mL⟧ a ⟦12 ng/ml → 12 ng/mL⟧",
    "de ⟦2 a 3 semanas → duration 2..3 wk⟧, ⟦24-48 h → duration 24..48 h⟧, ⟦2 ó 3 días → "
    "duration 2..3 d⟧",
    "pacientes de ⟦20 a 30 años → age 20..30 a⟧",
    "GGT ⟦116 U/L → 116 U/L⟧; rango normal, ⟦10-60 → range 10..60⟧",
    # Pressures.
    "TA ⟦120/80 mmHg → blood_pressure 120..80 mm[Hg]⟧, TA: ⟦130/85 → blood_pressure 130..85"
    " mm[Hg]⟧, TA⟦110/60 → blood_pressure 110..60 mm[Hg]⟧",
    "TA: ⟦12/8 → blood_pressure 120..80 mm[Hg]⟧. PA de ⟦110-70 → blood_pressure 110..70 "
    "mm[Hg]⟧. ⟦150/90 → blood_pressure 150..90 mm[Hg]⟧",
    "AV 20/40. Fuerza 4/5. Ganglios 3/12. Seretide 50/500.",
    # Sizes.
    "⟦3 x 4 cm → size 3x4 cm⟧, ⟦12 × 8 × 5 mm → size 12x8x5 mm⟧, ⟦19x10x5cm → size 19x10x5 cm⟧",
    "⟦3 cm x 4 cm → size 3x4 cm⟧, ⟦3 por 4 cm → size 3x4 cm⟧, ⟦5 x 4,8 x 2,5 cm → size "
    "5x4.8x2.5 cm⟧",
    # Times.
    "⟦3 días → duration 3 d⟧ de evolución, ⟦dos semanas → duration 2 wk⟧, ⟦24 h → duration "
    "24 h⟧, ⟦un mes → duration 1 mo⟧, ⟦un año y medio → duration 1.5 a⟧",
    "desde hace ⟦5 años → duration 5 a⟧, en los últimos ⟦4 meses → duration 4 mo⟧, durante "
    "⟦dos minutos → duration 2 min⟧",
    "A los ⟦5 años → duration 5 a⟧ de la cirugía. A las ⟦48 horas → duration 48 h⟧.",
    "⟦treinta y cinco minutos → duration 35 min⟧, ⟦media hora → duration 0.5 h⟧",
    "Varón de ⟦65 años → age 65 a⟧ con diabetes de ⟦6 años → duration 6 a⟧ de evolución.",
    "Mujer, ⟦75 años → age 75 a⟧. Varón(⟦67a → age 67 a⟧.). Edad: ⟦65 años → age 65 a⟧. "
    "Edad: ⟦65 → age 65 a⟧.",
    "⟦29 años de edad → age 29 a⟧, ⟦12 días de vida → age 12 d⟧, lactante de ⟦3 meses → age 3 mo⟧",
    "apendicectomía a los ⟦17 años → age 17 a⟧; fuma desde los ⟦14 años → age 14 a⟧",
    "Paciente fumador desde hace ⟦20 años → duration 20 a⟧",
    "Control el lunes a las 10:30 h, a las 13,47 horas y a las 20 h.",
    # Frequencies.
    "⟦cada 8 horas → frequency 3 d⟧, ⟦c/8h → frequency 3 d⟧, ⟦cada 12 horas → frequency 2 "
    "d⟧, ⟦cada 24 h → frequency 1 d⟧",
    "⟦500 mg → 500 mg⟧⟦/8 h → frequency 3 d⟧ y ⟦500mg → 500 mg⟧⟦/8h → frequency 3 d⟧",
    "⟦3 veces al día → frequency 3 d⟧, ⟦dos veces por semana → frequency 2 wk⟧, ⟦una vez al"
    " día → frequency 1 d⟧",
    "⟦cada 3 semanas → frequency 0.3333 wk⟧, ⟦cada 3 meses → frequency 0.3333 mo⟧, ⟦cada "
    "día → frequency 1 d⟧, ⟦cada noche → frequency 1 d⟧",
    "⟦diario → frequency 1 d⟧, ⟦semanal → frequency 1 wk⟧, ⟦1-0-1 → frequency 2 d⟧, ⟦cada "
    "6-8 horas → frequency 3..4 d⟧, ⟦una a dos veces al día → frequency 1..2 d⟧",
    "independiente para actividades de la vida diaria",
    # Dates.
    "El ⟦12/03/2014 → date 2014-03-12⟧, ⟦12-3-14 → date 2014-03-12⟧, ⟦12.03.2014 → date "
    "2014-03-12⟧, ⟦2014-03-12 → date 2014-03-12⟧",
    "⟦3 de mayo de 2011 → date 2011-05-03⟧, ⟦mayo de 2011 → date 2011-05⟧, ⟦5/2011 → date "
    "2011-05⟧, ⟦mayo del 2011 → date 2011-05⟧",
    "en ⟦2009 → date 2009⟧, desde ⟦1998 → date 1998⟧, en el año ⟦2002 → date 2002⟧, En "
    "⟦1.998 → date 1998⟧, ⟦octubre de 2.002 → date 2002-10⟧",
    "el 3 de mayo, el 12/10, en mayo, 31/02/2014, total de 2000 pacientes",
    # Of notes.
    "Hª 5519027 // ⟦63 años → age 63 a⟧ // años cumplidos: ⟦78 → age 78 a⟧",
    "GN a ⟦2 lpm → 2 L/min⟧, FC ⟦90 lpm → 90 /min⟧, FA a ⟦140x ´ → 140 /min⟧",
    "Plaquetas ⟦250 mil → 250 10*3⟧, leucocitos ⟦12 mil/mm3 → 12 10*3/mm3⟧, mil pacientes",
    "Ideos ⟦1/dia → frequency 1 d⟧, ⟦5-7 al día → frequency 5..7 d⟧",
    "ceftriaxona ⟦2 gr → 2 g⟧ ⟦/ 12 horas → frequency 2 d⟧",
    "trasfunden 2 CH, sonda de ⟦18 Ch → 18 [Ch]⟧, fiebre de ⟦38,5 → 38.5⟧, fiebre 3",
    "en el año ⟦2000 → date 2000⟧ y ⟦2004 → date 2004⟧, PIO 16/⟦18 mmHg → 18 mm[Hg]⟧",
    "a los ⟦4 → age 4 mo⟧ y ⟦6 meses de edad → age 6 mo⟧, VN de ⟦0-2 → range 0..2⟧",
    "Na ⟦140 → 140⟧ K ⟦4,5 → 4.5⟧ Cl ⟦100 → 100⟧, sonda ⟦18 F → 18 [Ch]⟧",
    "minimental ⟦07/09/2012 → date 2012-09-07⟧",
]
NONE = [
    "vitamina B12, T4, L5-S1, CA 19-9, Ki67, COVID-19, HER2, CD20, 1,25(OH)2D",
    "grado II, estadio III, diabetes tipo 2, NYHA 3, G2P1, T2N0M0",
    "2 hijos, tres lesiones, 4 ciclos, 2 unidades de concentrado de hematíes",
    "Tel. 912 345 678. NHC: 72-40918. C/ Mayor 7, 3º B, 28004 Madrid. NºCol: 28 28 57986.",
    "1. Reposo. 2. Dieta. 3- Control. Opciones 4 y 5. Figura 3.",
    "el 4o. día, 2ª biopsia, 1er ingreso, un segundo ciclo, 3D",
    "Omeprazol 20, hemocultivos 1/2, varios días, algunas semanas",
    "Apgar 9/10/10",
    "38+5 semanas, 38 + 5 semanas, 38 5/7 semanas",
    "insulina 20-0-18 UI, NPH 10 - 0 - 8 UI",
]


def test_measurements() -> None:
    check("es", LINES)


def test_no_measurements() -> None:
    check("es", NONE)
