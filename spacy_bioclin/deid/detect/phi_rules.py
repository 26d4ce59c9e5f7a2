"""`bioclin_phi_rules`: structured PHI by rules, into a span group."""

from collections.abc import Sequence

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span

from ...errors import BioclinError
from ..labels import check_scheme, label_of
from .rule_data import LANGS
from .rules import load_rules

DEFAULT_CONFIG = {"spans_key": "phi", "scheme": None, "threshold": 0.5, "langs": None}


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
) -> "PhiRules":
    """Make the component.

    nlp (Language): The pipeline; its language says which rules, if `langs` does not.
    name (str): The component's name in the pipeline.
    spans_key (str): Spans are added to `doc.spans[spans_key]`.
    scheme (str | None): What the labels are named after: "meddocan", "i2b2" or "hipaa"; None for
        meddocan in a Spanish pipeline and i2b2 in others.
    threshold (float): Confidence from which a span is written, from 0 to 1.
    langs (Sequence[str] | None): Languages of the rules, "es" and "en"; None for the pipeline's.
    RETURNS (PhiRules): The component.
    RAISES (BioclinError): There is no such scheme, no rules for a language, or the threshold is
        none.
    """
    if scheme is None:
        scheme = "meddocan" if nlp.lang == "es" else "i2b2"
    if langs is None and nlp.lang in LANGS:
        langs = [nlp.lang]
    if langs is None:
        raise BioclinError(
            f"[components.{name}] langs = null: there are no PHI rules for the pipeline's language "
            f"'{nlp.lang}'; set langs to some of {', '.join(LANGS)}"
        )
    return PhiRules(
        name=name,
        spans_key=spans_key,
        scheme=scheme,
        threshold=threshold,
        langs=tuple(langs),
    )


class PhiRules:
    """Adds structured PHI to a span group, and keeps what is there. It has no state."""

    def __init__(
        self,
        *,
        name: str,
        spans_key: str,
        scheme: str,
        threshold: float,
        langs: tuple[str, ...],
    ) -> None:
        check_scheme(scheme)
        if not 0 <= threshold <= 1:
            raise BioclinError(
                f"[components.{name}] threshold = {threshold}: want a number from 0 to 1"
            )
        load_rules(*langs)  # says so now if there are none
        self.name = name
        self.spans_key = spans_key
        self.scheme = scheme
        self.threshold = threshold
        self.langs = langs

    def __call__(self, doc: Doc) -> Doc:
        """A span that begins or ends within a token takes the whole token. `span.id_` is the kind
        of the rule; spans that were there without a confidence get 1."""
        group = doc.spans.get(self.spans_key)
        spans = list(group or ())
        scores = None if group is None else group.attrs.get("scores")
        confidences = [1.0] * len(spans) if scores is None else [float(score) for score in scores]
        for phi in load_rules(*self.langs).find(doc.text):
            if phi.confidence >= self.threshold:
                span: Span | None = doc.char_span(
                    phi.start,
                    phi.end,
                    label=label_of(phi.label, self.scheme),
                    span_id=phi.detector,
                    alignment_mode="expand",
                )
                assert span is not None  # the offsets are those of doc.text
                spans.append(span)
                confidences.append(phi.confidence)
        doc.spans[self.spans_key] = spans
        doc.spans[self.spans_key].attrs["scores"] = np.array(confidences, dtype=np.float32)
        return doc
