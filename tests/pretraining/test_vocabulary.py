"""Vocabularies: what they keep, where their pieces stand, and the languages' shares."""

import pytest
from transformers import AutoTokenizer
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.pretraining.text.corpus import find_files, read_in_shares
from spacy_bioclin.pretraining.vocabulary import KINDS, learn_vocabulary, pieces_per_word
from tests.util import TEXTS

SIZE = 420
# Blanks of several kinds, composed and combining accents, characters never seen in TEXTS.
HARD = "  neumonía\tbilateral,\r\n\r\nniño  con cefale\u0301a; 37,5 °C y µg ≥ 5.\u00a0日本 😀 fin "


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def tokenizer(kind, tmp_path_factory):
    """As it comes back from the folder that it is saved in."""
    folder = tmp_path_factory.mktemp(kind)
    learn_vocabulary(TEXTS * 3, size=SIZE, kind=kind).save_pretrained(folder)
    names = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}
    assert {path.name for path in folder.iterdir()} == names
    return AutoTokenizer.from_pretrained(folder)


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "es.train.txt").write_text("uno dos tres\ncuatro\n\ncinco\n", encoding="utf-8")
    (tmp_path / "en.train.txt").write_text("one two three four\n" * 5, encoding="utf-8")
    return tmp_path


def test_offsets_are_those_of_the_untouched_text(tokenizer):
    encoding = tokenizer(HARD, return_offsets_mapping=True, add_special_tokens=False)
    offsets = encoding["offset_mapping"]
    assert offsets == sorted(offsets)
    covered = {i for start, end in offsets for i in range(start, end)}
    assert {i for i, character in enumerate(HARD) if not character.isspace()} <= covered
    for piece, (start, end) in zip(encoding.tokens(), offsets, strict=True):
        assert HARD[start:end].strip() == HARD[start:end] or HARD[start:end].isspace()
        plain = piece.lstrip("Ġ▁").removeprefix("##")
        if plain.isascii() and plain.isalnum():
            assert HARD[start:end] == plain


def test_bytes_leave_nothing_unknown_and_case_and_accents_stay(tokenizer, kind):
    ids = tokenizer(HARD, add_special_tokens=False)["input_ids"]
    assert (tokenizer.unk_token_id in ids) == (kind == "wordpiece")
    decoded = tokenizer.decode(ids, clean_up_tokenization_spaces=False)
    assert "neumonía" in decoded
    if kind != "wordpiece":
        want = HARD if kind == "bpe" else " ".join(HARD.split())
        assert decoded == want
    assert tokenizer.tokenize("Hospital") != tokenizer.tokenize("hospital")
    assert tokenizer.tokenize("años") != tokenizer.tokenize("anos")


def test_special_pieces(tokenizer, kind):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    if kind != "wordpiece":
        special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    assert tokenizer.convert_ids_to_tokens(range(5)) == special
    assert set(tokenizer.all_special_tokens) == set(special)
    assert len(tokenizer) == tokenizer.vocab_size <= SIZE
    first, last = tokenizer.cls_token, tokenizer.sep_token
    pieces = tokenizer.convert_ids_to_tokens(tokenizer("de", "de")["input_ids"])
    middle = [last] if kind == "wordpiece" else [last, last]
    assert [piece for piece in pieces if piece in special] == [first, *middle, last]
    # The blank before the mask is no piece of its own.
    texts = ["de", tokenizer.mask_token, " de", f"de {tokenizer.mask_token} de"]
    before, mask, after, whole = tokenizer(texts, add_special_tokens=False)["input_ids"]
    assert whole == [*before, *mask, *after]


@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
def test_equal_texts_give_equal_pieces(kind):
    # Nearly all counts are ties here, and the library's hashes differ in every call.
    learnt = [learn_vocabulary(TEXTS * 3, size=SIZE, kind=kind) for _ in range(4)]
    first, *others = [tokenizer.backend_tokenizer.to_str() for tokenizer in learnt]
    assert others == [first] * 3


def test_bad_input():
    for kind in KINDS:
        for texts, size, word in ((["  ", ""], SIZE, "no words"), (TEXTS, 50, "vocab_size = 50")):
            with pytest.raises(BioclinError, match=word):
                learn_vocabulary(texts, size=size, kind=kind)
    with pytest.raises(BioclinError, match="vocab_size = 270"):  # pieces hold the alphabet
        learn_vocabulary(TEXTS, size=270, kind="unigram")
    with pytest.raises(BioclinError, match=r"'sentencepiece'.*bpe, wordpiece, unigram"):
        learn_vocabulary(TEXTS, size=SIZE, kind="sentencepiece")


def test_pieces_per_word_by_hand():
    tokenizer = learn_vocabulary(["ab ab ab", "ab"] * 3, size=20, kind="wordpiece")
    assert tokenizer.tokenize("ab abab zz,") == ["ab", "ab", "##a", "##b", "[UNK]", "[UNK]"]
    # Seven pieces of four words, two of them unknown; more texts than a batch count the same.
    texts = ["ab abab zz,", "", "ab"]
    for factor in (1, 900):
        count = pieces_per_word(tokenizer, iter(texts * factor))
        assert (count.per_word, count.unknown) == (7 / 4, 2 / 7)
    with pytest.raises(BioclinError, match="no words"):
        pieces_per_word(tokenizer, ["", " "])


