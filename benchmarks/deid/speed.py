"""Words per second of de-identification: ours and Presidio's, with the same encoder, in one run.

    pip install -c constraints.txt -e . -r benchmarks/peers.txt
    python -m benchmarks.deid.speed --pipeline training/model-last

The pipeline is a trained one with an encoder and a bioclin_ner that writes doc.spans["phi"]; rules
and bioclin_deid are added here. Presidio's AnalyzerEngine reads the same encoder weights in its
HuggingFaceNerRecognizer, with a linear head that says "O" nearly always, so that it has next to
nothing to merge and to replace; its recognizers for Spanish are those that it switches on by
itself; its NLP engine does nothing, which is the quickest; its AnonymizerEngine replaces what is
left. Both in fp32 but where a system says int8 or bf16. Notes are those of MEDDOCAN dev. Each
system runs in a process of its own; they take turns, round by round, and what counts is the ratio
of medians within the run.
"""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import spacy
import torch
from spacy.language import Language

from benchmarks import harness
from benchmarks.corpora import make_blank, read_notes
from benchmarks.harness import (
    Result,
    compare_workers,
    make_parser,
    read_json,
    report,
    thread_environment,
    write_json,
)
from benchmarks.speed.systems import serve_rounds
from benchmarks.speed.throughput import runnable
from spacy_bioclin.deid.detect.rules import load_rules
from spacy_bioclin.deid.secret import make_key

WORK = harness.WORK / "deid_speed"
OUTSIDE_BIAS = 20.0
TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG", "B-DATE", "I-DATE")
ADDED = ("bioclin_phi_rules", "bioclin_deid")
Run = Callable[[list[str]], int]  # treats the texts, and says how many spans it found


def make_systems(pipeline: Path, folder: Path) -> None:
    """Write our pipelines, and a Hugging Face tagger on their encoder."""
    from transformers import AutoModel, AutoModelForTokenClassification

    nlp = spacy.load(pipeline)
    transformer = nlp.get_pipe("transformer").model
    for name in [name for name in nlp.pipe_names if nlp.get_pipe_meta(name).factory in ADDED]:
        nlp.remove_pipe(name)
    nlp.to_disk(folder / "ner")
    nlp.add_pipe("bioclin_phi_rules", name="rules")
    for operator in ("mask", "surrogate"):
        policy = {"scheme": "meddocan", "default": operator}
        nlp.add_pipe("bioclin_deid", name="deid", config={"policy": policy})
        nlp.to_disk(folder / operator)
        nlp.remove_pipe("deid")
    transformer.transformer.save_pretrained(folder / "encoder")
    torch.manual_seed(0)
    tagger = AutoModelForTokenClassification.from_pretrained(
        folder / "encoder",
        id2label=dict(enumerate(TAGS)),
        label2id={tag: i for i, tag in enumerate(TAGS)},
        trust_remote_code=False,
    )
    encoder = AutoModel.from_pretrained(
        folder / "encoder", add_pooling_layer=False, trust_remote_code=False
    )
    tagger.base_model.load_state_dict(encoder.state_dict())
    with torch.no_grad():
        tagger.classifier.bias[0] += OUTSIDE_BIAS
    tagger.save_pretrained(folder / "tagger")
    transformer.tokenizer.save_pretrained(folder / "tagger")


def load_pipeline(folder: Path, precision: str = "fp32") -> Language:
    if torch.cuda.is_available():
        spacy.require_gpu()
    settings = {"components": {"transformer": {"model": {"precision": precision}}}}
    return spacy.load(folder, config=settings)


def bioclin(folder: Path, *, policy: str, precision: str = "fp32") -> Run:
    nlp = load_pipeline(folder / policy, precision)
    nlp.get_pipe("deid").key = make_key().encode("ascii")  # type: ignore[attr-defined]
    return lambda texts: sum(len(doc._.deid.spans) for doc in nlp.pipe(texts))


def tagger_alone(folder: Path) -> Run:
    nlp = load_pipeline(folder / "ner")
    return lambda texts: sum(len(doc.spans["phi"]) for doc in nlp.pipe(texts))


def rules_in_pipeline() -> Run:
    nlp = make_blank("es", "bioclin_phi_rules")
    return lambda texts: sum(len(doc.spans["phi"]) for doc in nlp.pipe(texts))


def rules_alone() -> Run:
    rules = load_rules("es")
    return lambda texts: sum(len(rules.find(text)) for text in texts)


