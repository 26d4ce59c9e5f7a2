"""Students of a large encoder: the loss by hand, trainings, what is refused."""

import json
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from transformers import AutoConfig, AutoModelForMaskedLM, AutoTokenizer, PreTrainedTokenizerFast
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.encoders.loading import load_pretrained
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.pretraining.distillation import (
    DistilledLM,
    Objective,
    cosine_distance,
    distill,
    divergence,
    narrow_config,
    open_student,
    open_teacher,
)
from spacy_bioclin.pretraining.masked_lm import MaskedLM, open_model
from spacy_bioclin.pretraining.masking import NO_LOSS
from spacy_bioclin.pretraining.settings import PretrainSettings
from tests.util import make_encoder

OBJECTIVE = Objective(text=5.0, scores=2.0, vectors=1.0, temperature=2.0)
SETTINGS = PretrainSettings(
    steps=8,
    batch_pieces=128,
    length=32,
    learn_rate=5e-3,
    dropout=0.1,
    every=4,
    precision="fp32",
)


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory, vocabulary: PreTrainedTokenizerFast) -> Path:
    """A random RoBERTa of two layers with its head, and the vocabulary of the corpus."""
    folder = tmp_path_factory.mktemp("teacher")
    make_encoder(folder / "encoder", "roberta", "bytes")
    model = open_model(str(folder / "encoder"), vocabulary, None, 0.0)
    model.save_pretrained(folder / "large")
    vocabulary.save_pretrained(folder / "large")
    return folder / "large"


def run(
    teacher: Path,
    corpus: Path,
    out: Path,
    *,
    start_from: Path | None = None,
    layers: int | None = 1,
    width: int | None = None,
    resume: bool = False,
    **changes: object,
) -> dict:
    return distill(
        str(teacher),
        corpus,
        out,
        start_from=str(start_from) if start_from else None,
        layers=layers,
        width=width,
        objective=OBJECTIVE,
        settings=replace(SETTINGS, **changes),
        resume=resume,
    )


