"""Docs on disk and the Examples made of them."""

import pickle
from collections import Counter
from pathlib import Path

import pytest
import spacy
from catalogue import Registry
from spacy.attrs import ENT_IOB
from spacy.language import Language
from spacy.tokens import Doc, Span
from srsly.msgpack import msgpack_decoders, msgpack_encoders
from thinc.api import Config

from spacy_bioclin.annotations.pairs import get_boundary, make_pair, split_pair
from spacy_bioclin.corpora.docbin import read_docs, write_docs
from spacy_bioclin.corpora.docs import make_gold_doc
from spacy_bioclin.corpora.readers import cut_doc, cut_points, make_corpus
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.spans import annotated_labels
from spacy_bioclin.types import GIVEN_KEY, GOLD_KEY, AnnotatedText, SpanAnnotation


@pytest.fixture(scope="module")
def nlp() -> Language:
    return spacy.blank("es")


def make_doc(nlp: Language, text: str, *surfaces: str, layer: str = "ents") -> Doc:
    spans = (
        SpanAnnotation(f"T{i}", "X", ((text.index(s), text.index(s) + len(s)),), s, (f"K{i}",))
        for i, s in enumerate(surfaces, start=1)
    )
    return make_gold_doc(nlp, AnnotatedText("note", text, tuple(spans)), layers={"*": layer})


def test_cut_points() -> None:
    rows: list[tuple[int, list[int], list[int], int, list[int]]] = [
        (5, [1, 2, 3, 4], [2], 5, []),
        (6, [1, 2, 3, 4, 5], [2, 4], 5, [4]),  # the last sentence end within reach
        (10, list(range(1, 10)), [1, 9], 4, [1, 5, 9]),  # a long sentence is cut at tokens
        (10, [1, 2, 8, 9], [2], 4, [2, 8]),  # a span longer than a part stays whole
        (6, [], [], 4, []),
        (9, list(range(1, 9)), [4, 8], 4, [4, 8]),
    ]
    wrong = [row for row in rows if cut_points(*row[:-1]) != row[-1]]
    assert not wrong


@pytest.mark.parametrize(
    "layer, max_tokens, with_sentences",
    [
        ("ents", 1, True),
        ("phi", 2, False),
        ("ents", 3, False),
        ("phi", 4, True),
        ("ents", 7, True),
        ("phi", 100, False),
    ],
)
def test_parts_keep_every_character_span_and_offset(
    nlp: Language, layer: str, max_tokens: int, with_sentences: bool
) -> None:
    text = "Uno dos tres.\nCuatro, cinco  seis\nSiete ocho nueve diez. Once"
    doc = make_doc(nlp, text, "dos", "cinco  seis", "ocho nueve diez", "nueve", layer=layer)
    doc.user_data[GOLD_KEY]["annotated"] = {layer: ["X", "Y"]}
    if with_sentences:
        for token in doc:
            token.is_sent_start = token.i == 0 or token.nbor(-1).text in ".\n"
    parts = cut_doc(doc, max_tokens)
    assert "".join(part.text for part in parts) == text
    longest = max(len(span) for span in doc.spans[layer])
    assert max(map(len, parts)) <= max(max_tokens, longest)
    for attribute in ("orth_", "ent_iob", "ent_type_", "ent_kb_id_", "is_sent_start"):
        expected = [getattr(token, attribute) for token in doc]
        found = [getattr(token, attribute) for part in parts for token in part]
        if attribute == "is_sent_start" and with_sentences:  # a part starts a sentence
            first = [token.i == 0 for part in parts for token in part]
            expected = [a or b for a, b in zip(expected, first, strict=True)]
        assert found == expected, attribute
    spans = [span for part in parts for span in part.spans[layer]]
    assert [(s.text, s.label_, s.kb_id_, s.id_) for s in spans] == [
        (s.text, s.label_, s.kb_id_, s.id_) for s in doc.spans[layer]
    ]
    surfaces = [
        part.text[start:end]
        for part in parts
        for start, end, *_ in part.user_data[GOLD_KEY]["layers"][layer]
    ]
    assert surfaces == ["dos", "cinco  seis", "ocho nueve diez", "nueve"]
    spans_key = None if layer == "ents" else layer
    assert all(annotated_labels(part, spans_key) == {"X", "Y"} for part in parts)


