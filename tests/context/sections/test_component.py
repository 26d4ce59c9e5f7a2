"""`bioclin_sections` in a pipeline."""

import pickle
from functools import cache
from pathlib import Path

import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.language import Language
from spacy.tokens import Doc, DocBin

from spacy_bioclin.context.sections.result import Section
from spacy_bioclin.errors import BioclinError
from tests.context.sections.test_finder import PIECES

NOTE = (
    "Paciente de 70 años.\n"
    "1.- AP: HTA, DM.\n"
    "2.- AF: madre con cáncer.\n"
    "EF:\n- TA 120/80\n\n"
    "JC: neumonía\n"
)


def make(lang: str = "es", **config: object) -> Language:
    nlp = spacy.blank(lang)
    nlp.add_pipe("bioclin_sections", config=config)
    return nlp


def view(doc: Doc) -> list[tuple[str, str | None, str, str]]:
    """Show sections as text."""
    return [
        (section.category, section.loinc, str(section.title), section.body.text)
        for section in doc._.sections
    ]


EXPECTED = [
    ("past_history", "11348-0", "AP", "HTA, DM."),
    ("family_history", "10157-6", "AF", "madre con cáncer."),
    ("physical_exam", "29545-1", "EF", "- TA 120/80"),
    ("diagnosis", None, "JC", "neumonía"),
]


def test_groups_and_attributes() -> None:
    doc = make()(NOTE)
    assert view(doc) == EXPECTED
    assert [span.text for span in doc.spans["section_titles"]] == ["AP", "AF", "EF", "JC"]
    assert [span.label_ for span in doc.spans["sections"]] == [row[0] for row in EXPECTED]
    assert doc.spans["sections"][0].kb_id_ == "11348-0"
    assert doc.spans["sections"][0].text == "AP: HTA, DM."
    start = NOTE.index("cáncer")
    assert doc.char_span(start, start + 6)._.section == "family_history"
    assert doc[:2]._.section is None
    assert doc.spans["section_titles"][3]._.section == "diagnosis"
    assert doc.text == NOTE
    assert isinstance(doc._.sections[0], Section)


def test_a_note_without_headings() -> None:
    doc = make()("Sin nada")
    assert doc._.sections == [] and "sections" in doc.spans and doc[:1]._.section is None
    assert spacy.blank("es")(NOTE)._.sections == []
    assert make()("")._.sections == []


def test_other_span_keys() -> None:
    doc = make(spans_key="partes")(NOTE)
    assert set(doc.spans) == {"partes", "parte_titles"}
    assert view(doc) == EXPECTED and doc[-2:]._.section == "diagnosis"


def test_sections_survive_serialization() -> None:
    nlp = make()
    doc = nlp(NOTE)
    stored = DocBin(docs=[doc]).to_bytes()
    [loaded] = DocBin().from_bytes(stored).get_docs(spacy.blank("es").vocab)
    assert view(loaded) == EXPECTED
    assert view(Doc(nlp.vocab).from_bytes(doc.to_bytes())) == EXPECTED
    assert view(pickle.loads(pickle.dumps(nlp))(NOTE)) == EXPECTED  # as in another process


def test_a_moved_doc_has_sections() -> None:
    nlp = make()
    nlp.add_pipe("bioclin_phi_rules")
    nlp.add_pipe("bioclin_deid")
    doc = nlp("Remitida el 12/03/2014.\nAP: HTA desde el 03/05/2009.\nEF: normal")
    safe = doc._.deid.doc
    assert safe.text != doc.text
    assert [(s.category, str(s.title)) for s in safe._.sections] == [
        ("past_history", "AP"),
        ("physical_exam", "EF"),
    ]
    assert safe._.sections[1].body.text == "normal"
    assert safe[-1:]._.section == "physical_exam"


def test_without_the_group_of_titles() -> None:
    doc = make()(NOTE)
    doc.spans["section_titles"] = []
    assert doc._.sections[0].title is None
    assert doc._.sections[0].body.text == "AP: HTA, DM."


def test_headings_inside_tokens() -> None:
    nlp = make()
    for text, wanted in {
        "EF:normal\nJC:gripe": [("EF:normal", ""), ("JC:gripe", "")],
        "AP:HTA.EF:normal": [("AP:HTA.EF:normal", "")],
        "bien.EF: normal": [("bien.EF", "normal")],
        "AP: HTA.EF: normal": [("AP", ""), ("HTA.EF", "normal")],
    }.items():
        words = text.split(" ")
        doc = Doc(nlp.vocab, words=words, spaces=[True] * (len(words) - 1) + [False])
        if "\n" in text:
            lines = text.split("\n")
            doc = Doc(nlp.vocab, words=[lines[0], "\n", lines[1]], spaces=[False] * 3)
        doc = nlp.get_pipe("bioclin_sections")(doc)
        assert [(str(s.title).rstrip(":"), s.body.text) for s in doc._.sections] == wanted


