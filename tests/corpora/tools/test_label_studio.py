"""Label Studio: what annotators make of predictions, and the labelling configuration."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from spacy_bioclin.corpora.docs import spans_of
from spacy_bioclin.corpora.tools.exchange import UNREAD
from spacy_bioclin.corpora.tools.label_studio import (
    format_label_config,
    format_label_studio,
    read_label_studio,
)
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.types import AnnotatedText, OtherAnnotation, SpanAnnotation
from tests.corpora.tools.documents import HARD


def write(path: Path, *tasks: dict[str, Any]) -> Path:
    path.write_text(json.dumps(list(tasks)), "utf-8")
    return path


def region(id: str, start: int, end: int, text: str, *labels: str) -> dict[str, Any]:
    value = {"start": start, "end": end, "text": text, "labels": list(labels)}
    return {"id": id, "from_name": "label", "to_name": "text", "type": "labels", "value": value}


def annotated(text: str, *results: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": 7, "data": {"text": text}, "annotations": [{"result": list(results), **more}]}


def test_a_corrected_export(tmp_path: Path) -> None:
    sure = OtherAnnotation("A3", "A3\tProbability T2 0.75")
    (task,) = json.loads(
        format_label_studio([HARD._replace(annotations=(*HARD.annotations, sure))])
    )
    assert task["predictions"][0]["score"] == 0.75
    prediction = task["predictions"][0]["result"]
    # The annotator deletes T1 with its attribute and concept, relabels T2 and adds a span.
    kept = [each for each in prediction if each.get("id") != "T1" and each["type"] != "relation"]
    for each in kept:
        if each["id"] == "T2" and each["type"] == "labels":
            each["value"]["labels"] = ["DOLOR"]
    start = task["data"]["text"].index("Niega")
    kept.append(region("xYz", start, start + 5, "Niega", "NEG"))
    task["annotations"] = [{"result": kept}]
    (document,) = read_label_studio(write(tmp_path / "e.json", task))
    assert (document.id, document.text) == (HARD.id, HARD.text)
    found = {span.id: span for span in spans_of(document)}
    assert "T1" not in found
    assert found["T2"].label == "DOLOR"
    assert found["T2"].concept_ids == ("22253000", "C0030193")
    assert found["T2"].fragments == spans_of(HARD)[1].fragments
    assert found["xYz"].fragments == ((2, 7),)
    assert document.text[2:7] == "Niega"
    assert not any("Probability" in each[1] for each in document.annotations)


def test_tasks_that_are_not_gold(tmp_path: Path) -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({"annotations": []}, "task 1: is not annotated yet"),
        ({"annotations": [{"result": [], "was_cancelled": True}]}, "is not annotated"),
        ({"annotations": [{"result": []}] * 2}, "has 2 annotations; mark one"),
        ({"data": {"text": "a", "bioclin": {"sha256": "0"}}}, "not the one that was exported"),
        ({"data": {}}, r"cannot be read \(KeyError\)"),
    ]
    for changes, message in rows:
        path = write(tmp_path / "e.json", {**annotated("a"), **changes}, annotated("b"))
        with pytest.raises(BioclinError, match=message):
            read_label_studio(path)
        skipped: list[BioclinError] = []
        documents = read_label_studio(path, lambda name, error, seen=skipped: seen.append(error))
        assert [document.text for document in documents] == ["b"]
        assert len(skipped) == 1


def test_of_several_annotations_the_ground_truth_counts(tmp_path: Path) -> None:
    task = annotated("tos", region("a", 0, 3, "tos", "A"), ground_truth=True)
    task["annotations"].append({"result": []})
    (document,) = read_label_studio(write(tmp_path / "e.json", task))
    assert [span.label for span in spans_of(document)] == ["A"]


# "😀 tos\r\nfiebre": code points 2-5 and 7-13; UTF-16 3-6 and 8-14; with CR LF as one, one less
# for the second.
def test_how_offsets_are_counted_is_seen_by_the_text(tmp_path: Path) -> None:
    words = ("tos", "fiebre")
    for gap, *places in (
        ("\r\n", (2, 5), (7, 13)),
        ("\r\n", (3, 6), (8, 14)),
        ("\r\n", (2, 5), (6, 12)),
        (", ", (2, 5), (7, 13)),
        (", ", (3, 6), (8, 14)),
    ):
        regions = [region(word, *at, word, "A") for word, at in zip(words, places, strict=True)]
        task = annotated(f"😀 tos{gap}fiebre", *regions)
        (document,) = read_label_studio(write(tmp_path / "e.json", task))
        assert [span.fragments for span in spans_of(document)] == [((2, 5),), ((7, 13),)], places


def test_what_is_no_span_is_named(tmp_path: Path) -> None:
    whole = {"id": "z", "from_name": "kind", "type": "choices", "value": {"choices": ["x"]}}
    task = annotated("tos", region("a", 0, 3, "tos", "A", "B"), whole)
    (document,) = read_label_studio(write(tmp_path / "e.json", task))
    assert [(span.id, span.label) for span in spans_of(document)] == [("a", "A"), ("a/2", "B")]
    assert document.annotations[-1] == OtherAnnotation(UNREAD, "choices")


def test_the_configuration_has_every_label() -> None:
    strange = AnnotatedText("x", "tos", (SpanAnnotation("T1", 'A<"&', ((0, 3),)),))
    root = ElementTree.fromstring(format_label_config([HARD, strange]))
    labels = [label.get("value") for label in root.iter("Label")]
    assert labels == ['A<"&', "E", "FACE", "HOY", "LINES", "SINTOMA"]
    assert [each.get("value") for each in root.iter("Relation")] == ["continues", "with"]
    assert [each.get("value") for each in root.iter("Choice")] == ["Certainty=low", "Negated"]
