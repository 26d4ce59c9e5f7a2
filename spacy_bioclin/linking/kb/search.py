"""Search a knowledge base for the concepts whose names are most like a text."""

from typing import Any

import numpy as np

from ..names.normalize import name_key
from .knowledge_base import KnowledgeBase


def find_concepts(kb: KnowledgeBase, text: str, top: int) -> list[dict[str, Any]]:
    """Find the concepts whose names are most like a text.

    top (int): How many concepts.
    RETURNS (list[dict[str, Any]]): id, name, score, why and types of each; first those with the
        same name, then those with a name of the same words, then by the cosine of the name.
    """
    key = name_key(text)
    found: dict[int, dict[str, Any]] = {}

    def add(names: np.ndarray, score: float, why: str) -> None:
        for row in names:
            concept = int(kb.name_concept[row])
            described = {
                "id": kb.ids[concept],
                "name": kb.name_of(concept),
                "score": round(score, 4),
                "why": f"{why}: {kb.names[row]}",
                "types": list(kb.types_of(concept)),
            }
            found.setdefault(concept, described)

    if key:
        add(kb.exact([text])[0], 1.0, "same name")
        add(kb.same_key([key])[0], 1.0, "same words")
        # A concept may have several of the names.
        rows, scores = kb.similar.search([key], 4 * top)
        for row, score in zip(rows[0], scores[0], strict=True):
            if row >= 0:
                add(kb.names_of_key(int(row)), float(score), "similar name")
    return list(found.values())[:top]
