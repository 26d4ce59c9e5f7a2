"""Rules find structured PHI however it is written, and leave look-alikes alone; time is linear."""

import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_bioclin.deid.detect.rule_data import LANGS, make_label_rules, read_entries
from spacy_bioclin.deid.detect.rules import RuleSet, load_rules, make_view
from spacy_bioclin.deid.labels import load_types
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.text import FoldedText
from tests.hostile.growth.measure import is_linear

try:  # Python 3.11 gave it another name
    from re import _parser as regex_parser  # type: ignore[attr-defined]
except ImportError:
    import sre_parse as regex_parser

# [[value]] and its type.
SPANISH = r"""
teléfono [[seis uno dos, treinta y cuatro, cincuenta y seis, setenta y ocho]] phone
móvil [[seiscientos doce, trescientos cuarenta y cinco, seiscientos setenta y ocho]] phone
Llamar al [[nueve ocho uno guion veintidós guion treinta y tres guion cuarenta]] phone
DNI [[doce millones trescientos cuarenta y cinco mil seis, letra zeta]] national_id
historia número [[cuatro cinco seis siete ocho]] record_id
colegiado [[treinta y seis barra cero dos mil ciento once]] licence_id
código postal [[quince mil setecientos uno]] postcode
nació el [[uno del tres del cuarenta y uno]] date
nacida el [[veinte de julio del cincuenta y cinco]] con fiebre date
el de la hija: [[seis siete siete, cero ocho uno, dos]] phone
de ene i [[cincuenta y un millones doscientos mil]] national_id
operada en [[mayo del noventa y ocho]] date
desde el [[verano de dos mil tres]] date
ingresó el [[tres de los corrientes]] date
el [[martes quince]] por la tarde date
correo [[juan punto pérez arroba hospital punto es]] email
DNI [[12345678Z]] national_id
D.N.I.: [[12.345.678-Z]] national_id
dni nº [[12345678-z]] national_id
(DNI [[12345678Z]]) national_id
[[12345678Z]] (DNI) national_id
DNI:\n[[12345678Z]] national_id
DNI: [[12345678 Z]] y tosía. national_id
DNI [[23.456.789]] y tosía. national_id
N.I.E. [[X-1234567-L]] national_id
CIF de la empresa: [[A58818501]] other_id
pasaporte español nº [[PAB 123456]] national_id
NASS: [[26 63514095 47]] insurance_id
Nº SS [[28/12345678/40]] insurance_id
Número de la Seguridad Social: [[281234567840]] insurance_id
CIP: [[ABCD 1 234567 89 0]] insurance_id
CIP SNS: [[BBBBBBBBQR648597]] insurance_id
nuhsa [[AN 01 2345 6789]] insurance_id
tarjeta sanitaria [[580403GRLL1016]] insurance_id
N.H.C.: [[HC-123456]] record_id
Historia clínica nº [[123456/18]] record_id
NHC [[123 456 789]] record_id
[[1234567]] (NHC) record_id
Número de ingreso: [[18/004567]] contact_id
Biopsia nº [[18B0012345]] other_id
NºCol: [[28 28 57891]] licence_id
Colegiado número [[08-08-25574]] licence_id
IBAN [[ES91 2100 0418 4502 0005 1332]] account
tarjeta [[4111-1111-1111-1111]] account
coche con matrícula [[1234-BCD]] vehicle
vehículo [[M-1234-AB]] vehicle
Ref. catastral: [[9872023 VH5797S 0001 WX]] cadastre
C.P.: [[08036]] postcode
Calle Mayor 5, [[28013]] Madrid postcode
Tel: [[(+34) 612345678]] phone
Tel.\u00a0[[961 62 24 03]] phone
Cel. [[55-1234-5678]] phone
fax [[961622403]] fax
correo: [[juan.perez (arroba) gmail.com]] email
[[https://www.hospital.es/a?b=1]] url
desde [[2001:db8::ff00:42:8329]] ip_address
mac [[00-1b-44-11-3a-b7]] device
Marcapasos, S/N: [[PJN123456H]] device
el [[3 de marzo de 2018]] date
[[03-MAR-18]] y date
[[12/IX/98]] date
[[2018-03-03T10:30:00]] date
desde [[2012]] date
[[marzo de 2018]] date
el día [[12/03]] date
F. Nac.: [[12-03-1956]] date
mujer de [[94 años]] age
Edad: [[54]] age
Mujer, [[43 años]] age
Paciente [[72 años]] age
Varón [[54a]], HTA age
García Nogales, Casilda, [[54a]], HTA age
[[67 a.]] de edad age
Varón de [[67 a.]] de edad age
Mujer de [[66 a.]] que refiere tos age
mujer caucásica de [[56 años]] age
Paciente femenina de [[49 años]] age
Hombre, de raza negra, de [[39 años]] age
García Nogales, Casilda ([[63 años]]). NHC age
falleció a los [[8 meses]] de edad age
[[setenta y dos años]] age
Varón de [[veintitrés años]] age
tiene [[seis años]] age
años cumplidos: [[51]], tarjeta age
CIP SNS [[BBBBBBBQR648597]] insurance_id
CURP [[BOXW310820HNERXN09]] national_id
RUT [[12.531.909-2]] national_id
CUIT: [[20-05536168-2]] national_id
Adeslas [[12345678]] health_plan_id
Domicilio: [[Calle Mayor, 5, 3º B]] street
vive en [[C/ Mayor 5, 3º izda]], Madrid street
Apellidos, Nombre: [[García López, Juan]] patient_name
Dña. [[María de la Peña]] patient_name
Remitido por: Dra. [[M. López-Ruiz]] Servicio de Urología staff_name
en el [[Hospital 12 de Octubre]] hospital
Te remito a [[Obdulia Iturbide Mazuelas]], jubilada patient_name
[[JOSÉ LUIS PEÑARANDA URDIALES]]\nMotivo patient_name
[[ALMAZARRO ESCOBEDO, ELADIO]]\nMotivo patient_name
A su cargo, [[Inés]]. patient_name
Hoy [[Inés]] refiere tos patient_name
La familia ([[Milagros]]) deja el tfno patient_name
su hija, [[Casilda Nogales]], avisa patient_name
la Dra.\n[[Fuensanta Barrientos]] firma staff_name
la Dra. [[de la Vega Labrador]], de guardia staff_name
Responsable del informe: [[Peñaranda]], staff_name
vive en [[Torremuelas]] con su hijo city
C/ Batanes 95, [[Torremuelas]]. city
C/ Batanes 95, [[99214]] Torremuelas postcode
Dra. Dueñas. [[San Millán de Arce]], 23-11-2021.\n city
natural de [[Colombia]], casado country
Profesión: [[conductor de autobús]]. CIP profession
Trabaja como [[maestra]]. Reside profession
de 36 a., de profesión [[electricista]], con profession
Jubilado, fue [[camionero]]. Firma profession
Paciente de 55 años, [[maestra]], con hepatitis profession
[[camionero]] de 86 años profession
baja laboral ([[albañil]]). Copia profession
[[Centro de Salud Barrio del Pilar]] health_centre
Sexo: [[Varón]] sex
C.U.I.T.: [[20-05536168-2]] national_id
[[168583]] (Nº Hª Cª) record_id
Tel.: [[634\n304 381]] phone
IBAN: [[ES91\n2100 0418 4502 0005 1332]] account
Nº de serie del marcapasos ......: [[PJN123456H]] device
CIP nº [[ABCD - 1234567890]] insurance_id
<b>NHC:</b> [[123 - 456]] record_id
Carné de conducir [[98184049-I]] licence_id
CIAS: [[8345421671 X]] staff_id
vive en [[Calle 35 # 69-41 apto. 175]] street
Año de diagnóstico: [[2004]] date
Próxima cita: [[3/09]] date
el [[jueves 5]] a las 9 date
Revisión el [[lunes 13 oct.]] en consulta date
Cita el [[vier 22]] a las 9 date
Peor desde el [[sábado]] por la noche date
Operada la madrugada de [[Año Nuevo]], sin incidencias date
Mareo el [[Jueves Santo]] por la tarde date
Ingresó la noche de [[San Juan]], ebrio date
el [[veintidós de julio]] se opera date
[[12-IX]] cura date
[[19/X]] cura date
FUM [[4/9]], FPP pendiente date
ingresado desde el [[16]] por fiebre date
MSH|LAB|[[202304180714]]||ORU date
Revisión en [[primavera del 25]], sin prisa date
Mujer de [[81]], vive sola age
Sra. Amparo ([[92]]) agitada age
aparenta unos [[cincuenta]]. Soliloquios age
Dr. Cordero (busca [[4471]]) phone
DECT [[71-440]], turno phone
Cel [[02344-15-44-1180]], llamar phone
llamar al [[nueve cinco cinco tres uno cuatro cero ocho tres]] phone
ficha [[55-2071]], control record_id
Expte. [[TS/2019/0447]], abierto record_id
M.P. [[31.882/4]], firma licence_id
LE [[8.441.207]], traslado national_id
tubo [[99-20416]], pendiente contact_id
sigue a [[@marc_9x]] en redes user_name
su hija [[Casilda]] avisa patient_name
[[Mujer]] de 52 años sex
en la [[Residencia Los Olmos]], estable hospital
va al [[CESFAM Las Lomas]], control health_centre
trabaja en [[Construcciones Peñalara]], en paro organization
El padre es [[encofrador]] y fuma profession
vive en la [[c/ virgen de las nieves 14]], sola street
Paciente María López de [[54 años]], con HTA age
Sra. Gómez de [[78 años]] age
LA PACIENTE MARIA LOPEZ DE [[54 AÑOS]] age
LA PACIENTE [[MARIA LOPEZ]] DE 54 AÑOS patient_name
Apellidos y nombre: [[GARCIA LOPEZ,MARIA]] patient_name
INGRESA EN EL [[HOSPITAL LA PAZ]] POR DOLOR TORACICO hospital
el [[5 de Octubre del 2.020]] por tos date
Tfno 612345678/[[934123321]] phone
su hija [[Carmen]] refiere que no come patient_name
Avisar a la vecina, [[Finita]], enfrente patient_name
Visto por [[J. García]] staff_name
"""
ENGLISH = r"""
phone [[six one two, five five five, oh one two three]] phone
call back at [[five five five one two three four extension nine]] phone
reach her at [[two one eight comma five five five comma zero one nine eight]] phone
zip code [[four five four oh two]] postcode
MRN [[four five six seven eight nine]] record_id
his social is [[one two three, four five, six seven eight nine]] national_id
in [[May of ninety eight]] date
in the [[summer of two thousand three]] date
email [[john dot smith at mercy dot org]] email
SSN: [[536904399]] insurance_id
[[536-90-4399]] (SSN) insurance_id
MRN: [[123-45-67]] record_id
medical record no. [[A1234567]] record_id
NHS number: [[943 476 5919]] record_id
NPI [[1234567893]] licence_id
DEA#: [[ab1234563]] licence_id
Medicare number [[1EG4-TE5-MK73]] health_plan_id
Member ID: [[XYZ123456789]] health_plan_id
Acct# [[00123456789]] account
Accession number: [[S18-12345]] other_id
Encounter: [[100234567]] contact_id
NI number [[QQ 12 34 56 C]] insurance_id
Driver's License: [[D1234567]] licence_id
License plate [[ABC-1234]] and vehicle
VIN: [[1HGCM82633A004352]] vehicle
pacemaker serial # [[PJN123456H]] device
[[(617) 555-0199]] phone
cell: [[617-555-0199 ext. 12]] phone
Tel [[020 7946 0958]] phone
Fax: [[617-555-0100]] fax
[[john.doe at mail dot org]] email
DOB [[3-12-58]] date
on [[May 3rd, 2018]] date
[[Sept. 3, 2018]] date
[[03-May-2018]] date
since [[2012]] date
a [[92-year-old]] man age
a [[94-year-old]] woman age
[[102 y/o]] male age
seen by her GP, [[45]] yo, anxious age
a [[ninety-four-year-old]] man age
lives at [[123 Main Street, Apt 4B]] street
[[1600 Pennsylvania Ave NW]] street
Springfield, IL [[62704]] postcode
London [[SW1A 2AA]] postcode
Name: [[SMITH, JOHN A]] patient_name
Mrs [[Mary O'Connor]] patient_name
Thank you for seeing [[Kenneth Ashgrove]], a waiter patient_name
Her son, [[Percival]], was called patient_name
the family ([[Imogen Pemberly]], 202-555-0195) patient_name
Works as a [[bricklayer]]. Lives alone profession
Occupation: [[truck driver]]. Insurance profession
a 66 yo [[mechanic]] with cough profession
Dr. [[Jones]] staff_name
It hurt. [[Jane Doe]], M.D. staff_name
at [[Massachusetts General Hospital]] hospital
Driving licence: [[TBXTN-109066-WY9DN]] licence_id
NMC PIN: [[41E 5769S]] licence_id
Passport no. [[N91176915]] national_id
Registration: [[BD12-RDH]] vehicle
MAC [[49DB.F99A.D26D]] device
Year of surgery: [[2010]] date
[[20140305]] (Discharge date) date
Review [[Mon 22 July]] in clinic date
rang on [[Thursday 20th]], well date
worse since [[Sun]] night date
seen on [[Friday]], well date
last seen [[Ash Wednesday]] at home date
after [[Boxing Day]] she fell date
on the [[twenty second of june]] she fell date
switched to doxy on the [[sixth]]. date
slept badly since the [[12th]]. date
EDD [[19/8]] by scan date
Cr 1.1 ([[5/3]]) and rising date
MSH|EPRO|[[202404031122]]||ADT date
since [[fall of 2021]], stable date
by [[mid-June]] she was well date
her mum Comfort ([[91]]) rang age
Rose Hill [[81]]F, off legs age
TRAN, Bao, [[62]]/M, renal mass age
[[22]] mo F with croup age
she is [[44]] and well age
Brother Prince, [[5]], asthma age
bleep [[3367]], please phone
paged [[7-7141]], waiting phone
renal fellow, p[[2-1190]] phone
ring [[021 555 0136]], please phone
text [[970/555/0108]], please phone
EL claim reference for insurer: [[EL/24/00931-P]]. other_id
IMC [[418832]], signed licence_id
PPS [[6477863B]], seen national_id
van, reg [[192-TN-4471]], parked vehicle
Youghal, [[P36 X8K2]] postcode
daughter [[Carmen]] came patient_name
CPN [[Mo]] rang staff_name
seen by [[K. Blunt]], triage staff_name
moved to [[Ward 21]], stable hospital
from [[Tollgate Medical Practice]], fax hospital
lives in [[Farmington]], alone city
retired [[school cook]], widow profession
at [[Pine Needle Elementary]], Duluth organization
flat at [[41 Harbour Parade]], Youghal street
PATIENT NAME: [[WILLIAMS,SERENA J]] patient_name
Name: [[Jane   M.   Doe]] patient_name
PCP: [[Kim Chi Do]], NP staff_name
PATIENT ADMITTED TO [[BOSTON CITY HOSPITAL]] WITH CHEST PAIN hospital
Guardian: [[Sunniva Lindqvist]], called patient_name
By me, [[J. Olusanya-Peel]], SWE SW88120 staff_name
"""
LOOK_ALIKES = {
    "es": """
Subió al dos y al tres; tomó dos comprimidos a las tres y uno de cada cuatro
historia de dos años de evolución, tres de cuatro de los noventa casos
Amoxicilina 500 mg/8 h durante 7 días, 200 mg c/12 horas
TA 120/80 mmHg, FC 72 lpm, Tª 36,5 ºC, SatO2 98%
Hb 12,3 g/dl, plaquetas 150.000/mm3, Na 140, K 4,5, Cl 101
Gleason 3+4=7, APACHE II 14, Glasgow 15/15, EVA 8/10
pT2N0M0, estadio IIIB, CIE-10 C50.9, CIE-O 8140/3
NCT01234567, EudraCT 2012-001234-56, EORTC 22981
BRCA1, KRAS G12D, HER2 3+, 1234 BCR-ABL
Rev Esp Cardiol 2012;65:123-130
hace 20 años, a las 10:30 h, 1-0-1, 3/15 ganglios
D.N.I.: no consta. N.I.T. sin dato
dolor de 5 años de evolución, fumadora durante 30 años
seguimiento de 10 años, en tratamiento desde hace 12 años, diez años después, hace treinta años
VSG 100 a la hora, de 54 a 60, percentil 5 para su edad: 43 mmHg, gestante de 34 semanas
Leucocitos 17850 Neutrófilos 86%, Plaquetas 85000 Hemoglobina 12
Rosa de Bengala positivo, Paul Bunnell negativo, ANA negativos, ictericia, Flora mixta
es dependiente para las actividades, fallo mecánico, nombre comercial, trabaja de noche
enfermedad de Wilson, signo de Murphy, escala de Norton, síndrome de Gilbert
L4-L5, C5-C6, vitamina D. Suspende; 20 Gy en 10 fracciones
fuerza 4/V, soplo II/VI, los lunes y jueves, cada martes, EVA (8), Barthel (85), T 38 C. Consciente
F. Alta: 3 g. Tª 36,5ºC. Consciente y orientada. M. Interna: HTA. A.Pulmonar: crepitantes
F. Alcalina 126. I. Protrombina 98 %. ITU por E. Cloacae. T. Arterial: 120/80. A. Personales: no
Control por su médico de familia\nEvolución favorable. Control por su médico de primaria\nDieta
Control en su Centro de Salud\nSeguir con dieta. Solicitar en su ambulatorio TAC
Procedente de Planta de Medicina. Procedente de Consultas Externas. Lo remito a Plástica.
Tratamiento médico: Recomendamos no beber. Derivado por MAP por fiebre
quiste Bosniak I. Sin captación, mama izquierda, a los 6 meses de la cirugía, hace 12 años
""",
    "en": """
Chronic hepatitis C. Cirrhosis of the liver. P. Aeruginosa grew. A. Fib. T. Bili 1.2. L. Spine films
A. Right breast, core biopsy: carcinoma. B. Small bowel, resection
Mother: Breast cancer. Sister - Ovarian cancer. Father: Deceased. Mother: Alive
rated it four or five, two to three times, summer of his life, call at nine
BP 120/80, HR 72, T 98.6, O2 sat 98% on RA
WBC 12.3, Na 140, pH 7.35/45/24, titer 1/160
strength 5/5, 2/6 systolic murmur, pain 8/10
N Engl J Med 2012;366:123-130, NCT01234567, LOINC 2345-7
for 20 years, 3 months ago, at 10:30 am, 30 pack-years
may 10 mg, may improve in 3 to 5 days, call 911
Gene Clonality Assay; Ann Arbor stage IV, Will return, Grace period
range 3.9-5.6 mEq/L; 60-109 mg/dL. Staff ID: none. Physician: unknown.
Sat 98% on air, in the sun, every Monday, Mon-Sun box, the third day, the 6th rib, Christmas factor
Barthel (85), Figure (3), 5/7 course, strength (5/5), ratio 12/08, 18F-FDG, vision 6/18, x100
fracture clinic, emergency department, Fick CO 4.4, N/A. Stable
size 3.4 x 2.1 x 1.2 cm, 100,000 CFU, 150-200-250
""",
}
ADVERSARIAL = [
    *("1", "12 ", "1-", "1.", "(1) ", "54 ", "612345678 ", "961 622 403 ", "ES12 1234 ", "5/12 "),
    *("a@", "a@a.", "@", "-", " ", "\n", ":a", "a::", "aa-bb-", "a", "Aa ", "ñ ", "n ", "D. "),
    *("al uno, dos y ", "uno del uno del ", "a punto b ", "a at b dot c ", "NHC: ", "NHC (a "),
    *("NHC\n\n", "Tel. +", "Calle de la ", "calle Aa, ", "Dr. Aa ", "Paciente: ", ".es"),
    *("Hospital de la ", "1 de enero ", "Aa, IL 62704 ", " Clinic", "Aa Aa Aa, MD ", "http://a"),
]


