"""Strict F1 on dev at each threshold of the probability of entities, for a pipeline that ships.

    python -m benchmarks.accuracy.threshold training/flagship-es/whole --corpora corpus/flagship-es

The pipeline, a folder or a package, annotates every CORPORA/NAME/dev.spacy that has clinical
entities, and writes all entities of the most probable tags. Those below each of `THRESHOLDS` are
then left out. Nothing of test is read.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc

from benchmarks.harness import RESULTS, describe_machine, make_parser, read_json, write_json
from benchmarks.leaderboard import known_labels, read_probabilities, score_layer
from spacy_bioclin.catalog.tasks import COMMON_LAYER
from spacy_bioclin.cli.loading import load_pipeline
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.evaluation.metrics import run_pipeline
from spacy_bioclin.types import CharSpan

THRESHOLDS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
KEPT = ("bioclin_sentences", "transformer")
RESULT = RESULTS / "ner_threshold.json"


def read_dev(corpora: Path, nlp: Language) -> dict[str, list[Doc]]:
    """Read the dev documents that have clinical entities, by name of the corpus."""
    found = {}
    for path in sorted(corpora.glob("*/dev.spacy")):
        docs = [doc for doc in read_docs(path, nlp.vocab) if COMMON_LAYER in doc.spans]
        if docs:
            found[path.parent.name] = docs
    return found


def score(nlp: Language, references: Sequence[Doc]) -> dict[str, float]:
    """Annotate once, and compute strict F1 over all labels at each threshold."""
    likely: list[list[tuple[CharSpan, float]]] = []

    def on_doc(doc: Doc) -> None:
        likely.append(read_probabilities(doc)[COMMON_LAYER])
        doc._.trf_data = None

    docs = run_pipeline(nlp, references, on_doc).layers[COMMON_LAYER]
    scores = {}
    for threshold in THRESHOLDS:
        kept = [
            doc._replace(predicted=doc.predicted & {span for span, p in spans if p >= threshold})
            for doc, spans in zip(docs, likely, strict=True)
        ]
        if scored := score_layer(kept, known_labels(nlp, COMMON_LAYER)):
            scores[str(threshold)] = round(scored["micro"]["f"], 4)
    return scores


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("pipeline", help="folder or package")
    parser.add_argument("--corpora", type=Path, required=True, help="folder of NAME/dev.spacy")
    arguments = parser.parse_args()
    nlp = load_pipeline(arguments.pipeline)
    ner: Any = nlp.get_pipe("ner")
    chosen, ner.cfg["threshold"] = ner.cfg["threshold"], 0.0
    others = [name for name, factory in nlp.pipe_factories.items() if factory not in KEPT]
    with nlp.select_pipes(disable=[name for name in others if name != "ner"]):
        corpora = {}
        for name, docs in read_dev(arguments.corpora, nlp).items():
            corpora[name] = score(nlp, docs)
            print(f"{name:<16}", *(f"{f:.3f}" for f in corpora[name].values()), flush=True)
    counted = list(corpora.values())
    mean = {key: round(sum(s[key] for s in counted) / len(counted), 4) for key in counted[0]}
    print(f"{'mean':<16}", *(f"{f:.3f}" for f in mean.values()))
    old = read_json(RESULT)["languages"] if RESULT.exists() else {}
    found = {"machine": describe_machine(), "chosen": chosen, "mean": mean, "corpora": corpora}
    write_json(RESULT, {"languages": {**old, nlp.lang: found}}, indent=2)


if __name__ == "__main__":
    main()
