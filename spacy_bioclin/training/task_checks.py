"""Check that the corpora of tasks have what their heads learn from."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ..annotations.relations import get_gold_concept_relations, get_gold_relations
from ..corpora.task_corpora import TaskCorpus
from ..errors import BioclinError
from ..spans import get_spans, is_annotated
from ..types import TASK_KEY

ENTS, CATS = "doc.ents", "doc.cats"
# What components without a setting for it read and write.
PLACES = {
    "ner": ENTS,
    "beam_ner": ENTS,
    "textcat": CATS,
    "textcat_multilabel": CATS,
    "bioclin_pairs": CATS,
}


def find_place(nlp: Language, name: str) -> str | None:
    """Find where a component has its annotation.

    RETURNS (str | None): "doc.ents", "doc.cats", 'doc.spans["KEY"]' or 'relations "KEY"'; None if
        it is not known.
    """
    cfg = getattr(nlp.get_pipe(name), "cfg", None) or {}
    if "relations_key" in cfg:
        return f'relations "{cfg["relations_key"]}"'
    if "spans_key" in cfg:
        return ENTS if cfg["spans_key"] is None else f'doc.spans["{cfg["spans_key"]}"]'
    return PLACES.get(nlp.get_pipe_meta(name).factory)


def check_places(nlp: Language, heads: Iterable[str]) -> None:
    """Check that no two heads write to the same place: the second would replace what the first
    has found.

    RAISES (BioclinError): Two do.
    """
    writers: dict[str, str] = {}
    for name in heads:
        place = find_place(nlp, name)
        # Different labels are side by side in doc.cats; graded pairs have one key.
        parts = [f'{CATS}["{key}"]' for key in _find_cats(nlp, name)] if place == CATS else [place]
        for part in parts:
            if part in writers:
                raise BioclinError(
                    f"[components.{name}] and [components.{writers[part]}] both write {part}: "
                    + _find_remedy(place)
                )
            if part is not None:
                writers[part] = name


def _find_cats(nlp: Language, name: str) -> Iterable[str]:
    """Find the keys of doc.cats that a component writes."""
    pipe: Any = nlp.get_pipe(name)
    return getattr(pipe, "labels", ()) or ("score",)


def _find_remedy(place: str | None) -> str:
    if place == CATS:
        return "rename the labels of one of their corpora, or train a pipeline for each"
    if place is not None and place.startswith("relations"):
        return "give each a relations_key of its own"
    return "give each a spans_key of its own, and convert its corpus with that layer"


def check_annotation(
    nlp: Language,
    tasks: Mapping[str, TaskCorpus],
    heads: Mapping[str, Iterable[str]],
    examples: Iterable[Example],
) -> Iterator[Example]:
    """Pass on the examples of all tasks, and check that each task has annotation for each of its
    heads, and that tasks write labels alike.

    heads (Mapping[str, Iterable[str]]): Task -> the components that learn from it, or are scored.
    YIELDS (Example): In order.
    RAISES (BioclinError): There is no annotation for a head, or labels differ only in case.
    """
    places = {name: find_place(nlp, name) for names in heads.values() for name in names}
    empty = {(task, name) for task, names in heads.items() for name in names if places[name]}
    seen: dict[tuple[str, str], dict[str, str]] = {}
    for eg in examples:
        task = eg.reference.user_data[TASK_KEY]
        for name in heads[task]:
            labels = _find_labels(nlp, name, places[name], eg.reference)
            if labels is None:
                continue
            empty.discard((task, name))
            for label in labels:
                forms = seen.setdefault((name, label.casefold()), {})
                forms.setdefault(label, task)
                if len(set(forms.values())) > 1:
                    raise _describe_forms(name, forms)
        yield eg
    for task, name in sorted(empty):
        raise BioclinError(
            f"task {task}: no document of {tasks[task].path} has {_describe(places[name])}, the "
            f"annotation for [components.{name}]: {_find_source(places[name])}, or take it out of "
            "heads"
        )


def _describe(place: str | None) -> str | None:
    return "relations" if place is not None and place.startswith("relations") else place


def _find_source(place: str | None) -> str:
    if place == CATS:
        return "make the corpus with `bioclin convert-table`"
    if place is not None and place.startswith("relations"):
        return "convert the corpus with --relations"
    return "convert the corpus with that layer, set the spans_key of the component"


def _describe_forms(name: str, forms: Mapping[str, str]) -> BioclinError:
    """Describe two forms of a label in two tasks."""
    found = " and ".join(f"{label} from task {task}" for label, task in forms.items())
    return BioclinError(
        f"[components.{name}] would learn {found} as different labels: write them alike in all "
        "corpora (`bioclin convert --label` or `--common`)"
    )


def _find_labels(nlp: Language, name: str, place: str | None, doc: Doc) -> set[str] | None:
    """Find the labels of a Doc for a component; None if the Doc is not annotated for it."""
    if place is None:
        return None
    if place == CATS:
        return set(doc.cats) or None
    cfg: dict[str, Any] = getattr(nlp.get_pipe(name), "cfg", None) or {}
    if "relations_key" in cfg:
        read = get_gold_concept_relations if cfg["level"] == "concept" else get_gold_relations
        relations = read(doc)
        return None if relations is None else {relation.label for relation in relations}
    key = cfg.get("spans_key")
    return {span.label_ for span in get_spans(doc, key)} if is_annotated(doc, key) else None
