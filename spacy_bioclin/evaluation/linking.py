"""Score entity linking on plain values: mentions with gold ids and ranked candidate ids.

Gold ids are strings as in the corpora. Two signs join ids: "|" joins the concepts of a composite
mention ("breast and ovarian cancer"), "+" joins concepts that have the meaning only together. The
rules below treat both alike. A mention without an id is NIL: the terminology has no concept for it.

A rule defines the rank from which on a mention is right. All scores follow from it:
accuracy: the share of all mentions that are right at rank 1, or correctly predicted as NIL.
recall@k, MRR: over the mentions with a concept, whether or not the system predicts NIL.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from ..errors import BioclinError
from ..text import fold_spaces
from .bootstrap import f1_interval, summarize
from .spans import Counts

KS = (1, 5, 25, 64)
# Ids that mean NIL in corpora (BC5CDR, NCBI disease) and in spaCy's entity linker.
NO_CONCEPT = frozenset({"", "-1", "NIL"})
JOINED = re.compile(r"[|+]")
# MeSH and OMIM ids occur with and without their prefix, even within one corpus.
PREFIX = re.compile(r"(?:MESH|OMIM):", re.IGNORECASE)


class LinkedMention(NamedTuple):
    """A mention with its gold ids and the candidates of a system.

    doc (str): Id of its document, since intervals resample documents.
    text (str): The mention as in the text.
    gold (tuple[str, ...]): Gold ids, see `gold_ids`; () is NIL.
    rankings (tuple[Sequence[str], ...]): Candidate ids, best first. There is one ranking for each
        part that the system splits the mention into, mostly one. A candidate "A|B" is a name that
        two concepts share. A repeated id has no rank.
    nil (bool): True if the system predicts NIL in spite of its candidates. Without candidates it
        always predicts NIL.
    """

    doc: str
    text: str
    gold: tuple[str, ...]
    rankings: tuple[Sequence[str], ...] = ()
    nil: bool = False

    @property
    def says_nil(self) -> bool:
        """Whether the system predicts NIL."""
        return self.nil or not any(self.rankings)


# -- ids -------------------------------------------------------------------------------------------


class Alternatives(Protocol):
    """What gives the id of the concept that an id means, such as a dict."""

    def get(self, id: str, default: str, /) -> str:
        """Give the id, or the default if the id is unknown or the concept's own."""
        ...


def written_forms(id: str) -> tuple[str, ...]:
    """List the forms in which a terminology may have an id: as it is, and with other prefixes."""
    bare = PREFIX.sub("", id)
    return id, bare, f"MESH:{bare}", f"OMIM:{bare}"


def canonical_id(id: str, alternatives: Alternatives | None = None) -> str:
    """Convert an id, or several joined ids, to the form that is compared.

    id (str): "MESH:D001943", "OMIM:115470", "D001943|D010051", "D008581+D012008".
    alternatives (Alternatives | None): Merged, retired or alternative id -> id of the concept, both
        without prefix.
    RETURNS (str): The ids without the prefixes MESH and OMIM, alternatives replaced, joined as
        before.
    """
    alternatives = {} if alternatives is None else alternatives
    bare = (PREFIX.sub("", part.strip()) for part in JOINED.split(id))
    signs = [*JOINED.findall(id), ""]
    return "".join(
        alternatives.get(part, part) + sign for part, sign in zip(bare, signs, strict=True)
    )


def gold_ids(ids: Iterable[str], alternatives: Alternatives | None = None) -> tuple[str, ...]:
    """Convert the ids of a mention in a corpus to gold ids.

    ids (Iterable[str]): Ids, or several joined by "|" or "+"; "-1", "NIL" and "" mean no concept.
    alternatives (Alternatives | None): See `canonical_id`.
    RETURNS (tuple[str, ...]): Canonical ids, in order, without repeats. Parts of a composite
        mention without a concept are left out.
    """
    single = (part for id in ids for part in JOINED.split(canonical_id(id, alternatives)))
    return tuple(dict.fromkeys(id for id in single if id not in NO_CONCEPT))


# -- rules -----------------------------------------------------------------------------------------

# (gold ids, rankings) -> the smallest k for which the mention is right, 0 if there is none.
Rule = Callable[[Collection[str], Sequence[Sequence[str]]], int]


def biosyn_rank(gold: Collection[str], rankings: Sequence[Sequence[str]]) -> int:
    """Find the rank by the rule of most published results on NCBI disease and BC5CDR.

    Every part that the system split the mention into must hit, with any id of the mention. So a
    composite mention that is not split is right with one of its concepts, and several parts may hit
    the same one. A candidate "A|B" (ids that share a name) hits with either id.

    Source: Sung et al. 2020, github.com/dmis-lab/BioSyn, utils.py: `check_label`, `predict_topk`
    (replaces "+" by "|"), `evaluate_topk_acc`. There the k candidates are names, several of which
    may belong to one concept. Here they are concepts, which is equal at k = 1 and more lenient
    above.
    """
    wanted = set(gold)
    ranks = [
        _rank(ranking, lambda candidate: not wanted.isdisjoint(candidate.split("|")))
        for ranking in rankings
    ]
    return max(ranks) if ranks and all(ranks) else 0


