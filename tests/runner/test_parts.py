"""Parts, resuming and several processes, with work that knows nothing of PHI."""

import errno
import json
import os
import subprocess
import sys
import textwrap

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.outputs import check_inputs
from spacy_bioclin.runner.engines.local import LocalEngine
from spacy_bioclin.runner.forms import open_form
from spacy_bioclin.runner.parts import add_counts, cut, make_output
from spacy_bioclin.runner.paths import check_output
from spacy_bioclin.runner.records import Columns, Record, Unreadable, encode_lines
from spacy_bioclin.runner.work import Work
from tests.runner.light import start, start_and_die, start_and_fail, upper

N = 250
SETTINGS = {"input": "a", "policy": "b"}


@pytest.fixture
def source(tmp_path):
    lines = (json.dumps({"id": i, "text": f"nota {i}"}) + "\n" for i in range(N))
    path = tmp_path / "notes.jsonl"
    path.write_text("".join(lines))
    return path


def run(source, out, *, begin=start, settings=SETTINGS, resume=False, overwrite=False, **more):
    form = open_form(source, Columns())
    options = {"skip_bad": False, "on_progress": lambda share, n: None, **more}
    options["engine"] = LocalEngine(options.pop("processes", 1))
    work = Work(out, settings, resume=resume, overwrite=overwrite)
    return make_output(form, work, begin, out.with_name("audit"), dict, **options)


def wanted(n=N):
    return b"".join(encode_lines([{"id": i, "text": f"NOTA {i}"}]) for i in range(n))


def failing(after, error):
    """Work that stops at a part."""

    def work(part):
        if part.number == after:
            raise error
        return upper(part)

    return lambda: work


def test_cut_by_position_whatever_is_skipped():
    bad = BioclinError("x")
    records = [Unreadable(n, "p", bad) if n % 2 else Record(n, "p", {}) for n in range(1, 202)]
    sizes = [(part.number, len(part.records), len(part.unreadable)) for part in cut(records)]
    assert sizes == [(0, 50, 50), (1, 50, 50), (2, 0, 1)]
    assert [part.number for part in cut([])] == [0]


def test_counts_add_up():
    total = {}
    for _ in range(2):
        add_counts(total, {"n": 1, "yes": True, "by": {"a": 2}, "versions": {"x": "1"}, "s": "t"})
    assert total == {"n": 2, "yes": 2, "by": {"a": 4}}


@pytest.mark.parametrize("processes", [1, 2])
def test_output_and_counts(processes, source, tmp_path):
    out = tmp_path / "deep" / "out.jsonl"
    seen = []
    counts = run(source, out, processes=processes, on_progress=lambda *args: seen.append(args))
    assert out.read_bytes() == wanted()
    assert (counts["read"], counts["written"], counts["of"]) == (N, N, {"all": N})
    assert seen[-1] == (1.0, N)
    assert [n for _, n in seen] == [100, 200, 250]
    assert sorted(path.name for path in out.parent.iterdir()) == ["audit", "out.jsonl"]


def test_an_error_keeps_what_is_finished(source, tmp_path):
    out = tmp_path / "out.jsonl"
    with pytest.raises(BioclinError, match="stop"):
        run(source, out, begin=failing(2, BioclinError("stop")))
    assert not out.exists()
    assert len(list(tmp_path.glob(".out.jsonl.work/*.part"))) == 2
    with pytest.raises(BioclinError, match="--resume"):
        run(source, out)
    with pytest.raises(BioclinError, match="not what they were: policy; give"):
        run(source, out, settings={**SETTINGS, "policy": "c"}, resume=True)
    made = []
    counts = run(source, out, resume=True, on_progress=lambda share, n: made.append(n))
    assert made == [50]  # records 201 to 250
    assert out.read_bytes() == wanted()
    assert (counts["read"], counts["written"]) == (N, N)


def test_begin_again(source, tmp_path):
    out = tmp_path / "out.jsonl"
    with pytest.raises(BioclinError):
        run(source, out, begin=failing(2, BioclinError("stop")))
    counts = run(source, out, settings={"other": "x"}, overwrite=True)
    assert counts["written"] == N
    assert out.read_bytes() == wanted()