def find(text: str, lang: str) -> list[tuple[int, int, str]]:
    found = load_rules(lang).find(text)
    return [(phi.start, phi.end, phi.label) for phi in found if phi.confidence >= 0.5]


def examples() -> list[tuple[str, str]]:
    lines = [("es", line) for line in SPANISH.strip().splitlines()]
    return lines + [("en", line) for line in ENGLISH.strip().splitlines()]


def parse(line: str) -> tuple[str, tuple[int, int, str]]:
    line, _, phi_type = line.rpartition(" ")
    line = line.replace(r"\n", "\n").replace(r"\u00a0", "\u00a0")
    start, end = line.index("[["), line.rindex("]]") - 2
    text = line.replace("[[", "", 1)
    return text[:end] + text[end + 2 :], (start, end, phi_type)


def test_written_variants() -> None:
    wrong = []
    for lang, line in examples():
        text, (start, end, phi_type) = parse(line)
        # Alone, and after a sentence with a line break behind it.
        for before, after in (("", ""), ("Acude. " if lang == "es" else "He came. ", "\n")):
            found = find(f"{before}{text}{after}", lang)
            if (start + len(before), end + len(before), phi_type) not in found:
                wrong.append((lang, line, before, found))
    assert not wrong, wrong


def test_look_alikes() -> None:
    lines = [(la, line) for la in LANGS for line in LOOK_ALIKES[la].strip().splitlines()]
    wrong = [(line, found) for la, line in lines if (found := find(line.replace(r"\n", "\n"), la))]
    assert not wrong, wrong


