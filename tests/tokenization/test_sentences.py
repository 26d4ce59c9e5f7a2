"""Clinical sentence splitter: hand-written notes, nothing lost, linear time, gold sentences."""

import pickle
import random
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import spacy

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.tokenization.component import BioclinSentences
from spacy_bioclin.tokenization.rules import RULES
from spacy_bioclin.tokenization.sentences import sentence_starts
from tests.hostile.growth.measure import MAX_CLOCK_RATIO, Subject, time_growth

# text with "|" where a sentence begins
SPANISH = [
    "Mujer de 63 años.| Niega alergias.| No fuma.",
    "Ingresa por disnea?| No.| ¡Dolor intenso!| ¿Fiebre? ¿tos seca?",
    "Valorada por la Dra. Ruiz y el Dr. Pérez.| Alta.",
    "Se palpa masa de 5 cm. de diámetro.| Se extirpa.",
    "A las 2 h. la paciente mejora.| Alta en 48 h.| Sin fiebre.",
    "Creatinina 1.2 mg/dl, Hb 13,5.| PCR 3.4 mg/L.| Resto normal.",
    "Crece E. coli y S. aureus en orina.| Se trata.",
    "Acude J. Pérez con su hija.| Déficit de vitamina D.| Se suplementa.",
    "Recibe amoxicilina i.v. durante 7 días y luego v.o.| Mejora.",
    "Lesiones en cara, tronco, etc. sin prurito.| Pápulas, habones, etc.| Se biopsia.",
    "Dolor izq. al caminar, p.ej. cuestas.| Reposo.",
    "Es dado de alta del hospital.|Se cita en consulta.|Vuelve con TAC.|El TAC es normal.",
    "Escribir a ana.ruiz@hospital.es o www.Hospital.es hoy.| Gracias.",
    "Aplicado según protocolo (ver fig. 2).| Sin incidencias (tolera bien.) y camina.",
    "Hematuria... con coágulos.| Luego cede...| Se va.",
    "Pauta: 1.5 mg/kg cada 8 h.| 3 días después, alta.",
    "Diagnósticos.| 1. Neumonía basal.| 2. Derrame.| a) Leve.",
    "Plan:\n|- Reposo\n|- hidratación oral\n|• control en 3 días\n",
    "Nombre: Ana.\n|Apellidos: Ruiz\n|Edad: 63 años\n|NHC: 12345\n",
    "ANTECEDENTES PERSONALES\n|HTA, diabetes\n|EXPLORACIÓN\n|Normal.",
    "Diagnóstico:\n|neumonía\n\n|tratamiento oral",
    "Acude con fiebre alta y tos productiva desde hace tres días, sin disnea, al\n"
    "servicio de urgencias de nuestro centro, donde es valorada por el equipo del\n"
    "Hospital Central.| Se pide radiografía de tórax y analítica que muestra una\n"
    "PCR elevada.\n|Alta",
    "Acude por dolor en el costado derecho desde hace dos días sin fiebre ni vómitos.\n|"
    "Niega disuria\n|Afebril\n|"
    "Se pide analítica con creatinina y sedimento de orina para mañana a primera.\n|Alta",
    "Remitida por la Dra.\nRuiz desde\r\nurgencias.\r\n|Alta.",
    "  \n |Empieza con blancos.|  \n\n  Y acaba.  \n",
    "Vive en EE. UU. desde 2010.| Trabaja.",
    "Sin clínica. .|",
    "No presenta p. ej. fiebre ni disnea.| Niega aler. a penicilina, fiebre y tos.",
    "Niega desde el 3 de sept. fiebre y tos.| Ingresó el 3 de sept. de 2020.| TAC el 12 feb. 2020.",
    "Valorada por la Dña. María López.| Pte. de 45 a. con tos.| Pac. trasladado.| Hto. 38 %.",
    "Operado en sept.| El paciente mejora.| Alta en mar.| Cita en may. 2021 y en dic.| No acude.",
]
ENGLISH = [
    "Dr. Smith saw Mrs. Jones at St. Mary's Hospital.| She denies pain.",
    "BP 120/80, temp. 37.2 C.| The rest was normal.",
    "Given 5 mg i.v. at 3 p.m.| No reaction, e.g. rash.| Discharged.",
    "E. coli vs. S. aureus was discussed by Lee et al. (2010).| No growth.",
    "Seen by J. Smith.| Vitamin C.| The dose was 2.5 mg.| Is it enough?| Yes!",
    "Mass of 3 cm. in diameter.| Removed.",
    "The patient was sent to the hospital.|He improved.",
    "METHODS: Rats (n = 12) were used.| RESULTS: None died (P < 0.05).| mRNA levels rose.",
    "MEDICATIONS:\n|1. Aspirin 81 mg p.o. daily\n|2. Lisinopril\n|ASSESSMENT\n|Stable",
    "This is a 45-year-old male who comes in with chest pain that began while he\n"
    "was walking near the\nCentral Park.| He denies dyspnea, nausea and vomiting\n"
    "today.",
    "Seen on Jan. 5, 2020 and on Sept. 12, 2019.| Wt. 70 kg.| Admitted in Dec.| No pain.",
]
FRENCH = [
    "Homme de 63 ans.| Pas d'allergie connue.| Ne fume pas.",
    "Vu par le Dr. Petit et M. Leroy.| Le Pr. Durand l'a opéré.| Sortie.",
    "Masse de 5 cm. de diamètre.| Exérèse complète.| Créatinine à 1,2 mg/dl.| CRP 3.4 mg/L.",
    "E. coli dans les urines.| Carence en vitamine D.| L'examen est normal.| Stade T. Bilan.",
    "Carence en vitamine C.| Qu’il faut traiter.| Vitamine K.| On traite.| Vu par A. L. Martin.",
    "Traitement, p. ex. Zymad ou p.ex. fer, env. 2 mois, cf. fig. 3.| Contrôle.",
    "Amoxicilline i.v. pendant 7 j. puis per os.| Douleurs, nausées, etc. sans fièvre.| Repos.",
    "Le test HIPAA est positif .| Comment agit-il ?| Il bloque la thrombine .",
    "Sortie de l'hôpital.|Revu en consultation.| Qu'en dire ?| Rien !",
    "ANTÉCÉDENTS\n|HTA, diabète\n|Traitement :\n|- bisoprolol\n|- aspirine 75 mg",
    "Motif : fièvre\n|Âge : 63 ans\n|Œdème des membres.",
    "Le patient est adressé en raison d'une fièvre élevée et d'une toux productive de\n"
    "l'Hôpital Central où il est suivi par le Professeur qui a demandé depuis hier au\n"
    "Laboratoire une hémoculture.| Elle est négative.",
    "Vu par Mme. Petit le 3 janv. 2020.| Scanner le 12 févr. sans lésion.| Sortie en déc.| Bilan.",
]
CASES = [
    *(("es", row) for row in SPANISH),
    *(("en", row) for row in ENGLISH),
    *(("fr", row) for row in FRENCH),
]
CONFIG = {"nlp": {"tokenizer": {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}}}


