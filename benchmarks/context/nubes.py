"""Negation and uncertainty of Spanish notes: cues, scopes and assertion of entities on NUBes.

    python -m benchmarks.context.nubes                      # dev: sample 009
    python -m benchmarks.context.nubes --split train --errors 50
    python -m benchmarks.context.nubes --sources rules trained both
    python -m benchmarks.context.nubes --split test         # sample 010 and IULA+, once

The sources are those of `bioclin_context`; benchmarks/context/train.py trains the tagger. In the
result, the scores of sources that are not measured stay; "commits" says of which code each is.

Rules were chosen on samples 001-009. Gold kinds: NegSynMarker, NegLexMarker and NegMorMarker are
cues of negation, UncertSynMarker and UncertLexMarker of uncertainty; a scope is the target of a
Scope relation, or a part of one of DiscScope relations. Scores:

cues        exact offsets and kind
scopes      exact offsets and kind, marks at the ends ignored
tokens      words in scopes
cue_and_scope  a cue with exactly its scopes (see spacy_bioclin.evaluation.context.score_cues)
assertion   entities (DISO, PROC, SUBS, OTHER, BODY): negated or uncertain if a gold scope of the
            kind covers them, compared with `span._.negated` and `span._.uncertain`
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import spacy
from spacy.language import Language
from spacy.tokens import Doc

from benchmarks.context.train import PIPELINE as TRAINED
from benchmarks.corpora import make_blank
from benchmarks.harness import (
    RESULTS,
    data_dir,
    describe_machine,
    make_parser,
    read_json,
    write_result,
)
from spacy_bioclin.context.rules.component import SOURCES
from spacy_bioclin.corpora.brat import read_brat_file
from spacy_bioclin.evaluation.context import MARKS, Cue, score_cues
from spacy_bioclin.evaluation.spans import SpanScores, score_spans
from spacy_bioclin.types import AnnotatedText, CharSpan, RelationAnnotation, SpanAnnotation

SPLITS = {
    "train": [f"NUBes/SAMPLE-00{i}" for i in range(1, 9)],
    "dev": ["NUBes/SAMPLE-009"],
    "test": ["NUBes/SAMPLE-010", "IULA+"],
}
KINDS = ("negated", "uncertain")
EVENTS = ("DISO", "PROC", "SUBS", "OTHER", "BODY")


class Gold(NamedTuple):
    """What is annotated in a note.

    ents (dict): Offsets of an entity -> its kinds.
    """

    text: str
    linked: list[Cue]
    ents: dict[tuple[int, int], set[str]]

    @property
    def cues(self) -> set[CharSpan]:
        """Offsets and kind of each cue."""
        return {(cue.start, cue.end, cue.kind) for cue in self.linked}

    @property
    def scopes(self) -> set[CharSpan]:
        """Offsets and kind of each scope, or part of one."""
        return {(*scope, cue.kind) for cue in self.linked for scope in cue.scopes}


def read_gold(folder: Path) -> Iterator[Gold]:
    """Read the notes of a folder."""
    for path in sorted(folder.glob("*.txt")):
        yield to_gold(read_brat_file(path))


def to_gold(annotated: AnnotatedText) -> Gold:
    """Find cues, scopes and entities among the annotations of a note."""
    spans = {a.id: a for a in annotated.annotations if isinstance(a, SpanAnnotation)}
    kinds = {
        id: "negated" if span.label.startswith("Neg") else "uncertain"
        for id, span in spans.items()
        if span.label.endswith("Marker")
    }
    scopes: dict[str, set[tuple[int, int]]] = {id: set() for id in kinds}
    for relation in annotated.annotations:
        if isinstance(relation, RelationAnnotation) and relation.label in ("Scope", "DiscScope"):
            (_, cue), (_, target) = relation.args
            fragments = spans[target].fragments
            scopes[cue].add((fragments[0][0], fragments[-1][1]))
    linked = []
    for id, kind in kinds.items():
        fragments = spans[id].fragments
        linked.append(Cue(kind, fragments[0][0], fragments[-1][1], frozenset(scopes[id])))
    ents = {}
    for span in spans.values():
        if span.label in EVENTS:
            start, end = span.fragments[0][0], span.fragments[-1][1]
            ents[start, end] = {
                cue.kind for cue in linked for a, b in cue.scopes if a <= start and end <= b
            }
    return Gold(annotated.text, linked, ents)


def make_pipeline(source: str) -> Language:
    """Make the pipeline of a source.

    RAISES (SystemExit): The tagger is not trained.
    """
    if source == "rules":
        nlp = make_blank("es", "bioclin_sentences")
    elif (TRAINED / "model-last").is_dir():
        nlp = spacy.load(TRAINED / "model-last")
    else:
        raise SystemExit("train the tagger first: python -m benchmarks.context.train")
    nlp.add_pipe("bioclin_context", config={"source": source})
    return nlp


def predict(doc: Doc, gold: Gold) -> Gold:
    """Read the cues, scopes and attributes of a Doc in the form of the gold."""
    cues: dict[tuple[str, str], tuple[int, int]] = {}
    scopes = defaultdict(set)
    for span in doc.spans["context"]:
        kind, _, part = span.label_.rpartition("_")
        place = span.start_char, span.end_char
        if kind in KINDS and part == "cue":
            cues[kind, span.id_] = place
        elif kind in KINDS and place not in cues.values():  # "afebril" has no scope here
            scopes[kind, span.id_].add(place)
    linked = [Cue(key[0], *place, frozenset(scopes[key])) for key, place in cues.items()]
    ents = {}
    for place in gold.ents:
        span = doc.char_span(*place, alignment_mode="expand")
        ents[place] = {kind for kind in KINDS if span._.get(kind)}
    return Gold(doc.text, linked, ents)


def _trim(text: str, spans: set[CharSpan]) -> set[CharSpan]:
    trimmed = set()
    for start, end, kind in spans:
        part = text[start:end]
        start += len(part) - len(part.lstrip(MARKS))
        end -= len(part) - len(part.rstrip(MARKS))
        trimmed.add((start, end, kind))
    return trimmed


def _ents(gold: Gold) -> set[CharSpan]:
    return {(*place, kind) for place, kinds in gold.ents.items() for kind in kinds}


def score(pairs: list[tuple[Gold, Gold]]) -> dict[str, Any]:
    """Score predictions by kind."""
    scores: dict[str, SpanScores] = {
        **score_cues([(gold.text, gold.linked, found.linked) for gold, found in pairs]),
        "assertion": score_spans([(_ents(gold), _ents(found)) for gold, found in pairs]),
    }
    return {
        name: {
            kind: {
                **counts.prf(),
                "n_gold": counts.tp + counts.fn,
                "n_found": counts.tp + counts.fp,
            }
            for kind, counts in of_kind.per_label.items()
        }
        for name, of_kind in scores.items()
    }


def show_errors(pairs: list[tuple[Gold, Gold]], part: str, kind: str, limit: int) -> None:
    """Print lines in which gold and prediction differ: the gold in [], the prediction in {}."""
    n_shown = 0
    for gold, found in pairs:
        sides = [
            {span for span in (_ents(one) if part == "ents" else getattr(one, part))}
            for one in (gold, found)
        ]
        if part == "scopes":
            sides = [_trim(gold.text, side) for side in sides]
        sides = [{span for span in side if span[2] == kind} for side in sides]
        wrong = sorted(sides[0] ^ sides[1])
        for start, end, _ in wrong:
            side = "missed" if (start, end, kind) in sides[0] else "wrong"
            line = gold.text.rfind("\n", 0, start) + 1
            line_end = gold.text.find("\n", end)
            before = gold.text[max(line, start - 90) : start]
            after = gold.text[end : min(line_end, end + 90)]
            print(f"{side:7}{before}[[{gold.text[start:end]}]]{after}")
            n_shown += 1
            if n_shown >= limit:
                return


def main() -> None:
    """Score a split."""
    parser = make_parser(__doc__)
    parser.add_argument("--split", choices=SPLITS, default="dev")
    parser.add_argument("--errors", type=int, default=0, help="lines with errors to print")
    parser.add_argument("--part", choices=("cues", "scopes", "ents"), default="cues")
    parser.add_argument("--kind", choices=KINDS, default="negated")
    parser.add_argument("--sources", nargs="+", choices=SOURCES, default=["rules"])
    args = parser.parse_args()
    systems = {}
    for source in args.sources:
        systems[source], pairs = measure(make_pipeline(source), args.split)
        for folder, scores in systems[source].items():
            show_scores(source, folder, scores)
        if args.errors:
            show_errors(pairs, args.part, args.kind, args.errors)
    if not args.errors:
        name = f"context_nubes_{args.split}"
        path = RESULTS / f"{name}.json"
        old = read_json(path) if path.exists() else {"systems": {}}
        commits = {source: old["machine"]["commit"] for source in old["systems"]}
        commits |= old.get("commits", {}) | dict.fromkeys(systems, describe_machine()["commit"])
        write_result(name, {"commits": commits, "systems": old["systems"] | systems})


def measure(nlp: Language, split: str) -> tuple[dict[str, Any], list[tuple[Gold, Gold]]]:
    """Score a pipeline.

    RETURNS (tuple): The scores of each folder of the split, of all together for train; and gold and
        prediction of each note.
    """
    results, every = {}, []
    for folder in SPLITS[split]:
        golds = list(read_gold(data_dir() / "nubes" / folder))
        docs = nlp.pipe(gold.text for gold in golds)
        pairs = [(gold, predict(doc, gold)) for gold, doc in zip(golds, docs, strict=True)]
        results[folder] = score(pairs)
        every += pairs
    return ({"train": score(every)} if split == "train" else results), every


def show_scores(source: str, folder: str, scores: dict[str, Any]) -> None:
    """Print a line for each kind of score."""
    for name, of_kind in scores.items():
        line = "  ".join(
            f"{kind} p {s['p']:.3f} r {s['r']:.3f} f {s['f']:.3f} ({s['n_gold']})"
            for kind, s in of_kind.items()
        )
        print(f"{source:8} {folder:18} {name:10} {line}")


if __name__ == "__main__":
    main()
