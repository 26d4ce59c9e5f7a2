"""Choose the threshold of each label of a relation on a dev corpus."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ..annotations.relations import get_relations
from ..errors import BioclinError
from ..evaluation.components import find_relation_components
from ..evaluation.given import give_spans
from ..evaluation.relations import choose_level, compare_relations
from .component import RelationPipe


class Choice(NamedTuple):
    """The threshold of a label.

    threshold (float): From 0 to 1.
    f (float): F1 with it.
    f_before (float): F1 with what the component had before.
    n_gold (int): Annotated relations.
    """

    threshold: float
    f: float
    f_before: float
    n_gold: int


def choose_thresholds(nlp: Language, name: str, references: Sequence[Doc]) -> dict[str, Choice]:
    """Choose the threshold of each label with the best F1 between the annotated entities, and set
    it. Labels that the corpus lacks keep what they have.

    nlp (Language): The pipeline.
    name (str): A `bioclin_relations` in it.
    references (Sequence[Doc]): Gold Docs that it was not trained on.
    RETURNS (dict[str, Choice]): Label -> its threshold.
    RAISES (BioclinError): The corpus was not annotated for the relations of the component.
    """
    pipe: Any = nlp.get_pipe(name)
    assert isinstance(pipe, RelationPipe)
    before = dict(pipe.cfg["thresholds"])
    found = _collect(nlp, name, references)
    pipe.cfg["thresholds"] = dict.fromkeys(pipe.labels, 0.0)
    every = _collect(nlp, name, references)
    choices = {}
    for label in pipe.labels:
        gold = {(i, one) for i, (own, _) in enumerate(every) for one in own if one[0] == label}
        if not gold:
            continue
        scored = _list_scored(every, label)
        threshold, f = find_best([(p, one in gold) for one, p in scored.items()], n_gold=len(gold))
        old = set(_list_scored(found, label))
        f_before = 2 * len(old & gold) / max(len(old) + len(gold), 1)
        choices[label] = Choice(threshold, f, f_before, len(gold))
    if not choices:
        pipe.cfg["thresholds"] = before
        raise BioclinError(
            f"[components.{name}]: the corpus has no relation of its labels "
            f"({', '.join(pipe.labels)}): convert it with --relations"
        )
    chosen = {label: choice.threshold for label, choice in choices.items()}
    pipe.cfg["thresholds"] = {**before, **chosen}
    return choices


def find_best(scored: Iterable[tuple[float, bool]], *, n_gold: int) -> tuple[float, float]:
    """Find the threshold with the best F1; of several, the highest.

    scored (Iterable[tuple[float, bool]]): Probability of each candidate, and whether it is right.
    n_gold (int): Number of annotated relations, those that no candidate is included.
    RETURNS (tuple[float, float]): The threshold, in the middle between two probabilities, and F1;
        .5 and 0 if no candidate is right.
    """
    ordered = sorted(scored, reverse=True)
    best, threshold, tp = 0.0, 0.5, 0
    for n, (p, right) in enumerate(ordered, start=1):
        tp += right
        following = ordered[n][0] if n < len(ordered) else 0.0
        if following == p:
            continue  # a threshold cannot divide equal probabilities
        f = 2 * tp / (n + n_gold)
        if f > best:
            best, threshold = f, (p + following) / 2
    return threshold, best


# For a Doc, annotated relations, and the probability of each that was found.
Compared = tuple[set[Any], dict[Any, float]]


def _collect(nlp: Language, name: str, references: Sequence[Doc]) -> list[Compared]:
    """Find relations between the annotated entities. RETURNS (list[Compared]): Per Doc."""
    [finder] = [one for one in find_relation_components(nlp) if one.name == name]
    collected: list[Compared] = []
    pipe: Any = nlp.get_pipe(name)
    with nlp.select_pipes(disable=list(finder.writers)):
        docs = nlp.pipe(give_spans(nlp, reference) for reference in references)
        for doc, reference in zip(docs, references, strict=True):
            compared = compare_relations(
                Example(doc, reference), finder.relations_key, finder.symmetric
            )
            by_concept = choose_level([compared]) == "concept" or pipe.by_concept
            sides = compared.concepts if by_concept else compared.mentions
            gold = set() if sides is None else sides[0]
            scores: dict[Any, float] = {}
            for relation in get_relations(doc, finder.relations_key) if sides else ():
                key = _make_key(relation, by_concept, finder.symmetric)
                scores[key] = max(scores.get(key, 0.0), relation.probability or 0.0)
            collected.append((gold, scores))
    return collected


def _make_key(relation: Any, by_concept: bool, symmetric: Sequence[str]) -> tuple[Any, ...]:
    """Name a relation as `compare_relations` does."""
    arguments: Any
    if by_concept:
        arguments = relation.concepts
    else:
        arguments = [
            (span.start_char, span.end_char, span.label_)
            for span in (relation.head, relation.child)
        ]
    ordered = sorted(arguments) if relation.label in symmetric else arguments
    return relation.label, *ordered


def _list_scored(collected: Sequence[Compared], label: str) -> dict[Any, float]:
    return {
        (i, one): p
        for i, (_, scores) in enumerate(collected)
        for one, p in scores.items()
        if one[0] == label
    }
