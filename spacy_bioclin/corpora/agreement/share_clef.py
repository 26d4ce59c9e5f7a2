"""The files of ShARe/CLEF eHealth 2013, task 1: disorders of clinical notes, with UMLS concepts.

Folder `text` has NAME.txt, and folder `pipe` beside it NAME.txt or NAME.pipe.txt with a disorder a
line; one in several fragments has several pairs of offsets:

    00176-102920-ECHO_REPORT.txt||Disease_Disorder||C0031039||120||140

Offsets count characters from 0, and the end is exclusive. "CUI-less" means that no concept fits.

Written from the public documentation, and not tested on the corpus, which needs an agreement.
Pradhan et al. (2015), Evaluating the state of the art in disorder recognition and normalization of
the clinical narrative.
"""

from pathlib import Path

from ...errors import BioclinError
from ...types import AnnotatedText, SpanAnnotation
from ..files import BOM, OnError, check_offsets, from_file_path, raise_error, read_text, skip_errors

PIPES = "||"
NO_CONCEPT = "cui-less"
PIPE_FOLDER = "pipe"
PIPE_SUFFIX = ".pipe"


def parse_share_clef(text: str, pipe: str, id: str, source: str) -> AnnotatedText:
    """Read the contents of the two files of a note.

    text, pipe (str): The contents.
    id (str): Identifier of the document; the first field of each line is this or this with .txt.
    source (str): Name of the file with the annotations, for error messages.
    RETURNS (AnnotatedText): The document.
    RAISES (BioclinError): A line is malformed, or about another note; it names file and line.
    """
    spans: list[SpanAnnotation] = []
    for number, line in enumerate(pipe.removeprefix(BOM).split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{source}, line {number}"
        fields = [field.strip() for field in line.split(PIPES)]
        if len(fields) < 5 or len(fields) % 2 == 0 or not fields[1]:
            raise BioclinError(
                f"{where}: expected file||label||concept||start||end, and further pairs of start "
                f"and end; found {len(fields)} fields"
            )
        if fields[0].removesuffix(".txt").removesuffix(PIPE_SUFFIX) != id:
            raise BioclinError(f"{where}: the line does not begin with the name of its note")
        pairs = zip(fields[3::2], fields[4::2], strict=True)
        fragments = tuple(check_offsets(start, end, len(text), where) for start, end in pairs)
        concepts = (fields[2],) if fields[2] and fields[2].lower() != NO_CONCEPT else ()
        spans.append(
            SpanAnnotation(f"T{len(spans) + 1}", fields[1], fragments, concept_ids=concepts)
        )
    return AnnotatedText(id, text, tuple(spans), source)


@skip_errors
def read_share_clef(path: Path, on_error: OnError = raise_error) -> list[AnnotatedText]:
    """Read the note of a .txt file; its annotations are in the folder `pipe` beside its own."""
    if path.suffix != ".txt" or path.parent.name == PIPE_FOLDER or path.stem.endswith(PIPE_SUFFIX):
        raise BioclinError(f"{path}: want a text; its annotations are found by its name")
    folder = path.parent.parent / PIPE_FOLDER
    names = [path.name, f"{path.stem}{PIPE_SUFFIX}.txt", f"{path.stem}{PIPE_SUFFIX}"]
    places = [*(folder / name for name in names), path.with_suffix(PIPE_SUFFIX)]
    pipe = next((place for place in places if place.is_file()), None)
    if pipe is None:
        raise BioclinError(
            f"{path}: neither {names[0]} nor {names[1]} is in {folder}; make an empty file for a "
            "note without disorders"
        )
    return [parse_share_clef(read_text(path), read_text(pipe), from_file_path(path), str(pipe))]
