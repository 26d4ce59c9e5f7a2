"""Distil a large encoder into a small one for any task (Sanh et al. 2019; Lewis et al. 2020).

The small masked language model, the student, learns from the text and from the large one, the
teacher.
"""

import copy
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, cross_entropy, kl_div, log_softmax
from transformers import AutoModelForMaskedLM, PreTrainedTokenizerFast

from ..encoders import loading
from ..encoders.files import open_config
from ..errors import BioclinError
from .masked_lm import MaskedLM, make_trainer, open_model, train_masked
from .masked_trainer import MaskedTrainer
from .masking import NO_LOSS
from .record import flop_per_piece
from .settings import PretrainSettings
from .trainer import open_tokenizer, open_training, set_up_layers
from .warm_start import SPECIAL, cut_attention_windows


class Objective(NamedTuple):
    """The loss of the student, a weighted sum of three losses.

    text (float): Weight of the cross-entropy with the pieces of the text.
    scores (float): Weight of the divergence from the teacher's distribution over the pieces.
    vectors (float): Weight of the cosine distance from the teacher's last layer.
    temperature (float): Divisor of the scores of both before the softmax.
    """

    text: float
    scores: float
    vectors: float
    temperature: float


def divergence(student: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """Compute the mean of KL(teacher || student) times the squared temperature.

    The factor keeps the size of the gradients (Hinton et al. 2015).

    student, teacher (Tensor): (n_pieces, vocab_size) scores.
    RETURNS (Tensor): In nats.
    """
    log_q, log_p = (log_softmax(x.float() / temperature, dim=-1) for x in (student, teacher))
    return kl_div(log_q, log_p, log_target=True, reduction="batchmean") * temperature**2


def cosine_distance(student: Tensor, teacher: Tensor) -> Tensor:
    """Compute the mean of 1 - cosine, from 0 to 2, over the rows of two (n_pieces, width)."""
    return (1 - cosine_similarity(student.float(), teacher.float(), dim=-1)).mean()


class DistilledLM(MaskedLM):
    """A student with its teacher. In evaluation it is a plain `MaskedLM`.

    Scores are compared at the pieces to predict and vectors at all text, as in the code of
    DistilBERT. A learned projection maps the student's vectors to the teacher's width, even if the
    widths are equal.

    student (transformers.PreTrainedModel): Model with the teacher's vocabulary.
    teacher (MaskedLM): The teacher.
    """

    def __init__(self, student: Any, teacher: MaskedLM, objective: Objective) -> None:
        super().__init__(student)
        self.objective = objective
        width = teacher.pretrained.config.hidden_size
        self.projection = nn.Linear(student.config.hidden_size, width)
        # In a tuple, where torch does not find it, the teacher is neither trained nor saved.
        self._teacher = (teacher.eval().requires_grad_(False),)

    @property
    def teacher(self) -> MaskedLM:
        """The teacher."""
        return self._teacher[0]

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "DistilledLM":
        """Move the teacher along with the student."""
        self.teacher._apply(fn, recurse)
        return super()._apply(fn, recurse)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor
    ) -> dict[str, Tensor]:
        """Compute the loss of a batch.

        input_ids, attention_mask, labels (Tensor): As in `MaskedLM.forward`.
        RETURNS (dict[str, Tensor]): "loss": in training the objective, in evaluation the student's
            mean cross-entropy, so that perplexities are comparable. "n_predicted": number of
            pieces to predict, by which the losses of an update's parts are weighted.
        """
        if not self.training:
            return super().forward(input_ids, attention_mask, labels)
        chosen, is_text = labels != NO_LOSS, attention_mask.bool()
        with torch.no_grad():
            target_vectors = self.teacher.hidden(input_ids, attention_mask)
            target_scores = self.teacher.logits(target_vectors[chosen])
        vectors = self.hidden(input_ids, attention_mask)
        scores = self.logits(vectors[chosen])
        # Some vocabularies are padded to a round size.
        n = min(scores.shape[1], target_scores.shape[1])
        weights = self.objective
        loss = weights.text * cross_entropy(scores.float(), labels[chosen])
        loss += weights.scores * divergence(
            scores[:, :n], target_scores[:, :n], weights.temperature
        )
        projected = self.projection(vectors[is_text])
        loss += weights.vectors * cosine_distance(projected, target_vectors[is_text])
        return {"loss": loss, "n_predicted": chosen.sum()}


