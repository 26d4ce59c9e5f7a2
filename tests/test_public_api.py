"""The public API changes only with a line in the changelog.

`tests/public_api/VERSION.json` is the API of the last release. Whatever differs from it has to be
named, in code quotes, in the part of CHANGELOG.md that is newer than that release.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
[RELEASED] = (Path(__file__).parent / "public_api").glob("*.json")


def changes(old: dict[str, str], new: dict[str, str]) -> list[str]:
    """List what was added, removed or has another value; a new command covers its options, a new
    config its settings."""
    keys = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
    configs = {key: " ".join(key.split()[:2]) for key in keys if key.startswith("config ")}
    known = {" ".join(key.split()[:2]) for key in old}
    keys = {name if (name := configs.get(key, key)) not in known else key for key in keys}
    return sorted(key for key in keys if key.rpartition(" ")[0] not in keys)


def unnamed(changed: list[str], changelog: str) -> list[str]:
    """List the changes whose last word is nowhere in code quotes in the changelog."""
    quoted = " ".join(re.findall(r"`([^`]+)`", changelog))
    words = set(re.findall(r"[\w.@-]+", quoted))
    return [
        key
        for key in changed
        if not words & {re.sub(r"[/].*", "", key.split()[-1]), key.split(".")[-1]}
    ]


@pytest.mark.slow
def test_changes_are_in_the_changelog() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    newer, found, _ = changelog.partition(f"\n## [{RELEASED.stem}]")
    assert found, f"CHANGELOG.md has no heading [{RELEASED.stem}]"
    # In a process of its own: other tests register attributes.
    command = [sys.executable, "-m", "tests.public_api.collect"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    changed = changes(json.loads(RELEASED.read_text("utf-8")), json.loads(done.stdout))
    assert unnamed(changed, newer) == [], "name each in CHANGELOG.md, or take the change back"


@pytest.mark.parametrize(
    ("new", "changelog", "missing"),
    [
        ({"command a": "", "command a --b": "1"}, "", []),
        ({"command a": "", "command a --b": "2"}, "", ["command a --b"]),
        ({"command a": "", "command a --b": "2"}, "`bioclin a --b` is 2", []),
        ({}, "", ["command a"]),
        ({"config a.cfg x": "1", "config a.cfg y z": ""}, "see `configs/a.cfg`", ["command a"]),
        ({"config a.cfg x": "1", "config a.cfg y z": ""}, "", ["command a", "config a.cfg"]),
        ({"command a": "", "command a --b": "1", "doc._.x": ""}, "see `doc._.x`", []),
        ({"command a": "", "command a --b": "1", "doc._.x": ""}, "see doc._.x", ["doc._.x"]),
    ],
)
def test_a_change_is_found(new: dict[str, str], changelog: str, missing: list[str]) -> None:
    old = {"command a": "", "command a --b": "1"}
    assert unnamed(changes(old, new), changelog) == missing