def presidio(tagger: Path | None, *, chunk_size: int = 400) -> Run:
    """Load Presidio's analyzer and anonymizer.

    tagger (Path | None): Folder of the Hugging Face tagger.
    chunk_size (int): Characters that the tagger reads at once; 400 is Presidio's default. The
        encoder cannot read much more than 800 of digits and names.
    """
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import NoOpNlpEngine
    from presidio_analyzer.predefined_recognizers.ner import HuggingFaceNerRecognizer
    from presidio_anonymizer import AnonymizerEngine

    engine = NoOpNlpEngine(models=[{"lang_code": "es", "model_name": "no_op"}])
    engine.load()
    registry = RecognizerRegistry(supported_languages=["es"])
    registry.load_predefined_recognizers(languages=["es"], nlp_engine=engine)
    if tagger is not None:
        registry.add_recognizer(
            HuggingFaceNerRecognizer(
                model_name=str(tagger), supported_language="es", chunk_size=chunk_size
            )
        )
    analyzer = AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=["es"])
    names = [recognizer.name for recognizer in analyzer.get_recognizers("es")]
    print("recognizers:", *sorted(names), file=sys.stderr)
    anonymizer = AnonymizerEngine()

    def run(texts: list[str]) -> int:
        found = 0
        for text in texts:
            results = analyzer.analyze(text, language="es")
            found += len(anonymizer.anonymize(text, results).items)
        return found

    return run


SYSTEMS: dict[str, Callable[[Path], Run]] = {
    "bioclin mask": lambda folder: bioclin(folder, policy="mask"),
    "bioclin surrogate": lambda folder: bioclin(folder, policy="surrogate"),
    "bioclin mask int8": lambda folder: bioclin(folder, policy="mask", precision="int8"),
    "bioclin mask bf16": lambda folder: bioclin(folder, policy="mask", precision="bf16"),
    "bioclin tagger alone": tagger_alone,
    "bioclin rules in a blank pipeline": lambda folder: rules_in_pipeline(),
    "bioclin rules alone": lambda folder: rules_alone(),
    "presidio": lambda folder: presidio(folder / "tagger"),
    "presidio chunks of 800": lambda folder: presidio(folder / "tagger", chunk_size=800),
    "presidio without tagger": lambda folder: presidio(None),
}
WHOLE = ("bioclin mask", "bioclin surrogate", "bioclin mask int8", "bioclin mask bf16")
RULES = ("bioclin rules in a blank pipeline",)


def compare(folder: Path, threads: int, rounds: int, n_words: int) -> Result:
    """Let the systems take turns with a number of threads.

    RETURNS (dict): Rates and seconds per system; how many times as fast our whole pipeline is as
        Presidio's, and our rules as its rules.
    """
    systems = runnable(SYSTEMS)
    commands = {name: ["-m", "benchmarks.deid.speed", "--serve", name, folder] for name in systems}
    logs = folder / f"{threads} threads"
    env = thread_environment(threads)
    measured = compare_workers(commands, logs, {"words": n_words}, rounds, env=env)
    medians = {system: found["median_seconds"] for system, found in measured.items()}
    whole = [name for name in systems if name.startswith("presidio") and "without" not in name]
    over = {
        ours: {theirs: round(medians[theirs] / medians[ours], 2) for theirs in others}
        for group, others in ((WHOLE, whole), (RULES, ["presidio without tagger"]))
        for ours in group
        if ours in systems
    }
    return {"systems": measured, "ours_over": over}


def serve_system(system: str, folder: Path) -> None:
    """Annotate the texts of the folder, a round for each line on standard input."""
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    texts = read_json(folder / "texts.json")

    def make_run() -> Callable[[], dict[str, Any]]:
        run = SYSTEMS[system](folder)
        return lambda: {"spans": run(texts)}

    serve_rounds(make_run)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--pipeline", type=Path, help="trained pipeline with a tagger of PHI")
    parser.add_argument("--docs", type=int, default=50, help="number of notes of MEDDOCAN dev")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--serve", nargs=2, metavar=("SYSTEM", "FOLDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        return serve_system(arguments.serve[0], Path(arguments.serve[1]))
    if arguments.pipeline is None:
        parser.error("--pipeline is missing")
    texts = read_notes("meddocan/dev/brat", arguments.docs)
    write_json(WORK / "texts.json", texts)
    make_systems(arguments.pipeline, WORK)
    n_words = sum(len(text.split()) for text in texts)
    result: dict[str, Any] = {"notes": len(texts), "words": n_words, "threads": {}}
    for threads in arguments.threads:
        result["threads"][threads] = compare(WORK, threads, arguments.rounds, n_words)
    report(f"deid_speed{'_gpu' if torch.cuda.is_available() else ''}", result)
    return None


if __name__ == "__main__":
    main()
