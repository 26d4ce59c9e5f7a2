"""What before_after.py has a tree's own Python do: describe predictions, measure speeds.

python benchmarks/before_after_worker.py describe PREDICTED
python benchmarks/before_after_worker.py speeds PIPELINE INPUTS
"""

import hashlib
import json
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import spacy
import torch
from spacy.tokens import Doc, DocBin, Span

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


def timed(function: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """Call a function so many times.

    RETURNS (tuple): Processor seconds of the fastest call, and what the last one returned.
    """
    spent = []
    for _ in range(repeats):
        began = processor_seconds()
        result = function()
        spent.append(processor_seconds() - began)
    return min(spent), result


def describe(ent: Any) -> list[Any]:
    return [ent.start_char, ent.end_char, ent.label_, ent._.probability]


def measure_speeds(model: Path, inputs: Path) -> Result:
    """Measure the rates of this process's tree, and hash what was annotated."""
    torch.set_num_threads(1)
    tokenizer = {"nlp": {"tokenizer": {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}}}
    notes = (inputs / "bc5cdr/test/notes.txt").read_text("utf-8").split("\n\n")
    texts = [
        " ".join(line.split("|", 2)[2] for line in note.splitlines() if line.count("|") >= 2)
        for note in notes
    ]
    nlp = spacy.load(model)
    list(nlp.pipe(texts[:8]))
    spent, docs = timed(lambda: list(nlp.pipe(texts)), 2)
    rates = {"annotate_words": sum(len(text.split()) for text in texts) / spent}
    hashes = {"annotate": digest([[describe(e) for e in doc.ents] for doc in docs])}

    notes = [p.read_bytes().decode() for p in sorted((inputs / "meddocan/train").glob("*.txt"))]
    rules = spacy.blank("es", config=tokenizer)
    rules.add_pipe("bioclin_phi_rules")
    list(rules.pipe(notes[:20]))
    bins = [[rules.make_doc(text) for text in notes] for _ in range(3)]
    spent, docs = timed(lambda: list(rules.pipe(bins.pop())), 3)
    rates["rules_words"] = sum(len(text.split()) for text in notes) / spent
    hashes["rules"] = digest([[[s.start, s.end, s.label_] for s in d.spans["phi"]] for d in docs])

    with tempfile.TemporaryDirectory() as folder:
        kb = Path(folder)
        run_bioclin("kb", "build", inputs / "few.tsv", "-o", kb / "few")
        table = (inputs / "mesh.tsv").read_text("utf-8")
        n_names = sum(1 + row.count("|") for row in table.splitlines()[1:])
        folders = [kb / "mesh", kb / "first"]
        build = ("kb", "build", inputs / "mesh.tsv", "-o")
        spent, _ = timed(lambda: run_bioclin(*build, folders.pop()), 2)
        rates["kb_names"] = n_names / spent
        files = sorted((kb / "mesh").glob("*.npy"))
        hashes["kb"] = digest([[p.name, hashlib.sha256(p.read_bytes()).hexdigest()] for p in files])
        spent, links = timed_links(kb / "mesh", json.loads((inputs / "mentions.json").read_text()))
        rates["links_mentions"] = len(links) / spent
        hashes["links"] = digest(links)
    return {"rates": rates, "hashes": hashes}


def timed_links(kb: Path, mentions: list[str]) -> tuple[float, list[Any]]:
    """Link mentions, a Doc each.

    RETURNS (tuple): Processor seconds; id and candidates of each mention.
    """
    nlp = spacy.blank("en")
    nlp.add_pipe("bioclin_linker", config={"kb": str(kb)})

    def make_docs() -> Iterator[Doc]:
        for mention in mentions:
            doc = nlp.make_doc(mention)
            doc.set_ents([Span(doc, 0, len(doc), "X")])
            yield doc

    docs = list(make_docs())
    list(nlp.pipe(docs[:50]))
    docs = docs[50:]
    spent, linked = timed(lambda: list(nlp.pipe(docs)))
    ents = [doc.ents[0] for doc in linked]
    return spent, [[ent.kb_id_, [c.kb_id for c in ent._.candidates]] for ent in ents]


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
    run = {"describe": describe_docs, "speeds": measure_speeds}[what]
    print(json.dumps(run(*map(Path, paths))))
