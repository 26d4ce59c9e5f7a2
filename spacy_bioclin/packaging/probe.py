"""Check, in a new environment, that a pipeline gives the same results however it is stored.

`python -I -m spacy_bioclin.packaging.probe NAME FOLDER [OTHER]` prints one JSON object per line:
the name of a check when it begins, and its outcome when it ends. FOLDER is for its files, OTHER a
pipeline that must give the same results.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from ..annotations.relations import RELATIONS_KEY, get_relations
from ..spans import get_layers
from ..types import CharSpan
from ..vocab import check_components
from .probe_inputs import NOTES, make_inputs

COPIES = 4  # of the notes, so that two processes both get some
BATCH = 3
# Between one note at a time and batches, bf16 rounds differently; so it does, on some processors,
# between several threads and the one that a worker process has. Such a difference can tip an entity
# that is hardly more likely than not.
ROUNDING = 0.05
UNDECIDED = 0.5 + ROUNDING
EXACT = 1e-3


class Found(NamedTuple):
    """A span that a pipeline found: layer ("ents" or a key of doc.spans), offsets, label, kb_id."""

    layer: str
    start: int
    end: int
    label: str
    kb_id: str


class FoundRelation(NamedTuple):
    """A relation that a pipeline found, with offsets and labels of its arguments."""

    label: str
    head: CharSpan
    child: CharSpan
    concepts: tuple[str, str] | None


class Category(NamedTuple):
    """A label that `doc.cats` has a value for."""

    label: str


Findings = dict[Found | FoundRelation | Category, float | None]  # with their probabilities


class Mismatch(Exception):
    """Two ways give different results. The message has counts, no text of notes."""


def find(doc: Any) -> Findings:
    """Read all entities, spans, relations and categories of a Doc."""
    findings: Findings = {
        Found(key or "ents", span.start_char, span.end_char, span.label_, span.kb_id_): p
        for key, spans, probabilities in get_layers(doc)
        for span, p in zip(spans, probabilities, strict=True)
    }
    if RELATIONS_KEY in doc.user_data:
        for relation in get_relations(doc):
            head, child = (
                (span.start_char, span.end_char, span.label_)
                for span in (relation.head, relation.child)
            )
            found = FoundRelation(relation.label, head, child, relation.concepts)
            findings[found] = relation.probability
    return findings | {Category(label): value for label, value in doc.cats.items()}


def compare(ours: Sequence[Findings], theirs: Sequence[Findings], tolerance: float) -> None:
    """Compare Doc by Doc.

    tolerance (float): By how much probabilities may differ; scores above 1 by that share of them.
        From `ROUNDING` on, what only one side has is excused if it was undecided there, and a
        relation also if an argument of it is.
    RAISES (Mismatch): They are not the same.
    """
    lost: Counter[str] = Counter()
    n_probabilities, worst = 0, 0.0
    for left, right in zip_longest(ours, theirs, fillvalue=None):
        if left is None or right is None:
            raise Mismatch(f"{len(ours)} documents became {len(theirs)}")
        lost += _count_lost(left, right, tolerance)
        for found in left.keys() & right.keys():
            p, q = left[found], right[found]
            if p is None or q is None:
                n_probabilities += p is not q
            else:
                n_probabilities += abs(p - q) > tolerance * max(1.0, abs(p))  # graded scores
                worst = max(worst, abs(p - q))
    for what, number in lost.items():
        raise Mismatch(f"{number} {what} are found by one side only")
    if n_probabilities:
        raise Mismatch(f"{n_probabilities} probabilities differ, by {worst:.2g} at most")


def _count_lost(left: Findings, right: Findings, tolerance: float) -> Counter[str]:
    """Count what only one side has, but for what is excused."""
    lost: Counter[str] = Counter()
    excused: set[CharSpan] = set()
    only = {found: left.get(found, right.get(found)) for found in left.keys() ^ right.keys()}
    for found in sorted(only, key=lambda found: isinstance(found, FoundRelation)):  # spans first
        p = only[found]
        is_undecided = tolerance >= ROUNDING and p is not None and p < UNDECIDED
        if isinstance(found, FoundRelation):
            is_excused = is_undecided or bool(excused & {found.head, found.child})
            lost["relations"] += not is_excused
        elif isinstance(found, Category):  # every text has a value for every label
            lost["categories"] += 1
        elif is_undecided:
            excused.add((found.start, found.end, found.label))
        else:
            lost["spans"] += 1
    return lost


def checks(
    nlp: Any, package: str, folder: Path, other: str | None
) -> dict[str, Callable[[], str | None]]:
    """Make the checks.

    RETURNS (dict): Name of a check -> function that raises `Mismatch`, or returns details.
    """
    import spacy
    from spacy.tokens import DocBin

    texts = [*NOTES["es"], *NOTES["en"]] * COPIES
    found: dict[str, list[Findings]] = {}

    def pipe(pipeline: Any, n_process: int = 1) -> list[Findings]:
        inputs = make_inputs(pipeline, texts)
        docs = pipeline.pipe(inputs, batch_size=BATCH, n_process=n_process)
        return [find(doc) for doc in docs]

    def one_by_one() -> str:
        own = [find(nlp(each)) for each in make_inputs(nlp, texts)]
        found["single"] = own
        if not any(own):
            raise Mismatch("the pipeline finds nothing in any of the built-in notes")
        return describe(own)

    def in_batches() -> None:
        found["pipe"] = pipe(nlp)
        compare(found["single"], found["pipe"], ROUNDING)

    def through_bytes() -> None:
        # An empty pipeline of the same config; its weights come from the bytes alone.
        copy = spacy.util.load_model_from_config(nlp.config, meta=nlp.meta)
        copy.from_bytes(nlp.to_bytes())
        compare(found["pipe"], pipe(copy), EXACT)

    def through_disk() -> None:
        check_components(nlp.component_names)
        nlp.to_disk(folder / "pipeline")
        compare(found["pipe"], pipe(spacy.load(folder / "pipeline")), EXACT)

    def through_docbin() -> None:
        docs = []
        for doc in nlp.pipe(make_inputs(nlp, texts), batch_size=BATCH):
            if doc.has_extension("trf_data"):
                doc._.trf_data = None  # vectors: of no use later, and not to be serialised
            docs.append(doc)
        data = DocBin(docs=docs, store_user_data=True).to_bytes()
        back = DocBin(store_user_data=True).from_bytes(data).get_docs(nlp.vocab)
        compare(found["pipe"], [find(doc) for doc in back], EXACT)

    every: dict[str, Callable[[], str | None]] = {
        "requirements": lambda: check_requirements(package),
        "nlp(text)": one_by_one,
        "nlp.pipe(texts)": in_batches,
        "nlp.pipe(texts, n_process=2)": lambda: compare(found["pipe"], pipe(nlp, 2), ROUNDING),
        "to_bytes, from_bytes": through_bytes,
        "to_disk, load": through_disk,
        "DocBin": through_docbin,
    }
    if other is not None:
        every["same as --against"] = lambda: compare(found["pipe"], pipe(spacy.load(other)), EXACT)
    return every


def describe(found: Sequence[Findings]) -> str:
    """Say how much was found in the notes, of which there are `COPIES`."""
    kinds = {Found: "spans", FoundRelation: "relations", Category: "categories"}
    parts = []
    for kind, name in kinds.items():
        labels = [one.label for findings in found for one in findings if isinstance(one, kind)]
        if labels:
            parts.append(f"{len(labels) // COPIES} {name} of {len(set(labels))} labels")
    return f"{', '.join(parts)} in {len(found) // COPIES} notes"


def check_requirements(package: str) -> str:
    """Check that what the package requires is installed, in the versions it wants.

    RAISES (Mismatch): Something is missing or has another version.
    """
    from importlib.metadata import PackageNotFoundError, requires, version

    from packaging.requirements import Requirement

    every = [Requirement(line) for line in requires(package) or []]
    wanted = [r for r in every if r.marker is None or r.marker.evaluate({"extra": ""})]
    for requirement in wanted:
        try:
            present = version(requirement.name)
        except PackageNotFoundError:
            raise Mismatch(f"{requirement} is not installed") from None
        if not requirement.specifier.contains(present, prereleases=True):
            raise Mismatch(f"wants {requirement}, but {present} is installed")
    return ", ".join(map(str, wanted))


def refuse_network(event: str, args: tuple[Any, ...]) -> None:
    """Raise at any attempt to reach another machine: an audit hook, which forked workers keep."""
    if event == "socket.getaddrinfo":
        raise Mismatch(f"the pipeline looks up the network address {args[0]!r}")
    if event == "socket.connect" and isinstance(args[1], tuple):  # a local socket has a str
        raise Mismatch(f"the pipeline connects to {args[1][0]!r}")


def main(package: str, folder: str, other: str | None = None) -> int:
    """Run all checks, up to the first that fails.

    RETURNS (int): Exit status.
    """
    sys.addaudithook(refuse_network)
    running = "load"
    _say(begin=running)
    try:
        import spacy

        nlp = spacy.load(package)
        version = f"{nlp.meta['lang']}_{nlp.meta['name']} {nlp.meta['version']}"
        _say(name=running, passed=True, note=version)
        for running, check in checks(nlp, package, Path(folder), other).items():
            _say(begin=running)
            _say(name=running, passed=True, note=check() or "")
    except Mismatch as error:
        _say(name=running, passed=False, note=str(error))
        return 1
    except Exception as error:
        # The notes are invented, so the message holds no text of a real one.
        _say(name=running, passed=False, note=f"{type(error).__name__}: {error}")
        return 1
    return 0


def _say(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
