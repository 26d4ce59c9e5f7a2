"""Docs on disk: spaCy's DocBin, in shards, because a single one fails past 2 GB."""

import gc
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import srsly
from spacy.attrs import ORTH
from spacy.strings import StringStore
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab
from srsly.msgpack import msgpack_decoders, msgpack_encoders

from ..annotations.relations import get_gold_concept_relations, get_gold_relations
from ..errors import BioclinError
from ..files import CHUNK_BYTES, check_regular
from ..outputs import Output
from ..types import GOLD_KEY

SUFFIX = ".spacy"
SHARD = r"\d{5}\.spacy"
# spaCy cannot write more, and no compression of zlib is stronger.
MAX_BYTES, MAX_RATIO = 2**32, 1032
SHARD_TOKENS = 2_000_000  # about 220 MB before compression; msgpack ends at 2 GB

T = TypeVar("T")


def make_docs_output(
    out: Path,
    *,
    inputs: Iterable[Path] = (),
    others: Iterable[Path | None] = (),
    overwrite: bool,
) -> Output:
    """Make the output for a file of Docs, see `Output`.

    RAISES (BioclinError): The suffix is wrong, the output is there already, or it is a folder that
        holds other files than shards.
    """
    if out.suffix != SUFFIX:
        raise BioclinError(f"{out}: the name of a file of Docs has to end in {SUFFIX}")
    only = SHARD if out.is_dir() else ""
    return Output(out, inputs=inputs, others=others, overwrite=overwrite, only=only, private=True)


@contextmanager
def find_coders_once() -> Iterator[None]:
    """Let srsly find its coders once for all Docs that are written or read inside.

    It searches the entry points of the environment and all registered functions two or three times
    for each Doc, which takes longer than anything else if the Doc is a sentence.
    """
    registries: tuple[Any, ...] = (msgpack_encoders, msgpack_decoders)
    for registry in registries:
        coders = registry.get_all()
        registry.get_all = coders.copy
    try:
        yield
    finally:
        for registry in registries:
            vars(registry).pop("get_all", None)  # the method is there again


def write_docs(docs: Iterable[Doc], out: Path | Output, *, shard_tokens: int = SHARD_TOKENS) -> int:
    """Write Docs as `OUT`: a file if one shard holds them all, else a folder of that name with
    00000.spacy, 00001.spacy, … Either is a path that `spacy train` and `make_corpus` take.

    Docs are not held in memory beyond one shard, and `out`, which only the user may read, changes
    only once all is written.

    docs (Iterable[Doc]): The Docs, with their user_data.
    out (Path | Output): Where to, with the suffix ".spacy". At a path, older Docs are replaced.
    shard_tokens (int): A shard is closed once it holds this many tokens.
    RETURNS (int): The number of Docs.
    RAISES (BioclinError): See `make_docs_output`.
    """
    output = make_docs_output(out, overwrite=True) if isinstance(out, Path) else out
    with output.make() as made, find_coders_once():
        shards = made.with_name("shards")
        shards.mkdir(mode=0o700)
        n_docs = n_shards = n_tokens = 0
        shard = DocBin(store_user_data=True)
        for doc in docs:
            if n_tokens >= shard_tokens:
                shard.to_disk(shards / f"{n_shards:05}{SUFFIX}")
                shard, n_tokens, n_shards = DocBin(store_user_data=True), 0, n_shards + 1
            shard.add(doc)
            n_docs, n_tokens = n_docs + 1, n_tokens + len(doc)
        last = shards / f"{n_shards:05}{SUFFIX}"
        shard.to_disk(last)
        for path in shards.iterdir():
            path.chmod(0o600)
        (shards if n_shards else last).rename(made)
    return n_docs


def read_docs(path: Path, vocab: Vocab) -> Iterator[Doc]:
    """Read what `write_docs` wrote, shard by shard.

    path (Path): A .spacy file, or a folder with such files at any depth.
    vocab (Vocab): The vocabulary that the Docs share.
    YIELDS (Doc): The Docs, in the order of the file names.
    RAISES (BioclinError): There is nothing at the path, or a file is no DocBin.
    """
    yield from _read(path, partial(_unpack_docs, vocab=vocab))


def read_texts(path: Path) -> Iterator[tuple[str, str]]:
    """Read ids and texts of the Docs at a path, in a fifth of the time that `read_docs` takes.

    path (Path): See `read_docs`.
    YIELDS (tuple[str, str]): The id of the document, "" for a Doc that `bioclin convert` did not
        make, and its text.
    RAISES (BioclinError): See `read_docs`.
    """
    yield from _read(path, _unpack_texts)


