"""Set the calibration and the thresholds of a de-identification pipeline on gold Docs."""

from collections import Counter
from collections.abc import Container
from operator import attrgetter
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc

from ..evaluation.spans import reference_spans
from ..spans import annotated_labels
from ..types import CharSpan
from .calibration import (
    BALANCED,
    HIGH_RECALL,
    Candidate,
    Mention,
    choose_best_f,
    choose_thresholds,
    expected_calibration_error,
    fit_calibration,
    recall_by_label,
)
from .labels import map_label, scheme_labels
from .pipeline import find_deid, list_detectors
from .spans import DOUBTFUL, PhiSpan

# Least probability of the spans that are added to those of the best tags, for high recall.
DOUBTFUL_FROM = 0.002
TARGET_RECALL = 0.99  # of every label, if the user names none
NOTHING = PhiSpan(0, 0, "", 0.0, "")
_confidence = attrgetter("confidence")


def calibrate(
    nlp: Language, docs: list[Doc], target_recall: float, *, operating_point: str
) -> dict[str, Any]:
    """Set the calibration and the thresholds of a pipeline's `bioclin_deid`.

    docs (list[Doc]): Gold Docs with the layer `spans_key`.
    target_recall (float): Of every label at the operating point "high_recall"; at "balanced", the
        thresholds are those of the best F1 of what is hidden.
    operating_point (str): The one that applies from now on.
    RETURNS (dict): Thresholds and recall by label for each operating point, and the calibration
        error.
    """
    deid = find_deid(nlp)
    deid.set_up(scheme=deid.policy.scheme, operating_point=None)
    for name, factory in nlp.pipe_factories.items():
        component: Any = nlp.get_pipe(name)
        if factory == "bioclin_ner" and component.spans_key == deid.spans_key:
            component.cfg["threshold"] = 0.0  # those of `deid` take over
            component.cfg["doubtful_from"] = DOUBTFUL_FROM
    pairs = judge(nlp, docs)
    candidates = [c for _, found in pairs for c in found if c.annotated]
    deid.calibration = fit_calibration(candidates)
    calibrated: list[Candidate] = []
    mentions: dict[str, list[Mention]] = {BALANCED: [], HIGH_RECALL: []}
    for gold, found in pairs:
        changed = [c._replace(span=deid.calibrate_span(c.span)) for c in found]
        certain = [c for c in changed if c.span.detector != DOUBTFUL]
        calibrated += [c for c in certain if c.annotated]
        mentions[BALANCED] += weigh_mentions(gold, certain)
        mentions[HIGH_RECALL] += weigh_mentions(gold, changed)
    best = choose_best_f(calibrated, mentions[BALANCED])
    deid.operating_points = {
        BALANCED: dict.fromkeys(scheme_labels(deid.policy.scheme), best),
        HIGH_RECALL: choose_thresholds(mentions[HIGH_RECALL], target_recall),
    }
    deid.operating_point = operating_point
    deid.detectors = list_detectors(nlp)
    nlp.get_pipe_config(deid.name)["operating_point"] = operating_point
    n_gold = Counter(mention.label for mention in mentions[BALANCED])
    recall = {
        name: recall_by_label(found, deid.operating_points[name])
        for name, found in mentions.items()
    }
    return {
        "target_recall": target_recall,
        "operating_point": operating_point,
        "n_docs": len(docs),
        "calibration_error": {
            "before": _error([c for c in candidates if c.span.detector != DOUBTFUL]),
            "after": _error(calibrated),
        },
        "labels": {
            label: {"n_gold": n_gold[label]}
            | {
                name: {
                    "recall": round(recall[name][label], 4),
                    "threshold": round(thresholds.get(label, 0.0), 6),
                }
                for name, thresholds in deid.operating_points.items()
            }
            for label in sorted(n_gold)
        },
    }


def _error(candidates: list[Candidate]) -> float:
    confidence = [candidate.span.confidence for candidate in candidates]
    correct = [candidate.correct for candidate in candidates]
    return round(expected_calibration_error(confidence, correct), 5)


def judge(nlp: Language, docs: list[Doc]) -> list[tuple[list[CharSpan], list[Candidate]]]:
    """Run the detectors on gold Docs and compare.

    RETURNS (list): For each Doc its gold spans and the detectors' spans.
    """
    deid = find_deid(nlp)
    scheme = deid.policy.scheme
    pairs = []
    with nlp.select_pipes(disable=[deid.name]):
        for doc, reference in nlp.pipe(((doc.text, doc) for doc in docs), as_tuples=True):
            gold = [
                (start, end, map_label(label, scheme))
                for start, end, label in sorted(reference_spans(reference, deid.spans_key) or ())
            ]
            phi = {i for start, end, _ in gold for i in range(start, end)}
            labels = annotated_labels(reference, deid.spans_key)
            wanted = None if labels is None else {map_label(label, scheme) for label in labels}
            found, _ = deid.find_candidates(doc)
            candidates = [
                Candidate(s, _is_mostly(s, phi), wanted is None or s.label in wanted) for s in found
            ]
            pairs.append((gold, candidates))
    return pairs


def _is_mostly(span: PhiSpan, phi: Container[int]) -> bool:
    """Check whether most of a span is PHI."""
    return 2 * sum(i in phi for i in range(span.start, span.end)) > span.end - span.start


def weigh_mentions(gold: list[CharSpan], found: list[Candidate]) -> list[Mention]:
    """Compute with which confidence each gold mention is covered; see `Mention`."""
    mentions = []
    for start, end, label in gold:
        near = [c.span for c in found if c.span.start < end and start < c.span.end]
        best = [
            max((s for s in near if s.start <= i < s.end), key=_confidence, default=NOTHING)
            for i in reversed(range(start, end))
        ]
        weakest = min(best, key=_confidence)
        mentions.append(Mention(label, weakest.confidence, weakest.label))
    return mentions
