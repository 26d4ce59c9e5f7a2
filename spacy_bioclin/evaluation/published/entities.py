"""Published scores of entities: strict F1, and the score of the BLUE benchmark."""

from collections.abc import Iterable, Iterator, Sequence

from spacy.training import Example

from ...types import CharSpan
from ..metrics import ENTS, annotated_layers
from ..spans import Counts, compare, score_spans
from .scoring import Scores, TaskScoring

OUTSIDE, BEGIN, INSIDE = "O", "B", "I"
Compared = tuple[set[CharSpan], set[CharSpan]]


def score_entities_strict(egs: Sequence[Example], task: TaskScoring) -> Scores:
    """Compute micro F1 of entities with exact offsets and label, over all layers of the task.

    A layer that a predicted Doc does not have counts as missed.

    egs (Sequence[Example]): The Examples, which are not changed.
    task (TaskScoring): Its `layers` count.
    RETURNS (dict[str, float | None]): "value" is F1; "p", "r", "macro_f" and "docs". All are None
        if no gold Doc is annotated for a layer.
    """
    docs = [(eg.predicted.text, pair) for eg in egs for pair in _compare(eg, task.layers)]
    if not docs:
        return dict.fromkeys(("value", "p", "r", "macro_f", "docs"))
    scores = score_spans(pair for _, pair in docs)
    prf = scores.micro.prf()
    return {
        "value": prf["f"],
        "p": prf["p"],
        "r": prf["r"],
        "macro_f": scores.macro["f"],
        "docs": len(docs),
    }


def score_entities_blue(egs: Sequence[Example], task: TaskScoring) -> Scores:
    """Compute F1 of entities as BLUE's NER was scored for ouBioBERT, see `count_phrases`.

    Its label does not count, and neither does where a text ends. Here, each character has a tag, so
    that the tokenizer does not matter. Where entities overlap, the longest is tagged.

    egs (Sequence[Example]): The Examples, which are not changed.
    task (TaskScoring): Its `layers` count.
    RETURNS (dict[str, float | None]): "value" is F1; "p", "r" and "docs". All are None if no gold
        Doc is annotated for a layer.
    """
    docs = [(eg.predicted.text, pair) for eg in egs for pair in _compare(eg, task.layers)]
    if not docs:
        return dict.fromkeys(("value", "p", "r", "docs"))
    counts = count_phrases(
        tags
        for text, (gold, found) in docs
        for tags in zip(tag_characters(text, gold), tag_characters(text, found), strict=True)
    )
    prf = counts.prf()
    return {"value": prf["f"], "p": prf["p"], "r": prf["r"], "docs": len(docs)}


def _compare(eg: Example, layers: Sequence[str]) -> Iterator[Compared]:
    """Read the gold and the predicted spans of each layer that the gold Doc is annotated for."""
    for layer in layers or sorted(annotated_layers(eg.reference)):
        # A pipeline may set nested entities in doc.spans["ents"], which doc.ents cannot have.
        spans_key = None if layer == ENTS and ENTS not in eg.predicted.spans else layer
        if (pair := compare(eg, spans_key)) is not None:
            yield pair


def tag_characters(text: str, spans: Iterable[CharSpan]) -> list[str]:
    """Give each character of a text a tag "B", "I" or "O"; of spans that overlap, the longest."""
    tags = [OUTSIDE] * len(text)
    for start, end, _ in sorted(spans, key=lambda span: (span[0] - span[1], span)):
        if start < end and all(tag == OUTSIDE for tag in tags[start:end]):
            tags[start:end] = [BEGIN, *[INSIDE] * (end - start - 1)]
    return tags


def count_phrases(tags: Iterable[tuple[str, str]]) -> Counts:
    """Compare the phrases of two sequences of tags, as utils/metrics/ner.py of the repository
    sy-wada/blue_benchmark_with_transformers does.

    All sentences are one sequence. A phrase is the set of the positions of a "B" and of every "I"
    until the next "B", wherever it is: an "I" after "O" continues the phrase, so that entities in
    several parts can be scored, and so does an "I" at the start of the next sentence. The type in a
    tag ("B-Disease") does not count. An "I" before any "B" begins a phrase; the script fails there.

    tags (Iterable[tuple[str, str]]): Reference and predicted tag of each token of the corpus.
    RETURNS (Counts): Phrases of both, of the prediction only, and of the reference only.
    """
    phrases: tuple[list[list[int]], list[list[int]]] = ([], [])
    for position, pair in enumerate(tags):
        for own, tag in zip(phrases, pair, strict=True):
            if tag.startswith(BEGIN) or (tag.startswith(INSIDE) and not own):
                own.append([position])
            elif tag.startswith(INSIDE):
                own[-1].append(position)
    reference, predicted = (set(map(tuple, own)) for own in phrases)
    return Counts.of_sets(reference, predicted)
