"""Learning from a teacher: its posterior probability of every tag of every token beside, or in
place of, the tags that people gave (Hinton et al. 2015; for sequences Wang et al. 2020,
"Structure-level knowledge distillation for multilingual sequence labeling").

A Doc carries what its teacher says of it in its user_data, so that training needs no teacher:

    {"silver": bool, "temperature": float, "layers": {layer: {"tag_sets": …, "marginals": …}}}

"silver" says that its spans are the teacher's own. A layer is a `spans_key`, or "ents". Marginals
are float16, (n_tokens, n_layers, n_tags).
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from spacy.attrs import IDX, LENGTH
from spacy.training import Example
from torch import Tensor

from ...corpora.readers import TEACHER_KEY
from ...errors import BioclinError
from .. import crf
from ..inference import Grammar, make_batches
from ..model import TagScores
from ..tags import MISSING, TagSet

# Keeps the logarithm of a probability that float64 cannot hold finite.
TINY = 1e-30


class Lesson(NamedTuple):
    """What the teacher says about the tokens of a batch.

    marginals (Tensor): Probabilities of tags, float64; zeros for tokens that it says nothing of,
        (n_tokens, n_layers, n_tags).
    silver (NDArray): True for tokens whose spans are the teacher's own, bool, (n_tokens,).
    temperature (float): By which the teacher's scores were divided.
    """

    marginals: Tensor
    silver: NDArray[np.bool_]
    temperature: float


def tag_marginals(
    scores: TagScores, grammar: Grammar, *, temperature: float
) -> list[NDArray[np.float16]]:
    """Find the probability of each tag of each token, given the whole text.

    grammar (Grammar): On the CPU.
    temperature (float): Divides the scores; above 1 the probabilities are more even.
    RETURNS (list[NDArray]): Per Doc, (n_tokens, n_layers, n_tags).
    """
    tempered = _each(scores, lambda score: score.cpu() / temperature)
    found = np.zeros(scores.emissions.shape, dtype=np.float16)
    for batch in make_batches(tempered, grammar):
        fb = crf.forward_backward(batch.potentials, batch.packing)
        rows = (batch.first + batch.packing.rows).numpy()
        found[rows] = (fb.alpha * fb.beta).transpose(0, 1).numpy()
    return np.split(found, np.cumsum(scores.lengths)[:-1])


def write_lesson(
    marginals: NDArray[np.float16], tag_sets: list[TagSet]
) -> dict[str, list[Any] | NDArray[np.float16]]:
    """RETURNS (dict): The entry of a layer under "layers"."""
    return {
        "tag_sets": [[tags.scheme, list(tags.labels)] for tags in tag_sets],
        "marginals": marginals,
    }


def read_lesson(
    examples: Iterable[Example], layer: str, tag_sets: list[TagSet], name: str
) -> Lesson | None:
    """Collect what the references' teacher says about the tokens of the predicted Docs. Of a token
    that the reference does not have it says nothing.

    layer (str): A spans_key, or "ents".
    tag_sets (list[TagSet]): Of the student.
    name (str): Of the student's component, for errors.
    RETURNS (Lesson | None): None if no Doc has been seen by a teacher of this layer.
    RAISES (BioclinError): The teacher's tags are not the student's, or the temperature is not the
        same for all Docs.
    """
    marginals, silver, temperatures = [], [], set()
    for eg in examples:
        found = np.zeros((len(eg.predicted), len(tag_sets), tag_sets[0].n_tags), dtype=np.float64)
        said = eg.reference.user_data.get(TEACHER_KEY, {"silver": False, "layers": {}})
        if layer in said["layers"]:
            entry = said["layers"][layer]
            theirs = [TagSet(scheme, tuple(labels)) for scheme, labels in entry["tag_sets"]]
            if theirs != tag_sets:
                raise BioclinError(
                    f"[components.{name}] has {_describe(tag_sets)}, but the teacher of this "
                    f"corpus has {_describe(theirs)}: set scheme, nested and "
                    f"[initialize.components.{name}.labels] as the teacher has them"
                )
            ours, rows = _same_tokens(eg)
            known = entry["marginals"][rows].astype(np.float64)
            found[ours] = known / known.sum(axis=-1, keepdims=True)  # float16 rounded them
            temperatures.add(said["temperature"])
        marginals.append(found)
        silver.append(np.full(len(eg.predicted), said["silver"]))
    if not temperatures:
        return None
    if len(temperatures) > 1:
        raise BioclinError(
            f"[components.{name}] learns from Docs of several temperatures, "
            f"{sorted(temperatures)}: annotate all of them with the same"
        )
    tensor = torch.from_numpy(np.concatenate(marginals))
    return Lesson(tensor, np.concatenate(silver), temperatures.pop())


def _describe(tag_sets: list[TagSet]) -> str:
    labels = ", ".join(label for tag_set in tag_sets for label in tag_set.labels)
    return f"{len(tag_sets)} layers of {tag_sets[0].scheme} tags for {labels}"


def _same_tokens(eg: Example) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """RETURNS (tuple): Tokens of the predicted Doc that the reference has too, and which they are
    there."""
    offsets = [doc.to_array([IDX, LENGTH]).reshape(-1, 2) for doc in (eg.predicted, eg.reference)]
    ours, theirs = ([(int(i) << 32) + int(n) for i, n in table] for table in offsets)
    if ours == theirs:
        return np.arange(len(ours)), np.arange(len(ours))
    _, mine, rows = np.intersect1d(ours, theirs, assume_unique=True, return_indices=True)
    return mine, rows


def mix_losses(
    gold: tuple[float, TagScores],
    scores: TagScores,
    tags: Tensor,
    lesson: Lesson,
    grammar: Grammar,
    *,
    teacher_weight: float,
) -> tuple[float, TagScores]:
    """A token with a gold tag learns `teacher_weight` from its teacher and the rest from the gold
    tag; a token without one learns from its teacher alone.

    gold (tuple): Loss per annotated token and its gradient, as `crf_loss` and `token_loss` give it.
    tags (Tensor): The gold tags, MISSING where there are none, (n_tokens, n_layers).
    RETURNS (tuple): Loss per token and layer that teaches anything (nats), and its gradient.
    """
    known = tags != MISSING
    marginals = lesson.marginals.to(tags.device)
    taught = marginals.sum(dim=-1) > 0
    weights = torch.where(known, teacher_weight, 1.0) * taught
    soft, d_soft = teacher_loss(scores, marginals, weights, grammar, temperature=lesson.temperature)
    norm = max(1, int((known | taught).sum()))
    share = (1 - teacher_weight) * int(known.sum()) / norm
    emissions, transitions, start, end = (
        share * hard + d / norm for hard, d in zip(gold[1][:4], d_soft[:4], strict=True)
    )
    gradient = TagScores(emissions, transitions, start, end, scores.lengths)
    return share * gold[0] + soft / norm, gradient


def teacher_loss(
    scores: TagScores, marginals: Tensor, weights: Tensor, grammar: Grammar, *, temperature: float
) -> tuple[float, TagScores]:
    """Kullback-Leibler divergence of the student's tag marginals from the teacher's, both at the
    same temperature, times its square, which keeps the size of the gradient (Hinton et al. 2015,
    section 2).

    marginals (Tensor): The teacher's, float64, (n_tokens, n_layers, n_tags).
    weights (Tensor): Of each token's divergence; 0 leaves it out, (n_tokens, n_layers).
    RETURNS (tuple): Loss summed over tokens and layers (nats), and its gradient with respect to the
        scores.
    """
    d_emissions = torch.zeros_like(scores.emissions)
    shared = [torch.zeros_like(score, dtype=torch.float64) for score in scores[1:4]]
    total = 0.0
    for batch in make_batches(_each(scores, lambda score: score / temperature), grammar):
        rows = batch.first + batch.packing.rows
        wanted, weight = marginals[rows].transpose(0, 1), weights[rows].transpose(0, 1)
        potentials = [potential.detach().requires_grad_() for potential in batch.potentials]
        with crf.one_thread(), torch.enable_grad():
            found = crf.tag_marginals(crf.Potentials(*potentials), batch.packing)
            divergence = wanted * (torch.log(wanted + TINY) - torch.log(found + TINY))
            loss = (divergence.sum(dim=-1) * weight).sum()
            gradients = torch.autograd.grad(loss, potentials)
        total += float(loss.detach())
        d_emissions[rows] = gradients[0].transpose(0, 1).to(d_emissions.dtype)
        for gradient, part in zip(shared, gradients[1:], strict=True):
            gradient += part
    transitions, start, end = (gradient.to(d_emissions.dtype) for gradient in shared)
    d_scores = TagScores(d_emissions, transitions, start, end, scores.lengths)
    return total * temperature**2, _each(d_scores, lambda gradient: gradient * temperature)


def _each(scores: TagScores, function: Callable[[Tensor], Tensor]) -> TagScores:
    emissions, transitions, start, end = (function(score.detach()) for score in scores[:4])
    return TagScores(emissions, transitions, start, end, scores.lengths)
