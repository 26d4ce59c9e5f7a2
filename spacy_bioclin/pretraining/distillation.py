"""Task-agnostic distillation of an encoder (Sanh et al. 2019; Lewis et al. 2020, section 7): a
small masked language model, the student, learns from the text and from a large one, the teacher."""

import copy
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, cross_entropy, kl_div, log_softmax
from transformers import AutoConfig, AutoModelForMaskedLM, PreTrainedTokenizerFast

from ..encoders.loading import quiet
from ..errors import BioclinError
from .blocks import NO_LOSS
from .masked_lm import (
    MaskedLM,
    MaskedTrainer,
    find_checkpoint,
    make_trainer,
    open_model,
    open_tokenizer,
    set_up_layers,
    train,
)
from .record import flop_per_piece
from .settings import Settings
from .warm_start import SPECIAL


class Objective(NamedTuple):
    """What the student learns; the loss is the weighted sum of three.

    text (float): Weight of the cross-entropy with the pieces of the text.
    scores (float): Weight of the divergence from the teacher's distribution over the pieces.
    vectors (float): Weight of the cosine distance from the teacher's last layer.
    temperature (float): Divides the scores of both before they become distributions.
    """

    text: float
    scores: float
    vectors: float
    temperature: float


def divergence(student: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """Mean of KL(teacher || student), times the squared temperature, which keeps the size of the
    gradients (Hinton et al. 2015).

    student, teacher (Tensor): (n_pieces, vocab_size) scores.
    RETURNS (Tensor): In nats.
    """
    log_q, log_p = (log_softmax(x.float() / temperature, dim=-1) for x in (student, teacher))
    return kl_div(log_q, log_p, log_target=True, reduction="batchmean") * temperature**2


def cosine_distance(student: Tensor, teacher: Tensor) -> Tensor:
    """RETURNS (Tensor): Mean of 1 - cosine, 0 to 2, of the rows of two (n_pieces, width)."""
    return (1 - cosine_similarity(student.float(), teacher.float(), dim=-1)).mean()


class DistilledLM(MaskedLM):
    """A student that learns with its teacher at its side; evaluated, it is a plain `MaskedLM`.

    Scores are compared where a piece is to be predicted, vectors wherever there is text, as
    DistilBERT does (the paper does not say). The student's vectors go through a learned projection
    to the teacher's width, even if the widths are the same.

    student (transformers.PreTrainedModel), teacher (MaskedLM): With the same vocabulary.
    """

    def __init__(self, student: Any, teacher: MaskedLM, objective: Objective) -> None:
        super().__init__(student)
        self.objective = objective
        width = teacher.pretrained.config.hidden_size
        self.projection = nn.Linear(student.config.hidden_size, width)
        # Torch does not look into a tuple: the teacher is neither trained nor saved.
        self._teacher = (teacher.eval().requires_grad_(False),)

    @property
    def teacher(self) -> MaskedLM:
        return self._teacher[0]

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "DistilledLM":
        """Moving the student moves the teacher."""
        self.teacher._apply(fn, recurse)
        return super()._apply(fn, recurse)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor
    ) -> dict[str, Tensor]:
        """
        input_ids, attention_mask, labels (Tensor): As in `MaskedLM.forward`.
        RETURNS (dict[str, Tensor]): "loss": the objective in training, else the student's mean
            cross-entropy, so that perplexities of students and others can be compared.
        """
        if not self.training:
            return super().forward(input_ids, attention_mask, labels)
        chosen, is_text = labels != NO_LOSS, attention_mask.bool()
        with torch.no_grad():
            wanted_vectors = self.teacher.hidden(input_ids, attention_mask)
            wanted_scores = self.teacher.logits(wanted_vectors[chosen])
        vectors = self.hidden(input_ids, attention_mask)
        scores = self.logits(vectors[chosen])
        # Some tables of pieces are padded to a round size.
        n = min(scores.shape[1], wanted_scores.shape[1])
        weights = self.objective
        loss = weights.text * cross_entropy(scores.float(), labels[chosen])
        loss += weights.scores * divergence(
            scores[:, :n], wanted_scores[:, :n], weights.temperature
        )
        projected = self.projection(vectors[is_text])
        loss += weights.vectors * cosine_distance(projected, wanted_vectors[is_text])
        return {"loss": loss}


