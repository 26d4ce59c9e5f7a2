"""Words per second and memory of one encoder with many labels or heads, on the processor.

    OMP_NUM_THREADS=1 python -m benchmarks.speed.heads
    OMP_NUM_THREADS=1 python -m benchmarks.speed.heads --pipeline FOLDER --texts FILE.spacy

Trains a nested `bioclin_ner` with the 12 most frequent labels of MACCROBAT2020 on the included
encoder, shortly and once. Each label has weights of its own in the head, so parts of this head are
the other systems, and all of them find the same entities: one label, five labels, one component for
each label, and a pipeline with an encoder of its own for each label, one after the other. Beside
them, spaCy's `ner`, `spancat` and `textcat_multilabel` on one encoder; they are not trained, and
biased towards finding nothing.

Each system is a process of its own. They take turns, and what counts are ratios of medians of the
processor time within the run.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from benchmarks.harness import (
    ROOT,
    WORK,
    Result,
    compare_workers,
    data_dir,
    make_parser,
    report,
    run_python,
    serve,
    status_mb,
    time_call,
    to_options,
)
from spacy_bioclin.catalog.tasks import load_tasks
from spacy_bioclin.corpora.docbin import read_docs, write_docs
from spacy_bioclin.ner.model import TaggerNetwork

ENCODER = ROOT / "assets" / "encoders" / "bioclin-compact"
FOLDER = WORK / "heads"
TASK, LAYER, N_LABELS = "maccrobat2020", "clinical", 12
# Updates of 512 tokens: enough for about the gold number of entities.
UPDATES = 500
N_DEV = 10
SYSTEMS = ("one label", "five labels", "all labels", "one head each", "pipelines", "spacy heads")
SPACY_HEADS = ("ner", "spancat", "textcat_multilabel")
NOTHING = -20.0


def prepare() -> Path:
    """Convert the corpus, and keep its most frequent labels.

    RETURNS (Path): Folder of train and dev.
    """
    folder, task = FOLDER / "corpus", load_tasks()[TASK]
    labels: set[str] = set()
    for split in ("train", "dev"):
        whole, out = folder / f"all-{split}.spacy", folder / f"{split}.spacy"
        if out.exists():
            continue
        run_python(
            *("-m", "spacy_bioclin", "convert", task.format),
            *(data_dir() / path for path in task.splits[split]),
            *(whole, "--task", TASK, "--split", split, "--layer", f"*={LAYER}", "--overwrite"),
        )
        docs = list(read_docs(whole, spacy.blank(task.lang).vocab))
        if split == "train":
            counts = Counter(span.label_ for doc in docs for span in doc.spans[LAYER])
            labels = {label for label, _ in counts.most_common(N_LABELS)}
        for doc in docs:
            doc.spans[LAYER] = [span for span in doc.spans[LAYER] if span.label_ in labels]
        write_docs(docs[: None if split == "train" else N_DEV], out)
    return folder


def trained() -> Path:
    """Train the head with all labels, unless it was trained before."""
    last = FOLDER / "training" / "model-last"
    if not last.exists():
        corpus = prepare()
        settings = {
            "paths.train": corpus / "train.spacy",
            "paths.dev": corpus / "dev.spacy",
            "paths.encoder": ENCODER,
            "nlp.lang": load_tasks()[TASK].lang,
            "components.ner.spans_key": LAYER,
            "components.ner.nested": "true",
            "training.batcher.size": 512,
            "training.max_steps": UPDATES,
            "training.eval_frequency": UPDATES,
            "training.logger.progress_bar": "null",
            "training.score_weights": f'{{"spans_{LAYER}_f": 1.0}}',
        }
        run_python(
            *("-m", "spacy", "train", "configs/ner.cfg", "-o", FOLDER / "training"),
            *to_options(settings),
            log=FOLDER / "training.log",
        )
    return last


def find_head(nlp: Language) -> Any:
    """Find the nested `bioclin_ner` of a pipeline."""
    factories = ((name, nlp.get_pipe_meta(name).factory) for name in nlp.pipe_names)
    return next(nlp.get_pipe(name) for name, factory in factories if factory == "bioclin_ner")


def copy_part(source: Any, target: Any, labels: slice) -> None:
    """Give a head the weights that another one has for some labels."""
    shim = source.model.get_ref("head").shims[0]
    full: TaggerNetwork = shim.module
    n_tags = full.shape[1]
    names = source.labels[labels]
    cfg = {**shim.cfg, "n_layers": len(names)}
    part = TaggerNetwork(**cfg)
    rows = torch.arange(len(source.labels) * n_tags).view(-1, n_tags)[labels].flatten()
    with torch.no_grad():
        part.output.weight.copy_(full.output.weight[rows])
        part.output.bias.copy_(full.output.bias[rows])
        for mine, theirs in (
            (part.transitions, full.transitions),
            (part.start, full.start),
            (part.end, full.end),
        ):
            mine.copy_(theirs[labels])
    head = target.model.get_ref("head")
    head.attrs["n_layers"], head.attrs["n_tags"] = len(names), n_tags
    head.shims[0].set_module(part.eval(), cfg)
    target.cfg["labels"] = list(names)
    target._grammars.clear()


def with_labels(folder: Path, labels: slice) -> Language:
    """Load the pipeline with some of its labels."""
    nlp = spacy.load(folder)
    head = find_head(nlp)
    copy_part(head, head, labels)
    return nlp


def with_heads(folder: Path) -> Language:
    """Load the pipeline with a component for each label."""
    nlp = spacy.load(folder)
    full = find_head(nlp)
    names = ("spans_key", "nested", "scheme", "threshold", "doubtful_from")
    config = {name: full.cfg[name] for name in names}
    for i, label in enumerate(full.labels):
        added = nlp.add_pipe(
            "bioclin_ner", f"ner_{i}", after=full.name, config={**config, "spans_key": label}
        )
        copy_part(full, added, slice(i, i + 1))
    nlp.remove_pipe(full.name)
    nlp._link_components()
    return nlp


def with_spacy_heads(folder: Path) -> Language:
    """Load the pipeline with spaCy's components in place of the head."""
    nlp = spacy.load(folder)
    full = find_head(nlp)
    listener = {
        "@architectures": "spacy-transformers.TransformerListener.v1",
        "grad_factor": 1.0,
        "pooling": {"@layers": "reduce_mean.v1"},
    }
    labels = list(full.labels)
    doc = Doc(nlp.vocab, words=labels)
    doc.spans["sc"] = doc.ents = [Span(doc, i, i + 1, label) for i, label in enumerate(labels)]
    doc.cats = dict.fromkeys(labels, 1.0)
    example = Example(nlp.make_doc(doc.text), doc)
    nlp.get_pipe("transformer")(example.predicted)
    for factory in SPACY_HEADS:
        config = spacy.blank(nlp.lang).get_factory_meta(factory).default_config["model"]
        tok2vec = {"tok2vec": listener}
        if factory == "textcat_multilabel":
            config = {"@architectures": "spacy.TextCatReduce.v1", "exclusive_classes": False}
            config |= {f"use_reduce_{n}": n == "mean" for n in ("first", "last", "max", "mean")}
        added = nlp.add_pipe(
            factory, f"spacy_{factory}", after=full.name, config={"model": {**config, **tok2vec}}
        )
        nlp._link_components()
        added.initialize(lambda: [example], nlp=nlp)
        for node in added.model.walk():
            bias = node.get_param("b").copy() if node.has_param("b") else None
            if bias is None:
                continue
            if node.name == "precomputable_affine":  # the last move is O
                bias[-1] -= NOTHING
            elif factory == "spancat" and bias.shape == (len(labels),):
                bias += NOTHING
            node.set_param("b", bias)
    nlp.remove_pipe(full.name)
    return nlp


