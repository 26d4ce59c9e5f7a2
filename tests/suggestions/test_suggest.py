"""Notes and gold spans suggested by a small trained pipeline, and the command."""

import json
import stat
from pathlib import Path

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.corpora.convert import make_nlp as make_blank
from spacy_bioclin.corpora.docbin import write_docs
from spacy_bioclin.corpora.docs import make_gold_doc
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.suggestions.predict import predict_notes
from spacy_bioclin.suggestions.suggest import check_gold, suggest_notes
from spacy_bioclin.types import AnnotatedText, SpanAnnotation
from tests.ner.test_component import NOTES, make_examples, make_nlp, train

KNOWN, OTHER = NOTES[0][0], "Amoxicilina o neumonía o tos tras diabetes de la abuela."
NEW = [("a", KNOWN), ("b", OTHER), ("c", f"{OTHER} "), ("d", "Sin fiebre.")]


@pytest.fixture(scope="module")
def trained(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    spacy.util.fix_random_seed(0)
    nlp = make_nlp(tiny_encoder)
    train(nlp, make_examples(nlp), steps=60)
    nlp.add_pipe("bioclin_cleaner")
    folder = tmp_path_factory.mktemp("trained") / "pipeline"
    nlp.to_disk(folder)
    return folder


@pytest.fixture(scope="module")
def nlp(trained: Path) -> Language:
    return spacy.load(trained)


def gold(text: str, *spans: tuple[int, int, str], annotated: list[str] | None = None) -> Doc:
    annotations = [
        SpanAnnotation(f"T{i}", label, ((start, end),))
        for i, (start, end, label) in enumerate(spans, start=1)
    ]
    document = AnnotatedText("nota", text, tuple(annotations))
    return make_gold_doc(make_blank("es"), document, annotated_labels=annotated)


def test_a_prediction_has_entropy_vector_and_spans(nlp: Language) -> None:
    (found,) = predict_notes(nlp, [KNOWN])
    assert found.vector is not None and found.vector.shape == (16,)
    layer = found.layers["ents"]
    assert set(layer.spans) == {(13, 21, "PROBLEM"), (34, 45, "DRUG")}
    assert layer.entropy is not None and len(layer.entropy) == len(found.starts)
    assert found.uncertainty == pytest.approx(float(layer.entropy.sum()))
    assert found.find_absence("ents", 0, 8) > 0.9  # "Paciente"
    assert found.find_absence("ents", 9, 21) < 0.1  # "con neumonía"
    assert found.find_absence("ents", 8, 8) == 1.0


def test_notes_unlike_the_training_notes_come_first(nlp: Language) -> None:
    found = suggest_notes(nlp, NEW, 3)
    assert {each.id for each in found[:1]} <= {"b", "c"}
    # Of two notes with the same words, the second is chosen last.
    assert {each.id for each in found[:2]} != {"b", "c"}
    assert found[0].distance == 1.0
    assert all(0 <= start < end <= len(each.text) for each in found for start, end in each.places)


def test_long_notes_have_no_advantage_per_word(nlp: Language) -> None:
    long = " ".join([KNOWN] * 40)
    notes = [("long", long), ("short", OTHER)]
    total, per_word = suggest_notes(nlp, notes, 2), suggest_notes(nlp, notes, 2, per_word=True)
    by_id = {each.id: each for each in total}
    for each in per_word:
        assert each.uncertainty == pytest.approx(by_id[each.id].uncertainty / each.n_words)
    assert total[0].id == max(total, key=lambda each: each.uncertainty).id
    assert per_word[0].id == max(per_word, key=lambda each: each.uncertainty).id


def test_annotated_notes_are_not_suggested_again(nlp: Language) -> None:
    found = suggest_notes(nlp, NEW, 4, annotated=[OTHER])
    assert {each.id for each in found} == {"a", "c", "d"}
    with pytest.raises(BioclinError, match="all notes are annotated already"):
        suggest_notes(nlp, [("b", OTHER)], 4, annotated=[OTHER])


def test_wrong_gold_spans_are_found(nlp: Language) -> None:
    right = gold(KNOWN, (13, 21, "PROBLEM"), (34, 45, "DRUG"))
    wrong = gold(KNOWN, (0, 8, "PROBLEM"), (34, 45, "PROBLEM"))
    assert check_gold(nlp, [right]) == []
    doubts = check_gold(nlp, [right, wrong])
    assert {(each.kind, each.example.pair) for each in doubts} == {
        ("extra", ((0, 8, "PROBLEM"), None)),
        ("label", ((34, 45, "PROBLEM"), (34, 45, "DRUG"))),
        ("missed", (None, (13, 21, "PROBLEM"))),
    }
    confidences = [each.confidence for each in doubts]
    assert confidences == sorted(confidences, reverse=True)
    assert min(confidences) > 0.5


def test_labels_that_nobody_annotated_are_no_doubt(nlp: Language) -> None:
    partial = gold(KNOWN, (34, 45, "DRUG"), annotated=["DRUG"])
    assert check_gold(nlp, [partial]) == []


def test_a_layer_that_does_not_exist(nlp: Language) -> None:
    with pytest.raises(BioclinError, match="--layer phi: no bioclin_ner of the pipeline"):
        suggest_notes(nlp, NEW, 1, layers=["phi"])
    doc = make_blank("es")("Sin fiebre.")
    doc.spans["phi"] = [Span(doc, 0, 1, "X")]
    with pytest.raises(BioclinError, match="not annotated for a layer of the pipeline"):
        check_gold(nlp, [doc])


def test_pipelines_without_tags_are_judged_by_their_spans() -> None:
    ruled = spacy.blank("es")
    ruled.add_pipe("span_ruler", config={"spans_key": "x"}).add_patterns(  # type: ignore[attr-defined]
        [{"label": "X", "pattern": "fiebre"}]
    )
    with pytest.raises(BioclinError, match="gives no probabilities"):
        suggest_notes(ruled, NEW, 1)


def run(*args: object) -> str:
    done = CliRunner().invoke(app, ["suggest", *map(str, args)])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_list_and_the_page_of_notes(trained: Path, tmp_path: Path) -> None:
    rows = [json.dumps({"id": id, "text": text}) for id, text in NEW]
    (tmp_path / "notes.jsonl").write_text("\n".join(rows))
    out, page = tmp_path / "list.jsonl", tmp_path / "page.html"
    arguments = (trained, tmp_path / "notes.jsonl", "-o", out, "-n", 2, "--id-column", "id")
    printed = run(*arguments, "--html", page)
    listed = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["rank"] for row in listed] == [1, 2]
    assert set(listed[0]) == {"rank", "id", "uncertainty", "distance", "words"}
    assert "neumonía" not in out.read_text() + printed
    assert "neumonía" in page.read_text()
    assert stat.S_IMODE(page.stat().st_mode) == stat.S_IMODE(out.stat().st_mode) == 0o600
    run(*arguments, "--html", page, "--no-text", "--overwrite")
    assert "neumonía" not in page.read_text() and "uncertainty" in page.read_text()


