"""Learn a vocabulary from texts, and count the pieces per word of a vocabulary."""

import functools
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import PreTrainedTokenizerFast

from ..errors import BioclinError

KINDS = ("bpe", "wordpiece", "unigram")
ROBERTA = {"bos": "<s>", "pad": "<pad>", "eos": "</s>", "unk": "<unk>", "mask": "<mask>"}
BERT = {"pad": "[PAD]", "unk": "[UNK]", "bos": "[CLS]", "eos": "[SEP]", "mask": "[MASK]"}
BYTES = [f"<0x{i:02X}>" for i in range(256)]
MAX_PIECES = 512
# Number of characters with a WordPiece of their own. A word with any other character is unknown.
MAX_CHARACTERS = 1000
BATCH = 1000


def learn_vocabulary(
    texts: Iterable[str], *, size: int, kind: str, uncased: bool = False
) -> PreTrainedTokenizerFast:
    """Learn a vocabulary. All kinds keep the offsets of the text, and case and accents unless it is
    uncased.

    bpe is byte-level (Radford et al. 2019), so no character is unknown. wordpiece is that of BERT
    (Devlin et al. 2019): blanks and punctuation separate words, and a word with an unseen character
    is unknown. unigram (Kudo 2018) encodes unseen characters as bytes.

    The same texts give the same vocabulary with bpe and wordpiece. With unigram the library's
    trainer is not deterministic in the order and the scores of the rarest characters.

    texts (Iterable[str]): Texts to learn from.
    size (int): Largest number of pieces, including special pieces.
    kind (str): "bpe", "wordpiece" or "unigram".
    uncased (bool): Read all text in lower case and without accents, as the uncased BERT does; only
        with wordpiece.
    RETURNS (PreTrainedTokenizerFast): Tokenizer that adds <s> and </s> ([CLS] and [SEP] with
        wordpiece) around a text.
    RAISES (BioclinError): The kind is unknown or cannot be uncased, the texts have no words, or the
        size is too small for the special pieces and the alphabet.
    """
    if kind not in KINDS:
        raise BioclinError(f"kind = {kind!r}: it must be one of {', '.join(KINDS)}")
    if uncased and kind != "wordpiece":
        raise BioclinError(f"--uncased and kind = {kind!r}: only a wordpiece vocabulary is uncased")
    learners: dict[str, Callable[[Iterable[str], int], Tokenizer]] = {
        "bpe": _learn_bpe,
        "wordpiece": functools.partial(_learn_wordpiece, uncased=uncased),
        "unigram": _learn_unigram,
    }
    special = BERT if kind == "wordpiece" else ROBERTA
    tokenizer = learners[kind](texts, size)
    # As in RoBERTa, the mask includes the blank before it, which would be a piece of its own.
    mask = AddedToken(special["mask"], lstrip=kind != "wordpiece", special=True, normalized=False)
    tokenizer.add_special_tokens([*list(special.values())[:-1], mask])
    pair = [(special[name], tokenizer.token_to_id(special[name])) for name in ("eos", "bos")]
    if kind == "wordpiece":
        tokenizer.post_processor = processors.BertProcessing(*pair)
    else:
        tokenizer.post_processor = processors.RobertaProcessing(*pair, add_prefix_space=False)
    names = {"pad_token": "pad", "unk_token": "unk", "cls_token": "bos", "sep_token": "eos"}
    if kind != "wordpiece":
        names |= {"bos_token": "bos", "eos_token": "eos"}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=MAX_PIECES,
        mask_token=mask,
        **{key: special[name] for key, name in names.items()},
    )


def _learn_bpe(texts: Iterable[str], size: int) -> Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    _check_size(size, len(alphabet) + len(ROBERTA))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=2,
        special_tokens=list(ROBERTA.values()),
        initial_alphabet=alphabet,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    _check_learnt(tokenizer.get_vocab_size() - len(alphabet) - len(ROBERTA))
    return tokenizer


