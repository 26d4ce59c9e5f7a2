"""Words per second of annotation and training: ours, our peers', and the encoder alone (the limit).

    pip install -c constraints.txt -e . -r benchmarks/peers.txt
    python -m benchmarks.speed.throughput annotate --encoder compact --notes meddocan triage
    python -m benchmarks.speed.throughput annotate --encoder base --notes meddocan triage --docs 10
    python -m benchmarks.speed.throughput train --encoder compact
    python -m benchmarks.speed.throughput train --encoder base --parts 24

All systems have the same encoder weights and the same notes. Each runs in a process of its own;
they take turns, round by round, so that whatever else the machine does hits all of them, and what
counts is the ratio of medians within the run. The encoder is "compact" (the one that ships),
"random" (4 layers, width 256; both in the pipeline that accuracy/ner.py trains, with its head) or
"base" (12 layers, width 768, 124 M random weights). Notes are those of MEDDOCAN test, or the same
cut into parts of about 40 words ("triage").
"""

import argparse
import itertools
import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import spacy
import torch
from rich.progress import Progress
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from transformers import AutoTokenizer, RobertaConfig, RobertaModel

from benchmarks.accuracy.ner import WORK, prepare, train_and_score
from benchmarks.harness import ROOT, write_result
from benchmarks.speed.systems import PEER_OVERLAP, SYSTEMS, WINDOW
from benchmarks.speed.training_systems import write_parts
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.encoders.precision import has_fast_bf16

TRIAGE_WORDS = 40
TRAINING_SYSTEMS = ("bioclin fp32", "bioclin bf16", "huggingface fp32", "huggingface bf16", "spacy")
# Share of tokens that the head of the random base encoder takes for entities, as in MEDDOCAN.
BASE_ENTITY_SHARE = 0.05
# Untrained heads of peers would take half of the tokens for entities, and spend time on that.
OUTSIDE_BIAS = 20.0


def texts_of(notes: str, n_docs: int) -> list[str]:
    """RETURNS (list[str]): The first notes of MEDDOCAN test, or as many words in short parts."""
    corpus = read_docs(prepare("meddocan") / "test.spacy", spacy.blank("es").vocab)
    docs = list(itertools.islice(corpus, n_docs))
    if notes == "meddocan":
        return [doc.text for doc in docs]
    texts = []
    for doc in docs:
        words = [token for token in doc if not token.is_space]
        parts = [words[i : i + TRIAGE_WORDS] for i in range(0, len(words), TRIAGE_WORDS)]
        texts += [doc[part[0].i : part[-1].i + 1].text for part in parts]
    return texts


def trained_pipeline(encoder: str) -> Language:
    train_and_score(encoder, "meddocan", "bioclin", 0)
    return spacy.load(WORK / "trials" / f"{encoder}-meddocan-bioclin-0" / "training" / "model-last")


def base_pipeline(folder: Path, small: Language, texts: list[str]) -> Language:
    """RETURNS (Language): Our pipeline around a random base-size encoder with the small one's
    tokenizer. Its head is random too, with a bias that makes entities about as frequent as in
    MEDDOCAN."""
    torch.manual_seed(0)
    config = RobertaConfig(
        vocab_size=52_000,
        max_position_embeddings=514,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        attention_probs_dropout_prob=0.0,
    )
    source = folder / "random"
    RobertaModel(config, add_pooling_layer=False).save_pretrained(source)
    small.get_pipe("transformer").model.tokenizer.save_pretrained(source)
    settings = spacy.util.load_config(
        ROOT / "configs" / "ner.cfg", overrides={"paths.encoder": str(source)}, interpolate=True
    )
    labels = list(small.get_pipe("ner").labels)
    settings["initialize"]["components"] = {"ner": {"labels": labels}}
    nlp = spacy.util.load_model_from_config(settings, auto_fill=True)
    nlp.initialize()
    ner = nlp.get_pipe("ner")
    head = ner.model.get_ref("head").shims[0].module
    nlp.disable_pipe("cleaner")
    nlp.disable_pipe("ner")
    scores = ner.model.predict(list(nlp.pipe(texts[:4]))).emissions[:, 0]
    nlp.enable_pipe("ner")
    nlp.enable_pipe("cleaner")
    others = scores[:, 1:].amax(dim=1) - scores[:, 0]
    with torch.no_grad():
        head.output.bias[0] += torch.quantile(others, 1 - BASE_ENTITY_SHARE)
    return nlp


