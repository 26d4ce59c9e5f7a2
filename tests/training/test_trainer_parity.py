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

from spacy_bioclin.catalog.recipes import apply_recipe, apply_settings, find_recipe, set_learn_rate

ROOT = Path(__file__).parents[2]
TEXTS = [
    ("Paciente con neumonía. Se inicia amoxicilina.", [(13, 21), (33, 44)]),
    ("Se inicia metformina.", [(10, 20)]),
    ("Niega fiebre y dolor.\n\nAlta el 3 de mayo.", [(6, 12), (15, 20)]),
    ("Dr. Pérez: 10µg cada día.", []),  # a piece of two tokens: [UNK]
]
UPDATES, RATE = 6, 1e-3


def make_pipeline(encoder: Path, clip: float) -> tuple[Language, Any, list[Example]]:
    """Ours by the recipe, untrained, with its optimizer and one batch."""
    config = load_config(ROOT / "configs" / "ner.cfg", interpolate=False)
    apply_recipe(config, find_recipe("carrino-2022"))
    changes = {
        "paths.encoder": str(encoder),
        "components.transformer.model.transformer_config": {
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
        },
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


@pytest.fixture
def fresh_accelerate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainer computes in the format of an earlier Trainer of the process, whatever its arguments:
    the library keeps that in a global and in the environment."""
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "no")


def trainer_scores(
    encoder: Path, nlp: Language, docs: list[Doc], clip: float, out: Path
) -> np.ndarray:
    """Fine-tune with Trainer from the same weights, head included.

    docs (list[Doc]): With gold entities.
    RETURNS (ndarray): As `our_scores`.
    """
    from benchmarks.training.trainer_huggingface import TokenClassifier

    ner = nlp.get_pipe("ner")
    head = ner.model.get_ref("head").shims[0].module.output
    tags = ner.tag_sets[0]
    model = TokenClassifier(encoder, tags, words=False, bf16=False, seed=0, head=head)
    settings = {
        "output_dir": str(out),
        "per_device_train_batch_size": len(TEXTS),
        "learning_rate": RATE,
        "max_grad_norm": clip,
    }
    model.train(docs, UPDATES, settings)
    return np.concatenate(list(model.predict(docs)))


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_accelerate")
@pytest.mark.parametrize(("clip", "tolerance"), [(0.0, 1e-5), (1.0, 1e-3)])
def test_same_scores_after_some_updates(
    tiny_encoder: Path, tmp_path: Path, clip: float, tolerance: float
) -> None:
    """Ours clips the gradients of encoder and head apart, theirs together: hence the tolerance.

    Tokens without a piece of their own have no tag: Trainer gives a piece one tag, ours each token.
    """
    from benchmarks.training.trainer_huggingface import untag_shared_pieces

    nlp, optimizer, examples = make_pipeline(tiny_encoder, clip)
    docs = [eg.reference for eg in examples]
    tokenizer = nlp.get_pipe("transformer").model.tokenizer
    assert all(untag_shared_pieces(doc, tokenizer) for doc in docs)
    untagged = [token.text for doc in docs for token in doc if token.ent_iob == 0]
    assert untagged == ["\n\n", "µg"]
    own_piece = np.array([token.ent_iob != 0 for doc in docs for token in doc])
    before = our_scores(nlp)
    theirs = trainer_scores(tiny_encoder, nlp, docs, clip, tmp_path)
    for _ in range(UPDATES):
        nlp.update(examples, sgd=optimizer, annotates=["sentences"])
        optimizer.step_schedules()
    ours = our_scores(nlp)
    assert np.abs(ours - before).max() > 0.1
    assert np.abs(ours - theirs)[own_piece].max() < tolerance
