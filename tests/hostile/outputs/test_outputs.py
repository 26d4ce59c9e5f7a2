"""No command replaces an input, or anything without --overwrite, or fails without saying why.

Each command that writes is run with each path at which it should write nothing.
"""

import hashlib
import json
import os
import resource
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import spacy
from click.testing import Result
from spacy.tokens import Span
from spacy.training import Example
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.corpora.agreement.i2b2_xml import read_i2b2
from spacy_bioclin.corpora.bioc_format import format_bioc
from spacy_bioclin.corpora.brat import read_brat
from spacy_bioclin.corpora.docbin import write_docs
from spacy_bioclin.outputs import Output, check_output, lock_output
from spacy_bioclin.types import AnnotatedText

PHI = "Prado"
NOTE = f"Paciente de {PHI} con tos ."


class Command(NamedTuple):
    """A command that writes.

    arguments (list[str]): Its arguments in the folder `ready`; OUT is the output.
    suffix (str): What the output's name ends with; "/" for a folder.
    source (str): The input that it would be worst to lose.
    private (bool): Whether there is text of notes in the output.
    """

    arguments: list[str]
    suffix: str
    source: str
    private: bool = False


CONVERT = ["convert", "brat", "brat", "OUT", "--lang", "es"]
COMMANDS = {
    "annotate": Command(["annotate", "model", "n.txt", "-o", "OUT"], ".jsonl", "n.txt", True),
    "evaluate": Command(["evaluate", "model", "c.spacy", "-o", "OUT"], ".json", "c.spacy"),
    "evaluate --html": Command(
        ["evaluate", "model", "c.spacy", "-o", "m.json", "--html", "OUT"], ".html", "c.spacy", True
    ),
    "evaluate --save-predictions": Command(
        ["evaluate", "model", "c.spacy", "-o", "m.json", "--save-predictions", "OUT"],
        ".spacy",
        "c.spacy",
        True,
    ),
    "convert": Command(CONVERT, ".spacy", "brat/a.txt", True),
    "convert --report": Command(
        ["convert", "brat", "brat", "x.spacy", "--lang", "es", "--report", "OUT"],
        ".json",
        "brat/a.ann",
    ),
    "convert to brat": Command(["convert", "bioc", "b.xml", "OUT"], "/", "b.xml", True),
    "convert to i2b2": Command([*CONVERT, "--to", "i2b2"], "/", "brat", True),
    "convert to pubtator": Command([*CONVERT, "--to", "pubtator"], ".pubtator", "brat/a.txt", True),
    "convert to columns": Command([*CONVERT, "--to", "columns"], ".tsv", "brat/a.txt", True),
    "convert to bioc": Command([*CONVERT, "--to", "bioc"], ".json", "brat/a.txt", True),
    "convert to label-studio": Command([*CONVERT, "--to", "label-studio"], "/", "brat", True),
    "convert to doccano": Command([*CONVERT, "--to", "doccano"], ".jsonl", "brat/a.txt", True),
    "convert to prodigy": Command([*CONVERT, "--to", "prodigy"], ".jsonl", "brat/a.txt", True),
    "convert to inception": Command([*CONVERT, "--to", "inception"], "/", "brat", True),
    "export": Command(
        ["export", "model", "n.txt", "OUT", "--to", "doccano"], ".jsonl", "n.txt", True
    ),
    "suggest": Command(["suggest", "sure", "n.txt", "-o", "OUT"], ".jsonl", "n.txt", True),
    "suggest --html": Command(
        ["suggest", "sure", "n.txt", "-o", "m.jsonl", "--html", "OUT"], ".html", "n.txt", True
    ),
    "convert-table": Command(
        ["convert-table", "t.csv", "OUT", "--lang", "es", "--text", "note", "--label", "class"],
        ".spacy",
        "t.csv",
        True,
    ),
    "prepare": Command(["prepare", "demo", "OUT"], "/", "assets/demo/es/train/a.txt", True),
    "merge": Command(["merge", "c.spacy", "-o", "OUT"], ".spacy", "c.spacy", True),
    "overlap": Command(
        ["overlap", "c.spacy", "--held-out", "long.spacy", "-o", "OUT"], ".txt", "c.spacy"
    ),
    "deid": Command(
        ["deid", "n.jsonl", "OUT", "--lang", "es", "--rules-only"], ".jsonl", "n.jsonl", True
    ),
    "deid of a folder": Command(
        ["deid", "brat", "OUT", "--lang", "es", "--rules-only"], "/", "brat", True
    ),
    "run": Command(["run", "model", "n.jsonl", "OUT"], ".jsonl", "n.jsonl", True),
    "run to parquet": Command(
        ["run", "model", "n.jsonl", "OUT", "--to", "parquet"], "/", "n.jsonl", True
    ),
    "run to spacy": Command(["run", "model", "brat", "OUT", "--to", "spacy"], "/", "brat", True),
    "run to brat": Command(["run", "model", "brat", "OUT", "--to", "brat"], "/", "brat", True),
    "run to omop": Command(["run", "model", "7.txt", "OUT", "--to", "omop"], ".csv", "7.txt", True),
    "run to fhir": Command(
        ["run", "model", "7.txt", "OUT", "--to", "fhir"], ".ndjson", "7.txt", True
    ),
    "deid-key": Command(["deid-key", "OUT"], ".key", "n.txt", True),
    "calibrate": Command(["calibrate", "phi", "c.spacy", "-o", "OUT"], "/", "phi"),
    "invent-notes": Command(
        ["invent-notes", "n.txt", "-o", "OUT", "--lang", "es", "--number", "2"],
        ".spacy",
        "n.txt",
        True,
    ),
    "augment-phi": Command(
        ["augment-phi", "c.spacy", "-o", "OUT", "--lang", "es", "--layer", "phi"],
        ".spacy",
        "c.spacy",
        True,
    ),
    "kb build": Command(["kb", "build", "x.csv", "-o", "OUT"], "/", "x.csv"),
    "kb merge": Command(["kb", "merge", "kb", "-o", "OUT"], "/", "kb"),
    "init-config": Command(["init-config", "ner", "-o", "OUT"], ".cfg", "n.txt"),
    "recipes write": Command(
        ["recipes", "write", "lewis-2020-seq", "ner.cfg", "-o", "OUT"], ".cfg", "ner.cfg"
    ),
    "clean-text": Command(["clean-text", "n.txt", "--lang", "es", "-o", "OUT"], "/", "n.txt", True),
    "encoders export": Command(["encoders", "export", "model", "-o", "OUT"], "/", "model"),
    "import-hf": Command(["import-hf", "checkpoint", "-o", "OUT"], "/", "checkpoint"),
    "init-encoder": Command(["init-encoder", "c.spacy", "-o", "OUT"], "/", "c.spacy"),
}
NEVER_OVERWRITES = {"deid-key"}


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make a folder with an input for each command, and be in it."""
    folder = tmp_path_factory.mktemp("ready")
    before = Path.cwd()
    os.chdir(folder)
    nlp = spacy.blank("es")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "SIGN", "pattern": "tos"}])  # type: ignore[attr-defined]
    nlp.to_disk("model")
    sure = spacy.blank("es")
    sure.add_pipe("spancat", config={"threshold": 0.0})  # it gives probabilities
    example = Example(sure.make_doc("tos"), sure.make_doc("tos"))
    example.reference.spans["sc"] = [Span(example.reference, 0, 1, "SIGN")]
    sure.initialize(lambda: [example])
    sure.to_disk("sure")
    finder = spacy.blank("es")
    finder.add_pipe("bioclin_phi_rules")
    finder.to_disk("phi")
    Path("n.txt").write_text(NOTE, "utf-8")
    Path("7.txt").write_text(NOTE, "utf-8")
    Path("n.jsonl").write_text(json.dumps({"text": NOTE}) + "\n", "utf-8")
    Path("t.csv").write_text(f"note,class\n{NOTE},a\nSin tos,b\n", "utf-8")
    Path("x.csv").write_text("id,name\nA,Asma\n", "utf-8")
    Path("brat").mkdir()
    Path("brat/a.txt").write_text(NOTE, "utf-8")
    ann = f"T1\tTERRITORIO 12 17\t{PHI}\nT2\tSIGN 22 25\ttos\n"
    Path("brat/a.ann").write_text(ann, "utf-8")
    for split in ("train", "dev", "test"):
        shutil.copytree("brat", f"assets/demo/es/{split}")
    Path("b.xml").write_text(format_bioc([AnnotatedText("d", NOTE)]), "utf-8")
    Path("checkpoint").mkdir()
    Path("checkpoint/config.json").write_text("{}", "utf-8")
    corpus = [*CONVERT[:3], "c.spacy", "--lang", "es", "--layer", "TERRITORIO=phi"]
    for arguments in (
        ["kb", "build", "x.csv", "-o", "kb"],
        ["init-config", "ner", "-o", "ner.cfg"],
        [*corpus, "--layer", "SIGN=ents"],
    ):
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.output
    Path("c.report.json").unlink()
    write_docs([spacy.blank("es")(f"{NOTE} " * 12)], Path("long.spacy"))
    yield folder
    os.chdir(before)


def run(name: str, out: str, *options: str) -> Result:
    arguments = [out if part == "OUT" else part for part in COMMANDS[name].arguments]
    done = CliRunner().invoke(app, [*arguments, *options])
    for other in ("m.json", "m.jsonl", "x.spacy"):  # outputs that the case is not about
        Path(other).unlink(missing_ok=True)
    return done


def look(folder: Path) -> dict[str, str]:
    """Hash all that is in a folder, hidden files and links too."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            found[str(path)] = f"-> {os.readlink(path)}"
        elif path.is_file():
            found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            found[str(path)] = str(stat.S_IFMT(path.stat().st_mode))
    return found


