"""Whatever is wrong with what an interrupted run has left, a resumed one writes the same bytes."""

import itertools
import json
import os
import shutil
from pathlib import Path

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.runner.engines.local import LocalEngine
from spacy_bioclin.runner.forms import open_form
from spacy_bioclin.runner.parts import make_output
from spacy_bioclin.runner.records import Columns, encode_lines
from spacy_bioclin.runner.work import MANIFEST, Done, Work

N = 250
SETTINGS = {"input": "a", "policy": "b"}


def upper(part):
    rows = [{**record.row, "text": record.row["text"].upper()} for record in part.records]
    return Done(encode_lines(rows), {"written": len(rows)})


def stop_after_two(part):
    if part.number == 2:
        raise BioclinError("stop")
    return upper(part)


def run(folder: Path, work=upper, settings=SETTINGS, *, resume=True, overwrite=False):
    out = folder / "out.jsonl"
    parts = Work(out, settings, resume=resume, overwrite=overwrite)
    options = {"skip_bad": False, "on_progress": lambda share, n: None}
    form = open_form(folder / "notes.jsonl", Columns())
    counts = make_output(
        form, parts, lambda: work, folder / "audit", dict, engine=LocalEngine(1), **options
    )
    return parts, counts


WANTED = b"".join(encode_lines([{"id": i, "text": f"NOTA {i}"}]) for i in range(N))


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """A run that was interrupted after two of three parts."""
    tmp_path = tmp_path_factory.mktemp("interrupted")
    lines = (json.dumps({"id": i, "text": f"nota {i}"}) + "\n" for i in range(N))
    (tmp_path / "notes.jsonl").write_text("".join(lines))
    with pytest.raises(BioclinError, match=r"2 finished parts are kept; run .* with --resume"):
        run(tmp_path, stop_after_two)
    return tmp_path


@pytest.fixture
def fresh(interrupted, tmp_path):
    """Copy it, as often as it is called."""
    numbers = itertools.count()
    return lambda: Path(shutil.copytree(interrupted, tmp_path / f"{next(numbers)}"))


@pytest.fixture
def folder(fresh):
    return fresh()


def parts_of(folder: Path) -> list[Path]:
    return sorted(folder.glob(".out.jsonl.work/*.part"))


def manifest_of(folder: Path) -> Path:
    return folder / ".out.jsonl.work" / MANIFEST


MANIFESTS = {
    "whole": lambda content: content,
    "empty": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "list": lambda content: b"[]",
    "null": lambda content: b"null",
    "string": lambda content: b'"input"',
    "wrong types": lambda content: b'{"input": ["a"], "policy": {"b": 1}}',
    "bytes": lambda content: b"\xff\xfe\x00\x00",
    "deep": lambda content: b"[" * 100_000,
    "huge number": lambda content: b'{"input": ' + b"9" * 5000 + b"}",
}


def test_manifests(fresh):
    for kind, change in MANIFESTS.items():
        folder = fresh()
        manifest = manifest_of(folder)
        manifest.write_bytes(change(manifest.read_bytes()))
        parts, counts = run(folder)
        assert (folder / "out.jsonl").read_bytes() == WANTED, kind
        assert counts["written"] == N, kind
        assert parts.damaged == ([] if kind == "whole" else [MANIFEST]), kind
        assert not list(folder.glob(".out*")), kind


def test_a_manifest_of_other_settings(folder):
    manifest = manifest_of(folder)
    manifest.write_text(json.dumps({**SETTINGS, "policy": "c", "\x1b[2J": "x"}))
    with pytest.raises(BioclinError) as raised:
        run(folder)
    assert "not what they were: policy; give what was given then" in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1
    assert len(parts_of(folder)) == 2  # nothing is lost: the right settings go on


def flip(at: int):
    def change(part: Path) -> None:
        content = bytearray(part.read_bytes())
        content[at] ^= 1
        part.write_bytes(content)

    return change


