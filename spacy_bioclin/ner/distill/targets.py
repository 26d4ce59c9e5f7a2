"""Knowledge distillation: a student learns the teacher's posterior probability of every tag of
every token, in addition to gold tags or without any (Hinton et al. 2015; for sequences Wang et al.
2020, "Structure-level knowledge distillation for multilingual sequence labeling").

The targets of a Doc are in its user_data, so that training needs no teacher:

    {"silver": bool, "temperature": float, "layers": {layer: {"tag_sets": …, "marginals": …}}}

"silver" means that the spans of the Doc are the teacher's. A layer is a `spans_key`, or "ents".
Marginals are float16, (n_tokens, n_layers, n_tags).
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from spacy.attrs import IDX, LENGTH
from spacy.training import Example
from torch import Tensor

from ...corpora.readers import TEACHER_KEY
from ...errors import BioclinError
from ...types import IntArray
from .. import crf
from ..inference import Grammar, make_batches, make_joint_batches, mean_marginals
from ..model import AnyScores, TagScores
from ..tags import MISSING, TagSet

# Added to a probability that may be zero, so that its logarithm is finite.
TINY = 1e-30


class DistillationTargets(NamedTuple):
    """The teacher's probabilities for the tokens of a batch.

    marginals (Tensor): Probabilities of tags, float64, zeros for tokens without a target,
        (n_tokens, n_layers, n_tags).
    silver (NDArray): Whether the gold spans of a token are the teacher's, bool, (n_tokens,).
    temperature (float): Divisor of the teacher's scores.
    """

    marginals: Tensor
    silver: NDArray[np.bool_]
    temperature: float


def tag_marginals(
    scores: AnyScores, grammar: Grammar, *, temperature: float
) -> list[NDArray[np.float16]]:
    """Find the probability of each tag of each token, given the whole text.

    scores (TagScores | list[TagScores]): Of one model, or of each member of an ensemble, whose
        probabilities are averaged.
    grammar (Grammar): On the CPU.
    temperature (float): Divides the scores; above 1 the probabilities are more even.
    RETURNS (list[NDArray]): Per Doc, (n_tokens, n_layers, n_tags).
    """
    members = [scores] if isinstance(scores, TagScores) else scores
    tempered = [member.map(lambda score: score.cpu() / temperature) for member in members]
    found = np.zeros(members[0].emissions.shape, dtype=np.float16)
    for batches in make_joint_batches(tempered, grammar):
        fbs = [crf.forward_backward(batch.potentials, batch.packing) for batch in batches]
        rows = (batches[0].first + batches[0].packing.rows).numpy()
        found[rows] = mean_marginals(fbs).transpose(0, 1).numpy()
    return np.split(found, np.cumsum(members[0].lengths)[:-1])


def pack_layer(
    marginals: NDArray[np.float16], tag_sets: list[TagSet]
) -> dict[str, list[Any] | NDArray[np.float16]]:
    """Make the entry of a layer under "layers" in a Doc's user_data."""
    return {
        "tag_sets": [[tags.scheme, list(tags.labels)] for tags in tag_sets],
        "marginals": marginals,
    }


