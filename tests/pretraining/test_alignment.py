"""Encoders of names, aligned by synonyms: the loss by hand, batches, resuming, the command."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize
from transformers import AutoModel, AutoTokenizer
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.encoders.names import NameEncoder, mean_vectors
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.kb.build import build_kb
from spacy_bioclin.linking.kb.concepts import Alias, Concept, SkipReport
from spacy_bioclin.linking.kb.knowledge_base import KnowledgeBase
from spacy_bioclin.pretraining.alignment import (
    ALPHA,
    BASE,
    BETA,
    MARGIN,
    MAX_PIECES,
    AlignedEncoder,
    NamePairs,
    align,
    alignment_loss,
)
from spacy_bioclin.pretraining.compact import build_compact_encoder
from spacy_bioclin.pretraining.settings import AlignSettings
from spacy_bioclin.pretraining.synonyms import MIN_NAMES, accuracy, hold_out, similar_concepts

SETTINGS = AlignSettings(steps=6, batch_pairs=16, learn_rate=2e-3, precision="fp32")
# An invented terminology: part of the body, and what it has, in three tongues.
PARTS = {
    "kidney": ("riñón", "nephr"),
    "liver": ("hígado", "hepat"),
    "heart": ("corazón", "cardi"),
    "skin": ("piel", "dermat"),
    "joint": ("articulación", "arthr"),
    "nerve": ("nervio", "neur"),
    "bone": ("hueso", "oste"),
    "stomach": ("estómago", "gastr"),
}
FINDINGS = {
    "inflammation": ("inflamación", "itis"),
    "pain": ("dolor", "algia"),
    "tumour": ("tumor", "oma"),
    "disease": ("enfermedad", "opathy"),
    "hardening": ("dureza", "osclerosis"),
    "softening": ("blandura", "omalacia"),
}


def terminology() -> list[Concept]:
    return [
        Concept(
            f"{part[0]}{finding[0]}{i}{j}",
            f"{part} {finding}",
            "en",
            (
                Alias(f"{in_spanish} de {part_in_spanish}", "es"),
                Alias(f"{stem}{ending}", "la"),
                Alias(f"{finding} of the {part} region", "en"),
            ),
        )
        for i, (part, (part_in_spanish, stem)) in enumerate(PARTS.items())
        for j, (finding, (in_spanish, ending)) in enumerate(FINDINGS.items())
    ]


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeBase:
    folder = tmp_path_factory.mktemp("kb") / "kb"
    return build_kb(iter(terminology()), folder, report=SkipReport())


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory, kb: KnowledgeBase) -> str:
    folder = tmp_path_factory.mktemp("encoder") / "random"
    build_compact_encoder(list(kb.names) * 3, folder, vocab_size=400, layers=1, width=64, seed=0)
    return str(folder)


def loss_by_hand(vectors: np.ndarray, concepts: list[int]) -> float:
    """Equations 1 and 2 of the paper, pair by pair."""
    n = len(vectors)
    total = 0.0
    for i in range(n):
        cosine = [float(vectors[i] @ vectors[j]) for j in range(n)]
        positive = [j for j in range(n) if j != i and concepts[j] == concepts[i]]
        negative = [j for j in range(n) if concepts[j] != concepts[i]]
        # (i, p, q) is hard if the positive is not nearer than the negative by the margin.
        hard = [(p, q) for p in positive for q in negative if cosine[p] < cosine[q] + MARGIN]
        pull = sum(np.exp(-ALPHA * (cosine[p] - BASE)) for p in {p for p, _ in hard})
        push = sum(np.exp(BETA * (cosine[q] - BASE)) for q in {q for _, q in hard})
        total += np.log(1 + pull) / ALPHA + np.log(1 + push) / BETA
    return total / n


def test_loss_equals_loops_over_triplets() -> None:
    for spread in (0.4, 0.8, 3.0):
        rng = np.random.default_rng(1)
        concepts = [0, 0, 1, 1, 2, 2, 2, 3]  # the last has no synonym
        centres = rng.normal(size=(4, 6))
        vectors = centres[concepts] + spread * rng.normal(size=(8, 6))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        expected = loss_by_hand(vectors, concepts)
        assert expected > 0
        loss = alignment_loss(torch.from_numpy(vectors), torch.tensor(concepts))
        assert float(loss) == pytest.approx(expected, rel=1e-9)


def test_loss_of_two_concepts_worked_by_hand() -> None:
    # Cosines: 0.79 within the first concept, 0 and 0.61 across; the second has one name.
    other = (1 - 0.79**2) ** 0.5
    vectors = torch.tensor([[1.0, 0.0], [0.79, other], [0.0, 1.0]], dtype=torch.float64)
    concepts = torch.tensor([0, 0, 1])
    # First name: 0.79 is above 0 by the margin. Second: not above 0.61. Third: has no triplet.
    expected = np.log(1 + np.exp(-(0.79 - 0.5))) + np.log(1 + np.exp(60 * (other - 0.5))) / 60
    assert float(alignment_loss(vectors, concepts)) == pytest.approx(expected / 3, rel=1e-9)


def test_no_loss_where_every_triplet_keeps_the_margin() -> None:
    vectors = torch.eye(4)[[0, 0, 1, 1, 2, 2]]
    assert float(alignment_loss(vectors, torch.tensor([0, 0, 1, 1, 2, 2]))) == 0


def test_gradient_equals_finite_differences() -> None:
    generator = torch.Generator().manual_seed(3)
    raw = torch.randn(6, 5, dtype=torch.float64, generator=generator, requires_grad=True)
    concepts = torch.tensor([0, 0, 1, 1, 2, 2])

    def loss(values: torch.Tensor) -> torch.Tensor:
        return alignment_loss(normalize(values, dim=-1), concepts)

    (gradient,) = torch.autograd.grad(loss(raw), raw)
    step = 1e-6
    with torch.no_grad():
        for i in range(raw.numel()):
            change = torch.zeros(raw.numel(), dtype=torch.float64)
            change[i] = step
            change = change.view_as(raw)
            slope = (loss(raw + change) - loss(raw - change)) / (2 * step)
            assert float(gradient.flatten()[i]) == pytest.approx(float(slope), rel=1e-4, abs=1e-7)
    assert gradient.abs().max() > 1e-3


def test_parts_of_a_batch_give_the_loss_of_names_encoded_one_by_one(encoder: str) -> None:
    names = ["kidney pain", "dolor de riñón", "osteoma", "tumour of the bone region", "neuritis"]
    concepts = torch.tensor([0, 0, 1, 1, 2])
    pretrained = AutoModel.from_pretrained(encoder, torch_dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    batch = tokenizer(names, padding=True, return_tensors="pt")
    alone = []
    with torch.no_grad():
        for name in names:
            one = tokenizer([name], return_tensors="pt")
            hidden = pretrained(input_ids=one["input_ids"])[0]
            alone.append(mean_vectors(hidden, one["attention_mask"]))
        loss = AlignedEncoder(pretrained)(batch["input_ids"], batch["attention_mask"], concepts)
    expected = alignment_loss(torch.cat(alone), concepts)
    assert float(loss["loss"]) == pytest.approx(float(expected), rel=1e-4)


def test_batches_are_the_same_whenever_they_are_asked_for() -> None:
    names_of = [np.arange(3 * i, 3 * i + 2 + i % 2) for i in range(20)]
    neighbours = (np.arange(20)[:, None] + np.array([1, 2, 3, 4])) % 20
    neighbours[5] = -1
    pairs, again = (NamePairs(names_of, neighbours, SETTINGS) for _ in range(2))
    seen = set()
    for step in reversed(range(len(pairs))):
        names, concepts = pairs[step]
        assert all(np.array_equal(a, b) for a, b in zip(pairs[step], again[step], strict=True))
        two = names.reshape(-1, 2)
        assert (two[:, 0] != two[:, 1]).all()
        assert np.array_equal(concepts[::2], np.unique(concepts))
        assert all(names[i] in names_of[concepts[i]] for i in range(len(names)))
        assert len(concepts) <= 2 * SETTINGS.batch_pairs
        seen |= set(concepts.tolist())
    assert seen == set(range(20))
    other = NamePairs(names_of, neighbours, replace(SETTINGS, seed=1))
    assert any(not np.array_equal(pairs[i][0], other[i][0]) for i in range(len(pairs)))


def test_concepts_with_similar_names_are_in_the_batch() -> None:
    names_of = [np.array([2 * i, 2 * i + 1]) for i in range(100)]
    neighbours = np.arange(100)[:, None] ^ 1  # 0 and 1, 2 and 3, …
    _, concepts = NamePairs(names_of, neighbours, replace(SETTINGS, batch_pairs=8))[0]
    assert set(concepts) == set(concepts ^ 1)


@pytest.mark.slow
def test_resume_gives_the_losses_of_a_run_that_never_stopped(
    kb: KnowledgeBase, encoder: str, tmp_path: Path
) -> None:
    neighbours = similar_concepts(kb)

    def run(out: str, resume: bool = False, max_seconds: float = 0) -> dict:
        settings = replace(SETTINGS, max_seconds=max_seconds)
        concepts = np.array(kb.name_concept)
        return align(
            kb.names,
            concepts,
            neighbours,
            encoder,
            tmp_path / out,
            settings=settings,
            resume=resume,
        )

    whole = run("whole")
    stopped = run("parts", max_seconds=1e-9)
    assert not stopped["finished"]
    with pytest.raises(BioclinError, match="--resume"):
        run("parts")
    resumed = run("parts", resume=True)
    assert resumed["finished"]
    assert len(whole["loss"]) == SETTINGS.steps
    assert resumed["loss"] == whole["loss"]
    first, second = (
        NameEncoder(str(tmp_path / out / "encoder"), precision="fp32").encode(list(kb.names))
        for out in ("whole", "parts")
    )
    assert np.array_equal(first, second)


@pytest.mark.slow
def test_command_raises_the_accuracy_of_names_that_are_held_out(
    kb: KnowledgeBase, encoder: str, tmp_path: Path
) -> None:
    command = ["align-encoder", str(kb.path), encoder, "-o", str(tmp_path / "out")]
    options = ["--steps", "60", "--batch-pairs", "32", "--learn-rate", "3e-3"]
    done = CliRunner().invoke(app, [*command, *options, "--precision", "fp32"])
    assert done.exit_code == 0, done.output
    record = json.loads((tmp_path / "out" / "alignment.json").read_text())
    held_out = record["held_out"]
    assert held_out["names"] == len(kb)
    assert held_out["after"] > held_out["before"] + 0.15
    assert f"{held_out['after']:.1%} after" in done.output
    again = accuracy(kb, hold_out(kb, 0), str(tmp_path / "out" / "encoder"), "fp32")
    assert again == held_out["after"]
    refused = CliRunner().invoke(app, command)
    assert refused.exit_code == 1
    assert "--resume" in refused.output


def test_names_that_are_held_out_are_not_learned_and_not_trivial(kb: KnowledgeBase) -> None:
    names, others = hold_out(kb, 0)
    assert not set(names) & set(others)
    assert len(others) == len(kb.names) - len(names)
    concepts = kb.name_concept[names]
    assert len(set(concepts.tolist())) == len(names) == len(kb)
    assert not set(names) & set(kb.first_name.tolist())
    assert (np.diff(kb.first_name)[concepts] >= MIN_NAMES).all()
    assert not np.array_equal(names, hold_out(kb, 1).names)


def test_neighbours_share_words_and_are_other_concepts(kb: KnowledgeBase) -> None:
    found = similar_concepts(kb)
    assert (found != np.arange(len(kb))[:, None]).all()
    kidney_pain = next(i for i in range(len(kb)) if kb.name_of(i) == "kidney pain")
    near = [kb.name_of(i) for i in found[kidney_pain] if i >= 0]
    assert near
    assert all("kidney" in name or "pain" in name for name in near)


def test_terminology_without_synonyms_is_refused(encoder: str, tmp_path: Path) -> None:
    with pytest.raises(BioclinError, match="no synonyms"):
        align(
            ["a", "b"],
            np.array([0, 1]),
            np.full((2, 1), -1),
            encoder,
            tmp_path,
            settings=SETTINGS,
            resume=False,
        )


def test_names_are_cut_as_the_encoder_of_names_cuts_them(encoder: str) -> None:
    long = "kidney " * 60
    names = NameEncoder(encoder, precision="fp32")
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    pieces = tokenizer(long, truncation=True, max_length=MAX_PIECES, return_tensors="pt")
    pretrained = AutoModel.from_pretrained(encoder, torch_dtype=torch.float32).eval()
    with torch.no_grad():
        hidden = pretrained(**pieces)[0]
    expected = mean_vectors(hidden, pieces["attention_mask"]).numpy()
    assert np.allclose(names.encode([long]), expected, atol=1e-5)
