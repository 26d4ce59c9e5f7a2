"""The README shows the figures that the committed results hold."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_results_are_those_of_the_benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    sys.modules.pop("readme", None)
    import readme

    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.replace_section(page, readme.results_section()) == page, (
        "run: python benchmarks/readme.py"
    )