def _learn_wordpiece(texts: Iterable[str], size: int, *, uncased: bool) -> Tokenizer:
    """Learn WordPiece with the BPE trainer and a prefix, as the library's WordPiece trainer does.

    That one numbers the pieces of one character at random, which then decides ties. Here their
    order is fixed.
    """
    texts = list(texts)
    tokenizer = Tokenizer(models.BPE(continuing_subword_prefix="##"))
    tokenizer.normalizer = normalizers.BertNormalizer(strip_accents=uncased, lowercase=uncased)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    alphabet = _find_characters(texts, tokenizer)
    _check_size(size, len(alphabet) + len(BERT))
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=2,
        special_tokens=[*BERT.values(), *alphabet],
        initial_alphabet=[piece for piece in alphabet if len(piece) == 1],
        limit_alphabet=sum(len(piece) == 1 for piece in alphabet),
        continuing_subword_prefix="##",
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    vocabulary = tokenizer.get_vocab(with_added_tokens=False)
    _check_learnt(len(vocabulary) - len(alphabet) - len(BERT))
    # A new tokenizer, since the trainer made special pieces of the whole alphabet.
    learnt = Tokenizer(models.WordPiece(vocabulary, unk_token=BERT["unk"]))
    learnt.normalizer, learnt.pre_tokenizer = tokenizer.normalizer, tokenizer.pre_tokenizer
    learnt.decoder = decoders.WordPiece(prefix="##")
    return learnt


def _find_characters(texts: Iterable[str], tokenizer: Tokenizer) -> list[str]:
    """Find the most frequent characters as pieces, sorted.

    Each is a piece "a", and also "##a" unless the pre-tokenizer separates it from a word before it.
    """
    normalize, split = tokenizer.normalizer.normalize_str, tokenizer.pre_tokenizer.pre_tokenize_str
    words = Counter(itertools.chain.from_iterable(text.split() for text in texts))
    counts: Counter[str] = Counter()
    for word, n in words.items():
        for character in "".join(normalize(word).split()):
            counts[character] += n
    kept = sorted(counts, key=lambda character: (-counts[character], character))[:MAX_CHARACTERS]
    joined = [character for character in kept if len(split(normalize(f"a{character}"))) == 1]
    return [*sorted(kept), *sorted(f"##{character}" for character in joined)]


def _learn_unigram(texts: Iterable[str], size: int) -> Tokenizer:
    """Learn Unigram as in SentencePiece.

    A blank is part of the word after it, and 256 pieces represent the bytes of unseen characters.
    """
    texts = list(texts)
    characters = set(itertools.chain.from_iterable(texts))  # the trainer keeps them all
    _check_size(size, len(BYTES) + len(ROBERTA) + len(characters))
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    trainer = trainers.UnigramTrainer(
        vocab_size=size - len(BYTES),
        special_tokens=list(ROBERTA.values()),
        unk_token=ROBERTA["unk"],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    learnt = json.loads(tokenizer.to_str())["model"]["vocab"][len(ROBERTA) :]
    _check_learnt(len(learnt))
    rounded = [(piece, round(score, 6)) for piece, score in learnt]
    scored = sorted(rounded, key=lambda pair: (-pair[1], pair[0]))
    # Text that looks like the piece of a byte must not become that piece.
    worst = 2 * scored[-1][1]
    special = [(piece, 0.0) for piece in ROBERTA.values()]
    vocabulary = [*special, *((piece, worst) for piece in BYTES), *scored]
    unk = list(ROBERTA.values()).index(ROBERTA["unk"])
    tokenizer.model = models.Unigram(vocabulary, unk_id=unk, byte_fallback=True)
    tokenizer.decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="always")]
    )
    return tokenizer


def _check_size(size: int, smallest: int) -> None:
    if size <= smallest:
        raise BioclinError(f"vocab_size = {size}: it must be more than {smallest}")


def _check_learnt(n_pieces: int) -> None:
    if n_pieces < 1:
        raise BioclinError("The texts have no words to learn a vocabulary from")


class PieceCount(NamedTuple):
    """How a vocabulary splits some texts.

    per_word (float): Pieces per word (between blanks), special pieces not counted.
    unknown (float): Share of the pieces that are unknown.
    """

    per_word: float
    unknown: float


def pieces_per_word(tokenizer: PreTrainedTokenizerFast, texts: Iterable[str]) -> PieceCount:
    """Count the pieces per word of some texts.

    RAISES (BioclinError): The texts have no words.
    """
    n_words = n_pieces = n_unknown = 0
    rest = iter(texts)
    while batch := list(itertools.islice(rest, BATCH)):
        n_words += sum(len(text.split()) for text in batch)
        pieces = tokenizer(batch, add_special_tokens=False, verbose=False)["input_ids"]
        n_pieces += sum(map(len, pieces))
        n_unknown += sum(ids.count(tokenizer.unk_token_id) for ids in pieces)
    if not n_words:
        raise BioclinError("The texts have no words to count the pieces of")
    return PieceCount(n_pieces / n_words, n_unknown / max(n_pieces, 1))
