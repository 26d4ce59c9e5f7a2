"""Spanish cues on sentences of our own: one sign for each mention in brackets."""

import pytest

from .cases import check

NEGATED = [
    ("Niega [fiebre], [tos] ni [disnea].", "+++"),
    ("Niega [fiebre], [tos] y [dolor torácico].", "+++"),
    ("Sin [fiebre], [tos] y [disnea].", "+++"),
    ("Exploración: sin [soplos], [murmullo vesicular] conservado.", "+-"),
    ("No mejora la [disnea].", "-"),
    ("No [náuseas], no [vómitos], sí [diarrea].", "++-"),
    ("Imposible descartar [TEP].", "-"),
    ("[Fiebre] negada.", "+"),
    ("Descartada [cardiopatía].", "+"),
    ("[Fractura] descartada en la [radiografía].", "+-"),
    ("Sin [fiebre] ni [escalofríos], con [tos] productiva.", "++-"),
    ("No [cefalea], [náuseas] ni [vómitos].", "+++"),
    ("No [HTA], [DM] ni [DL].", "+++"),
    ("No presenta [edemas] pero sí [disnea].", "+-"),
    ("Sin [fiebre], aunque con [tos].", "+-"),
    ("[Hemocultivos]: negativos.", "+"),
    ("[Hemocultivos] y [urocultivo] negativos.", "++"),
    ("[Fiebre]: no.", "+"),
    ("[HTA] (-), [DM] (+).", "+-"),
    ("[HTA] no, [DM] sí.", "+-"),
    ("Se ha descartado [TEP].", "+"),
    ("[TEP] descartado.", "+"),
    ("Ausencia de [fiebre].", "+"),
    ("[Ausencia de fiebre].", "+"),
    ("Exploración: [afebril], [anictérico], [normotenso].", "+++"),
    ("Paciente [asintomático].", "+"),
    ("Hígado sin [LOEs].", "+"),
    ("Tampoco refiere [disnea].", "+"),
    ("No se palpan [masas] ni [megalias].", "++"),
    ("No refiere [fiebre]; refiere [tos].", "+-"),
    ("Sin [soplos].\nAbdomen con [dolor] a la palpación.", "+-"),
    ("No [fiebre]\n- [Tos] de dos días", "+-"),
    ("El [dolor] no cede con analgesia.", "-"),
    ("Linfoma no [Hodgkin].", "-"),
    ("[Linfoma no Hodgkin] estadio IV.", "-"),
    ("[Bacilos gram negativos] en esputo.", "-"),
    ("No solo [fiebre], también [tos].", "--"),
    ("No se puede descartar [TEP].", "-"),
    ("No se descarta [neumonía].", "-"),
    ("Sin cambios en el [nódulo pulmonar].", "-"),
    ("Refiere [tos] sin [expectoración].", "-+"),
    ("[Anemia sin criterios de transfusión].", "-"),
    ("[Dolor] torácico. No [disnea].", "-+"),
    ("Refiere [falta de aire].", "-"),
    ("[FIEBRE] y TOS. NIEGA [DISNEA].", "-+"),
    ("Serología negativa para [VIH].", "+"),
    ("Se suspende [metformina].", "+"),
    ("[Metformina] suspendida.", "+"),
]
UNCERTAIN = [
    ("Posible [neumonía].", "+"),
    ("No se descarta [TEP].", "+"),
    ("No se puede descartar [isquemia].", "+"),
    ("Se solicita TC para descartar [TEP].", "+"),
    ("[Lesión] compatible con [hemangioma].", "-+"),
    ("Sospecha de [apendicitis], [HTA] conocida.", "+-"),
    ("Probable [ITU] y se inicia [antibiótico].", "+-"),
    ("¿[TEP]?", "+"),
    ("[Neumonía] vs [atelectasia].", "++"),
    ("El cuadro podría corresponder a [vasculitis].", "+"),
    ("Sin signos sugestivos de [isquemia].", "-"),
    ("Lo antes posible [TC].", "-"),
    ("Se ha descartado [TEP].", "-"),
]
HISTORICAL = [
    ("Antecedentes de [IAM].", "+"),
    ("Antecedentes personales: [HTA], [DM].", "++"),
    ("Intervenido de [apendicitis] hace 10 años.", "+"),
    ("[Fiebre] desde hace tres días.", "-"),
    ("[Neumonía] hace 5 años.", "+"),
]
HYPOTHETICAL = [
    ("Si [fiebre], acudir a urgencias.", "+"),
    ("En caso de [dolor], paracetamol.", "+"),
    ("Si bien persiste la [tos].", "-"),
    ("Riesgo de [caídas].", "+"),
    ("Sí presenta [disnea].", "-"),
]
FAMILY = [
    ("Madre con [cáncer de mama].", "+"),
    ("Antecedentes familiares de [cardiopatía isquémica].", "+"),
    ("Padre fallecido por [IAM].", "+"),
    ("La madre refiere que tiene [fiebre].", "-"),
    ("[Cáncer de colon] en su padre.", "+"),
    ("Abuela materna con [Alzheimer].", "+"),
    ("Su marido tiene [gripe].", "+"),
]


@pytest.mark.parametrize(
    ("kind", "marked", "expected"),
    [
        (kind, *case)
        for kind, cases in {
            "negated": NEGATED,
            "uncertain": UNCERTAIN,
            "historical": HISTORICAL,
            "hypothetical": HYPOTHETICAL,
            "family": FAMILY,
        }.items()
        for case in cases
    ],
)
def test_attribute(kind: str, marked: str, expected: str) -> None:
    check("es", kind, marked, expected)
