"""Link mentions to concepts: candidates, ranking and the choice, without spaCy."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from ..errors import BioclinError
from ..types import FloatArray, IntArray
from .candidates import COLUMN, Candidate, CandidateGenerator, Pool
from .kb.concepts import AND, is_type
from .kb.knowledge_base import KnowledgeBase
from .names.composites import split_composite
from .names.normalize import name_key
from .notes import Evidence, NoteConcepts, Question, add_support
from .ranking import Ranker
from .references import Code, find_codes

# Mentions whose links are cached, because notes of one hospital repeat themselves.
MAX_REMEMBERED = 50_000
K = TypeVar("K")
V = TypeVar("V")


class Mention(NamedTuple):
    """A mention to link.

    text (str): The text of the note, with its abbreviations expanded.
    label (str): Entity label, for the filter by type.
    note (int): Number of its note, whose other mentions a trained ranker looks at.
    """

    text: str
    label: str = ""
    note: int = 0


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
    codes (tuple[Code, ...]): Those of the concept.
    """

    kb_id: str
    candidates: tuple[Candidate, ...]
    codes: tuple[Code, ...]


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
        # What was unused for the longest time comes first.
        self._cache: dict[Question, Link] = {}
        self._evidence: dict[str, list[Evidence]] = {}

    def __call__(self, mentions: Sequence[Mention]) -> list[Link]:
        """Link mentions; each different one is looked up once.

        mentions (Sequence[Mention]): Of any number of notes.
        RETURNS (list[Link]): One for each.
        """
        pools: dict[str, Pool] = {}
        questions = self._ask(mentions, pools)
        known = _recall(self._cache, questions)
        new = [question for question in dict.fromkeys(questions) if question not in known]
        known.update(zip(new, self._link(new, pools), strict=True))
        _remember(self._cache, known)
        return [known[question] for question in questions]

    def forget(self) -> None:
        """Clear the cache, because candidates or ranking have changed."""
        self._cache.clear()
        self._evidence.clear()

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
        pools: dict[str, Pool] = {}
        questions = self._ask(mentions, pools)
        parts = self.parts([question.text for question in questions])
        for ranked in self._rank(questions, parts, pools):
            ids = tuple([self._id(pool, i) for i in order] for pool, order, _ in ranked)
            found.append((ids, not self._choose(ranked)))
        return found

    def _ask(self, mentions: Sequence[Mention], pools: dict[str, Pool]) -> list[Question]:
        """Replace the note of mentions by what its other mentions say about them.

        pools (dict[str, Pool]): The candidates of each text that is looked up are added to it.
        """
        if not self.ranker.reads_notes:
            return [Question(text, label) for text, label, _ in mentions]
        texts = [mention.text for mention in mentions]
        known = _recall(self._evidence, texts)
        new = [text for text in dict.fromkeys(texts) if text not in known]
        parts = self.parts(new)
        self._find(parts, pools)
        for text, split in zip(new, parts, strict=True):
            known[text] = [Evidence.of(pools[part], part) for part in split]
        _remember(self._evidence, known)
        notes = NoteConcepts()
        for text, _, note in mentions:
            for part in known[text]:
                notes.add(note, part)
        return [
            Question(text, label, tuple(notes.support(note, part) for part in known[text]))
            for text, label, note in mentions
        ]

    def _find(self, parts: Iterable[Iterable[str]], pools: dict[str, Pool]) -> None:
        """Look up the parts of texts that are not among the pools yet."""
        texts = list(dict.fromkeys(part for split in parts for part in split if part not in pools))
        pools.update(zip(texts, self.generator(texts), strict=True))

    def _link(self, questions: Sequence[Question], pools: dict[str, Pool]) -> list[Link]:
        links = []
        parts = self.parts([question.text for question in questions])
        for ranked, split in zip(self._rank(questions, parts, pools), parts, strict=True):
            names = split if len(split) > 1 else ("",)
            shown = [
                self._candidate(one, i, part)
                for one, part in zip(ranked, names, strict=True)
                for i in one.order[: self.n_shown]
            ]
            kb_id = self._choose(ranked)
            links.append(Link(kb_id, tuple(shown), find_codes(self.generator.kb, kb_id)))
        return links

    def _rank(
        self,
        questions: Sequence[Question],
        parts: Sequence[tuple[str, ...]],
        pools: dict[str, Pool],
    ) -> Iterator[list[RankedPool]]:
        """Yield the ranked candidates of the parts of each text."""
        self._find(parts, pools)
        for (_, label, support), split in zip(questions, parts, strict=True):
            wanted = self.types.get(label)
            known = [
                add_support(pools[part], concepts)
                for part, concepts in zip(split, support or [()] * len(split), strict=True)
            ]
            yield [rank_pool(pool, self.ranker, self.generator.kb, wanted) for pool in known]

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
        learned = ("similar_mention", "near_mention")
        found = any(features[COLUMN[way]] for way in learned)
        other = "training mention" if found else "words of training mentions"
        how = next((text for way, text in ways if features[COLUMN[way]]), other)
        return f"{how}: {self.generator.kb.names[name]}" if name >= 0 else how


def _recall(cache: dict[K, V], keys: Iterable[K]) -> dict[K, V]:
    """Take what is known of some keys out of a cache, which other threads may clear meanwhile."""
    found = {}
    for key in dict.fromkeys(keys):
        value = cache.pop(key, None)
        if value is not None:
            found[key] = value
    return found


def _remember(cache: dict[K, V], known: Mapping[K, V]) -> None:
    """Put what is known at the end of a cache, and forget what was unused for the longest time."""
    cache.update(known)
    if len(cache) > MAX_REMEMBERED:
        for key in list(cache)[: len(cache) - MAX_REMEMBERED]:
            cache.pop(key, None)


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
