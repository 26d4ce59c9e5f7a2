"""Train a ranker on linked mentions."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ...errors import BioclinError
from ..candidates import CODE_FEATURES, COLUMN, FEATURES, N_FEATURES, CandidateGenerator, Pool
from ..learned import N_FOLDS
from ..notes import Evidence, NoteConcepts, add_support
from ..ranking import NIL, Ranker


class TrainMention(NamedTuple):
    """A linked mention, or a part of a composite one.

    text (str): The text of the note, with its abbreviations expanded.
    ids (tuple[str, ...]): Ids of the knowledge base, any of which is right; () is NIL.
    note (int): Number of its note; mentions in the same fold of notes do not help each other.
    written (str): The text as the note has it, if abbreviations were expanded in it. It is learned,
        too: other notes use the same short form without a definition.
    """

    text: str
    ids: tuple[str, ...]
    note: int
    written: str = ""

    @property
    def forms(self) -> tuple[str, ...]:
        """The text, and the text as the note has it if it differs."""
        return (self.text, self.written) if self.written else (self.text,)

    @property
    def fold(self) -> int:
        """Fold of its note."""
        return self.note % N_FOLDS


class Case(NamedTuple):
    """What training mentions with the same features and meaning have in common.

    text (str), ids (tuple[str, ...]): As in `TrainMention`.
    fold (int): Fold of the notes.
    support (tuple[int, ...]): Candidates that other texts of the note surely mean.
    """

    text: str
    ids: tuple[str, ...]
    fold: int
    support: tuple[int, ...]


class RankerSettings(NamedTuple):
    """Settings of the ranker and its training.

    hidden (int): Width of the hidden layer.
    epochs (int): Passes over the mentions.
    learn_rate (float): Initial learning rate of AdamW.
    weight_decay (float): Weight decay of AdamW.
    batch (int): Different mentions in an update.
    seed (int): Random seed for weights and order.
    """

    hidden: int = 32
    epochs: int = 40
    learn_rate: float = 0.01
    weight_decay: float = 0.01
    batch: int = 256
    seed: int = 0


def fit_ranker(
    generator: CandidateGenerator,
    mentions: Sequence[TrainMention],
    settings: RankerSettings,
) -> tuple[Ranker, dict[str, Any]]:
    """Train a ranker on the candidates of mentions, found as if their fold had not been seen.

    generator (CandidateGenerator): Knows the names that were learned from these mentions.
    mentions (Sequence[TrainMention]): All mentions, with repetitions.
    settings (RankerSettings): Settings of the training.
    RETURNS (tuple[Ranker, dict]): The ranker, and counts: mentions, different forms of them, those
        whose concept was found, loss of the first and last epoch.
    RAISES (BioclinError): No mention has its concept among the candidates.
    """
    forms = list(dict.fromkeys((form, m.fold) for m in mentions for form in m.forms))
    looked_up = generator([form for form, _ in forms], [fold for _, fold in forms])
    known = dict(zip(forms, looked_up, strict=True))
    counts = _count_cases(mentions, known)
    cases = list(counts)
    pools = [add_support(known[case.text, case.fold], case.support) for case in cases]
    kb = generator.kb
    wanted = [{kb.number(id) for id in case.ids} - {None} for case in cases]
    found = {
        (case.text, case.ids, case.fold)
        for case, rows, pool in zip(cases, wanted, pools, strict=True)
        if rows & set(pool.concepts.tolist())
    }
    if not found:
        raise BioclinError(
            f"ranker: of {len(mentions):,} mentions none has its concept among the candidates: do "
            "the ids of the corpus belong to this knowledge base?"
        )
    features, gold, real = _pad(pools, wanted)
    weights = torch.tensor([counts[case] for case in cases], dtype=torch.float32)
    # Without codes, the features of codes are zero.
    names = [f for f in FEATURES if generator.codes is not None or f not in CODE_FEATURES]
    features = features[:, :, [COLUMN[name] for name in names]]
    model, losses = _train(features, gold, real, weights, settings)
    report = {
        "mentions": len(mentions),
        "different": len({(case.text, case.ids) for case in cases}),
        "found": sum((m.text, m.ids, m.fold) in found for m in mentions),
        "loss": [losses[0], losses[-1]],
    }
    return Ranker.from_dict({"features": names, "weights": model}), report


def _count_cases(
    mentions: Sequence[TrainMention], pools: Mapping[tuple[str, int], Pool]
) -> Counter[Case]:
    """Count the different cases to learn from.

    pools (Mapping[tuple[str, int], Pool]): Form and fold of mentions -> candidates.
    """
    asked = dict.fromkeys((m.forms, form, m.fold) for m in mentions for form in m.forms)
    evidence = {key: Evidence.of(pools[key[1:]], *key[0]) for key in asked}
    notes = NoteConcepts()
    for m in mentions:
        notes.add(m.note, evidence[m.forms, m.text, m.fold])
    counts: Counter[Case] = Counter()
    for m in mentions:
        for form in m.forms:
            support = notes.support(m.note, evidence[m.forms, form, m.fold])
            counts[Case(form, m.ids, m.fold, support)] += 1
    return counts


def _pad(pools: Sequence[Pool], wanted: Sequence[Collection[Any]]) -> tuple[Tensor, Tensor, Tensor]:
    """Pad pools to the same size.

    RETURNS (tuple[Tensor, Tensor, Tensor]): (n, size, N_FEATURES) features, and two masks
        (n, size + 1) whose last column is NIL: what is right, and what is not padding.
    """
    size = max(len(pool.concepts) for pool in pools)
    features = torch.zeros(len(pools), size, N_FEATURES)
    gold = torch.zeros(len(pools), size + 1, dtype=torch.bool)
    real = torch.zeros(len(pools), size + 1, dtype=torch.bool)
    real[:, -1] = True
    for i, (pool, rows) in enumerate(zip(pools, wanted, strict=True)):
        n = len(pool.concepts)
        features[i, :n] = torch.from_numpy(pool.features)
        real[i, :n] = True
        gold[i, :n] = torch.tensor([int(c) in rows for c in pool.concepts], dtype=torch.bool)
        gold[i, -1] = not gold[i, :n].any()
    return features, gold, real


def _train(
    features: Tensor, gold: Tensor, real: Tensor, weights: Tensor, settings: RankerSettings
) -> tuple[dict[str, np.ndarray], list[float]]:
    """Train a network, and return the weights of a `Ranker` and the mean loss of each epoch."""
    torch.manual_seed(settings.seed)
    scale = 1 / features[real[:, :-1]].std(0).clamp(min=0.05)
    n_features = features.shape[-1]
    hidden, out = nn.Linear(n_features, settings.hidden), nn.Linear(settings.hidden, 1, bias=False)
    direct, nil = nn.Linear(n_features, 1, bias=False), nn.Parameter(torch.zeros(()))
    model = nn.ModuleList([hidden, out, direct])
    optimizer = torch.optim.AdamW(
        [*model.parameters(), nil], lr=settings.learn_rate, weight_decay=settings.weight_decay
    )
    n_steps = settings.epochs * -(-len(features) // settings.batch)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, n_steps)
    features = features * scale
    losses = []
    for _ in range(settings.epochs):
        total = 0.0
        for rows in torch.randperm(len(features)).split(settings.batch):
            x = features[rows]
            scores = (out(hidden(x).relu()) + direct(x)).squeeze(-1)
            scores = torch.cat([scores, nil.expand(len(rows), 1)], 1)
            scores = scores.masked_fill(~real[rows], -torch.inf)
            right = scores.masked_fill(~gold[rows], -torch.inf)
            loss = scores.logsumexp(1) - right.logsumexp(1)
            optimizer.zero_grad()
            (loss * weights[rows]).sum().div(weights[rows].sum()).backward()
            optimizer.step()
            schedule.step()
            total += float((loss.detach() * weights[rows]).sum())
        losses.append(total / float(weights.sum()))
    parts = {
        "scale": scale,
        "hidden": hidden.weight.T,
        "hidden_bias": hidden.bias,
        "out": out.weight[0],
        "direct": direct.weight[0],
        NIL: nil,
    }
    return {name: values.detach().numpy() for name, values in parts.items()}, losses