def test_nothing_is_left_if_no_part_is_finished(source, tmp_path):
    before = set(tmp_path.iterdir())
    with pytest.raises(BioclinError):
        run(source, tmp_path / "out.jsonl", begin=failing(0, BioclinError("at once")))
    assert set(tmp_path.iterdir()) == before


def refuse(numbers):
    """Work that refuses some records."""

    def work(part):
        good = [record for record in part.records if record.number not in numbers]
        bad = [record.place for record in part.records if record.number in numbers]
        done = upper(part._replace(records=good))
        return done._replace(refused=[{"place": p, "reason": f"{p}: leak"} for p in bad])

    return lambda: work


def test_refused_records_stop_the_run_or_are_counted(source, tmp_path):
    out = tmp_path / "out.jsonl"
    with pytest.raises(BioclinError, match=r"line 150: leak \(--skip-bad"):
        run(source, out, begin=refuse({150}))
    assert len(list(tmp_path.glob(".out.jsonl.work/*.part"))) == 1  # what is finished stays
    counts = run(source, out, begin=refuse({150}), resume=True, skip_bad=True)
    assert (counts["read"], counts["written"], counts["skipped"]) == (N, N - 1, 1)
    assert counts["refused"] == [{"place": "line 150", "reason": "line 150: leak"}]
    assert len(out.read_bytes().splitlines()) == N - 1
    out.unlink()
    with pytest.raises(BioclinError, match="no record can be written; the first: line 1: leak"):
        run(source, out, begin=refuse(set(range(1, 101))), skip_bad=True)
    assert not list(tmp_path.glob(".out*"))


def test_parts_of_other_settings_are_never_used(source, tmp_path):
    out = tmp_path / "out.jsonl"
    with pytest.raises(BioclinError):
        run(source, out, begin=failing(2, BioclinError("stop")))
    [first, _] = sorted(tmp_path.glob(".out.jsonl.work/*.part"))
    other = Work(out, {"input": "a", "policy": "c"}, resume=False, overwrite=True)
    assert other.hash not in first.name and f'"settings": "{other.hash}"' not in str(first)
    other.write(0, upper(next(cut([Record(1, "line 1", {"id": 0, "text": "x"})]))))
    mine = Work.__new__(Work)
    mine.out, mine.folder, mine.hash = out, other.folder, first.name.split(".")[1]
    mine.damaged = []
    assert mine.read(0) is None and not mine.damaged
    other.path(0).rename(mine.path(0))
    assert mine.read(0) is None and mine.damaged == [mine.path(0).name]


def test_unreadable_records(source, tmp_path):
    lines = source.read_bytes().splitlines(keepends=True)
    source.write_bytes(b"".join([*lines[:150], b"secreto\n", *lines[150:]]))
    out = tmp_path / "out.jsonl"
    with pytest.raises(BioclinError, match=r"line 151: not JSON \(--skip-bad") as raised:
        run(source, out)
    assert "secreto" not in str(raised.value)
    counts = run(source, out, resume=True, skip_bad=True)
    assert out.read_bytes() == wanted()
    assert (counts["read"], counts["skipped"], counts["places"]) == (N + 1, 1, ["line 151"])


def test_a_folder_replaces_a_folder(tmp_path):
    source, out = tmp_path / "notes", tmp_path / "out"
    for folder, name in ((source, "a.txt"), (out, "old.txt")):
        folder.mkdir()
        (folder / name).write_text("x")
    run(source, out, overwrite=True)
    assert {path.name: path.read_text() for path in out.iterdir()} == {"a.txt": "X"}
    assert {path.name for path in tmp_path.iterdir()} == {"notes", "out", "audit"}


class FullDisk:
    """An fsync for a disk that is full when a file with this in its name is written."""

    def __init__(self, name):
        self.name = name
        self.fsync = os.fsync

    def __call__(self, descriptor):
        if self.name in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.ENOSPC, "No space left on device")
        self.fsync(descriptor)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="Linux")