def test_the_disease_of_a_relative_is_no_name() -> None:
    text = "Madre HTA. Padre Neoplasia de pulmón. Hermano: Diabetes. Padres: Sanos. Su hija\nAlta"
    assert {phi_type for _, _, phi_type in find(text, "es")} == {"relative"}


def confidence(text: str, kind: str) -> float:
    (phi,) = (phi for phi in load_rules("es").find(text) if phi.detector == kind)
    return phi.confidence


def test_check_moves_confidence_and_never_discards() -> None:
    right, wrong = confidence("12345678Z", "es_dni"), confidence("12345678A", "es_dni")
    assert right > wrong >= 0.5
    assert confidence("28 12345678 40", "es_nass") > confidence("28 12345678 41", "es_nass") >= 0.5


def test_context_raises_confidence() -> None:
    bare = confidence("1234 BCD", "es_plate")
    assert confidence("Un turismo azul, 1234 BCD", "es_plate") > bare
    assert confidence("Un turismo azul:\n1234 BCD", "es_plate") > bare
    assert confidence("Un turismo azul.\nOtra línea.\n1234 BCD", "es_plate") == bare


def test_several_values_of_one_label() -> None:
    text = "Tel: 961622403 / 626807465 y 915555555"
    assert [text[start:end] for start, end, _ in find(text, "es")] == [
        "961622403",
        "626807465",
        "915555555",
    ]


