"""The rules that all commands share: names of options, outputs, what stops a command."""

import signal
import subprocess
import sys
from pathlib import Path

import typer.main
from typer.testing import CliRunner

from spacy_bioclin.about import __version__
from spacy_bioclin.cli import OLD_OPTIONS, app

# Their output is a resumable folder, or is added to, or is a secret key that is never replaced.
WITHOUT_OVERWRITE = {
    *("pretrain", "distill", "align-encoder", "ensemble", "sweep", "fetch", "deid-key"),
}


def all_commands():
    group = typer.main.get_command(app)
    for name, command in group.commands.items():
        for inner, sub in getattr(command, "commands", {"": command}).items():
            yield f"{name} {inner}".strip(), sub


def options(command):
    return {name for parameter in command.params for name in parameter.opts}


def test_options_have_one_spelling():
    commands = dict(all_commands())
    assert len(commands) > 40
    wrong = []
    for name, command in commands.items():
        found = options(command)
        if old := found & {f"--{old}" for old in OLD_OPTIONS}:
            wrong.append((name, old))
        if ("-o" in found) != ("--output" in found):
            wrong.append((name, "-o is --output"))
        writes = "--output" in found or found & {"out", "output"}
        if ("--overwrite" in found) != bool(writes and name not in WITHOUT_OVERWRITE):
            wrong.append((name, "--overwrite"))
    assert wrong == [("check-package", "--overwrite")]


def test_old_spellings_still_work(tmp_path):
    out = tmp_path / "kb"
    source = tmp_path / "x.csv"
    source.write_text("id,name\nA,Asma\n", "utf-8")
    arguments = ["kb", "build", str(source), "--names-in", "es", "--licence", "CC0", "--out"]
    done = CliRunner().invoke(app, [*arguments, str(out)])
    assert done.exit_code == 0, done.output
    assert "CC0" in (out / "meta.json").read_text("utf-8")
    done = CliRunner().invoke(app, [*arguments, str(out)])
    assert (done.exit_code, "--overwrite" in done.stderr) == (1, True)
    assert CliRunner().invoke(app, [*arguments, str(out), "--overwrite"]).exit_code == 0
    done = CliRunner().invoke(app, [*arguments, str(source), "--overwrite"])
    assert done.exit_code == 1 and source.read_text("utf-8").startswith("id,name")


def test_version():
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.stdout) == (0, f"spacy-bioclin {__version__}\n")


SLOW = """
import os, signal
from spacy_bioclin.cli import app
from spacy_bioclin.outputs import Output
from pathlib import Path

@app.command("slow")
def slow():
    with Output(Path("out.txt"), overwrite=False).open() as file:
        file.write("half")
        os.kill(os.getpid(), signal.SIGTERM)

app(["slow"])
"""


def test_sigterm_leaves_nothing_half_made(tmp_path: Path):
    done = subprocess.run([sys.executable, "-c", SLOW], cwd=tmp_path, check=False)
    assert done.returncode == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []
