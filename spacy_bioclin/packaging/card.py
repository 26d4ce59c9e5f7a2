"""Describe a pipeline in its package: meta.json and the model card."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import srsly
from spacy.util import load_config

from ..linking.bundle import STATE
from ..pages import render_template
from .heads import find_category_heads, find_relation_heads

TEMPLATE = Path(__file__).with_name("model_card.md.jinja")
NOT_STATED = "not stated"
LINKER, ENTS, DEID = "bioclin_linker", "bioclin_ents", "bioclin_deid"
# Components with a `spans_key` that do not find entities.
OTHERS = (LINKER, "bioclin_sections", "bioclin_measurements")
# Ends of the names of scores that the card repeats from training.
SCORES = ("_p", "_r", "_f", "_acc", "_pearson", "_spearman")
LANGUAGES = {"es": "Spanish", "en": "English", "fr": "French"}
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


class Corpus(NamedTuple):
    """A corpus that a pipeline was trained on."""

    name: str = NOT_STATED
    license: str = NOT_STATED
    url: str = ""
    cite: str = ""


class Provenance(NamedTuple):
    """What a pipeline was made from; the names and licences that a user of it has to know."""

    corpora: tuple[Corpus, ...] = (Corpus(),)
    encoder: str = NOT_STATED
    encoder_license: str = NOT_STATED


def make_meta(
    meta: Mapping[str, Any],
    *,
    name: str,
    version: str,
    requirement: str,
    provenance: Provenance,
    metrics: Sequence[Mapping[str, Any]],
    linkers: Mapping[str, Mapping[str, Any]],
    kinds: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Complete the meta.json of a trained pipeline for its package.

    meta (Mapping): As `spacy train` wrote it.
    name, version (str): Of the package; the name without language.
    requirement (str): This library with its range; spaCy adds the others.
    metrics (Sequence): What `bioclin evaluate` wrote, for each corpus; without any, the scores of
        training are kept.
    linkers (Mapping): See `find_linkers`; a packaged knowledge base has a licence, too.
    kinds (Mapping | None): See `list_kinds`; what is not in it finds entities.
    RETURNS (dict): New meta.json. What spaCy has no key for is under "bioclin".
    """
    language = LANGUAGES.get(meta["lang"], meta["lang"])
    description = _describe_labels(meta, language, kinds or {})
    corpora = [
        {"name": corpus.name, "url": corpus.url, "author": corpus.cite, "license": corpus.license}
        for corpus in provenance.corpora
    ]
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
    licences = [
        f"corpus{' ' + corpus['name'] if len(corpora) > 1 else ''}: {corpus['license']}"
        for corpus in corpora
    ]
    licences.append(f"encoder: {encoder['license']}")
    licences += [f"knowledge base {kb['name']}: {kb['license']}" for kb in kbs]
    own = {
        "provenance": {
            "corpora": [corpus._asdict() for corpus in provenance.corpora],
            "encoder": provenance.encoder,
            "encoder_license": provenance.encoder_license,
        },
        "evaluations": [_describe_evaluation(each) for each in metrics],
    }
    return {
        **meta,
        "name": name,
        "version": version,
        "description": meta.get("description") or description,
        "license": "; ".join(licences),
        "sources": [_without_blanks(source) for source in (*corpora, encoder, *kbs)],
        "requirements": [requirement],
        "performance": _join_scores(metrics) if metrics else meta.get("performance", {}),
        "bioclin": own,
    }