def test_no_part_ends_within_the_offsets_of_a_span(nlp: Language) -> None:
    doc = make_doc(nlp, "Uno\n dos", "Uno\n ")  # its blanks are not in doc.ents
    assert [ent.text for ent in doc.ents] == ["Uno"]
    parts = cut_doc(doc, 1)
    assert [part.text for part in parts] == ["Uno\n ", "dos"]
    offsets = [part.user_data[GOLD_KEY]["layers"]["ents"] for part in parts]
    assert offsets == [[[0, 5, "X", "K1"]], []]


def test_parts_end_at_sentence_ends(nlp: Language) -> None:
    doc = make_doc(nlp, "Uno dos.\nTres cuatro.\nCinco seis siete ocho.\n")
    assert [part.text for part in cut_doc(doc, 8)] == [
        "Uno dos.\nTres cuatro.\n", "Cinco seis siete ocho.\n",
    ]  # fmt: skip


def test_examples(nlp: Language, tmp_path: Path) -> None:
    doc = make_doc(nlp, "Tos. Fiebre alta. Disnea", "Fiebre alta")
    for token in doc:
        token.is_sent_start = token.i in (0, 2, 5)
    write_docs([doc, make_doc(nlp, "")], tmp_path / "train.spacy")
    for max_tokens, texts in ((0, ["Tos. Fiebre alta. Disnea", ""]),
                              (5, ["Tos. Fiebre alta. ", "Disnea", ""])):  # fmt: skip
        examples = list(make_corpus(tmp_path / "train.spacy", max_tokens=max_tokens)(nlp))
        assert [eg.reference.text for eg in examples] == texts
        assert [eg.predicted.text for eg in examples] == texts
        assert not any(eg.predicted.ents or eg.predicted.spans for eg in examples)
        assert [sent.text for sent in examples[0].predicted.sents][:2] == ["Tos.", "Fiebre alta."]


def test_no_sentence_starts_are_copied_between_different_tokens(tmp_path: Path) -> None:
    nlp = spacy.blank("es")
    doc = Doc(nlp.vocab, words=["Tos.", "Fiebre"], sent_starts=[True, True])
    write_docs([doc], tmp_path / "train.spacy")
    (example,) = make_corpus(tmp_path / "train.spacy")(nlp)
    assert len(example.predicted) == 3 and not example.predicted.has_annotation("SENT_START")


def test_missing_ents_survive_disk_and_cutting(nlp: Language, tmp_path: Path) -> None:
    docs = [make_doc(nlp, "Uno dos tres cuatro", "dos", layer=layer) for layer in ("ents", "phi")]
    write_docs(docs, tmp_path / "x.spacy")
    ents, phi = (cut_doc(doc, 2) for doc in read_docs(tmp_path / "x.spacy", nlp.vocab))
    assert [part.to_array([ENT_IOB]).tolist() for part in ents] == [[2, 3], [2, 2]]
    assert [part.to_array([ENT_IOB]).tolist() for part in phi] == [[0, 0], [0, 0]]
    assert [list(part.spans) for part in ents + phi] == [["ents"], ["ents"], ["phi"], ["phi"]]


def test_shards(nlp: Language, tmp_path: Path) -> None:
    out = tmp_path / "corpus" / "train.spacy"
    texts = [f"nota {i}" for i in range(5)]
    for shard_tokens, names in ((4, ["00000.spacy", "00001.spacy", "00002.spacy"]), (99, None)):
        docs = (make_doc(nlp, text) for text in texts)
        assert write_docs(docs, out, shard_tokens=shard_tokens) == 5
        assert (sorted(p.name for p in out.iterdir()) if out.is_dir() else None) == names
        assert [doc.text for doc in read_docs(out, nlp.vocab)] == texts
        assert [eg.text for eg in spacy.training.Corpus(out)(nlp)] == texts
        assert [p.name for p in out.parent.iterdir()] == ["train.spacy"]


