"""Docs on disk: spaCy's DocBin, in shards, because a single one fails past 2 GB."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from ..errors import BioclinError
from ..files import check_output, replace, temporary_folder

SUFFIX = ".spacy"
SHARD = r"\d{5}\.spacy"
SHARD_TOKENS = 2_000_000  # about 220 MB before compression; msgpack ends at 2 GB


def write_docs(docs: Iterable[Doc], out: Path, *, shard_tokens: int = SHARD_TOKENS) -> int:
    """Write Docs as `OUT`: a file if one shard holds them all, else a folder of that name with
    00000.spacy, 00001.spacy, … Either is a path that `spacy train` and `make_corpus` take.

    Docs are not held in memory beyond one shard, and `out`, which only the user may read, changes
    only once all is written.

    docs (Iterable[Doc]): The Docs, with their user_data.
    out (Path): Where to, with the suffix ".spacy".
    shard_tokens (int): A shard is closed once it holds this many tokens.
    RETURNS (int): The number of Docs.
    RAISES (BioclinError): See `check_docs_output`.
    """
    check_docs_output(out, overwrite=True)
    with temporary_folder(out) as temporary:
        shards = temporary / out.name
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
        replace(shards if n_shards else last, out)
    return n_docs


def check_docs_output(out: Path, *, inputs: Iterable[Path] = (), overwrite: bool) -> None:
    """Refuse a file of Docs that would replace something, see `check_output`.

    RAISES (BioclinError): The suffix is wrong, the output is there already, or it is a folder that
        holds other files than shards.
    """
    if out.suffix != SUFFIX:
        raise BioclinError(f"{out}: the name of a file of Docs has to end in {SUFFIX}")
    check_output(out, inputs=inputs, overwrite=overwrite, only=SHARD if out.is_dir() else "")


def read_docs(path: Path, vocab: Vocab) -> Iterator[Doc]:
    """Read what `write_docs` wrote, shard by shard.

    path (Path): A .spacy file, or a folder with such files at any depth.
    vocab (Vocab): The vocabulary that the Docs share.
    YIELDS (Doc): The Docs, in the order of the file names.
    RAISES (BioclinError): There is nothing at the path, or a file is no DocBin.
    """
    n_docs = 0
    for shard in _shards(path):
        try:
            doc_bin = DocBin(store_user_data=True).from_disk(shard)
        except Exception as error:  # zlib, msgpack and key errors: all mean "no DocBin"
            raise BioclinError(
                f"{shard}: not a DocBin file of spaCy ({type(error).__name__}); make it again with "
                "`bioclin convert`"
            ) from None
        for doc in doc_bin.get_docs(vocab):
            n_docs += 1
            yield doc
    if not n_docs:
        raise BioclinError(
            f"{path}: holds no Docs; make it with `bioclin convert FORMAT IN {path}`"
        )


def _shards(path: Path) -> list[Path]:
    shards = sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else [path]
    shards = [shard for shard in shards if shard.is_file()]
    if not shards:
        what = f"no {SUFFIX} file in this folder" if path.is_dir() else "no such file or folder"
        raise BioclinError(f"{path}: {what}; make it with `bioclin convert FORMAT IN {path}`")
    return shards
