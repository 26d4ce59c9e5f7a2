"""Scores of entity linking, on plain values: mentions with gold ids and ranked candidate ids.

Gold ids are strings as corpora write them. Two signs join ids: "|" the concepts of a composite
mention ("breast and ovarian cancer"), "+" concepts that only together make the meaning; the rules
below treat both alike. No id at all is NIL: the terminology has no concept for the mention.

A rule says from which rank on a mention counts as right. All figures follow from it:
accuracy: the share of all mentions that are right at rank 1, or rightly said to be NIL.
recall@k, MRR: over the mentions that have a concept, whether or not the system says NIL.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import BioclinError
from ..text import fold_spaces
from .bootstrap import f1_interval
from .spans import Counts

KS = (1, 5, 25, 64)
# How corpora (BC5CDR, NCBI disease) and spaCy's entity linker write that there is no concept.
NO_CONCEPT = frozenset({"", "-1", "NIL"})
JOINED = re.compile(r"[|+]")
# MeSH and OMIM ids stand with and without their prefix, even within one corpus.
PREFIX = re.compile(r"(?:MESH|OMIM):", re.IGNORECASE)


class LinkedMention(NamedTuple):
    """A mention, what it means and what a system takes it for.

    doc (str): Id of its document; intervals resample documents.
    text (str): As it stands in the text.
    gold (tuple[str, ...]): Its ids, see `gold_ids`; () is NIL.
    rankings (tuple[Sequence[str], ...]): Candidate ids, best first: one ranking for each of the
        parts that the system splits the mention into, mostly one. A candidate "A|B" is a name that
        two concepts share. An id that comes again takes no rank.
    nil (bool): The system says NIL, whatever its candidates are. Without any candidate it does too.
    """

    doc: str
    text: str
    gold: tuple[str, ...]
    rankings: tuple[Sequence[str], ...] = ()
    nil: bool = False

    @property
    def says_nil(self) -> bool:
        return self.nil or not any(self.rankings)


# -- ids -------------------------------------------------------------------------------------------


def canonical_id(id: str, alternatives: Mapping[str, str] | None = None) -> str:
    """Bring an id, or several joined ones, to the form that is compared.

    id (str): "MESH:D001943", "OMIM:115470", "D001943|D010051", "D008581+D012008".
    alternatives (Mapping[str, str] | None): Merged, retired or alternative id -> the concept's id,
        without prefix.
    RETURNS (str): Without the prefixes MESH and OMIM, each id replaced by its concept's, joined as
        before.
    """
    alternatives = alternatives or {}
    bare = (PREFIX.sub("", part.strip()) for part in JOINED.split(id))
    signs = [*JOINED.findall(id), ""]
    return "".join(
        alternatives.get(part, part) + sign for part, sign in zip(bare, signs, strict=True)
    )


def gold_ids(ids: Iterable[str], alternatives: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Make the gold ids of a mention out of what its corpus has.

    ids (Iterable[str]): Each may be joined by "|" or "+"; "-1", "NIL" and "" mean no concept.
    alternatives (Mapping[str, str] | None): See `canonical_id`.
    RETURNS (tuple[str, ...]): Canonical ids, each once, in order. A composite mention with one
        part that has no concept has the ids of the others.
    """
    single = (part for id in ids for part in JOINED.split(canonical_id(id, alternatives)))
    return tuple(dict.fromkeys(id for id in single if id not in NO_CONCEPT))


# -- rules -----------------------------------------------------------------------------------------

# (gold ids, rankings) -> the least k for which the mention is right, 0 if there is none.
Rule = Callable[[Collection[str], Sequence[Sequence[str]]], int]


def biosyn_rank(gold: Collection[str], rankings: Sequence[Sequence[str]]) -> int:
    """The rule behind most published figures on NCBI disease and BC5CDR.

    Every part that the mention was split into has to hit, and it hits with any id of the mention.
    A composite mention left whole is therefore right with one of its concepts, and parts may hit
    with one and the same. A candidate "A|B" (ids that share a name) hits with either.
    Source: Sung et al. 2020, github.com/dmis-lab/BioSyn, utils.py: `check_label`, `predict_topk`
    (turns "+" into "|"), `evaluate_topk_acc`. There the k candidates are names, of which several
    may be of one concept; here they are concepts, the same at k = 1 and kinder above.
    """
    wanted = set(gold)
    ranks = [
        _rank(ranking, lambda candidate: not wanted.isdisjoint(candidate.split("|")))
        for ranking in rankings
    ]
    return max(ranks) if ranks and all(ranks) else 0