def distill(
    teacher: str,
    corpus: Path,
    out: Path,
    *,
    start_from: str | None,
    layers: int | None,
    width: int | None,
    objective: Objective,
    settings: Settings,
    resume: bool,
) -> dict[str, Any]:
    """Train a student, and write the best one on held-out text.

    teacher (str): Folder or hub name of an encoder with its masked-language-model head.
    corpus (Path): Folder with LANG.train.txt and LANG.held-out.txt of `bioclin clean-text`.
    out (Path): Gets checkpoints, `encoder` (the student alone), and distillation.json.
    start_from (str | None): Encoder that becomes the student; else the teacher's lowest layers.
    layers (int | None): Keep only that many of its lowest layers.
    width (int | None): Make the student of the teacher's shape at this width, with random weights.
    resume (bool): Go on from the last checkpoint, with the losses of a run that never stopped.
    RETURNS (dict): What distillation.json says; perplexities are the student's.
    RAISES (BioclinError): If there is nothing to make a student of, the teacher has no head, or the
        two have different vocabularies.
    """
    check_objective(objective)
    last = find_checkpoint(out, resume=resume)
    pieces = open_tokenizer(teacher)
    if start_from is not None:
        check_same_vocabulary(start_from, open_tokenizer(start_from), teacher, pieces)
    torch.manual_seed(settings.seed)
    student = open_student(teacher, start_from, layers, width, settings.dropout)
    model = DistilledLM(student, open_teacher(teacher), objective)
    trainer = make_trainer(model, pieces, corpus, out, settings)
    if trainer.args.n_gpu > 1:
        raise BioclinError(
            f"distill sees {trainer.args.n_gpu} GPUs: start it with `torchrun --nproc-per-node "
            f"{trainer.args.n_gpu} -m spacy_bioclin distill …`, or show it one with "
            "CUDA_VISIBLE_DEVICES=0"
        )
    # The teacher's forward pass is a third of what training it would cost.
    trainer.flop_per_piece += flop_per_piece(model.teacher, settings.length, settings.mask_rate) / 3
    about = {
        "teacher": Path(teacher).name,
        "teacher_perplexity": teacher_perplexity(model.teacher, trainer),
        "start_from": Path(start_from).name if start_from else None,
        "layers": student.config.num_hidden_layers,
        "width": student.config.hidden_size,
        "objective": objective._asdict(),
    }
    return train(trainer, pieces, settings, out / "distillation.json", about, last)


def open_teacher(name: str) -> MaskedLM:
    """RETURNS (MaskedLM): In fp32.
    RAISES (BioclinError): If its head is missing: random scores teach nothing."""
    with quiet():
        model, loaded = AutoModelForMaskedLM.from_pretrained(
            name, torch_dtype=torch.float32, output_loading_info=True
        )
    missing = loaded["missing_keys"]
    if missing:
        raise BioclinError(
            f"The teacher {name} has no complete masked-language-model head: {len(missing)} "
            f"tensors are missing, {missing[0]} first. Take the encoder as its authors or `bioclin "
            "pretrain` left it, not one from a fine-tuned pipeline"
        )
    return MaskedLM(set_up_layers(model, dropout=0.0))


