"""Read a terminology file line by line: compressed or not, in bounded memory."""

import bz2
import codecs
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from ...errors import BioclinError
from ...files import check_regular
from ..kb.concepts import SkipReport

OPENERS: dict[str, Callable[[IO[bytes], str], object]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
# Real terminologies stay below 1 MB a line; a longer line means a broken or wrong file.
MAX_LINE_BYTES = 16 * 2**20
# Single lines that are not UTF-8 are skipped. If there are this many, and more than this share of
# the lines, the whole file has another encoding.
MIN_WRONG, MAX_WRONG_SHARE = 3, 0.01


def suffix(path: Path) -> str:
    """Get the suffix of a file in lower case, without the suffix of a compression."""
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] in OPENERS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


class _CountedFile(io.FileIO):
    """A file that adds what is read from it to a count of all such files, for a progress bar."""

    n_read = 0

    def readinto(self, buffer: Any) -> int | None:
        """Read bytes into a buffer.

        RETURNS (int | None): How many bytes were read.
        """
        n = super().readinto(buffer)
        _CountedFile.n_read += n or 0
        return n


def n_bytes_read() -> int:
    """Get the number of bytes that this process has read from terminology files, before
    decompression."""
    return _CountedFile.n_read


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading, decompressed if its suffix is .gz, .bz2 or .xz.

    RAISES (BioclinError): It is not a file, cannot be opened, or reading it fails within the block.
    """
    check_regular(path)  # a pipe would wait for ever, and a device never end
    try:
        raw = _CountedFile(str(path))
    except OSError as error:
        raise BioclinError(f"{path}: cannot be read ({error.strerror})") from None
    opener = OPENERS.get(path.suffix.lower())
    with io.BufferedReader(raw, 2**16) as file:
        try:
            yield cast(IO[bytes], opener(file, "rb")) if opener else file
        except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
            raise BioclinError(
                f"{path}: cannot be read beyond byte {raw.tell():,} ({error}); the file may be "
                "cut off"
            ) from None


def read_lines(path: Path, report: SkipReport) -> Iterator[tuple[int, str]]:
    """Read a UTF-8 file line by line, in bounded memory.

    path (Path): The file, compressed or not.
    report (SkipReport): Counts lines over `MAX_LINE_BYTES` and lines that are not UTF-8.
    YIELDS (tuple[int, str]): Line number from 1, and the line without its end (LF or CRLF) and
        without a byte-order mark.
    RAISES (BioclinError): The file cannot be opened, its compression is broken, it is UTF-16 or
        UTF-32, its lines end in CR alone, or it is not UTF-8: its first line that is not empty, or,
        at its end, more than single lines.
    """
    with open_bytes(path) as file:
        number = n_wrong = 0
        is_first = True
        while line := file.readline(MAX_LINE_BYTES):
            number += 1
            if number == 1:
                _check_encoding(path, line)
            if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
                while (rest := file.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
                    pass
                report.skip(f"line over {MAX_LINE_BYTES:,} bytes", f"{path}, line {number}")
                continue
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                if is_first:
                    raise _not_utf8(path, f"line {number} is not") from None
                n_wrong += 1
                report.skip("line is not UTF-8", f"{path}, line {number}")
                continue
            is_first = is_first and not text.strip()
            yield number, text.rstrip("\r\n")
        if n_wrong >= MIN_WRONG and n_wrong > MAX_WRONG_SHARE * number:
            raise _not_utf8(path, f"{n_wrong:,} of its {number:,} lines are not")


def _not_utf8(path: Path, why: str) -> BioclinError:
    return BioclinError(
        f"{path}: is not UTF-8 text ({why}); if it is Windows-1252 or Latin-1, as Excel saves CSV, "
        "save it as UTF-8 (in Excel: CSV UTF-8), or convert it: "
        "iconv -f WINDOWS-1252 -t UTF-8 OLD > NEW"
    )


def _check_encoding(path: Path, line: bytes) -> None:
    """Refuse files of which every line would be read wrongly, by their first line."""
    if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise BioclinError(f"{path}: is UTF-16 or UTF-32; save it as UTF-8")
    if b"\r" in line.rstrip(b"\r\n"):
        raise BioclinError(f"{path}: its lines end in CR alone; save it with LF or CRLF")
