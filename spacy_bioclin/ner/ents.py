"""`bioclin_ents`: fill `doc.ents` with the best spans of span groups that do not overlap."""

import warnings
from collections.abc import Collection, Sequence
from math import isnan

from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc, Span

from ..errors import BioclinError, BioclinWarning
from ..spans import get_probabilities, get_spans, install_extensions, set_spans
from .pipe import DOUBTFUL

DEFAULT_CONFIG = {"spans_keys": ["clinical"], "prefer": [], "parts": []}
PHI = "phi"
# Factories that write PHI to the span group of their setting `spans_key`.
PHI_FACTORIES = ("bioclin_phi_rules", "bioclin_deid")
# Counts for a span without a probability, which a rule or a person wrote.
CERTAIN = 1.0
LONGEST = 50  # first tokens of a span that are compared with what overlaps it


def choose_spans(
    bounds: Sequence[tuple[int, int]],
    probabilities: Sequence[float],
    labels: Sequence[str],
    *,
    linked: Collection[int] = (),
    parts: Collection[str] = (),
) -> list[int]:
    """Choose spans that do not overlap, the best first.

    The best is the most probable span. Of equally probable spans it is the longest, then the one
    that was more probable by itself, then the one that starts first, then the one whose label is
    first in the alphabet, then the first one given. A linked span is as probable as any that it
    overlaps, so that "breast cancer" wins over "cancer"; a span is as probable as a part of it.
    bounds (Sequence[tuple[int, int]]): First token of each span, and the token behind its last one.
    probabilities (Sequence[float]): One for each span.
    labels (Sequence[str]): One for each span.
    linked (Collection[int]): Indices of the spans whose concept is known.
    parts (Collection[str]): Labels of what may be part of a longer span of another label.
    RETURNS (list[int]): Indices of the chosen spans, in the order of the text. A span of no token
        is never chosen.
    """
    n_tokens = max((end for _, end in bounds), default=0)
    # Of each token, the highest probability of the spans on it, and of the parts among them: of
    # the first tokens of a span, so that nested ones cost no more than others.
    highest, highest_part = [0.0] * n_tokens, [0.0] * n_tokens
    for (start, end), p, label in zip(bounds, probabilities, labels, strict=True):
        for i in range(start, min(end, start + LONGEST)):
            highest[i] = max(highest[i], p)
            if label in parts:
                highest_part[i] = max(highest_part[i], p)

    def rank(i: int) -> tuple[float, int, float, int, str]:
        start, end = bounds[i]
        near = highest if i in linked else [] if labels[i] in parts else highest_part
        raised = max([probabilities[i], *near[start : min(end, start + LONGEST)]])
        return -raised, start - end, -probabilities[i], start, labels[i]

    # A byte for each token: whatever overlaps, looking for a taken one costs next to nothing.
    taken = bytearray(n_tokens)
    chosen = []
    for i in sorted(range(len(bounds)), key=rank):
        start, end = bounds[i]
        if start < end and taken.find(1, start, end) < 0:
            taken[start:end] = b"\1" * (end - start)
            chosen.append(i)
    return sorted(chosen, key=bounds.__getitem__)


