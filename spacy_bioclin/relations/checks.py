"""Compare the relations of a training corpus with the candidates that a component will see."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from spacy.tokens import Doc
from spacy.training import Example

from ..errors import BioclinError, BioclinWarning
from .candidates import Candidates, Mention, Types
from .gold import get_gold_labels, get_gold_mentions, make_target


def check_gold(
    examples: Iterable[Example],
    *,
    name: str,
    table: Mapping[str, Sequence[Sequence[str]]],
    types: Types,
    spans_key: str | None,
    by_concept: bool,
    scope: str,
    labels_given: bool,
    find: Callable[[Doc, list[Mention]], Candidates],
) -> None:
    """Compare the annotated relations with the candidates; warn of those that no candidate is.

    name (str): Name of the component.
    table (Mapping): Label of a relation -> pairs of entity labels.
    types (Types): The same as arrays.
    spans_key (str | None), by_concept (bool), scope (str): Settings of the component.
    labels_given (bool): The labels were given, as for a corpus that is streamed: spaCy reads only
        its first examples, in which some labels may be missing.
    find (Callable): Finds the candidates of a Doc.
    RAISES (BioclinError): A label of the table never occurs, or its entities never do.
    """
    gold: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for eg in examples:
        gold.update(get_gold_labels(eg.reference, by_concept=by_concept))
        candidates = find(eg.predicted, get_gold_mentions(eg, spans_key))
        missed.update(make_target(eg, candidates, types, by_concept=by_concept).missed)
    layer = "doc.ents" if spans_key is None else f'doc.spans["{spans_key}"]'
    for label in types.labels:
        if not gold[label] and labels_given:
            continue
        if not gold[label]:
            raise BioclinError(
                f"[components.{name}.types] {label}: no training example has such a relation; the "
                f"labels that there are: {', '.join(sorted(gold)) or 'none'}"
            )
        if missed[label] == gold[label]:
            pairs = "; ".join(" → ".join(pair) for pair in table[label])
            raise BioclinError(
                f"[components.{name}] cannot learn {label}: none of its {gold[label]} annotated "
                f"relations is between entities ({pairs}) that are annotated in {layer} and within "
                f'scope = "{scope}". Convert the corpus with the layer of these entities, or '
                "change spans_key, scope or types"
            )
    if left_out := {label: count for label, count in gold.items() if label not in types.labels}:
        _warn(
            f"[components.{name}] does not learn these annotated relations, which types leaves "
            f"out: {_list(left_out)}"
        )
    if missed:
        _warn(
            f"[components.{name}] cannot learn {missed.total()} of {gold.total()} annotated "
            f"relations ({_list(missed)}): their entities are of other types, are not in {layer}, "
            f'or are not within scope = "{scope}". They count as missed in every score'
        )


def _list(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{label} {count}" for label, count in sorted(counts.items()))


def describe_nothing(name: str, *, by_concept: bool) -> str:
    """Describe a training corpus without relations."""
    remedy = "convert the corpus with its relations (bioclin convert --relations all)"
    if by_concept:
        return (
            f"[components.{name}] has no labels: no training example has a relation between "
            f'concepts that its entities have. Set level = "mention", or {remedy}'
        )
    return (
        f"[components.{name}] has no labels: no training example has a relation between entities: "
        f"{remedy}"
    )


def describe_sentences(name: str, input: str) -> str:
    """Describe a Doc without sentences."""
    start = f"[components.{name}] needs sentences, and the Doc has none: put bioclin_sentences "
    remedy = f"{start}before it (in training, into annotating_components too)"
    return remedy + (', or set scope = "window"' if input == "spans" else "")


def _warn(message: str) -> None:
    warnings.warn(message, BioclinWarning, stacklevel=4)
