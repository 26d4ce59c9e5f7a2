"""PHI that stayed in notes although the command ended with exit code 0."""

import json

from benchmarks.defects.case import Seen, Tree, case


@case(16, "A note in square brackets is masked like any other, known values too.")
def text_in_brackets_is_masked(tree: Tree) -> Seen:
    text = "Derivado a [Marta García Gil, NHC 1234567, tarjeta 4539578763621486]."
    row = {"id": "1", "text": text, "name": "Marta García Gil"}
    notes = tree.write("notes.jsonl", json.dumps(row) + "\n")
    options = ("--lang", "es", "--known", "name=name")
    done = tree.bioclin("deid", notes, "out.jsonl", *options, BIOCLIN_DEID_KEY="0" * 64)
    out = tree.folder / "out.jsonl"
    shown = json.loads(out.read_text("utf-8"))["text"] if out.exists() else done.text[-200:]
    left = [value for value in ("Marta", "1234567", "4539578763621486") if value in shown]
    return Seen(done.code == 0 and not left, left or shown)