def test_overlaps_are_resolved() -> None:
    text = "NASS: 36 47656743 36"  # holds what could be a phone, a date, a record
    assert find(text, "es") == [(6, len(text), "insurance_id")]


def test_decomposed_accents() -> None:
    text = "Médico: Ángel Muñoz Pérez. Nació en España el 3 de marzo de 2018"
    decomposed = unicodedata.normalize("NFD", text)
    assert len(decomposed) > len(text)
    names = [decomposed[a:b] for a, b, phi_type in find(decomposed, "es") if phi_type != "country"]
    assert names == [unicodedata.normalize("NFD", "Ángel Muñoz Pérez"), "3 de marzo de 2018"]


def test_both_languages() -> None:
    found = load_rules("es", "en").find("NHC: 123456. MRN: 654321.")
    assert [(phi.start, phi.detector) for phi in found] == [(5, "es_nhc"), (18, "en_mrn")]
    assert load_rules("es", "en") is load_rules("es", "en")


def test_unknown_language() -> None:
    for langs in (("fr",), ("es", "xx"), ()):
        with pytest.raises(BioclinError, match="es, en"):
            load_rules(*langs)


def test_label_must_begin_with_a_word() -> None:
    entry: dict[str, Any] = {"kind": "k", "type": "record_id", "pattern": "1", "confidence": 1.0}
    for label in ("(?:a|b)c", "num(?:ero)?", "[.]a"):
        with pytest.raises(BioclinError, match="whole word"):
            list(make_label_rules({**entry, "labels": [label], "separator": " "}, {}))
    words = dict(make_label_rules({**entry, "labels": ["medic[oa]s?[.]?"], "separator": " "}, {}))
    assert sorted(words) == ["medica", "medicas", "medico", "medicos"]


