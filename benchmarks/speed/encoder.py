"""Pieces/s of Encoder.v1 compared with the bare encoder, on the same notes and threads.

    python -m benchmarks.speed.encoder [--encoder FOLDER] [--before TREE]

The bare encoder reads full windows without padding in batches of several sizes, in torch's own
threads: its best rate is the limit. Encoder.v1 splits the texts into pieces, cuts windows at
sentence ends, adds special pieces and gives Docs their vectors. Rounds are taken in turns. Rates
are medians of wall time; --before adds Encoder.v1 of another tree, in a process of its own. Results
are kept by encoder, precision and processor. ATEN_CPU_CAPABILITY=avx2 and ONEDNN_MAX_CPU_ISA=AVX2
show part of what a smaller processor does.
"""

import os
import statistics
import tempfile
from argparse import Namespace
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.harness import (
    RESULTS,
    ROOT,
    Result,
    Worker,
    data_dir,
    describe_machine,
    make_parser,
    read_json,
    serve,
    time_call,
    write_result,
)

NOTES = ("notes", "short")
WINDOWS = (64, 128, 256, 512)
BATCH_PIECES = (512, 1024, 2048, 4096)
SHORT_WORDS = 40


def read_texts(notes: str, n_docs: int) -> list[str]:
    """Read the first notes of MEDDOCAN dev, whole or in parts of 40 words."""
    paths = sorted((data_dir() / "meddocan/dev/brat").glob("*.txt"))[:n_docs]
    texts = [path.read_text("utf-8") for path in paths]
    if notes == "notes":
        return texts
    words = [text.split() for text in texts]
    return [
        " ".join(some[i : i + SHORT_WORDS])
        for some in words
        for i in range(0, len(some), SHORT_WORDS)
    ]


