"""`bioclin_phi_rules`: find structured PHI with rules, and add it to a span group."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ...errors import BioclinError
from ...spans import set_spans
from ..labels import check_scheme, label_of
from ..spans import get_phi, make_span
from .clinical import leave_out_clinical
from .rule_data import LANGS
from .rules import load_rules

DEFAULT_CONFIG = {
    "spans_key": "phi",
    "scheme": None,
    "threshold": 0.5,
    "langs": None,
    "scorer": {"@scorers": "spacy-bioclin.span_scorer.v1"},
}
Scorer = Callable[..., dict[str, Any]]


@Language.factory(
    "bioclin_phi_rules", assigns=["doc.spans"], default_config=DEFAULT_CONFIG, retokenizes=False
)
def make_phi_rules(
    nlp: Language,
    name: str,
    spans_key: str,
    scheme: str | None,
    threshold: float,
    langs: Sequence[str] | None,
    scorer: Scorer | None,
) -> "PhiRules":
    """Make the component.

    nlp (Language): The pipeline.
    name (str): The component's name in the pipeline.
    spans_key (str): Spans are added to `doc.spans[spans_key]`.
    scheme (str | None): Label scheme: "meddocan", "i2b2" or "hipaa"; None for meddocan in a Spanish
        pipeline and i2b2 in others.
    threshold (float): Least confidence of a span, from 0 to 1.
    langs (Sequence[str] | None): Languages of the rules, "es" and "en"; None for the pipeline's.
    scorer (Callable | None): See `spacy-bioclin.span_scorer.v1`.
    RAISES (BioclinError): There is no such scheme, there are no rules for a language, or the
        threshold is not from 0 to 1.
    """
    lang = str(nlp.lang)
    if langs is None and lang not in LANGS:
        raise BioclinError(
            f"[components.{name}] langs = null: there are no PHI rules for the pipeline's language "
            f"'{lang}'; set langs to some of {', '.join(LANGS)}"
        )
    scheme = scheme or ("meddocan" if lang == "es" else "i2b2")
    langs = (lang,) if langs is None else tuple(langs)
    return PhiRules(name, spans_key, scheme, threshold, langs, scorer)


@dataclass(eq=False)
class PhiRules:
    """Add structured PHI to a span group. See `make_phi_rules`."""

    name: str
    spans_key: str
    scheme: str
    threshold: float
    langs: tuple[str, ...]
    scorer: Scorer | None = None

    def __post_init__(self) -> None:
        check_scheme(self.scheme)
        if not 0 <= self.threshold <= 1:
            raise BioclinError(
                f"[components.{self.name}] threshold = {self.threshold}: want a number from 0 to 1"
            )
        load_rules(*self.langs)  # an error now if there are none

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """Score the spans of `spans_key`, which may be of other components too."""
        if self.scorer is None:
            return {}
        return self.scorer(examples, **{"spans_key": self.spans_key, **kwargs})

    def __call__(self, doc: Doc) -> Doc:
        """Add spans of whole tokens; `span.id_` is the kind of the rule.

        The spans that are there stay; without a confidence they count as certain.
        """
        spans = list(doc.spans.get(self.spans_key, ()))
        confidences = [phi.confidence for phi in get_phi(doc, self.spans_key)]
        found = load_rules(*self.langs).find(doc.text)
        for phi in leave_out_clinical(doc.text, found, self.langs):
            if phi.confidence >= self.threshold:
                label = label_of(phi.label, self.scheme)
                spans.append(make_span(doc, phi._replace(label=label)))
                confidences.append(phi.confidence)
        set_spans(doc, self.spans_key, spans, confidences)
        return doc
