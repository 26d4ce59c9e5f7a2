"""The systems that throughput.py times: each annotates or trains on the same texts with the
same encoder weights. One process per system:

    python -m benchmarks.speed.systems annotate SYSTEM FOLDER  # asks for rounds on stdin

Peers are tuned as their documentation says: batches, length sorting, no gradients, graph
optimisation. Where a peer has a free batch size, the best of those tried in the warm-up is used.
"""

import contextlib
import itertools
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.harness import read_json, serve, status_mb, time_call

WINDOW = 256
# Overlap of windows where a peer needs one to lose no text.
PEER_OVERLAP = 32
BATCH_SIZES = (1, 8, 32)
Run = Callable[[list[str]], int]  # annotates, and says how many entities it found


def n_entities(docs: Any) -> int:
    return sum(len(doc.ents) for doc in docs)


def encoder_alone(folder: Path, *, precision: str, compiled: bool = False) -> Run:
    """Run the encoder on the pieces of all texts in full windows without padding: the limit."""
    from transformers import AutoModel, AutoTokenizer

    from spacy_bioclin.encoders.layers import use_fast_layers

    tokenizer = AutoTokenizer.from_pretrained(folder / "encoder", trust_remote_code=False)
    model = AutoModel.from_pretrained(
        folder / "encoder", add_pooling_layer=False, trust_remote_code=False
    )
    use_fast_layers(model)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = model.eval().to(device)
    if compiled:
        model = torch.compile(model)
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[precision]
    size = WINDOW - 2
    batches: list[torch.Tensor] = []

    def pack(texts: list[str]) -> list[torch.Tensor]:
        ids = list(itertools.chain(*tokenizer(texts, add_special_tokens=False)["input_ids"]))
        rows = [
            [tokenizer.cls_token_id, *ids[i : i + size], tokenizer.sep_token_id]
            for i in range(0, len(ids), size)
        ]
        n = 16 if device == "cpu" else 256
        *full, rest = rows
        parts = [full[i : i + n] for i in range(0, len(full), n)] + [[rest]]
        return [torch.tensor(part, device=device) for part in parts]

    def run(texts: list[str]) -> int:
        if not batches:
            batches.extend(pack(texts))
        with torch.inference_mode(), torch.autocast(device, dtype, enabled=precision != "fp32"):
            for batch in batches:
                model(input_ids=batch)
        if device == "cuda":
            torch.cuda.synchronize()
        return 0

    return run


def bioclin(folder: Path, *, precision: str) -> Run:
    import spacy

    if torch.cuda.is_available():
        spacy.require_gpu()
    settings = {"components": {"transformer": {"model": {"precision": precision}}}}
    nlp = spacy.load(folder / "bioclin", config=settings)
    return lambda texts: n_entities(nlp.pipe(texts))


def vanilla(folder: Path) -> Run:
    """Load spacy-transformers and spaCy's ner with doc_cleaner, which frees trf_data."""
    import spacy

    if torch.cuda.is_available():
        spacy.require_gpu()
    nlp = spacy.load(folder / "spacy")
    return lambda texts: n_entities(nlp.pipe(texts))


def huggingface(folder: Path, *, precision: str = "fp32") -> Run:
    from transformers import pipeline

    device = 0 if torch.cuda.is_available() else -1
    pipe = pipeline(
        "token-classification",
        model=str(folder / "tagger"),
        aggregation_strategy="simple",
        stride=PEER_OVERLAP,
        device=device,
        torch_dtype={"fp32": torch.float32, "bf16": torch.bfloat16}[precision],
    )
    pipe.tokenizer.model_max_length = WINDOW

    def annotate(texts: list[str], batch_size: int) -> int:
        ordered = sorted(texts, key=len, reverse=True)
        with torch.inference_mode():
            return sum(len(found) for found in pipe(ordered, batch_size=batch_size))

    return best_batch_size(annotate)