def make_systems(encoder: str, folder: Path, texts: list[str]) -> None:
    """Write the encoder, and each system's pipeline around it, once."""
    if (folder / "done").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    nlp = trained_pipeline("random" if encoder == "base" else encoder)
    if encoder == "base":
        nlp = base_pipeline(folder, nlp, texts)
    nlp.to_disk(folder / "bioclin")
    model = nlp.get_pipe("transformer").model
    model.transformer.save_pretrained(folder / "encoder")
    model.tokenizer.model_max_length = WINDOW
    model.tokenizer.save_pretrained(folder / "encoder")
    head = nlp.get_pipe("ner").model.get_ref("head").shims[0].module.output
    labels = list(nlp.get_pipe("ner").labels)
    tags = [nlp.get_pipe("ner").tag_sets[0].tags[i] for i in range(head.out_features)]
    make_tagger(folder, tags, head)
    make_onnx(folder)
    make_edsnlp(folder, labels)
    make_spacy(folder, labels)
    (folder / "done").touch()


def make_tagger(folder: Path, tags: list[str], head: torch.nn.Linear) -> None:
    """Write a Hugging Face tagger with our head's linear layer; L- and U- tags become I- and B-,
    which is what its aggregation knows."""
    from transformers import AutoConfig, AutoModel, AutoModelForTokenClassification

    config = AutoConfig.from_pretrained(folder / "encoder")
    names = [tag.replace("L-", "I-", 1).replace("U-", "B-", 1) for tag in tags]
    config.id2label = dict(enumerate(names))
    config.label2id = {name: i for i, name in enumerate(names)}
    config.num_labels = len(tags)
    tagger = AutoModelForTokenClassification.from_config(config)
    encoder = AutoModel.from_pretrained(folder / "encoder", add_pooling_layer=False)
    tagger.base_model.load_state_dict(encoder.state_dict())
    tagger.classifier.load_state_dict(head.state_dict())
    with torch.no_grad():  # it has none of the transitions that the head was trained with
        tagger.classifier.bias[tags.index("O")] += OUTSIDE_BIAS / 4
    tagger.save_pretrained(folder / "tagger")
    AutoTokenizer.from_pretrained(folder / "encoder").save_pretrained(folder / "tagger")


def make_onnx(folder: Path) -> None:
    """Export the tagger, let onnxruntime fuse its graph, and quantise a second copy to int8."""
    import onnx
    from onnxruntime.quantization import quantize_dynamic
    from onnxruntime.transformers import optimizer
    from transformers import AutoModelForTokenClassification

    out = folder / "onnx"
    out.mkdir(parents=True)
    tagger = AutoModelForTokenClassification.from_pretrained(
        folder / "tagger", attn_implementation="eager"
    ).eval()
    tagger.config.return_dict = False
    ids = torch.full((2, 16), 5)
    axes = {name: {0: "batch", 1: "pieces"} for name in ("input_ids", "attention_mask", "logits")}
    torch.onnx.export(
        tagger,
        (ids, torch.ones_like(ids)),
        str(out / "plain.onnx"),
        input_names=["input_ids", "attention_mask"],
        output_names=["logits"],
        dynamic_axes=axes,
        opset_version=17,
        dynamo=False,
    )
    config = tagger.config
    fused = optimizer.optimize_model(
        str(out / "plain.onnx"),
        model_type="bert",
        num_heads=config.num_attention_heads,
        hidden_size=config.hidden_size,
    )
    fused.save_model_to_file(str(out / "model.onnx"))
    options = {"DefaultTensorType": onnx.TensorProto.FLOAT}
    quantize_dynamic(out / "model.onnx", out / "model-int8.onnx", extra_options=options)
    (out / "plain.onnx").unlink()


