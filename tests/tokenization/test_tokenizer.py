"""Clinical tokenizer: what a token is, nothing lost, gold spans kept, linear time."""

import pickle
import random
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
import spacy
from spacy.tokenizer import Tokenizer
from spacy.vocab import Vocab

from spacy_bioclin.corpora.brat import read_brat
from spacy_bioclin.corpora.docs import spans_of
from spacy_bioclin.corpora.pubtator import read_pubtator
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.tokenization.tokenizer import make_tokenizer
from spacy_bioclin.types import AnnotatedText
from tests.hostile.growth.measure import MAX_CLOCK_RATIO, Subject, time_growth

CONFIG = {"nlp": {"tokenizer": {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}}}
LANGS = ("es", "en", "fr")

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


TABLE = [
    (lang, row)
    for lang, rows in zip(LANGS, (SPANISH, ENGLISH, FRENCH), strict=True)
    for row in rows
]


@cache
def tokenizer_of(lang: str) -> Tokenizer:
    """The tokenizer without the rest of a pipeline: spaCy's French takes seconds to import."""
    nlp = SimpleNamespace(lang=lang, _meta={}, vocab=Vocab())
    return make_tokenizer()(nlp)  # type: ignore[arg-type]


def tokens(tokenizer: Tokenizer, text: str) -> list[str]:
    doc = tokenizer(text)
    assert "".join(token.text_with_ws for token in doc) == text
    return [token.text for token in doc]


def split(table_row: str) -> list[str]:
    """A single blank is no token of its own in spaCy."""
    return [piece for piece in table_row.split("|") if piece != " "]


def test_tokens() -> None:
    found = [(lang, row, tokens(tokenizer_of(lang), row.replace("|", ""))) for lang, row in TABLE]
    assert [each for each in found if each[2] != split(each[1])] == []


@pytest.mark.parametrize("lang", ["es", "en", pytest.param("fr", marks=pytest.mark.slow)])
def test_tokens_of_a_pipeline(lang: str) -> None:
    nlp = spacy.blank(lang, config=CONFIG)
    found = [(row, tokens(nlp.tokenizer, row.replace("|", ""))) for of, row in TABLE if of == lang]
    assert [each for each in found if each[1] != split(each[0])] == []


def test_languages_differ() -> None:
    es, en, fr = map(tokenizer_of, LANGS)
    assert tokens(es, "Dpto. X") == ["Dpto.", "X"]
    assert tokens(en, "Dpto. X") == ["Dpto", ".", "X"]
    assert tokens(fr, "l'air") == ["l'", "air"]
    assert tokens(es, "l'air") == ["l", "'", "air"]


def test_unknown_language_is_an_error_that_names_it() -> None:
    with pytest.raises(BioclinError, match=r"'de'.*en, es, fr"):
        spacy.blank("de", config=CONFIG)


def test_nothing_is_lost() -> None:
    texts = [
        *("", " ", "\n", "línea\r\notra\r\n\r\n\tfin \r", "nulo\x00dentro \x00 y \x00"),
        *("e\u0301\u0327 \u0301suelto \u200d \ufe0f", "👩‍👩‍👧‍👦 👍🏽🇪🇸"),
        *("Zm9v" * 1_250, "\u2028a\u2029b\x85c\x1cd"),
    ]
    for tokenizer in map(tokenizer_of, LANGS):
        for text in texts:
            tokens(tokenizer, text)
        assert tokens(tokenizer, " " * 10_000) == [" " * 10_000]  # blanks are one token


def random_text(rng: random.Random) -> str:
    alphabets = (
        "aAeEñ0123456789.,;:-/()'’ \n",
        "\x00\t\r\n\u0301\u0327\u200d\ufe0f\u2028\ufeff",
        "".join(map(chr, range(0x20, 0x250))),
        "αβγ©²½µ👩🇪日本語ابج",
    )
    return "".join(rng.choice(rng.choice(alphabets)) for _ in range(rng.randrange(80)))


def test_random_text_survives() -> None:
    rng = random.Random(0)
    for i in range(600):
        tokens(tokenizer_of(LANGS[i % 3]), random_text(rng))


