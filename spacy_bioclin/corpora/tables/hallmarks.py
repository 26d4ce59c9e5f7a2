"""Hallmarks of Cancer: abstracts whose sentences have labels, in a tree of up to three levels.

`text/ID.txt` has a sentence a line. `labels/ID.txt` has the labels of each sentence after a "<":
none, NULL, or some that " AND" separates. The levels of a label are separated by "--":
"Resisting cell death--Apoptosis".

Baker et al. (2016), Automatic semantic classification of scientific literature according to the
hallmarks of cancer.
"""

from pathlib import Path

from ...errors import BioclinError
from ..files import BOM, read_text
from ..texts import LabeledText

NO_LABEL = "NULL"


def read_hallmarks(path: Path) -> list[LabeledText]:
    """Read the sentences of an abstract with labels of the first level: the ten hallmarks.

    path (Path): A file in the folder labels; its text is in the folder text beside that.
    RETURNS (list[LabeledText]): The sentences; the id of each is that of the abstract and a number.
    RAISES (BioclinError): The text is missing, or has another number of sentences.
    """
    return _read_abstract(path, depth=1)


def read_nodes(path: Path) -> list[LabeledText]:
    """Read the sentences of an abstract with all nodes of the tree that they have, see
    `read_hallmarks`. Whoever has a node has its parents."""
    return _read_abstract(path, depth=9)


def _read_abstract(path: Path, depth: int) -> list[LabeledText]:
    text = read_text(path.parent.parent / "text" / path.name).removeprefix(BOM)
    sentences = [line.strip() for line in text.split("\n") if line.strip()]
    segments = read_text(path).removeprefix(BOM).split("<")[1:]
    if len(sentences) != len(segments):
        raise BioclinError(
            f"{path}: has labels of {len(segments)} sentences, but the abstract has "
            f"{len(sentences)}; get both folders, labels and text, from the same release"
        )
    return [
        LabeledText(f"{path.stem}-{number}", (sentence,), _read_labels(segment, depth), None)
        for number, (sentence, segment) in enumerate(zip(sentences, segments, strict=True))
    ]


def _read_labels(segment: str, depth: int) -> tuple[str, ...]:
    labels = [label for label in segment.split(" AND") if label.strip() != NO_LABEL]
    return tuple(sorted({node for label in labels for node in list_nodes(label, depth)}))


def list_nodes(label: str, depth: int) -> list[str]:
    """List a node of the hallmarks with its parents, down to a depth.

    label (str): "Resisting cell death--Apoptosis"; its last level may be empty.
    """
    levels = [level.strip() for level in label.split("--") if level.strip()]
    return ["--".join(levels[:n]) for n in range(1, min(depth, len(levels)) + 1)]