def test_data() -> None:
    kinds = [entry["kind"] for entry, _ in read_entries(*LANGS)]
    assert len(kinds) == len(set(kinds))
    for entry, _ in read_entries(*LANGS):
        assert entry["type"] in load_types(), entry["kind"]
        for name in ("confidence", "passed", "failed", "with_context"):
            assert 0 <= entry.get(name, 0) <= 1, entry["kind"]


def patterns(rules: RuleSet) -> set[str]:
    every = [rule for same in rules.by_word.values() for rule in same]
    every += [rule for _, rule in rules.by_shape] + [rule for *_, rule in rules.by_mark]
    parts = ("pattern", "label", "behind", "more", "before", "after")
    found = [getattr(rule, part) for rule in every for part in parts]
    return {one.pattern for one in (*found, *(mark for mark, *_ in rules.by_mark)) if one}


def is_bounded(parsed: Any) -> bool:
    """Whether no quantifier in a parsed pattern is without an upper bound."""
    if isinstance(parsed, tuple) and parsed and str(parsed[0]) in ("MAX_REPEAT", "MIN_REPEAT"):
        return parsed[1][1] < 1000 and is_bounded(parsed[1][2])
    if isinstance(parsed, (tuple, list, regex_parser.SubPattern)):
        return all(is_bounded(part) for part in parsed)
    return True