def assert_one_line(name: str, done: Result) -> None:
    """Check that the command has failed, and said so in one line without text of a note."""
    assert done.exit_code in (1, 2), (name, done.output)
    assert isinstance(done.exception, SystemExit), (name, done.exception)
    said = [
        line
        for line in done.stderr.splitlines()
        if line.startswith("bioclin: ") and "warning" not in line
    ]
    assert len(said) == 1 or done.exit_code == 2, (name, done.stderr)
    assert "Traceback" not in done.output and PHI not in done.stderr, (name, done.stderr)


# A path, given a new folder and the command, at which nothing may be written, whatever is given.
PLACES: dict[str, Callable[[Path, Command], str]] = {
    "the input": lambda folder, command: command.source,
    "the input, by another path": lambda folder, command: f"brat/../{command.source}",
    "a folder with the input": lambda folder, command: "../ready0",
    "a link to the input": lambda folder, command: _link(folder, command, soft=True),
    "the input by another name": lambda folder, command: _link(folder, command, soft=False),
    "standard output": lambda folder, command: "-",
    "a pipe": lambda folder, command: _pipe(folder, command),
    "inside a file": lambda folder, command: f"n.txt/out{command.suffix.strip('/')}",
    "a long name": lambda folder, command: str(folder / ("x" * 300 + command.suffix.strip("/"))),
    "the current folder": lambda folder, command: ".",
    "the folder above": lambda folder, command: "..",
    "the root": lambda folder, command: "/",
    "somebody's folder": lambda folder, command: _folder(folder, command),
    "a process": lambda folder, command: f"/proc/self/fd/out{command.suffix.strip('/')}",
}


