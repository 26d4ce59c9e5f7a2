"""Words per second of six heads of different kinds on one encoder, compared with a pipeline for
each head, on the processor.

    OMP_NUM_THREADS=1 python -m benchmarks.heads.speed

The heads, of which none is trained: `bioclin_ner`, the same with nested spans in doc.spans,
`bioclin_relations`, `bioclin_pairs` with require_pairs = false, and spaCy's `textcat_multilabel`
and `textcat`. Relations are between the annotated entities of a sentence, which all pipelines are
given. Taggers and relations are biased towards finding nothing, so that no time goes to what an
untrained head would find.

"pairs": pairs of questions (RQE, dev), which all six heads read; without entities, there are no
relations to find. "notes": MEDDOCAN, dev. They are no pairs, so that `bioclin_pairs` leaves them as
they are on the one encoder, and there is no pipeline for it: five pipelines are compared.

The texts are tokenized before the time counts, which all systems would do alike. Each system is a
process of its own. They take turns, and what counts are ratios of medians within
the run: of the processor time, and of the words per second of elapsed time.
"""

import itertools
import json
import statistics
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from benchmarks import corpora
from benchmarks.harness import (
    ROOT,
    WORK,
    Result,
    compare_workers,
    make_parser,
    report,
    serve,
    status_mb,
    time_call,
)
from benchmarks.heads import data
from spacy_bioclin.annotations.pairs import get_boundary, make_pair, split_pair
from spacy_bioclin.catalog.recipes import apply_settings
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.types import GOLD_KEY

ENCODER = ROOT / "assets" / "encoders" / "bioclin-sm"
NOTES, PAIRS = "meddocan", "rqe"
LANG = "es"
GIVEN = "given"  # layer of the entities between which there may be relations
LISTENER = {
    "@architectures": "spacy-transformers.TransformerListener.v1",
    "grad_factor": 1.0,
    "pooling": {"@layers": "reduce_mean.v1"},
}
# Of the scores for "nothing": no entity, no relation.
BIAS = 20.0
RELATIONS, TOPICS, CLASSES = ("R1", "R2", "R3"), ("T1", "T2", "T3"), ("C1", "C2", "C3")
WORKLOADS = {
    "notes": ("ner", "spans", "relations", "textcat_multilabel", "textcat"),
    "pairs": ("ner", "spans", "relations", "pairs", "textcat_multilabel", "textcat"),
}
HEADS = WORKLOADS["pairs"]
SYSTEMS = ("six heads", "pipelines", "one head")


def head_config(head: str) -> tuple[str, dict[str, Any]]:
    """Make the config of a head. RETURNS (tuple): Its factory, and its settings."""
    model = {"model": {"tok2vec": LISTENER}}
    if head == "ner":
        return "bioclin_ner", model
    if head == "spans":
        return "bioclin_ner", {**model, "spans_key": "nested", "nested": True}
    if head == "relations":
        return "bioclin_relations", {**model, "spans_key": GIVEN, "scope": "sentence"}
    if head == "pairs":
        return "bioclin_pairs", {**model, "require_pairs": False}
    classifier: dict[str, Any] = {"@architectures": "spacy.TextCatReduce.v1", "tok2vec": LISTENER}
    classifier |= {
        f"use_reduce_{name}": name == "mean" for name in ("first", "last", "max", "mean")
    }
    classifier["exclusive_classes"] = head == "textcat"
    return head, {"model": classifier}