def make_nlp(lang: str, clinical: bool = True) -> spacy.Language:
    nlp = spacy.blank(lang, config=CONFIG if clinical else {})
    nlp.add_pipe("bioclin_sentences")
    return nlp


@cache
def get_nlp(lang: str) -> spacy.Language:
    return make_nlp(lang)


def cut(text: str, starts: list[int]) -> list[str]:
    edges = [0, *starts[1:], len(text)]
    return [text[a:b].strip() for a, b in pairwise(edges)]


def expected(row: str) -> list[str]:
    return [part.strip() for part in row.split("|") if part.strip()]


def test_sentences() -> None:
    found = [
        (lang, row, cut(text, sentence_starts(text, RULES[lang])))
        for lang, row in CASES
        if (text := row.replace("|", ""))
    ]
    assert [each for each in found if each[2] != expected(each[1])] == []


@pytest.mark.parametrize("lang", ["es", "en", pytest.param("fr", marks=pytest.mark.slow)])
def test_component_agrees(lang: str) -> None:
    """To import spaCy's French takes seconds."""
    found = []
    for row in (row for of, row in CASES if of == lang):
        doc = get_nlp(lang)(row.replace("|", ""))
        found.append((row, [sent.text.strip() for sent in doc.sents]))
        assert doc.has_annotation("SENT_START", require_complete=True)
    assert [each for each in found if each[1] != expected(each[0])] == []


def test_abbreviations_belong_to_a_language() -> None:
    text = "Visto en Dpto. Central."
    assert len(sentence_starts(text, RULES["es"])) == 1
    assert len(sentence_starts(text, RULES["en"])) == 2


