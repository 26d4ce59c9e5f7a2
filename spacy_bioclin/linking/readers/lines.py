"""Read a terminology file line by line: compressed or not, in the encoding that it has, in bounded
memory."""

import bz2
import codecs
import gzip
import io
import lzma
import re
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
UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
# UTF-8 that was read as Windows-1252 and written as UTF-8 again, or a character that was lost.
BROKEN = re.compile(
    "\u00c3[\u0080-\u00bf\u2030\u201c\u0161\u0153\u2018]|\u00c2[\u00a0-\u00bf]|\ufffd"
)
# What text in Windows-1252 never holds, but text of DOS, of a Mac or of another alphabet does when
# it is read as Windows-1252: signs within words, capitals within small letters, vowels in rows.
WRONG = re.compile(
    "[A-Za-zÀ-ÿ][€‚ƒ„†‡ˆ‰‹•˜›¡¢£¤¥¦§¨¬¯¶¸¿×÷³][A-Za-zÀ-ÿ]|[a-z](?:[À-ÞŠŽŒŸ]|ÿ)[a-z]|[À-ÿ]{3}"
    "|[0-9] ?(?:[¡ø]C|æg)|[¶¯¦³¹¼¾][a-zß-ÿ]{2}"
)
# What it may hold, though others do more often; and what only Windows-1252 holds.
DOUBTFUL = re.compile(
    "[a-z](?:[\xa0–—œ]|[a-z]’(?!(?:s|t|re|ve|ll|d|m)\\b))[a-z]"
    "|[A-Z](?:[\xa0–—àâäçèéêëìîïòôöùûÂÃÄÅÊËÎÏÔÕÖÙÛ]|[A-Z]’(?!S\\b))[A-Z]"
)
SURE = re.compile("[a-z][áéíóúñüàèòç][a-z]|[A-Z][ÁÉÍÓÚÑÜÀÈÒÇáíóúñ][A-Z]|\\b[ÁÉÍÓÚ][a-z]")
CONVERT = (
    "save it as UTF-8 (in Excel: CSV UTF-8), or convert it with the encoding that it has: "
    "iconv -f WINDOWS-1252 -t UTF-8 OLD > NEW (CP850 for DOS, MACINTOSH for an old Mac)"
)


class EncodingError(BioclinError):
    """The characters of a file are not known."""


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


def read_head(path: Path, size: int = 2**16) -> str:
    """Read the beginning of a file, decompressed, to recognise what it is.

    RAISES (BioclinError): The file cannot be read.
    """
    with open_bytes(path) as file:
        head = file.read(size)
    return head.decode(_utf16(head) or "utf-8-sig", "replace")


def read_lines(path: Path, report: SkipReport) -> Iterator[tuple[int, str]]:
    """Read a text file line by line, in bounded memory.

    A file is UTF-8, UTF-16 or, if no line with other letters than those of ASCII is UTF-8,
    Windows-1252. The text of any other one would be wrong, so it is an error.

    path (Path): The file, compressed or not.
    report (SkipReport): Counts lines over `MAX_LINE_BYTES`, lines that were read as Windows-1252,
        and lines with characters that were broken before.
    YIELDS (tuple[int, str]): Line number from 1, and the line without its end (LF or CRLF) and
        without a byte-order mark.
    RAISES (BioclinError): The file cannot be opened, its compression is broken, it is UTF-32 or in
        an unknown encoding or in two, most of its letters were broken before, or its lines end in
        CR alone.
    """
    with open_bytes(path) as file:
        decoder = _Decoder(path, report)
        lines = _raw_lines(path, file)
        for number, line in enumerate(lines, 1):
            if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
                while (rest := next(lines, b"")) and not rest.endswith(b"\n"):
                    pass
                report.skip(f"line over {MAX_LINE_BYTES:,} bytes", f"{path}, line {number}")
                continue
            yield number, decoder.decode(line, number).rstrip("\r\n")
        decoder.finish()