def make_pipeline(heads: tuple[str, ...]) -> Language:
    """Make a pipeline with an encoder and heads, none of which has learnt anything."""
    config = spacy.util.load_config(ROOT / "configs" / "ner.cfg")
    apply_settings(config, {"paths.encoder": str(ENCODER), "nlp.lang": LANG})
    nlp = spacy.util.load_model_from_config(config, auto_fill=True)
    nlp.remove_pipe("ner")
    for head in heads:
        factory, settings = head_config(head)
        nlp.add_pipe(factory, head, before="cleaner", config=settings)
    nlp._link_components()
    encoder: Any = nlp.get_pipe("transformer")
    start = nlp.make_doc("a")
    encoder.initialize(lambda: [Example(start.copy(), start)], nlp=nlp)
    for head in heads:
        pipe: Any = nlp.get_pipe(head)
        examples = make_examples(nlp, head)
        pipe.initialize(lambda examples=examples: examples, nlp=nlp)
        prefer_nothing(pipe)
    return nlp


def make_examples(nlp: Language, head: str) -> list[Example]:
    """Make annotated Docs that give a head its labels: those of the notes, and invented ones."""
    labels = sorted({ent.label_ for doc in read_notes() for ent in doc.ents})
    docs = [make_pair(nlp, "a b", "c") for _ in CLASSES] if head == "pairs" else []
    if not docs:
        starts: list[bool | int | None] = [n == 0 for n in range(len(labels))]
        docs = [Doc(nlp.vocab, words=labels, sent_starts=starts)]
    for i, doc in enumerate(docs):
        if head in ("pairs", "textcat"):
            doc.cats = {label: float(n == i) for n, label in enumerate(CLASSES)}
        elif head == "textcat_multilabel":
            doc.cats = dict.fromkeys(TOPICS, 1.0)
        else:
            spans = [spacy.tokens.Span(doc, n, n + 1, label) for n, label in enumerate(labels)]
            doc.ents = doc.spans["nested"] = doc.spans[GIVEN] = spans
            ends = [[span.start_char, span.end_char, span.label_] for span in spans]
            pairs = list(itertools.permutations(ends, 2))
            relations = [[name, *two] for name in RELATIONS for two in pairs]
            doc.user_data[GOLD_KEY] = {"relations": relations}
    examples = [Example(doc.copy(), doc) for doc in docs]
    for eg in examples:
        nlp.get_pipe("transformer")(eg.predicted)
    return examples


def prefer_nothing(pipe: Any) -> None:
    """Make a head find no entity and no relation, whatever it reads."""
    shims = pipe.model.get_ref("head").shims if pipe.model.has_ref("head") else []
    module: Any = shims[0].module if shims else None
    with torch.no_grad():
        if hasattr(module, "transitions"):  # the first tag of each layer is "O"
            n_tags = module.shape[1]
            module.output.bias.view(-1, n_tags)[:, 0] += BIAS
        elif hasattr(module, "layers"):
            module.layers[-1].bias[0] += BIAS


def read_notes(n_docs: int | None = None) -> list[Doc]:
    """Read the notes of dev."""
    path = corpora.prepare(NOTES) / "dev.spacy"
    return list(itertools.islice(read_docs(path, spacy.blank(LANG).vocab), n_docs))


