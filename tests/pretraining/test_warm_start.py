"""New vocabularies and fewer layers for an old encoder."""

from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModel, AutoTokenizer, PreTrainedTokenizerFast

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.pretraining.vocabulary import learn_vocabulary
from spacy_bioclin.pretraining.warm_start import change_vocabulary, keep_lowest_layers, new_vectors
from tests.pretraining.fixtures import SENTENCES
from tests.util import make_encoder


@pytest.mark.parametrize(("model_type", "kind"), [("bert", "wordpiece"), ("roberta", "bytes")])
def test_layers_stay_and_pieces_start_from_the_old_ones(
    tmp_path: Path, vocabulary: PreTrainedTokenizerFast, model_type: str, kind: str
) -> None:
    folder = make_encoder(tmp_path / "old", model_type, kind)
    old_tokenizer = AutoTokenizer.from_pretrained(folder)
    old = AutoModel.from_pretrained(folder)
    model = change_vocabulary(str(folder), vocabulary, layers=1)

    encoder = model.base_model
    assert len(encoder.encoder.layer) == 1
    kept = encoder.encoder.layer[0].intermediate.dense.weight
    assert torch.equal(kept, old.encoder.layer[0].intermediate.dense.weight)

    vectors = model.get_input_embeddings().weight
    assert vectors.shape[0] == len(vocabulary) == model.config.vocab_size
    assert model.get_output_embeddings().weight is vectors
    word = max((p for p in vocabulary.get_vocab() if p[0] == "Ġ" and p[1:].isascii()), key=len)
    index = vocabulary.convert_tokens_to_ids(word)
    pieces = old_tokenizer(word[1:], add_special_tokens=False)["input_ids"]
    expected = old.get_input_embeddings().weight[pieces].mean(dim=0)
    assert torch.allclose(vectors[index], expected, atol=1e-6)
    assert torch.equal(
        vectors[vocabulary.cls_token_id],
        old.get_input_embeddings().weight[old_tokenizer.cls_token_id],
    )


def test_a_piece_inside_a_word_starts_from_the_old_one_inside_a_word(
    tiny_encoder: Path, vocabulary: PreTrainedTokenizerFast
) -> None:
    old = AutoTokenizer.from_pretrained(tiny_encoder)
    known = old.get_vocab()
    vectors = torch.eye(len(old))
    made = new_vectors(old, vocabulary, vectors)
    inside = [
        piece
        for piece in vocabulary.get_vocab()
        if piece.isascii() and piece.isalpha() and f"##{piece}" in known
    ]
    assert inside
    for piece in inside:
        row = made[vocabulary.convert_tokens_to_ids(piece)]
        assert row.argmax() == known[f"##{piece}"]
        assert row.max() == 1


def test_a_piece_inside_a_word_starts_from_those_of_sentencepiece_inside_a_word(
    vocabulary: PreTrainedTokenizerFast,
) -> None:
    # "▁" marks the start of a word, so "ión" is inside one; "sp" is none, "s" and "p" are.
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁a", "▁s", "s", "p", "ión", "▁ión"]
    backend = Tokenizer(models.Unigram([(piece, -1.0) for piece in pieces], unk_id=3))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    old = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>", pad_token="<pad>")
    new = learn_vocabulary(["ospo uspu aspa ispi", "tión ión dión ión"] * 9, size=285, kind="bpe")
    made = new_vectors(old, new, torch.eye(len(old)))

    def start_of(piece: str) -> dict[str, float]:
        text = piece.replace("ó", "Ã³")  # the bytes of a byte-level BPE
        row = made[new.convert_tokens_to_ids(text)]
        return {pieces[i]: float(row[i]) for i in row.nonzero().flatten()}

    assert start_of("ión") == {"ión": 1.0}
    assert start_of("Ġión") == {"▁ión": 1.0}
    assert start_of("s") == {"s": 1.0}
    assert start_of("sp") == {"s": 0.5, "p": 0.5}


def test_more_layers_than_there_are_is_an_error(tiny_encoder: Path) -> None:
    with pytest.raises(BioclinError, match="layers = 3: keep 1 to 2"):
        keep_lowest_layers(AutoModel.from_pretrained(tiny_encoder), 3)


def test_padding_must_stay_where_positions_are_counted_from(tmp_path: Path) -> None:
    folder = make_encoder(tmp_path / "old", "roberta", "bytes")
    texts = [sentence for sentences in SENTENCES.values() for sentence in sentences]
    wordpiece = learn_vocabulary(texts * 3, size=200, kind="wordpiece")
    with pytest.raises(BioclinError, match="piece 1, which is piece 0 of the new vocabulary"):
        change_vocabulary(str(folder), wordpiece)


def test_longformer_is_cut_with_its_windows(tmp_path: Path) -> None:
    folder = make_encoder(tmp_path / "long", "longformer", "bytes")
    encoder = AutoModel.from_pretrained(folder)
    keep_lowest_layers(encoder, 1)
    encoder.save_pretrained(folder)
    assert len(AutoModel.from_pretrained(folder).encoder.layer) == 1