def best_batch_size(annotate: Callable[[list[str], int], int]) -> Run:
    """Choose the batch size in the first call (the warm-up), on a part of the texts."""
    chosen: list[int] = []

    def run(texts: list[str]) -> int:
        if not chosen:
            part, seconds = texts[:: max(1, len(texts) // 32)], {}
            for size in BATCH_SIZES:
                seconds[size] = time_call(lambda size=size: annotate(part, size)).wall
            chosen.append(min(seconds, key=seconds.__getitem__))
        return annotate(texts, chosen[0])

    return run


def edsnlp(folder: Path, *, autocast: bool) -> Run:
    import edsnlp as eds

    nlp = eds.load(folder / "edsnlp")

    def annotate(texts: list[str], batch_size: int) -> int:
        stream = eds.data.from_iterable(texts, converter=lambda text: nlp.make_doc(text))
        stream = stream.map_pipeline(nlp).set_processing(
            batch_size=f"{batch_size} docs", autocast=autocast
        )
        return n_entities(stream)

    return best_batch_size(annotate)


def onnx(folder: Path, *, name: str) -> Run:
    """Run onnxruntime on the exported and optimised tagger, in sorted batches of windows."""
    import onnxruntime
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder / "tagger", trust_remote_code=False)
    labels = json.loads((folder / "tagger" / "config.json").read_text())["id2label"]
    outside = next(int(i) for i, label in labels.items() if label == "O")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(str(folder / "onnx" / name), options)

    def annotate(texts: list[str], batch_size: int) -> int:
        encoded = tokenizer(
            texts,
            truncation=True,
            max_length=WINDOW,
            stride=PEER_OVERLAP,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
            return_token_type_ids=False,
        )
        ids = encoded["input_ids"]
        order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
        found = 0
        for i in range(0, len(order), batch_size):
            rows = order[i : i + batch_size]
            width = len(ids[rows[0]])
            input_ids = np.full((len(rows), width), tokenizer.pad_token_id, dtype=np.int64)
            mask = np.zeros_like(input_ids)
            for row, j in enumerate(rows):
                input_ids[row, : len(ids[j])] = ids[j]
                mask[row, : len(ids[j])] = 1
            (logits,) = session.run(None, {"input_ids": input_ids, "attention_mask": mask})
            tags = logits.argmax(-1)
            starts = (tags[:, 1:] != tags[:, :-1]) & (tags[:, 1:] != outside) & (mask[:, 1:] > 0)
            found += int(starts.sum())
        return found

    return best_batch_size(annotate)


SYSTEMS: dict[str, Callable[[Path], Run]] = {
    "encoder fp32": lambda folder: encoder_alone(folder, precision="fp32"),
    "encoder bf16": lambda folder: encoder_alone(folder, precision="bf16"),
    "encoder fp32 compiled": lambda folder: encoder_alone(folder, precision="fp32", compiled=True),
    "bioclin fp32": lambda folder: bioclin(folder, precision="fp32"),
    "bioclin bf16": lambda folder: bioclin(folder, precision="bf16"),
    "bioclin int8": lambda folder: bioclin(folder, precision="int8"),
    "spacy": vanilla,
    "huggingface": huggingface,
    "huggingface bf16": lambda folder: huggingface(folder, precision="bf16"),
    "edsnlp autocast": lambda folder: edsnlp(folder, autocast=True),
    "edsnlp fp32": lambda folder: edsnlp(folder, autocast=False),
    "onnxruntime fp32": lambda folder: onnx(folder, name="model.onnx"),
    "onnxruntime int8": lambda folder: onnx(folder, name="model-int8.onnx"),
}


@contextlib.contextmanager
def gpu_utilisation() -> Iterator[list[int]]:
    """Sample 20 times per second the percentage of time in which a GPU was busy."""
    samples: list[int] = []
    over = threading.Event()

    def sample() -> None:
        while not over.wait(0.05):
            samples.append(torch.cuda.utilization())

    thread = threading.Thread(target=sample, daemon=True)
    if torch.cuda.is_available():
        thread.start()
    yield samples
    over.set()
    if thread.is_alive():
        thread.join()


def serve_rounds(make_run: Callable[[], Callable[[], dict[str, Any]]]) -> None:
    """Load, then time one round for each line on standard input; see `harness.Worker`.

    make_run (Callable): Loads the system, and returns the function of a round.
    """

    def load() -> tuple[dict[str, Any], Callable[[str], dict[str, Any]]]:
        started = time.perf_counter()
        run = make_run()

        def measure(question: str) -> dict[str, Any]:
            started = time.perf_counter()
            with gpu_utilisation() as used:
                answer = run()
            answer.setdefault("seconds", time.perf_counter() - started)
            answer["peak_mb"] = int(status_mb("VmHWM"))  # getrusage counts the parent's too
            if used:
                answer["gpu_utilisation_percent"] = round(statistics.mean(used), 1)
                answer["peak_gpu_mb"] = torch.cuda.max_memory_allocated() // 2**20
            return answer

        return {"load_seconds": time.perf_counter() - started}, measure

    serve(load)


def annotate(system: str, folder: Path) -> Callable[[], dict[str, Any]]:
    texts = read_json(folder / "texts.json")
    run = SYSTEMS[system](folder)
    return lambda: {"entities": run(texts)}


if __name__ == "__main__":
    mode, system, path = sys.argv[1:]
    if mode == "annotate":
        serve_rounds(lambda: annotate(system, Path(path)))
    else:
        from benchmarks.speed.training_systems import make_round

        serve_rounds(lambda: make_round(system, Path(path)))