def make_random_encoder(folder: Path) -> Path:
    """Write a random encoder of 4 layers and width 256 with the included tokenizer."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertModel

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(
        ROOT / "assets/encoders/bioclin-compact", trust_remote_code=False
    )
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=1024,
        pad_token_id=tokenizer.pad_token_id,
    )
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def load_ours(
    encoder: str, window: int, notes: str, n_docs: int, precision: str
) -> tuple[int, dict[Any, Callable[[], Any]]]:
    """Load Encoder.v1.

    RETURNS (tuple[int, dict]): Number of pieces, and what encodes all Docs, as "all".
    """
    import spacy

    from spacy_bioclin.encoders.encoder import build_encoder

    tokenizer = {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}
    nlp = spacy.blank("es", config={"nlp": {"tokenizer": tokenizer}})
    nlp.add_pipe("bioclin_sentences")
    docs = list(nlp.pipe(read_texts(notes, n_docs)))
    model: Any = build_encoder(str(encoder), window=window, precision=precision)
    model.initialize()
    n_pieces = sum(len(model.tokenizer.tokenize(doc.text)) for doc in docs)
    parts = [docs[i : i + 128] for i in range(0, len(docs), 128)]
    return n_pieces, {"all": lambda: [model.predict(part) for part in parts]}


def load_bare(
    encoder: str, window: int, notes: str, n_docs: int, precision: str
) -> tuple[int, dict[Any, Callable[[], Any]]]:
    """Load the encoder of the transformers library.

    RETURNS (tuple[int, dict]): Number of pieces that it reads, special ones not counted, and what
        encodes them in batches of at most so many pieces.
    """
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(encoder, trust_remote_code=False)
    model = AutoModel.from_pretrained(
        encoder, add_pooling_layer=False, trust_remote_code=False
    ).eval()
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    if precision == "bf16":
        for layer in model.modules():
            if isinstance(layer, torch.nn.Linear):
                layer.to(dtype)
    texts = read_texts(notes, n_docs)
    ids = [
        piece for row in tokenizer(texts, add_special_tokens=False)["input_ids"] for piece in row
    ]
    size = window - 2
    full = [ids[i : i + size] for i in range(0, len(ids) - size + 1, size)]
    before, after = tokenizer.cls_token_id, tokenizer.sep_token_id
    rows = torch.tensor([[before, *row, after] for row in full])
    mask = torch.ones_like(rows)

    def run(n_rows: int) -> None:
        with torch.inference_mode(), torch.autocast("cpu", dtype, enabled=precision == "bf16"):
            for i in range(0, len(rows), n_rows):
                model(input_ids=rows[i : i + n_rows], attention_mask=mask[i : i + n_rows])

    return rows.shape[0] * size, {
        pieces: lambda pieces=pieces: run(max(1, pieces // window))
        for pieces in BATCH_PIECES
        if pieces >= window
    }


def work(arguments: Namespace) -> None:
    """Serve rounds in a process of its own: "NOTES WINDOW" in, pieces/s by batch size out."""

    def load() -> tuple[Any, Callable[[str], Any]]:
        import torch

        torch.set_num_threads(arguments.threads)
        rest = (arguments.n_docs, arguments.precision)
        calls: dict[str, tuple[int, dict[Any, Callable[[], Any]]]] = {}
        for notes in NOTES:
            for window in WINDOWS:
                loader = load_bare if arguments.worker == "bare" else load_ours
                calls[f"{notes} {window}"] = loader(arguments.encoder, window, notes, *rest)

        def measure(question: str) -> dict[Any, float]:
            n_pieces, systems = calls[question]
            return {name: n_pieces / time_call(call).wall for name, call in systems.items()}

        return torch.backends.cpu.get_cpu_capability(), measure

    serve(load)


def compare(arguments: Namespace, encoder: Path, logs: Path) -> Result:
    """Measure all systems in turns.

    RETURNS (dict): Pieces/s, medians, and the ratios of Encoder.v1 to the bare encoder.
    """
    options = [*("--encoder", encoder), *("--n-docs", arguments.n_docs)]
    options += [*("--precision", arguments.precision), *("--threads", arguments.threads)]
    systems = {"ours": ROOT, "bare": ROOT}
    if arguments.before:
        systems["before"] = arguments.before.resolve()
    rates: dict[str, dict[str, list[float]]] = {}
    with ExitStack() as stack:
        workers = {}
        for name, tree in systems.items():
            environment = os.environ | {"PYTHONPATH": f"{tree}{os.pathsep}{ROOT}"}
            command = [Path(__file__).resolve(), "--worker", name, *options]
            worker = Worker(command, logs / f"{name}.log", cwd=tree, env=environment)
            workers[name] = stack.enter_context(worker)
        loaded = [worker.read() for worker in workers.values()]
        questions = [f"{notes} {window}" for notes in NOTES for window in WINDOWS]
        for n in range(arguments.rounds + 1):
            for question in questions:
                for name, worker in workers.items():
                    for size, rate in worker.ask(question).items():
                        kept = rates.setdefault(question, {}).setdefault(f"{name} {size}", [])
                        if n:  # the first round warms up
                            kept.append(rate)
            print(f"round {n} of {arguments.rounds}", flush=True)
    rows = {question: summarize(rates[question]) for question in questions}
    for notes in NOTES:
        some = [row for question, row in rows.items() if question.startswith(notes)]
        best = max(row["bare"] for row in some)
        for row in some:
            row["ours_by_best_bare_of_all_windows"] = round(row["ours"] / best, 3)
    return {"capability": loaded[0], "rounds": arguments.rounds, "rates": rows}


def summarize(rates: dict[str, list[float]]) -> Result:
    """Find the medians of a window: pieces/s of each system, the bare encoder at its best size."""
    medians = {name: round(statistics.median(values)) for name, values in rates.items()}
    bare = {name: rate for name, rate in medians.items() if name.startswith("bare")}
    row: Result = {"ours": medians["ours all"], "bare": max(bare.values())}
    row["bare_by_batch"] = {name.split()[1]: rate for name, rate in bare.items()}
    row["ours_by_bare"] = round(row["ours"] / row["bare"], 3)
    if "before all" in medians:
        row["before"] = medians["before all"]
        row["ours_by_before"] = round(row["ours"] / row["before"], 3)
    return row


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--encoder", type=Path, help="default: a random one, 4 layers × 256")
    parser.add_argument("--before", type=Path, help="checkout to compare with")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--n-docs", type=int, default=12)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worker", help="used by this script")
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments)
        return
    with tempfile.TemporaryDirectory() as folder:
        encoder = arguments.encoder or make_random_encoder(Path(folder) / "encoder")
        result = compare(arguments, encoder.resolve(), Path(folder))
    name = arguments.encoder.name if arguments.encoder else "random 4 x 256"
    key = f"{name}, {arguments.precision}, {result['capability']}, {arguments.threads} threads"
    path = RESULTS / "encoder.json"
    runs = read_json(path)["runs"] if path.exists() else {}
    runs[key] = {"measured_on": describe_machine(), **result}
    write_result("encoder", {"runs": runs})
    for question, row in result["rates"].items():
        print(question, row)


if __name__ == "__main__":
    main()