def cut_at_line_end(part: Path) -> None:
    lines = part.read_bytes().splitlines(keepends=True)
    part.write_bytes(b"".join(lines[:-50]))  # 50 notes fewer


def resize(n: int):
    return lambda part: os.truncate(part, n if n >= 0 else part.stat().st_size + n)


def replace_by_folder(part: Path) -> None:
    part.unlink()
    part.mkdir()


def forge_counts(part: Path) -> None:
    part.write_bytes(part.read_bytes().replace(b'"written": 100', b'"written": 900'))


PARTS = {
    "missing": Path.unlink,
    "empty": resize(0),
    "cut at a line end": cut_at_line_end,
    "cut in a line": resize(-7),
    "cut to its hash": resize(65),
    "cut in its head": resize(80),
    "longer": lambda part: part.write_bytes(part.read_bytes() + b'{"id": 1, "text": "X"}\n'),
    "first byte": flip(0),
    "byte of the head": flip(70),
    "last byte": flip(-2),
    "counts": forge_counts,
    "no hash": lambda part: part.write_bytes(part.read_bytes().partition(b"\n")[2]),
    "folder": replace_by_folder,
    "link to nothing": lambda part: (part.unlink(), part.symlink_to("nowhere")),
}


def test_parts(fresh):
    for number, (kind, change) in enumerate(PARTS.items()):
        folder, which = fresh(), number % 2
        change(parts_of(folder)[which])
        parts, counts = run(folder)
        assert (folder / "out.jsonl").read_bytes() == WANTED, kind
        assert counts["written"] == counts["read"] == N, kind
        silent = kind in ("missing", "link to nothing")
        named = [name[:8] for name in parts.damaged]
        assert named == ([] if silent else [f"{which:08}"]), kind
        assert not list(folder.glob(".out*")), kind


def test_parts_in_other_places(folder):
    first, second = parts_of(folder)
    second.write_bytes(first.read_bytes())
    extra = first.with_name(first.name.replace("00000000", "00000099"))
    shutil.copy(first, extra)
    parts, _ = run(folder)
    assert (folder / "out.jsonl").read_bytes() == WANTED
    assert parts.damaged == [second.name]


def test_parts_of_another_run(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    shutil.copy(folder / "notes.jsonl", other)
    with pytest.raises(BioclinError):
        run(other, stop_after_two, {**SETTINGS, "policy": "c"})
    names = [path.name for path in parts_of(folder)]
    for mine, theirs in zip(parts_of(folder), parts_of(other), strict=True):
        mine.write_bytes(theirs.read_bytes())
    parts, _ = run(folder)
    assert (folder / "out.jsonl").read_bytes() == WANTED
    assert parts.damaged == names


def test_a_part_that_is_damaged_while_the_others_are_made(folder):
    damaged = []

    def work(part):
        resize(-7)(parts_of(folder)[1])
        damaged.append(part.number)
        return upper(part)

    with pytest.raises(BioclinError, match=r"00000001\..*not as it was written.*--resume"):
        run(folder, work)
    assert not (folder / "out.jsonl").exists()
    run(folder)
    assert (folder / "out.jsonl").read_bytes() == WANTED
    assert damaged == [2]


def test_a_folder_without_parts_is_no_reason_to_stop(folder):
    for part in parts_of(folder):
        part.unlink()
    run(folder, resume=False)
    assert (folder / "out.jsonl").read_bytes() == WANTED


@pytest.mark.parametrize("kind", ["file", "link"])
def test_the_work_folder_is_one_of_ours(kind, folder, tmp_path_factory):
    work = folder / ".out.jsonl.work"
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "work"
    shutil.move(work, elsewhere)
    work.write_text("") if kind == "file" else work.symlink_to(elsewhere)
    with pytest.raises((BioclinError, OSError)):
        run(folder, resume=False, overwrite=True)
    assert len(list(elsewhere.iterdir())) == 3  # nothing behind a link is removed
