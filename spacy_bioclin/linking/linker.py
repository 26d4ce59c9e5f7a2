"""From mentions to concepts: candidates, ranking and the choice, without spaCy."""

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .build import is_type
from .candidates import COLUMN, Candidate, CandidateGenerator, Pool
from .composites import split_composite
from .normalize import name_key
from .ranking import Ranker

# Texts whose ranking is remembered: notes of one hospital repeat themselves.
MAX_REMEMBERED = 50_000
# Joins the ids of the parts of a composite mention.
AND = "|"


class Mention(NamedTuple):
    """What is to be linked.

    text (str): As it stands in the note, with its abbreviations expanded.
    label (str): Entity label, for the filter by type.
    """

    text: str
    label: str = ""


class Link(NamedTuple):
    """What a mention means.

    kb_id (str): Id of the concept, of several for a composite mention, joined by "|"; "" is NIL.
    candidates (tuple[Candidate, ...]): The most probable ones; of a composite mention, those of its
        first part, then of the others.
    """

    kb_id: str
    candidates: tuple[Candidate, ...]


class Linker:
    """Links mentions.

    generator (CandidateGenerator): Finds candidates.
    ranker (Ranker): Weighs them.
    lang (str): Language of the notes.
    types (Mapping[str, Collection[str]]): Label -> semantic types of the concepts that it may mean,
        "C04*" for all that begin so; other labels may mean any concept.
    n_shown (int): Candidates of each part that are kept.
    threshold (float): Least probability of a link, 0 to 1; NIL is also said where it is likelier.
    """

    def __init__(
        self,
        generator: CandidateGenerator,
        ranker: Ranker,
        *,
        lang: str,
        types: Mapping[str, Collection[str]],
        n_shown: int,
        threshold: float,
    ) -> None:
        self.generator, self.ranker, self.lang = generator, ranker, lang
        self.types, self.n_shown, self.threshold = types, n_shown, threshold
        self._remembered: OrderedDict[Mention, Link] = OrderedDict()

    def __call__(self, mentions: Sequence[Mention]) -> list[Link]:
        """Link mentions; each different one is looked up once.

        mentions (Sequence[Mention]): Of any number of notes.
        RETURNS (list[Link]): One for each.
        """
        known = self._remembered
        new = [mention for mention in dict.fromkeys(mentions) if mention not in known]
        links = dict(zip(new, self._link(new), strict=True))
        for mention in mentions:
            if mention not in links:
                known.move_to_end(mention)
                links[mention] = known[mention]
        known.update((mention, links[mention]) for mention in new)
        while len(known) > MAX_REMEMBERED:
            known.popitem(last=False)
        return [links[mention] for mention in mentions]

    def parts(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """RETURNS (list[tuple[str, ...]]): The parts of each text; a name that the knowledge base
        has is whole."""
        kb = self.generator.kb
        split = [split_composite(text, self.lang) for text in texts]
        several = [i for i, parts in enumerate(split) if len(parts) > 1]
        names = kb.exact([texts[i] for i in several])
        keys = kb.same_key([name_key(texts[i]) for i in several])
        for i, *found in zip(several, names, keys, strict=True):
            if any(map(len, found)):
                split[i] = (texts[i],)
        return split

    def _link(self, mentions: Sequence[Mention]) -> list[Link]:
        parts = self.parts([mention.text for mention in mentions])
        texts = list(dict.fromkeys(part for split in parts for part in split))
        pools = dict(zip(texts, self.generator(texts), strict=True))
        return [
            self._choose(mention, [pools[part] for part in split])
            for mention, split in zip(mentions, parts, strict=True)
        ]

    def _choose(self, mention: Mention, pools: Sequence[Pool]) -> Link:
        ranked = [self.rank(pool, mention.label) for pool in pools]
        chosen = [
            candidates[0].kb_id
            for candidates, p_nil in ranked
            if candidates and candidates[0].score >= max(self.threshold, p_nil)
        ]
        # A composite mention of which a part is unknown means more than the other parts say.
        kb_id = AND.join(dict.fromkeys(chosen)) if len(chosen) == len(pools) else ""
        return Link(kb_id, tuple(c for candidates, _ in ranked for c in candidates))

    def rank(self, pool: Pool, label: str = "") -> tuple[list[Candidate], float]:
        """RETURNS (tuple[list[Candidate], float]): The most probable candidates of a text, and the
        probability that it means none."""
        kb = self.generator.kb
        if label in self.types:
            pool = self._of_types(pool, self.types[label])
        if not len(pool.concepts):
            return [], 1.0
        probabilities = self.ranker.probabilities(pool.features)
        order = np.lexsort((pool.concepts, -probabilities))[: self.n_shown]
        candidates = [
            Candidate(
                kb.ids[int(pool.concepts[i])],
                kb.name_of(int(pool.concepts[i])),
                float(probabilities[i]),
                self._why(pool, int(i)),
            )
            for i in order
        ]
        return candidates, float(1 - probabilities.sum())

    def _of_types(self, pool: Pool, wanted: Collection[str]) -> Pool:
        kb = self.generator.kb
        kept = np.array(
            [any(is_type(t, wanted) for t in kb.types_of(int(c))) for c in pool.concepts], bool
        )
        return Pool(pool.concepts[kept], pool.names[kept], pool.features[kept])

    def _why(self, pool: Pool, i: int) -> str:
        features, name = pool.features[i], int(pool.names[i])
        ways = (
            ("exact", "same name"),
            ("key", "same stems"),
            ("core", "same without modifiers"),
            ("same_mention", "same training mention"),
            ("similar", "similar name"),
            ("meaning", "similar meaning"),
        )
        how = next((said for way, said in ways if features[COLUMN[way]]), "training mention")
        return f"{how}: {self.generator.kb.names[name]}" if name >= 0 else how