def read_pairs(n_pairs: int) -> list[tuple[str, str]]:
    """Read pairs of dev, from all parts of the file."""
    docs = list(read_docs(data.prepare(PAIRS) / "dev.spacy", spacy.blank(LANG).vocab))
    docs = docs[:: max(1, len(docs) // n_pairs)][:n_pairs]
    first_second = [split_pair(doc) for doc in docs if get_boundary(doc) is not None]
    return [(first.text, second.text) for first, second in first_second]


def make_docs(nlp: Language, workload: str, size: int) -> Iterator[Doc]:
    """Make the Docs that a pipeline annotates."""
    if workload == "pairs":
        yield from (make_pair(nlp, *pair) for pair in read_pairs(size))
        return
    for note in read_notes(size):
        doc = nlp.make_doc(note.text)
        spans = (
            doc.char_span(ent.start_char, ent.end_char, ent.label_, alignment_mode="expand")
            for ent in note.ents
        )
        doc.spans[GIVEN] = [span for span in spans if span is not None]
        yield doc


def answer(system: str, workload: str, size: int) -> tuple[Any, Callable[[str], Result]]:
    """Load a system; each question makes it annotate the texts."""
    heads: dict[str, list[tuple[str, ...]]] = {
        "six heads": [HEADS],
        "pipelines": [(head,) for head in WORKLOADS[workload]],
        "one head": [("ner",)],
    }
    pipelines = [make_pipeline(of_pipeline) for of_pipeline in heads[system]]
    loaded = status_mb("VmRSS")
    elapsed: list[float] = []

    def annotate(_: str) -> Result:
        batches = [list(make_docs(nlp, workload, size)) for nlp in pipelines]

        def run() -> None:
            for nlp, docs in zip(pipelines, batches, strict=True):
                deque(nlp.pipe(docs), maxlen=0)

        seconds = time_call(run)
        elapsed.append(round(seconds.wall, 3))
        memory = {"loaded_mb": round(loaded), "peak_mb": round(status_mb("VmHWM"))}
        return {"seconds": seconds.cpu, "elapsed_seconds": elapsed, **memory}

    return "loaded", annotate


def count_words(workload: str, size: int) -> dict[str, int]:
    """Count the texts and words of a workload."""
    docs = list(make_docs(corpora.make_blank(LANG), workload, size))
    words = sum(len(doc.text.split()) for doc in docs)
    return {"texts": len(docs), "words": words}


def compare(workload: str, size: int, rounds: int) -> dict[str, Any]:
    """Measure the systems with a workload."""
    module = ("-m", "benchmarks.heads.speed", "--workload", workload, f"--{workload}", size)
    commands = {name: [*module, "--serve", name] for name in SYSTEMS}
    corpora.prepare(NOTES)  # once, before there are several processes
    counts = count_words(workload, size)
    logs = WORK / "heads-speed" / workload
    systems = compare_workers(commands, logs, {"words": counts["words"]}, rounds, cwd=ROOT)
    for found in systems.values():
        found["words_per_cpu_second"] = found.pop("words_per_second")
        found["cpu_seconds"] = found.pop("seconds")
        found["median_cpu_seconds"] = found.pop("median_seconds")
        elapsed = found["elapsed_seconds"] = found["elapsed_seconds"][-rounds:]
        found["words_per_second"] = round(counts["words"] / statistics.median(elapsed))
    six, one = (systems[name] for name in ("six heads", "one head"))
    pipelines = systems["pipelines"]
    return {
        **counts,
        "pipelines": list(WORKLOADS[workload]),
        "cpu_pipelines_over_six_heads": divide(pipelines, six, "median_cpu_seconds"),
        "cpu_six_heads_over_one": divide(six, one, "median_cpu_seconds"),
        "words_per_second_six_heads_over_pipelines": divide(six, pipelines, "words_per_second"),
        "systems": systems,
    }


def divide(first: Result, second: Result, key: str) -> float:
    """Divide a figure of a system by that of another one."""
    return round(first[key] / second[key], 2)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--notes", type=int, default=20, help="notes to annotate")
    parser.add_argument("--pairs", type=int, default=200, help="pairs to annotate")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workload", choices=sorted(WORKLOADS), help="only this one; no result")
    parser.add_argument("--serve", choices=SYSTEMS, help="be the process of a system")
    arguments = parser.parse_args()
    if arguments.serve:
        size = getattr(arguments, arguments.workload)
        serve(lambda: answer(arguments.serve, arguments.workload, size))
        return
    chosen = [arguments.workload] if arguments.workload else list(WORKLOADS)
    found = {name: compare(name, getattr(arguments, name), arguments.rounds) for name in chosen}
    if arguments.workload:
        print(json.dumps(found, indent=2))
        return
    settings = {"encoder": ENCODER.name, "threads": torch.get_num_threads(), "heads": HEADS}
    report("heads_speed", {**settings, "rounds": arguments.rounds, **found})


if __name__ == "__main__":
    main()