def strict_rank(gold: Collection[str], rankings: Sequence[Sequence[str]]) -> int:
    """Nothing missing and nothing too much.

    Every part has to hit with an id of the mention, and every id has to be hit by a part. A
    candidate counts as what it is: "A|B" is not "A". At k = 1 the first candidates of the parts
    are the gold ids, as sets; a composite mention left whole is right from that k on that holds
    all its concepts.
    """
    wanted = set(gold)
    ranks = [_rank(ranking, wanted.__contains__) for ranking in rankings]
    for id in wanted:
        hits = [_rank(ranking, id.__eq__) for ranking in rankings]
        ranks.append(min(filter(None, hits), default=0))
    return max(ranks) if rankings and all(ranks) else 0


def _rank(ranking: Sequence[str], hits: Callable[[str], bool]) -> int:
    """RETURNS (int): Rank of the first hit from 1 on, repeats not counted; 0 for none."""
    distinct = dict.fromkeys(ranking)
    return next((rank for rank, id in enumerate(distinct, start=1) if hits(id)), 0)


RULES: dict[str, Rule] = {"biosyn": biosyn_rank, "strict": strict_rank}


def get_rule(name: str) -> Rule:
    """RAISES (BioclinError): If the rule is not one of `RULES`."""
    if name not in RULES:
        raise BioclinError(f"No rule of linking named {name!r}: choose from {', '.join(RULES)}.")
    return RULES[name]


# -- gold mentions ---------------------------------------------------------------------------------


class LinkingScores(NamedTuple):
    """Figures of some mentions; 0 where there is nothing to count.

    n (int): Mentions.
    n_nil (int): Of these, those that the gold says are NIL.
    accuracy (float): Of all mentions.
    interval (tuple[float, float]): Of the accuracy, see `bootstrap.f1_interval`.
    linkable_accuracy (float): Of the mentions that have a concept; saying NIL is wrong there.
    recall (dict[int, float]): k -> share of them with the rule met by the first k candidates.
    mrr (float): Mean of 1 / rank over them, 0 for a rank that is not there.
    nil (Counts): NIL said and meant, said only, meant only.
    """

    n: int
    n_nil: int
    accuracy: float
    interval: tuple[float, float]
    linkable_accuracy: float
    recall: dict[int, float]
    mrr: float
    nil: Counts

    def as_dict(self) -> dict[str, Any]:
        """RETURNS (dict[str, Any]): `n`, `n_nil`, `acc`, `acc_interval`, `acc_linkable`, `r1` …,
        `mrr`, `nil_p`, `nil_r`, `nil_f`; ready for JSON."""
        return {
            "n": self.n,
            "n_nil": self.n_nil,
            "acc": self.accuracy,
            "acc_interval": list(self.interval),
            "acc_linkable": self.linkable_accuracy,
            **{f"r{k}": recall for k, recall in self.recall.items()},
            "mrr": self.mrr,
            **{f"nil_{key}": value for key, value in self.nil.prf().items()},
        }


def score_linking(
    mentions: Iterable[LinkedMention], *, rule: str = "biosyn", ks: Sequence[int] = KS
) -> LinkingScores:
    """Score mentions whose offsets are given.

    mentions (Iterable[LinkedMention]): Ids of both sides in canonical form.
    rule (str): One of `RULES`.
    ks (Sequence[int]): For recall@k.
    RETURNS (LinkingScores): The figures.
    RAISES (BioclinError): There is no such rule.
    """
    find_rank = get_rule(rule)
    mentions = list(mentions)
    ranks = [find_rank(m.gold, m.rankings) if m.gold else 0 for m in mentions]
    right = [
        m.says_nil if not m.gold else rank == 1 and not m.says_nil
        for m, rank in zip(mentions, ranks, strict=True)
    ]
    linkable = [i for i, m in enumerate(mentions) if m.gold]
    n = max(len(linkable), 1)
    nil = [(m.says_nil, not m.gold) for m in mentions]
    return LinkingScores(
        n=len(mentions),
        n_nil=len(mentions) - len(linkable),
        accuracy=sum(right) / max(len(mentions), 1),
        interval=_interval(mentions, right),
        linkable_accuracy=sum(right[i] for i in linkable) / n,
        recall={k: sum(0 < ranks[i] <= k for i in linkable) / n for k in ks},
        mrr=sum(1 / ranks[i] for i in linkable if ranks[i]) / n,
        nil=Counts(nil.count((True, True)), nil.count((True, False)), nil.count((False, True))),
    )


