"""Find a release in a folder or in a zip archive, and unpack the files of it that are read."""

import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ....errors import BioclinError
from ....files import check_regular

# Format -> names of its main file, in lower case.
MAIN_FILES = {
    "rf2": r"x?sct2_concept_\w*snapshot[\w-]*\.txt(\.\w+)?",
    "rrf": r"(mrconso|rxnconso)\.rrf(\.\w+)?",
    "omop": r"concept\.csv(\.\w+)?",
    "meddra": r"(llt|pt)\.asc",
    "icd10cm": r"icd10(cm|pcs)[_-](order|tabular)[\w-]*\.(txt|xml)",
    "table": r"loinc\.csv",
}
# Of these formats the whole folder is read, of the others the main file.
FOLDERS = ("rf2", "rrf", "omop", "meddra")


class FoundRelease(NamedTuple):
    """A release.

    format (str): Its format.
    main (str): The main file, relative to the folder or in the archive.
    names (tuple[str, ...]): The files of the folder or archive.
    """

    format: str
    main: str
    names: tuple[str, ...]

    def is_read(self, name: str) -> bool:
        """Check whether a file belongs to what is read."""
        if self.format == "rf2":
            return "Snapshot" in name
        if self.format not in FOLDERS:
            return name == self.main
        return PurePosixPath(name).parent == PurePosixPath(self.main).parent

    def path(self, folder: Path) -> Path:
        """Get what is to be read, when the release is in this folder."""
        if self.format == "rf2":
            return folder
        return (folder / self.main).parent if self.format in FOLDERS else folder / self.main


def find_release(folder: Path) -> FoundRelease | None:
    """Find the release in a folder.

    RETURNS (FoundRelease | None): The release whose main file is in the fewest folders, of the
        first format in `MAIN_FILES`; None if there is none.
    """
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return _find_main(names)


def find_in_archive(source: Path) -> FoundRelease:
    """Find the release in a zip archive, or the single file that is in it.

    RETURNS (FoundRelease): See `find_release`; its format is "" for a single file.
    RAISES (BioclinError): The archive cannot be read, or holds several files and no release.
    """
    with _open_zip(source) as archive:
        names = [info.filename for info in archive.infolist() if not info.is_dir()]
    if release := _find_main(names):
        return release
    files = [name for name in names if not name.startswith("__MACOSX/")]
    if len(files) == 1:
        return FoundRelease("", files[0], tuple(names))
    raise BioclinError(
        f"{source}: {len(files)} files, and no release that can be read; unpack it, and give the "
        "file or folder of the terminology"
    )


def _find_main(found: Iterable[str]) -> FoundRelease | None:
    names = sorted(found, key=lambda name: (name.count("/"), name))
    for format, pattern in MAIN_FILES.items():
        for name in names:
            if re.fullmatch(pattern, PurePosixPath(name).name.lower()):
                return FoundRelease(format, name, tuple(names))
    return None


@contextmanager
def unpack(source: Path, release: FoundRelease) -> Iterator[Path]:
    """Unpack what is read of an archive to a temporary folder, which is removed afterwards.

    YIELDS (Path): The folder.
    RAISES (BioclinError): The archive is damaged or has a password, or the disk has no room for it.
    """
    with tempfile.TemporaryDirectory(prefix="bioclin-") as folder, _open_zip(source) as archive:
        members = [info for info in archive.infolist() if release.is_read(info.filename)]
        size = sum(info.file_size for info in members)
        if size > shutil.disk_usage(folder).free:
            raise BioclinError(
                f"{source}: {size:,} bytes unpacked, for which {Path(folder).parent} has no room; "
                "set TMPDIR to a folder that has, or unpack it yourself and give the folder"
            )
        try:
            for info in members:
                archive.extract(info, folder)
        except (RuntimeError, NotImplementedError, zipfile.BadZipFile, OSError, EOFError) as error:
            raise BioclinError(
                f"{source}: {release.main} cannot be unpacked ({error}); has it a password, or is "
                "it cut off? Unpack it yourself, and give the folder"
            ) from None
        yield Path(folder)


@contextmanager
def _open_zip(source: Path) -> Iterator[zipfile.ZipFile]:
    check_regular(source)
    try:
        archive = zipfile.ZipFile(source)
    except (zipfile.BadZipFile, OSError) as error:
        raise BioclinError(f"{source}: cannot be read as a zip archive ({error})") from None
    with archive:
        yield archive
