"""From mentions to concepts: candidates, ranking and the choice, without spaCy."""

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..types import FloatArray, IntArray
from .candidates import COLUMN, Candidate, CandidateGenerator, Pool
from .kb.build import is_type
from .names.composites import split_composite
from .names.normalize import name_key
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


# A pool, its rows from the best on, and the probability of each row.
Ranked = tuple[Pool, IntArray, FloatArray]


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

    def forget(self) -> None:
        """Look everything up again: candidates or ranking have changed."""
        self._remembered.clear()

    def parts(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """RETURNS (list[tuple[str, ...]]): The parts of each text; a name that the knowledge base
        has, or that training mentions had for one concept, is whole."""
        kb, learned = self.generator.kb, self.generator.learned
        split = [
            (text,) if learned is not None and text in learned else split_composite(text, self.lang)
            for text in texts
        ]
        several = [i for i, parts in enumerate(split) if len(parts) > 1]
        names = kb.exact([texts[i] for i in several])
        keys = kb.same_key([name_key(texts[i]) for i in several])
        for i, *found in zip(several, names, keys, strict=True):
            if any(map(len, found)):
                split[i] = (texts[i],)
        return split

    def rankings(self, mentions: Sequence[Mention]) -> list[tuple[tuple[list[str], ...], bool]]:
        """RETURNS (list[tuple]): For each mention the ids of all candidates of each of its parts,
        best first, and whether it is NIL; for evaluation."""
        found = []
        for pools, mention in zip(self._pools(mentions), mentions, strict=True):
            ranked = [self._rank(pool, mention.label) for pool in pools]
            ids = tuple([self._id(pool, i) for i in order] for pool, order, _ in ranked)
            found.append((ids, not self._choose(ranked)))
        return found

    def _link(self, mentions: Sequence[Mention]) -> list[Link]:
        links = []
        for pools, mention in zip(self._pools(mentions), mentions, strict=True):
            ranked = [self._rank(pool, mention.label) for pool in pools]
            shown = [self._candidate(*one, i) for one in ranked for i in one[1][: self.n_shown]]
            links.append(Link(self._choose(ranked), tuple(shown)))
        return links

    def _pools(self, mentions: Sequence[Mention]) -> list[list[Pool]]:
        """RETURNS (list[list[Pool]]): Candidates of the parts of each mention."""
        parts = self.parts([mention.text for mention in mentions])
        texts = list(dict.fromkeys(part for split in parts for part in split))
        pools = dict(zip(texts, self.generator(texts), strict=True))
        return [[pools[part] for part in split] for split in parts]

    def _choose(self, ranked: Sequence[Ranked]) -> str:
        """RETURNS (str): The ids of the parts, "" if one of them is NIL: a composite mention of
        which a part is unknown means more than the other parts say."""
        chosen = []
        for pool, order, probabilities in ranked:
            best = float(probabilities[order[0]]) if len(order) else 0.0
            if not len(order) or best < max(self.threshold, 1 - float(probabilities.sum())):
                return ""
            chosen.append(self._id(pool, order[0]))
        return AND.join(dict.fromkeys(chosen))

    def _rank(self, pool: Pool, label: str) -> Ranked:
        """RETURNS (Ranked): The pool without concepts of other types, its rows from the most
        probable on, and their probabilities."""
        if label in self.types:
            pool = self._of_types(pool, self.types[label])
        probabilities = self.ranker.probabilities(pool.features)
        return pool, np.lexsort((pool.concepts, -probabilities)), probabilities

    def _id(self, pool: Pool, i: int) -> str:
        return str(self.generator.kb.ids[int(pool.concepts[i])])

    def _candidate(
        self, pool: Pool, order: IntArray, probabilities: FloatArray, i: int
    ) -> Candidate:
        name = self.generator.kb.name_of(int(pool.concepts[i]))
        return Candidate(self._id(pool, i), name, float(probabilities[i]), self._why(pool, int(i)))

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
