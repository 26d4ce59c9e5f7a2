"""Finding documents that hold text of test splits."""

from pathlib import Path

import numpy
import pytest

from spacy_bioclin.corpora.overlap.ngrams import is_overlap, ngram_hashes, word_hashes
from spacy_bioclin.corpora.overlap.splits import read_test_ngrams
from spacy_bioclin.errors import BioclinError


def words(n: int, prefix: str = "w") -> str:
    return " ".join(f"{prefix}{number}" for number in range(n))


def ngrams(text: str) -> numpy.ndarray:
    return ngram_hashes(word_hashes(text), 12)


def is_refused(text: str, test: str) -> bool:
    return is_overlap(ngrams(text), ngrams(test))


def test_ngrams_are_the_distinct_runs_of_words() -> None:
    assert len(ngrams(words(11))) == 0
    assert len(ngrams(words(12))) == 1
    assert len(ngrams(words(40))) == 29
    assert (
        len(ngrams(f"{words(20)} {words(20)}")) == 9 + 11
    )  # those over the seam, and once the rest
    assert set(ngrams(words(14))) < set(ngrams(words(15)))


def test_order_of_words_counts() -> None:
    backwards = " ".join(reversed(words(12).split()))
    assert not set(ngrams(words(12))) & set(ngrams(backwards))


def test_composed_and_decomposed_accents_are_the_same() -> None:
    assert (word_hashes("neumonía") == word_hashes("NEUMONI\u0301A")).all()


def test_tokenised_and_plain_text_are_the_same() -> None:
    plain = "Niveles de IL-2 (12,5 ng/mL) altos; sin fiebre, sin disnea: alta."
    tokens = "niveles de IL - 2 ( 12 , 5 ng / mL ) altos ; sin fiebre , sin disnea : alta ."
    assert (word_hashes(plain) == word_hashes(tokens)).all()


def test_refused_from_thirty_shared() -> None:
    """40 words are 29 12-grams, 41 are 30; of more than 1,000 they are no 15 %."""
    for n_shared, refused in ((40, False), (41, True)):
        text = f"{words(1000, 'own')} {words(n_shared)}"
        assert is_refused(text, words(2000)) is refused


def test_refused_from_fifteen_percent() -> None:
    own = numpy.arange(100, dtype="uint64")
    for n_shared, refused in ((14, False), (15, True)):
        assert is_overlap(own, numpy.arange(100 - n_shared, 300, dtype="uint64")) is refused


def test_a_short_document_shares_nothing() -> None:
    assert not is_refused(words(11), words(2000))
    assert not is_refused(words(50), "")


FILES = {
    "note.txt": "{text}",
    "tokens.tsv": "{lines}",
    "tokens.conll": "{tagged}",
    "pubmed.PubTator.txt": "123|t|{first}\n123|a|{second}\n123\t0\t3\tw0 w1\tDisease\tD000001\n",
    "note.xml": "<a><b>{first}</b> <c><![CDATA[{second}]]></c></a>",
    "attribute.xml": '<doc><sentence text="{text}"><entity text="w1"/></sentence></doc>',
}


def test_formats_of_test_splits(tmp_path: Path) -> None:
    text = words(60)
    for name, form in FILES.items():
        content = form.format(
            text=text,
            first=words(45),
            second=" ".join(text.split()[45:]),
            lines="".join(f"{word}\tB-X\n" for word in text.split()),
            tagged="-DOCSTART- O\n\n" + "".join(f"{word} 0 1 O\n" for word in text.split()),
        )
        (tmp_path / name).write_text(content, encoding="utf-8")
        test = read_test_ngrams([tmp_path])
        (tmp_path / name).unlink()
        shared = numpy.isin(ngrams(text), test)
        assert shared.sum() >= 34, name  # all 49, or all but those over a seam of two fields
        if "{first}" not in form or "CDATA" in form:
            assert shared.all(), name


def test_annotations_are_no_test_text(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text(words(12))
    (tmp_path / "note.ann").write_text(words(500, "ann"))
    assert len(read_test_ngrams([tmp_path])) == 1


def test_latin_1_is_read(tmp_path: Path) -> None:
    text = f"{words(11)} fiebre_ñ"
    (tmp_path / "old.txt").write_bytes(text.encode("latin-1"))
    assert (read_test_ngrams([tmp_path]) == ngrams(text)).all()


def test_no_test_split_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BioclinError, match=r"missing: no such file or folder"):
        read_test_ngrams([tmp_path / "missing"])
    with pytest.raises(BioclinError, match=r"no \.txt .*file in this folder"):
        read_test_ngrams([tmp_path])
    (tmp_path / "short.txt").write_text(words(11))
    with pytest.raises(BioclinError, match="no test split with 12 words"):
        read_test_ngrams([tmp_path])
    assert len(read_test_ngrams([])) == 0


def test_hashes_are_the_same_in_every_process() -> None:
    """Those of another process, where Python's own hash() of a string differs."""
    assert ngram_hashes(word_hashes("uno dos tres"), 2).tolist() == [
        4172659787023792052,
        7336770166660401958,
    ]