def test_coders_of_srsly_are_found_once_for_all_docs(
    nlp: Language, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each search takes longer than to read a sentence; afterwards srsly is as it was.
    n_searches: Counter[str] = Counter()
    get_all = Registry.get_all

    def count(registry: Registry) -> dict[str, object]:
        n_searches[registry.namespace[-1]] += 1
        return get_all(registry)

    monkeypatch.setattr(Registry, "get_all", count)
    docs = [make_doc(nlp, "con fiebre", "fiebre") for _ in range(9)]
    write_docs(docs, tmp_path / "x.spacy")
    reader = read_docs(tmp_path / "x.spacy", nlp.vocab)
    first = next(reader)  # and the rest is never read
    assert (first.text, str(first.ents)) == ("con fiebre", "(fiebre,)")
    reader.close()
    assert n_searches["msgpack_encoders"] == n_searches["msgpack_decoders"] <= 3
    assert not any("get_all" in vars(each) for each in (msgpack_encoders, msgpack_decoders))


def test_an_interrupted_conversion_leaves_the_old_file(nlp: Language, tmp_path: Path) -> None:
    out = tmp_path / "train.spacy"
    write_docs([make_doc(nlp, "antes")], out)

    def fails() -> "list[Doc]":
        yield make_doc(nlp, "después")
        raise BioclinError("bad file")

    with pytest.raises(BioclinError):
        write_docs(fails(), out)
    assert [doc.text for doc in read_docs(out, nlp.vocab)] == ["antes"]
    assert list(tmp_path.iterdir()) == [out]


def test_errors_name_the_path_and_the_remedy(nlp: Language, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.spacy").write_text("no DocBin")
    write_docs([], tmp_path / "none.spacy")
    for name in ("empty", "bad.spacy", "none.spacy", "missing.spacy"):
        with pytest.raises(BioclinError, match=rf"{name}.*bioclin convert"):
            list(make_corpus(tmp_path / name)(nlp))
    with pytest.raises(BioclinError, match="no path is set"):
        make_corpus(None)(nlp)
    with pytest.raises(BioclinError, match="max_tokens is -1"):
        make_corpus(tmp_path, max_tokens=-1)
    with pytest.raises(BioclinError, match=r"has to end in \.spacy"):
        write_docs([], tmp_path / "train.bin")


def test_the_reader_in_a_config(nlp: Language, tmp_path: Path) -> None:
    write_docs([make_doc(nlp, "Uno dos tres cuatro")], tmp_path / "x.spacy")
    config = Config().from_str(
        f"""
        [corpus]
        @readers = "spacy-bioclin.Corpus.v1"
        path = "{tmp_path / "x.spacy"}"
        max_tokens = 2
        """
    )
    reader = spacy.registry.resolve(config)["corpus"]
    for _ in range(2):  # an epoch, and another
        assert [eg.text for eg in reader(nlp)] == ["Uno dos ", "tres cuatro"]
    assert len(list(pickle.loads(pickle.dumps(reader))(nlp))) == 2


def test_spans_are_not_shared_with_the_whole_doc(nlp: Language) -> None:
    doc = make_doc(nlp, "Uno dos tres cuatro", "dos")
    part = cut_doc(doc, 2)[0]
    part.spans["ents"] = [Span(part, 0, 1, label="Y")]
    assert [span.text for span in doc.spans["ents"]] == ["dos"]


@pytest.mark.parametrize("max_tokens", [0, 2])
def test_given_spans(nlp: Language, tmp_path: Path, max_tokens: int) -> None:
    doc = make_doc(nlp, "Tos y fiebre alta", "Tos", "fiebre", "fiebre alta")
    phi = make_doc(nlp, "Ana Gil", "Ana", layer="phi")
    write_docs([doc, phi], tmp_path / "x.spacy")
    read = make_corpus(tmp_path / "x.spacy", max_tokens=max_tokens, use_gold_ents=True)
    *examples, last = read(nlp)
    predicted = [eg.predicted for eg in examples]
    assert [ent.text for doc in predicted for ent in doc.ents] == ["Tos", "fiebre alta"]
    given = [span for doc in predicted for span in doc.spans["ents"]]
    assert [(span.text, span.kb_id_, span.id_) for span in given] == [
        ("Tos", "K1", "T1"), ("fiebre", "K2", "T2"), ("fiebre alta", "K3", "T3"),
    ]  # fmt: skip
    assert all(doc.user_data == {GIVEN_KEY: True} for doc in predicted)
    assert [span.text for span in last.predicted.spans["phi"]] == ["Ana"]
    assert set(last.predicted.to_array([ENT_IOB])) == {0}  # not annotated, not without entities
    assert GIVEN_KEY not in last.reference.user_data
    for eg in make_corpus(tmp_path / "x.spacy", max_tokens=max_tokens)(nlp):
        assert not eg.predicted.user_data and not eg.predicted.spans


def test_given_spans_of_other_tokens(tmp_path: Path) -> None:
    nlp = spacy.blank("es")
    doc = Doc(nlp.vocab, words=["Tos", "/", "fiebre"], spaces=[False, False, False])
    doc.ents = [Span(doc, 0, 1, "X", kb_id="K1"), Span(doc, 2, 3, "X", kb_id="K2")]
    doc.spans["sc"] = [Span(doc, 2, 3, "Y", span_id="T2")]
    nlp.tokenizer = lambda text: Doc(nlp.vocab, words=[text])
    write_docs([doc], tmp_path / "x.spacy")
    (eg,) = make_corpus(tmp_path / "x.spacy", use_gold_ents=True)(nlp)
    assert [(ent.text, ent.kb_id_) for ent in eg.predicted.ents] == [("Tos/fiebre", "K1")]
    assert [(s.text, s.label_, s.id_) for s in eg.predicted.spans["sc"]] == [
        ("Tos/fiebre", "Y", "T2")
    ]


@pytest.mark.parametrize("max_tokens, first", [(0, "Uno dos. "), (2, "Uno dos."), (2, "Uno dos. ")])
def test_pairs(nlp: Language, tmp_path: Path, max_tokens: int, first: str) -> None:
    pair = make_pair(nlp, first, "Tres cuatro cinco")
    pair.cats = {"yes": 1.0, "no": 0.0}
    write_docs([pair], tmp_path / "x.spacy")
    (eg,) = make_corpus(tmp_path / "x.spacy", max_tokens=max_tokens)(nlp)
    assert eg.reference.text == eg.predicted.text == f"{first}\nTres cuatro cinco"
    assert get_boundary(eg.predicted) == get_boundary(eg.reference) == 3
    assert [part.text_with_ws for part in split_pair(eg.predicted)] == [first, "Tres cuatro cinco"]
    assert not eg.predicted.cats and eg.reference.cats == {"yes": 1.0, "no": 0.0}


def test_a_doc_with_cats_is_left_whole(nlp: Language, tmp_path: Path) -> None:
    labelled, other = make_doc(nlp, "Uno dos tres cuatro"), make_doc(nlp, "Uno dos tres cuatro")
    labelled.cats = {"yes": 1.0}
    write_docs([labelled, other], tmp_path / "x.spacy")
    examples = list(make_corpus(tmp_path / "x.spacy", max_tokens=2)(nlp))
    assert [eg.reference.text for eg in examples] == [
        "Uno dos tres cuatro", "Uno dos ", "tres cuatro",
    ]  # fmt: skip
    assert [eg.reference.cats for eg in examples] == [{"yes": 1.0}, {}, {}]
    assert not any(eg.predicted.cats for eg in examples)
