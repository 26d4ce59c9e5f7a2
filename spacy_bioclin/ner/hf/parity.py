"""Compare an imported pipeline with `transformers`' own on the same texts."""

import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc
from transformers import TokenClassificationPipeline

from ...encoders.files import open_tokenizer
from ...encoders.loading import max_window, quiet
from ...spans import get_probabilities, get_spans
from .aggregation import CharEntity, cover_tokens, trim_entities
from .checkpoint import Checkpoint

# Largest difference of scores; two orders of summation in fp32 differ by about 1e-6.
TOLERANCE = 1e-4


class Parity(NamedTuple):
    """Counts of a comparison.

    texts (int): Texts that fit one window, in which the two pipelines must agree.
    entities (int): Entities that `transformers` finds in them.
    widened (int): How many of these have an edge inside a token and were widened to it.
    joined (int): How many of these became part of another one when they were widened.
    different (int): Entities that only one pipeline finds, or that have different scores.
    worst (float): Largest difference of two scores.
    long_texts (int): Texts that do not fit one window.
    long_entities (int): Entities that `transformers` finds in them; windows overlap by half.
    long_ours (int): Entities that the imported pipeline finds in them.
    long_same (int): Entities that both find in them.
    """

    texts: int = 0
    entities: int = 0
    widened: int = 0
    joined: int = 0
    different: int = 0
    worst: float = 0.0
    long_texts: int = 0
    long_entities: int = 0
    long_ours: int = 0
    long_same: int = 0


def compare_with_transformers(
    nlp: Language, checkpoint: Checkpoint, texts: Iterable[str]
) -> Parity:
    """Find the entities of texts with an imported pipeline and with `transformers`.

    nlp (Language): What `make_pipeline` made of the checkpoint.
    checkpoint (Checkpoint): The same checkpoint, opened again.
    """
    ner: Any = nlp.get_pipe("ner")
    tokenizer = open_tokenizer(str(checkpoint.folder))
    window = max_window(tokenizer, checkpoint.model.base_model)
    tokenizer.model_max_length = window
    with quiet():
        pipeline = TokenClassificationPipeline(
            model=checkpoint.model,
            tokenizer=tokenizer,
            device="cpu",
            aggregation_strategy=ner.settings.aggregation,
        )
    parity = Parity()
    for text in texts:
        doc = nlp(text)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Tokenizer does not support real words")
            short = len(tokenizer(text, verbose=False)["input_ids"]) <= window
            raw = pipeline(text) if short else pipeline(text, stride=window // 2)
        parity = _add(parity, doc, trim_entities(text, raw), ner.spans_key, short)
    return parity


def _add(
    parity: Parity, doc: Doc, entities: list[CharEntity], spans_key: str | None, short: bool
) -> Parity:
    """Add the counts of another text."""
    covered = cover_tokens(doc, entities, overlap=spans_key is not None)
    expected = {(e.start, e.end, e.label): e.probability for e in covered}
    spans, probabilities = get_spans(doc, spans_key), get_probabilities(doc, spans_key)
    found = {
        (span.start, span.end, span.label_): probability or 0.0
        for span, probability in zip(spans, probabilities, strict=True)
    }
    both = expected.keys() & found.keys()
    if not short:
        return parity._replace(
            long_texts=parity.long_texts + 1,
            long_entities=parity.long_entities + len(expected),
            long_ours=parity.long_ours + len(found),
            long_same=parity.long_same + len(both),
        )
    gaps = [abs(expected[key] - found[key]) for key in both]
    whole = [doc.char_span(e.start, e.end) is not None for e in entities]
    return parity._replace(
        texts=parity.texts + 1,
        entities=parity.entities + len(entities),
        widened=parity.widened + whole.count(False),
        joined=parity.joined + len(entities) - len(covered),
        different=parity.different
        + len(expected.keys() ^ found.keys())
        + sum(gap > TOLERANCE for gap in gaps),
        worst=max([parity.worst, *gaps]),
    )