def _raw_lines(path: Path, file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file as bytes, those of UTF-16 as UTF-8."""
    first = file.readline(MAX_LINE_BYTES)
    if first.startswith(UTF32):
        raise EncodingError(f"{path}: is UTF-32; save it as UTF-8")
    if encoding := _utf16(first):
        file.seek(0)
        decoder, rest = codecs.getincrementaldecoder(encoding)(), ""
        try:
            while block := file.read(2**16):
                *lines, rest = (rest + decoder.decode(block)).split("\n")
                yield from (f"{line}\n".encode() for line in lines)
                if len(rest) > MAX_LINE_BYTES:
                    raise EncodingError(f"{path}: is UTF-16 without line ends; save it anew")
            yield (rest + decoder.decode(b"", final=True)).encode()
        except UnicodeDecodeError as error:
            raise EncodingError(f"{path}: is UTF-16 with an error ({error.reason})") from None
        return
    if b"\r" in first.rstrip(b"\r\n"):
        raise EncodingError(f"{path}: its lines end in CR alone; save it with LF or CRLF")
    while first:
        yield first
        first = file.readline(MAX_LINE_BYTES)


def _utf16(head: bytes) -> str:
    """Recognise UTF-16, with a byte-order mark or by its zeros; "" for anything else."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    zeros = "".join("0" if byte == 0 else "x" for byte in head[:4])
    return {"x0x0": "utf-16-le", "0x0x": "utf-16-be"}.get(zeros, "")


class _Decoder:
    """Decode the lines of one file, and find out whether that is right.

    path (Path): The file.
    report (SkipReport): See `read_lines`.
    """

    def __init__(self, path: Path, report: SkipReport) -> None:
        self.path, self.report = path, report
        # How many lines have letters beyond ASCII: in UTF-8, of these broken ones, in Windows-1252,
        # of these sure and doubtful ones.
        self.n_utf8 = self.n_broken = self.n_1252 = self.n_sure = self.n_doubtful = 0

    def decode(self, line: bytes, number: int) -> str:
        """Decode a line.

        RAISES (BioclinError): Its encoding is not known, or not that of the lines before.
        """
        if line.isascii():
            return line.decode("ascii")
        place = f"{self.path}, line {number}"
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            text = self._decode_1252(line, place)
        else:
            self.n_utf8 += 1
            if BROKEN.search(text):
                self.n_broken += 1
                self.report.skip("line with broken characters, such as Ã³ for ó (kept)", place)
        if self.n_utf8 and self.n_1252:
            raise EncodingError(
                f"{place}: is not in the encoding of the lines before it (UTF-8 and another one); "
                "was a file joined of two, or damaged? Convert the part that is not UTF-8"
            )
        return text

    def _decode_1252(self, line: bytes, place: str) -> str:
        try:
            text = line.decode("cp1252")
        except UnicodeDecodeError:
            text = ""
        if not text or WRONG.search(text):
            raise EncodingError(f"{place}: is neither UTF-8 nor Windows-1252; {CONVERT}")
        self.n_1252 += 1
        self.n_sure += bool(SURE.search(text))
        self.n_doubtful += bool(DOUBTFUL.search(text))
        self.report.skip("line that is not UTF-8 (read as Windows-1252)", place)
        return text

    def finish(self) -> None:
        """Judge the file as a whole.

        RAISES (BioclinError): Its encoding is not known, or its characters were broken before.
        """
        if self.n_doubtful and not self.n_sure:
            raise EncodingError(
                f"{self.path}: is not UTF-8, and seems not to be Windows-1252; {CONVERT}"
            )
        if self.n_broken * 2 > self.n_utf8:
            raise EncodingError(
                f"{self.path}: {self.n_broken:,} of its {self.n_utf8:,} lines with accents have "
                "broken characters (Ã³ for ó): UTF-8 was read as Windows-1252 before. Export it "
                "again, or undo it: iconv -f UTF-8 -t WINDOWS-1252 OLD > NEW"
            )