def test_the_list_and_the_page_of_gold_spans(trained: Path, tmp_path: Path) -> None:
    write_docs([gold(KNOWN, (0, 8, "PROBLEM"), (34, 45, "DRUG"))], tmp_path / "gold.spacy")
    out, page = tmp_path / "list.jsonl", tmp_path / "page.html"
    run(trained, "--gold", tmp_path / "gold.spacy", "-o", out, "--html", page)
    listed = {row["kind"]: row for row in map(json.loads, out.read_text().splitlines())}
    assert set(listed) == {"extra", "missed"}
    assert listed["extra"]["gold"] == {"start": 0, "end": 8, "label": "PROBLEM"}
    assert listed["missed"]["predicted"] == {"start": 13, "end": 21, "label": "PROBLEM"}
    assert "neumonía" not in out.read_text()
    assert '<span class="gold">Paciente</span>' in page.read_text()
    assert "<mark>neumonía</mark>" in page.read_text()


@pytest.mark.parametrize(
    "arguments",
    [[], ["notes.txt", "--gold", "gold.spacy"], ["--gold", "gold.spacy", "--per-word"]],
)
def test_notes_or_gold(arguments: list[str], tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app, ["suggest", "pipeline", *arguments, "-o", str(tmp_path / "x.jsonl")]
    )
    assert done.exit_code == 1
    assert "give either notes" in done.output or "--per-word: only for notes" in done.output