def distill(
    teacher: str,
    corpus: Path,
    out: Path,
    *,
    start_from: str | None,
    layers: int | None,
    width: int | None,
    objective: Objective,
    settings: PretrainSettings,
    resume: bool,
) -> dict[str, Any]:
    """Train a student, and write the best one on held-out text.

    teacher (str): Folder or hub name of an encoder with its masked-language-model head.
    corpus (Path): Folder with PART.train.txt and PART.held-out.txt of `bioclin clean-text`.
    out (Path): Folder for checkpoints, `encoder` (only the student), and distillation.json.
    start_from (str | None): Encoder that becomes the student; None for the teacher's lowest layers.
    layers (int | None): Keep only this many of the lowest layers.
    width (int | None): Make a student like the teacher but with this width and random weights.
    resume (bool): Resume from the last checkpoint, with the same losses as without interruption.
    RETURNS (dict): The content of distillation.json. Its perplexities are the student's.
    RAISES (BioclinError): No student is named, the teacher has no head, or the two have different
        vocabularies.
    """
    check_objective(objective)
    read = {"corpus": corpus, "teacher": teacher, "start_from": start_from}
    more = {"layers": layers, "width": width, "objective": list(objective)}
    with open_training(out, settings, read, more, resume=resume) as last:
        pieces = open_tokenizer(teacher)
        if start_from is not None:
            check_same_vocabulary(start_from, open_tokenizer(start_from), teacher, pieces)
        torch.manual_seed(settings.seed)
        dropouts = settings.dropout, settings.attention_dropout
        student = open_student(teacher, start_from, layers, width, *dropouts)
        model = DistilledLM(student, open_teacher(teacher), objective)
        trainer = make_trainer(model, pieces, corpus, out, settings)
        if trainer.args.n_gpu > 1:
            raise BioclinError(
                f"distill sees {trainer.args.n_gpu} GPUs: start it with `torchrun --nproc-per-node "
                f"{trainer.args.n_gpu} -m spacy_bioclin distill …`, or show it one with "
                "CUDA_VISIBLE_DEVICES=0"
            )
        # The teacher's forward pass costs a third of training it.
        trainer.flop_per_piece += (
            flop_per_piece(model.teacher, settings.length, settings.mask_rate) / 3
        )
        about = {
            "teacher": Path(teacher).name,
            "teacher_perplexity": teacher_perplexity(model.teacher, trainer),
            "start_from": Path(start_from).name if start_from else None,
            "layers": student.config.num_hidden_layers,
            "width": student.config.hidden_size,
            "objective": objective._asdict(),
        }
        return train_masked(trainer, pieces, settings, out / "distillation.json", about, last)


def open_teacher(name: str) -> MaskedLM:
    """Open a teacher, in fp32.

    RAISES (BioclinError): Its head is missing. A random head teaches nothing.
    """
    model, loaded = loading.open_model(AutoModelForMaskedLM, name)
    missing = loaded["missing_keys"]
    if missing:
        raise BioclinError(
            f"The teacher {name} has no complete masked-language-model head: {len(missing)} "
            f"tensors are missing, {missing[0]} first. Use the original encoder or one from "
            "`bioclin pretrain`, not one from a fine-tuned pipeline"
        )
    return MaskedLM(set_up_layers(model, dropout=0.0))


def open_student(
    teacher: str,
    start_from: str | None,
    layers: int | None,
    width: int | None,
    dropout: float,
    attention_dropout: float = 0.0,
) -> Any:
    """Open or make a student. See `distill` for the arguments.

    RETURNS (transformers.PreTrainedModel): Encoder and head, in fp32.
    """
    if width is not None:
        if start_from is not None:
            raise BioclinError(
                f"width = {width} and start_from = {start_from}: give only one of them; an "
                "existing encoder keeps its width"
            )
        config = narrow_config(open_config(teacher), layers, width)
        student = AutoModelForMaskedLM.from_config(config)
        return set_up_layers(student, dropout, attention_dropout)
    if start_from is None and layers is None:
        raise BioclinError(
            f"No student is named: --layers N cuts one from {teacher}, --width N makes a narrower "
            "one, --start-from takes an existing encoder"
        )
    return open_model(start_from or teacher, None, layers, dropout, attention_dropout)


def narrow_config(config: Any, layers: int | None, width: int) -> Any:
    """Copy a config for a narrower encoder.

    It has fewer attention heads of the same width, proportional sublayers, and a range of the
    random weights that is scaled to its width.

    RETURNS (transformers.PretrainedConfig): The copy.
    """
    if not hasattr(config, "intermediate_size"):
        raise BioclinError(
            f"width = {width}: a {config.model_type} encoder cannot be made narrower, since its "
            "config has no intermediate_size; use --layers or --start-from"
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
    cut_attention_windows(narrow)
    narrow.initializer_range = config.initializer_range / math.sqrt(share)
    return narrow


def check_objective(objective: Objective) -> None:
    """Check the weights and the temperature.

    RAISES (BioclinError): A weight is negative, all are 0, or the temperature is not above 0.
    """
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
    """Check that student and teacher have the same vocabulary.

    RAISES (BioclinError): A piece has another id, or a special piece another role.
    """
    student_entries, teacher_entries = (
        {*tokenizer.get_vocab().items(), *((name, getattr(tokenizer, name)) for name in SPECIAL)}
        for tokenizer in (student_pieces, teacher_pieces)
    )
    if student_entries != teacher_entries:
        raise BioclinError(
            f"The student {student} ({len(student_pieces)} pieces) and the teacher {teacher} "
            f"({len(teacher_pieces)} pieces) have different vocabularies, and scores of different "
            "pieces cannot be compared: make the student from the teacher (--layers, --width), or "
            "give it the teacher's vocabulary first: `bioclin pretrain … --start-from "
            f"{student} --tokenizer {teacher}`"
        )


def teacher_perplexity(teacher: MaskedLM, trainer: MaskedTrainer) -> dict[str, float]:
    """Measure the teacher's perplexity on the held-out blocks of the student.

    RETURNS (dict[str, float]): Language -> perplexity.
    """
    blocks: Any = trainer.eval_dataset
    # A new model, since a trainer wraps the forward pass of its model for the evaluation.
    evaluator = MaskedTrainer(
        model=MaskedLM(teacher.pretrained), args=trainer.args, eval_dataset=blocks
    )
    metrics = evaluator.evaluate(metric_key_prefix="teacher")
    return {lang: round(math.exp(metrics[f"teacher_{lang}_loss"]), 3) for lang in blocks}
