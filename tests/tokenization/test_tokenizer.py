"""Clinical tokenizer: what a token is, nothing lost, gold spans kept, linear time."""

import pickle
import random
import time
from pathlib import Path

import pytest
import spacy
from spacy.language import Language

from spacy_bioclin.corpora.brat import read_brat
from spacy_bioclin.corpora.docs import spans_of
from spacy_bioclin.corpora.pubtator import read_pubtator
from spacy_bioclin.errors import BioclinError

CONFIG = {"nlp": {"tokenizer": {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}}}
PIPELINES = {lang: spacy.blank(lang, config=CONFIG) for lang in ("es", "en", "fr")}

# text with "|" between the tokens; blanks stand alone
SPANISH = [
    "sexo|:| |H|.",
    "Edad|:|63|años",
    "5|mg|/|8|h",
    "riñón| |izquierdo|.|Se| |realizó",
    "Hb| |13,5| |g|/|dl|,| |leucocitos| |12.400|,| |pH| |7.35",
    "el| |12/03/2010|,| |el| |3-4-2011| |y| |el| |2012-05-06| |a| |las| |12:30|h",
    "la| |Dra.| |Pérez|-|Gómez| |(|p.ej.| |i.v.|)",
    "DR|.|Ruiz",
    "Dña.| |María| |(|p|.| |ej.| |tos|)| |en| |sept|.| |2020",
    "CD|20|+|,| |T|4|,| |Ki|67",
    "IgG| |HbA|1|c| |NaCl| |RNAm| |SatO|2| |McArdle",
    "NºCol|:| |28| |28",
    "Ana| |Ruiz|NºCol",
    "angio|TAC| |anti|DNA| |TAC|abdominal",
    "con|metaplasia| |con| |metaplasia| |un|carcinoma",
    "1|,|25|(|OH|)|2|D|3| |y| |1,25| |mg",
    "C|/| |Mayor|,| |3|,| |2|º|B|.|.",
    "E|-|mail|:| |ana|.|ruiz|@|hospital|.|es",
    "http|:|/|/|www|.|hospital|.|es",
    "----------| |...",
    "dolor| |(|+|)| |10|²",
    "e\u0301xito| |👩\u200d⚕️| |👍🏽",
    "\ufeff|Paciente",
    "»| |Biopsia",
]
ENGLISH = [
    "The| |patient|'s| |BP| |was|n't| |120|/|80",
    "do|n't| |ca|n't",
    "Dr.| |Smith| |et| |al|.| |vs.| |e.g.| |p.o.",
    "5|-|HT|6| |receptor|,| |beta|-|catenin|/|TCF",
    "2|,|3|,|5|-|triphenyltetrazolium",
    "(|+|/|-|)|-|naloxone| |0.5|-|mg",
    "10|(|6|)| |IU|,| |p|<|0.05|,| |25|%",
]
FRENCH = [
    "l'|hôpital| |d’|Évreux|,| |qu'|il| |n'|a| |pas|,| |jusqu’|au| |lundi",
    "L'|examen| |d'|aujourd'hui| |et| |Aujourd’hui",
    "la| |forme| |l'| |humaine|,| |d| |’| |héparine",
    "3|'|-|désoxy| |N|'|-|méthyl| |1|'|an| |patient|'|s",
    "Dr.| |Petit|,| |Pr.| |Durand|,| |M.| |Leroy| |et| |Mme| |Roux",
    "5| |m|.| |et| |2| |mm|.| |Le| |test| |N|0|M|.",
    "env.| |2|cm|,| |cf.| |fig.| |3|,| |p.ex.| |ceci| |(|p|.| |ex.| |cela|)|,| |c.-à-d.| |peu",
    "0,5| |mg|/|kg|/|j|,| |37,2|°|C|,| |120|/|80| |mmHg|,| |CRP| |<| |5",
    "le| |12/03/2021|,| |le| |03.04.2020| |à| |14|h|30| |et| |12:30|;| |le| |1|er| |mai",
    "anti|-|inflammatoires|,| |goutte|-|à|-|goutte|,| |est|-|il|,| |aide|-|soignante",
    "œdème| |cœur| |Œdème| |hyperkaliémie",
    "«| |douleur| |»| |i.v.| |ou| |per| |os",
]


def tokens(nlp: Language, text: str) -> list[str]:
    doc = nlp.make_doc(text)
    assert "".join(token.text_with_ws for token in doc) == text
    return [token.text for token in doc]


def split(table_row: str) -> list[str]:
    """A single blank is no token of its own in spaCy."""
    return [piece for piece in table_row.split("|") if piece != " "]


@pytest.mark.parametrize(
    ("lang", "row"),
    [
        *(("es", row) for row in SPANISH),
        *(("en", row) for row in ENGLISH),
        *(("fr", row) for row in FRENCH),
    ],
)
def test_tokens(lang: str, row: str) -> None:
    assert tokens(PIPELINES[lang], row.replace("|", "")) == split(row)


def test_languages_differ() -> None:
    assert tokens(PIPELINES["es"], "Dpto. X") == ["Dpto.", "X"]
    assert tokens(PIPELINES["en"], "Dpto. X") == ["Dpto", ".", "X"]
    assert tokens(PIPELINES["fr"], "l'air") == ["l'", "air"]
    assert tokens(PIPELINES["es"], "l'air") == ["l", "'", "air"]


def test_unknown_language_is_an_error_that_names_it() -> None:
    with pytest.raises(BioclinError, match=r"'de'.*en, es, fr"):
        spacy.blank("de", config=CONFIG)