def test_next_to_nothing() -> None:
    for text in ("", " ", "\n\n\t", "\x00", ".", "....", "\u0301", "\ufeff"):
        doc = get_nlp("es")(text)
        assert len(list(doc.sents)) <= 1
        assert sum(len(sent) for sent in doc.sents) == len(doc)


def test_random_text_gives_ascending_starts_of_visible_characters() -> None:
    rng = random.Random(0)
    for _ in range(500):
        text = "".join(rng.choice('aBé1.?!…:;,()"»- \n\r\t•') for _ in range(rng.randrange(60)))
        starts = sentence_starts(text, RULES["es"])
        assert starts == sorted(set(starts))
        assert not any(text[start].isspace() for start in starts)
        assert bool(starts) == bool(text.strip())
        assert sum(len(sent) for sent in get_nlp("es")(text).sents) > 0 or not text


def test_start_inside_a_token_is_left_out() -> None:
    nlp = make_nlp("es", clinical=False)
    doc = nlp("Ver www.casa.Es hoy. Fin.")
    assert [sent.text for sent in doc.sents] == ["Ver www.casa.Es hoy.", "Fin."]


def test_replaces_earlier_starts() -> None:
    nlp = get_nlp("es")
    doc = nlp.make_doc("Hola. Adiós.")
    for token in doc:
        token.is_sent_start = True
    assert [sent.text for sent in nlp.get_pipe("bioclin_sentences")(doc).sents] == [
        "Hola.",
        "Adiós.",
    ]


def test_round_trips(tmp_path: Path) -> None:
    text = "Valorada por la Dra. Ruiz.Se cita.\n- Reposo"
    nlp = get_nlp("es")
    sents = [sent.text for sent in nlp(text).sents]
    assert len(sents) == 3
    nlp.to_disk(tmp_path)
    copies = [
        spacy.load(tmp_path),
        make_nlp("es").from_bytes(nlp.to_bytes()),
        pickle.loads(pickle.dumps(nlp)),
    ]
    for copy in copies:
        assert [sent.text for sent in copy(text).sents] == sents
    assert isinstance(
        pickle.loads(pickle.dumps(nlp.get_pipe("bioclin_sentences"))), BioclinSentences
    )


def test_unknown_language_is_an_error_that_names_it() -> None:
    with pytest.raises(BioclinError, match=r"bioclin_sentences.*'de'.*en, es, fr"):
        spacy.blank("de").add_pipe("bioclin_sentences")


UNITS = [".", " ", "\n", "\r", "a", "A", "a.", "a. ", "A. ", "A\n", ". ", ".)", "(", "1. ", "- \n"]
LONG_UNITS = ["A:", '."', "? ", " \n", "A" * 99 + "\n", "Ab cd " * 9 + "\n", "Dr.\n", "a.B", "\0."]


@pytest.mark.slow
def test_time_is_linear() -> None:
    wrong = []
    for i, unit in enumerate(UNITS + LONG_UNITS):
        end = ("", "\nA", "a")[i % 3]
        subject = Subject(
            lambda n, unit=unit, end=end: unit * n + end,
            lambda text: sentence_starts(text, RULES["es"]),
            100,
        )
        _, ratios = time_growth(subject)
        wrong += [(unit, end, ratios)] * (ratios[-1] >= MAX_CLOCK_RATIO)
    assert not wrong


@pytest.mark.corpora
@pytest.mark.parametrize(
    ("part", "n_sentences"),
    [("S0210*", None), pytest.param("*", 14_381 - 900, marks=pytest.mark.slow)],
)
def test_gold_sentences_of_the_training_split(data_dir: Path, part: str, n_sentences: int) -> None:
    found = n_predicted = n_gold = 0
    for path in sorted((data_dir / "spaccc-sentences" / "train_set_docs").glob(f"{part}.txt")):
        sentences = [line.strip() for line in path.read_text("utf-8").splitlines() if line.strip()]
        predicted = cut(" ".join(sentences), sentence_starts(" ".join(sentences), RULES["es"]))
        ends = [
            {len("".join("".join(part[:i]).split())) for i in range(1, len(part))}
            for part in (sentences, predicted)
        ]
        found += len(ends[0] & ends[1])
        n_gold, n_predicted = n_gold + len(ends[0]), n_predicted + len(ends[1])
    assert n_gold == n_sentences if n_sentences else n_gold > 100
    assert 2 * found / (n_gold + n_predicted) >= 0.985