def make_edsnlp(folder: Path, labels: list[str]) -> None:
    import edsnlp
    import edsnlp.pipes as eds

    nlp = edsnlp.blank("eds")
    embedding = eds.transformer(
        model=str(folder / "encoder"), window=WINDOW, stride=WINDOW - PEER_OVERLAP
    )
    nlp.add_pipe(
        eds.ner_crf(
            embedding=embedding,
            mode="joint",
            target_span_getter={"ents": labels},
            labels=labels,
            span_setter={"ents": True},
            window=20,
        ),
        name="ner",
    )
    gold = nlp.make_doc("x " * len(labels))
    gold.ents = [Span(gold, i, i + 1, label) for i, label in enumerate(labels)]
    torch.manual_seed(0)
    nlp.post_init([gold])
    with torch.no_grad():  # random scores would make every other token an entity
        bias = nlp.pipes.ner.linear.bias.view(len(labels), -1)
        bias[:, 0] += OUTSIDE_BIAS
    nlp.to_disk(folder / "edsnlp")


def make_spacy(folder: Path, labels: list[str]) -> None:
    settings = spacy.util.load_config(
        ROOT / "benchmarks" / "speed" / "vanilla.cfg",
        overrides={"paths.encoder": str(folder / "encoder")},
        interpolate=True,
    )
    settings["nlp"]["pipeline"].append("cleaner")
    settings["components"]["cleaner"] = {"factory": "doc_cleaner", "silent": True}
    nlp = spacy.util.load_model_from_config(settings, auto_fill=True)
    doc = Doc(nlp.vocab, words=labels)
    ents = [(token.idx, token.idx + len(token), token.text) for token in doc]
    nlp.initialize(lambda: [Example.from_dict(doc, {"entities": ents})])
    for node in nlp.get_pipe("ner").model.walk():
        if node.name == "precomputable_affine":  # the last move is O
            bias = node.get_param("b").copy()
            bias[-1] += OUTSIDE_BIAS
            node.set_param("b", bias)
    nlp.to_disk(folder / "spacy")


