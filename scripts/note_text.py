"""Add text of notes, and noisy copies of cases, to the text that an encoder is trained on.

    python -m scripts.note_text CLEAN --reports ../shared/data/notes/mtsamples_en.jsonl.xz

CLEAN is a folder of `bioclin clean-text`. Two parts are added for each of its languages: `notes`,
which has the training notes of assets/notes and transcribed reports with a line for each of theirs,
and `noisy`, with a noisy copy of every document of CLEAN. Dev notes are held out, test is not read.
"""

import json
import lzma
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from scripts import notes
from spacy_bioclin.cli.faults import report_faults
from spacy_bioclin.outputs import write_atomic
from spacy_bioclin.pretraining.text.corpus import SPLITS, find_files, read_documents
from spacy_bioclin.tokenization.capitals import lower_capitals
from spacy_bioclin.tokenization.noise import Noisy, add_noise

LANGS = ("es", "en")


def main(
    clean: Annotated[Path, typer.Argument(help="Folder of `bioclin clean-text`")],
    reports: Annotated[Path, typer.Option(help="English reports: {id, text} a line, .jsonl.xz")],
) -> None:
    """Write notes.LANG and noisy.LANG beside the parts of CLEAN."""
    for lang in LANGS:
        for split, of in zip(SPLITS, ("train", "dev"), strict=True):
            texts = list(read_notes(lang, of))
            if (lang, split) == ("en", "train"):
                texts += read_reports(reports)
            rng = random.Random(f"{lang} {split}")
            written = [split_lines(text, lang) for text in texts]
            copies = [copy_lines(text, lang, rng) for text in texts]
            write_part(clean / f"notes.{lang}.{split}.txt", [*written, *copies])
            cases = [" ".join(lines) for lines in read_documents(find_files(clean, split)[lang])]
            copies = [copy_lines(case, lang, rng) for case in cases]
            write_part(clean / f"noisy.{lang}.{split}.txt", copies)


def read_notes(lang: str, split: str) -> Iterator[str]:
    """Read the text of our notes."""
    for _, of, path in notes.list_files([lang]):
        if of == split:
            yield from (note.text for note in notes.read_notes(path))


def read_reports(path: Path) -> Iterator[str]:
    """Read transcribed reports."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        yield from (json.loads(line)["text"] for line in lines)


def split_lines(text: str, lang: str) -> list[str]:
    """Split a text into its lines that are not empty, as an encoder reads them."""
    lines = (line.strip() for line in lower_capitals(text, lang).splitlines())
    return [line for line in lines if line]


def copy_lines(text: str, lang: str, rng: random.Random) -> list[str]:
    """Make a noisy copy, and split it into lines."""
    return split_lines(add_noise(Noisy(text, ()), lang, rng).text, lang)


def write_part(path: Path, documents: Iterable[list[str]]) -> None:
    """Write documents with an empty line after each."""
    write_atomic(path, "".join("\n".join(lines) + "\n\n" for lines in documents if lines))


if __name__ == "__main__":
    typer.run(report_faults(main))
