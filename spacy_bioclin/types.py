"""Names for the data that travels between rooms. No behaviour lives here."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.integer[Any]]
FloatArray = NDArray[np.float32]

# Offsets are code points of the whole, untouched text (Python `str` indices), end exclusive.
Fragment = tuple[int, int]

# (start, end, label): what the scorers compare.
CharSpan = tuple[int, int, str]

# Key in `doc.user_data` under which a gold Doc keeps its annotations as they stand in the corpus
# file, before any boundary was snapped to a token:
# {"id": str, "task": str, "layers": {layer: [[start, end, label, kb_id], ...]}}.
# The layer "ents" is what `doc.ents` is made of, any other layer stands in `doc.spans[layer]`.
GOLD_KEY = "bioclin_gold"


class SpanAnnotation(NamedTuple):
    """A labelled span of a text as its corpus file states it.

    id (str): Identifier within the document ("T1").
    label (str): Entity type.
    fragments (tuple[Fragment, ...]): Character offsets, one pair per fragment, in file order.
    surface (str): The covered text as the file gives it ("" where the format has none).
    concept_ids (tuple[str, ...]): Terminology ids, in file order.
    """

    id: str
    label: str
    fragments: tuple[Fragment, ...]
    surface: str = ""
    concept_ids: tuple[str, ...] = ()


class RelationAnnotation(NamedTuple):
    """A labelled link between annotations: args are (role, annotation id)."""

    id: str
    label: str
    args: tuple[tuple[str, str], ...]


class NoteAnnotation(NamedTuple):
    """A free-text note on an annotation (brat's "#" lines)."""

    id: str
    kind: str
    target: str
    text: str


class OtherAnnotation(NamedTuple):
    """A line that is carried along but not interpreted (brat's A, M, E and * lines)."""

    id: str
    raw: str


Annotation = SpanAnnotation | RelationAnnotation | NoteAnnotation | OtherAnnotation


class AnnotatedText(NamedTuple):
    """One document of a corpus: its text and its annotations, in file order.

    id (str): File name without suffix, or the document id that the format gives.
    text (str): The text as it stands in the file: byte-order mark, CR and tabs included.
    annotations (tuple[Annotation, ...]): In file order.
    source (str): File the document was read from, for error messages.
    """

    id: str
    text: str
    annotations: tuple[Annotation, ...] = ()
    source: str = ""