@Language.factory(
    "bioclin_ents",
    assigns=["doc.ents", "token.ent_iob", "token.ent_type", "span._.probability"],
    requires=["doc.spans"],
    default_config=DEFAULT_CONFIG,
)
def make_ents(
    nlp: Language, name: str, spans_keys: list[str], prefer: list[str], parts: list[str]
) -> "BestEnts":
    """Make the component.

    nlp (Language): The pipeline.
    name (str): The component's name in the pipeline.
    spans_keys (list[str]): Span groups whose spans may become entities.
    prefer (list[str]): Labels that win over all others on the same tokens, the first one first:
        where an X-ray is a TEST and a PROCEDURE, ["TEST"] makes it a TEST.
    parts (list[str]): Labels of what is often part of a longer entity, which wins over it however
        probable it is: ["SPECIES"] keeps "infection with E. coli" whole.
    RETURNS (BestEnts): The component.
    RAISES (BioclinError): There is no key, or one of them is a group of PHI.
    """
    setting = f"[components.{name}] spans_keys = {spans_keys}"
    if not spans_keys:
        raise BioclinError(f'{setting}: name one span group or more, e.g. "clinical"')
    writers = {
        getattr(component, "spans_key", None): other
        for other, component in nlp.components
        if nlp.get_pipe_meta(other).factory in PHI_FACTORIES
    }
    for key in spans_keys:
        if key == PHI or key in writers:
            why = f", which [components.{writers[key]}] writes" if key in writers else ""
            raise BioclinError(
                f'{setting}: the group "{key}" is PHI{why}, and PHI is never written to doc.ents; '
                "leave it out, and read it from doc.spans"
            )
    return BestEnts(name, spans_keys, prefer, parts)


class BestEnts(Pipe):
    """Replace `doc.ents` by the best spans of some span groups that do not overlap.

    Best is what `choose_spans` says; add the component after a linker of the span group, so that
    the longest span that has a concept wins. A span without a probability counts as certain, and
    one whose probability is not a number as impossible. Spans that `doubtful_from` of `bioclin_ner`
    added, and spans without a label, are left out. Span groups are not changed; entities keep their
    id, `kb_id` and probability.

    name (str): The component's name in the pipeline.
    spans_keys (list[str]): The span groups. A warning says once if a Doc does not have one.
    prefer, parts (list[str]): See `make_ents`.
    """

    def __init__(
        self, name: str, spans_keys: list[str], prefer: list[str], parts: list[str]
    ) -> None:
        self.name = name
        self.prefer, self.parts = list(prefer), list(parts)
        self.spans_keys = list(dict.fromkeys(spans_keys))
        self._warned: set[str] = set()
        install_extensions()

    def __call__(self, doc: Doc) -> Doc:
        """Replace the entities of a Doc.

        doc (Doc): The Doc.
        RETURNS (Doc): The same Doc.
        """
        found: list[tuple[Span, float | None]] = []
        for key in self.spans_keys:
            if key not in doc.spans:
                self._warn(doc, key)
            pairs = zip(get_spans(doc, key), get_probabilities(doc, key), strict=True)
            found += ((s, p) for s, p in pairs if s.label and s.id_ != DOUBTFUL)
        chosen = choose_spans(
            [(span.start, span.end) for span, _ in found],
            [CERTAIN if p is None else 0.0 if isnan(p) else p for _, p in found],
            [span.label_ for span, _ in found],
            linked={i for i, (span, _) in enumerate(found) if span.kb_id},
            parts=self.parts,
        )
        if self.prefer:
            preferred = self._find_preferred([span for span, _ in found])
            chosen = [preferred.get((found[i][0].start, found[i][0].end), i) for i in chosen]
        set_spans(doc, None, [found[i][0] for i in chosen], [found[i][1] for i in chosen])
        return doc

    def _find_preferred(self, spans: Sequence[Span]) -> dict[tuple[int, int], int]:
        """Find the spans with labels that are preferred: first token and end -> index."""
        rank = {label: i for i, label in enumerate(self.prefer)}
        order = sorted((i for i, span in enumerate(spans) if span.label_ in rank), reverse=True)
        order.sort(key=lambda i: rank[spans[i].label_], reverse=True)
        return {(spans[i].start, spans[i].end): i for i in order}

    def _warn(self, doc: Doc, key: str) -> None:
        """Say once that no component has written a group."""
        if key in self._warned:
            return
        self._warned.add(key)
        there = ", ".join(f'"{other}"' for other in doc.spans) or "none"
        warnings.warn(
            f'[components.{self.name}] found no span group "{key}" in a Doc (groups: {there}), so '
            "nothing of it is in doc.ents: add the component that writes it before this one, or "
            "set spans_keys",
            BioclinWarning,
            stacklevel=3,
        )
