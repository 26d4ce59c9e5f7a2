"""Types of the data that several parts of the package exchange, without behaviour."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.integer[Any]]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float32]

# Called with the share of a work that is done, from 0 to 1, and the number of things done.
Progress = Callable[[float, int], None]

# Offsets are code points of the whole, untouched text (Python `str` indices), end exclusive.
Fragment = tuple[int, int]

# (start, end, label): what the scorers compare.
CharSpan = tuple[int, int, str]

# Key in `doc.user_data` under which a gold Doc keeps the annotations of the corpus file, with their
# exact boundaries, which may be within tokens:
# {"id": str, "task": str, "layers": {layer: [[start, end, label, kb_id], ...]},
#  "annotated": {layer: [label, ...]}, "relations": [...], "concept_relations": [...]}.
# The layer "ents" is in `doc.ents`, any other layer is in `doc.spans[layer]`. "annotated", which
# may be missing, has the labels that the Doc was annotated for; a layer that is not in it is
# complete for every label. What the Doc has of other labels is not known. The last two keys are
# described in `annotations.relations`; a Doc without them was not annotated for relations.
GOLD_KEY = "bioclin_gold"

# Key in `doc.user_data` for the name of the task that a gold Doc belongs to, where a pipeline is
# trained on the corpora of several tasks.
TASK_KEY = "bioclin_task"

# Key in `doc.user_data`: True if the spans of a Doc are those of the gold Doc, not found by a
# component.
GIVEN_KEY = "bioclin_given"

# Key in the attrs of an encoder's model for a function that cuts a Doc into windows: (model, Doc,
# tokens with which a window may start, those of them that start a sentence) -> starts of windows.
FIND_WINDOWS = "find_window_starts"


class SpanAnnotation(NamedTuple):
    """A labelled span of a text, as in its corpus file.

    id (str): Identifier within the document ("T1").
    label (str): Entity type.
    fragments (tuple[Fragment, ...]): Character offsets, one pair per fragment, in file order.
    surface (str): The covered text as in the file ("" if the format has none).
    concept_ids (tuple[str, ...]): Terminology ids, in file order.
    """

    id: str
    label: str
    fragments: tuple[Fragment, ...]
    surface: str = ""
    concept_ids: tuple[str, ...] = ()


class RelationAnnotation(NamedTuple):
    """A labelled relation between annotations.

    id (str): Identifier within the document ("R1").
    label (str): Type of the relation.
    args (tuple[tuple[str, str], ...]): Pairs of role and annotation id.
    """

    id: str
    label: str
    args: tuple[tuple[str, str], ...]


class NoteAnnotation(NamedTuple):
    """A free-text note about an annotation (a "#" line of brat).

    id (str): Identifier within the document ("#1").
    kind (str): Type of the note ("AnnotatorNotes").
    target (str): Id of the annotation.
    text (str): Text of the note.
    """

    id: str
    kind: str
    target: str
    text: str


class OtherAnnotation(NamedTuple):
    """A line that is kept but not interpreted (the A, M, E and * lines of brat).

    id (str): Identifier within the document.
    raw (str): The whole line.
    """

    id: str
    raw: str


Annotation = SpanAnnotation | RelationAnnotation | NoteAnnotation | OtherAnnotation


class AnnotatedText(NamedTuple):
    """A document of a corpus with its annotations.

    id (str): File name without suffix, or the document id in the file.
    text (str): The text as in the file, including byte-order mark, CR and tabs.
    annotations (tuple[Annotation, ...]): The annotations, in file order.
    source (str): The file of the document, for error messages.
    """

    id: str
    text: str
    annotations: tuple[Annotation, ...] = ()
    source: str = ""