def _read(path: Path, unpack: Callable[[DocBin], Iterator[T]]) -> Iterator[T]:
    n_docs = 0
    for shard in list_shards(path):
        for doc in _read_shard(shard, unpack):
            n_docs += 1
            yield doc
    if not n_docs:
        raise BioclinError(
            f"{path}: holds no Docs; make it with `bioclin convert FORMAT IN {path}`"
        )


def _unpack_docs(shard: DocBin, vocab: Vocab) -> Iterator[Doc]:
    """Make the Docs of a file, and check what spaCy finds out only when it is used."""
    for doc in shard.get_docs(vocab):
        _check_doc(doc)
        yield doc


def _unpack_texts(shard: DocBin) -> Iterator[tuple[str, str]]:
    strings = StringStore(shard.strings)
    column = shard.attrs.index(ORTH)
    for i, (tokens, spaces) in enumerate(zip(shard.tokens, shard.spaces, strict=True)):
        words = (strings[orth] for orth in tokens[:, column].tolist())
        pairs = zip(words, spaces.ravel().tolist(), strict=True)
        stored = shard.user_data[i] if shard.user_data else None
        user_data = srsly.msgpack_loads(stored) if stored else {}
        id = user_data[GOLD_KEY]["id"] if GOLD_KEY in user_data else ""
        if not isinstance(id, str):
            raise TypeError
        yield id, "".join(f"{word} " if space else word for word, space in pairs)


def _read_shard(shard: Path, unpack: Callable[[DocBin], Iterator[T]]) -> Iterator[T]:
    """Read a file, and explain what is wrong with it."""
    number = 0
    fault = ""
    try:
        _check_size(shard)
        with find_coders_once():
            for doc in unpack(DocBin().from_disk(shard)):
                yield doc
                number += 1
    except BioclinError:
        raise
    except OSError as error:
        fault = f"cannot be read ({error.strerror})"
    except Exception as error:  # of zlib, msgpack, numpy and spaCy; it may quote a note
        at = f", damaged behind Doc {number}" if number else ""
        fault = (
            f"not a DocBin file of spaCy ({type(error).__name__}{at}); make it again with `bioclin "
            "convert`"
        )
    finally:
        gc.enable()  # srsly switches it off, and leaves it off after an error
    if fault:
        raise BioclinError(f"{shard}: {fault}")


def _check_size(shard: Path) -> None:
    """Refuse a file that is small only as long as it is compressed.

    RAISES (BioclinError): It is.
    """
    check_regular(shard)
    if shard.stat().st_size * MAX_RATIO <= MAX_BYTES:
        return
    unpacked = 0
    decompressor = zlib.decompressobj()
    with shard.open("rb") as file:
        while chunk := decompressor.unconsumed_tail or file.read(CHUNK_BYTES):
            unpacked += len(decompressor.decompress(chunk, CHUNK_BYTES))
            if unpacked > MAX_BYTES:
                raise BioclinError(
                    f"{shard}: holds more than {MAX_BYTES // 2**30} GB, which spaCy cannot read; "
                    "make it again with `bioclin convert`, which writes several files"
                )


def _check_doc(doc: Doc) -> None:
    """Touch what can be wrong in a Doc from a file: strings that are missing, offsets.

    RAISES (Exception): Something is.
    """
    text = doc.text
    text.encode("utf-8")
    n_chars = len(text)
    for group in (doc.ents, *doc.spans.values()):
        for span in group:
            span.label_, span.kb_id_, span.id_  # noqa: B018
    if GOLD_KEY not in doc.user_data:
        return
    gold = doc.user_data[GOLD_KEY]
    for layer, labels in gold.get("annotated", {}).items():
        strings = (layer, *labels)
        if not isinstance(labels, list | tuple) or not all(isinstance(s, str) for s in strings):
            raise ValueError
    for layer, spans in gold["layers"].items():
        for start, end, label, kb_id in spans:
            strings = (gold["id"], gold["task"], layer, label, kb_id)
            if not 0 <= start <= end <= n_chars or not all(isinstance(s, str) for s in strings):
                raise ValueError
    for relation in get_gold_relations(doc) or ():
        for start, end, label in (relation.head, relation.child):
            if not 0 <= start <= end <= n_chars or not isinstance(label, str):
                raise ValueError
    for concepts in get_gold_concept_relations(doc) or ():
        if not all(isinstance(s, str) for s in concepts):
            raise ValueError


def list_shards(path: Path) -> list[Path]:
    """List the files of Docs at a path.

    path (Path): A .spacy file, or a folder with such files at any depth.
    RETURNS (list[Path]): One or more files, sorted.
    RAISES (BioclinError): There is none.
    """
    shards = sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else [path]
    shards = [shard for shard in shards if shard.is_file()]
    if not shards:
        what = f"no {SUFFIX} file in this folder" if path.is_dir() else "no such file or folder"
        raise BioclinError(f"{path}: {what}; make it with `bioclin convert FORMAT IN {path}`")
    return shards
