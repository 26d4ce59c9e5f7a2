"""Compare an imported pipeline with `transformers`' own on the same texts."""

import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc
from transformers import AutoTokenizer, TokenClassificationPipeline

from ...encoders.loading import max_window, quiet
from .aggregation import CharEntity, cover_tokens, trim_entities
from .checkpoint import Checkpoint

# By how much scores may differ: two orders of summing in fp32 do by about 1e-6.
TOLERANCE = 1e-4

Found = dict[tuple[int, int, str], float]  # first and last token + 1, label → score


class Parity(NamedTuple):
    """Counts of a comparison.

    texts (int): That the encoder reads at once. There the two have to agree.
    entities (int): That `transformers` finds in them.
    widened (int): Of these, with an edge inside a token: ours end at the token's.
    joined (int): Of these, left after widening as a part of another one.
    different (int): That only one of the two finds, or with another score.
    worst (float): Largest difference of two scores.
    long_texts (int): Longer than that.
    long_entities (int): That `transformers` finds in them, reading in chunks that overlap by half.
    long_ours (int): That ours finds there.
    long_same (int): That both find there.
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
    """Find the entities of texts twice.

    nlp (Language): What `make_pipeline` made of the same checkpoint.
    checkpoint (Checkpoint): Opened anew.
    """
    ner: Any = nlp.get_pipe("ner")
    tokenizer = AutoTokenizer.from_pretrained(checkpoint.folder, local_files_only=True)
    window = max_window(tokenizer, checkpoint.model.base_model)
    tokenizer.model_max_length = window
    with quiet():
        theirs = TokenClassificationPipeline(
            model=checkpoint.model,
            tokenizer=tokenizer,
            device="cpu",
            aggregation_strategy=ner.aggregation,
        )
    parity = Parity()
    for text in texts:
        doc = nlp(text)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Tokenizer does not support real words")
            short = len(tokenizer(text, verbose=False)["input_ids"]) <= window
            raw = theirs(text) if short else theirs(text, stride=window // 2)
        parity = _add(parity, doc, trim_entities(text, raw), ner.spans_key, short)
    return parity


def _add(
    parity: Parity, doc: Doc, entities: list[CharEntity], spans_key: str | None, short: bool
) -> Parity:
    """RETURNS (Parity): With what another text adds."""
    covered = cover_tokens(doc, entities, overlap=spans_key is not None)
    theirs: Found = {(e.start, e.end, e.label): e.probability for e in covered}
    ours = _find(doc, spans_key)
    both = theirs.keys() & ours.keys()
    if not short:
        return parity._replace(
            long_texts=parity.long_texts + 1,
            long_entities=parity.long_entities + len(theirs),
            long_ours=parity.long_ours + len(ours),
            long_same=parity.long_same + len(both),
        )
    gaps = [abs(theirs[key] - ours[key]) for key in both]
    whole = [doc.char_span(e.start, e.end) is not None for e in entities]
    return parity._replace(
        texts=parity.texts + 1,
        entities=parity.entities + len(entities),
        widened=parity.widened + whole.count(False),
        joined=parity.joined + len(entities) - len(covered),
        different=parity.different
        + len(theirs.keys() ^ ours.keys())
        + sum(gap > TOLERANCE for gap in gaps),
        worst=max([parity.worst, *gaps]),
    )


def _find(doc: Doc, spans_key: str | None) -> Found:
    if spans_key is None:
        return {(ent.start, ent.end, ent.label_): ent._.probability for ent in doc.ents}
    group = doc.spans[spans_key]
    return {
        (span.start, span.end, span.label_): float(score)
        for span, score in zip(group, group.attrs["scores"], strict=True)
    }
