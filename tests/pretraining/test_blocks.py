"""Blocks of text and their masking."""

from pathlib import Path

import numpy as np
import pytest
from transformers import PreTrainedTokenizerFast

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.pretraining.blocks import MaskedBlocks, make_blocks, prepare_blocks
from spacy_bioclin.pretraining.large.order import split_by_share
from spacy_bioclin.pretraining.masking import (
    NO_LOSS,
    Masking,
    Vocabulary,
    describe_vocabulary,
    mask_pieces,
)
from spacy_bioclin.pretraining.text.corpus import read_documents

PLAIN = Masking(rate=0.2, whole_words=False, seed=0)
# Pieces: 0 pad, 1 begin, 2 end, 3 mask; 4 to 9 begin a word, 10 to 15 go on with it.
TOY = Vocabulary(
    mask_id=3,
    pad_id=0,
    is_special=np.arange(16) < 4,
    starts_word=np.arange(16) < 10,
)


def pieces_of(block: np.ndarray, tokenizer: PreTrainedTokenizerFast) -> str:
    return tokenizer.decode(block, skip_special_tokens=True)


def test_no_sentence_is_lost_and_documents_are_separated(
    corpus: Path, vocabulary: PreTrainedTokenizerFast
) -> None:
    path = corpus / "es.train.txt"
    blocks = list(make_blocks(read_documents(path), vocabulary, length=48))
    documents = list(read_documents(path))
    text = "".join(pieces_of(block, vocabulary) for block in blocks)
    assert "".join(text.split()) == "".join("".join(d) for d in documents).replace(" ", "")
    begins = sum(int((block == vocabulary.cls_token_id).sum()) for block in blocks)
    ends = sum(int((block == vocabulary.sep_token_id).sum()) for block in blocks)
    assert begins == ends
    # One for each document and one for each block that goes on with one.
    assert len(documents) <= begins <= len(documents) + len(blocks)


def test_a_block_holds_whole_sentences_where_they_fit(
    corpus: Path, vocabulary: PreTrainedTokenizerFast
) -> None:
    for block in make_blocks(read_documents(corpus / "en.train.txt"), vocabulary, length=64):
        assert block[0] == vocabulary.cls_token_id
        filled = block[block != vocabulary.pad_token_id]
        assert filled[-1] == vocabulary.sep_token_id
        assert pieces_of(block, vocabulary).rstrip().endswith(".")


def test_a_sentence_longer_than_a_block_is_cut_not_dropped(
    vocabulary: PreTrainedTokenizerFast,
) -> None:
    sentence = "amoxicilina " * 50
    blocks = list(make_blocks(iter([[sentence]]), vocabulary, length=16))
    text = "".join(pieces_of(block, vocabulary) for block in blocks)
    assert text.count("amoxicilina") == 50
    assert all((block != vocabulary.pad_token_id).all() for block in blocks[:-1])


def test_blocks_are_kept_until_the_text_changes(
    tmp_path: Path, vocabulary: PreTrainedTokenizerFast
) -> None:
    from tests.pretraining.fixtures import write_corpus

    corpus = write_corpus(tmp_path / "corpus")
    first = prepare_blocks(corpus, vocabulary, tmp_path / "blocks", length=32)
    assert set(first) == {(x, s) for x in ("en", "es") for s in ("train", "held-out")}
    made = (tmp_path / "blocks" / "es.train.bin").stat().st_mtime_ns
    prepare_blocks(corpus, vocabulary, tmp_path / "blocks", length=32)
    assert (tmp_path / "blocks" / "es.train.bin").stat().st_mtime_ns == made
    with (corpus / "es.train.txt").open("a") as file:
        file.write("Sin alergias conocidas.\n\n")
    again = prepare_blocks(corpus, vocabulary, tmp_path / "blocks", length=32)
    assert (tmp_path / "blocks" / "es.train.bin").stat().st_mtime_ns > made
    assert again["es", "train"].shape[1] == 32


def test_a_corpus_without_held_out_text_is_refused(
    tmp_path: Path, vocabulary: PreTrainedTokenizerFast
) -> None:
    (tmp_path / "es.train.txt").write_text("Una frase.\n\n")
    with pytest.raises(BioclinError, match=r"es\.held-out\.txt is missing"):
        prepare_blocks(tmp_path, vocabulary, tmp_path / "blocks", length=32)


def test_word_starts_are_known_for_each_kind_of_vocabulary(
    vocabulary: PreTrainedTokenizerFast,
) -> None:
    described = describe_vocabulary(vocabulary)
    ids = vocabulary(" amoxicilina 500", add_special_tokens=False)["input_ids"]
    words = np.cumsum(described.starts_word[ids])
    text = vocabulary.convert_ids_to_tokens(ids)
    assert words[-1] == 2, text
    assert described.is_special.sum() == 5


def test_masking_counts_and_kinds() -> None:
    rng = np.random.default_rng(0)
    ids = np.array([1, *[4, 10] * 500, 2, 0, 0])
    masked, labels = mask_pieces(ids, TOY, PLAIN, rng)
    chosen = labels != NO_LOSS
    assert chosen.sum() == 200
    assert (labels[chosen] == ids[chosen]).all()
    assert (masked[~chosen] == ids[~chosen]).all()
    assert not chosen[[0, -1, -2, -3]].any()
    kept = (masked[chosen] == ids[chosen]).mean()
    hidden = (masked[chosen] == TOY.mask_id).mean()
    assert 0.7 < hidden < 0.9
    assert 0.04 < kept < 0.2


def test_whole_words_are_masked_whole() -> None:
    rng = np.random.default_rng(0)
    ids = np.array([1, *[4, 10, 11] * 100, 2])
    _, labels = mask_pieces(ids, TOY, PLAIN._replace(whole_words=True), rng)
    chosen = (labels != NO_LOSS)[1:-1].reshape(100, 3)
    assert (chosen.all(axis=1) == chosen.any(axis=1)).all()
    assert chosen.any(axis=1).sum() == 20


def test_a_block_with_one_usable_piece_has_a_target() -> None:
    _, labels = mask_pieces(np.array([1, 5, 2]), TOY, PLAIN, np.random.default_rng(0))
    assert labels.tolist() == [NO_LOSS, 5, NO_LOSS]


def test_languages_have_their_shares_and_are_repeated_when_they_run_out() -> None:
    blocks = {"en": np.full((50, 4), 4), "es": np.full((10, 4), 5)}
    dataset = MaskedBlocks(blocks, {"en": 0.4, "es": 0.6}, 100, TOY, PLAIN)
    of_lang = dataset.order[:, 0]
    assert (len(dataset), int((of_lang == 0).sum())) == (100, 40)
    times = np.bincount(dataset.order[of_lang == 1, 1])
    assert times.tolist() == [6] * 10


def test_the_same_position_is_masked_in_the_same_way_and_each_pass_in_another() -> None:
    blocks = {"es": np.tile(np.arange(4, 16), (1, 4))}
    dataset = MaskedBlocks(blocks, {"es": 1.0}, 4, TOY, PLAIN)
    first, again, later = dataset[0], dataset[0], dataset[1]
    assert (first["labels"] == again["labels"]).all()
    assert (first["labels"] != later["labels"]).any()


def test_split_by_share() -> None:
    assert split_by_share(10, [1, 1]) == [5, 5]
    assert split_by_share(7, [3, 1]) == [5, 2]
    assert split_by_share(3, [1.0]) == [3]
