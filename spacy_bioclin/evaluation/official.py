"""The shared tasks' own scores, rewritten from what their scripts do.

MEDDOCAN: github.com/PlanTL-GOB-ES/MEDDOCAN-Evaluation-Script (Marimon et al., 2019).
PharmaCoNER: github.com/PlanTL-GOB-ES/PharmaCoNER-Evaluation-Script (Gonzalez-Agirre et al., 2019).
CANTEMIST: github.com/TeMU-BSC/cantemist-evaluation-library (Miranda-Escalada et al., 2020).

The functions take offsets and codes, no files. The MEDDOCAN and PharmaCoNER scripts skip a document
for which the system gave no file, CANTEMIST's counts its mentions as missed: here the caller says
which documents there are. The scripts print four digits (CANTEMIST's three).
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import BioclinError
from ..types import CharSpan
from .spans import Counts, score_spans

Offsets = tuple[int, int]


class ScoredDoc(NamedTuple):
    """A document as a shared task sees it.

    text (str): The untouched text.
    reference (Sequence[CharSpan]): Gold spans with exact offsets, in file order, repeats included.
    predicted (Sequence[CharSpan]): System spans, likewise.
    """

    text: str
    reference: Sequence[CharSpan]
    predicted: Sequence[CharSpan]


def exact_ner(docs: Iterable[ScoredDoc]) -> Counts:
    """MEDDOCAN sub-track 1 and PharmaCoNER sub-track 1: sets of (label, start, end)."""
    return score_spans((doc.reference, doc.predicted) for doc in docs).micro


# -- MEDDOCAN ------------------------------------------------------------------------------------


def count_sentences(text: str) -> int:
    """The denominator of the leak score by the corpus's rule: a sentence is a line that is not
    blank. The official script counts the lines of sentence-split copies of the texts, which follow
    this rule in MEDDOCAN; it is no count of linguistic sentences.
    """
    return sum(1 for line in text.split("\n") if line.strip())


def leak_score(ner: Counts, n_sentences: int) -> float:
    """RETURNS (float): Missed mentions per sentence; lower is better."""
    return ner.fn / max(n_sentences, 1)


def meddocan_spans_strict(docs: Iterable[ScoredDoc]) -> Counts:
    """Sub-track 2, strict: sets of (start, end), whatever the label."""
    return Counts.total(
        _set_counts(_offsets(doc.reference), _offsets(doc.predicted)) for doc in docs
    )


def meddocan_spans_merged(docs: Iterable[ScoredDoc]) -> Counts:
    """Sub-track 2, merged: right too are spans that agree once neighbours are joined.

    As the script has it, a span and the merged span that holds it are two true positives where
    both agree, and a false positive or negative inside any agreeing span is forgiven.
    """
    return Counts.total(_merged_counts(doc) for doc in docs)


def _merged_counts(doc: ScoredDoc) -> Counts:
    gold, system = _offsets(doc.reference), _offsets(doc.predicted)
    agreed = (gold & system) | (merge_spans(gold, doc.text) & merge_spans(system, doc.text))

    def outside(spans: set[Offsets]) -> int:
        return sum(not any(s <= start and end <= e for s, e in agreed) for start, end in spans)

    return Counts(len(agreed), outside(system - gold), outside(gold - system))


def merge_spans(spans: Collection[Offsets], text: str) -> set[Offsets]:
    """Join neighbours with nothing alphanumeric between them.

    A span nested in the one before ends the joined span where the nested one ends, shortening it,
    as in the script.
    """
    merged: list[Offsets] = []
    for start, end in sorted(spans):
        if merged and not any(char.isalnum() for char in text[merged[-1][1] : start]):
            start = merged.pop()[0]
        merged.append((start, end))
    return set(merged)


def _offsets(spans: Iterable[CharSpan]) -> set[Offsets]:
    return {(start, end) for start, end, _ in spans}


def _set_counts(gold: set[Offsets], system: set[Offsets]) -> Counts:
    return Counts(len(gold & system), len(system - gold), len(gold - system))


# -- CANTEMIST -----------------------------------------------------------------------------------


def cantemist_ner(docs: Iterable[ScoredDoc]) -> Counts:
    """Sub-task 1: mentions with the exact offsets; labels other than the task's one are the
    caller's to leave out.

    As the script joins its two tables, a mention that stands twice on one side counts once in the
    denominators but once per pair in the true positives: precision or recall may then exceed 1 and
    `fp` or `fn` of the result be negative. Give each mention once, as the task's NER files do.
    """
    return Counts.total(_joined_counts(doc, lambda span: span[:2]) for doc in docs)


def cantemist_norm(docs: Iterable[ScoredDoc]) -> Counts:
    """Sub-task 2: exact offsets and code.

    docs (Iterable[ScoredDoc]): The third field of a span is its code. Mentions without a code are
        the caller's to leave out: the script does not see them.
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
    """Sub-task 3: mean average precision of the codes of a document.

    What the script does is not what the task describes: it gives all codes one score, whereupon
    trectools ranks them by name, so the system's order does not matter; and a document for which
    the system has no valid code does not enter the mean. Both are kept here, as is the rest: case
    is ignored, a code counts once, a code that is not valid leaves the ranking.
    reference (Mapping[str, Collection[str]]): Codes by document id.
    predicted (Mapping[str, Collection[str]]): Codes by document id.
    valid_codes (Collection[str]): The task's list of codes.
    RETURNS (float): Mean over the documents of both sides; 0 if there is none.
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
    """RETURNS (dict): Both sub-tracks, with the leak score by `count_sentences`."""
    ner = exact_ner(docs)
    leak = leak_score(ner, sum(count_sentences(doc.text) for doc in docs))
    return {
        "ner": {"leak": leak, **ner.prf()},
        "spans_strict": meddocan_spans_strict(docs).prf(),
        "spans_merged": meddocan_spans_merged(docs).prf(),
    }


def pharmaconer(docs: Sequence[ScoredDoc]) -> dict[str, dict[str, float]]:
    """RETURNS (dict): Sub-track 1."""
    return {"ner": exact_ner(docs).prf()}


def cantemist(docs: Sequence[ScoredDoc]) -> dict[str, dict[str, float]]:
    """RETURNS (dict): Sub-task 1."""
    return {"ner": cantemist_ner(docs).prf()}


TASKS: dict[str, Callable[[Sequence[ScoredDoc]], dict[str, dict[str, float]]]] = {
    "meddocan": meddocan,
    "pharmaconer": pharmaconer,
    "cantemist": cantemist,
}


def check_task(task: str) -> None:
    """RAISES (BioclinError): If the task is not one of `TASKS`."""
    if task not in TASKS:
        raise BioclinError(f"No official score named {task!r}: choose from {', '.join(TASKS)}.")


def official_scores(task: str, docs: Sequence[ScoredDoc]) -> dict[str, dict[str, float]]:
    """RETURNS (dict): Name of the score -> its figures, from 0 to 1."""
    check_task(task)
    return TASKS[task](docs)
