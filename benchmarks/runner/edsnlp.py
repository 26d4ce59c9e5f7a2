"""`bioclin run` compared with EDS-NLP's multiprocessing backend, with the same encoder.

    python -m venv PEERS && PEERS/bin/pip install "edsnlp[ml]==0.23.0" pyarrow
    python -m benchmarks.runner.edsnlp --pipeline FOLDER --encoder FOLDER --peers PEERS/bin/python

Both read a Parquet file, find entities with a CRF on the encoder, and write Parquet, in the same
number of processes with one thread each. EDS-NLP's head has random weights, which take as long as
trained ones. The time is that of all notes less that of some: start-up cancels out. Writes
benchmarks/results/run_edsnlp.json.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness import make_parser, report, take_turns, thread_environment

PEER = """
import json, sys, time
import edsnlp, edsnlp.pipes as eds
import torch
from spacy.tokens import Span

encoder, source, out, processes, labels = json.loads(sys.argv[1])

def make():
    nlp = edsnlp.blank("eds")
    embedding = eds.transformer(model=encoder, window=128, stride=96)
    head = eds.ner_crf(embedding=embedding, mode="joint", target_span_getter={"ents": labels},
                       labels=labels, span_setter={"ents": True}, window=20)
    nlp.add_pipe(head, name="ner")
    gold = nlp.make_doc("x " * len(labels))
    gold.ents = [Span(gold, i, i + 1, label) for i, label in enumerate(labels)]
    torch.manual_seed(0)
    nlp.post_init([gold])
    with torch.no_grad():  # random scores would make every other token an entity
        bias = nlp.pipes.ner.linear.bias.view(len(labels), -1)
        bias[:, 0] += 5.0
    return nlp

if __name__ == "__main__":
    torch.set_num_threads(1)
    nlp = make()
    def read(row):
        doc = nlp.make_doc(row["text"])
        doc._.note_id = row["id"]
        return doc
    def write(doc):
        return [{"note": doc._.note_id, "start": e.start_char, "end": e.end_char, "label": e.label_}
                for e in doc.ents]
    from spacy.tokens import Doc
    if not Doc.has_extension("note_id"):
        Doc.set_extension("note_id", default=None)
    stream = edsnlp.data.read_parquet(source, converter=read).map_pipeline(nlp)
    stream = stream.set_processing(backend="multiprocessing", num_cpu_workers=processes,
                                   num_gpu_workers=0)
    before = time.perf_counter()
    stream.write_parquet(out, converter=write)
    print(json.dumps({"seconds": time.perf_counter() - before}))
"""


def write_notes(path: Path, n: int) -> None:
    """Write invented notes as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from benchmarks.speed.growth import write_note

    notes = {"id": [str(i) for i in range(n)], "text": [write_note(i) for i in range(n)]}
    pq.write_table(pa.table(notes), path)


def time_peer(options: argparse.Namespace, source: Path) -> float:
    """Time EDS-NLP on a file."""
    with tempfile.TemporaryDirectory() as name:
        script = Path(name) / "peer.py"
        script.write_text(PEER, encoding="utf-8")
        out = str(Path(name) / "out")
        given = [str(options.encoder), str(source), out, options.processes, options.labels]
        command = [options.peers, "-W", "ignore", str(script), json.dumps(given)]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, check=True, env=thread_environment()
        )
        return float(json.loads(done.stdout.splitlines()[-1])["seconds"])


def time_ours(options: argparse.Namespace, source: Path) -> float:
    """Time `bioclin run` on a file."""
    with tempfile.TemporaryDirectory() as name:
        arguments = [options.pipeline, source, Path(name) / "out", "--to", "parquet"]
        arguments += ["--id-column", "id", "--processes", options.processes]
        before = time.perf_counter()
        subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "spacy_bioclin", "run", *map(str, arguments)],
            check=True,
            env=thread_environment(),
        )
        return time.perf_counter() - before


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--pipeline", required=True, help="one encoder and one bioclin_ner")
    parser.add_argument("--encoder", type=Path, required=True, help="folder of the same encoder")
    parser.add_argument("--peers", required=True, help="Python with edsnlp")
    parser.add_argument("--labels", nargs="+", default=["DISEASE", "SYMPTOM", "DRUG", "PROCEDURE"])
    parser.add_argument("--notes", type=int, default=8_000)
    parser.add_argument("--first", type=int, default=2_000, help="notes whose time is subtracted")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        files = {n: Path(name) / f"{n}.parquet" for n in (options.first, options.notes)}
        for n, path in files.items():
            write_notes(path, n)
        systems = {
            f"{system} {n}": partial(time_one, options, path)
            for system, time_one in (("bioclin run", time_ours), ("EDS-NLP", time_peer))
            for n, path in files.items()
        }
        answers = take_turns(systems, options.rounds, title="bioclin run and EDS-NLP")
    n = options.notes - options.first
    found: dict[str, Any] = {}
    for system in ("bioclin run", "EDS-NLP"):
        all_notes, some = (
            statistics.median(answers[f"{system} {k}"]) for k in (options.notes, options.first)
        )
        found[system] = {
            "notes_per_second": round(n / (all_notes - some), 1),
            "seconds": {str(k): answers[f"{system} {k}"] for k in files},
        }
    ours, peer = (found[system]["notes_per_second"] for system in ("bioclin run", "EDS-NLP"))
    settings = {name: getattr(options, name) for name in ("notes", "first", "processes", "labels")}
    report("run_edsnlp", {**settings, "systems": found, "times_edsnlp": round(ours / peer, 2)})


if __name__ == "__main__":
    main()
