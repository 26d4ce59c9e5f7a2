"""What before_after.py has a tree's own Python do: describe predictions, measure speeds.

python benchmarks/before_after_worker.py describe PREDICTED
python benchmarks/before_after_worker.py serve PIPELINE INPUTS
"""

import hashlib
import json
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span

from spacy_bioclin.deid import make_pipeline

WHOSE = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
Result = dict[str, Any]


def digest(values: Any) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def describe_docs(path: Path) -> Result:
    """Count the spans of predicted Docs, and hash spans and probabilities."""
    spans, scores = [], []
    for doc in DocBin(store_user_data=True).from_disk(path).get_docs(spacy.blank("xx").vocab):
        for key, group in (("ents", doc.ents), *sorted(doc.spans.items())):
            rows = [[key, s.start_char, s.end_char, s.label_, s.kb_id_, s.id_] for s in group]
            spans.append(rows)
            scores.append([float(x) for x in getattr(group, "attrs", {}).get("scores", ())])
        marked = {
            f"{key[2]} {key[3]} {key[1]}": value
            for key, value in doc.user_data.items()
            if isinstance(key, tuple) and key[0] == "._." and key[1] == "probability"
        }
        scores.append([[name, float(value)] for name, value in sorted(marked.items())])
    n_spans = sum(map(len, spans))
    return {"spans": n_spans, "spans_hash": digest(spans), "probabilities_hash": digest(scores)}


def processor_seconds() -> float:
    """Add up the time of this process and of those that it started and that have ended."""
    own, others = (resource.getrusage(which) for which in WHOSE)
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Call a function.

    RETURNS (tuple): Its processor seconds, and what it returned.
    """
    began = processor_seconds()
    result = function()
    return processor_seconds() - began, result


def describe(ent: Any) -> list[Any]:
    return [ent.start_char, ent.end_char, ent.label_, ent._.probability]


Slice = Callable[[], tuple[float, Any]]


def make_slices(model: Path, inputs: Path, kb: Path) -> dict[str, Slice]:
    """Load what is measured.

    RETURNS (dict): Name of a rate -> a function that does the work once, and returns units (words,
        names, mentions) per processor second, and what was annotated.
    """
    torch.set_num_threads(1)
    notes = (inputs / "bc5cdr/test/notes.txt").read_text("utf-8").split("\n\n")
    texts = [
        " ".join(line.split("|", 2)[2] for line in note.splitlines() if line.count("|") >= 2)
        for note in notes
    ]
    nlp = spacy.load(model) if model.exists() else spacy.blank("en")  # if it is not measured
    tokenizer = {"nlp": {"tokenizer": {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}}}
    rules = spacy.blank("es", config=tokenizer)
    rules.add_pipe("bioclin_phi_rules")
    deid = make_pipeline(
        spacy.blank("es", config=tokenizer), policy={"default": "surrogate"}, key=b"k" * 32
    )
    paths = sorted((inputs / "meddocan/train").glob("*.txt"))
    spanish = [path.read_bytes().decode("utf-8") for path in paths]
    table = (inputs / "mesh.tsv").read_text("utf-8").splitlines()[1:]
    n_names = len(table) + sum(row.count("|") for row in table)
    mentions = json.loads((inputs / "mentions.json").read_text("utf-8"))

    def annotate() -> tuple[float, Any]:
        spent, docs = timed(lambda: list(nlp.pipe(texts)))
        return count_words(texts) / spent, [[describe(e) for e in doc.ents] for doc in docs]

    def find_phi() -> tuple[float, Any]:
        made = [rules.make_doc(text) for text in spanish]
        spent, docs = timed(lambda: list(rules.pipe(made)))
        found = [[[s.start, s.end, s.label_] for s in doc.spans["phi"]] for doc in docs]
        return count_words(spanish) / spent, found

    def deidentify() -> tuple[float, Any]:
        spent, docs = timed(lambda: list(deid.pipe(spanish)))
        return count_words(spanish) / spent, [[d._.deid.text, d._.deid.spans] for d in docs]

    def build_kb() -> tuple[float, Any]:
        shutil.rmtree(kb, ignore_errors=True)
        build = ("kb", "build", inputs / "mesh.tsv", "-o", kb)
        spent, _ = timed(lambda: run_bioclin(*build))
        files = sorted(kb.glob("*.npy"))
        return n_names / spent, [[p.name, digest(p.read_bytes().hex())] for p in files]

    def link() -> tuple[float, Any]:
        """A new linker, because one remembers mentions."""
        linker = spacy.blank("en")
        linker.add_pipe("bioclin_linker", config={"kb": str(kb)})
        docs = [make_mention(linker, mention) for mention in mentions]
        list(linker.pipe(docs[:50]))
        spent, linked = timed(lambda: list(linker.pipe(docs[50:])))
        ents = [doc.ents[0] for doc in linked]
        links = [[ent.kb_id_, [c.kb_id for c in ent._.candidates]] for ent in ents]
        return len(links) / spent, links

    return {
        "annotate_words": annotate,
        "rules_words": find_phi,
        "deid_words": deidentify,
        "kb_names": build_kb,
        "links_mentions": link,
    }


def count_words(texts: list[str]) -> int:
    return sum(len(text.split()) for text in texts)


def make_mention(nlp: Language, mention: str) -> Doc:
    doc = nlp.make_doc(mention)
    doc.set_ents([Span(doc, 0, len(doc), "X")])
    return doc


def serve(model: Path, inputs: Path) -> None:
    """Answer each line of standard input, the name of a rate, with a line of JSON. The first time
    that a rate is asked for, it is measured twice, and the first measurement is thrown away."""
    warm = set()
    with tempfile.TemporaryDirectory() as folder:
        slices = make_slices(model, inputs, Path(folder) / "kb")
        for line in sys.stdin:
            name = line.strip()
            if name not in warm:
                slices[name]()
                warm.add(name)
            rate, found = slices[name]()
            print(json.dumps({"rate": rate, "hash": digest(found)}), flush=True)


def run_bioclin(*arguments: object) -> None:
    """Run a command within this process, so that imports are not timed."""
    [script] = entry_points(group="console_scripts", name="bioclin")
    out, sys.argv, sys.stdout = sys.stdout, ["bioclin", *map(str, arguments)], sys.stderr
    try:
        if code := script.load()():
            raise SystemExit(code)
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.stdout = out


if __name__ == "__main__":
    what, *paths = sys.argv[1:]
    if what == "describe":
        print(json.dumps(describe_docs(Path(paths[0]))))
    else:
        serve(Path(paths[0]), Path(paths[1]))
