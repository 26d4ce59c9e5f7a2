"""Train the classifiers that read the stem and the qualifier of a code in a mention."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from math import log

import numpy as np
import torch
from torch import Tensor, nn

from ..codes import CodeClassifier, are_codes, hash_parts, split_code
from ..kb.knowledge_base import KnowledgeBase
from ..learned import N_FOLDS, FoldMentions

# Chosen on CANTEMIST's dev mentions.
WIDTH, EPOCHS, BATCH, DROPOUT = 64, 20, 256, 0.5
MIN_STEPS = 300  # with few mentions
LEARN_RATE, WEIGHT_DECAY, SPREAD = 0.01, 0.05, 0.07

# Text, stem and qualifier of mentions.
Code = tuple[str, str, str]


def train_codes(mentions: FoldMentions, kb: KnowledgeBase) -> dict[int | None, CodeClassifier]:
    """Train classifiers of codes, if the ids of a knowledge base are such codes.

    mentions (FoldMentions): Counts of the training mentions.
    RETURNS (dict[int | None, CodeClassifier]): One without the mentions of each fold, and under
        None one with all; {} if the ids are not composed.
    """
    counts: dict[int, Counter[Code]] = defaultdict(Counter)
    for mention, n in mentions.items():
        row = kb.number(mention.kb_id)
        if row is not None:
            stem, qualifier = split_code(str(kb.ids[row]))
            counts[mention.fold][mention.text, stem, qualifier] += n
    codes = {code for fold in counts.values() for code in fold}
    if not any(qualifier for _, _, qualifier in codes) or not are_codes(kb):
        return {}
    stems = sorted({stem for _, stem, _ in codes})
    qualifiers = sorted({qualifier for _, _, qualifier in codes})
    classifiers: dict[int | None, CodeClassifier] = {}
    for fold in (None, *range(N_FOLDS)):
        seen: Counter[Code] = Counter()
        for other, found in counts.items():
            if other != fold:
                seen.update(found)
        classifiers[fold] = _train(seen, stems, qualifiers)
    return classifiers


class _Model(nn.Module):
    """The weights of a `CodeClassifier`, under the same names."""

    def __init__(self, n_parts: int, n_stems: int, n_qualifiers: int) -> None:
        super().__init__()
        self.words = nn.Parameter(torch.randn(n_parts, WIDTH) * SPREAD)
        self.stems = nn.Parameter(torch.randn(n_stems, WIDTH) * SPREAD)
        self.stem_bias = nn.Parameter(torch.zeros(n_stems))
        self.qualifiers = nn.Parameter(torch.randn(n_qualifiers, WIDTH) * SPREAD)
        self.qualifier_bias = nn.Parameter(torch.zeros(n_qualifiers))
        self.usual = nn.Parameter(torch.zeros(n_stems, n_qualifiers))

    def forward(self, texts: Sequence[Sequence[int]], stem: Tensor) -> tuple[Tensor, Tensor]:
        """Score stems, and qualifiers of the right stem.

        texts (Sequence[Sequence[int]]): The parts of each text.
        stem (Tensor): (n,) the right ones.
        RETURNS (tuple[Tensor, Tensor]): (n, n_stems), (n, n_qualifiers).
        """
        starts = torch.tensor(np.cumsum([0, *map(len, texts[:-1])]))
        parts = torch.tensor([part for parts in texts for part in parts], dtype=torch.long)
        kept = (torch.rand(len(parts)) >= DROPOUT).float() / (1 - DROPOUT)
        vectors = nn.functional.embedding_bag(
            parts, self.words, starts, mode="sum", per_sample_weights=kept
        )
        return (
            vectors @ self.stems.T + self.stem_bias,
            vectors @ self.qualifiers.T + self.qualifier_bias + self.usual[stem],
        )


def _train(counts: Counter[Code], stems: list[str], qualifiers: list[str]) -> CodeClassifier:
    hashed = [np.array(hash_parts(text), np.uint32) for text, _, _ in counts]
    parts = np.unique(np.concatenate(hashed))
    texts = [np.searchsorted(parts, own).tolist() for own in hashed]
    rows = {stem: i for i, stem in enumerate(stems)}
    columns = {qualifier: i for i, qualifier in enumerate(qualifiers)}
    stem = torch.tensor([rows[stem] for _, stem, _ in counts])
    qualifier = torch.tensor([columns[qualifier] for _, _, qualifier in counts])
    # A mention that is frequent in the notes is not that much surer.
    weight = torch.tensor([1 + log(n) for n in counts.values()])
    torch.manual_seed(0)
    model = _Model(len(parts), len(stems), len(qualifiers))
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARN_RATE, weight_decay=WEIGHT_DECAY)
    n_batches = -(-len(texts) // BATCH)
    n_epochs = max(EPOCHS, -(-MIN_STEPS // n_batches))
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, n_epochs * n_batches)
    loss = nn.CrossEntropyLoss(reduction="none")
    for _ in range(n_epochs):
        for batch in torch.randperm(len(texts)).split(BATCH):
            of_stems, of_qualifiers = model([texts[i] for i in batch.tolist()], stem[batch])
            losses = loss(of_stems, stem[batch]) + loss(of_qualifiers, qualifier[batch])
            optimizer.zero_grad()
            (losses * weight[batch]).mean().backward()
            optimizer.step()
            schedule.step()
    weights = {name: values.detach().numpy() for name, values in model.named_parameters()}
    return CodeClassifier(stems, qualifiers, parts, weights)
