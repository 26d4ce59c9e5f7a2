"""What pairs of texts were annotated with, and whether there is something to learn."""

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence

from spacy.tokens import Doc
from spacy.training import Example

from ..annotations.pairs import SCORE, get_boundary, split_pair
from ..errors import BioclinError, BioclinWarning
from ..types import GOLD_KEY
from .loss import MISSING

CONVERT = "convert the corpus with `bioclin convert-table --second COLUMN`"


def get_class(doc: Doc, name: str) -> str | None:
    """Read the annotated class of a pair.

    name (str): Name of the component, for the error.
    RETURNS (str | None): None if the Doc is no pair, or was not annotated.
    RAISES (BioclinError): It has no class, or several.
    """
    if get_boundary(doc) is None or not doc.cats:
        return None
    found = [label for label, value in doc.cats.items() if label != SCORE and value > 0]
    if len(found) == 1:
        return found[0]
    if not found and SCORE in doc.cats:
        raise BioclinError(
            f"[components.{name}] document {_get_id(doc)} has a score and no class: set objective "
            'to "regression"'
        )
    shown = ", ".join(sorted(found)) or "none"
    raise BioclinError(
        f"[components.{name}] document {_get_id(doc)}: a pair has one class, but in doc.cats are "
        f"above 0: {shown}"
    )


def get_grade(doc: Doc, name: str) -> float | None:
    """Read the annotated score of a pair.

    name (str): Name of the component, for the error.
    RETURNS (float | None): None if the Doc is no pair, or was not annotated.
    RAISES (BioclinError): It has classes and no score, or a score that is no finite number.
    """
    if get_boundary(doc) is None or not doc.cats:
        return None
    grade = doc.cats.get(SCORE)
    if grade is None:
        raise BioclinError(
            f"[components.{name}] document {_get_id(doc)} has classes and no score: set objective "
            'to "classification"'
        )
    if not math.isfinite(grade):
        raise BioclinError(
            f"[components.{name}] document {_get_id(doc)}: the score is {grade}, want a number"
        )
    return float(grade)


def find_classes(examples: Iterable[Example], labels: Sequence[str], name: str) -> list[int]:
    """Find the class of each predicted Doc that is a pair, as an index of `labels`.

    RETURNS (list[int]): MISSING if the reference was not annotated.
    RAISES (BioclinError): The reference has a class that is not among the labels.
    """
    classes = []
    for eg in examples:
        if get_boundary(eg.predicted) is None:
            continue
        label = get_class(eg.reference, name)
        if label is not None and label not in labels:
            raise BioclinError(
                f"[components.{name}] document {_get_id(eg.reference)} has the class {label!r}, "
                f"which the training corpus lacked when the pipeline was initialized; it has "
                f"{', '.join(labels)}: correct the class, or initialize and train anew"
            )
        classes.append(MISSING if label is None else labels.index(label))
    return classes


def find_grades(examples: Iterable[Example], name: str) -> list[float | None]:
    """Find the score of each predicted Doc that is a pair; None if it was not annotated."""
    return [
        get_grade(eg.reference, name) for eg in examples if get_boundary(eg.predicted) is not None
    ]


def check_predicted(examples: Iterable[Example], name: str) -> None:
    """Check that both Docs of each Example are pairs, or neither.

    RAISES (BioclinError): The reference is a pair, and the predicted Doc is not.
    """
    for eg in examples:
        if get_boundary(eg.reference) is not None and get_boundary(eg.predicted) is None:
            raise BioclinError(
                f"[components.{name}] document {_get_id(eg.reference)}: the reference is a pair of "
                "texts, but the predicted Doc is not: read the corpus with "
                "spacy-bioclin.Corpus.v1, or make the predicted Doc with make_pair"
            )


def collect_classes(examples: Iterable[Example], name: str) -> Counter[str]:
    """Count the pairs of each class; 0 for one that is only in `doc.cats` with 0.

    RAISES (BioclinError): There is no pair, none is annotated, or one lacks a text.
    """
    counts: Counter[str] = Counter()
    for doc in _check_pairs(examples, name):
        label = get_class(doc, name)
        counts.update({other: 0 for other in doc.cats if other != SCORE})
        if label is not None:
            counts[label] += 1
    return counts


def collect_grades(examples: Iterable[Example], name: str) -> list[float]:
    """Collect the scores of pairs.

    RAISES (BioclinError): There is no pair, none is annotated, or one lacks a text.
    """
    grades = [get_grade(doc, name) for doc in _check_pairs(examples, name)]
    return [grade for grade in grades if grade is not None]


def choose_labels(counts: Counter[str], labels: Sequence[str] | None, name: str) -> list[str]:
    """Choose the classes to learn, and warn of those without a pair.

    counts (Counter[str]): See `collect_classes`.
    labels (Sequence[str] | None): Those that were given.
    RETURNS (list[str]): Sorted.
    RAISES (BioclinError): There are fewer than two, or pairs of other classes.
    """
    chosen = sorted(set(counts if labels is None else labels))
    found = sorted(label for label, n in counts.items() if n)
    if unknown := sorted(set(found) - set(chosen)):
        raise BioclinError(
            f"[initialize.components.{name}] labels lacks {', '.join(unknown)}, of which there are "
            "pairs in the training corpus: add it, or leave labels out"
        )
    if len(chosen) < 2 or not found:
        raise BioclinError(
            f"[components.{name}] cannot learn: it needs two classes or more, and the training "
            f"corpus has {', '.join(found) or 'none'}"
        )
    if SCORE in chosen:
        raise BioclinError(
            f'[components.{name}]: a class cannot have the name "{SCORE}", which is that of graded '
            'scores: rename it, or set objective to "regression"'
        )
    if unused := sorted(set(chosen) - set(found)):
        warnings.warn(
            f"[components.{name}] no pair of the training corpus has the class "
            f"{', '.join(unused)}: it will not be predicted",
            BioclinWarning,
            stacklevel=3,
        )
    return chosen


def _check_pairs(examples: Iterable[Example], name: str) -> Iterable[Doc]:
    """Check that there are annotated pairs. YIELDS (Doc): The reference of each pair."""
    n_pairs = n_annotated = 0
    for eg in examples:
        doc = eg.reference
        if get_boundary(doc) is None:
            continue
        n_pairs += 1
        n_annotated += bool(doc.cats)
        for which, text in zip(("first", "second"), split_pair(doc), strict=True):
            if not text.text.strip():
                raise BioclinError(
                    f"[components.{name}] document {_get_id(doc)}: the {which} text is empty; "
                    "correct the corpus"
                )
        yield doc
    if not n_pairs:
        raise BioclinError(
            f"[components.{name}] cannot learn: no training example is a pair of texts; {CONVERT}"
        )
    if not n_annotated:
        raise BioclinError(
            f"[components.{name}] cannot learn: no pair of the training corpus has doc.cats; "
            f"{CONVERT} and --label or --score"
        )


def _get_id(doc: Doc) -> str:
    return str(doc.user_data.get(GOLD_KEY, {}).get("id", "without id"))