def _link(folder: Path, command: Command, *, soft: bool) -> str:
    link = folder / f"link{command.suffix.strip('/')}"
    source = Path(command.source).resolve()
    if soft or source.is_dir():
        link.symlink_to(source)
    else:
        os.link(source, link)
    return str(link)


def _pipe(folder: Path, command: Command) -> str:
    pipe = folder / f"pipe{command.suffix.strip('/')}"
    os.mkfifo(pipe)
    return str(pipe)


def _folder(folder: Path, command: Command) -> str:
    thesis = folder / f"mine{command.suffix.strip('/')}"
    thesis.mkdir()
    (thesis / "thesis.doc").write_text("years of work")
    return str(thesis)


# Each command is run at these, for it says itself what its inputs and its own folders are.
ALL_COMMANDS = ("the input", "somebody's folder")
OTHERS = [place for place in PLACES if place not in ALL_COMMANDS]


def cases(place: str) -> list[tuple[str, list[str]]]:
    """List commands and options for a place: a few for one that outputs refuses for all."""
    options = {name: [] if name in NEVER_OVERWRITES else ["--overwrite"] for name in COMMANDS}
    if place in ALL_COMMANDS:
        without = "init-config" if "input" in place else ""  # it reads none
        return [(name, more) for name, more in options.items() if name != without]
    some = [*COMMANDS][OTHERS.index(place) :: len(OTHERS)]
    if place == "standard output" or "input" in place:  # init-config prints, and reads no input
        some = [name for name in some if name != "init-config"]
    return [(name, more) for name in some for more in ([], options[name])]


