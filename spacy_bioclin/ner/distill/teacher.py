"""A trained pipeline annotates texts, and training notes, for a student to learn from."""

import hashlib
import lzma
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

import numpy as np
from spacy.attrs import IDX, LENGTH
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch
from spacy.vocab import Vocab

from ...corpora.docbin import SHARD, SUFFIX, read_docs, write_docs
from ...corpora.readers import TEACHER_KEY
from ...errors import BioclinError
from ...files import hash_files
from ...outputs import check_output, remove
from ...spans import get_spans
from ..component import ClinicalNer
from .targets import pack_layer

# Size of a shard of Docs before compression; the limit of msgpack is 2 GB.
SHARD_BYTES = 500_000_000
# Shows progress. Takes the name of a file, its number of Docs, and the Docs, which it yields.
# What `write_corpus` makes, and what it leaves if it is killed.
OWN_FILES = rf"(gold|silver)-[0-9a-f]{{16}}{re.escape(SUFFIX)}|{SHARD}|\..*\.(partial|lock)"
Watch = Callable[[str, int, Iterator[Doc]], Iterator[Doc]]


class Teacher:
    """Annotate texts with a trained pipeline that has one or more `bioclin_ner`.

    nlp (Language): The pipeline, loaded from disk.
    temperature (float): Divides its scores; above 1 the probabilities are more even.
    RAISES (BioclinError): The temperature is not above 0, or there is no `bioclin_ner`.
    """

    def __init__(self, nlp: Language, *, temperature: float) -> None:
        if not temperature > 0:
            raise BioclinError(f"temperature = {temperature}: want a number above 0")
        components = [pipe for _, pipe in nlp.pipeline]
        self.heads = {
            pipe.spans_key or "ents": pipe for pipe in components if isinstance(pipe, ClinicalNer)
        }
        if not self.heads:
            raise BioclinError(
                f"the teacher has no bioclin_ner, but {', '.join(nlp.pipe_names)}: give a pipeline "
                "that was trained with a config like configs/ner.cfg"
            )
        self.nlp = nlp
        self.temperature = temperature
        last = max(components.index(head) for head in self.heads.values())
        # What follows may free the encoder's vectors. The last head is run here, once: an ensemble
        # has encoders of its own.
        self._last = components[last]
        self._disabled = nlp.pipe_names[last:]

    def annotate_texts(self, texts: Iterable[str]) -> Iterator[Doc]:
        """Make a Doc of each text, with the teacher's spans and probabilities of tags."""
        for doc, _ in self._annotate((text, None) for text in texts):
            yield doc

    def annotate_gold(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        """Add the teacher's probabilities of tags to gold Docs.

        RAISES (BioclinError): The teacher has different tokens, or does not know a label.
        """
        pairs = self._annotate((doc.text, doc) for doc in docs)
        for number, (doc, gold) in enumerate(pairs, start=1):
            assert gold is not None
            if not has_same_tokens(doc, gold):
                raise BioclinError(
                    f"document {number} of the training notes has {len(gold)} tokens, by the "
                    f"teacher's tokenizer {len(doc)}: convert the corpus again (bioclin convert), "
                    "with the --lang of the teacher"
                )
            for layer, head in self.heads.items():
                spans = get_spans(gold, head.spans_key)
                if unknown := sorted({span.label_ for span in spans} - set(head.labels)):
                    raise BioclinError(
                        f"the training notes have {', '.join(unknown)} in the layer {layer}, which "
                        f"the teacher does not know ({', '.join(head.labels)}): use a teacher "
                        "that was trained on the same labels"
                    )
            gold.user_data[TEACHER_KEY] = {**doc.user_data[TEACHER_KEY], "silver": False}
            yield gold

    def _annotate(
        self, texts: Iterator[tuple[str, Doc | None]]
    ) -> Iterator[tuple[Doc, Doc | None]]:
        with self.nlp.select_pipes(disable=self._disabled):
            for batch in minibatch(texts, self.nlp.batch_size):
                docs = list(self.nlp.pipe([text for text, _ in batch]))
                layers = {
                    layer: head.get_marginals(
                        docs, temperature=self.temperature, annotate=head is self._last
                    )
                    for layer, head in self.heads.items()
                }
                for i, (doc, (_, gold)) in enumerate(zip(docs, batch, strict=True)):
                    targets = {
                        layer: pack_layer(found[i], self.heads[layer].tag_sets)
                        for layer, found in layers.items()
                    }
                    stored = {"silver": True, "temperature": self.temperature, "layers": targets}
                    doc.user_data = {TEACHER_KEY: stored}  # without the encoder's vectors
                    yield doc, gold

    @property
    def shard_tokens(self) -> int:
        """Number of annotated tokens in a shard on disk."""
        n_tags = sum(len(head.tag_sets) * head.tag_sets[0].n_tags for head in self.heads.values())
        return SHARD_BYTES // (100 + 2 * n_tags)


def has_same_tokens(one: Doc, other: Doc) -> bool:
    """Check whether both Docs have tokens at the same offsets."""
    return np.array_equal(one.to_array([IDX, LENGTH]), other.to_array([IDX, LENGTH]))


def read_texts(path: Path) -> Iterator[str]:
    """Read documents to annotate.

    path (Path): .txt or .xz with one document a line, in UTF-8; or Docs (.spacy), whose annotation
        is ignored.
    YIELDS (str): The text of each document; empty lines are left out.
    RAISES (BioclinError): The file cannot be read, or has another suffix.
    """
    if path.suffix == SUFFIX:
        yield from (doc.text for doc in read_docs(path, Vocab()))
        return
    if path.suffix not in (".txt", ".xz"):
        raise BioclinError(f"{path}: want .txt or .xz (one document a line), or {SUFFIX}")
    try:
        with _open_text(path) as file:
            for line in file:
                if line.strip():
                    yield line.rstrip("\r\n")
    except UnicodeDecodeError:
        raise BioclinError(f"{path}: not UTF-8; convert the file to UTF-8 first") from None
    except (OSError, EOFError, lzma.LZMAError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise BioclinError(f"{path}: cannot be read ({reason})") from None


def _open_text(path: Path) -> IO[str]:
    if path.suffix == ".xz":
        return lzma.open(path, "rt", encoding="utf-8", newline="\n")
    return path.open(encoding="utf-8", newline="\n")


def write_corpus(
    teacher: Teacher, gold: Path | None, texts: Iterable[Path], folder: Path, watch: Watch
) -> None:
    """Write the training corpus of a student: gold-….spacy, and silver-….spacy per file of texts.

    File names contain the hash of the teacher and of the file it annotated. Existing files of these
    names are kept; those of other teachers and texts are deleted.

    gold (Path | None): Training notes (.spacy); None to learn from the teacher alone.
    texts (Iterable[Path]): See `read_texts`.
    folder (Path): Must contain nothing else, and nothing that is read.
    watch (Watch): Shows progress.
    RAISES (BioclinError): The folder contains something else, or what is read.
    """
    texts = list(texts)
    check_output(
        folder,
        inputs=[*([gold] if gold else []), *texts, *filter(None, [teacher.nlp.path])],
        overwrite=True,
        only=OWN_FILES,
    )
    key = f"{hash_files(teacher.nlp.path)} {teacher.temperature}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    wanted = set()
    for kind, path in [*([("gold", gold)] if gold else []), *(("silver", path) for path in texts)]:
        digest = hashlib.sha256(f"{key} {hash_files(path)}".encode()).hexdigest()[:16]
        out = folder / f"{kind}-{digest}{SUFFIX}"
        wanted.add(out)
        if out.exists():
            continue
        if kind == "gold":
            n_docs = sum(1 for _ in read_docs(path, teacher.nlp.vocab))
            docs = teacher.annotate_gold(read_docs(path, teacher.nlp.vocab))
        else:
            n_docs = sum(1 for _ in read_texts(path))
            docs = teacher.annotate_texts(read_texts(path))
        write_docs(watch(path.name, n_docs, docs), out, shard_tokens=teacher.shard_tokens)
    for path in folder.iterdir():
        if path not in wanted:
            remove(path)


def check_student(nlp: Language, folder: Path) -> None:
    """Check that the student's tokenizer gives the tokens of the corpus.

    RAISES (BioclinError): It gives other tokens for a document.
    """
    for number, doc in enumerate(read_docs(folder, nlp.vocab), start=1):
        student = nlp.make_doc(doc.text)
        if not has_same_tokens(student, doc):
            raise BioclinError(
                f"document {number} of {folder} has {len(doc)} tokens, by the student's tokenizer "
                f"{len(student)}: give the student the [nlp.tokenizer] and the nlp.lang of the "
                "teacher"
            )
