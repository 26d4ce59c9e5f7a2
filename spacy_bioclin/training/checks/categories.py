"""Check that corpora have the labels of texts that spaCy's text classifiers learn from.

spaCy ignores a label of dev that train lacks, learns from texts without labels that they have none,
and describes other mistakes without the corpus or the label.
"""

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from spacy.tokens import Doc
from spacy.vocab import Vocab

from ...corpora.docbin import read_docs
from ...corpora.overlap.lists import read_id_list
from ...errors import BioclinError, BioclinWarning
from ...types import GOLD_KEY

EXCLUSIVE, SEVERAL = "textcat", "textcat_multilabel"  # factories


class Labels(NamedTuple):
    """What the texts of a corpus have in `doc.cats`.

    where (str): The corpus, for messages.
    n_docs (int): Number of texts.
    n_without (int): Texts without `doc.cats`.
    n_positive (dict[str, int]): Label -> number of texts that have it; 0 for some labels.
    n_not_one (int): Texts with `doc.cats` that have no label or several.
    graded (str): A key with another value than 0 and 1; "" for none.
    """

    where: str
    n_docs: int
    n_without: int
    n_positive: dict[str, int]
    n_not_one: int
    graded: str


def check_categories(config: Mapping[str, Any]) -> None:
    """Check the corpora of a config for its `textcat` and `textcat_multilabel`.

    Corpora of other readers than those with a path are not checked, nor are sourced components.

    config (Mapping[str, Any]): The whole config, interpolated.
    RAISES (BioclinError): A component cannot learn from its corpus, or dev has a label that train
        lacks. What only makes it worse is a warning.
    """
    training = config.get("training", {})
    for name in config.get("nlp", {}).get("pipeline", ()):
        component = config.get("components", {}).get(name, {})
        if component.get("factory") not in (EXCLUSIVE, SEVERAL):
            continue
        if name in training.get("frozen_components", ()):
            continue
        exclusive = component["factory"] == EXCLUSIVE
        where = f"[components.{name}]"
        if component.get("model", {}).get("exclusive_classes", exclusive) != exclusive:
            raise BioclinError(
                f"{where}: factory is {component['factory']!r}, but exclusive_classes of its model "
                f"is {str(not exclusive).lower()}: {EXCLUSIVE} wants true, {SEVERAL} wants false"
            )
        train = _read_labels(config, training.get("train_corpus", "corpora.train"), name)
        dev = _read_labels(config, training.get("dev_corpus", "corpora.dev"), name)
        if train is not None:
            _check_train(where, train, exclusive)
        for corpus in (train, dev):
            if corpus is not None:
                _check_values(where, corpus, exclusive)
        if train is not None and dev is not None:
            _check_dev(where, train, dev)
        if train is not None:
            _warn_of_empty(where, train, dev)


def _check_train(where: str, train: Labels, exclusive: bool) -> None:
    if not train.n_positive:
        raise BioclinError(
            f"{where} learns from doc.cats, which no document of {train.where} has: make the "
            "corpus with `bioclin convert-table`, or take the component out of the pipeline"
        )
    if exclusive and train.n_without:
        raise BioclinError(
            f"{where}: {train.n_without:,} of {train.n_docs:,} documents of {train.where} have no "
            f"doc.cats, and {EXCLUSIVE} would learn that they have no label: leave them out, or "
            f"use {SEVERAL}"
        )
    if exclusive and len(train.n_positive) < 2:
        raise BioclinError(
            f"{where}: {train.where} has only the label {next(iter(train.n_positive))!r}, but "
            f"{EXCLUSIVE} chooses between two or more: use {SEVERAL} for a single label"
        )


def _check_values(where: str, corpus: Labels, exclusive: bool) -> None:
    if corpus.graded:
        raise BioclinError(
            f"{where}: {corpus.where} has other values than 0 and 1 for {corpus.graded!r} in "
            "doc.cats: a text classifier learns labels, not graded scores"
        )
    if exclusive and corpus.n_not_one:
        raise BioclinError(
            f"{where}: {corpus.n_not_one:,} of {corpus.n_docs:,} documents of {corpus.where} have "
            f"no label or several, but {EXCLUSIVE} learns exactly one: use {SEVERAL}"
        )


def _check_dev(where: str, train: Labels, dev: Labels) -> None:
    if not dev.n_positive:
        raise BioclinError(
            f"{where} is evaluated on doc.cats, which no document of {dev.where} has: make the "
            "corpus with `bioclin convert-table`"
        )
    missing = [label for label, n in dev.n_positive.items() if n and label not in train.n_positive]
    if missing:
        raise BioclinError(
            f"{where}: {dev.where} has {_show(missing)}, which {train.where} lacks, so it would "
            "neither be learned nor scored: convert both with the same `--labels`, or correct the "
            "label"
        )


def _warn_of_empty(where: str, train: Labels, dev: Labels | None) -> None:
    empty = [label for label, n in train.n_positive.items() if not n]
    if empty:
        found = sum(dev.n_positive.get(label, 0) for label in empty) if dev else 0
        seen = f" ({found:,} of {dev.where} have)" if dev and found else ""
        warnings.warn(
            f"{where}: no document of {train.where} has {_show(empty)}{seen}: it cannot be "
            "learned; add documents that have it, or convert without it",
            BioclinWarning,
            stacklevel=3,
        )


def _show(labels: list[str]) -> str:
    more = f" (and {len(labels) - 1} other labels)" if len(labels) > 1 else ""
    return f"the label {min(labels)!r}{more}"


def _read_labels(config: Mapping[str, Any], corpus: str, component: str) -> Labels | None:
    """Read the labels of a corpus for a component; None if its files are not known or not there."""
    section: Any = config
    for key in corpus.split("."):
        section = section.get(key, {}) if isinstance(section, Mapping) else {}
    paths = list(_find_paths(section, component))
    if not paths:
        return None
    left_out = frozenset[str]()
    if section.get("leave_out"):
        left_out = read_id_list(Path(section["leave_out"]))
    n_docs = n_without = n_not_one = 0
    graded = ""
    n_positive: Counter[str] = Counter()
    vocab = Vocab()
    for doc in (doc for path in paths for doc in read_docs(path, vocab)):
        if _find_id(doc) in left_out:
            continue
        n_docs += 1
        n_without += not doc.cats
        graded = graded or next((key for key, v in doc.cats.items() if v not in (0, 1)), "")
        n_positive.update({label: int(value == 1) for label, value in doc.cats.items()})
        n_not_one += bool(doc.cats) and sum(value == 1 for value in doc.cats.values()) != 1
    where = f"the {corpus.rpartition('.')[2]} corpus {', '.join(map(str, paths))}"
    return Labels(where, n_docs, n_without, dict(n_positive), n_not_one, graded)


def _find_paths(section: Mapping[str, Any], component: str) -> Iterator[Path]:
    """Find the files that a component learns from; the corpora of tasks say which do."""
    for one in section.get("tasks", {"": section}).values():
        heads, path = one.get("heads"), one.get("path")
        learns = heads is None or component in heads
        if learns and isinstance(path, str | Path) and Path(path).exists():
            yield Path(path)


def _find_id(doc: Doc) -> str:
    return str(doc.user_data.get(GOLD_KEY, {}).get("id", ""))