def test_every_quantifier_is_bounded() -> None:
    assert not is_bounded(regex_parser.parse("a(?:b+|c)"))
    for pattern in set.union(*(patterns(load_rules(lang)) for lang in LANGS)):
        assert is_bounded(regex_parser.parse(pattern)), pattern


def test_adversarial_text_takes_linear_time() -> None:
    find_all = load_rules(*LANGS).find
    wrong = [piece for piece in ADVERSARIAL if not is_linear(find_all, piece, 6_000)]
    assert not wrong, wrong


@settings(max_examples=10)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(ADVERSARIAL),
            st.sampled_from([parse(line)[0] for _, line in examples()]),
            st.text(max_size=8),
            st.text("0123456789 -./", max_size=12),
        ),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from(LANGS),
)
def test_any_text(pieces: list[str], lang: str) -> None:
    text = "".join(pieces)
    rules = load_rules(lang)
    found = rules.find(text)
    ends = [0, *(phi.end for phi in found)]
    for phi, previous in zip(found, ends, strict=False):
        assert previous <= phi.start < phi.end <= len(text)
        assert 0 < phi.confidence <= 1
        assert rules.kinds[phi.detector] == phi.label
    assert found == rules.find(text)
    assert not text or is_linear(rules.find, text, max(2_000, 8 * len(text)))


@given(st.text())
@settings(max_examples=30)
def test_views_have_one_length(text: str) -> None:
    view = make_view(FoldedText(text))
    assert len(view.plain) == len(view.folded) == len(view.joined)


def test_view() -> None:
    view = make_view(FoldedText("Nº\u00a0Ñandú – İ ４２"))
    assert (view.plain, view.folded) == ("Nº Nandu - I 42", "nº nandu - i 42")
