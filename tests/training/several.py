"""Makers of small trainings on several tasks."""

import functools
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import load_config
from thinc.api import Config

from spacy_bioclin.corpora.docbin import write_docs
from spacy_bioclin.training.initialize import init_pipeline
from spacy_bioclin.training.loop import train

NER_CFG = Path(__file__).parents[2] / "configs" / "ner.cfg"
NOTES = ["Paciente con neumonía.", "Sufre tos y fiebre.", "Sin fiebre ni disnea.", "Refiere tos."]
DRUGS = ["Se inicia amoxicilina.", "Toma metformina y aspirina.", "Con heparina."]
SIGNS = {"neumonía", "tos", "fiebre", "disnea"}
DRUG = {"amoxicilina", "metformina", "aspirina", "heparina"}
LISTENER = {
    "@architectures": "spacy-transformers.TransformerListener.v1",
    "grad_factor": 1.0,
    "upstream": "*",
    "pooling": {"@layers": "reduce_mean.v1"},
}
CRF = {
    "@architectures": "spacy-bioclin.CrfTagger.v1",
    "dropout": 0.1,
    "learn_rate_scale": 10.0,
    "tok2vec": LISTENER,
}


@functools.cache
def blank() -> Language:
    """The pipeline that makes Docs; each new one takes 20 ms."""
    return spacy.blank("es")


def make_docs(notes: list[str], words: set[str], label: str, layer: str | None) -> list[Doc]:
    """Make gold Docs in which some words are spans of a layer."""
    docs = []
    for note in notes:
        doc = blank()(note)
        spans = [Span(doc, t.i, t.i + 1, label=label) for t in doc if t.text in words]
        if layer is None:
            doc.set_ents(spans, default="outside")
        else:
            doc.spans[layer] = spans
        docs.append(doc)
    return docs


def add_cats(docs: list[Doc]) -> list[Doc]:
    """Add a category to each Doc."""
    for doc in docs:
        doc.cats = {"LONG": float(len(doc) > 4), "SHORT": float(len(doc) <= 4)}
    return docs


def make_ner(spans_key: str | None, **settings: Any) -> dict[str, Any]:
    """Make the section of a `bioclin_ner`."""
    return {"factory": "bioclin_ner", "spans_key": spans_key, "model": CRF, **settings}


def make_config(
    encoder: Path,
    components: Mapping[str, dict[str, Any]],
    tasks: Mapping[str, dict[str, Any]],
    settings: Mapping[str, Any] | None = None,
    *,
    weights: Mapping[str, float | None] | None = None,
    **batcher: Any,
) -> Config:
    """Make a config from ner.cfg with other heads and the corpora of tasks, for both train and dev.

    settings (Mapping[str, Any] | None): Path -> value.
    weights (Mapping | None): [training.score_weights]; None for the mean over tasks.
    batcher (Any): Settings of the batcher.
    """
    base = {
        "paths.encoder": str(encoder),
        "components.transformer.model.window": 32,
        "training.max_steps": 9,
        "training.eval_frequency": 3,
        "training.logger.progress_bar": None,
        "training.optimizer.learn_rate": 0.001,
    }
    config = load_config(NER_CFG, {**base}, interpolate=False)
    del config["components"]["ner"]
    config["components"].update(components)
    config["nlp"]["pipeline"] = ["sentences", "transformer", *components, "cleaner"]
    reader = "spacy-bioclin.TaskCorpora.v1"
    for corpus in ("train", "dev"):
        own = {name: dict(task) for name, task in tasks.items()}
        config["corpora"][corpus] = {"@readers": reader, "max_tokens": 0, "tasks": own}
    inner = {**config["training"]["batcher"], "size": 8}
    config["training"]["batcher"] = {
        "@batchers": "spacy-bioclin.batch_by_task.v1",
        **batcher,
        "batcher": inner,
    }
    config["training"]["score_weights"] = {"tasks_mean": 1.0} if weights is None else dict(weights)
    for path, value in (settings or {}).items():
        *sections, key = path.split(".")
        place: Any = config
        for section in sections:
            place = place[section]
        place[key] = value
    return Config(config)


def write_two(folder: Path) -> dict[str, str]:
    """Write a corpus of signs and one of drugs, in layers of their own."""
    write_docs(make_docs(NOTES, SIGNS, "SIGN", "signs"), folder / "signs.spacy")
    write_docs(make_docs(DRUGS, DRUG, "DRUG", "drugs"), folder / "drugs.spacy")
    return {name: str(folder / f"{name}.spacy") for name in ("signs", "drugs")}


def run(config: Config, output: Path, *, resume: bool = False) -> tuple[Language, str]:
    """Train. RETURNS (tuple[Language, str]): The pipeline, and what was printed."""
    nlp = init_pipeline(config)
    out = io.StringIO()
    train(nlp, output, resume=resume, stdout=out, stderr=out)
    return nlp, out.getvalue()