def open_student(
    teacher: str, start_from: str | None, layers: int | None, width: int | None, dropout: float
) -> Any:
    """RETURNS (transformers.PreTrainedModel): See `distill` for the arguments."""
    if width is not None:
        if start_from is not None:
            raise BioclinError(
                f"width = {width} and start_from = {start_from}: give one; an encoder that exists "
                "has its width"
            )
        config = narrow_config(AutoConfig.from_pretrained(teacher), layers, width)
        return set_up_layers(AutoModelForMaskedLM.from_config(config), dropout)
    if start_from is None and layers is None:
        raise BioclinError(
            f"No student is named: --layers N cuts one from {teacher}, --width N makes a narrower "
            "one, --start-from takes an encoder that exists"
        )
    return open_model(start_from or teacher, None, layers, dropout)


def narrow_config(config: Any, layers: int | None, width: int) -> Any:
    """RETURNS (transformers.PretrainedConfig): A copy for a narrower encoder: fewer attention heads
    of the same width, sublayers in proportion, random weights that are as large for its width as
    the teacher's were for its own."""
    if not hasattr(config, "intermediate_size"):
        raise BioclinError(
            f"width = {width}: the shape of a {config.model_type} encoder is stated in other words "
            "than BERT's, so that it cannot be made narrower; use --layers or --start-from"
        )
    head_width = config.hidden_size // config.num_attention_heads
    if width < head_width or width % head_width:
        raise BioclinError(
            f"width = {width}: want a multiple of {head_width}, the width of the teacher's "
            "attention heads"
        )
    if layers is not None and layers < 1:
        raise BioclinError(f"layers = {layers}: want at least one")
    share = width / config.hidden_size
    narrow = copy.deepcopy(config)
    narrow.hidden_size = width
    narrow.num_attention_heads = width // head_width
    narrow.intermediate_size = round(config.intermediate_size * share)
    narrow.num_hidden_layers = layers or config.num_hidden_layers
    if isinstance(getattr(narrow, "attention_window", None), list):  # Longformer: one a layer
        narrow.attention_window = narrow.attention_window[: narrow.num_hidden_layers]
    narrow.initializer_range = config.initializer_range / math.sqrt(share)
    return narrow


def check_objective(objective: Objective) -> None:
    """RAISES (BioclinError): For a temperature or weights that mean nothing."""
    weights = (objective.text, objective.scores, objective.vectors)
    if objective.temperature <= 0 or min(weights) < 0 or not sum(weights):
        raise BioclinError(
            f"weights = {weights}, temperature = {objective.temperature}: want weights of 0 and "
            "more, not all 0, and a temperature above 0"
        )


def check_same_vocabulary(
    student: str,
    student_pieces: PreTrainedTokenizerFast,
    teacher: str,
    teacher_pieces: PreTrainedTokenizerFast,
) -> None:
    """RAISES (BioclinError): If a piece has another number, or a special piece another role."""
    ours, theirs = (
        {*tokenizer.get_vocab().items(), *((name, getattr(tokenizer, name)) for name in SPECIAL)}
        for tokenizer in (student_pieces, teacher_pieces)
    )
    if ours != theirs:
        raise BioclinError(
            f"The student {student} ({len(student_pieces)} pieces) and the teacher {teacher} "
            f"({len(teacher_pieces)} pieces) have different vocabularies, and scores of different "
            "pieces cannot be compared: make the student from the teacher (--layers, --width), or "
            "give it the teacher's vocabulary first: `bioclin pretrain … --start-from "
            f"{student} --tokenizer {teacher}`"
        )


def teacher_perplexity(teacher: MaskedLM, trainer: MaskedTrainer) -> dict[str, float]:
    """RETURNS (dict[str, float]): Language -> perplexity on the student's held-out blocks."""
    blocks: Any = trainer.eval_dataset
    # A model of its own, since the trainer of an evaluation wraps its forward pass.
    judge = MaskedTrainer(
        model=MaskedLM(teacher.pretrained), args=trainer.args, eval_dataset=blocks
    )
    metrics = judge.evaluate(metric_key_prefix="teacher")
    return {lang: round(math.exp(metrics[f"teacher_{lang}_loss"]), 3) for lang in blocks}
