"""Assertions of given mentions in short pieces of notes, by kind of trap, English and Spanish.

    python -m benchmarks.context.kinds dev --lang es
    python -m benchmarks.context.kinds dev --lang es --pipelines es_bioclin_sm --show history-ends

sets/kinds_es.txt and kinds_en.txt have a heading for each kind, and a piece on each line with its
mentions marked as in assets/notes. Of three pieces of a kind, the pipelines that ship learn from
the first, the second is dev, and the third is test, which is read at the end only. Without
--pipelines, `bioclin_context` is measured with its rules and sections alone; a pipeline runs as a
whole, with the marked mentions instead of its entities. What is planned is hypothetical. "right":
the share of mentions of which all attributes are right.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span

from benchmarks.context.texts import SETS
from benchmarks.harness import RESULTS, describe_machine, make_parser, read_json, write_json
from scripts.notes import ASSERTIONS, Mark, read_marks
from spacy_bioclin.cli.loading import load_pipeline

RESULT = RESULTS / "context_kinds.json"
SPLITS = ("train", "dev", "test")  # the first, second and third of three pieces
TOKENIZER = "spacy-bioclin.Tokenizer.v1"


class Piece(NamedTuple):
    """A piece of a note, and its mentions."""

    kind: str
    text: str
    marks: tuple[Mark, ...]


def read_pieces(path: Path, split: str) -> Iterator[Piece]:
    """Read the pieces of a split."""
    kind, n = "", 0
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("## "):
            kind, n = line.removeprefix("## ").strip(), 0
        elif line.strip():
            n += 1
            if SPLITS[(n - 1) % len(SPLITS)] == split:
                marked = line.replace("\\n", "\n").replace("!planned", "!hypothetical")
                yield Piece(kind, *read_marks(marked))


def make_rules(lang: str) -> Language:
    """Make a pipeline of rules alone."""
    nlp = spacy.blank(lang, config={"nlp": {"tokenizer": {"@tokenizers": TOKENIZER}}})
    for name in ("bioclin_sentences", "bioclin_sections", "bioclin_context"):
        nlp.add_pipe(name)
    return nlp


def judge(doc: Doc, marks: tuple[Mark, ...]) -> Iterator[tuple[Mark, set[str]]]:
    """Read the attributes that each mention has."""
    for mark in marks:
        span = _cover(doc, mark)
        yield mark, {kind for kind in ASSERTIONS if getattr(span._, kind)}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("split", choices=SPLITS)
    parser.add_argument("--lang", choices=("es", "en"), required=True)
    parser.add_argument("--pipelines", nargs="*", default=[], help="package, FOLDER, NAME=FOLDER")
    parser.add_argument("--show", help="print what is wrong in a kind, or in 'all'; store nothing")
    arguments = parser.parse_args()
    pieces = list(read_pieces(SETS / f"kinds_{arguments.lang}.txt", arguments.split))
    systems = {"rules": make_rules(arguments.lang)}
    for pipeline in arguments.pipelines:
        name, _, folder = pipeline.rpartition("=")
        systems[name or folder] = load_pipeline(folder)
    result = read_json(RESULT) if RESULT.exists() else {}
    for name, nlp in systems.items():
        right: dict[str, list[bool]] = defaultdict(list)
        docs = nlp.pipe(piece.text for piece in pieces)
        for piece, doc in zip(pieces, docs, strict=True):
            for mark, found in judge(doc, piece.marks):
                is_right = found == set(mark.assertions)
                right[piece.kind].append(is_right)
                if not is_right and arguments.show in (piece.kind, "all"):
                    said, want = " ".join(sorted(found)) or "-", " ".join(mark.assertions) or "-"
                    cues = [(one.kind, one.rule) for one in _cover(doc, mark)._.context]
                    shown = piece.text.replace("\n", "⏎")
                    mention = doc.text[mark.start : mark.end]
                    print(piece.kind, mention, f"{said}, want {want}", cues, shown, sep=" | ")
        every = [one for of_kind in right.values() for one in of_kind]
        scores = {kind: round(sum(row) / len(row), 4) for kind, row in right.items()}
        scores |= {"all": round(sum(every) / len(every), 4), "mentions": len(every)}
        print(name, *(f"{kind} {score}" for kind, score in scores.items()), sep="\n  ")
        result.setdefault(f"{arguments.lang} {arguments.split}", {})[name] = {
            "machine": describe_machine(),
            "right": scores,
        }
    if not arguments.show:
        write_json(RESULT, result, indent=1)


def _cover(doc: Doc, mark: Mark) -> Span:
    span: Span = doc.char_span(mark.start, mark.end, mark.label, alignment_mode="expand")
    return span


if __name__ == "__main__":
    main()
