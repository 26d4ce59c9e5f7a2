"""Copies of gold notes with other people, places, dates and numbers in them, to train a tagger on.

A tagger that sees each note with several sets of names learns where names stand instead of which
they are.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from spacy.tokens import Doc

from ..errors import BioclinError
from ..types import GOLD_KEY
from .labels import find_phi_type
from .rewrite import rewrite
from .secret import Secret
from .surrogates.by_label import make_surrogate
from .surrogates.dates import DateShift, shift_days


def make_copies(
    docs: Iterable[Doc],
    make_doc: Callable[[str], Doc],
    *,
    copies: int,
    spans_key: str,
    lang: str,
    scheme: str,
) -> Iterator[Doc]:
    """Put surrogates in the place of gold PHI, with the gold spans moved along. What has no
    surrogate (an age, a relative) stays.

    docs (Iterable[Doc]): Gold Docs of a corpus file.
    make_doc (Callable): The tokenizer that made them.
    copies (int): Of each Doc. Equal numbers give equal copies.
    spans_key (str): Layer of the gold PHI.
    lang (str): Language of the notes.
    scheme (str): Label scheme of the gold PHI.
    YIELDS (Doc): Gold Docs that have this layer alone.
    RAISES (BioclinError): A Doc has no such layer.
    """
    for index, doc in enumerate(docs):
        gold = doc.user_data.get(GOLD_KEY, {})
        layer = gold.get("layers", {}).get(spans_key)
        if layer is None:
            raise BioclinError(
                f"document {index + 1} has no layer {spans_key!r}: convert the corpus with it "
                "(bioclin convert --layer), or name another"
            )
        for copy in range(copies):
            secret = Secret(f"augmentation key {copy}".encode(), str(index))
            yield _copy(doc.text, gold, make_doc, secret, spans_key, lang, scheme)


def _copy(
    text: str,
    gold: dict[str, Any],
    make_doc: Callable[[str], Doc],
    secret: Secret,
    spans_key: str,
    lang: str,
    scheme: str,
) -> Doc:
    dates = DateShift(shift_days(secret, False))
    replacements: list[tuple[int, int, str]] = []
    for start, end, label, _ in sorted(gold["layers"][spans_key]):
        phi_type = find_phi_type(label, scheme, text[start:end])
        value = text[start:end]
        free = not replacements or replacements[-1][1] <= start
        if phi_type is not None and free:
            new = make_surrogate(value, phi_type, secret, lang=lang, dates=dates)
            replacements.append((start, end, new or value))
    changed, offsets = rewrite(text, replacements)
    doc = make_doc(changed)
    moved = []
    for start, end, label, kb_id in sorted(gold["layers"][spans_key]):
        moved.append([*offsets.to_safe(start, end), label, kb_id])
    spans = [doc.char_span(s, e, label=label, alignment_mode="expand") for s, e, label, _ in moved]
    doc.spans[spans_key] = [span for span in spans if span is not None]
    doc.user_data[GOLD_KEY] = {**gold, "layers": {spans_key: moved}}
    return doc
