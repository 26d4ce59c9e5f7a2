"""Copy gold notes with other people, places, dates and numbers, to train a tagger on.

A tagger that sees each note with several sets of names learns where names occur instead of learning
the names themselves.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from spacy.tokens import Doc

from ..errors import BioclinError
from ..rewrite import rewrite
from ..types import GOLD_KEY
from .labels import find_phi_type
from .secret import Secret
from .surrogates.by_label import make_surrogate
from .surrogates.context import SurrogateContext


def make_copies(
    docs: Iterable[Doc],
    make_doc: Callable[[str], Doc],
    *,
    copies: int,
    spans_key: str,
    lang: str,
    scheme: str,
) -> Iterator[Doc]:
    """Copy gold Docs with surrogates instead of their PHI, and move the gold spans.

    PHI that has no surrogate (an age, a relative) stays.

    docs (Iterable[Doc]): Gold Docs of a corpus file.
    make_doc (Callable): The tokenizer that made them.
    copies (int): Number of copies of each Doc. The copies are always the same ones.
    spans_key (str): Layer of the gold PHI.
    lang (str): Language of the notes.
    scheme (str): Label scheme of the gold PHI.
    YIELDS (Doc): Gold Docs with this layer only.
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
            context = SurrogateContext(secret, lang)
            changed, moved = _replace(doc.text, sorted(layer), scheme, context)
            new = make_doc(changed)
            spans = [
                new.char_span(start, end, label=label, alignment_mode="expand")
                for start, end, label, _ in moved
            ]
            new.spans[spans_key] = [span for span in spans if span is not None]
            new.user_data[GOLD_KEY] = {**gold, "layers": {spans_key: moved}}
            yield new


def _replace(
    text: str, layer: list[list[Any]], scheme: str, context: SurrogateContext
) -> tuple[str, list[list[Any]]]:
    """Put surrogates into a text; of overlapping spans, only the first is replaced."""
    replacements: list[tuple[int, int, str]] = []
    for start, end, label, _ in layer:
        value = text[start:end]
        phi_type = find_phi_type(label, scheme, value)
        free = not replacements or replacements[-1][1] <= start
        if phi_type is not None and free:
            new = make_surrogate(value, phi_type, context)
            replacements.append((start, end, new or value))
    changed, offsets = rewrite(text, replacements)
    return changed, [
        [*offsets.to_safe(start, end), label, kb_id] for start, end, label, kb_id in layer
    ]
