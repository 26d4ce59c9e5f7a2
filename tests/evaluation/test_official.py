"""The official scripts: the figures that they printed, and their corner cases."""

import json
from pathlib import Path

import pytest

from spacy_bioclin.evaluation.official import (
    ScoredDoc,
    cantemist_coding,
    cantemist_ner,
    cantemist_norm,
    count_sentences,
    exact_ner,
    leak_score,
    meddocan,
    meddocan_spans_merged,
    meddocan_spans_strict,
    merge_spans,
    pharmaconer,
)
from spacy_bioclin.evaluation.spans import Counts

# -- the figures that the official scripts printed -----------------------------------------------


@pytest.fixture(scope="session")
def official(data_dir):
    folder = data_dir.parent / "official-scores"
    if not folder.is_dir():
        pytest.skip(f"no folder official-scores beside {data_dir}")
    return folder


@pytest.fixture(scope="session")
def expected(official):
    return json.loads((official / "expected.json").read_text(encoding="utf-8"))


def read_brat(path: Path, codes: bool = False):
    """T lines as (start, end, label), or with the code of their note in place of the label."""
    spans, notes = {}, {}
    for line in path.read_text(encoding="utf-8").splitlines():
        columns = line.split("\t")
        if line.startswith("T"):
            label, start, end = columns[1].split()
            spans[columns[0]] = int(start), int(end), label
        else:
            notes[columns[1].split()[1]] = columns[2].strip()
    if codes:
        return [(*spans[id][:2], notes[id]) for id in spans if id in notes]
    return list(spans.values())


def read_docs(gold: Path, system: Path, codes: bool = False):
    docs = []
    for path in sorted(system.glob("*.ann")):
        text = (gold / path.name).with_suffix(".txt").read_text(encoding="utf-8")
        docs.append(ScoredDoc(text, read_brat(gold / path.name, codes), read_brat(path, codes)))
    assert len(docs) == 40
    return docs


def rounded(scores, digits):
    return {key: round(value, digits) for key, value in scores.items()}


@pytest.mark.corpora
def test_meddocan_figures(data_dir, official, expected):
    docs = read_docs(data_dir / "meddocan/dev/brat", official / "meddocan/system")
    figures = meddocan(docs)
    assert {name: rounded(scores, 4) for name, scores in figures.items()} == {
        name: expected["meddocan"][name] for name in ("ner", "spans_strict", "spans_merged")
    }


@pytest.mark.corpora
def test_meddocan_sentences_are_the_lines_that_are_not_blank(data_dir, official):
    for line in (official / "meddocan/sentences.tsv").read_text(encoding="utf-8").splitlines():
        name, count = line.split("\t")
        text = (data_dir / f"meddocan/dev/brat/{name}.txt").read_text(encoding="utf-8")
        assert count_sentences(text) == int(count), name


@pytest.mark.corpora
def test_pharmaconer_figures(data_dir, official, expected):
    docs = read_docs(data_dir / "pharmaconer/dev/brat", official / "pharmaconer/system")
    assert rounded(pharmaconer(docs)["ner"], 4) == expected["pharmaconer"]["ner"]


@pytest.mark.corpora
def test_cantemist_figures(data_dir, official, expected):
    folders = data_dir / "cantemist/dev1/norm", official / "cantemist/system"
    for name, score in (("ner", cantemist_ner), ("norm", cantemist_norm)):
        docs = read_docs(*folders, codes=name == "norm")
        assert rounded(score(docs).prf(), 3) == expected["cantemist"][name]


@pytest.mark.corpora
def test_cantemist_coding_figure(data_dir, official, expected):
    def read(path):
        codes = {}
        for line in path.read_text(encoding="utf-8").splitlines()[1:]:
            name, code = line.split("\t")
            codes.setdefault(name, []).append(code)
        return codes

    valid = (data_dir / "cantemist/terminology/valid-codes.tsv").read_text(encoding="utf-8")
    score = cantemist_coding(
        read(official / "cantemist/gold-coding.tsv"),
        read(official / "cantemist/system-coding.tsv"),
        {line.split("\t")[0] for line in valid.splitlines()},
    )
    assert round(score, 3) == expected["cantemist"]["coding"]["map"]


