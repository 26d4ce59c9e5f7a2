"""A note that another library warns of, logs, or raises an error with reaches no terminal."""

import ast
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin, Span

from spacy_bioclin.notices import call_without_text, describe
from tests.hostile.code import ROOT, parse_files
from tests.hostile.commands import Commands, Done
from tests.hostile.inputs.files import CANARY

NOTE = f"{CANARY} Pérez tiene fiebre alta."
# A component that complains of each note in every way there is; installed by entry points.
LOUD = '''
import asyncio, logging, sys, threading, warnings
from spacy.language import Language
from spacy.training import offsets_to_biluo_tags

class Odd(Exception):
    """Cannot be sent to another process."""
    def __init__(self, text, more):
        super().__init__(text)
        self.lock = threading.Lock()

class Panic(BaseException):
    """As a library in Rust raises."""

class Closed:
    def __init__(self, text):
        self.text = text
    def __del__(self):
        raise ValueError(self.text)

def fail(text):
    raise ValueError(text)

def complain(doc):
    text = doc.text
    offsets_to_biluo_tags(doc, [(1, 3, "SIGN")])
    warnings.warn(text)
    warnings.warn("[W036] " + text)
    warnings.warn("[W095] " + text, FutureWarning)
    warnings.warn(text, stacklevel=2)
    logger = logging.getLogger("loud")
    logger.warning(text)
    logger.error("said %s", text)
    logger.error("%d", text)
    logging.getLogger("spacy").error("note: %s", text)
    try:
        try:
            fail(text)
        except ValueError as error:
            error.__notes__ = [text]
            raise KeyError(text) from error
    except KeyError as error:
        logger.exception(text)
        logger.warning(error)
        logger.error("about", exc_info=error)
    thread = threading.Thread(target=fail, args=(text,))
    thread.start()
    thread.join()
    Closed(text)

    async def forgotten():
        asyncio.get_running_loop().create_task(later())
        await asyncio.sleep(0.01)

    async def later():
        fail(text)

    asyncio.run(forgotten())

@Language.factory("loud", default_config={"end": ""})
def make_loud(nlp, name, end):
    def loud(doc):
        complain(doc)
        if end == "odd":
            raise Odd(doc.text, 1)
        if end == "panic":
            raise Panic(doc.text)
        if end == "error":
            fail(doc.text)
        return doc
    return loud
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the component, a corpus, and notes."""
    folder = tmp_path_factory.mktemp("loud")
    (folder / "loud.py").write_text(LOUD)
    info = folder / "loud-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: loud\nVersion: 0\n")
    (info / "entry_points.txt").write_text("[spacy_factories]\nloud = loud:make_loud\n")
    nlp = spacy.blank("es")
    doc = nlp(NOTE)
    doc.set_ents([Span(doc, 3, 4, label="SIGN")])
    DocBin(docs=[doc] * 4).to_disk(folder / "notes.spacy")
    (folder / "notes").mkdir()
    for i in range(12):
        (folder / "notes" / f"{i}.txt").write_text(NOTE, encoding="utf-8")
    (folder / "notes.jsonl").write_text(
        "".join(f'{{"id": {i}, "text": "{NOTE}"}}\n' for i in range(12)), encoding="utf-8"
    )
    runpy.run_path(str(folder / "loud.py"))
    for end in ("", "error", "odd", "panic"):
        nlp = spacy.blank("es")
        nlp.add_pipe("loud", config={"end": end})
        nlp.add_pipe("bioclin_phi_rules")
        nlp.to_disk(folder / f"pipeline{end}")
    nlp = spacy.blank("es")
    nlp.add_pipe("loud")
    nlp.add_pipe("ner", config={"model": {"hidden_width": 8}})
    config = nlp.config
    config["paths"] = {
        "train": "notes.spacy",
        "dev": "notes.spacy",
        "vectors": None,
        "init_tok2vec": None,
    }
    config["training"] |= {
        "max_steps": 2,
        "eval_frequency": 1,
        "frozen_components": ["loud"],
        "annotating_components": ["loud"],
    }
    for split in ("train", "dev"):
        config["corpora"][split]["path"] = config["paths"][split]
    config.to_disk(folder / "train.cfg")
    return folder


@pytest.fixture(scope="module")
def bioclin(folder: Path, commands: Commands) -> Callable[..., Done]:
    """Run a command whose process finds the component."""
    paths = os.pathsep.join([str(folder), str(ROOT)])
    more = {"PYTHONPATH": paths, "COLUMNS": "200"}
    return lambda *arguments, **environment: commands.run(
        *arguments, folder=folder, **more, **environment
    )


def check(done: Done, *, code: int) -> str:
    said = done.stderr + done.stdout
    assert CANARY not in said, said
    assert "Pérez" not in said and "Traceback" not in said, said
    assert done.returncode == code, said
    return said


@pytest.mark.slow
def test_annotate(bioclin: Callable[..., Done], tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    said = check(bioclin("annotate", "pipeline", "notes", "-o", out), code=0)
    assert "[W030] Some entities could not be aligned in the text" in said
    assert "UserWarning (loud.py, line " in said
    assert "(10 times so far)" in said and "(12 times in all)" in said
    assert "in a thread: unexpected ValueError" in said
    assert len(out.read_text("utf-8").splitlines()) == 12


@pytest.mark.slow
@pytest.mark.parametrize("end", ["error", "odd", "panic"])
def test_errors_in_annotate(bioclin: Callable[..., Done], tmp_path: Path, end: str) -> None:
    check(bioclin("annotate", f"pipeline{end}", "notes", "-o", tmp_path / "out.jsonl"), code=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "n"),
    [
        *[(end, 1) for end in ("", "odd")],
        *[pytest.param(end, 2, marks=pytest.mark.full) for end in ("", "error", "odd")],
    ],
)
def test_deid(bioclin: Callable[..., Done], tmp_path: Path, end: str, n: int) -> None:
    """With two processes, each imports for seconds: only on demand."""
    options = ("--lang", "es", "--drop", "id", "--processes", n, "--pipeline", f"pipeline{end}")
    done = bioclin("deid", "notes.jsonl", tmp_path / "out.jsonl", *options)
    said = check(done, code=1 if end else 0)
    assert end != "odd" or "Odd (loud.py, line " in said


WORKERS = """
import sys, types
# A worker that imports spaCy takes seconds.
spacy = types.ModuleType("spacy")
spacy.__file__ = None
for name, value in {
    "language.Language.factory": lambda *args, **options: lambda make: make,
    "training.offsets_to_biluo_tags": lambda doc, spans: None,
}.items():
    room, *names = name.split(".")
    module = sys.modules[f"spacy.{room}"] = types.ModuleType(room)
    for part in names[:-1]:
        module.__dict__[part] = module = types.SimpleNamespace()
    setattr(module, names[-1], value)
sys.modules["spacy"] = spacy
from loud import make_loud
from spacy_bioclin.cli.faults import report_faults
from spacy_bioclin.notices import hide_texts
from spacy_bioclin.parallel import map_parts

def begin():
    end = sys.argv[1]
    return lambda text: make_loud(None, "", end)(types.SimpleNamespace(text=text)).text == text

@report_faults
def main():
    hide_texts()
    print([done for _, done in map_parts(begin, [NOTE] * 3, 2)])

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("end", [pytest.param("", marks=pytest.mark.slow), "odd"])
def test_workers_show_no_text(folder: Path, tmp_path: Path, end: str) -> None:
    (tmp_path / "main.py").write_text(WORKERS.replace("NOTE", repr(NOTE)), "utf-8")
    done = subprocess.run(
        [sys.executable, "main.py", end],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    said = check(Done(done.returncode, done.stdout, done.stderr), code=1 if end else 0)
    assert "loud.py, line " in said
    assert end or "[True, True, True]" in said
    assert end != "odd" or "Odd (loud.py, line " in said


@pytest.mark.slow
def test_other_commands(bioclin: Callable[..., Done], tmp_path: Path) -> None:
    out = tmp_path / "trained"
    said = check(bioclin("train", "train.cfg", "-o", out), code=0)
    assert "[W030]" in said
    metrics = tmp_path / "metrics.json"
    said = check(bioclin("evaluate", out / "model-last", "notes.spacy", "-o", metrics), code=0)
    assert "[W030]" in said


@pytest.mark.slow
def test_everything_is_shown_on_demand(bioclin: Callable[..., Done], tmp_path: Path) -> None:
    arguments = ("annotate", "pipelineerror", "notes", "-o", tmp_path / "out.jsonl")
    done = bioclin(*arguments, BIOCLIN_TRACEBACK="1")
    assert CANARY in done.stderr and "Traceback" in done.stderr


def test_errors_of_spacy_are_described_by_their_code() -> None:
    with pytest.raises(ValueError, match=CANARY) as caught:
        spacy.util.get_words_and_spaces(["x"], NOTE)
    described = describe(caught.value)
    assert "[E194] Unable to aligned mismatched text '…' and words '…'" in described
    assert CANARY not in described
    assert "[E090] Extension 'x' already exists" in describe(
        ValueError(spacy.errors.Errors.E090.format(name="x", obj="Doc"))
    )


def test_errors_for_other_processes_hold_no_text() -> None:
    def fail(error: Exception) -> None:
        try:
            raise KeyError(NOTE)
        except KeyError:
            raise error from None

    for error in (ValueError(NOTE), MemoryError(NOTE), OSError(28, "full", "out.jsonl")):
        with pytest.raises(Exception) as caught:
            call_without_text(fail, error)
        sent = caught.value
        assert CANARY not in repr((sent.args, sent.__cause__, sent.__context__))


# What the messages of our own warnings and log records name: a new one is looked at first.
NAMED = {"self.name", "entity", "kb.path", "moved", "path", "file", "why", "found[step]", "budget"}
NAMED |= {"needs", "package", "wanted"}  # names and versions of packages
# A file and numbers of documents that are left out; names of span groups; labels.
NAMED |= {"where", "train.where", "seen", "_show(empty)"}  # of classes of texts
NAMED |= {"self.leave_out", "counts", "unknown", "key", "there", "name", "', '.join(unused)"}


def test_our_own_warnings_name_no_text() -> None:
    words = ["warn", "logger", "Logger", "LOGGER", "logging"]
    for path, tree in parse_files("spacy_bioclin", words):
        if path.name == "notices.py":
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            if called == "warnings.warn":
                assert "BioclinWarning" in [ast.unparse(arg) for arg in node.args], path
            elif called.partition(".")[0].lower() not in ("logger", "logging") or called in (
                "logging.getLogger",
                "logging.getLogger('rdflib.term').setLevel",
            ):
                continue
            named = {
                ast.unparse(part.value)
                for part in ast.walk(node)
                if isinstance(part, ast.FormattedValue)
            }
            named |= {ast.unparse(arg) for arg in node.args[1:]} - {"BioclinWarning"}
            assert named <= NAMED, (path, named)