@pytest.mark.parametrize("lang", PIPELINES)
@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\n",
        " " * 10_000,
        "línea\r\notra\r\n\r\n\tfin \r",
        "nulo\x00dentro \x00 y \x00",
        "e\u0301\u0327 \u0301suelto \u200d \ufe0f",
        "👩‍👩‍👧‍👦 👍🏽🇪🇸",
        "Zm9v" * 1_250,
        "\u2028a\u2029b\x85c\x1cd",
    ],
)
def test_nothing_is_lost(lang: str, text: str) -> None:
    tokens(PIPELINES[lang], text)


def test_blanks_are_one_token() -> None:
    assert tokens(PIPELINES["es"], " " * 10_000) == [" " * 10_000]


def random_text(rng: random.Random) -> str:
    alphabets = (
        "aAeEñ0123456789.,;:-/()'’ \n",
        "\x00\t\r\n\u0301\u0327\u200d\ufe0f\u2028\ufeff",
        "".join(map(chr, range(0x20, 0x250))),
        "αβγ©²½µ👩🇪日本語ابج",
    )
    return "".join(rng.choice(rng.choice(alphabets)) for _ in range(rng.randrange(80)))


@pytest.mark.parametrize("lang", PIPELINES)
def test_random_text_survives(lang: str) -> None:
    rng = random.Random(0)
    for _ in range(2_000):
        tokens(PIPELINES[lang], random_text(rng))


@pytest.mark.parametrize("lang", PIPELINES)
def test_every_code_point_survives(lang: str) -> None:
    text = "".join(chr(code) for code in range(0x11000) if not 0xD800 <= code < 0xE000)
    tokens(PIPELINES[lang], text)


def test_explain_agrees() -> None:
    text = "La Dra. Ruiz: 5mg/8h (i.v.) desde 12/03/2010."
    nlp = PIPELINES["es"]
    assert [token for _, token in nlp.tokenizer.explain(text)] == tokens(nlp, text)


def test_round_trips(tmp_path: Path) -> None:
    text = "La Dra. Ruiz: 5mg/8h (i.v.) izquierdo.Se, angioTAC."
    nlp = spacy.blank("es", config=CONFIG)
    expected = tokens(nlp, text)
    nlp.to_disk(tmp_path)
    assert tokens(spacy.load(tmp_path), text) == expected
    assert tokens(spacy.blank("es", config=CONFIG).from_bytes(nlp.to_bytes()), text) == expected
    assert tokens(pickle.loads(pickle.dumps(nlp)), text) == expected


def test_two_processes() -> None:
    texts = ["Hb 13,5g/dl.", "Dra. Ruiz, 5mg/8h"] * 3
    docs = list(PIPELINES["es"].pipe(texts, n_process=2, batch_size=2))
    assert [[t.text for t in doc] for doc in docs] == [tokens(PIPELINES["es"], t) for t in texts]


@pytest.mark.parametrize("lang", PIPELINES)
@pytest.mark.parametrize(
    "unit",
    [
        *(".", "a", "A", "1", "a.", "1,", "1,1-", "-", "aB", "Aaaa", "\u0301", "\u200d-", "n't"),
        *("l'", "qu'", "c.-à-"),
    ],
)
def test_time_is_linear(lang: str, unit: str) -> None:
    text = unit * (100_000 // len(unit))
    began = time.process_time()
    tokens(PIPELINES[lang], text)
    assert time.process_time() - began < 2


@pytest.mark.corpora
@pytest.mark.parametrize(
    ("lang", "path"),
    [
        ("es", "meddocan/dev/brat"),
        ("es", "pharmaconer/dev/brat"),
        ("es", "cantemist/dev1/norm"),
        ("en", "bc5cdr/pubtator/CDR_DevelopmentSet.PubTator.txt"),
        ("en", "ncbi-disease/original/NCBIdevelopset_corpus.txt"),
        ("fr", "quaero/corpus/dev/EMEA"),
        ("fr", "quaero/corpus/train/MEDLINE"),
    ],
)
def test_gold_spans_are_kept(lang: str, path: str, data_dir: Path) -> None:
    folder = data_dir / path
    documents = read_pubtator(folder) if folder.is_file() else []
    for ann in sorted(folder.glob("*.ann")):
        documents += read_brat(ann)
    n_spans = n_misaligned = 0
    for document in documents:
        doc = PIPELINES[lang].make_doc(document.text)
        edges = {t.idx for t in doc}, {t.idx + len(t) for t in doc}
        for span in spans_of(document):
            n_spans += 1
            start, end = span.fragments[0][0], span.fragments[-1][1]
            n_misaligned += start not in edges[0] or end not in edges[1]
    assert n_spans > 700
    assert n_misaligned <= 0.0005 * n_spans


@pytest.mark.corpora
def test_slips_of_quaero_are_all_that_is_misaligned(data_dir: Path) -> None:
    slips = {}
    for part in ("train/EMEA", "dev/MEDLINE"):
        slips[part] = 0
        for ann in sorted((data_dir / "quaero/corpus" / part).glob("*.ann")):
            [document] = read_brat(ann)
            doc = PIPELINES["fr"].make_doc(document.text)
            edges = {t.idx for t in doc}, {t.idx + len(t) for t in doc}
            for span in spans_of(document):
                start, end = span.fragments[0][0], span.fragments[-1][1]
                if start in edges[0] and end in edges[1]:
                    continue
                # The span begins with a blank, or ends between two letters.
                around = document.text[end - 1 : end + 1]
                assert document.text[start] == " " or around.isalpha()
                slips[part] += 1
    assert slips == {"train/EMEA": 1, "dev/MEDLINE": 8}