def _interval(mentions: Sequence[LinkedMention], right: Sequence[bool]) -> tuple[float, float]:
    """With every wrong mention a false positive and a false negative, F1 is the accuracy."""
    per_doc: dict[str, tuple[int, int]] = {}
    for mention, is_right in zip(mentions, right, strict=True):
        hits, misses = per_doc.get(mention.doc, (0, 0))
        per_doc[mention.doc] = hits + is_right, misses + (not is_right)
    return f1_interval([Counts(hits, misses, misses) for hits, misses in per_doc.values()])


def split_seen(
    mentions: Iterable[LinkedMention], seen_ids: Collection[str], seen_names: Iterable[str]
) -> dict[str, list[LinkedMention]]:
    """Part mentions by what the training data held.

    mentions (Iterable[LinkedMention]): Mentions to part.
    seen_ids (Collection[str]): Canonical ids of the training mentions, best as a set.
    seen_names (Iterable[str]): Their texts; case and white space do not count.
    RETURNS (dict[str, list[LinkedMention]]): "seen_concept" (all its ids were seen),
        "unseen_concept", "seen_name" and "unseen_name". NIL mentions have no concept and stand
        under the names only.
    """
    names = {fold_spaces(name) for name in seen_names}
    parts: dict[str, list[LinkedMention]] = {
        key: [] for key in ("seen_concept", "unseen_concept", "seen_name", "unseen_name")
    }
    for mention in mentions:
        parts["seen_name" if fold_spaces(mention.text) in names else "unseen_name"].append(mention)
        if mention.gold:
            is_seen = all(id in seen_ids for id in mention.gold)
            parts["seen_concept" if is_seen else "unseen_concept"].append(mention)
    return parts


def covered(mentions: Iterable[LinkedMention], kb_ids: Collection[str]) -> list[LinkedMention]:
    """RETURNS (list[LinkedMention]): Those with a concept, and with each of their ids in a
    knowledge base (BioSyn's `--remove_cuiless`, preprocess/query_preprocess.py)."""
    return [m for m in mentions if m.gold and all(id in kb_ids for id in m.gold)]


# -- end to end ------------------------------------------------------------------------------------

# (start, end, canonical id); a mention with two ids is two of them, one without any is none.
SpanId = tuple[int, int, str]


class EndToEnd(NamedTuple):
    """Counts per document, in order.

    mentions (list[Counts]): Equal offsets and id (TAC KBP's strong_link_match; CANTEMIST-NORM).
    documents (list[Counts]): The set of ids of a document, wherever they stand (BioCreative V
        CDR's disease normalization, Wei et al. 2016).
    """

    mentions: list[Counts]
    documents: list[Counts]

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """RETURNS (dict): "mentions" and "documents" -> p, r, f, tp, fp, fn and `f_interval`."""
        figures = {}
        for name, per_doc in self._asdict().items():
            total = Counts.total(per_doc)
            interval = list(f1_interval(per_doc))
            figures[name] = {**total.prf(), **total._asdict(), "f_interval": interval}
        return figures


def end_to_end(docs: Iterable[tuple[Iterable[SpanId], Iterable[SpanId]]]) -> EndToEnd:
    """Score what a pipeline both finds and links.

    docs (Iterable[tuple]): Of each document (gold, predicted); a repeat counts once.
    RETURNS (EndToEnd): Counts per document.
    """
    scores = EndToEnd([], [])
    for gold, predicted in docs:
        pair = set(gold), set(predicted)
        scores.mentions.append(_set_counts(*pair))
        ids = ({id for _, _, id in spans} for spans in pair)
        scores.documents.append(_set_counts(*ids))
    return scores


def _set_counts(gold: set[Any], predicted: set[Any]) -> Counts:
    return Counts(len(gold & predicted), len(predicted - gold), len(gold - predicted))
