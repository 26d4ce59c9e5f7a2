"""Without dropout, our updates are those of the transformers library's Trainer."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import load_config
from torch.utils.data import SequentialSampler

from spacy_bioclin.catalog.recipes import apply_recipe, apply_settings, find_recipe, set_learn_rate
from spacy_bioclin.encoders.network import find_special_pieces
from spacy_bioclin.encoders.pieces import align_tokens, split_into_pieces

ROOT = Path(__file__).parents[2]
TEXTS = [
    ("Paciente con neumonía. Se inicia amoxicilina.", [(13, 21), (33, 44)]),
    ("Se inicia metformina.", [(10, 20)]),
    ("Niega fiebre y dolor. Alta el 3 de mayo.", [(6, 12), (15, 20)]),
    ("Dr. Pérez, Hospital General.", []),
]
UPDATES, RATE = 6, 1e-3
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def make_pipeline(encoder: Path, clip: float) -> tuple[Language, Any, list[Example]]:
    """Ours by the recipe, untrained, with its optimizer and one batch."""
    config = load_config(ROOT / "configs" / "ner.cfg", interpolate=False)
    apply_recipe(config, find_recipe("carrino-2022"))
    changes = {
        "paths.encoder": str(encoder),
        "components.transformer.model.transformer_config": NO_DROPOUT,
        "components.transformer.model.precision": "fp32",
        "components.transformer.model.window": 64,
        "components.transformer.model.stride": 64,
        "components.ner.model.dropout": 0.0,
        "training.max_steps": UPDATES,
        "training.optimizer.grad_clip": clip,
    }
    apply_settings(config, changes)
    set_learn_rate(config, RATE)
    optimizer = {"optimizer": config.interpolate()["training"]["optimizer"]}
    nlp = spacy.util.load_model_from_config(config, auto_fill=True)
    examples = []
    for text, spans in TEXTS:
        doc: Doc = nlp.make_doc(text)
        doc.set_ents([doc.char_span(*span, label="FINDING") for span in spans])
        examples.append(Example(nlp.make_doc(text), doc))
    torch.manual_seed(0)
    sgd = spacy.registry.resolve(optimizer)["optimizer"]
    nlp.initialize(lambda: examples, sgd=sgd)
    return nlp, sgd, examples


def our_scores(nlp: Language) -> np.ndarray:
    """RETURNS (ndarray): Scores of the tags of all tokens, (n_tokens, n_tags)."""
    with nlp.select_pipes(enable=["sentences", "transformer"]):
        docs = list(nlp.pipe(text for text, _ in TEXTS))
    return nlp.get_pipe("ner").model.predict(docs).emissions[:, 0].numpy()


class InOrder:
    """Mixed into Trainer: batches as they come."""

    def _get_train_sampler(self, *args: Any) -> SequentialSampler:
        return SequentialSampler(self.train_dataset)  # type: ignore[attr-defined]


@pytest.fixture
def fresh_accelerate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainer computes in the format of an earlier Trainer of the process, whatever its arguments:
    the library keeps that in a global and in the environment."""
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "no")


def trainer_scores(encoder: Path, nlp: Language, clip: float, out: Path) -> np.ndarray:
    """Fine-tune AutoModelForTokenClassification from the same weights, head included.

    RETURNS (ndarray): As `our_scores`.
    """
    from transformers import (
        AutoModelForTokenClassification,
        AutoTokenizer,
        DataCollatorForTokenClassification,
        Trainer,
        TrainingArguments,
    )

    head = nlp.get_pipe("ner").model.get_ref("head").shims[0].module.output
    model = AutoModelForTokenClassification.from_pretrained(
        encoder, num_labels=head.out_features, **NO_DROPOUT
    )
    model.classifier.load_state_dict(head.state_dict())
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    special = find_special_pieces(tokenizer)
    rows, places = [], []
    for text, spans in TEXTS:
        doc = nlp.make_doc(text)
        [pieces] = split_into_pieces(tokenizer, [text])
        start = np.array([token.idx for token in doc])
        first = align_tokens(start, start + [len(token) for token in doc], pieces).first
        tags = np.zeros(len(doc), dtype=int)
        for span in spans:
            found = doc.char_span(*span)
            tags[found.start : found.end] = 2
            tags[found.start] = 1
        ids = [*special.before, *pieces.ids.tolist(), *special.after]
        labels = np.full(len(ids), -100)
        labels[first + len(special.before)] = tags
        places.append(first + len(special.before))
        mask = [1] * len(ids)
        rows.append({"input_ids": ids, "attention_mask": mask, "labels": labels.tolist()})
    collate = DataCollatorForTokenClassification(tokenizer)
    arguments = TrainingArguments(
        output_dir=str(out),
        per_device_train_batch_size=len(TEXTS),
        max_steps=UPDATES,
        learning_rate=RATE,
        max_grad_norm=clip,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
    )
    trainer = type("OrderedTrainer", (InOrder, Trainer), {})
    trainer(model=model, args=arguments, train_dataset=rows, data_collator=collate).train()
    model.eval()
    with torch.no_grad():
        logits = model(**collate(rows)).logits.numpy()
    return np.concatenate([row[place] for row, place in zip(logits, places, strict=True)])


@pytest.mark.usefixtures("fresh_accelerate")
@pytest.mark.parametrize(("clip", "tolerance"), [(0.0, 1e-5), (1.0, 1e-3)])
def test_same_scores_after_some_updates(
    tiny_encoder: Path, tmp_path: Path, clip: float, tolerance: float
) -> None:
    """Ours clips the gradients of encoder and head apart, theirs together: hence the tolerance."""
    nlp, optimizer, examples = make_pipeline(tiny_encoder, clip)
    before = our_scores(nlp)
    theirs = trainer_scores(tiny_encoder, nlp, clip, tmp_path)
    for _ in range(UPDATES):
        nlp.update(examples, sgd=optimizer, annotates=["sentences"])
        optimizer.step_schedules()
    ours = our_scores(nlp)
    assert np.abs(ours - before).max() > 0.1
    assert np.abs(ours - theirs).max() < tolerance
