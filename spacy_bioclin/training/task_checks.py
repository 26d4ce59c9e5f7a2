"""Check that the corpora of tasks have what their heads learn from."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ..corpora.task_corpora import TaskCorpus
from ..errors import BioclinError
from ..spans import get_spans, is_annotated
from ..types import TASK_KEY

ENTS, CATS = "doc.ents", "doc.cats"
# What spaCy's own components read and write.
PLACES = {"ner": ENTS, "beam_ner": ENTS, "textcat": CATS, "textcat_multilabel": CATS}


def find_place(nlp: Language, name: str) -> str | None:
    """Find where a component has its annotation.

    RETURNS (str | None): "doc.ents", "doc.cats" or 'doc.spans["KEY"]'; None if it is not known.
    """
    cfg = getattr(nlp.get_pipe(name), "cfg", None) or {}
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
        if place in writers:
            raise BioclinError(
                f"[components.{name}] and [components.{writers[place]}] both write {place}: give "
                "each a spans_key of its own, and convert its corpus with that layer"
            )
        if place is not None:
            writers[place] = name


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
            f"task {task}: no document of {tasks[task].path} has {places[name]}, the annotation "
            f"for [components.{name}]: convert the corpus with that layer, set the spans_key of "
            "the component, or take it out of heads"
        )


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
    key = cfg.get("spans_key")
    return {span.label_ for span in get_spans(doc, key)} if is_annotated(doc, key) else None
