"""Compute the official scores of shared tasks, as their scripts do.

MEDDOCAN: github.com/PlanTL-GOB-ES/MEDDOCAN-Evaluation-Script (Marimon et al., 2019).
PharmaCoNER: github.com/PlanTL-GOB-ES/PharmaCoNER-Evaluation-Script (Gonzalez-Agirre et al., 2019).
CANTEMIST: github.com/TeMU-BSC/cantemist-evaluation-library (Miranda-Escalada et al., 2020).

The functions take offsets and codes, not files. The MEDDOCAN and PharmaCoNER scripts skip a
document for which the system wrote no file, that of CANTEMIST counts its mentions as missed. Here
the caller chooses the documents. The scripts print four digits (that of CANTEMIST three).
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import BioclinError
from ..types import CharSpan
from .spans import Counts, score_spans

Offsets = tuple[int, int]


class ScoredDoc(NamedTuple):
    """A document of a shared task.

    text (str): The untouched text.
    reference (Sequence[CharSpan]): Gold spans with exact offsets, in file order, with repeats.
    predicted (Sequence[CharSpan]): System spans in the same form.
    """

    text: str
    reference: Sequence[CharSpan]
    predicted: Sequence[CharSpan]


def exact_ner(docs: Iterable[ScoredDoc]) -> Counts:
    """Compare sets of (label, start, end): MEDDOCAN sub-track 1 and PharmaCoNER sub-track 1."""
    return score_spans((doc.reference, doc.predicted) for doc in docs).micro


# -- MEDDOCAN ------------------------------------------------------------------------------------


def count_sentences(text: str) -> int:
    """Count sentences for the leak score of MEDDOCAN, where every line with text is a sentence.

    The official script counts the lines of sentence-split copies of the texts, which follow this
    rule.
    """
    return sum(1 for line in text.split("\n") if line.strip())


def leak_score(ner: Counts, n_sentences: int) -> float:
    """Compute the missed mentions per sentence. Lower is better."""
    return ner.fn / max(n_sentences, 1)


def meddocan_spans_strict(docs: Iterable[ScoredDoc]) -> Counts:
    """Compare sets of (start, end), ignoring labels: MEDDOCAN sub-track 2, strict."""
    return Counts.total(
        Counts.of_sets(_offsets(doc.reference), _offsets(doc.predicted)) for doc in docs
    )


def meddocan_spans_merged(docs: Iterable[ScoredDoc]) -> Counts:
    """Compare spans before and after joining neighbours: MEDDOCAN sub-track 2, merged.

    As in the script, a span and the merged span around it are two true positives if both agree,
    and false positives and negatives inside an agreeing span are not counted.
    """
    return Counts.total(_merged_counts(doc) for doc in docs)


def _merged_counts(doc: ScoredDoc) -> Counts:
    gold, system = _offsets(doc.reference), _offsets(doc.predicted)
    agreed = (gold & system) | (merge_spans(gold, doc.text) & merge_spans(system, doc.text))

    def outside(spans: set[Offsets]) -> int:
        return sum(not any(s <= start and end <= e for s, e in agreed) for start, end in spans)

    return Counts(len(agreed), outside(system - gold), outside(gold - system))


def merge_spans(spans: Collection[Offsets], text: str) -> set[Offsets]:
    """Join neighbouring spans without alphanumeric characters between them.

    As in the script, a span nested in the one before shortens the joined span to its own end.
    """
    merged: list[Offsets] = []
    for start, end in sorted(spans):
        if merged and not any(char.isalnum() for char in text[merged[-1][1] : start]):
            start = merged.pop()[0]
        merged.append((start, end))
    return set(merged)


def _offsets(spans: Iterable[CharSpan]) -> set[Offsets]:
    return {(start, end) for start, end, _ in spans}


# -- CANTEMIST -----------------------------------------------------------------------------------


def cantemist_ner(docs: Iterable[ScoredDoc]) -> Counts:
    """Compare mentions by their exact offsets: CANTEMIST sub-task 1.

    As the script joins its two tables, a repeated mention counts once in the denominators but once
    per pair in the true positives. Precision or recall can then exceed 1, and `fp` or `fn` can be
    negative. Give each mention once, as the task's NER files do.

    docs (Iterable[ScoredDoc]): Documents, without labels other than that of the task.
    """
    return Counts.total(_joined_counts(doc, lambda span: span[:2]) for doc in docs)


def cantemist_norm(docs: Iterable[ScoredDoc]) -> Counts:
    """Compare mentions by their exact offsets and codes: CANTEMIST sub-task 2.

    docs (Iterable[ScoredDoc]): Documents. The third field of a span is its code. There must be no
        mentions without a code.
    """
    return Counts.total(_joined_counts(doc, lambda span: span) for doc in docs)


def _joined_counts(doc: ScoredDoc, key: Callable[[CharSpan], tuple[Any, ...]]) -> Counts:
    gold, system = Counter(map(key, doc.reference)), Counter(map(key, doc.predicted))
    tp = sum(count * system[item] for item, count in gold.items())
    n_gold, n_system = len(_offsets(doc.reference)), len(_offsets(doc.predicted))
    return Counts(tp, n_system - tp, n_gold - tp)


def cantemist_coding(
    reference: Mapping[str, Collection[str]],
    predicted: Mapping[str, Collection[str]],
    valid_codes: Collection[str],
) -> float:
    """Compute the mean average precision of the codes of a document: CANTEMIST sub-task 3.

    The script differs from the description of the task, and this function follows the script: all
    codes have the same score, so trectools ranks them by name and ignores the system's order; a
    document without a valid predicted code is not part of the mean. Case is ignored, a code counts
    once, and invalid codes are removed from the ranking.

    reference (Mapping[str, Collection[str]]): Document id -> codes.
    predicted (Mapping[str, Collection[str]]): Document id -> codes.
    valid_codes (Collection[str]): The task's list of codes.
    RETURNS (float): Mean over the documents with codes on both sides; 0 if there is none.
    """
    valid = {code.lower() for code in valid_codes}
    precisions = []
    for doc_id, codes in reference.items():
        gold = {code.lower() for code in codes}
        ranking = sorted(valid.intersection(code.lower() for code in predicted.get(doc_id, ())))
        if gold and ranking:
            precisions.append(_average_precision(gold, ranking))
    return sum(precisions) / max(len(precisions), 1)


def _average_precision(gold: set[str], ranking: Sequence[str]) -> float:
    found, total = 0, 0.0
    for rank, code in enumerate(ranking, start=1):
        if code in gold:
            found += 1
            total += found / rank
    return total / len(gold)


# -- by name of the task -------------------------------------------------------------------------


def meddocan(docs: Sequence[ScoredDoc]) -> dict[str, dict[str, float]]:
    """Score both sub-tracks of MEDDOCAN."""
    ner = exact_ner(docs)
    leak = leak_score(ner, sum(count_sentences(doc.text) for doc in docs))
    return {
        "ner": {"leak": leak, **ner.prf()},
        "spans_strict": meddocan_spans_strict(docs).prf(),
        "spans_merged": meddocan_spans_merged(docs).prf(),
    }


def pharmaconer(docs: Sequence[ScoredDoc]) -> dict[str, dict[str, float]]:
    """Score sub-track 1 of PharmaCoNER."""
    return {"ner": exact_ner(docs).prf()}


def cantemist(docs: Sequence[ScoredDoc]) -> dict[str, dict[str, float]]:
    """Score sub-task 1 of CANTEMIST."""
    return {"ner": cantemist_ner(docs).prf()}


TASKS: dict[str, Callable[[Sequence[ScoredDoc]], dict[str, dict[str, float]]]] = {
    "meddocan": meddocan,
    "pharmaconer": pharmaconer,
    "cantemist": cantemist,
}


def check_task(task: str) -> None:
    """Check the name of a shared task.

    RAISES (BioclinError): It is not one of `TASKS`.
    """
    if task not in TASKS:
        raise BioclinError(f"No official score named {task!r}: choose from {', '.join(TASKS)}.")


def official_scores(task: str, docs: Sequence[ScoredDoc]) -> dict[str, dict[str, float]]:
    """Compute the official scores of a shared task.

    RETURNS (dict): Sub-track -> scores, from 0 to 1.
    RAISES (BioclinError): There is no such task.
    """
    check_task(task)
    return TASKS[task](docs)
