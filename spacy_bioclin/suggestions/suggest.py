"""Suggest notes and doubtful gold spans: the algorithms of this folder on Docs and texts."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from ..errors import BioclinError
from ..evaluation.confusion import LayerDoc
from ..evaluation.spans import reference_spans
from ..spans import annotated_labels
from ..types import GOLD_KEY, CharSpan, FloatArray
from .gold import Doubt, JudgedDoc, find_doubts, sort_doubts
from .predict import ENTS, Prediction, predict_notes
from .selection import make_word_vectors, select_notes

N_PLACES = 6  # of a note, of which the pipeline is least sure


class Suggestion(NamedTuple):
    """A note to annotate.

    id (str): Id of the note.
    text (str): Its text.
    uncertainty (float): Entropy of its tags; nats, of the whole note or per word.
    distance (float): From the nearest note that is annotated or comes before, from 0 to 1.
    n_words (int): Number of its words.
    places (Sequence[tuple[int, int]]): Characters of which the pipeline is least sure, in the order
        of the text.
    """

    id: str
    text: str
    uncertainty: float
    distance: float
    n_words: int
    places: Sequence[tuple[int, int]]


def suggest_notes(
    nlp: Language,
    notes: Sequence[tuple[str, str]],
    n: int,
    *,
    annotated: Sequence[str] = (),
    layers: Sequence[str] = (),
    per_word: bool = False,
    on_note: Callable[[int], None] = lambda n_done: None,
) -> list[Suggestion]:
    """Suggest the notes to annotate next.

    nlp (Language): A pipeline that finds entities with probabilities.
    notes (Sequence[tuple[str, str]]): Id and text of each note.
    n (int): How many notes to suggest.
    annotated (Sequence[str]): Texts of notes that are annotated; they are not suggested again.
    layers (Sequence[str]): See `predict_notes`.
    per_word (bool): Divide the uncertainty of a note by its number of words, so that long notes,
        which take longer to annotate, have no advantage.
    on_note (Callable): Called with the number of notes that are read.
    RETURNS (list[Suggestion]): The notes, the best first.
    RAISES (BioclinError): See `predict_notes`; or all notes are annotated.
    """
    known = set(annotated)
    notes = [(id, text) for id, text in notes if text not in known]
    if not notes:
        raise BioclinError("all notes are annotated already; give others")
    texts = [text for _, text in notes]
    found: list[Prediction] = []
    for prediction in predict_notes(nlp, [*texts, *annotated], layers):
        found.append(prediction)
        on_note(len(found))
    _check_probabilities(found)
    n_words = [max(len(text.split()), 1) for text in texts]
    uncertainty = np.array([each.uncertainty for each in found[: len(texts)]])
    if per_word:
        uncertainty = uncertainty / n_words
    vectors = _make_vectors(found, [*texts, *annotated])
    chosen = select_notes(uncertainty, vectors[: len(texts)], n, annotated=vectors[len(texts) :])
    return [
        Suggestion(
            *notes[each.number],
            each.uncertainty,
            each.distance,
            n_words[each.number],
            _find_places(found[each.number]),
        )
        for each in chosen
    ]


def _check_probabilities(found: Iterable[Prediction]) -> None:
    """Check that a pipeline says how sure it is.

    RAISES (BioclinError): It does not.
    """
    layers = [layer for each in found for layer in each.layers.values()]
    known = (p is not None for layer in layers for p in layer.spans.values())
    if not any(known) and all(layer.entropy is None for layer in layers):
        raise BioclinError(
            "the pipeline gives no probabilities, by which notes are chosen; use one with "
            "bioclin_ner, or with another component that gives its spans probabilities"
        )


def _make_vectors(found: Sequence[Prediction], texts: Sequence[str]) -> FloatArray:
    """Take the vectors of the encoder; without one, make vectors of words."""
    vectors = [each.vector for each in found]
    widths = {len(vector) for vector in vectors if vector is not None}
    if len(widths) != 1:
        return make_word_vectors(texts)
    empty = np.zeros(widths.pop(), dtype=np.float32)  # of a note without words
    return np.stack([empty if vector is None else vector for vector in vectors])


def _find_places(prediction: Prediction) -> list[tuple[int, int]]:
    """Find the tokens with the highest entropy, or the least certain spans; neighbours are one."""
    spans: list[tuple[float, int, int]] = []
    for layer in prediction.layers.values():
        if layer.entropy is None:
            items = layer.spans.items()
            spans += [(p, start, end) for (start, end, _), p in items if p is not None]
        else:
            tokens = zip(layer.entropy.tolist(), prediction.starts, prediction.ends, strict=True)
            spans += [(-entropy, start, end) for entropy, start, end in tokens if entropy > 0]
    places = sorted((start, end) for _, start, end in sorted(spans)[:N_PLACES])
    merged: list[tuple[int, int]] = []
    for start, end in places:
        if merged and start <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def check_gold(
    nlp: Language,
    docs: Sequence[Doc],
    *,
    layers: Sequence[str] = (),
    on_note: Callable[[int], None] = lambda n_done: None,
) -> list[Doubt]:
    """Find the gold spans that look wrong to a pipeline that was not trained on them.

    docs (Sequence[Doc]): Gold Docs.
    layers (Sequence[str]): See `predict_notes`.
    on_note (Callable): Called with the number of Docs that are read.
    RETURNS (list[Doubt]): The most confident disagreements first.
    RAISES (BioclinError): See `predict_notes`; or no Doc is annotated for a layer of the pipeline.
    """
    judged: dict[str, list[JudgedDoc]] = {}
    found: list[Prediction] = []
    predictions = predict_notes(nlp, (doc.text for doc in docs), layers, whole=True)
    for number, (doc, prediction) in enumerate(zip(docs, predictions, strict=True), start=1):
        for layer in prediction.layers:
            if one := _judge(doc, layer, prediction, str(number)):
                judged.setdefault(layer, []).append(one)
        found.append(prediction._replace(vector=None))
        on_note(number)
    _check_probabilities(found)
    if not judged:
        names = ", ".join(dict.fromkeys(layer for each in found for layer in each.layers))
        raise BioclinError(
            f"the gold Docs are not annotated for a layer of the pipeline ({names}); convert the "
            "corpus with that layer (bioclin convert --layer)"
        )
    every = [doubt for layer, each in judged.items() for doubt in find_doubts(layer, each)]
    return sort_doubts(every)


def _judge(doc: Doc, layer: str, prediction: Prediction, default_id: str) -> JudgedDoc | None:
    """Collect the gold and the predicted spans of a layer; None if the Doc is not annotated."""
    key = None if layer == ENTS and ENTS not in doc.spans else layer
    reference = reference_spans(doc, key)
    if reference is None:
        return None
    labels = annotated_labels(doc, key)
    found: dict[CharSpan, float | None] = {
        span: probability
        for span, probability in prediction.layers[layer].spans.items()
        if labels is None or span[2] in labels
    }
    id = doc.user_data.get(GOLD_KEY, {}).get("id") or default_id
    compared = LayerDoc(id, doc.text, reference, set(found), labels)
    has_tags = prediction.layers[layer].outside is not None
    absence = partial(prediction.find_absence, layer) if has_tags else None
    return JudgedDoc(compared, found, absence)
