"""Round trips through the formats of annotation tools: spans that are lost or moved.

    python -m benchmarks.accuracy.annotation_tools  # corpora from $BIOCLIN_DATA or ../shared/data

The 250 notes of the test split of MEDDOCAN go as they are, and once more with CR LF line ends, an
emoji and a combining accent put in before every line, together with a note made of nothing else.
Each format is written by `write_corpus` and read again; every span is then looked for at its
offsets, with its label. The expected figure is 0 everywhere; what a format has no place for is
listed by kind. Takes about two minutes on one core.
"""

import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.corpora import SPLITS, read_annotated
from benchmarks.harness import make_parser, report
from spacy_bioclin.corpora.docs import spans_of
from spacy_bioclin.corpora.export import write_corpus
from spacy_bioclin.corpora.files import raise_error
from spacy_bioclin.corpora.formats import FORMATS, find_files
from spacy_bioclin.types import AnnotatedText, SpanAnnotation

TOOLS = ("label-studio", "doccano", "prodigy", "inception", "brat")
FILES = ("doccano", "prodigy")  # written as one file
PREFIX = "👩‍⚕️ e\u0301 "  # put in before each line
HARD = "😀 disne\u0301a\r\n\tdolor\ry 👨‍👩‍👧 n\u0303u 🇪🇸\r\n" * 20


def make_hard(document: AnnotatedText) -> AnnotatedText:
    """Change the line ends of a note to CR LF, put PREFIX before each line, and move its spans."""
    starts: list[int] = []
    parts: list[str] = []
    length = 0
    for line in document.text.splitlines(keepends=True):
        body = line.rstrip("\n")
        starts += range(length + len(PREFIX), length + len(PREFIX) + len(body))
        parts.append(f"{PREFIX}{body}")
        length += len(parts[-1])
        if line.endswith("\n"):
            starts.append(length)
            parts.append("\r\n")
            length += 2
    text = "".join(parts)
    starts.append(length)
    annotations = []
    for span in spans_of(document):
        fragments = tuple((starts[start], starts[end - 1] + 1) for start, end in span.fragments)
        surface = " ".join(" ".join(text[start:end].split()) for start, end in fragments)
        annotations.append(span._replace(fragments=fragments, surface=surface))
    return AnnotatedText(f"{document.id} hard", text, tuple(annotations))


def make_hard_note() -> AnnotatedText:
    """Make a note with a span over every word, and over every line."""
    spans: list[SpanAnnotation] = []
    place = 0
    for line in HARD.splitlines(keepends=True):
        at = place
        for word in line.split():
            at = HARD.index(word, at)
            spans.append(SpanAnnotation(f"T{len(spans) + 1}", "WORD", ((at, at + len(word)),)))
            at += len(word)
        end = place + len(line.rstrip())
        spans.append(SpanAnnotation(f"T{len(spans) + 1}", "LINE", ((place, end),)))
        place += len(line)
    return AnnotatedText("hard", HARD, tuple(spans))


def count(documents: list[AnnotatedText]) -> Counter[tuple[Any, ...]]:
    """Count the spans by document, offsets and label."""
    return Counter(
        (document.id, span.fragments, span.label)
        for document in documents
        for span in spans_of(document)
    )


def go_through(tool: str, documents: list[AnnotatedText]) -> dict[str, Any]:
    """Write documents for a tool, read them again, and count what has changed."""
    form = FORMATS[tool]
    read: Callable[..., list[AnnotatedText]] = form.read_again or form.read
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / ("out.jsonl" if tool in FILES else "out")
        started = time.perf_counter()
        _, lost = write_corpus(documents, out, tool, allow_loss=True)
        again = [doc for file in find_files(tool, [out]) for doc in read(file, raise_error)]
        seconds = time.perf_counter() - started
    before, after = count(documents), count(again)
    texts = {document.id: document.text for document in again}
    return {
        "notes": len(documents),
        "spans": before.total(),
        "lost_or_moved": (before - after).total(),
        "new": (after - before).total(),
        "texts_changed": sum(texts.get(doc.id) != doc.text for doc in documents),
        "left_out": dict(lost),
        "seconds": round(seconds, 1),
    }


def main() -> None:
    """Run the benchmark."""
    parser = make_parser(__doc__)
    parser.add_argument("--notes", type=int, default=250, help="of MEDDOCAN, in order of their ids")
    args = parser.parse_args()
    documents = read_annotated("meddocan", *SPLITS["meddocan"]["test"])
    documents = sorted(documents, key=lambda document: document.id)[: args.notes]
    sets = {
        "meddocan": documents,
        "hard": [*map(make_hard, documents), make_hard_note()],
    }
    results = {
        name: {tool: go_through(tool, chosen) for tool in TOOLS} for name, chosen in sets.items()
    }
    report("annotation_tools", {"round_trips": results})


if __name__ == "__main__":
    main()