def test_each_language_gets_its_share(corpus):
    files = find_files(corpus, "train")
    assert list(files) == ["en", "es"]
    # Equal shares: 20 English words once, the five Spanish words four times.
    spanish = ["uno dos tres", "cuatro", "cinco"]
    english = ["one two three four"] * 5
    assert list(read_in_shares(files, {})) == [*english, *spanish * 4]
    # A quarter of the words: 20 / 3 = 6.7, up to the end of the sentence.
    quarter = list(read_in_shares(files, {"es": 1, "en": 3}))
    assert quarter == [*english, *spanish, "uno dos tres"]
    # All of the Spanish is read even if its share is small: the English is repeated.
    assert list(read_in_shares(files, {"es": 0.1, "en": 0.9}))[-3:] == spanish


def test_shares_name_every_language(corpus):
    for shares in ({"es": 1}, {"es": 1, "en": 0}, {"es": 1, "en": 1, "fr": 1}):
        with pytest.raises(BioclinError, match=r"\['en', 'es'\]"):
            list(read_in_shares(find_files(corpus, "train"), shares))


@pytest.fixture
def sources(tmp_path):
    """Two Spanish sources of 2 and 6 words, and an English one of 4."""
    for name, text in (
        ("notes.es", "uno dos\n"),
        ("wiki.es", "tres cuatro cinco\n\nseis siete ocho\n"),
        ("wiki.en", "one two three four\n"),
    ):
        (tmp_path / f"{name}.train.txt").write_text(text, encoding="utf-8")
    return find_files(tmp_path, "train")


def count_words(files, shares, **settings):
    words = {word: part for part, path in files.items() for word in path.read_text().split()}
    read = [word for text in read_in_shares(files, shares, **settings) for word in text.split()]
    return {part: sum(words[word] == part for word in read) for part in files}


def test_sources_divide_the_share_of_their_language(sources):
    for shares, (notes, english, spanish) in (
        # Languages have equal shares: 8 words each. Sources of a language are as their text is.
        ({}, (2, 8, 6)),
        ({"es": 2, "en": 1}, (2, 4, 6)),
        # Each source with its own share: as many as let all 6 of the largest be read once.
        ({"notes.es": 1, "wiki.es": 1, "wiki.en": 2}, (6, 12, 6)),
    ):
        found = count_words(sources, shares)
        assert found == {"notes.es": notes, "wiki.en": english, "wiki.es": spanish}


def test_balance_repeats_small_sources_to_the_size_of_the_largest(sources):
    # The four English words come in one sentence, so that they are read up to its end: 8 for 6.
    counts = {"notes.es": 6, "wiki.en": 8, "wiki.es": 6}
    assert count_words(sources, {}, balance=True) == counts


def test_sources_and_languages_are_named_in_the_message(sources):
    with pytest.raises(BioclinError, match=r"\['en', 'es'\], or each of its parts, \['notes.es'"):
        list(read_in_shares(sources, {"wiki.es": 1, "en": 1}))


def test_uncased_wordpiece_reads_as_berts():
    tokenizer = learn_vocabulary(TEXTS * 3, size=SIZE, kind="wordpiece", uncased=True)
    assert tokenizer.tokenize("NEUMONÍA Niño") == tokenizer.tokenize("neumonia nino")
    text = "Año, HOSPITAL"
    offsets = tokenizer(text, return_offsets_mapping=True, add_special_tokens=False)
    assert text[slice(*offsets["offset_mapping"][0])][0] == "A"
    assert offsets["offset_mapping"][-1][1] == len(text)
    assert not any(piece != piece.lower() for piece in tokenizer.get_vocab() if piece[0] != "[")
    with pytest.raises(BioclinError, match="only a wordpiece vocabulary is uncased"):
        learn_vocabulary(TEXTS, size=SIZE, kind="bpe", uncased=True)


def test_command_with_a_recipe(corpus, tmp_path):
    out = tmp_path / "tokenizer"
    command = ["learn-vocabulary", str(corpus), "-o", str(out), "--recipe", "oubiobert"]
    done = CliRunner().invoke(app, [*command, "--size", "60"])
    assert done.exit_code == 0, done.output
    assert "wordpiece, uncased" in done.output
    assert AutoTokenizer.from_pretrained(out).tokenize("UNO") == ["uno"]


def test_empty_file(corpus):
    (corpus / "fr.train.txt").write_text("\n\n", encoding="utf-8")
    with pytest.raises(BioclinError, match=r"fr\.train\.txt"):
        list(read_in_shares(find_files(corpus, "train"), {}))


def test_command(corpus, tmp_path):
    (corpus / "es.held-out.txt").write_text("uno dos\n", encoding="utf-8")
    run = CliRunner().invoke
    out = tmp_path / "tokenizer"
    command = ["learn-vocabulary", str(corpus), "-o", str(out), "--kind", "bpe", "--size", "300"]
    done = run(app, [*command, "--share", "es=0.5", "--share", "en=0.5"])
    assert done.exit_code == 0, done.output
    assert "es, held out: " in done.output
    assert AutoTokenizer.from_pretrained(out).tokenize("uno") == ["uno"]
    assert run(app, [*command, "--share", "es"]).exit_code == 1
    assert run(app, ["learn-vocabulary", str(tmp_path / "none"), "-o", str(out)]).exit_code == 1
