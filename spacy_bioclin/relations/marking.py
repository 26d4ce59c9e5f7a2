"""Texts in which the arguments of one candidate are marked or masked, for an encoder that reads
every candidate by itself."""

from collections.abc import Sequence
from typing import NamedTuple

from spacy.tokens import Doc

from .candidates import Mention

# The signs around head and child, outside and inside.
SIGNS = (("@", "*"), ("#", "^"))


class Marked(NamedTuple):
    """A marked text.

    doc (Doc): Without annotation.
    head, child (list[int]): The token of each mention of an argument: its first sign, or its mask.
    """

    doc: Doc
    head: list[int]
    child: list[int]


def mark_pair(
    doc: Doc,
    arguments: tuple[Sequence[Mention], Sequence[Mention]],
    part: tuple[int, int],
) -> Marked:
    """Mark the mentions of head and child with signs and entity types, which any vocabulary has:
    "@ * DRUG * aspirin @ relieves # ^ SYMPTOM ^ pain #". These are the typed entity markers with
    punctuation of Zhou and Chen (2022).

    arguments (tuple): Mentions of head and of child, all in the part.
    part (tuple[int, int]): First token and end of the text to keep.
    """
    opened: dict[int, list[tuple[int, int]]] = {}
    closed: dict[int, list[tuple[int, int]]] = {}
    labels = {}
    for role, mentions in enumerate(arguments):
        for mention in mentions:
            length = mention.end - mention.start
            opened.setdefault(mention.start, []).append((-length, role))
            closed.setdefault(mention.end - 1, []).append((length, -role))
            labels[role] = mention.label.replace("_", " ")
    words: list[str] = []
    spaces: list[bool] = []
    found: tuple[list[int], list[int]] = ([], [])
    for token in doc[slice(*part)]:
        for _, role in sorted(opened.get(token.i, ())):
            outside, inside = SIGNS[role]
            found[role].append(len(words))
            _append(words, spaces, [outside, inside, labels[role], inside])
        words.append(token.text)
        spaces.append(bool(token.whitespace_))
        for _, role in sorted(closed.get(token.i, ())):
            _append(words, spaces, [SIGNS[-role][0]])
    return Marked(Doc(doc.vocab, words=words, spaces=spaces), *found)


def mask_pair(
    doc: Doc,
    arguments: tuple[Sequence[Mention], Sequence[Mention]],
    part: tuple[int, int],
) -> Marked:
    """Replace the mentions of head and child by their types: "@DRUG$ relieves @SYMPTOM$", as in
    the papers on BioBERT and BLUE. Mentions that overlap become one word, "@DRUG-SYMPTOM$".

    arguments (tuple): Mentions of head and of child, all in the part.
    part (tuple[int, int]): First token and end of the text to keep.
    """
    spans = sorted((m.start, m.end, role) for role, own in enumerate(arguments) for m in own)
    labels = [own[0].label for own in arguments]
    regions: list[tuple[int, int, list[int]]] = []  # start, end, role of each mention
    for start, end, role in spans:
        if regions and start < regions[-1][1]:
            before = regions.pop()
            regions.append((before[0], max(before[1], end), [*before[2], role]))
        else:
            regions.append((start, end, [role]))
    words: list[str] = []
    spaces: list[bool] = []
    found: tuple[list[int], list[int]] = ([], [])
    position = part[0]
    for start, end, roles in [*regions, (part[1], part[1], [])]:
        for token in doc[position:start]:
            words.append(token.text)
            spaces.append(bool(token.whitespace_))
        for role in roles:
            found[role].append(len(words))
        if roles:
            name = "-".join(labels[role] for role in sorted(set(roles)))
            _append(words, spaces, [f"@{name}$"])
        position = end
    return Marked(Doc(doc.vocab, words=words, spaces=spaces), *found)


def _append(words: list[str], spaces: list[bool], new: Sequence[str]) -> None:
    """Append words that are separated by blanks from what is before and after them."""
    if spaces:
        spaces[-1] = True
    words.extend(new)
    spaces.extend([True] * len(new))