@pytest.mark.parametrize("place", PLACES)
def test_nothing_is_written_where_nothing_should_be(
    ready: Path, tmp_path: Path, place: str
) -> None:
    before = look(ready)
    assert cases(place)
    for number, (name, options) in enumerate(cases(place)):
        folder = tmp_path / str(number)
        folder.mkdir()
        out = PLACES[place](folder, COMMANDS[name])
        there = look(folder)
        assert_one_line(name, run(name, out, *options))
        assert look(folder) == there, name
        assert look(ready) == before, name


def test_what_is_there_stays(ready: Path, tmp_path: Path) -> None:
    before = look(ready)
    for number, (name, command) in enumerate(COMMANDS.items()):
        there = tmp_path / f"{number}{command.suffix.strip('/')}"
        if command.suffix == "/":
            there.mkdir()
            (there / "x").touch()
        else:
            there.write_text("there")
        content = look(tmp_path)
        assert_one_line(name, run(name, str(there)))
        assert look(tmp_path) == content, name
    assert look(ready) == before


@pytest.mark.parametrize("kind", ["a link to nothing", "/dev/full", "/dev/stdout"])
def test_links_and_devices_stay(ready: Path, tmp_path: Path, kind: str) -> None:
    for name, command in [*COMMANDS.items()][::7]:
        path = Path(kind)
        if kind == "a link to nothing":
            path = tmp_path / f"{name}{command.suffix.strip('/')}"
            path.symlink_to(tmp_path / "nowhere")
        before = look(ready), look(tmp_path)
        assert_one_line(name, run(name, str(path)))
        assert (look(ready), look(tmp_path)) == before, name


