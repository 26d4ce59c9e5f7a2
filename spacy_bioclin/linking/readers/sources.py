"""Find the files of a terminology, describe them, and read several terminologies one by one."""

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ...errors import BioclinError
from ...files import hash_file
from ..kb.concepts import Concept, SkipReport
from . import FORMATS, WITH_VOCABULARIES, check_format, detect_format, read_concepts
from .detect import find_format
from .headers import Columns
from .lines import n_bytes_read
from .releases import meddra, omop, rf2
from .releases.find import find_release
from .releases.rrf import LAYOUTS_OF_PREFIX
from .releases.rrf import find_release as find_rrf

# The progress is reported after this many records.
EVERY = 500


class Source(NamedTuple):
    """A terminology to read.

    path (Path): File, or folder of a release.
    format (str): One of `FORMATS`.
    files (tuple[Path, ...]): The files that are read.
    """

    path: Path
    format: str
    files: tuple[Path, ...]

    def n_bytes(self) -> int:
        """Get the size of its files on the disk."""
        return sum(file.stat().st_size for file in self.files)

    def describe(self, licence: str) -> list[dict[str, str | int]]:
        """List name, format, size, SHA-256 and licence of each file."""
        return [
            {
                "file": file.name,
                "format": self.format,
                "bytes": file.stat().st_size,
                "sha256": hash_file(file),
                "licence": licence,
            }
            for file in self.files
        ]


def find_source(text: str, *, format: str | None = None, otherwise: str | None = None) -> Source:
    """Find the files of a terminology.

    text (str): A path, or "FORMAT:path".
    format (str | None): Its format if the path has no such prefix; None detects it.
    otherwise (str | None): Its format if none is detected; None raises an error.
    RETURNS (Source): What to read.
    RAISES (BioclinError): There is no such file, the format is unknown, or a release lacks a file.
    """
    prefix, _, rest = text.partition(":")
    path, name = (Path(rest), prefix) if rest and prefix in FORMATS else (Path(text), format)
    if name is not None:
        check_format(name)
    if not path.exists():
        raise BioclinError(f"{path}: no such file or folder")
    name = name or (find_format(path) if otherwise else None) or otherwise or detect_format(path)
    files = [path]
    release = find_release(path) if path.is_dir() else None
    folder = release.path(path) if release and release.format == name else path
    if name == "rrf" and path.is_dir():
        found = find_rrf(folder)
        parts = (found.file(kind) for kind in LAYOUTS_OF_PREFIX[found.prefix])
        files = [file for file in parts if file]
    elif name == "rf2" and path.is_dir():
        files = [file for kind in rf2.find_files(path, SkipReport()).values() for file in kind]
    elif name == "omop" and path.is_dir():
        files = list(omop.find_files(folder).values())
    elif name == "meddra" and path.is_dir():
        files = meddra.find_files(folder)
    elif path.is_dir() and folder.is_file():
        files = [folder]
    elif path.is_dir():
        raise BioclinError(f"{path}: a folder; give a file of format {name}")
    return Source(path, name, tuple(files))


def read_sources(
    sources: Sequence[Source],
    report: SkipReport,
    *,
    lang: str = "",
    columns: Sequence[Columns | None] = (),
    vocabularies: Collection[str] = (),
    progress: Callable[[float, int], None] | None = None,
) -> Iterator[Concept]:
    """Read the concepts of several terminologies, one after the other.

    report, lang: See `read_concepts`.
    columns (Sequence[Columns | None]): For each source, see `read_concepts`; empty for none.
    vocabularies (Collection[str]): For the sources that have several, see `read_concepts`.
    progress (Callable | None): Takes the share of the bytes that were read, 0 to 1, and the number
        of records so far.
    YIELDS (Concept): Concepts and parts of concepts.
    RAISES (BioclinError): See `read_concepts`.
    """
    total = max(sum(source.n_bytes() for source in sources), 1)
    begin, n = n_bytes_read(), 0
    for source, own in zip(sources, columns or [None] * len(sources), strict=True):
        for concept in read_concepts(
            source.path,
            report,
            format=source.format,
            lang=lang,
            columns=own,
            vocabularies=vocabularies if source.format in WITH_VOCABULARIES else (),
        ):
            yield concept
            n += 1
            if progress and n % EVERY == 0:
                progress(min((n_bytes_read() - begin) / total, 1), n)
