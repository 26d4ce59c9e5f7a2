"""The published metrics by name."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from spacy.training import Example

from ...errors import BioclinError
from ...settings import find_nearest
from .entities import score_entities_blue, score_entities_strict
from .relations import score_relations_macro, score_relations_micro
from .scoring import Scores, TaskScoring
from .texts import (
    score_hoc_example,
    score_hoc_macro,
    score_pairs_accuracy,
    score_pairs_pearson,
    score_texts_accuracy,
    score_texts_positive,
)


class PublishedMetric(NamedTuple):
    """A metric as papers publish it.

    title (str): Its name for a table.
    source (str): Who defines it, and what contradicts the definition.
    kind (str): Kind of task: "entities", "relations", "texts" or "pairs".
    score (Callable): Takes Examples and what of the task counts. The published number is "value",
        from 0 to 1 (a correlation from -1 to 1), or None if nothing is annotated; other keys are
        details.
    """

    title: str
    source: str
    kind: str
    score: Callable[[Sequence[Example], TaskScoring], Scores]


METRICS = {
    "entities_strict_f": PublishedMetric(
        "F1 of entities, exact offsets and label, micro",
        "Carrino 2022, Lewis 2020, Mulyar 2020, and the scripts of the shared tasks",
        "entities",
        score_entities_strict,
    ),
    "blue_entities_f": PublishedMetric(
        "F1 of entities as BLUE's in ouBioBERT: sets of positions, without label",
        "utils/metrics/ner.py of sy-wada/blue_benchmark_with_transformers. NCBI's own eval_ner.py "
        "compares annotations",
        "entities",
        score_entities_blue,
    ),
    "relations_micro_f": PublishedMetric(
        "Micro F1 of relations, without “no relation”",
        "BLUE (Peng 2019): ChemProt over five classes, DDI over four, i2b2 2010 over eight. The "
        "released run_classification.py of Lewis 2020 computes it for all three",
        "relations",
        score_relations_micro,
    ),
    "relations_macro_f": PublishedMetric(
        "Macro F1 of relations",
        "Table 1 of Lewis 2020 for ChemProt. Its released script computes micro F1",
        "relations",
        score_relations_macro,
    ),
    "hoc_example_f": PublishedMetric(
        "F1 of abstracts from mean precision and recall (example-based)",
        "BLUE (Peng 2019), blue/hoc/eval_hoc.py, which prints precision as recall and recall as "
        "precision. The released script of Lewis 2020 computes it too",
        "texts",
        score_hoc_example,
    ),
    "hoc_macro_f": PublishedMetric(
        "Macro F1 of the labels of abstracts",
        "Table 1 of Lewis 2020. Section 2.2 says that it follows BLUE, and so does its script",
        "texts",
        score_hoc_macro,
    ),
    "texts_positive_f": PublishedMetric(
        "F1 of the positive class",
        "Lewis 2020 for GAD and EU-ADR, as BioBERT",
        "texts",
        score_texts_positive,
    ),
    "texts_accuracy": PublishedMetric(
        "Accuracy of texts",
        "The share of texts whose classes are exactly right",
        "texts",
        score_texts_accuracy,
    ),
    "pairs_accuracy": PublishedMetric(
        "Accuracy of pairs",
        "MedNLI in BLUE and Lewis 2020; MedNLI and MedRQE in Mulyar 2020",
        "pairs",
        score_pairs_accuracy,
    ),
    "pairs_pearson": PublishedMetric(
        "Pearson correlation of graded pairs",
        "MedSTS and BIOSSES in BLUE; n2c2 2019 in Mulyar 2020",
        "pairs",
        score_pairs_pearson,
    ),
}


def find_metric(name: str) -> PublishedMetric:
    """Look up a published metric.

    RAISES (BioclinError): There is no metric of this name.
    """
    if name not in METRICS:
        near = find_nearest(name, list(METRICS))
        raise BioclinError(f"metric {name!r} is unknown; {near}want one of {', '.join(METRICS)}")
    return METRICS[name]
