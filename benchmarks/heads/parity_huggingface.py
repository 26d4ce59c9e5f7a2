"""Classifiers of pairs and of candidates of relations, trained with the Trainer of the transformers
library: the other side of benchmarks/heads/parity.py."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    TrainingArguments,
    set_seed,
)

from benchmarks.training.trainer_huggingface import NO_DROPOUT, InOrder
from spacy_bioclin.encoders.loading import quiet

BATCH = 32  # of prediction


class Text(NamedTuple):
    """What is classified.

    text (str): A text with markers, or the first text of a pair.
    second (str | None): The second text of a pair.
    marks (tuple[int, int] | None): Offsets of the first signs of head and child.
    label (str): Its class.
    """

    text: str
    second: str | None
    marks: tuple[int, int] | None
    label: str


class MarkerClassifier(nn.Module):
    """Score the vectors of the pieces of both markers, one after the other: dropout and a linear
    layer, as Zhou and Chen (2022) and our component with its defaults for markers."""

    def __init__(self, folder: Path, n_labels: int, config: dict[str, Any]) -> None:
        super().__init__()
        self.encoder = AutoModel.from_pretrained(
            folder, add_pooling_layer=False, trust_remote_code=False, **config
        )
        width, rate = self.encoder.config.hidden_size, self.encoder.config.hidden_dropout_prob
        self.dropout, self.classifier = nn.Dropout(rate), nn.Linear(2 * width, n_labels)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        marks: Tensor,
        labels: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """Score texts, and compute the loss if there are labels."""
        vectors = self.encoder(input_ids=input_ids, attention_mask=attention_mask)[0]
        rows = torch.arange(len(vectors))
        both = torch.cat([vectors[rows, marks[:, 0]], vectors[rows, marks[:, 1]]], dim=1)
        logits = self.classifier(self.dropout(both))
        if labels is None:
            return {"logits": logits}
        return {"loss": nn.functional.cross_entropy(logits.float(), labels), "logits": logits}


class TextClassifier:
    """A checkpoint that is trained and then asked for classes.

    folder (Path): The encoder.
    labels (Sequence[str]): The classes.
    config (dict[str, Any]): Settings of the encoder that differ from its own.
    bf16 (bool): Multiply in bfloat16.
    head (nn.Module | None): To start from the weights of our head, without dropout.
    """

    def __init__(
        self,
        folder: Path,
        labels: Sequence[str],
        *,
        markers: bool,
        config: dict[str, Any],
        bf16: bool,
        seed: int,
        head: Any = None,
    ) -> None:
        set_seed(seed)  # of the head's weights
        self.labels, self.bf16, self.seed = list(labels), bf16, seed
        self.tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        config = {**config, **(NO_DROPOUT if head is not None else {})}
        self.model: Any
        with quiet():  # the head is new, as it should be
            if markers:
                self.model = MarkerClassifier(folder, len(labels), config)
            else:
                config |= {"num_labels": len(labels), "trust_remote_code": False}
                load = AutoModelForSequenceClassification.from_pretrained
                self.model = load(folder, **config)
        if head is None:
            return
        if markers:
            self.model.classifier.load_state_dict(head.layers[-1].state_dict())
        else:
            self.model.bert.pooler.dense.load_state_dict(head.dense.state_dict())
            self.model.classifier.load_state_dict(head.output.state_dict())

    def encode(self, text: Text) -> dict[str, Any]:
        """Cut a text into pieces, and find the class and the pieces of the markers."""
        encoded = self.tokenizer(text.text, text.second)
        features = {"encoded": dict(encoded), "label": self.labels.index(text.label)}
        if text.marks is not None:
            features["marks"] = [encoded.char_to_token(mark) for mark in text.marks]
        return features

    def collate(self, features: list[dict[str, Any]]) -> dict[str, Tensor]:
        """Join texts to a batch."""
        padded = self.tokenizer.pad([one["encoded"] for one in features], return_tensors="pt")
        batch = dict(padded)
        batch["labels"] = torch.tensor([one["label"] for one in features])
        if "marks" in features[0]:
            batch["marks"] = torch.tensor([one["marks"] for one in features])
            batch.pop("token_type_ids", None)
        return batch

    def train(self, texts: Iterable[Text], updates: int, settings: dict[str, Any]) -> list[float]:
        """Take `updates` steps, each on the next texts.

        settings (dict): More of `TrainingArguments`.
        RETURNS (list[float]): The loss of each step, rounded to 4 digits by the library.
        """
        arguments = TrainingArguments(
            max_steps=updates,
            seed=self.seed,
            bf16=self.bf16,
            use_cpu=True,
            save_strategy="no",
            logging_steps=1,
            report_to=[],
            disable_tqdm=True,
            remove_unused_columns=False,
            label_names=["labels"],
            log_level="error",
            **settings,
        )
        examples: Any = [self.encode(text) for text in texts]
        trainer = InOrder(
            model=self.model, args=arguments, train_dataset=examples, data_collator=self.collate
        )
        trainer.train()
        return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]

    def predict(self, texts: Sequence[Text]) -> list[str]:
        """Find the class of each text."""
        self.model.eval()
        found = []
        for i in range(0, len(texts), BATCH):
            batch = self.collate([self.encode(text) for text in texts[i : i + BATCH]])
            del batch["labels"]
            with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
                answer = self.model(**batch)
            logits = answer["logits"].float()
            found += [self.labels[row] for row in logits.argmax(dim=1).tolist()]
        return found
