"""Set the calibration and the thresholds of a de-identification pipeline on gold Docs."""

from typing import Any

from spacy.language import Language
from spacy.tokens import Doc

from ..evaluation.spans import reference_spans
from ..types import CharSpan
from .calibration import (
    Candidate,
    Mention,
    choose_best_f,
    choose_thresholds,
    expected_calibration_error,
    fit_calibration,
    recall_by_label,
)
from .labels import map_label, scheme_labels
from .pipeline import find_deid

# From this probability on a span that the tags leave out is worth a look when recall comes first.
DOUBTFUL_FROM = 0.002


def calibrate(nlp: Language, docs: list[Doc], target_recall: float | None) -> dict[str, Any]:
    """Set the calibration and the thresholds of a pipeline's `bioclin_deid`.

    docs (list[Doc]): Gold Docs with the layer `spans_key`.
    target_recall (float | None): For every label; None for the best F1 of each.
    RETURNS (dict): Thresholds and recall by label, and the calibration error.
    """
    deid = find_deid(nlp)
    deid.calibration, deid.thresholds = {}, {}
    for name in nlp.pipe_names:
        component: Any = nlp.get_pipe(name)
        if nlp.get_pipe_meta(name).factory == "bioclin_ner" and (
            component.spans_key == deid.spans_key
        ):
            component.cfg["doubtful_from"] = None if target_recall is None else DOUBTFUL_FROM
    pairs = judge(nlp, docs)
    candidates = [candidate for _, found in pairs for candidate in found]
    deid.calibration = fit_calibration(candidates)
    calibrated = [
        [candidate._replace(span=deid.calibrate_span(candidate.span)) for candidate in found]
        for _, found in pairs
    ]
    flat = [candidate for found in calibrated for candidate in found]
    mentions = [
        mention
        for (gold, _), found in zip(pairs, calibrated, strict=True)
        for mention in weigh_mentions(gold, found)
    ]
    n_gold: dict[str, int] = {}
    for mention in mentions:
        n_gold[mention.label] = n_gold.get(mention.label, 0) + 1
    if target_recall is None:
        best = choose_best_f(flat, len(mentions))
        deid.thresholds = dict.fromkeys(scheme_labels(deid.policy.scheme), best)
    else:
        deid.thresholds = choose_thresholds(mentions, target_recall)
    recall = recall_by_label(mentions, deid.thresholds)
    right = [candidate.correct for candidate in candidates]

    def error(group: list[Candidate]) -> float:
        confidence = [candidate.span.confidence for candidate in group]
        return round(expected_calibration_error(confidence, right), 5)

    return {
        "target_recall": target_recall,
        "n_docs": len(docs),
        "calibration_error": {"before": error(candidates), "after": error(flat)},
        "labels": {
            label: {
                "n_gold": n_gold[label],
                "recall": round(recall[label], 4),
                "threshold": round(deid.thresholds.get(label, 0.0), 6),
            }
            for label in sorted(n_gold)
        },
    }


def judge(nlp: Language, docs: list[Doc]) -> list[tuple[list[CharSpan], list[Candidate]]]:
    """RETURNS (list): Per Doc, its gold spans, and what the detectors found with whether it is
    right."""
    deid = find_deid(nlp)
    scheme = deid.policy.scheme
    pairs = []
    with nlp.select_pipes(disable=[deid.name]):
        for doc, reference in nlp.pipe(((doc.text, doc) for doc in docs), as_tuples=True):
            gold = [
                (start, end, map_label(label, scheme))
                for start, end, label in sorted(reference_spans(reference, deid.spans_key) or ())
            ]
            known = set(gold)
            found, _ = deid.find_candidates(doc)
            pairs.append((gold, [Candidate(s, (s.start, s.end, s.label) in known) for s in found]))
    return pairs


def weigh_mentions(gold: list[CharSpan], found: list[Candidate]) -> list[Mention]:
    """RETURNS (list[Mention]): How surely each gold mention is covered; see `Mention`."""
    mentions = []
    for start, end, label in gold:
        near = [c.span for c in found if c.span.start < end and start < c.span.end]
        weakest, by = 1.0, label
        for i in range(start, end):
            over = [s for s in near if s.start <= i < s.end]
            best = max(over, key=lambda s: s.confidence, default=None)
            if best is None:
                weakest, by = 0.0, ""
                break
            if best.confidence <= weakest:
                weakest, by = best.confidence, best.label
        mentions.append(Mention(label, weakest, by))
    return mentions
