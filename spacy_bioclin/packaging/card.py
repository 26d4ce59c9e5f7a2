"""Describe a pipeline in its package: meta.json and the model card."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import srsly
from spacy.util import load_config

from ..linking.bundle import STATE
from ..pages import render_template

TEMPLATE = Path(__file__).with_name("model_card.md.jinja")
NOT_STATED = "not stated"
LINKER = "bioclin_linker"
LANGUAGES = {"es": "Spanish", "en": "English"}
# Settings that the card repeats from the config.cfg of the pipeline.
SETTINGS = (
    "training.seed",
    "training.max_steps",
    "training.max_epochs",
    "training.batcher.size",
    "training.accumulate_gradient",
    "training.dropout",
    "training.optimizer.learn_rate.initial_rate",
    "training.optimizer.learn_rate.warmup",
    "training.optimizer.learn_rate.warmup_steps",
    "training.optimizer.L2",
    "training.optimizer.grad_clip",
    "corpora.train.max_tokens",
    "components.transformer.model.window",
    "components.transformer.model.stride",
    "components.transformer.model.precision",
)


class Provenance(NamedTuple):
    """What a pipeline was made from; the names and licences that a user of it has to know."""

    corpus: str = NOT_STATED
    corpus_license: str = NOT_STATED
    corpus_url: str = ""
    corpus_cite: str = ""
    encoder: str = NOT_STATED
    encoder_license: str = NOT_STATED


def make_meta(
    meta: Mapping[str, Any],
    *,
    name: str,
    version: str,
    requirement: str,
    provenance: Provenance,
    metrics: Mapping[str, Any] | None,
    linkers: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Complete the meta.json of a trained pipeline for its package.

    meta (Mapping): As `spacy train` wrote it.
    name, version (str): Of the package; the name without language.
    requirement (str): This library with its range; spaCy adds the others.
    metrics (Mapping | None): What `bioclin evaluate` wrote; None keeps the scores of training.
    linkers (Mapping): See `find_linkers`; a packaged knowledge base has a licence, too.
    RETURNS (dict): New meta.json. What spaCy has no key for is under "bioclin".
    """
    language = LANGUAGES.get(meta["lang"], meta["lang"])
    description = f"Entities of clinical text in {language}: {', '.join(_labels(meta)) or 'none'}."
    corpus = {
        "name": provenance.corpus,
        "url": provenance.corpus_url,
        "author": provenance.corpus_cite,
        "license": provenance.corpus_license,
    }
    encoder = {"name": provenance.encoder, "license": provenance.encoder_license}
    kbs = [
        {
            "name": linker["kb"]["name"],
            "license": ", ".join(
                dict.fromkeys(s["licence"] or NOT_STATED for s in linker["kb"]["sources"])
            ),
        }
        for linker in linkers.values()
        if linker["carried"]
    ]
    licences = [f"corpus: {corpus['license']}", f"encoder: {encoder['license']}"]
    licences += [f"knowledge base {kb['name']}: {kb['license']}" for kb in kbs]
    own: dict[str, Any] = {"provenance": provenance._asdict()}
    if metrics is not None:
        own["evaluation"] = {
            "corpus": metrics["corpus"],
            "layers": {
                layer: {"docs": scores["docs"], "strict": scores["strict"]}
                for layer, scores in metrics["layers"].items()
            },
            **{key: metrics[key] for key in ("speed", "date", "versions", "commit")},
        }
    return {
        **meta,
        "name": name,
        "version": version,
        "description": meta.get("description") or description,
        "license": "; ".join(licences),
        "sources": [_without_blanks(source) for source in (corpus, encoder, *kbs)],
        "requirements": [requirement],
        "performance": metrics["scores"] if metrics else meta.get("performance", {}),
        "bioclin": own,
    }


def _labels(meta: Mapping[str, Any]) -> list[str]:
    return sorted({label for labels in meta.get("labels", {}).values() for label in labels})


def _without_blanks(source: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in source.items() if value}


def render_card(
    meta: Mapping[str, Any], pipeline: Path, linkers: Mapping[str, Mapping[str, Any]]
) -> str:
    """Write the model card, after Mitchell et al. (2019), "Model Cards for Model Reporting".

    meta (Mapping): As `make_meta` returns it.
    pipeline (Path): Folder of the pipeline, for the settings in its config.cfg.
    linkers (Mapping): See `find_linkers`.
    RETURNS (str): Markdown. It holds labels and figures, no text of a note.
    """
    config = load_config(pipeline / "config.cfg", interpolate=True)
    return render_template(
        TEMPLATE,
        meta=meta,
        package=f"{meta['lang']}_{meta['name']}",
        language=LANGUAGES.get(meta["lang"], meta["lang"]),
        provenance=meta["bioclin"]["provenance"],
        evaluation=meta["bioclin"].get("evaluation"),
        training_scores={
            key: value
            for key, value in meta["performance"].items()
            if isinstance(value, float) and key.endswith(("_p", "_r", "_f"))
        },
        layers=find_layers(config),
        linkers=linkers,
        settings=read_settings(config),
    )


def find_layers(config: Mapping[str, Any]) -> dict[str, str | None]:
    """Find the components that find spans.

    RETURNS (dict): Component -> key of doc.spans that it writes, or None for doc.ents.
    """
    return {
        name: component["spans_key"]
        for name, component in config["components"].items()
        if "spans_key" in component and component["factory"] != LINKER
    }


def find_linkers(pipeline: Path) -> dict[str, dict[str, Any]]:
    """Find the linkers that have a knowledge base.

    RETURNS (dict): Component -> `spans_key`, `kb` (its description, with the licences of its
        sources) and `carried`, whether it is in the package.
    """
    linkers = {}
    config = load_config(pipeline / "config.cfg", interpolate=True)
    for name, component in config["components"].items():
        state = pipeline / name / STATE
        if component["factory"] != LINKER or not state.is_file():
            continue
        described = srsly.read_json(state)
        if described["kb_meta"] is not None:
            linkers[name] = {
                "spans_key": component["spans_key"],
                "kb": described["kb_meta"],
                "carried": "kb" in described["carried"],
            }
    return linkers


def read_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Read those of `SETTINGS` that the config has."""
    found = {}
    for setting in SETTINGS:
        value: Any = config
        for key in setting.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        if value is not None:
            found[setting] = value
    return found
