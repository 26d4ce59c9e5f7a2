"""Link mentions to concepts: candidates, ranking and the choice, without spaCy."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..errors import BioclinError
from ..types import FloatArray, IntArray
from .candidates import COLUMN, Candidate, CandidateGenerator, Pool
from .kb.concepts import AND, is_type
from .kb.knowledge_base import KnowledgeBase
from .names.composites import split_composite
from .names.normalize import name_key
from .ranking import Ranker

# Mentions whose links are cached, because notes of one hospital repeat themselves.
MAX_REMEMBERED = 50_000


class Mention(NamedTuple):
    """A mention to link.

    text (str): The text of the note, with its abbreviations expanded.
    label (str): Entity label, for the filter by type.
    """

    text: str
    label: str = ""


class RankedPool(NamedTuple):
    """The candidates of a text with their probabilities.

    pool (Pool): The candidates that may be meant, n of them.
    order (IntArray): (n,) rows of the pool, the most probable first.
    probabilities (FloatArray): (n,) of each row; the rest to 1 is the probability of NIL.
    """

    pool: Pool
    order: IntArray
    probabilities: FloatArray


class Link(NamedTuple):
    """What a mention means.

    kb_id (str): Id of the concept; of a composite mention several ids joined by "|"; "" is NIL.
    candidates (tuple[Candidate, ...]): The most probable ones; of a composite mention, those of its
        first part, then of the others.
    """

    kb_id: str
    candidates: tuple[Candidate, ...]


class Linker:
    """Link mentions to concepts.

    generator (CandidateGenerator): Finds candidates.
    ranker (Ranker): Scores them.
    lang (str): Language of the notes.
    types (Mapping[str, Collection[str]]): Label -> semantic types of the concepts that it may mean,
        "C04*" for all that begin with C04; other labels may mean any concept.
    n_shown (int): Candidates that are returned for each part of a mention.
    threshold (float): Lowest probability of a link, 0 to 1; a mention is also NIL if that is more
        probable.
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
        self._cache: dict[Mention, Link] = {}  # the longest unused first

    def __call__(self, mentions: Sequence[Mention]) -> list[Link]:
        """Link mentions; each different one is looked up once.

        mentions (Sequence[Mention]): Of any number of notes.
        RETURNS (list[Link]): One for each.
        """
        # Other threads may use and clear the cache meanwhile.
        cache = self._cache
        known: dict[Mention, Link] = {}
        for mention in dict.fromkeys(mentions):
            link = cache.pop(mention, None)
            if link is not None:
                known[mention] = link
        new = [mention for mention in dict.fromkeys(mentions) if mention not in known]
        known.update(zip(new, self._link(new), strict=True))
        cache.update(known)
        if len(cache) > MAX_REMEMBERED:
            for mention in list(cache)[: len(cache) - MAX_REMEMBERED]:
                cache.pop(mention, None)
        return [known[mention] for mention in mentions]

    def forget(self) -> None:
        """Clear the cache, because candidates or ranking have changed."""
        self._cache.clear()

    def parts(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """Split composite texts into their parts.

        A name in the knowledge base, or one that training mentions used for one concept, is not
        split.

        RETURNS (list[tuple[str, ...]]): The parts of each text.
        """
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
        """Rank all candidates of mentions, for evaluation.

        RETURNS (list[tuple]): For each mention the ids of the candidates of each of its parts,
            best first, and whether it is NIL.
        """
        found = []
        parts = self.parts([mention.text for mention in mentions])
        for ranked in self._rank(mentions, parts):
            ids = tuple([self._id(pool, i) for i in order] for pool, order, _ in ranked)
            found.append((ids, not self._choose(ranked)))
        return found

    def _link(self, mentions: Sequence[Mention]) -> list[Link]:
        links = []
        parts = self.parts([mention.text for mention in mentions])
        for ranked, split in zip(self._rank(mentions, parts), parts, strict=True):
            names = split if len(split) > 1 else ("",)
            shown = [
                self._candidate(one, i, part)
                for one, part in zip(ranked, names, strict=True)
                for i in one.order[: self.n_shown]
            ]
            links.append(Link(self._choose(ranked), tuple(shown)))
        return links

    def _rank(
        self, mentions: Sequence[Mention], parts: Sequence[tuple[str, ...]]
    ) -> Iterator[list[RankedPool]]:
        """Yield the ranked candidates of the parts of each mention."""
        texts = list(dict.fromkeys(part for split in parts for part in split))
        pools = dict(zip(texts, self.generator(texts), strict=True))
        for mention, split in zip(mentions, parts, strict=True):
            wanted = self.types.get(mention.label)
            yield [rank_pool(pools[part], self.ranker, self.generator.kb, wanted) for part in split]

    def _choose(self, ranked: Sequence[RankedPool]) -> str:
        """Join the best id of each part, or return "" if one of them is NIL: a composite mention
        with an unknown part means more than the other parts."""
        chosen = []
        for pool, order, probabilities in ranked:
            best = float(probabilities[order[0]]) if len(order) else 0.0
            if not len(order) or best < max(self.threshold, 1 - float(probabilities.sum())):
                return ""
            chosen.append(self._id(pool, order[0]))
        return AND.join(dict.fromkeys(chosen))

    def _id(self, pool: Pool, i: int) -> str:
        return str(self.generator.kb.ids[int(pool.concepts[i])])

    def _candidate(self, ranked: RankedPool, i: int, part: str) -> Candidate:
        pool, probability = ranked.pool, float(ranked.probabilities[i])
        name = self.generator.kb.name_of(int(pool.concepts[i]), self.lang)
        return Candidate(self._id(pool, i), name, probability, self._why(pool, int(i)), part)

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
        how = next((text for way, text in ways if features[COLUMN[way]]), "training mention")
        return f"{how}: {self.generator.kb.names[name]}" if name >= 0 else how


def rank_pool(
    pool: Pool, ranker: Ranker, kb: KnowledgeBase, types: Collection[str] | None
) -> RankedPool:
    """Rank the candidates of a text.

    types (Collection[str] | None): Semantic types of the concepts that may be meant, see `is_type`;
        None for all.
    """
    if types is not None:
        kept = [any(is_type(t, types) for t in kb.types_of(int(c))) for c in pool.concepts]
        pool = Pool(*(column[np.array(kept, bool)] for column in pool))
    probabilities = ranker.probabilities(pool.features)
    return RankedPool(pool, np.lexsort((pool.concepts, -probabilities)), probabilities)


def check_types(
    types: Mapping[str, Collection[str]],
    kb: KnowledgeBase,
    make_error: Callable[[str], BioclinError] = BioclinError,
) -> None:
    """Check that some concept has each type that a label may mean.

    RAISES (BioclinError): The message lists some types that exist.
    """
    known = kb.meta["types"]
    for label, wanted in types.items():
        for one in wanted:
            if not any(is_type(name, [one]) for name in known):
                raise make_error(
                    f"types of {label!r}: no concept has the type {one!r}; the knowledge base has "
                    f"{', '.join(known[:5]) or 'no types at all'} … (`C04*` means all types that "
                    "begin with C04)"
                )