def test_crlf_and_combining_accents() -> None:
    text = "Exploracio\u0301n fi\u0301sica:\r\nnormal\r\n\r\nEvolucio\u0301n: buena\r\n"
    doc = make()(text)
    assert doc.text == text
    assert [(s.category, s.body.text.strip()) for s in doc._.sections] == [
        ("physical_exam", "normal"),
        ("evolution", "buena"),
    ]


def test_every_span_is_whole_tokens_in_order() -> None:
    doc = make()(NOTE * 3)
    ends = [0]
    for section, title in zip(doc.spans["sections"], doc.spans["section_titles"], strict=True):
        assert section.start >= ends[-1] and section.start == title.start
        assert title.end <= section.end
        ends.append(section.end)


@cache
def _shared() -> Language:
    return make()


@given(st.lists(st.sampled_from(PIECES), max_size=40), st.sampled_from(["", " "]))
@settings(max_examples=30)
def test_spans_do_not_overlap_in_any_text(pieces: list[str], between: str) -> None:
    doc = _shared()(between.join(pieces))
    end = 0
    for section in doc._.sections:
        assert section.title is not None and end <= section.title.start < section.title.end
        assert section.title.end <= section.body.start <= section.body.end
        assert section.title._.section == section.category
        end = section.body.end


RULES = """
past_history: [APP crónicos, Antecedentes de salud]
dolor:
  new: true
  loinc: 38212-7
  titles: [Unidad del dolor]
"""


def test_rules_of_a_file_are_saved(tmp_path: Path) -> None:
    file = tmp_path / "titles.yml"
    file.write_text(RULES, "utf-8")
    nlp = make(rules=str(file), titles={"dolor": {"new": True, "titles": ["EVA"]}})
    text = "Unidad del dolor: peor\nAntecedentes de salud: EPOC\nEVA: 7"
    wanted = [
        ("dolor", "38212-7", "Unidad del dolor", "peor"),
        ("past_history", "11348-0", "Antecedentes de salud", "EPOC"),
        ("dolor", "38212-7", "EVA", "7"),
    ]
    assert view(nlp(text)) == wanted
    nlp.to_disk(tmp_path / "nlp")
    data = nlp.to_bytes()
    file.unlink()
    assert view(spacy.load(tmp_path / "nlp")(text)) == wanted
    other = spacy.blank("es")
    other.add_pipe("bioclin_sections")
    other.from_bytes(data)
    assert view(other(text)) == wanted


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    nlp = make(rules=str(tmp_path / "none.yml"))
    for use in (lambda: nlp("AP: HTA"), lambda: nlp.to_disk(tmp_path / "nlp"), nlp.to_bytes):
        with pytest.raises(BioclinError, match=r"rules = .*none\.yml.*no such file"):
            use()


def test_mistakes_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "titles.yml"
    for content, message in (
        ("past_histroy: [AP]", r"FILE: unknown category 'past_histroy'; did you mean past_history"),
        ("past_history: AP", r"FILE: past_history: titles = 'AP': want a valid list"),
        ("past_history: [3]", r"FILE: past_history: titles\[0\] = 3: "),
        ("past_history: ['...']", r"titles\[0\]\.title = '\.\.\.': a title needs a letter"),
        ("past_history: {title: [AP]}", r"unknown key 'title'; did you mean titles"),
        ("past_history: {loinc: abc}", r"loinc = 'abc': want a LOINC code"),
        (
            "past_history: [{title: AP, unless_followed_by: '(a'}]",
            r"past_history: titles\[0\]\.unless_followed_by = '\(a': not a regular expression",
        ),
        ("- past_history", r"FILE: want a table of categories"),
        ("3: [AP]", r"FILE: category 3: want a text"),
        ("past_history: [AP", r"FILE: not YAML"),
        ("x: {new: true, titles: [Uno, Dos]}\nx: [Tres]", r"given twice"),
    ):
        file.write_text(content, "utf-8")
        with pytest.raises(BioclinError, match=message.replace("FILE", str(file))):
            make(rules=str(file))


def test_mistakes_in_the_config() -> None:
    with pytest.raises(BioclinError, match=r"\[components.bioclin_sections\] titles: unknown cat"):
        make(titles={"plans": ["Plan"]})
    with pytest.raises(BioclinError, match=r"langs = null: .*language 'it'; set langs to some of"):
        make("it")
    with pytest.raises(BioclinError, match=r"no section titles for language 'it'"):
        make(langs=["es", "it"])
    assert view(make("it", langs=["en"])("Plan: rest"))[0][0] == "plan"


def test_damaged_state(tmp_path: Path) -> None:
    nlp = make()
    nlp.to_disk(tmp_path / "nlp")
    file = tmp_path / "nlp" / "bioclin_sections" / "titles.json"
    file.write_text('{"nothing": ["AP"]}', "utf-8")
    with pytest.raises(BioclinError, match=r"titles\.json: unknown category 'nothing'"):
        spacy.load(tmp_path / "nlp")
