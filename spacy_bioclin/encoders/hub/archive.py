"""Unpack an archive that may be made to do harm: paths that lead outside, endless content."""

import gzip
import io
import tarfile
import zlib
from collections.abc import Callable, Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from ...errors import BioclinError
from ...files import CHUNK_BYTES

# Weights hardly shrink: an archive that holds more than this is made to fill a disk.
MAX_RATIO, FREE_BYTES = 20, 10**8
DAMAGED_ARCHIVE = (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, UnicodeError)


class _Limited(io.RawIOBase):
    """A file that may be read up to a limit."""

    def __init__(self, file: gzip.GzipFile, limit: int, url: str) -> None:
        self.file, self.limit, self.url = file, limit, url

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.file.tell()

    def seek(self, offset: int, whence: int = 0) -> int:
        self._check(offset)
        return self.file.seek(offset, whence)

    def read(self, size: int = -1) -> bytes:
        self._check(self.tell() + (size if size >= 0 else self.limit + 1))
        return self.file.read(size)

    def _check(self, end: int) -> None:
        if end > self.limit:
            raise BioclinError(
                f"{self.url} holds more than {self.limit:,} bytes, made to fill a disk: nothing is "
                "unpacked"
            )


def unpack(
    archive: Path, out: Path, url: str, choose: Callable[[Collection[str], str], list[str]]
) -> list[str]:
    """Unpack the needed files from the folder that has config.json.

    archive (Path): A .tar.gz.
    out (Path): Empty folder.
    url (str): Its address, for messages.
    choose (Callable): Chooses the files of a folder that are needed.
    RETURNS (list[str]): The files.
    RAISES (BioclinError): It holds no encoder, more than an encoder, or leads out of the folder.
    """
    limit = MAX_RATIO * archive.stat().st_size + FREE_BYTES
    with (
        gzip.open(archive) as packed,
        tarfile.open(fileobj=_Limited(packed, limit, url), mode="r:") as tar,
    ):
        members = {PurePosixPath(member.name): member for member in tar if member.isfile()}
        for path in members:
            if path.is_absolute() or ".." in path.parts:
                raise BioclinError(
                    f"{url} holds {path}, outside of any folder: nothing is unpacked"
                )
        homes = [path.parent for path in members if path.name == "config.json"]
        if not homes:
            raise BioclinError(f"{url} holds no config.json: not from the transformers library")
        home = min(homes, key=lambda path: len(path.parts))
        names = {path.name: path for path in members if path.parent == home}
        files = choose(names, url)
        for name in files:
            content = tar.extractfile(members[names[name]])
            assert content is not None  # a file
            with content, (out / name).open("xb") as file:
                for part in _read_chunks(content):
                    file.write(part)
    return files


def _read_chunks(file: Any) -> Iterator[bytes]:
    while part := file.read(CHUNK_BYTES):
        yield part