def some_blocks() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Three blocks, the second with padding."""
    torch.manual_seed(0)
    ids = torch.randint(5, 50, (3, 16))
    mask = torch.ones_like(ids)
    mask[1, 10:] = 0
    labels = torch.where((torch.rand(3, 16) < 0.3) & (mask == 1), ids, NO_LOSS)
    return ids, mask, labels


def test_divergence_of_two_pieces_worked_by_hand() -> None:
    # At temperature 2 the teacher's scores (2 ln 3, 0) become 3/4 and 1/4, the student's 1/2, 1/2.
    teacher = torch.tensor([[2 * math.log(3), 0.0]])
    student = torch.tensor([[1.0, 1.0]])
    expected = 2**2 * (0.75 * math.log(0.75 / 0.5) + 0.25 * math.log(0.25 / 0.5))
    assert divergence(student, teacher, 2.0).item() == pytest.approx(expected, abs=1e-6)
    # The mean is over pieces; one that agrees adds nothing.
    both = divergence(torch.cat([student, teacher]), torch.cat([teacher, teacher]), 2.0)
    assert both.item() == pytest.approx(expected / 2, abs=1e-6)
    backwards = 2**2 * (0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25))
    assert divergence(teacher, student, 2.0).item() == pytest.approx(backwards, abs=1e-6)


def test_cosine_distance_worked_by_hand() -> None:
    ours = torch.tensor([[1.0, 0.0], [1.0, 1.0], [2.0, 0.0]])
    theirs = torch.tensor([[0.0, 3.0], [5.0, 5.0], [-1.0, 0.0]])
    assert cosine_distance(ours, theirs).item() == pytest.approx((1 + 0 + 2) / 3)


def test_a_student_that_is_its_teacher_loses_only_on_the_text(teacher: Path) -> None:
    model = DistilledLM(
        open_model(str(teacher), None, None, 0.0), open_teacher(str(teacher)), OBJECTIVE
    )
    torch.nn.init.eye_(model.projection.weight)
    torch.nn.init.zeros_(model.projection.bias)
    blocks = some_blocks()
    on_text = model.eval()(*blocks)["loss"]
    assert model.train()(*blocks)["loss"].item() == pytest.approx(5 * on_text.item(), abs=1e-4)
    # Anything that changes the student is seen.
    with torch.no_grad():
        torch.nn.init.normal_(model.pretrained.base_model.encoder.layer[1].output.dense.weight)
    on_text = model.eval()(*blocks)["loss"]
    assert model.train()(*blocks)["loss"].item() > 5 * on_text.item() + 1e-3


def test_padding_and_its_vectors_do_not_count(teacher: Path) -> None:
    model = DistilledLM(
        open_model(str(teacher), None, 1, 0.0), open_teacher(str(teacher)), OBJECTIVE
    ).train()
    ids, mask, labels = some_blocks()
    expected = model(ids, mask, labels)["loss"]
    other = torch.where(mask == 0, torch.full_like(ids, 7), ids)
    assert torch.allclose(model(other, mask, labels)["loss"], expected, atol=1e-5)


def test_the_teacher_moves_with_the_student_but_is_neither_trained_nor_saved(teacher: Path) -> None:
    model = DistilledLM(
        open_model(str(teacher), None, 1, 0.0), open_teacher(str(teacher)), OBJECTIVE
    ).train()
    assert not model.teacher.training
    names = [name for name, _ in model.named_parameters()]
    assert {name.partition(".")[0] for name in names} == {"pretrained", "projection"}
    before = {k: v.clone() for k, v in model.teacher.state_dict().items()}
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(2):
        model(*some_blocks())["loss"].backward()
        optimizer.step()
    assert all(torch.equal(v, before[k]) for k, v in model.teacher.state_dict().items())
    assert all(weight.grad is None for weight in model.teacher.parameters())
    model.to("meta")
    assert {weight.device.type for weight in model.teacher.parameters()} == {"meta"}


@pytest.mark.slow
def test_student_of_some_layers(corpus: Path, teacher: Path, tmp_path: Path) -> None:
    whole = run(teacher, corpus, tmp_path, steps=12, every=12, learn_rate=2e-2)
    first, *_, last = whole["perplexity"]
    assert last["es"] < 0.9 * first["es"]
    assert last["en"] < 0.9 * first["en"]
    assert whole["loss"][-1][1] < whole["loss"][0][1]
    assert (whole["teacher"], whole["start_from"], whole["layers"]) == ("large", None, 1)
    assert set(whole["teacher_perplexity"]) == {"en", "es"}
    assert json.loads((tmp_path / "distillation.json").read_text()) == whole
    # The checkpoint holds the student and the projection, the encoder the student alone.
    saved = torch.load(tmp_path / "checkpoint-12" / "pytorch_model.bin")
    assert {name.partition(".")[0] for name in saved} == {"pretrained", "projection"}
    assert not any(".layer.1." in name for name in saved)
    tokenizer, encoder = load_pretrained(str(tmp_path / "encoder"), {})
    assert (encoder.config.num_hidden_layers, len(tokenizer)) == (1, encoder.config.vocab_size)
    student = AutoModelForMaskedLM.from_pretrained(tmp_path / "encoder")
    assert student.num_parameters() == whole["weights"]


@pytest.mark.slow
def test_held_out_loss_is_that_on_the_text(corpus: Path, teacher: Path, tmp_path: Path) -> None:
    # All layers and no updates worth the name: the student's perplexity is the teacher's.
    record = run(teacher, corpus, tmp_path, layers=2, steps=2, every=2, learn_rate=1e-12)
    for row in record["perplexity"]:
        values = {lang: row[lang] for lang in ("en", "es")}
        assert values == pytest.approx(record["teacher_perplexity"], rel=1e-4)


@pytest.mark.slow
def test_resume_gives_the_losses_of_a_run_that_never_stopped(
    corpus: Path, teacher: Path, tmp_path: Path
) -> None:
    whole = run(teacher, corpus, tmp_path / "whole")
    stopped = run(teacher, corpus, tmp_path / "parts", max_seconds=1e-9)
    assert not stopped["finished"]
    with pytest.raises(BioclinError, match="--resume"):
        run(teacher, corpus, tmp_path / "parts")
    resumed = run(teacher, corpus, tmp_path / "parts", resume=True)
    assert resumed["finished"]
    assert dict(resumed["loss"]) == dict(whole["loss"])
    after = [row for row in resumed["perplexity"] if row["step"] % SETTINGS.every == 0]
    assert after == whole["perplexity"]


def test_a_narrower_student_has_heads_of_the_same_width(teacher: Path) -> None:
    torch.manual_seed(0)
    config = open_student(str(teacher), None, 3, 8, 0.0).config
    shape = (config.hidden_size, config.num_attention_heads, config.intermediate_size)
    assert (*shape, config.num_hidden_layers) == (8, 1, 16, 3)
    assert config.initializer_range == pytest.approx(0.02 * math.sqrt(2))
    for width in (12, 0):
        with pytest.raises(BioclinError, match=f"width = {width}: want a multiple of 8"):
            open_student(str(teacher), None, None, width, 0.0)
    with pytest.raises(BioclinError, match="layers = 0"):
        open_student(str(teacher), None, 0, 8, 0.0)
    with pytest.raises(BioclinError, match="a distilbert encoder cannot be made narrower"):
        narrow_config(AutoConfig.for_model("distilbert"), None, 64)


def test_students_that_cannot_be_made(
    corpus: Path, teacher: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    with pytest.raises(BioclinError, match="--layers N"):
        run(teacher, corpus, tmp_path, layers=None)
    with pytest.raises(BioclinError, match="layers = 3: keep 1 to 2"):
        run(teacher, corpus, tmp_path, layers=3)
    with pytest.raises(BioclinError, match="width = 8 and start_from"):
        run(teacher, corpus, tmp_path, start_from=teacher, width=8)
    with pytest.raises(BioclinError, match=r"different vocabularies.*--tokenizer"):
        run(teacher, corpus, tmp_path, start_from=tiny_encoder)
    with pytest.raises(BioclinError, match="nowhere cannot be opened"):
        run(tmp_path / "nowhere", corpus, tmp_path)


def test_same_pieces_with_other_numbers_are_another_vocabulary(
    corpus: Path, teacher: Path, tmp_path: Path
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(teacher)
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    pieces = content["model"]["vocab"]
    one, other = list(pieces)[-2:]
    pieces[one], pieces[other] = pieces[other], pieces[one]
    tokenizer.save_pretrained(tmp_path / "other")
    (tmp_path / "other" / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(BioclinError, match="different vocabularies"):
        run(teacher, corpus, tmp_path / "out", start_from=tmp_path / "other")


def test_a_teacher_without_a_head_is_refused(tiny_encoder: Path) -> None:
    with pytest.raises(BioclinError, match="no complete masked-language-model head"):
        open_teacher(str(tiny_encoder))


def test_an_objective_that_means_nothing(corpus: Path, teacher: Path, tmp_path: Path) -> None:
    for objective in (
        OBJECTIVE._replace(temperature=0.0),
        OBJECTIVE._replace(scores=-1.0),
        OBJECTIVE._replace(text=0.0, scores=0.0, vectors=0.0),
    ):
        with pytest.raises(BioclinError, match="want weights of 0 and more"):
            distill(
                str(teacher),
                corpus,
                tmp_path,
                start_from=None,
                layers=1,
                width=None,
                objective=objective,
                settings=SETTINGS,
                resume=False,
            )


def test_tables_of_pieces_may_be_padded_to_a_round_size() -> None:
    """Teacher and student of the same vocabulary, the teacher's table with two more rows."""

    class Fixed(MaskedLM):
        def __init__(self, n_rows: int) -> None:
            super().__init__(torch.nn.Linear(2, 2))
            self.pretrained.config = SimpleNamespace(hidden_size=2)
            self.n_rows = n_rows

        def hidden(self, input_ids: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
            return torch.ones(*input_ids.shape, 2)

        def logits(self, vectors: torch.Tensor) -> torch.Tensor:
            return torch.zeros(len(vectors), self.n_rows)

    class Student(DistilledLM):
        hidden = Fixed.hidden
        logits = Fixed.logits
        n_rows = 4

    model = Student(Fixed(4).pretrained, Fixed(6), OBJECTIVE._replace(vectors=0.0)).train()
    ids = torch.zeros(1, 3, dtype=torch.int64)
    loss = model(ids, torch.ones_like(ids), ids)["loss"]
    assert loss.item() == pytest.approx(5 * math.log(4))


@pytest.mark.slow
def test_command_line_makes_a_narrow_student(corpus: Path, teacher: Path, tmp_path: Path) -> None:
    options = {
        "-o": tmp_path / "out",
        "--width": 8,
        "--steps": 2,
        "--every": 2,
        "--length": 32,
        "--batch-pieces": 128,
        "--temperature": 1,
    }
    flat = [str(part) for pair in options.items() for part in pair]
    command = ["distill", str(teacher), str(corpus), *flat, "--weights", "1", "2", "3"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert "2 layers of width 8" in result.output
    record = json.loads((tmp_path / "out" / "distillation.json").read_text())
    assert record["objective"] == Objective(1, 2, 3, 1)._asdict()
    _, encoder = load_pretrained(str(tmp_path / "out" / "encoder"), {})
    assert encoder.config.hidden_size == 8
