"""Training of `bioclin_pairs` from .spacy files, beside heads for other Docs."""

from pathlib import Path
from typing import Any

import pytest
import spacy
import srsly
from spacy.training import Example
from thinc.api import Adam

from spacy_bioclin.annotations.pairs import make_pair
from spacy_bioclin.corpora.docbin import write_docs
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.training.loop import LAST
from tests.trained import blank
from tests.training.several import (
    LISTENER,
    NOTES,
    SIGNS,
    make_config,
    make_docs,
    make_ner,
    run,
)

TEXTS = [
    ("Toma aspirina.", "Toma un fármaco.", "yes", 4.0),
    ("Toma aspirina.", "No toma nada.", "no", 1.0),
    ("Refiere tos.", "No tose.", "no", 0.5),
]


def make_pair_head(**settings: Any) -> dict[str, Any]:
    model = {
        "@architectures": "spacy-bioclin.PairClassifier.v1",
        "dropout": 0.0,
        "learn_rate_scale": 10.0,
        "hidden": False,
        "tok2vec": LISTENER,
    }
    return {"factory": "bioclin_pairs", "model": model, "require_pairs": False, **settings}


def write_corpora(folder: Path, *, graded: bool = False) -> dict[str, dict[str, Any]]:
    write_docs(make_docs(NOTES, SIGNS, "SIGN", None), folder / "signs.spacy")
    nlp = blank("es")
    docs = []
    for first, second, label, score in TEXTS:
        doc = make_pair(nlp, first, second)
        classes = {name: float(name == label) for name in ("no", "yes")}
        doc.cats = {"score": score} if graded else classes
        docs.append(doc)
    write_docs(docs, folder / "pairs.spacy")
    return {
        name: {"path": str(folder / f"{name}.spacy"), "heads": [head]}
        for name, head in (("signs", "ner"), ("pairs", "pairs"))
    }


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["classification", "regression"])
def test_pairs_beside_entities(tiny_encoder: Path, tmp_path: Path, objective: str) -> None:
    tasks = write_corpora(tmp_path, graded=objective == "regression")
    heads = {"ner": make_ner(None), "pairs": make_pair_head(objective=objective)}
    settings = {
        "training.max_steps": 24,
        "training.eval_frequency": 24,
        "training.optimizer.learn_rate": 0.005,
        "training.batcher.batcher.size": 64,
    }
    run(make_config(tiny_encoder, heads, tasks, settings), tmp_path / "out")
    last = srsly.read_json(tmp_path / "out" / "tasks.json")["evaluations"][-1]["tasks"]
    assert last["signs"]["score"] > 0.5 and last["pairs"]["score"] > 0.9
    nlp = spacy.load(tmp_path / "out" / LAST)
    note, pair = nlp.pipe([NOTES[0], make_pair(nlp, *TEXTS[0][:2])])
    assert note._.pair is None and note.ents and not note.cats
    if objective == "classification":
        assert pair._.pair.label == "yes"
    else:
        assert pair._.pair.score > 1.8  # the mean


def test_pairs_are_required_unless_the_pipeline_says_otherwise(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    tasks = write_corpora(tmp_path)
    heads = {"ner": make_ner(None), "pairs": make_pair_head(require_pairs=True)}
    with pytest.raises(BioclinError, match="set require_pairs to false"):
        run(make_config(tiny_encoder, heads, tasks), tmp_path / "out")


def test_a_batch_without_pairs_teaches_the_encoder(tiny_encoder: Path) -> None:
    """The last head that listens passes on the gradients of the others."""
    nlp = blank("es")
    model = {"@architectures": "spacy-bioclin.Encoder.v1", "name": str(tiny_encoder)}
    nlp.add_pipe("transformer", config={"model": model})
    nlp.vocab.strings.add("SIGN")
    nlp.add_pipe("bioclin_ner", name="ner")
    nlp.add_pipe("bioclin_pairs", name="pairs", config={"require_pairs": False})
    notes = [Example(nlp.make_doc(d.text), d) for d in make_docs(NOTES, SIGNS, "SIGN", None)]
    pairs = []
    for first, second, label, _ in TEXTS:
        reference = make_pair(nlp, first, second)
        reference.cats = {label: 1.0}
        pairs.append(Example(make_pair(nlp, first, second), reference))
    nlp.initialize(lambda: [*notes, *pairs])
    weight = nlp.get_pipe("transformer").model.transformer.get_input_embeddings().weight
    before = weight.detach().clone()
    losses: dict[str, float] = {}
    nlp.update(notes, sgd=Adam(1e-3), losses=losses)
    assert losses["pairs"] == 0.0 and losses["ner"] > 0
    assert bool((weight != before).any())