class Worker:
    """A system in a process of its own that runs a round when told to."""

    def __init__(self, mode: str, system: str, folder: Path, log: Path) -> None:
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.speed.systems"]
        self.log = log
        self.process = subprocess.Popen(
            [*command, mode, system, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log.open("w"),
            text=True,
        )

    def wait(self) -> None:
        """Return once it has loaded."""
        self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a system stopped: see {self.log}")
        return json.loads(line)

    def round(self) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return self._answer()

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def compare(
    mode: str, systems: list[str], folder: Path, sizes: dict[str, int], rounds: int, warm_ups: int
) -> dict[str, Any]:
    """Run the systems in turns.

    sizes (dict[str, int]): What a round works through: words, pieces.
    RETURNS (dict): Per system the seconds of each round, medians and peak memory.
    """
    workers = {}
    answers: dict[str, list[dict[str, Any]]] = {system: [] for system in systems}
    with Progress() as progress:
        bar = progress.add_task(mode, total=(rounds + warm_ups) * len(systems) + len(systems))
        for system in systems:
            log = folder / f"{mode}-{system.replace(' ', '-')}.log"
            workers[system] = Worker(mode, system, folder, log)
        for worker in workers.values():
            worker.wait()
            progress.advance(bar)
        for turn in range(warm_ups + rounds):
            for system, worker in workers.items():
                answer = worker.round()
                if turn >= warm_ups:
                    answers[system].append(answer)
                progress.advance(bar)
    for worker in workers.values():
        worker.stop()
    return {system: _summary(given, sizes) for system, given in answers.items()}


def _summary(answers: list[dict[str, Any]], sizes: dict[str, int]) -> dict[str, Any]:
    seconds = [answer["seconds"] for answer in answers]
    median = statistics.median(seconds)
    rates = {f"{name}_per_second": round(n / median) for name, n in sizes.items()}
    last = {k: v for k, v in answers[-1].items() if k != "seconds"}
    spread = (max(seconds) - min(seconds)) / median
    return {
        **rates,
        "median_seconds": round(median, 3),
        "spread": round(spread, 3),
        "seconds": [round(value, 3) for value in seconds],
        **last,
    }


def ratios(systems: dict[str, Any]) -> dict[str, dict[str, float]]:
    """RETURNS (dict): Our speed over that of each other system, per precision of ours."""
    found: dict[str, dict[str, float]] = {}
    for ours in (name for name in systems if name.startswith("bioclin")):
        found[ours] = {
            other: round(systems[other]["median_seconds"] / systems[ours]["median_seconds"], 2)
            for other in systems
            if not other.startswith("bioclin")
        }
    return found


def time_annotation(encoder: str, notes: str, arguments: argparse.Namespace) -> dict[str, Any]:
    folder = WORK / "speed" / encoder
    texts = texts_of(notes, arguments.docs)
    make_systems(encoder, folder, texts)
    (folder / "texts.json").write_text(json.dumps(texts))
    tokenizer = AutoTokenizer.from_pretrained(folder / "encoder")
    pieces = tokenizer(texts, add_special_tokens=False)["input_ids"]
    sizes = {"words": sum(len(t.split()) for t in texts), "pieces": sum(map(len, pieces))}
    systems = arguments.systems or runnable(SYSTEMS)
    measured = compare("annotate", systems, folder, sizes, arguments.rounds, warm_ups=1)
    return {"notes": len(texts), **sizes, "systems": measured, "ours_over": ratios(measured)}


def time_training(encoder: str, arguments: argparse.Namespace) -> dict[str, Any]:
    folder = WORK / "speed" / encoder
    make_systems(encoder, folder, texts_of("meddocan", arguments.docs))
    source = prepare("meddocan") / "train-joined.spacy"
    sizes = write_parts(source, folder, n_parts=arguments.parts, max_tokens=128)
    systems = arguments.systems or runnable(TRAINING_SYSTEMS)
    measured = compare("train", systems, folder, sizes, arguments.rounds, warm_ups=1)
    return {"parts": arguments.parts, **sizes, "systems": measured, "ours_over": ratios(measured)}


def runnable(systems: Iterable[str]) -> list[str]:
    """RETURNS (list[str]): Those whose number format this machine's hardware computes."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    missing = set() if has_fast_bf16(device) else {"bf16", "autocast"}
    missing |= {"int8", "compiled", "onnxruntime"} if device.type == "cuda" else set()
    return [name for name in systems if not missing & set(name.split())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["annotate", "train"])
    parser.add_argument("--encoder", choices=["compact", "random", "base"], required=True)
    parser.add_argument("--notes", nargs="+", choices=["meddocan", "triage"], default=["meddocan"])
    parser.add_argument("--docs", type=int, default=64, help="notes to annotate")
    parser.add_argument("--parts", type=int, default=128, help="parts of notes to train on")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--systems", nargs="+", choices=sorted({*SYSTEMS, *TRAINING_SYSTEMS}))
    arguments = parser.parse_args()
    result = {"encoder": arguments.encoder, "threads": torch.get_num_threads()}
    if arguments.what == "train":
        result |= time_training(arguments.encoder, arguments)
    else:
        result["notes"] = {
            notes: time_annotation(arguments.encoder, notes, arguments) for notes in arguments.notes
        }
    print(json.dumps(result, indent=2))
    where = "_gpu" if torch.cuda.is_available() else ""
    print(write_result(f"speed_{arguments.what}_{arguments.encoder}{where}", result))


if __name__ == "__main__":
    main()