# -- corner cases, worked by hand from the scripts -----------------------------------------------

TEXT = "Ana Ruiz, Lugo. Vive en Vigo"


def doc(reference, predicted, text=TEXT):
    def label(spans):
        return [(*span, "X") if len(span) == 2 else span for span in spans]

    return ScoredDoc(text, label(reference), label(predicted))


def test_ner_counts_sets():
    docs = [doc([(0, 3, "A"), (0, 3, "A"), (0, 3, "B")], [(0, 3, "A"), (0, 3, "C"), (0, 3, "C")])]
    assert exact_ner(docs) == Counts(1, 1, 1)
    assert meddocan_spans_strict(docs) == Counts(1, 0, 0)


def test_leak_is_missed_mentions_per_line():
    assert count_sentences("Uno\n\n  \nDos\r\n\tTres") == 3
    assert leak_score(Counts(5, 9, 3), 6) == 0.5
    assert leak_score(Counts(0, 0, 0), 0) == 0.0


MERGED = [
    ([(0, 3), (4, 8), (10, 14)], {(0, 14)}),  # blank and comma join; so do three in a row
    ([(10, 14), (24, 28)], {(10, 14), (24, 28)}),  # words between
    ([(0, 8), (4, 6)], {(0, 6)}),  # nested: the script shortens the first
    ([(0, 6), (4, 8)], {(0, 8)}),
    ([], set()),
]


def test_merge():
    found = [merge_spans(spans, TEXT) for spans, _ in MERGED]
    assert found == [merged for _, merged in MERGED]


def test_merged_spans():
    # Split by the system: nothing agrees strictly, the merged spans do.
    split = doc([(0, 8)], [(0, 3), (4, 8)])
    assert meddocan_spans_strict([split]) == Counts(0, 2, 1)
    assert meddocan_spans_merged([split]) == Counts(1, 0, 0)
    # One of two agrees strictly, and the merged span holds it: two true positives.
    both = doc([(0, 3), (4, 14)], [(0, 3), (4, 8), (10, 14)])
    assert meddocan_spans_merged([both]) == Counts(2, 0, 0)
    # Part of a longer gold span: not contained in anything that agrees.
    short = doc([(0, 8), (24, 28)], [(0, 3), (24, 28)])
    assert meddocan_spans_merged([short]) == Counts(1, 1, 1)
    # A wrong span inside an agreeing one is forgiven.
    inside = doc([(0, 14)], [(0, 14), (24, 28), (0, 14)])
    assert meddocan_spans_merged([inside]) == Counts(1, 1, 0)


def test_cantemist_counts_pairs_over_distinct_offsets():
    once = doc([(0, 3, "8000/6"), (4, 8, "8500/3")], [(0, 3, "8000/6"), (4, 8, "8000/3")])
    assert cantemist_ner([once]) == Counts(2, 0, 0)
    assert cantemist_norm([once]) == Counts(1, 1, 1)
    twice = doc([(0, 3, "8000/6")], [(0, 3, "8000/6"), (0, 3, "8500/3")])
    assert cantemist_norm([twice]) == Counts(1, 0, 0)  # one of the codes is right
    assert cantemist_ner([twice]).precision == 2.0  # as the script has it


def test_cantemist_coding_by_hand():
    valid = ["8000/1", "8000/3", "8000/6", "8070/3h"]
    reference = {"a": ["8000/6", "8070/3H"], "b": ["8000/3"], "c": ["8000/1"]}
    predicted = {
        # By name: 8000/1 wrong, 8000/6 right, 8070/3h right; repeats and 9999/9 do not count.
        "a": ["9999/9", "8070/3h", "8000/1", "8070/3H", "8000/6"],
        "b": ["8000/1"],  # 0
        "c": ["9999/9"],  # no valid code: not in the mean
        "z": ["8000/1"],  # not in the reference
    }
    average_precision = (1 / 2 + 2 / 3) / 2
    assert cantemist_coding(reference, predicted, valid) == pytest.approx(average_precision / 2)
    assert cantemist_coding({}, {}, valid) == 0.0