@contextmanager
def no_space() -> Iterator[None]:
    """Let no file grow beyond some bytes, as if the disk were full."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


SLOW = {"encoders export", "import-hf", "init-encoder", "clean-text", "recipes write"}
QUICK = sorted(set(COMMANDS) - SLOW)
# Each writes in another way: text, JSON, HTML, DocBin, folders, Parquet, arrays, a key.
WRITERS = [
    *("annotate", "evaluate", "evaluate --html", "evaluate --save-predictions", "convert"),
    *("convert to label-studio", "deid", "deid of a folder", "run to parquet", "kb build"),
    *("deid-key", "calibrate", "init-config", "overlap", "suggest"),
]


def check_full_disk(ready: Path, tmp_path: Path, names: list[str]) -> None:
    before = look(ready)
    for name in names:
        with no_space():
            done = run(name, str(tmp_path / f"out{COMMANDS[name].suffix.strip('/')}"))
        assert_one_line(name, done)
        assert look(tmp_path) == {}, name
        assert look(ready) == before, name


@pytest.mark.parametrize("third", range(3))
def test_a_full_disk_leaves_nothing(ready: Path, tmp_path: Path, third: int) -> None:
    check_full_disk(ready, tmp_path, WRITERS[third::3])


@pytest.mark.slow
def test_a_full_disk_leaves_nothing_of_other_commands(ready: Path, tmp_path: Path) -> None:
    check_full_disk(ready, tmp_path, sorted(set(QUICK) - set(WRITERS)))


PRIVATE = [name for name in QUICK if "pubtator" not in name]


# These write as others do: an exporter for each format, the same writer with another option.
ALIKE = {f"convert to {form}" for form in ("i2b2", "columns", "bioc", "doccano", "prodigy")}
ALIKE |= {"convert to inception", "suggest --html", "run to omop", "run to spacy", "invent-notes"}


@pytest.mark.parametrize(
    "part", [*range(4), pytest.param("alike", marks=pytest.mark.slow)], ids=str
)
def test_notes_are_private(ready: Path, tmp_path: Path, part: int | str) -> None:
    names = sorted(set(PRIVATE) - ALIKE)[part::4] if isinstance(part, int) else sorted(ALIKE)
    for name in names:
        command = COMMANDS[name]
        out = tmp_path / name / f"out{command.suffix.strip('/')}"
        umask = os.umask(0o022)
        try:
            if name == "deid-key":
                out.parent.mkdir()
            done = run(name, str(out))
        finally:
            os.umask(umask)
        assert done.exit_code == 0, (name, done.output)
        bits = out.stat().st_mode & 0o777
        wanted = (0o700 if out.is_dir() else 0o600) if command.private else None
        assert wanted is None or bits == wanted, name
        if command.private and out.is_dir():
            inside = [*out.rglob("*")]
            files = {path.stat().st_mode & 0o777 for path in inside if path.is_file()}
            folders = {path.stat().st_mode & 0o777 for path in inside if path.is_dir()}
            assert files == {0o600} and folders <= {0o700}, name
        assert [path for path in out.parent.iterdir() if path.name.startswith(".")] == []
        if name in ("annotate", "convert to brat", "kb build"):
            again = run(name, str(out), "--overwrite")
            assert again.exit_code == 0, (name, again.output)


@pytest.mark.slow
def test_a_command_replaces_what_it_has_written(ready: Path, tmp_path: Path) -> None:
    for number, name in enumerate(sorted(set(PRIVATE) - NEVER_OVERWRITES)):
        out = tmp_path / f"{number}{COMMANDS[name].suffix.strip('/')}"
        for options in ([], ["--overwrite"]):
            done = run(name, str(out), *options)
            assert done.exit_code == 0, (name, done.output)


def test_a_loss_report_is_renewed_and_nothing_else_is(ready: Path, tmp_path: Path) -> None:
    report = tmp_path / "x.report.json"
    assert run("convert", str(tmp_path / "x.spacy")).exit_code == 0
    (tmp_path / "x.spacy").unlink()
    assert run("convert", str(tmp_path / "x.spacy")).exit_code == 0  # a report of an earlier run
    (tmp_path / "x.spacy").unlink()
    report.write_text('{"mine": 1}')
    assert_one_line("convert", run("convert", str(tmp_path / "x.spacy")))
    assert report.read_text() == '{"mine": 1}'


SAME_OUTPUT = [
    ["evaluate", "model", "c.spacy", "-o", "OUT/x.json", "--html", "OUT/x.json"],
    ["evaluate", "model", "c.spacy", "-o", "OUT/x.json", "--html", "OUT/../OUT/x.json"],
    ["evaluate", "model", "c.spacy", "-o", "OUT/x.json", "--html", "OUT/X.JSON"],
    ["evaluate", "model", "c.spacy", "-o", "OUT/x.spacy", "--save-predictions", "OUT/x.spacy"],
    [*CONVERT[:3], "OUT/x.spacy", "--lang", "es", "--report", "OUT/x.spacy"],
]


def test_two_outputs_are_two_files(ready: Path, tmp_path: Path) -> None:
    (tmp_path / "OUT").mkdir()
    for arguments in SAME_OUTPUT:
        filled = [part.replace("OUT", str(tmp_path / "OUT"), 1) for part in arguments]
        for options in ([], ["--overwrite"]):
            done = CliRunner().invoke(app, [*filled, *options])
            assert_one_line(str(arguments), done)
            assert "another output" in done.stderr
        assert look(tmp_path / "OUT") == {}


def test_files_of_an_input_folder_are_inputs(ready: Path, tmp_path: Path) -> None:
    before = look(ready)
    for arguments in (
        ["evaluate", "model", "c.spacy", "-o", "model/meta.json"],
        ["annotate", "model", "n.txt", "-o", "model/vocab/strings.json"],
        ["convert", "brat", "brat", "brat/a.txt", "--to", "pubtator"],
        ["deid", "n.jsonl", "n.jsonl", "--lang", "es"],
    ):
        done = CliRunner().invoke(app, [*arguments, "--overwrite"])
        assert_one_line(arguments[0], done)
        assert "is the input" in done.stderr
    assert look(ready) == before


HOSTILE_IDS = (
    *("/etc/x", "../up", "..", ".", "a/../b", "a\\b", "C:\\x", "10.1000/xyz 123", "x" * 300),
    *("é" * 200, "CON", "con.txt", "aux", "NUL", "a.", "a ", " a", ".a", "%", "%41", "A", "a%~2"),
    *("~", "$HOME", "a\tb", 'a*?<>|:"b', "Doc", "doc", "DOC", "dOC", "-rf", "a.ann", "x" * 301),
)


@pytest.mark.parametrize("to", ["brat", "i2b2"])
def test_ids_come_back_and_stay_inside(tmp_path: Path, to: str) -> None:
    documents = [AnnotatedText(id, f"Nota {number}.") for number, id in enumerate(HOSTILE_IDS)]
    (tmp_path / "in.json").write_text(format_bioc(documents, as_json=True), "utf-8")
    out = tmp_path / "deep" / "out"
    arguments = ["convert", "bioc", str(tmp_path / "in.json"), str(out), "--to", to]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    suffix, read = (".ann", read_brat) if to == "brat" else (".xml", read_i2b2)
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "in.json"]
    assert all(out in path.resolve().parents for path in files)
    names = [str(path.relative_to(out)) for path in files]
    assert len({name.casefold() for name in names}) == len(names)  # also on a disk without case
    found = {d.text: d.id for path in files if path.suffix == suffix for d in read(path)}
    assert found == {document.text: document.id for document in documents}
    again = CliRunner().invoke(app, [*arguments, "--overwrite"])
    assert again.exit_code == 0, again.output


def test_what_a_killed_run_left_is_removed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out, other = tmp_path / "out.jsonl", tmp_path / "out.jsonl.b"
    stale = tmp_path / ".out.jsonl.abcd_123.partial"
    stale.write_text(NOTE)
    lost = tmp_path / ".kb.abcd_123.partial"
    (lost / "kb.old").mkdir(parents=True)
    (lost / "kb.old" / "meta").touch()
    kept = [tmp_path / name for name in (".out.jsonl.b.abcd_123.partial", ".out.jsonl.x.partial")]
    for path in kept:
        path.touch()
    Output(out, overwrite=False).write("x")
    assert not stale.exists() and all(path.exists() for path in kept)
    assert "killed" in caplog.text and PHI not in caplog.text
    with lock_output(other), pytest.raises(ValueError, match="another run"):
        Output(other, overwrite=False).write("x")
    with lock_output(tmp_path / "kb"):
        assert (tmp_path / "kb" / "meta").exists()  # it was killed while it replaced a folder


def test_an_output_that_appears_meanwhile_stays(tmp_path: Path) -> None:
    for name, marker in (("file", ""), ("folder", "meta")):
        path = tmp_path / name
        output = Output(path, overwrite=False, marker=marker)
        with pytest.raises(OSError, match="--overwrite"):
            if marker:
                with output.open_folder() as folder:
                    (folder / marker).touch()
                    path.mkdir()
                    (path / "mine").touch()
            else:
                with output.open() as file:
                    file.write("new")
                    path.write_text("mine")
        assert look(path) == {} or path.is_dir()
        assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []
    assert (tmp_path / "file").read_text() == "mine" and (tmp_path / "folder/mine").exists()


def test_a_folder_that_vanishes_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    with (
        pytest.raises(OSError, match="its folder is not there any more"),
        Output(folder / "x", overwrite=False).open() as file,
    ):
        file.write("x")
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


def test_links_planted_beside_an_output_are_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("theirs")
    (tmp_path / ".out.lock").symlink_to(victim)
    with pytest.raises(ValueError, match="is a link"):
        Output(tmp_path / "out", overwrite=False).write("x")
    assert victim.read_text() == "theirs"


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_without_permission_is_named_at_once(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ValueError, match="may not be written to"):
        check_output(tmp_path / "new" / "x", overwrite=False)
    tmp_path.chmod(0o700)


def test_no_core_dumps(ready: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (limits[1], limits[1]))
    try:
        run("annotate", "/dev/null")
        assert resource.getrlimit(resource.RLIMIT_CORE)[0] == 0
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, limits)


def test_every_command_that_writes_is_here() -> None:
    """Trainings, downloads and long runs have rules of their own, and tests of their own."""
    from tests.cli.test_outputs import all_commands, options

    elsewhere = {
        *("train", "distill-ner", "sweep", "fetch", "pretrain", "distill", "align-encoder"),
        *("ensemble", "train-linker", "embed-kb", "package", "check-package", "learn-vocabulary"),
    }
    writing = {n for n, c in all_commands() if options(c) & {"--output", "out", "--overwrite"}}
    assert writing - {name.partition(" --")[0] for name in COMMANDS} <= elsewhere