def read_targets(
    examples: Iterable[Example], layer: str, tag_sets: list[TagSet], name: str
) -> DistillationTargets | None:
    """Collect the targets for the tokens of the predicted Docs from the reference Docs.

    A token that the reference does not have has no target.

    layer (str): A spans_key, or "ents".
    tag_sets (list[TagSet]): Tags of the student.
    name (str): Name of the student's component, for errors.
    RETURNS (DistillationTargets | None): None if no reference has targets for this layer.
    RAISES (BioclinError): Teacher and student have different tags, or the Docs were annotated at
        different temperatures.
    """
    marginals, silver, temperatures = [], [], set()
    for eg in examples:
        found = np.zeros((len(eg.predicted), len(tag_sets), tag_sets[0].n_tags), dtype=np.float64)
        stored = eg.reference.user_data.get(TEACHER_KEY, {"silver": False, "layers": {}})
        if layer in stored["layers"]:
            entry = stored["layers"][layer]
            teacher_tags = [TagSet(scheme, tuple(labels)) for scheme, labels in entry["tag_sets"]]
            if teacher_tags != tag_sets:
                raise BioclinError(
                    f"[components.{name}] has {_describe(tag_sets)}, but the teacher of this "
                    f"corpus has {_describe(teacher_tags)}: set scheme, nested and "
                    f"[initialize.components.{name}.labels] as the teacher has them"
                )
            rows, reference_rows = _match_tokens(eg)
            known = entry["marginals"][reference_rows].astype(np.float64)
            found[rows] = known / known.sum(axis=-1, keepdims=True)  # float16 rounded them
            temperatures.add(stored["temperature"])
        marginals.append(found)
        silver.append(np.full(len(eg.predicted), stored["silver"]))
    if not temperatures:
        return None
    if len(temperatures) > 1:
        raise BioclinError(
            f"[components.{name}] learns from Docs of several temperatures, "
            f"{sorted(temperatures)}: annotate all of them at the same temperature"
        )
    tensor = torch.from_numpy(np.concatenate(marginals))
    return DistillationTargets(tensor, np.concatenate(silver), temperatures.pop())


def _describe(tag_sets: list[TagSet]) -> str:
    labels = ", ".join(label for tag_set in tag_sets for label in tag_set.labels)
    return f"{len(tag_sets)} layers of {tag_sets[0].scheme} tags for {labels}"


def _match_tokens(eg: Example) -> tuple[IntArray, IntArray]:
    """Find the tokens that both Docs have: their indices in the predicted Doc and the reference."""
    arrays = (doc.to_array([IDX, LENGTH]) for doc in (eg.predicted, eg.reference))
    tables = [np.asarray(array, np.uint64).reshape(-1, 2) for array in arrays]
    one, other = ((table[:, 0] << np.uint64(32)) + table[:, 1] for table in tables)
    _, *indices = np.intersect1d(one, other, assume_unique=True, return_indices=True)
    return indices[0], indices[1]


def mix_losses(
    gold: tuple[float, TagScores],
    scores: TagScores,
    tags: Tensor,
    targets: DistillationTargets,
    grammar: Grammar,
    *,
    teacher_weight: float,
) -> tuple[float, TagScores]:
    """Mix the loss on gold tags with the loss on the teacher's probabilities.

    A token that has both learns `teacher_weight` from the teacher and the rest from the gold tag.

    gold (tuple): Loss per annotated token and its gradient, from `crf_loss` or `token_loss`.
    tags (Tensor): The gold tags, MISSING where there are none, (n_tokens, n_layers).
    RETURNS (tuple): Loss per token and layer that has a tag or a target (nats), and its gradient.
    """
    known = tags != MISSING
    marginals = targets.marginals.to(tags.device)
    taught = marginals.sum(dim=-1) > 0
    weights = torch.where(known, teacher_weight, 1.0) * taught
    soft, d_soft = teacher_loss(
        scores, marginals, weights, grammar, temperature=targets.temperature
    )
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
    """Compute the Kullback-Leibler divergence of the student's tag marginals from the teacher's,
    both at the same temperature, times the temperature's square, which keeps the size of the
    gradient (Hinton et al. 2015, section 2).

    marginals (Tensor): Of the teacher, float64, (n_tokens, n_layers, n_tags).
    weights (Tensor): Weight of each token's divergence; 0 leaves it out, (n_tokens, n_layers).
    RETURNS (tuple): Loss summed over tokens and layers (nats), and its gradient with respect to the
        scores.
    """
    d_emissions = torch.zeros_like(scores.emissions)
    shared = [torch.zeros_like(score, dtype=torch.float64) for score in scores[1:4]]
    total = 0.0
    for batch in make_batches(scores.map(lambda score: score / temperature), grammar):
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
    return total * temperature**2, d_scores.map(lambda gradient: gradient * temperature)