def load(system: str, folder: Path) -> list[Language]:
    """Load the pipelines of a system."""
    if system == "pipelines":
        n_labels = len(find_head(spacy.load(folder)).labels)
        return [with_labels(folder, slice(i, i + 1)) for i in range(n_labels)]
    makers: dict[str, Callable[[], Language]] = {
        "one label": lambda: with_labels(folder, slice(0, 1)),
        "five labels": lambda: with_labels(folder, slice(0, 5)),
        "all labels": lambda: spacy.load(folder),
        "one head each": lambda: with_heads(folder),
        "spacy heads": lambda: with_spacy_heads(folder),
    }
    return [makers[system]()]


def answer(system: str, folder: Path, texts: list[str]) -> tuple[Any, Callable[[str], Result]]:
    """Load a system; each question makes it annotate the texts."""
    pipelines = load(system, folder)
    loaded = status_mb("VmRSS")

    def annotate(_: str) -> Result:
        spans = 0

        def run() -> None:
            nonlocal spans
            for doc in itertools.chain.from_iterable(nlp.pipe(texts) for nlp in pipelines):
                spans += sum(map(len, doc.spans.values())) + len(doc.ents)

        seconds = time_call(run).cpu
        memory = {"loaded_mb": round(loaded), "peak_mb": round(status_mb("VmHWM"))}
        return {"seconds": seconds, "spans": spans, **memory}

    return "loaded", annotate


def read_texts(path: Path, n_docs: int) -> Iterator[str]:
    """Read the first texts of a file of Docs."""
    return (doc.text for doc in itertools.islice(read_docs(path, spacy.blank("xx").vocab), n_docs))


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--pipeline", type=Path, help="with a nested bioclin_ner, not our own")
    parser.add_argument("--texts", type=Path, help="Docs whose texts are annotated, not our own")
    parser.add_argument("--docs", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS)
    parser.add_argument("--serve", choices=SYSTEMS, help="be the process of a system")
    arguments = parser.parse_args()
    folder = arguments.pipeline or trained()
    texts = list(read_texts(arguments.texts or prepare() / "train.spacy", arguments.docs))
    if arguments.serve:
        serve(lambda: answer(arguments.serve, folder, texts))
        return
    options = ["--pipeline", folder, "--docs", arguments.docs]
    options += ["--texts", arguments.texts] if arguments.texts else []
    module = ["-m", "benchmarks.speed.heads"]
    commands = {name: [*module, *options, "--serve", name] for name in arguments.systems}
    sizes = {"words": sum(len(text.split()) for text in texts)}
    systems = compare_workers(commands, FOLDER / "logs", sizes, arguments.rounds, cwd=ROOT)
    one = systems["one label"]["median_seconds"]
    everything = systems["all labels"]["median_seconds"]
    ratios = {
        "over_one_label": {n: round(s["median_seconds"] / one, 3) for n, s in systems.items()},
        "over_all_labels": {
            n: round(s["median_seconds"] / everything, 3) for n, s in systems.items()
        },
    }
    settings = {"threads": torch.get_num_threads(), "docs": len(texts), **sizes}
    own = f"_{arguments.pipeline.name}" if arguments.pipeline else ""
    report(f"heads{own}", {**settings, **ratios, "systems": systems})


if __name__ == "__main__":
    main()
