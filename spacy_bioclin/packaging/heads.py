"""Find what a pipeline has beside entities: relations, and categories of texts and of pairs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import srsly

TEXTS, PAIRS = ("textcat", "textcat_multilabel"), "bioclin_pairs"


class RelationHead(NamedTuple):
    """A component that finds relations.

    spans_key (str | None): Layer of the entities that they are between; None for `doc.ents`.
    level (str): "mention" or "concept".
    types (dict[str, list[list[str]]]): Label -> pairs of the labels of head and child.
    symmetric (list[str]): Labels of relations without direction.
    """

    spans_key: str | None
    level: str
    types: dict[str, list[list[str]]]
    symmetric: list[str]


def find_relation_heads(pipeline: Path, config: Mapping[str, Any]) -> dict[str, RelationHead]:
    """Find the components that find relations.

    pipeline (Path): Folder of the pipeline; the types of a trained component are in its `cfg`.
    config (Mapping): Its config.
    RETURNS (dict[str, RelationHead]): Component -> what it finds.
    """
    heads = {}
    for name, component in config["components"].items():
        if "relations_key" not in component:
            continue
        stored = _read_stored(pipeline / name / "cfg")
        heads[name] = RelationHead(
            component.get("spans_key"),
            component.get("level") or "mention",
            stored.get("types") or component.get("types") or {},
            stored.get("symmetric") or component.get("symmetric") or [],
        )
    return heads


def _read_stored(path: Path) -> dict[str, Any]:
    """Read what a component was trained for; {} for one that has stored nothing."""
    try:
        stored = srsly.read_json(path)
    except (OSError, ValueError):
        return {}
    trained = stored.get("trained") if isinstance(stored, dict) else None
    return trained if isinstance(trained, dict) else {}


def find_category_heads(config: Mapping[str, Any]) -> dict[str, bool]:
    """Find the components that classify texts or pairs of texts.

    RETURNS (dict[str, bool]): Component -> whether it reads pairs.
    """
    factories = {name: each["factory"] for name, each in config["components"].items()}
    return {
        name: factory == PAIRS
        for name, factory in factories.items()
        if factory == PAIRS or factory in TEXTS
    }


def list_kinds(config: Mapping[str, Any]) -> dict[str, str]:
    """Say what the labels of components are for, where they are not for entities.

    RETURNS (dict[str, str]): Component -> "Relations", "Categories" or "Classes of pairs".
    """
    categories = {
        name: "Classes of pairs" if reads_pairs else "Categories"
        for name, reads_pairs in find_category_heads(config).items()
    }
    relations = [name for name, each in config["components"].items() if "relations_key" in each]
    return {**categories, **dict.fromkeys(relations, "Relations")}
