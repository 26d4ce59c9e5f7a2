"""Find the components of a pipeline that write relations, links or categories, and score the
categories."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.training import Example

from .linking import canonical_id, written_forms

CATEGORIES = ("textcat", "textcat_multilabel", "bioclin_pairs")
SENTENCES = ("sentencizer", "senter", "parser", "bioclin_sentences")


class RelationFinder(NamedTuple):
    """A component that finds relations.

    name (str): Its name in the pipeline.
    relations_key (str): Where it writes them.
    spans_key (str | None): Layer of the entities that it reads; None for `doc.ents`.
    symmetric (tuple[str, ...]): Labels of relations without direction.
    level (str | None): "mention" or "concept"; None if the component does not say.
    labels (frozenset[str]): Labels that it can find; empty if it does not say.
    writers (tuple[str, ...]): Components before it that write to the layer that it reads.
    finds_entities (bool): Whether one of them finds entities, instead of changing those there are.
    """

    name: str
    relations_key: str
    spans_key: str | None
    symmetric: tuple[str, ...]
    level: str | None
    labels: frozenset[str]
    writers: tuple[str, ...]
    finds_entities: bool


def find_relation_components(nlp: Language) -> list[RelationFinder]:
    """Find the components that write relations: those with a `relations_key`."""
    found = []
    for index, (name, component) in enumerate(nlp.pipeline):
        key = get_setting(nlp, name, "relations_key")
        if not isinstance(key, str):
            continue
        spans_key = get_setting(nlp, name, "spans_key")
        writers = [each for each in nlp.pipe_names[:index] if _writes(nlp, each, spans_key)]
        finders = [each for each in writers if "doc.ents" not in nlp.get_pipe_meta(each).requires]
        found.append(
            RelationFinder(
                name,
                key,
                spans_key,
                tuple(get_setting(nlp, name, "symmetric") or ()),
                get_setting(nlp, name, "level"),
                frozenset(getattr(component, "labels", ())),
                tuple(writers),
                bool(finders),
            )
        )
    return found


class ConceptIds:
    """The ids of knowledge bases: retired, merged and other ids of a concept mean its own.

    bases (Sequence[Any]): Knowledge bases with `ids` and `number` (`linking.kb.KnowledgeBase`).
    """

    def __init__(self, bases: Sequence[Any]) -> None:
        self.bases = bases
        self._own: dict[str, str | None] = {}

    def find(self, id: str) -> str | None:
        """Find the own id of a concept, as `canonical_id` writes it; None if none has this id."""
        if id not in self._own:
            rows = ((kb, kb.number(form)) for kb in self.bases for form in written_forms(id))
            own = next((kb.ids[row] for kb, row in rows if row is not None), None)
            self._own[id] = None if own is None else canonical_id(str(own))
        return self._own[id]

    def get(self, id: str, default: str, /) -> str:
        """Find the own id of a concept, or give the default."""
        own = self.find(id)
        return default if own is None else own


def find_concept_ids(nlp: Language) -> ConceptIds | None:
    """Collect the knowledge bases of a pipeline.

    RETURNS (ConceptIds | None): None if a knowledge base does not list its ids, or there is none.
    """
    bases = [component.kb for _, component in nlp.pipeline if hasattr(component, "kb")]
    if not bases or not all(hasattr(kb, "ids") and hasattr(kb, "number") for kb in bases):
        return None
    return ConceptIds(bases)


def get_setting(nlp: Language, name: str, setting: str) -> Any:
    """Read a setting of a component: its attribute, else its config; None if it has none."""
    component = nlp.get_pipe(name)
    if hasattr(component, setting):
        return getattr(component, setting)
    own = getattr(component, "cfg", None)
    stored = own if isinstance(own, dict) and setting in own else nlp.get_pipe_config(name)
    return stored.get(setting)


def _writes(nlp: Language, name: str, spans_key: str | None) -> bool:
    """Check whether a component writes to a layer of spans."""
    meta, config = nlp.get_pipe_meta(name), nlp.get_pipe_config(name)
    assigns = {str(attribute).partition("[")[0] for attribute in meta.assigns}
    if meta.factory in SENTENCES or not assigns & {"doc.ents", "doc.spans"}:
        return False
    if spans_key is None and config.get("annotate_ents"):  # spaCy's span_ruler
        return True
    if "spans_key" in config:
        return bool(config["spans_key"] == spans_key)
    return ("doc.ents" if spans_key is None else "doc.spans") in assigns


def find_category_components(nlp: Language) -> list[str]:
    """Find the components that write `doc.cats` and have a scorer, such as spaCy's textcat."""
    return [
        name
        for name, component in nlp.pipeline
        if hasattr(component, "score")
        and (
            nlp.get_pipe_meta(name).factory in CATEGORIES
            or "doc.cats" in nlp.get_pipe_meta(name).assigns
        )
    ]


def score_categories_of(nlp: Language, examples: Sequence[Example]) -> dict[str, dict[str, Any]]:
    """Score each component that writes `doc.cats`, with its own scorer.

    examples (Sequence[Example]): Examples whose gold Docs have categories.
    RETURNS (dict[str, dict]): Component -> its scores, ready for JSON.
    """
    if not examples:
        return {}
    return {
        name: _to_plain(nlp.get_pipe(name).score(examples))  # type: ignore[attr-defined]
        for name in find_category_components(nlp)
    }


def _to_plain(value: Any) -> Any:
    """Turn NumPy's numbers into Python's, and what is not a finite number into None."""
    if isinstance(value, Mapping):
        return {str(key): _to_plain(each) for key, each in value.items()}
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
