"""Token classification with the Trainer of the transformers library, as its run_ner script does it:
the other side of benchmarks/training/trainer_parity.py."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from spacy.tokens import Doc
from torch import nn
from torch.utils.data import SequentialSampler
from transformers import (
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

from spacy_bioclin.encoders.loading import quiet
from spacy_bioclin.encoders.network import find_special_pieces
from spacy_bioclin.encoders.pieces import align_tokens, split_into_pieces
from spacy_bioclin.ner.tags import MISSING, TagSet, encode_spans

# What the loss leaves out: pieces that are not the first of a word (run_ner's label_all_tokens is
# false), and [CLS] and [SEP].
NO_LABEL = -100
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
PARTS_PER_BATCH = 32  # of prediction


class Encoded(NamedTuple):
    """A part of a note as the model reads it.

    ids (list[int]): Pieces, special ones included.
    first (ndarray): For each token the place of its first piece in `ids`, -1 if it has none;
        (n_tokens,).
    """

    ids: list[int]
    first: np.ndarray


def untag_shared_pieces(doc: Doc, tokenizer: Any) -> bool:
    """Mark tokens without a piece of their own as not annotated, in place.

    RETURNS (bool): Whether none of them is in an entity; otherwise nothing is marked.
    """
    first = find_first_pieces(doc, tokenizer)
    seen: set[int] = {-1}
    shared = []
    for token, place in zip(doc, first.tolist(), strict=True):
        if place in seen:
            shared.append(token)
        seen.add(place)
    if any(token.ent_type for token in shared):
        return False
    missing = [doc[token.i : token.i + 1] for token in shared]
    doc.set_ents(list(doc.ents), missing=missing, default="outside")
    return True


def find_first_pieces(doc: Doc, tokenizer: Any) -> np.ndarray:
    """Find the index of each token's first piece, -1 if it has none; (n_tokens,)."""
    [pieces] = split_into_pieces(tokenizer, [doc.text])
    start = np.array([token.idx for token in doc])
    alignment = align_tokens(start, start + [len(token) for token in doc], pieces)
    return np.where(alignment.length > 0, alignment.first, -1)


class InOrder(Trainer):
    """Trains on the parts in the order in which they are given, as the other side does."""

    def _get_train_sampler(self, *args: Any) -> SequentialSampler:
        return SequentialSampler(self.train_dataset)


class TokenClassifier:
    """A checkpoint that is trained and then asked for scores.

    folder (Path): The encoder.
    tag_set (TagSet): "O" and the labels' tags, in this order.
    words (bool): Cut each word into pieces on its own, with a blank before it, as run_ner does;
        else the text, as ours does.
    bf16 (bool): Multiply in bfloat16.
    head (nn.Linear | None): To start from instead of random weights; without dropout, then.
    """

    def __init__(
        self,
        folder: Path,
        tag_set: TagSet,
        *,
        words: bool,
        bf16: bool,
        seed: int,
        head: nn.Linear | None,
    ):
        set_seed(seed)  # of the head's weights
        self.tag_set, self.words, self.bf16, self.seed = tag_set, words, bf16, seed
        more = {"add_prefix_space": True} if words else {}
        self.tokenizer = AutoTokenizer.from_pretrained(folder, **more, trust_remote_code=False)
        with quiet():  # the head is new, as it should be
            self.model = AutoModelForTokenClassification.from_pretrained(
                folder,
                num_labels=tag_set.n_tags,
                **(NO_DROPOUT if head else {}),
                trust_remote_code=False,
            )
        if head:
            self.model.classifier.load_state_dict(head.state_dict())

    def encode(self, doc: Doc) -> Encoded:
        first = np.full(len(doc), -1, dtype=np.int64)
        if self.words:
            encoded = self.tokenizer([token.text for token in doc], is_split_into_words=True)
            for place, word in enumerate(encoded.word_ids()):
                if word is not None and first[word] < 0:
                    first[word] = place
            return Encoded(encoded["input_ids"], first)
        [pieces] = split_into_pieces(self.tokenizer, [doc.text])
        special = find_special_pieces(self.tokenizer)
        places = find_first_pieces(doc, self.tokenizer)
        first[places >= 0] = places[places >= 0] + len(special.before)
        return Encoded([*special.before, *pieces.ids.tolist(), *special.after], first)

    def train(self, parts: Iterable[Doc], updates: int, settings: dict[str, Any]) -> None:
        """Take `updates` steps, each on the next parts.

        settings (dict): More of `TrainingArguments`.
        """
        examples = [self._example(doc) for doc in parts]
        arguments = TrainingArguments(
            max_steps=updates,
            seed=self.seed,
            bf16=self.bf16,
            use_cpu=True,
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
            **settings,
        )
        InOrder(
            model=self.model,
            args=arguments,
            train_dataset=examples,
            data_collator=DataCollatorForTokenClassification(self.tokenizer),
        ).train()

    def save(self, path: Path) -> None:
        """Write the weights."""
        torch.save(self.model.state_dict(), path)

    def load(self, path: Path) -> None:
        """Read the weights."""
        self.model.load_state_dict(torch.load(path, weights_only=True))

    def _example(self, doc: Doc) -> dict[str, list[int]]:
        encoded = self.encode(doc)
        spans = [(ent.start, ent.end, ent.label_) for ent in doc.ents]
        tags = encode_spans(spans, len(doc), self.tag_set)
        tags[[token.ent_iob == 0 for token in doc]] = MISSING  # not annotated
        labels = [NO_LABEL] * len(encoded.ids)
        for place, tag in zip(encoded.first.tolist(), tags.tolist(), strict=True):
            # Of two tokens that share their first piece ("), the second has no label.
            if place >= 0 and tag != MISSING and labels[place] == NO_LABEL:
                labels[place] = tag
        mask = [1] * len(encoded.ids)
        return {"input_ids": encoded.ids, "attention_mask": mask, "labels": labels}

    def predict(self, docs: list[Doc]) -> Iterator[np.ndarray]:
        """Score the tags of each Doc's tokens.

        YIELDS (ndarray): Unnormalised log scores, fp32, (n_tokens, n_tags). A token without pieces
            has "O".
        """
        self.model.eval()
        collate = DataCollatorForTokenClassification(self.tokenizer)
        for i in range(0, len(docs), PARTS_PER_BATCH):
            encoded = [self.encode(doc) for doc in docs[i : i + PARTS_PER_BATCH]]
            batch = collate(
                [{"input_ids": e.ids, "attention_mask": [1] * len(e.ids)} for e in encoded]
            )
            with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
                logits = self.model(**batch).logits.float().numpy()
            for row, part in zip(logits, encoded, strict=True):
                scores = row[np.maximum(part.first, 0)]
                outside = np.eye(self.tag_set.n_tags)[0]
                yield np.where(part.first[:, None] < 0, outside, scores).astype(np.float32)
