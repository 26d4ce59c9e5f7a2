"""Convert spans to tags and tags to spans; the grammar of tags. Pure functions on token indices."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import BioclinError

# Positions of a token in an entity, per scheme: B(egin) I(nside) L(ast) U(nit). "O" comes first.
SCHEMES = {"BIO": "BI", "BILUO": "BILU"}
OUTSIDE = 0
# An unknown tag: the token is not annotated, or has a boundary of an entity inside.
MISSING = -1

TokenSpan = tuple[int, int, str]  # first token, token after the last, label


class TagSet(NamedTuple):
    """The tags of one flat layer of labels: "O", then each label's tags.

    scheme (str): "BIO" or "BILUO".
    labels (tuple[str, ...]): Entity types, sorted.
    """

    scheme: str
    labels: tuple[str, ...]

    @property
    def tags(self) -> tuple[str, ...]:
        """Names of the tags."""
        return ("O", *(f"{p}-{label}" for label in self.labels for p in SCHEMES[self.scheme]))

    @property
    def n_tags(self) -> int:
        """Number of tags."""
        return 1 + len(self.labels) * len(SCHEMES[self.scheme])


def make_tag_sets(labels: Iterable[str], *, scheme: str, nested: bool) -> list[TagSet]:
    """Group labels into layers; entities of one layer cannot overlap.

    nested (bool): Make one layer per label, so that entities of different labels may overlap,
        instead of one layer for all labels.
    RAISES (BioclinError): The scheme is unknown.
    """
    if scheme not in SCHEMES:
        raise BioclinError(f"scheme = {scheme!r} is unknown: use one of {sorted(SCHEMES)}")
    ordered = tuple(sorted(set(labels)))
    groups = [(label,) for label in ordered] if nested else [ordered]
    return [TagSet(scheme, group) for group in groups]


def encode_spans(spans: Iterable[TokenSpan], n_tokens: int, tag_set: TagSet) -> NDArray[np.int64]:
    """Convert spans to tags. Of overlapping spans the longest is kept, or the first of equally long
    ones; spans with labels of other layers are ignored.

    RETURNS (NDArray): Indices into `tag_set.tags`, (n_tokens,).
    """
    tags = np.full(n_tokens, OUTSIDE, dtype=np.int64)
    positions = SCHEMES[tag_set.scheme]
    first_tag = {label: 1 + i * len(positions) for i, label in enumerate(tag_set.labels)}
    mine = [span for span in spans if span[2] in first_tag]
    for start, end, label in sorted(mine, key=lambda span: (span[0] - span[1], span[0])):
        if tags[start:end].any():
            continue
        base = first_tag[label]
        tags[start:end] = base + 1
        tags[start] = base
        if tag_set.scheme == "BILUO":
            tags[end - 1] = base + (3 if end - start == 1 else 2)
    return tags


def tags_of(tag_set: TagSet, labels: Collection[str]) -> NDArray[np.bool_]:
    """Tell which tags are those of some labels.

    RETURNS (NDArray): False for "O", (n_tags,).
    """
    mine = np.array([label in labels for label in tag_set.labels], dtype=np.bool_)
    return np.concatenate([[False], mine.repeat(len(SCHEMES[tag_set.scheme]))])


class TaggedSpans(NamedTuple):
    """Spans in sequences of tags, in their order, (n_spans,) each.

    first, last (NDArray): First and last token, numbered over all sequences.
    label (NDArray): Index of the label in its tag set.
    """

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    label: NDArray[np.int64]


def decode_tags(tags: NDArray[np.int64], tag_set: TagSet) -> TaggedSpans:
    """Convert legal sequences of tags to spans.

    tags (NDArray): Indices into the tags of a tag set, for any number of sequences one after the
        other, (n_tokens,).
    tag_set (TagSet): The tag set, or one with the same scheme and number of labels.
    """
    positions = SCHEMES[tag_set.scheme]
    inside = np.flatnonzero(tags != OUTSIDE)
    label, position = np.divmod(tags[inside] - 1, len(positions))
    begins = np.flatnonzero(np.isin(position, [0, 3]))  # B and U
    # Between two spans there is only "O", so a span ends at the last other tag before the next one.
    ends = np.append(begins, len(inside))[1:] - 1
    return TaggedSpans(inside[begins], inside[ends], label[begins])


class Legal(NamedTuple):
    """Which tags are allowed where.

    transitions (NDArray): True if the tag of the column may follow that of the row,
        (n_tags, n_tags).
    start, end (NDArray): True if the tag may be the first or last of a text, (n_tags,).
    """

    transitions: NDArray[np.bool_]
    start: NDArray[np.bool_]
    end: NDArray[np.bool_]


def legal_transitions(tag_set: TagSet) -> Legal:
    """Derive the grammar of a scheme: an entity must continue or end with its own label."""
    position = np.array([tag[0] for tag in tag_set.tags])
    label = np.array([tag[2:] for tag in tag_set.tags])
    is_open = np.isin(position, ["B", "I"])
    must_continue = is_open & (tag_set.scheme == "BILUO")
    continues = np.isin(position, ["I", "L"])
    same_entity = is_open[:, None] & (label[:, None] == label)
    transitions = np.where(continues, same_entity, ~must_continue[:, None])
    return Legal(transitions, ~continues, ~must_continue)
