"""spaCy's text classifiers on our encoder, and what is checked of their corpora."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.cli.evaluate import evaluate
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import load_config
from spacy.vocab import Vocab
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.corpora.docbin import read_docs, write_docs
from spacy_bioclin.corpora.texts import LabeledText, make_docs
from spacy_bioclin.errors import BioclinError, BioclinWarning
from spacy_bioclin.evaluation.categories import score_categories
from spacy_bioclin.training.checks.categories import check_categories

CONFIG = Path(__file__).parents[2] / "configs" / "textcat.cfg"
LABELS = ["drug", "age"]
EXCLUSIVE = {
    "components.textcat.factory": "textcat",
    "components.textcat.scorer.@scorers": "spacy.textcat_scorer.v2",
    "components.textcat.model.exclusive_classes": True,
}
FILLER = "The patient was given a day. "


def write_corpus(path: Path, rows: Iterable[tuple[str, Iterable[str]]]) -> Path:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    made = [LabeledText(str(i), (text,), tuple(of), None) for i, (text, of) in enumerate(rows)]
    write_docs(make_docs(nlp, made, LABELS), path)
    return path


def write_long_texts(path: Path, *, exclusive: bool = False) -> Path:
    """Texts of several windows, whose labels depend on words anywhere in them."""
    rows: list[tuple[str, list[str]]] = []
    for i in range(12):
        before, after = i % 7, 12 - i % 7
        drug = FILLER * before + "metformin " * 5 + ". " + FILLER * after
        age = FILLER * after + "54 años " * 3 + ". " + FILLER * before
        rows += [(drug, ["drug"]), (age, ["age"])]
        if not exclusive:
            rows += [(drug + age, ["drug", "age"]), (FILLER * 13, [])]
    return write_corpus(path, rows)


def train(folder: Path, encoder: Path, train: Path, dev: Path, **settings: Any) -> Any:
    fixed = {
        "paths.train": train,
        "paths.dev": dev,
        "paths.encoder": encoder,
        "nlp.lang": "en",
        "components.transformer.model.precision": "fp32",
        "training.batcher.size": 500,
        "training.logger.progress_bar": "null",
        "training.optimizer.learn_rate.initial_rate": 0.01,
    }
    options = [f"--{key}={value}" for key, value in {**fixed, **settings}.items()]
    options = [option.replace("=True", "=true") for option in options]
    return CliRunner().invoke(app, ["train", str(CONFIG), "-o", str(folder), *options])


@pytest.mark.slow
@pytest.mark.parametrize("exclusive", [False, True])
def test_a_classifier_learns_from_every_window(
    exclusive: bool, tmp_path: Path, tiny_encoder: Path
) -> None:
    corpus = write_long_texts(tmp_path / "train.spacy", exclusive=exclusive)
    settings: dict[str, Any] = {"training.max_steps": 240, "training.eval_frequency": 60}
    settings |= EXCLUSIVE if exclusive else {}
    result = train(tmp_path / "out", tiny_encoder, corpus, corpus, **settings)
    assert result.exit_code == 0, result.output
    nlp = spacy.load(tmp_path / "out" / "model-best")
    references = list(read_docs(corpus, nlp.vocab))
    encoder: Any = nlp.get_pipe("transformer")
    nlp.remove_pipe("cleaner")
    predicted = list(nlp.pipe(doc.text for doc in references))
    assert min(len(doc) for doc in references) > 80
    assert encoder.model.attrs["size"] < 70
    assert all(doc._.trf_data.align.lengths.sum() > 80 for doc in predicted)
    cats = [[doc.cats for doc in docs] for docs in (references, predicted)]
    scores = score_categories(*cats, exclusive=exclusive)
    assert scores["micro"]["f"] > 0.9, scores
    # spaCy's own command and scorer agree
    found = evaluate(str(tmp_path / "out" / "model-best"), corpus, silent=True)
    assert found["cats_micro_f"] == pytest.approx(scores["micro"]["f"])
    weights = nlp.config["training"]["score_weights"]
    assert set(weights) <= set(found) and sum(filter(None, weights.values())) == 1.0


def test_a_word_in_the_last_window_counts(tiny_encoder: Path) -> None:
    config = load_config(CONFIG, overrides={"paths.encoder": str(tiny_encoder), "nlp.lang": "en"})
    nlp: Language = spacy.util.load_model_from_config(config, auto_fill=True)
    doc = nlp.make_doc("x")
    doc.cats = dict.fromkeys(LABELS, 1.0)
    nlp.initialize(lambda: [spacy.training.Example(nlp.make_doc("x"), doc)])
    head: Any = nlp.get_pipe("textcat")
    output = head.model.get_ref("output_layer")
    weights = output.get_param("W")
    values = output.ops.xp.linspace(-0.1, 0.1, weights.size, dtype="f")
    output.set_param("W", weights + values.reshape(weights.shape))
    before, after = (nlp(FILLER * 40 + word).cats["drug"] for word in ("age", "metformin"))
    assert before != after


def corpora(tmp_path: Path, train: Mapping[str, Any], dev: Mapping[str, Any]) -> dict[str, Any]:
    """Corpora whose documents have the given values, one document for each of a list."""
    overrides: dict[str, Any] = {"nlp.lang": "en"}
    for split, values in (("train", train), ("dev", dev)):
        n_docs = max((len(column) for column in values.values()), default=1)
        docs = []
        for i in range(n_docs):
            doc = Doc(Vocab(), words=["x"])
            found = {label: column[i] for label, column in values.items()}
            doc.cats = {label: value for label, value in found.items() if value is not None}
            docs.append(doc)
        write_docs(docs, tmp_path / f"{split}.spacy")
        overrides[f"paths.{split}"] = str(tmp_path / f"{split}.spacy")
    return overrides


def check(overrides: dict[str, Any]) -> None:
    check_categories(load_config(CONFIG, overrides=overrides, interpolate=True))


GOOD = {"A": [1.0, 0.0], "B": [0.0, 1.0]}


def test_corpora_that_cannot_be_learned(tmp_path: Path) -> None:
    rows: list[tuple[Any, Any, dict[str, Any], str]] = [
        ({}, GOOD, {}, r"\[components.textcat\] learns from doc.cats, which no document of the tr"),
        (GOOD, {}, {}, r"evaluated on doc.cats, which no document of the dev corpus .*dev.spacy"),
        (
            GOOD,
            {"A": [1.0], "C": [1.0], "D": [1.0]},
            {},
            r"dev corpus .*dev.spacy has the label 'C' \(and 1 other labels\), which the train",
        ),
        ({"score": [0.0, 3.5]}, GOOD, {}, "other values than 0 and 1 for 'score'"),
        (GOOD, {"A": [0.5]}, {}, "the dev corpus .* has other values than 0 and 1 for 'A'"),
        ({"A": [1.0, None]}, GOOD, EXCLUSIVE, "1 of 2 documents of the train .* have no doc.cats"),
        ({"A": [1.0]}, {"A": [1.0]}, EXCLUSIVE, "has only the label 'A', but textcat chooses"),
        (
            {"A": [1.0, 1.0], "B": [0.0, 1.0]},
            GOOD,
            EXCLUSIVE,
            "1 of 2 documents of the train corpus .* have no label or several",
        ),
        (GOOD, {"A": [0.0], "B": [0.0]}, EXCLUSIVE, "1 of 1 documents of the dev corpus"),
        (
            GOOD,
            GOOD,
            {"components.textcat.factory": "textcat"},
            "factory is 'textcat', but exclusive_classes of its model is false",
        ),
    ]
    for train, dev, settings, message in rows:
        with pytest.raises(BioclinError, match=message):
            check({**corpora(tmp_path, train, dev), **settings})


def test_a_label_that_no_document_has(tmp_path: Path) -> None:
    train = {**GOOD, "C": [0.0, 0.0]}
    with pytest.warns(BioclinWarning, match=r"train.spacy has the label 'C': it cannot be learn"):
        check(corpora(tmp_path, train, GOOD))
    with pytest.warns(BioclinWarning, match=r"has the label 'C' \(1 of the dev corpus .* have\)"):
        check(corpora(tmp_path, train, {"C": [1.0]}))


@pytest.mark.filterwarnings("error")
def test_what_is_good_or_not_known_passes(tmp_path: Path) -> None:
    overrides = corpora(tmp_path, GOOD, {"A": [1.0], "C": [0.0]})
    check(overrides)
    check({**corpora(tmp_path, GOOD, GOOD), **EXCLUSIVE})
    check({**overrides, "paths.train": None})
    check({**overrides, "paths.dev": str(tmp_path / "nothing.spacy")})
    corpora(tmp_path, {}, GOOD)
    check({**overrides, "training.frozen_components": ["textcat"]})
    check_categories({})


def test_tasks_say_who_learns(tmp_path: Path) -> None:
    overrides = corpora(tmp_path, GOOD, {"C": [1.0]})

    def section(split: str) -> dict[str, Any]:
        texts = {"path": overrides[f"paths.{split}"], "heads": ["textcat"]}
        return {"tasks": {"texts": texts, "notes": {"path": overrides["paths.train"], "heads": []}}}

    config = dict(load_config(CONFIG, overrides={"nlp.lang": "en"}, interpolate=True))
    config["corpora"] = {"train": section("train"), "dev": section("dev")}
    with pytest.raises(BioclinError, match="has the label 'C', which"):
        check_categories(config)
    config["corpora"]["dev"]["tasks"]["texts"]["heads"] = ["ner"]
    check_categories(config)