def strict_rank(gold: Collection[str], rankings: Sequence[Sequence[str]]) -> int:
    """Find the rank by a rule that allows neither missing nor additional concepts.

    Every part must hit an id of the mention, and every id must be hit by a part. A candidate "A|B"
    is not "A". At k = 1 the set of first candidates equals the set of gold ids. A composite mention
    that is not split is right from the k on that includes all its concepts.
    """
    wanted = set(gold)
    ranks = [_rank(ranking, wanted.__contains__) for ranking in rankings]
    for id in wanted:
        hits = [_rank(ranking, id.__eq__) for ranking in rankings]
        ranks.append(min(filter(None, hits), default=0))
    return max(ranks) if rankings and all(ranks) else 0


def _rank(ranking: Sequence[str], hits: Callable[[str], bool]) -> int:
    """Find the rank of the first hit, from 1, without counting repeats; 0 if there is none."""
    distinct = dict.fromkeys(ranking)
    return next((rank for rank, id in enumerate(distinct, start=1) if hits(id)), 0)


RULES: dict[str, Rule] = {"biosyn": biosyn_rank, "strict": strict_rank}


def get_rule(name: str) -> Rule:
    """Find a rule by its name.

    RAISES (BioclinError): There is no such rule.
    """
    if name not in RULES:
        raise BioclinError(f"No linking rule named {name!r}: choose from {', '.join(RULES)}.")
    return RULES[name]


# -- gold mentions ---------------------------------------------------------------------------------


class LinkingScores(NamedTuple):
    """Scores of some mentions, 0 if there is nothing to count.

    n (int): Number of mentions.
    n_nil (int): Number of mentions whose gold is NIL.
    accuracy (float): Accuracy on all mentions.
    interval (tuple[float, float]): Interval of the accuracy, see `bootstrap.f1_interval`.
    linkable_accuracy (float): Accuracy on the mentions with a concept, where NIL is wrong.
    recall (dict[int, float]): k -> share of these that are right within the first k candidates.
    mrr (float): Mean of 1 / rank over these, 0 without a rank.
    nil (Counts): Counts of NIL as a prediction.
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
        """Convert to a dict that is ready for JSON.

        RETURNS (dict[str, Any]): `n`, `n_nil`, `acc`, `acc_interval`, `acc_linkable`, `r1` …,
            `mrr`, `nil_p`, `nil_r`, `nil_f`.
        """
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
    """Score the links of mentions with given offsets.

    mentions (Iterable[LinkedMention]): Mentions with gold and candidate ids in canonical form.
    rule (str): One of `RULES`.
    ks (Sequence[int]): The values of k for recall@k.
    RETURNS (LinkingScores): The scores.
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
    """Compute the interval of the accuracy.

    It equals F1 if every wrong mention counts as a false positive and a false negative.
    """
    per_doc: dict[str, tuple[int, int]] = {}
    for mention, is_right in zip(mentions, right, strict=True):
        hits, misses = per_doc.get(mention.doc, (0, 0))
        per_doc[mention.doc] = hits + is_right, misses + (not is_right)
    return f1_interval([Counts(hits, misses, misses) for hits, misses in per_doc.values()])


def split_seen(
    mentions: Iterable[LinkedMention], seen_ids: Collection[str], seen_names: Iterable[str]
) -> dict[str, list[LinkedMention]]:
    """Split mentions by whether their concepts and names are in the training data.

    mentions (Iterable[LinkedMention]): Mentions to split.
    seen_ids (Collection[str]): Canonical ids of the training mentions, best as a set.
    seen_names (Iterable[str]): Texts of the training mentions. Case and white space are ignored.
    RETURNS (dict[str, list[LinkedMention]]): "seen_concept" (all ids of the mention are seen),
        "unseen_concept", "seen_name" and "unseen_name". NIL mentions are in the last two only.
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
    """Select the mentions with a concept whose ids are all in a knowledge base.

    This is the option `--remove_cuiless` of BioSyn (preprocess/query_preprocess.py).
    """
    return [m for m in mentions if m.gold and all(id in kb_ids for id in m.gold)]


# -- end to end ------------------------------------------------------------------------------------

# (start, end, canonical id), one for each id of a mention.
SpanId = tuple[int, int, str]


class EndToEnd(NamedTuple):
    """Counts per document.

    mentions (list[Counts]): Comparison of offsets and ids (strong_link_match of TAC KBP;
        CANTEMIST-NORM).
    documents (list[Counts]): Comparison of the sets of ids of a document, ignoring offsets (disease
        normalization of BioCreative V CDR, Wei et al. 2016).
    """

    mentions: list[Counts]
    documents: list[Counts]

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """Compute "mentions" and "documents", each as in `bootstrap.summarize`."""
        return {"mentions": summarize(self.mentions), "documents": summarize(self.documents)}


def end_to_end(docs: Iterable[tuple[Iterable[SpanId], Iterable[SpanId]]]) -> EndToEnd:
    """Score what a pipeline both finds and links.

    docs (Iterable[tuple]): Gold and predicted links of each document. Repeats count once.
    RETURNS (EndToEnd): Counts per document.
    """
    scores = EndToEnd([], [])
    for spans in docs:
        gold, predicted = map(set, spans)
        scores.mentions.append(Counts.of_sets(gold, predicted))
        ids = ({id for _, _, id in side} for side in (gold, predicted))
        scores.documents.append(Counts.of_sets(*ids))
    return scores
