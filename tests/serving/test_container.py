"""The Containerfile agrees with the repository: its sources exist, and so do its command's options.

No engine is needed: it is read, not built.
"""

import json
import re
import shlex
from pathlib import Path

import typer

from spacy_bioclin.cli import app

ROOT = Path(__file__).parents[2]
FILE = ROOT / "container" / "Containerfile"
STEPS = ("FROM", "ARG", "WORKDIR", "COPY", "RUN", "ENV", "USER", "EXPOSE", "STOPSIGNAL")
STEPS += ("HEALTHCHECK", "ENTRYPOINT", "CMD")


def read_steps() -> list[tuple[str, str]]:
    lines = (line.strip() for line in FILE.read_text("utf-8").splitlines())
    return [
        (step, rest)
        for step, _, rest in (line.partition(" ") for line in lines if line and line[0] != "#")
    ]


def test_every_source_exists() -> None:
    args = dict(re.findall(r'^ARG (\w+)="(.*)"$', FILE.read_text("utf-8"), re.MULTILINE))
    assert (ROOT / args["PIPELINE"]).is_file()
    copied = 0
    for step, rest in read_steps():
        assert step in STEPS, f"{step}: is it a step of a Containerfile?"
        if step == "COPY" and not rest.startswith("--from=build "):
            *sources, target = shlex.split(rest)
            assert target.startswith("./")
            for source in sources:
                assert (ROOT / source).exists(), f"COPY {source}"
            copied += len(sources)
    assert copied > 8


def test_the_build_has_what_setup_reads() -> None:
    """`pip install .` fails in the image if setup.py or setup.cfg read a file that is not there."""
    copied = {
        source for step, rest in read_steps() if step == "COPY" for source in shlex.split(rest)[:-1]
    }
    text = (ROOT / "setup.py").read_text("utf-8") + (ROOT / "setup.cfg").read_text("utf-8")
    text += (ROOT / "MANIFEST.in").read_text("utf-8")
    for name in ("README.md", "LICENSE", "CHANGELOG.md", "constraints.txt", "configs"):
        assert name not in text or name in copied, name


def test_it_runs_without_privileges() -> None:
    steps = read_steps()
    last = [step for step, _ in steps[max(i for i, s in enumerate(steps) if s[0] == "FROM") :]]
    users = [rest for step, rest in steps if step == "USER"]
    assert users == ["10001"] and last.index("USER") > last.index("RUN")
    assert all("latest" not in rest for step, rest in steps if step == "FROM")


def test_the_command_exists() -> None:
    found = dict(read_steps())
    words = [*json.loads(found["ENTRYPOINT"]), *json.loads(found["CMD"])]
    assert words[:2] == ["bioclin", "serve"]
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    options = {option for param in commands["serve"].params for option in param.opts}
    assert {word for word in words if word.startswith("--")} <= options
    wheel = re.search(r"pipelines/(\w+)-[\d.]+-py3", FILE.read_text("utf-8"))
    assert wheel is not None and wheel[1] == words[2]
