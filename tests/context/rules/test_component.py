"""The component: groups, attributes, rules of one's own, errors, and where results must survive."""

import pickle
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span

from spacy_bioclin.context.rules import scopes
from spacy_bioclin.context.rules.attributes import Modifier
from spacy_bioclin.context.rules.phrases import cut_words
from spacy_bioclin.context.rules.rule_data import make_rules
from spacy_bioclin.errors import BioclinError

from .cases import char_span, make_nlp

TEXT = "Niega fiebre y posible neumonía. Madre con asma."
# (start, end, kind) of what these texts hold.
EXPECTED = {"fiebre": ["negated"], "neumonía": ["uncertain"], "asma": ["family"]}


def kinds_of(doc: Doc, word: str) -> list[str]:
    start = doc.text.index(word)
    return [m.kind for m in char_span(doc, start, start + len(word))._.context]


def found(doc: Doc) -> dict[str, list[str]]:
    return {word: kinds_of(doc, word) for word in EXPECTED}


def make(lang: str = "es", **config: Any) -> Language:
    nlp = spacy.blank(lang)
    nlp.add_pipe("bioclin_sentences")
    nlp.add_pipe("bioclin_context", config=config)
    return nlp


def test_cues_and_scopes_are_in_a_group() -> None:
    doc = make_nlp("es")("Sin fiebre ni tos.")
    group = [(span.text, span.label_, span.id_) for span in doc.spans["context"]]
    assert group == [
        ("Sin", "negated_cue", "sin#1"),
        ("fiebre ni tos", "negated_scope", "sin#1"),
    ]


def test_two_rules_that_say_the_same_make_one_cue() -> None:
    texts = {
        "Fever (-)": "en",
        "previous asthma": "en",
        "Asthma (-).": "en",
        "Descartado TEP": "es",
    }
    for text, lang in texts.items():
        doc = make_nlp(lang)(text)
        labels = [span.label_ for span in doc.spans["context"]]
        assert len(labels) == len(set(labels)) == 2, text


def test_a_note_without_words_has_no_context() -> None:
    for text in ("", " ", "\n", " \r\n\t", "."):
        assert list(make_nlp("es")(text).spans["context"]) == []


def test_an_attribute_explains_itself() -> None:
    doc = make_nlp("es")("Sin fiebre ni tos.")
    [modifier] = doc[1:2]._.context
    assert isinstance(modifier, Modifier)
    assert (modifier.kind, modifier.rule, modifier.source) == ("negated", "sin", "rules")
    assert (modifier.cue.text, modifier.scope.text) == ("Sin", "fiebre ni tos")


def test_entities_and_groups_have_attributes_whenever_they_are_made() -> None:
    doc = make_nlp("es")(TEXT)
    assert found(doc) == EXPECTED
    doc.set_ents([Span(doc, 1, 2, label="X")])
    doc.spans["any"] = [Span(doc, 1, 2, label="Y")]
    assert doc.ents[0]._.negated and doc.spans["any"][0]._.negated
    assert not doc.ents[0]._.uncertain


def test_without_the_component_all_is_false() -> None:
    make_nlp("es")
    doc = spacy.blank("es")("Sin fiebre.")
    assert not doc[1:2]._.negated and doc[1:2]._.context == []


def test_a_changed_group_is_read_again() -> None:
    doc = make_nlp("es")("Sin fiebre.")
    assert doc[1:2]._.negated
    doc.spans["context"] = []
    assert not doc[1:2]._.negated


def test_what_survives() -> None:
    doc, vocab = make_nlp("es")(TEXT), spacy.blank("xx").vocab
    for store_user_data in (True, False):
        data = DocBin(docs=[doc], store_user_data=store_user_data).to_bytes()
        [stored] = DocBin().from_bytes(data).get_docs(vocab)
        assert found(stored) == EXPECTED
        assert stored.spans["context"][0].id_ == "niega#1"
    assert found(Doc(vocab).from_bytes(doc.to_bytes())) == EXPECTED
    # As a pipeline goes to another process.
    assert found(pickle.loads(pickle.dumps(make_nlp("es")))(TEXT)) == EXPECTED


def test_deidentified_doc() -> None:
    nlp = make()
    nlp.add_pipe("bioclin_phi_rules")
    nlp.add_pipe("bioclin_deid")
    doc = nlp(f"Tel. 612 345 678. {TEXT} Tel. 612 345 678.")
    safe = doc._.deid.doc
    assert safe.text != doc.text
    assert found(safe) == EXPECTED
    assert [m.rule for m in char_span(safe, *_place(safe, "fiebre"))._.context] == ["niega"]


def _place(doc: Doc, word: str) -> tuple[int, int]:
    start = doc.text.index(word)
    return start, start + len(word)


def test_needs_sentences() -> None:
    nlp = make_nlp("es")
    with nlp.select_pipes(disable="bioclin_sentences"):
        with pytest.raises(BioclinError, match="bioclin_sentences"):
            nlp("Sin fiebre.")
        assert nlp("").text == ""


OWN = {
    "rules": [
        {"kind": "negated", "direction": "forward", "phrases": ["cero"], "name": "zero"},
        {"pseudo": True, "phrases": ["sin"]},
    ],
    "terminators": [{"phrases": ["entonces"]}],
}


def check_own(nlp: Language) -> None:
    doc = nlp("Cero fiebre entonces tos sin disnea.")
    spans = [(span.label_, span.text, span.id_) for span in doc.spans["context"]]
    assert spans == [("negated_cue", "Cero", "zero#1"), ("negated_scope", "fiebre", "zero#1")]


def test_own_rules_are_saved_with_the_pipeline(tmp_path: Path) -> None:
    file = tmp_path / "own.yml"
    file.write_text(
        "rules:\n- {kind: negated, direction: forward, phrases: [cero], name: zero}\n"
        "- {pseudo: true, phrases: [sin]}\nterminators:\n- {phrases: [entonces]}\n",
        "utf-8",
    )
    nlp = make(rules=str(file))
    check_own(nlp)
    nlp.to_disk(tmp_path / "pipeline")
    copy = make(rules=OWN)  # as a dict
    check_own(copy)
    copy = make()
    copy.from_bytes(nlp.to_bytes())
    check_own(copy)
    file.unlink()
    check_own(spacy.load(tmp_path / "pipeline"))


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    nlp = make(rules=str(tmp_path / "no.yml"))
    with pytest.raises(BioclinError, match=r"no\.yml"):
        nlp("Sin fiebre.")


def test_bad_settings() -> None:
    settings: list[tuple[dict[str, Any], list[str]]] = [
        ({"rules": {"rules": [{"phrases": ["x"], "kind": "negated"}]}}, ["direction", "forward"]),
        (
            {"rules": {"rules": [{"phrases": ["x"], "kind": "negado", "direction": "forward"}]}},
            ["rules[0].kind", "'negado'", "did you mean negated", "hypothetical"],
        ),
        (
            {"rules": {"rules": [{"phrases": ["x"], "kind": "family", "direction": "left"}]}},
            ["rules[0].direction", "'left'", "backward"],
        ),
        (
            {"rules": {"rules": [{"regex": "(", "kind": "family", "direction": "forward"}]}},
            ["rules[0].regex", "'('", "not a regular expression"],
        ),
        ({"rules": {"rules": [{"kind": "family", "direction": "self"}]}}, ["phrases or regex"]),
        ({"rules": {"cues": []}}, ["unknown key 'cues'", "terminators"]),
        ({"rules": {"terminators": [{"phrases": ["x"], "kinds": ["no"]}]}}, ["'no'", "negated"]),
        (
            {"rules": {"rules": [{"phrases": ["{a"], "kind": "family", "direction": "self"}]}},
            ["'{a'", "brace"],
        ),
        ({"langs": ["it"]}, ["langs", "'it'", "es, en"]),
        ({"sections": {"x": "negativ"}}, ["sections.x", "'negativ'", "did you mean negated"]),
        ({"source": "trainde"}, ["source", "'trainde'", "did you mean trained"]),
    ]
    for config, messages in settings:
        with pytest.raises(BioclinError) as error:
            make(**config)
        for message in (*messages, "bioclin_context"):
            assert message in str(error.value)


def test_no_rules_for_the_language() -> None:
    nlp = spacy.blank("it")
    with pytest.raises(BioclinError, match="langs"):
        nlp.add_pipe("bioclin_context")


def test_sections_set_defaults() -> None:
    nlp = spacy.blank("es")
    for name in ("bioclin_sentences", "bioclin_sections", "bioclin_context"):
        nlp.add_pipe(name)
    text = (
        "AF: cardiopatía en varios. Acude por tos.\nAP: asma.\nIQ: hernia, sin fiebre.\nEF: soplo."
    )
    doc = nlp(text)
    found = {
        word: {(m.kind, m.rule, m.cue.text) for m in char_span(doc, *_place(doc, word))._.context}
        for word in ("cardiopatía", "tos", "asma", "hernia", "fiebre", "soplo")
    }
    modifiers = char_span(doc, *_place(doc, "cardiopatía"))._.context
    [family] = [modifier for modifier in modifiers if modifier.rule == "section"]
    assert family.scope.text.startswith("cardiopatía en varios.")
    assert ("family", "section", "AF") in found["cardiopatía"]
    assert ("historical", "section", "IQ") in found["hernia"]
    assert {kind for kind, _, _ in found["fiebre"]} == {"negated"}
    assert found["tos"] == found["asma"] == found["soplo"] == set()


def test_work_grows_with_the_text_only(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = make_rules(["es"])
    monkeypatch.setattr(scopes, "cut_words", _counted)
    for unit in UNITS:
        work = []
        for size in (1_000, 4_000):
            CountedWords.reads = 0
            scopes.find_context(unit * (size // len(unit)), [], rules)
            work.append(CountedWords.reads / size)
        assert work[1] <= 1.2 * work[0] + 0.1, unit


UNITS = ["no ", "sin sin ", "no, ", ", ", "no posible ", "fiebre negativo ", "si ", "a-", "\n- no"]


class CountedWords(list[str]):
    """Words that count how often one is read."""

    reads = 0

    def __getitem__(self, at: Any) -> Any:
        word = super().__getitem__(at)
        CountedWords.reads += len(word) if isinstance(at, slice) else 1
        return word


def _counted(text: str, borders: Any) -> Any:
    words = cut_words(text, borders)
    return words._replace(words=CountedWords(words.words))
