"""The encoders that ship, beside each other: words per second, memory, time to load.

    python -m benchmarks.speed.shipped

Each encoder is in a pipeline of configs/ner.cfg with a random head, whose entities are about as
frequent as in MEDDOCAN: the head does not change the speed of the encoder. Notes are those of
MEDDOCAN test. Every pipeline and number format that this processor computes runs in a process of
its own, in turns, and so does every load; what counts is the ratio of medians within the run.
"""

from pathlib import Path
from typing import Any

import spacy
import torch

from benchmarks.corpora import encoder_folder, prepare
from benchmarks.harness import (
    WORK,
    Result,
    ask_module,
    compare_workers,
    make_parser,
    report,
    take_turns,
    write_json,
)
from benchmarks.speed.load import summarize
from benchmarks.speed.pipelines import texts_of, untrained_pipeline
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.encoders.precision import has_fast_bf16

ENCODERS = ("compact", "sm")  # the first is the one that the others are compared with


def make_pipeline(encoder: str, texts: list[str]) -> Path:
    """Write a pipeline, and the texts that benchmarks/speed/systems.py annotates with it.

    RETURNS (Path): The folder with both.
    """
    folder, corpora = WORK / "speed" / f"shipped-{encoder}", prepare("meddocan")
    vocab = spacy.blank("es").vocab
    labels = sorted(
        {span.label_ for doc in read_docs(corpora / "dev.spacy", vocab) for span in doc.ents}
    )
    source = encoder_folder(encoder, "meddocan", corpora)
    folder.mkdir(parents=True, exist_ok=True)
    untrained_pipeline(source, labels, texts).to_disk(folder / "bioclin")
    write_json(folder / "texts.json", texts)
    return folder


def count_pieces(folder: Path, texts: list[str]) -> int:
    """Count the pieces that an encoder cuts the texts into."""
    tokenizer = spacy.load(folder / "bioclin").get_pipe("transformer").model.tokenizer
    return sum(map(len, tokenizer(texts, add_special_tokens=False)["input_ids"]))


def divide(values: dict[str, Any], key: str) -> dict[str, float]:
    """Divide the value of each encoder by that of the first one."""
    first = values[ENCODERS[0]][key]
    return {name: round(values[name][key] / first, 3) for name in ENCODERS[1:]}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--docs", type=int, default=64, help="notes to annotate")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    texts = texts_of("meddocan", options.docs)
    folders = {encoder: make_pipeline(encoder, texts) for encoder in ENCODERS}
    words = sum(len(text.split()) for text in texts)
    pieces = {encoder: count_pieces(folder, texts) for encoder, folder in folders.items()}
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    precisions = ["fp32", *(["bf16"] if has_fast_bf16(device) else []), "int8"]
    commands = {
        f"{encoder} {precision}": [
            *("-m", "benchmarks.speed.systems", "annotate", f"bioclin {precision}", folder)
        ]
        for encoder, folder in folders.items()
        for precision in precisions
    }
    logs = WORK / "speed" / "shipped-logs"
    systems = compare_workers(commands, logs, {"words": words}, options.rounds)
    annotate: Result = {
        precision: {encoder: systems[f"{encoder} {precision}"] for encoder in ENCODERS}
        for precision in precisions
    }
    loads = {
        encoder: lambda folder=folder: ask_module(
            "benchmarks.speed.load", "--child", folder / "bioclin"
        )
        for encoder, folder in folders.items()
    }
    turns = take_turns(loads, options.rounds, warm_ups=1, title="load")
    loaded = {encoder: summarize(answers) for encoder, answers in turns.items()}
    medians = {encoder: answer["median"] for encoder, answer in loaded.items()}
    result = {
        "threads": torch.get_num_threads(),
        "notes": len(texts),
        "words": words,
        "pieces": pieces,
        "annotate": annotate,
        "words_per_second_ratio": {
            precision: divide(annotate[precision], "words_per_second") for precision in precisions
        },
        "aim_of_ratio": 0.9,
        "load": loaded,
        "load_ratio": {
            key: divide(medians, key) for key in ("load_seconds", "after_first_note_mb")
        },
    }
    report("speed_shipped", result)


if __name__ == "__main__":
    main()
