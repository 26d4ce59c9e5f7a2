"""`bioclin evaluate --task`: the published metric of a task beside published figures."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from typer.testing import CliRunner

from spacy_bioclin.annotations.pairs import SCORE, get_boundary, make_pair
from spacy_bioclin.annotations.relations import Relation, set_relations
from spacy_bioclin.catalog.tasks import find_task
from spacy_bioclin.cli import app
from spacy_bioclin.cli.train.score_published import OURS
from spacy_bioclin.evaluation.published import METRICS
from spacy_bioclin.types import GOLD_KEY
from tests.cli.test_evaluate import Page

pytestmark = pytest.mark.usefixtures("kept_pipelines")
NOTE = "Cefalea intensa por nolotil.\nNáuseas por agua."


@Language.factory("say_yes", assigns=["doc.cats"])
class SayYes:
    """Say yes to texts with the word "grave", and grade pairs by their length."""

    labels = ("yes", "no")

    def __init__(self, nlp: Language, name: str) -> None:
        pass

    def __call__(self, doc: Doc) -> Doc:
        if get_boundary(doc) is not None:
            doc.cats = {SCORE: float(len(doc))}
        else:
            yes = 0.9 if any(token.lower_ == "grave" for token in doc) else 0.1
            doc.cats = {"yes": yes, "no": 1 - yes}
        return doc

    def score(self, examples: Any, **kwargs: Any) -> dict[str, Any]:
        return {"cats_score": 0.0}

    def to_disk(self, path: Path, exclude: Any = ()) -> None:
        pass

    def from_disk(self, path: Path, exclude: Any = ()) -> "SayYes":
        return self


@Language.factory("relate_first", default_config={"relations_key": "relations", "spans_key": None})
def make_relate_first(nlp: Language, name: str, relations_key: str, spans_key: None) -> Any:
    """Relate the first two entities of a Doc."""

    def relate(doc: Doc) -> Doc:
        ents = list(doc.ents)
        found = [Relation(ents[1], ents[0], "ADE", 0.75)] if len(ents) > 1 else []
        set_relations(doc, relations_key, found)
        return doc

    return relate


def locate(*words: str) -> list[list[Any]]:
    return [[NOTE.index(word), NOTE.index(word) + len(word), "SINTOMA", ""] for word in words]


def make_note() -> Doc:
    """A gold Doc with three symptoms and two relations."""
    doc: Doc = spacy.blank("es").make_doc(NOTE)
    layer = locate("Cefalea intensa", "nolotil", "Náuseas")
    first, second, third = (item[:3] for item in layer)
    relations = [["ADE", second, first], ["OTRA", third, first]]
    gold = {"id": "uno", "task": "t", "layers": {"ents": layer}, "relations": relations}
    doc.user_data[GOLD_KEY] = gold
    return doc


def evaluate(folder: Path, nlp: Language, docs: list[Doc], *arguments: object) -> Any:
    nlp.to_disk(folder / "pipeline")
    DocBin(docs=docs, store_user_data=True).to_disk(folder / "test.spacy")
    words = ["evaluate", folder / "pipeline", folder / "test.spacy", "-o", folder / "m.json"]
    return CliRunner().invoke(app, [str(word) for word in (*words, *arguments)])


def read_published(folder: Path) -> dict[str, Any]:
    published: dict[str, Any] = json.loads((folder / "m.json").read_text("utf-8"))["published"]
    return published


def make_rules() -> Language:
    """A pipeline that finds two of the three symptoms, and one more."""
    nlp = spacy.blank("es")
    patterns = [{"label": "SINTOMA", "pattern": word} for word in ("nolotil", "Náuseas", "agua")]
    nlp.add_pipe("entity_ruler").add_patterns(patterns)  # type: ignore[attr-defined]
    return nlp


def test_entities_beside_published_rows(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    arguments = ("--task", "pharmaconer", "--html", page, "--no-text")
    result = evaluate(tmp_path, make_rules(), [make_note()], *arguments)
    assert result.exit_code == 0, result.output
    published = read_published(tmp_path)
    assert published["task"] == "pharmaconer" and published["metric"] == "entities_strict_f"
    assert published["title"] == METRICS["entities_strict_f"].title
    assert published["value"] == pytest.approx(2 / 3)  # 2 right of 3 found and of 3 in the corpus
    rows = find_task("pharmaconer").published
    assert [row["system"] for row in published["rows"]] == [row.system for row in rows]
    assert [row["percent"] for row in published["rows"]] == [row.value for row in rows]
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert f"{OURS} 66.67 entities_strict_f" in lines
    percent = f"{rows[0].value:.2f}".removesuffix("0")
    assert any(line.startswith(f"{rows[0].system} {percent} ") for line in lines)
    html = page.read_text("utf-8")
    assert Page(html).open == [] and "Published figures: pharmaconer" in html and "66.67" in html
    for word in re.findall(r"\w{5,}", NOTE):
        assert word not in html and word not in result.output


def test_without_the_option_nothing_is_published(tmp_path: Path) -> None:
    result = evaluate(tmp_path, make_rules(), [make_note()])
    assert result.exit_code == 0, result.output
    assert "published" not in json.loads((tmp_path / "m.json").read_text("utf-8"))
    assert OURS not in result.stdout


def test_relations_are_those_between_the_gold_entities(tmp_path: Path) -> None:
    nlp = make_rules()
    nlp.add_pipe("relate_first")
    result = evaluate(tmp_path, nlp, [make_note()], "--task", "ehealthkd-2021")
    assert result.exit_code == 0, result.output
    published = read_published(tmp_path)
    # Between the entities of the rules, nothing would be right.
    assert (published["p"], published["r"]) == (1.0, 0.5)
    assert published["value"] == pytest.approx(2 / 3)


def test_the_positive_class_of_texts(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("say_yes")
    docs = []
    for text, label in (("Grave", "yes"), ("Well", "yes"), ("Fine", "no"), ("Very grave", "no")):
        doc = nlp.make_doc(text)
        doc.cats = {"no": float(label == "no"), "yes": float(label == "yes")}
        docs.append(doc)
    result = evaluate(tmp_path, nlp, docs, "--task", "gad")
    assert result.exit_code == 0, result.output
    published = read_published(tmp_path)
    assert (published["metric"], published["docs"]) == ("texts_positive_f", 4)
    assert (published["value"], published["accuracy"]) == (0.5, 0.5)


def test_graded_pairs_and_a_correlation_that_is_not_defined(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("say_yes")
    docs = []
    for text, grade in (("One", 1.0), ("One two", 2.0), ("One two three four", 4.0)):
        doc = make_pair(nlp, text, "Two")
        doc.cats = {SCORE: grade}
        docs.append(doc)
    result = evaluate(tmp_path, nlp, docs, "--task", "biosses")
    assert result.exit_code == 0, result.output
    assert read_published(tmp_path)["value"] == pytest.approx(1.0)
    result = evaluate(tmp_path, nlp, docs[:1], "--task", "biosses", "--overwrite")
    assert result.exit_code == 0, result.output
    assert read_published(tmp_path)["value"] is None
    assert "pairs_pearson has no value" in " ".join(result.stderr.split())
    assert f"{OURS} – pairs_pearson" in [
        " ".join(line.split()) for line in result.stdout.split("\n")
    ]


def test_mistakes_are_one_message(tmp_path: Path) -> None:
    for task, message in (
        ("pharmaconerr", r"task 'pharmaconerr' is unknown; did you mean pharmaconer\?"),
        ("chemprot", r"--task chemprot: its metric relations_micro_f is of relations, and no"),
        ("rqe", r"--task rqe: its metric pairs_accuracy is of pairs, .* it has entity_ruler"),
    ):
        result = evaluate(tmp_path, make_rules(), [make_note()], "--task", task)
        assert result.exit_code == 1, (task, result.output)
        assert re.search(message, " ".join(result.stderr.split())), task
        assert not (tmp_path / "m.json").exists()