@pytest.mark.parametrize("lang", ["es", *(pytest.param(x, marks=pytest.mark.slow) for x in LANGS)])
def test_every_code_point_survives(lang: str) -> None:
    n = 0x3000 if lang == "es" else 0x11000
    text = "".join(chr(code) for code in range(n) if not 0xD800 <= code < 0xE000)
    tokens(tokenizer_of(lang), text)


def test_explain_agrees() -> None:
    text = "La Dra. Ruiz: 5mg/8h (i.v.) desde 12/03/2010."
    tokenizer = tokenizer_of("es")
    assert [token for _, token in tokenizer.explain(text)] == tokens(tokenizer, text)


def test_round_trips(tmp_path: Path) -> None:
    text = "La Dra. Ruiz: 5mg/8h (i.v.) izquierdo.Se, angioTAC."
    nlp = spacy.blank("es", config=CONFIG)
    nlp.to_disk(tmp_path)
    copies = [
        spacy.load(tmp_path),
        spacy.blank("es", config=CONFIG).from_bytes(nlp.to_bytes()),
        pickle.loads(pickle.dumps(nlp)),
    ]
    for copy in copies:
        assert tokens(copy.tokenizer, text) == tokens(nlp.tokenizer, text)


@pytest.mark.slow
def test_time_is_linear() -> None:
    units = [
        *(".", "a", "A", "1", "a.", "1,", "1,1-", "-", "aB", "Aaaa", "\u0301", "\u200d-", "n't"),
        *("l'", "qu'", "c.-à-"),
    ]
    wrong = []
    for i, unit in enumerate(units):
        lang = LANGS[i % 3] if unit.isascii() and "'" not in unit else "fr"
        subject = Subject(lambda n, unit=unit: unit * n, tokenizer_of(lang), 200)
        _, ratios = time_growth(subject)
        wrong += [(unit, lang, ratios)] * (ratios[-1] >= MAX_CLOCK_RATIO)
    assert not wrong


def read(path: Path) -> list[AnnotatedText]:
    if path.is_file():
        return read_pubtator(path)
    return [document for ann in sorted(path.glob("*.ann")) for document in read_brat(ann)]


def misaligned(lang: str, documents: list[AnnotatedText]) -> tuple[list[tuple[str, int, int]], int]:
    """RETURNS: Text and offsets of each span that does not begin and end at tokens; all spans."""
    found, n_spans = [], 0
    for document in documents:
        doc = tokenizer_of(lang)(document.text)
        starts, ends = {t.idx for t in doc}, {t.idx + len(t) for t in doc}
        for span in spans_of(document):
            n_spans += 1
            start, end = span.fragments[0][0], span.fragments[-1][1]
            if start not in starts or end not in ends:
                found.append((document.text, start, end))
    return found, n_spans


@pytest.mark.corpora
@pytest.mark.parametrize(
    ("lang", "path"),
    [
        ("en", "ncbi-disease/original/NCBIdevelopset_corpus.txt"),
        ("es", "pharmaconer/dev/brat"),
        ("fr", "quaero/corpus/dev/EMEA"),
        *(
            pytest.param(lang, path, marks=pytest.mark.slow)
            for lang, path in (
                ("es", "meddocan/dev/brat"),
                ("es", "cantemist/dev1/norm"),
                ("en", "bc5cdr/pubtator/CDR_DevelopmentSet.PubTator.txt"),
                ("fr", "quaero/corpus/train/MEDLINE"),
            )
        ),
    ],
)
def test_gold_spans_are_kept(lang: str, path: str, data_dir: Path) -> None:
    found, n_spans = misaligned(lang, read(data_dir / path))
    assert n_spans > 700
    assert len(found) <= 0.0005 * n_spans


@pytest.mark.corpora
@pytest.mark.slow
def test_slips_of_quaero_are_all_that_is_misaligned(data_dir: Path) -> None:
    for part, n_slips in (("train/EMEA", 1), ("dev/MEDLINE", 8)):
        slips, _ = misaligned("fr", read(data_dir / "quaero/corpus" / part))
        assert len(slips) == n_slips
        # The span begins with a blank, or ends between two letters.
        assert all(text[a] == " " or text[b - 1 : b + 1].isalpha() for text, a, b in slips)
