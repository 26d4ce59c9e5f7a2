"""Where a note's time goes: microseconds a word of each stage of annotation.

    OMP_NUM_THREADS=1 python -m benchmarks.speed.stages  # in the environment of throughput.py

On one thread, so that the stages add up. Each figure is the best of some runs over the same notes.
benchmarks/README.md keeps the figures before and after each change.
"""

import time
from collections.abc import Callable
from typing import Any

import spacy
import torch

from benchmarks.harness import WORK, make_parser, report, time_call
from benchmarks.speed.pipelines import ENCODERS, make_systems, texts_of
from benchmarks.speed.systems import WINDOW
from spacy_bioclin.encoders.pieces import split_into_pieces
from spacy_bioclin.ner.inference import find_entities

RUNS = 5


def best(function: Callable[[], Any]) -> float:
    """Find the least wall seconds of some runs."""
    return min(time_call(function).wall for _ in range(RUNS))


def packed_batches(nlp: spacy.Language, texts: list[str]) -> list[torch.Tensor]:
    """Pack all pieces into full windows, 16 at a time: what any system must compute."""
    model = nlp.get_pipe("transformer").model
    pieces = split_into_pieces(model.tokenizer, texts)
    ids = torch.cat([torch.from_numpy(p.ids) for p in pieces])
    size = WINDOW - model.shim.module.special.n
    before, after, _ = model.shim.module.special
    rows = [torch.tensor([*before, *part, *after]) for part in ids.split(size)]
    *full, rest = rows
    return [*(torch.stack(full[i : i + 16]) for i in range(0, len(full), 16)), rest[None]]


def measure(encoder: str, n_docs: int) -> dict[str, float]:
    """Measure the microseconds per word of each stage."""
    folder, texts = WORK / "speed" / encoder, texts_of("meddocan", n_docs)
    make_systems(encoder, folder, texts)
    settings = {"components": {"transformer": {"model": {"precision": "fp32"}}}}
    nlp = spacy.load(folder / "bioclin", config=settings)
    sentences, transformer, ner = (nlp.get_pipe(n) for n in ("sentences", "transformer", "ner"))
    network = transformer.model.shim.module
    list(nlp.pipe(texts[:4]))
    seconds = {"all": best(lambda: list(nlp.pipe(texts)))}
    seconds["tokens"] = best(lambda: [nlp.make_doc(text) for text in texts])
    docs = [nlp.make_doc(text) for text in texts]
    seconds["sentences"] = best(lambda: [sentences(doc) for doc in docs])
    seconds["pieces"] = best(lambda: split_into_pieces(transformer.model.tokenizer, texts))
    whole = best(lambda: list(transformer.pipe(docs)))
    run, spent = network._run, []

    def timed(*batch: Any) -> torch.Tensor:
        started = time.perf_counter()
        hidden = run(*batch)
        spent.append(time.perf_counter() - started)
        return hidden

    network._run = timed
    totals = []
    for _ in range(RUNS):
        spent.clear()
        list(transformer.pipe(docs))
        totals.append(sum(spent))
    network._run = run
    seconds["encoder in our windows"] = min(totals)
    seconds["windows, alignment, trf_data"] = whole - min(totals) - seconds["pieces"]
    scores = ner.model.predict(docs)
    seconds["pooling and linear layer"] = best(lambda: ner.model.predict(docs))
    grammar = ner._grammar(torch.device("cpu"))
    seconds["decoding, probabilities"] = best(lambda: find_entities(scores, ner.tag_sets, grammar))
    found = ner.predict(docs)
    seconds["writing entities"] = best(lambda: ner.set_annotations(docs, found))
    batches = packed_batches(nlp, texts)
    with torch.inference_mode():
        limit = best(lambda: [network.transformer(input_ids=batch) for batch in batches])
    seconds["limit: encoder on packed pieces"] = limit
    words = sum(len(text.split()) for text in texts)
    return {name: round(value / words * 1e6, 2) for name, value in seconds.items()}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--encoder", choices=ENCODERS, default="random")
    parser.add_argument("--docs", type=int, default=64)
    arguments = parser.parse_args()
    stages = measure(arguments.encoder, arguments.docs)
    settings = {"threads": torch.get_num_threads(), "encoder": arguments.encoder}
    report("stages", {**settings, "microseconds_per_word": stages})


if __name__ == "__main__":
    main()
