"""Outputs are refused where they would replace something, and written whole or not at all."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.files import hash_file
from spacy_bioclin.outputs import Output, check_output, lock_output, open_atomic, write_atomic


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "new" / "x.txt"
    write_atomic(path, "one\r\n")
    assert path.read_bytes() == b"one\r\n"
    with pytest.raises(ZeroDivisionError), open_atomic(path) as file:
        file.write("two")
        raise ZeroDivisionError
    assert path.read_bytes() == b"one\r\n" and list(path.parent.iterdir()) == [path]
    assert hash_file(path) == hashlib.sha256(b"one\r\n").hexdigest()


def test_files_with_text_of_notes_are_private(tmp_path: Path) -> None:
    Output(tmp_path / "a", overwrite=False, private=True).write("note")
    Output(tmp_path / "b", overwrite=False).write(b"scores")
    with Output(tmp_path / "c", overwrite=False, marker="m", private=True).open_folder() as folder:
        (folder / "m").touch()
    umask = os.umask(0)
    os.umask(umask)
    assert [mode(tmp_path / name) for name in "abc"] == [0o600, 0o666 & ~umask, 0o700]


def test_a_folder_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for overwrite, name in ((False, "one"), (True, "two")):
        with Output(out, overwrite=overwrite, marker="meta").open_folder() as folder:
            (folder / "meta").touch()
            (folder / name).touch()
    assert {path.name for path in out.iterdir()} == {"meta", "two"}
    opened = Output(out, overwrite=True, marker="meta").open_folder()
    with pytest.raises(ZeroDivisionError), opened as folder:
        (folder / "three").touch()
        raise ZeroDivisionError
    assert {path.name for path in out.iterdir()} == {"meta", "two"}
    assert list(tmp_path.iterdir()) == [out]


def test_inputs_and_foreign_files_are_never_replaced(tmp_path: Path) -> None:
    source = tmp_path / "notes" / "a.txt"
    source.parent.mkdir()
    source.write_text("note")
    (tmp_path / "soft").symlink_to(source)
    os.link(source, tmp_path / "hard")
    for name in ("notes/a.txt", "notes/../notes/a.txt", "soft", "hard"):
        with pytest.raises(BioclinError, match="is the input"):
            check_output(tmp_path / name, inputs=[source], overwrite=True)
    for path in (source.parent, tmp_path):
        with pytest.raises(BioclinError, match="or holds it"):
            check_output(path, inputs=[source], overwrite=True, marker="meta")
    with pytest.raises(BioclinError, match="or --overwrite"):
        check_output(source, overwrite=False)
    with pytest.raises(BioclinError, match="or --overwrite"):
        check_output(source.parent, overwrite=False, marker="meta")
    with pytest.raises(BioclinError, match="holds no meta"):
        check_output(source.parent, overwrite=True, marker="meta")
    with pytest.raises(BioclinError, match="is a file, and the output is a folder"):
        check_output(source, overwrite=True, marker="meta")
    with pytest.raises(BioclinError, match="is a folder, and the output is a file"):
        check_output(source.parent, overwrite=True)
    check_output(source, overwrite=True)
    check_output(tmp_path / "notes" / "b.txt", inputs=[source], overwrite=False)
    (tmp_path / "empty").mkdir()
    check_output(tmp_path / "empty", overwrite=False, marker="meta")
    assert source.read_text() == "note"


def test_an_output_that_is_being_written_is_locked(tmp_path: Path) -> None:
    path = tmp_path / "new" / "out"
    with Output(path, overwrite=False).open() as file:
        file.write("first")
        for make in (
            lambda: Output(path, overwrite=True).write("second"),
            lambda: Output(path, overwrite=True, marker="m").open_folder().__enter__(),
            lambda: lock_output(path).__enter__(),
        ):
            with pytest.raises(BioclinError, match="out: another run is writing it"):
                make()
    assert path.read_text() == "first" and list(path.parent.iterdir()) == [path]
    # Checked again with the lock: the other run may have been faster.
    late = Output(tmp_path / "late", overwrite=False)
    Output(tmp_path / "late", overwrite=False).write("first")
    with pytest.raises(BioclinError, match="--overwrite"):
        late.write("second")
    assert (tmp_path / "late").read_text() == "first"


def test_the_lock_of_a_killed_process_is_open(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from spacy_bioclin.outputs import lock_output\n"
        "with lock_output(Path(sys.argv[1])): os.kill(os.getpid(), 9)"
    )
    path = tmp_path / "out"
    assert subprocess.run([sys.executable, "-c", code, path], check=False).returncode == -9
    assert (tmp_path / ".out.lock").exists()
    Output(path, overwrite=False).write("x")
    assert list(tmp_path.iterdir()) == [path]
