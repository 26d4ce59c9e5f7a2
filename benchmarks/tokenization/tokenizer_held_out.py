"""The tokenizer's first version on the test splits: a clean held-out measurement.

The rules of that version (commit 8c68a0e) were written from train and dev splits alone. While the
later rules were written, the counts of misaligned spans on the test splits were seen several
times, so what benchmarks/tokenization/tokenizer.py prints for test is no longer held out.

    python -m benchmarks.tokenization.tokenizer_held_out      # needs the git history
"""

import re
import subprocess
import sys
import types

import spacy
from spacy.tokenizer import Tokenizer

from benchmarks.corpora import LANG, SPLITS, read_annotated
from benchmarks.harness import make_parser, write_result
from benchmarks.tokenization.tokenizer import count_misaligned

FIRST = "8c68a0e"


def first_pattern(lang: str) -> str:
    """Read the token pattern of the first version from the git history."""
    package = types.ModuleType("first")
    package.__path__ = []
    sys.modules["first"] = package
    for name in ("rules", "patterns"):
        path = f"{FIRST}:spacy_bioclin/tokenization/{name}.py"
        source = subprocess.run(["git", "show", path], capture_output=True, text=True, check=True)
        module = types.ModuleType(f"first.{name}")
        module.__package__ = "first"
        sys.modules[f"first.{name}"] = module
        exec(compile(source.stdout, path, "exec"), module.__dict__)
    return str(sys.modules["first.patterns"].token_pattern(lang))


def main() -> None:
    make_parser(__doc__).parse_args()
    rows = []
    for corpus, lang in LANG.items():
        nlp = spacy.blank(lang)
        tokenizer = Tokenizer(nlp.vocab, infix_finditer=re.compile(first_pattern(lang)).finditer)
        spans, misaligned = count_misaligned(
            tokenizer, read_annotated(corpus, *SPLITS[corpus]["test"])
        )
        row = {"corpus": corpus, "spans": spans, "misaligned": misaligned}
        rows.append({**row, "percent": round(100 * misaligned / spans, 4)})
        print(rows[-1])
    print(write_result("tokenizer_held_out", {"commit_of_rules": FIRST, "test": rows}))


if __name__ == "__main__":
    main()
