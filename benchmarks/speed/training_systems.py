"""The systems whose training throughput.py times.

A round is one pass over the same parts of notes, without evaluation, from the weights of the round
before.
"""

import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import spacy
import torch
from spacy.training.initialize import init_nlp
from spacy.training.loop import train as train_loop

from benchmarks.harness import ROOT
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.encoders.precision import has_fast_bf16

LEARN_RATE = 1e-4
# Parts of a batch of Hugging Face's Trainer: as many tokens as the 1,024 of the other two.
PARTS_PER_BATCH = 8
Round = Callable[[], dict[str, Any]]


def spacy_loop(config: Path, folder: Path, **more: Any) -> Round:
    """Run `spacy train` with one of our configs, without its evaluations."""
    gpu = 0 if torch.cuda.is_available() else -1
    if gpu == 0:
        spacy.require_gpu()
    settings = spacy.util.load_config(
        config,
        overrides={
            "paths.train": str(folder / "train.spacy"),
            "paths.dev": str(folder / "dev.spacy"),
            "paths.encoder": str(folder / "encoder"),
            "training.max_steps": 1_000_000,
            "training.eval_frequency": 10_000_000,
            "training.optimizer.learn_rate.initial_rate": LEARN_RATE,
            "training.logger.progress_bar": None,
            **more,
        },
        interpolate=True,
    )
    settings["training"]["max_steps"] = 0
    settings["training"]["max_epochs"] = 1
    # Reading the corpus is left out, for us as for Hugging Face's Trainer.
    started: list[float] = []
    clock = spacy.registry.callbacks("speed.clock.v1")
    clock(lambda: lambda nlp, step: started.append(time.perf_counter()))
    settings["training"]["before_update"] = {"@callbacks": "speed.clock.v1"}
    nlp = init_nlp(settings, use_gpu=gpu)

    def run() -> dict[str, Any]:
        started.clear()
        train_loop(nlp, None, use_gpu=gpu, stdout=io.StringIO(), stderr=io.StringIO())
        return {"seconds": time.perf_counter() - started[0]}

    return run


def huggingface(folder: Path, *, bf16: bool) -> Round:
    """Run `Trainer` on token classification: fused AdamW, batches of similar length."""
    from transformers import (
        AutoModelForTokenClassification,
        AutoTokenizer,
        DataCollatorForTokenClassification,
        Trainer,
        TrainingArguments,
        set_seed,
    )

    set_seed(0)
    docs = list(read_docs(folder / "train.spacy", spacy.blank("es").vocab))
    labels = sorted({ent.label_ for doc in docs for ent in doc.ents})
    tags = ["O", *(f"{p}-{label}" for label in labels for p in "BI")]
    tokenizer = AutoTokenizer.from_pretrained(
        folder / "encoder", add_prefix_space=True, trust_remote_code=False
    )
    examples = []
    for doc in docs:
        encoded = tokenizer(
            [token.text for token in doc],
            is_split_into_words=True,
            truncation=True,
            max_length=tokenizer.model_max_length,
        )
        iob = [f"{t.ent_iob_}-{t.ent_type_}" if t.ent_type_ else "O" for t in doc]
        words = encoded.word_ids()
        encoded["labels"] = [
            -100 if word is None or word == words[i - 1] else tags.index(iob[word])
            for i, word in enumerate(words)
        ]
        examples.append(dict(encoded))
    model = AutoModelForTokenClassification.from_pretrained(
        folder / "encoder", num_labels=len(tags), trust_remote_code=False
    )
    arguments = TrainingArguments(
        output_dir=str(folder / "trainer"),
        per_device_train_batch_size=PARTS_PER_BATCH,
        num_train_epochs=1,
        learning_rate=LEARN_RATE,
        group_by_length=True,
        optim="adamw_torch_fused",
        bf16=bf16,
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=examples,
        data_collator=DataCollatorForTokenClassification(tokenizer),
    )

    def run() -> dict[str, Any]:
        return {"seconds": trainer.train().metrics["train_runtime"]}

    return run


def make_round(system: str, folder: Path) -> Round:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if system == "spacy":
        return spacy_loop(ROOT / "benchmarks" / "speed" / "vanilla.cfg", folder)
    if system.startswith("huggingface"):
        return huggingface(folder, bf16=has_fast_bf16(device) and not system.endswith("fp32"))
    precision = "fp32" if system.endswith("fp32") else "auto"
    name = "components.transformer.model.precision"
    return spacy_loop(ROOT / "configs" / "ner.cfg", folder, **{name: precision})


def write_parts(source: Path, folder: Path, *, n_parts: int, max_tokens: int) -> dict[str, int]:
    """Cut training notes into parts as the corpus reader does, and keep the first ones.

    RETURNS (dict): Words of a round.
    """
    from spacy.tokens import DocBin

    from spacy_bioclin.corpora.readers import make_corpus

    nlp = spacy.blank("es")
    parts = []
    for eg in make_corpus(path=source, max_tokens=max_tokens)(nlp):
        parts.append(eg.reference)
        if len(parts) == n_parts:
            break
    DocBin(docs=parts, store_user_data=True).to_disk(folder / "train.spacy")
    DocBin(docs=parts[:1], store_user_data=True).to_disk(folder / "dev.spacy")
    words = sum(len(part.text.split()) for part in parts)
    return {"words": words, "tokens": sum(map(len, parts))}
