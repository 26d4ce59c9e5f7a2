"""Convert a corpus: files of any format into gold Docs for training."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc

from ..errors import BioclinError
from ..outputs import Output
from ..types import AnnotatedText
from .docbin import write_docs
from .docs import ALL_ENTS, Layers, make_gold_doc
from .files import OnError, raise_error
from .formats import FORMATS, add_targets, find_files, relabel
from .relations.gold import ALL, RelationLabels
from .report import LossReport, make_report_output


def ignore(*args: Any) -> None:
    """Do nothing; the default of callbacks."""


def keep_all(id: str) -> bool:
    """Keep every document; the default of `keep`."""
    return True


def read_corpus(
    format: str,
    paths: Sequence[Path],
    *,
    labels: Mapping[str, str] | None = None,
    targets: Mapping[str, str] | None = None,
    keep: Callable[[str], bool] = keep_all,
    on_error: OnError = raise_error,
    on_progress: Callable[[float, int], None] = ignore,
) -> Iterator[AnnotatedText]:
    """Read the documents of a corpus.

    format (str): One of `FORMATS`.
    paths (Sequence[Path]): Files, and folders that are searched at any depth.
    labels (Mapping[str, str] | None): Old label -> new label, see `relabel`.
    targets (Mapping[str, str] | None): Old label -> label of what its relations lead to, see
        `add_targets`.
    keep (Callable[[str], bool]): Whether to keep a document, by its id; see `Task.has_document`.
    on_error (OnError): Called for each document that cannot be read.
    on_progress (Callable): Called with the share done, from 0 to 1, and the number of documents.
    YIELDS (AnnotatedText): The documents, in the order of the paths.
    RAISES (BioclinError): The format is unknown, there are no such files, or no document in them is
        kept.
    """
    if format not in FORMATS:
        raise BioclinError(f"format is {format!r}, want one of {', '.join(FORMATS)}")
    files = find_files(format, paths)
    n_done = n_kept = 0
    for n_files, file in enumerate(files):
        documents = FORMATS[format].read(file, on_error)
        for number, document in enumerate(documents, start=1):
            if keep(document.id):
                yield relabel(add_targets(document, targets or {}), labels or {})
                n_kept += 1
            n_done += 1
            on_progress((n_files + number / len(documents)) / len(files), n_kept)
    if n_done and not n_kept:
        raise BioclinError(
            f"none of the {n_done} documents in {', '.join(map(str, paths))} belongs to the split; "
            "is this another release of the corpus?"
        )


def convert_to_docs(
    format: str,
    paths: Sequence[Path],
    out: Path | Output,
    *,
    lang: str,
    layers: Layers = ALL_ENTS,
    labels: Mapping[str, str] | None = None,
    targets: Mapping[str, str] | None = None,
    annotated_labels: Collection[str] | None = None,
    relations: RelationLabels | None = None,
    keep: Callable[[str], bool] = keep_all,
    task: str = "",
    skip_bad: bool = False,
    allow_loss: bool = False,
    report: Path | Output | None = None,
    on_progress: Callable[[float, int], None] = ignore,
    on_skip: Callable[[BioclinError], None] = ignore,
    on_report: Callable[[LossReport], None] = ignore,
) -> None:
    """Convert a corpus into gold Docs and count what became of every span and relation.

    format, paths, labels, targets, keep, on_progress: See `read_corpus`.
    out (Path | Output): The output, see `write_docs`. An error leaves it as it was.
    lang (str): Language of the notes.
    layers (Layers): Label -> layer, see `ALL_ENTS`.
    annotated_labels (Collection[str] | None): Labels, after renaming, that the corpus was annotated
        for; None for all labels.
    relations (RelationLabels | None): Labels of the relations that Docs get, or "all"; None or
        empty for no relations.
    task (str): Name of the task that the corpus was annotated for.
    skip_bad (bool): Skip and count documents that cannot be read.
    allow_loss (bool): Accept more lost spans or relations than 0.1 %.
    report (Path | Output | None): The loss report; None for NAME.report.json beside `out`.
    on_skip (Callable): Called with the error of each document that is skipped.
    on_report (Callable): Called with the loss report before it is checked.
    RAISES (BioclinError): A document cannot be read, too many spans or relations are lost, a label
        has no layer or was not annotated, or no relation has one of the labels.
    """
    losses = LossReport()
    losses.relations_wanted.update(() if relations == ALL else relations or ())
    on_error = make_on_error(on_skip if skip_bad else None, losses)

    def make_docs() -> Iterator[Doc]:
        documents = read_corpus(
            format,
            paths,
            labels=labels,
            targets=targets,
            keep=keep,
            on_error=on_error,
            on_progress=on_progress,
        )
        for document in documents:
            yield make_gold_doc(
                nlp,
                document,
                layers=layers,
                annotated_labels=annotated_labels,
                relations=relations or None,
                level=FORMATS[format].level,
                task=task,
                report=losses,
            )
        losses.write(report or make_report_output(None, path, overwrite=True))
        on_report(losses)
        losses.check(allow_loss=allow_loss)  # an error here leaves `out` as it was

    nlp = make_nlp(lang)
    path = out if isinstance(out, Path) else out.path
    write_docs(make_docs(), out)


def make_on_error(
    on_skip: Callable[[BioclinError], None] | None, losses: LossReport | None = None
) -> OnError:
    """Make what is called for a document that cannot be read.

    on_skip (Callable | None): Called with the error; None makes the first one end the conversion.
    losses (LossReport | None): Counts the documents that are skipped.
    """

    def skip(name: str, error: BioclinError) -> None:
        if on_skip is None:
            raise BioclinError(f"{error}; --skip-bad leaves such documents out and counts them")
        if losses is not None:
            losses.add("skipped", Path(name).name)
        on_skip(error)

    return skip


def make_nlp(lang: str) -> Language:
    """Make a pipeline of the tokenizer and the sentence splitter that all pipelines use.

    RAISES (BioclinError): The language is missing or unknown.
    """
    if not lang:
        raise BioclinError(
            "the language is not known: give --lang (es, en or fr), or the --task of the catalogue"
        )
    tokenizer = {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}
    try:
        nlp = spacy.blank(lang, config={"nlp": {"tokenizer": tokenizer}})
    except ImportError:
        raise BioclinError(f"--lang is {lang!r}, which is not a language of spaCy") from None
    nlp.add_pipe("bioclin_sentences")
    nlp.max_length = 2**31  # spaCy's limit is for its parser, which does not run here
    return nlp