def _describe_evaluation(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Choose what the package keeps of the metrics of a corpus."""
    return {
        "corpus": {**metrics["corpus"], "name": _corpus_name(metrics)},
        "layers": {
            layer: {
                "docs": scores["docs"],
                "labels": scores.get("annotated_labels"),  # None for all
                "strict": scores["strict"],
            }
            for layer, scores in metrics["layers"].items()
        },
        "relations": metrics.get("relations", {}),
        "categories": metrics.get("categories", {}),
        **{key: metrics[key] for key in ("speed", "date", "versions", "commit")},
    }


def _corpus_name(metrics: Mapping[str, Any]) -> str:
    """Name a corpus by its tasks, or by its file if it has none."""
    return ", ".join(metrics["corpus"].get("tasks", ())) or metrics["corpus"]["name"]


def _join_scores(metrics: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Join the scores of corpora. Several have the name of their corpus in the keys, as scores of
    several tasks in training have."""
    if len(metrics) == 1:
        return dict(metrics[0]["scores"])
    return {
        f"{_corpus_name(each)}_{key}": value
        for each in metrics
        for key, value in each["scores"].items()
    }


def _describe_labels(meta: Mapping[str, Any], language: str, kinds: Mapping[str, str]) -> str:
    by_kind: dict[str, set[str]] = {"Entities": set()}
    for component, labels in meta.get("labels", {}).items():
        by_kind.setdefault(kinds.get(component, "Entities"), set()).update(labels)
    if not any(by_kind.values()):
        return f"Entities of clinical text in {language}: none."
    return " ".join(
        f"{kind} of clinical text in {language}: {', '.join(sorted(labels))}."
        for kind, labels in by_kind.items()
        if labels
    )


def _without_blanks(source: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in source.items() if value}


def render_card(
    meta: Mapping[str, Any],
    pipeline: Path,
    linkers: Mapping[str, Mapping[str, Any]],
    note: str = "",
) -> str:
    """Write the model card, after Mitchell et al. (2019), "Model Cards for Model Reporting".

    meta (Mapping): As `make_meta` returns it.
    pipeline (Path): Folder of the pipeline, for the settings in its config.cfg.
    linkers (Mapping): See `find_linkers`.
    note (str): Markdown for its last section.
    RETURNS (str): Markdown. It holds labels and figures, no text of a note.
    """
    config = load_config(pipeline / "config.cfg", interpolate=True)
    layers = find_layers(config)
    evaluations = meta["bioclin"]["evaluations"]
    return render_template(
        TEMPLATE,
        meta=meta,
        package=f"{meta['lang']}_{meta['name']}",
        language=LANGUAGES.get(meta["lang"], meta["lang"]),
        provenance=meta["bioclin"]["provenance"],
        evaluations=evaluations,
        runs=join_runs(evaluations),
        scored=find_scored(meta["labels"], layers, evaluations),
        training_scores={
            key: value
            for key, value in meta["performance"].items()
            if isinstance(value, float) and key.endswith(SCORES)
        },
        layers=layers,
        relations=find_relation_heads(pipeline, config),
        categories=find_category_heads(config),
        deidentifies=any(c["factory"] == DEID for c in config["components"].values()),
        linkers=linkers,
        settings=read_settings(config),
        note=note.strip(),
    )


def find_layers(config: Mapping[str, Any]) -> dict[str, str | None]:
    """Find the components that write entities or PHI.

    RETURNS (dict): Component -> key of doc.spans that it writes, or None for doc.ents.
    """
    return {
        name: component.get("spans_key")
        for name, component in config["components"].items()
        if ("spans_key" in component or component["factory"] == ENTS)
        and component["factory"] not in OTHERS
        and "relations_key" not in component
    }


def find_scored(
    labels: Mapping[str, Sequence[str]],
    layers: Mapping[str, str | None],
    evaluations: Sequence[Mapping[str, Any]],
) -> dict[tuple[str, tuple[str, ...]], list[str]]:
    """Find the corpora that each label was scored on, among labels that the pipeline finds.

    RETURNS (dict): Layer and names of corpora -> the labels.
    """
    found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for component, spans_key in layers.items():
        layer = "ents" if spans_key is None else spans_key
        for label in labels.get(component, ()):
            corpora = tuple(
                each["corpus"]["name"]
                for each in evaluations
                if layer in each["layers"]
                and ((wanted := each["layers"][layer]["labels"]) is None or label in wanted)
            )
            found.setdefault((layer, corpora), []).append(label)
    return found


def join_runs(
    evaluations: Sequence[Mapping[str, Any]],
) -> list[tuple[list[str], Mapping[str, Any]]]:
    """Join the evaluations of one day with the same versions and commit.

    RETURNS (list): Names of the corpora, and one of their evaluations.
    """
    runs: dict[str, tuple[list[str], Mapping[str, Any]]] = {}
    for each in evaluations:
        key = str((each["date"][:10], each["versions"], each["commit"]))
        runs.setdefault(key, ([], each))[0].append(each["corpus"]["name"])
    return list(runs.values())


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
