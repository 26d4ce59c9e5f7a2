"""Files are found behind links, and what cannot be read is said."""

import os
from pathlib import Path

import pytest

from spacy_bioclin.corpora.files import read_text
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.files import find_files, open_binary


def test_files_are_found_behind_links_or_named(tmp_path: Path) -> None:
    top, beside = tmp_path / "top", tmp_path / "beside"
    for folder in (top, beside):
        folder.mkdir()
    (top / "b.txt").touch()
    (beside / "a.txt.gz").touch()
    (top / "linked").symlink_to(beside)
    (beside / "circle").symlink_to(top)
    names = [name for name, _ in find_files([top], [".txt"], compressed=True)]
    assert names == ["b.txt", "linked/a.txt.gz"]
    (top / "lost").symlink_to(tmp_path / "nowhere")
    os.mkfifo(beside / "pipe.txt")
    with pytest.raises(BioclinError, match="lost: is a link that cannot be followed"):
        list(find_files([top], [".txt"]))
    bad: list[BioclinError] = []
    assert [name for name, _ in find_files([top], [".txt"], on_bad=bad.append)] == ["b.txt"]
    assert [str(error).split("top/")[1].split(":")[0] for error in bad] == [
        *("lost", "linked/pipe.txt")
    ]
    for name, wanted in (("lost", "link to a file that is not there"), ("linked/pipe.txt", "pipe")):
        with pytest.raises(BioclinError, match=wanted):
            list(find_files([top / name], [".txt"]))
        with pytest.raises(BioclinError, match=wanted), open_binary(top / name):
            pass
        with pytest.raises(BioclinError, match=wanted):
            read_text(top / name)