def test_disk_full(source, tmp_path, monkeypatch):
    for where in ("manifest", "00000001", "joined", "audit"):
        folder = tmp_path / where
        out = folder / "out.jsonl"
        folder.mkdir()
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", FullDisk(where))
            with pytest.raises(BioclinError, match=r"disk is full.*--resume"):
                run(source, out)
        assert not out.exists()
        left = {path.name for path in folder.rglob("*")}
        assert not left & {"joined", "audit"}
        assert not any(name.endswith(".partial") for name in left)
        run(source, out, resume=True)
        assert out.read_bytes() == wanted()


@pytest.mark.slow
def test_failing_processes(tmp_path):
    source = tmp_path / "one.jsonl"  # each note costs processes
    source.write_text('{"text": "nota"}')
    for begin, message in ((start_and_fail, "no such pipeline"), (start_and_die, "--processes")):
        with pytest.raises(BioclinError, match=message):
            run(source, tmp_path / "out.jsonl", begin=begin, processes=2)
        assert not (tmp_path / "out.jsonl").exists()


def test_workers_end_when_their_parent_is_killed(tmp_path):
    """They have its stdout: who reads that comes to its end when all of them have ended."""
    script = tmp_path / "parent.py"
    script.write_text(
        textwrap.dedent("""
        import os, threading
        from spacy_bioclin.parallel import map_parts
        def work(part):
            os.write(1, b"!")
            threading.Event().wait()
        def start():
            return work
        if __name__ == "__main__":
            list(map_parts(start, [1, 2], 2))
        """)
    )
    parent = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE)
    try:
        assert parent.stdout.read(2) == b"!!"
    finally:
        parent.kill()
    assert parent.communicate(timeout=120)[0] == b""


def test_inputs_are_never_the_output(tmp_path):
    source = tmp_path / "a.jsonl"
    source.write_text("")
    folder = tmp_path / "notes"
    folder.mkdir()
    os.link(source, tmp_path / "hard.jsonl")
    (tmp_path / "soft.jsonl").symlink_to(source)
    (tmp_path / "soft").symlink_to(folder)
    for out in ("a.jsonl", "hard.jsonl", "soft.jsonl", "notes/../a.jsonl"):
        with pytest.raises(BioclinError, match="is the input"):
            check_inputs(tmp_path / out, [source])
    with pytest.raises(BioclinError, match="is the input"):
        check_inputs(tmp_path / "soft", [folder])
    for out in ("notes/out", "soft/a/b"):
        with pytest.raises(BioclinError, match="outside it"):
            check_output(folder, tmp_path / out, overwrite=True, resume=False)
    (tmp_path / "here").symlink_to(tmp_path)
    for out in (tmp_path, tmp_path / "here", tmp_path / "notes" / ".."):
        with pytest.raises(BioclinError, match="or holds it"):
            check_inputs(out, [folder])
    check_inputs(tmp_path / "notes2", [folder, source])


def test_outputs_are_not_replaced_by_mistake(tmp_path):
    source = tmp_path / "a.jsonl"
    source.write_text("")
    folder, home = tmp_path / "notes", tmp_path / "home"
    folder.mkdir()
    home.mkdir()

    def check(given, out, **more):
        options = {"overwrite": False, "resume": False, **more}
        check_output(given, tmp_path / out, **options)

    with pytest.raises(BioclinError, match=r"ending \.jsonl"):
        check(source, "out.csv")
    (tmp_path / "dangling.jsonl").symlink_to(tmp_path / "nowhere")
    with pytest.raises(BioclinError, match="--overwrite"):
        check(source, "dangling.jsonl")
    with pytest.raises(BioclinError, match="both folders, or both files"):
        check(folder, "a.jsonl", overwrite=True)
    with pytest.raises(BioclinError, match="not an output of this command"):
        check(folder, "home", overwrite=True)
    for name in ("home", "new"):
        (tmp_path / f"{name}.audit.json").write_text("{}")
    check(folder, "home", overwrite=True)
    with pytest.raises(BioclinError, match=r"audit\.json: exists already"):
        check(folder, "new")
    check(folder, "new", resume=True)
