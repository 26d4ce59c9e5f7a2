"""The result of de-identification: `doc._.deid`."""

from functools import cached_property
from typing import Any

from spacy.tokens import Doc, Span
from spacy.util import filter_spans

from ..rewrite import Edit, OffsetMap, rewrite
from ..spans import get_probabilities, set_spans
from .spans import PhiSpan, make_span

# Key in `doc.user_data` of what `doc._.deid` shows: plain lists and dicts that a DocBin can hold.
# The form of the key of an extension: spaCy's warnings show the whole value under another key.
DEID_KEY: Any = ("._.", "bioclin_deid", None, None)
OLD_DEID_KEY = "bioclin_deid"  # in Docs that 0.2 and before stored
# Attrs of span groups that have settings of a component, and nothing of a note.
SETTINGS = ("measurement_settings",)
# A letter that no note has, so that no value is found across it, between blanks, so that the words
# beside it are whole.
BLOT = " \ua66e "


class DeidResult:
    """A safe note, and what was changed.

    doc (Doc): The original; the results are in its user data.
    """

    def __init__(self, doc: Doc) -> None:
        self._doc = doc
        self._raw: dict[str, Any] = doc.user_data.get(DEID_KEY) or doc.user_data[OLD_DEID_KEY]

    @property
    def text(self) -> str:
        """The safe text."""
        return self._raw["text"]

    @property
    def spans(self) -> list[PhiSpan]:
        """Merged PHI, in code points of the original text."""
        return [PhiSpan(*span) for span in self._raw["spans"]]

    @property
    def offsets(self) -> OffsetMap:
        """Map between the offsets of the original text and those of the safe text."""
        return OffsetMap(Edit(*edit) for edit in self._raw["edits"])

    @property
    def audit(self) -> dict[str, Any]:
        """Counts, detectors, versions and the policy's hash; no PHI."""
        return self._raw["audit"]

    @property
    def checked_text(self) -> str:
        """The safe text in which the leak check searches: without masks, groups and shifted dates.

        These contain no PHI, but may look like it: "20-29 años" contains "29 años".
        """
        places = [(start, end, BLOT) for start, end in self._raw.get("written", ()) if start < end]
        return rewrite(self.text, places)[0]

    @property
    def phi_values(self) -> list[tuple[str, str]]:
        """Pairs of label and string that must not occur in any output. This is PHI."""
        return [(kind, value) for kind, value in self._raw["phi_values"]]

    @property
    def doc(self) -> Doc:
        """A Doc of the safe text, with the original's sentences, entities, span groups, links and
        extension values. The PHI's group has the replacements."""
        return self._built[0]

    @property
    def n_lost(self) -> int:
        """Number of the original's entities and spans that are not in the new Doc.

        All of their text was redacted, or they coincide with another entity.
        """
        return self._built[1]

    @cached_property
    def _built(self) -> tuple[Doc, int]:
        raw = self._raw
        words, at = [], 0
        for length, space in raw["tokens"]:
            words.append(self.text[at : at + length])
            at += length + space
        spaces = [bool(space) for _, space in raw["tokens"]]
        safe = Doc(self._doc.vocab, words=words, spaces=spaces)
        offsets, n_lost = self.offsets, 0
        if self._doc.has_annotation("SENT_START"):
            _carry_sentences(self._doc, safe, offsets)
        for key, group in self._doc.spans.items():
            if key == raw["spans_key"]:
                continue
            kept = [
                (moved, probability)
                for span, probability in zip(group, get_probabilities(self._doc, key), strict=True)
                if (moved := _move(span, safe, offsets)) is not None
            ]
            n_lost += len(group) - len(kept)
            set_spans(safe, key, [span for span, _ in kept], [score for _, score in kept])
            # Other attrs may have text of the original.
            settings = {name: value for name, value in group.attrs.items() if name in SETTINGS}
            safe.spans[key].attrs.update(settings)
        ents = [_move(ent, safe, offsets) for ent in self._doc.ents]
        apart = filter_spans(ent for ent in ents if ent is not None)
        safe.set_ents(apart, default="outside")
        n_lost += len(ents) - len(apart)
        places = [(offsets.to_safe(span.start, span.end), span) for span in self.spans]
        phi = [span._replace(start=at[0], end=at[1]) for at, span in places if at[0] < at[1]]
        replaced = [make_span(safe, span) for span in phi]
        set_spans(safe, raw["spans_key"], replaced, [span.confidence for span in phi])
        return safe, n_lost


def get_deid(doc: Doc) -> DeidResult | None:
    """Get `doc._.deid`: None before `bioclin_deid` ran."""
    has_result = DEID_KEY in doc.user_data or OLD_DEID_KEY in doc.user_data
    return DeidResult(doc) if has_result else None


def _carry_sentences(doc: Doc, safe: Doc, offsets: OffsetMap) -> None:
    starts = {offsets.to_safe(sent.start_char, sent.end_char)[0] for sent in doc.sents}
    for token in safe:
        token.is_sent_start = token.i == 0 or token.idx in starts


def _move(span: Span, safe: Doc, offsets: OffsetMap) -> Span | None:
    """Make the span in the safe Doc, with its link and extension values."""
    start, end = offsets.to_safe(span.start_char, span.end_char)
    moved = safe.char_span(
        start,
        end,
        label=span.label_,
        kb_id=span.kb_id_,
        span_id=span.id_,
        alignment_mode="expand",
    )
    if start == end or moved is None:
        return None
    for name in span._._extensions:
        default, method, getter, setter = Span.get_extension(name)
        value = None if method or (getter and not setter) else span._.get(name)
        if value is not None and value is not default:
            moved._.set(name, value)
    return moved
