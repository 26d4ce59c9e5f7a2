"""Use a pipeline as a recognizer of Presidio, for Spanish clinical notes:

    analyzer.registry.add_recognizer(BioclinRecognizer("es_bioclin_deid", "es"))

It does not use Presidio's NLP engine: a "no_op" or a blank one is enough.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import spacy
import srsly
from spacy.language import Language
from spacy.tokens import Doc

from ..errors import BioclinError
from .labels import phi_type_of
from .spans import PhiSpan, get_phi

try:
    from presidio_analyzer import AnalysisExplanation, LocalRecognizer, RecognizerResult
except ImportError as error:
    raise BioclinError(
        "BioclinRecognizer needs presidio-analyzer: pip install 'spacy-bioclin[presidio]'"
    ) from error

ID = "ID"
_NAMES = srsly.read_yaml(Path(__file__).with_name("presidio.yml"))
ENTITIES: dict[str, str] = _NAMES["types"]
ENTITIES_OF_KINDS: dict[str, str] = _NAMES["kinds"]
_ENTITIES = frozenset([*ENTITIES.values(), *ENTITIES_OF_KINDS.values()])


def entity_of(label: str, detector: str = "") -> str:
    """Name Presidio's entity for a PHI span.

    label (str): PHI type, or label of any scheme.
    detector (str): What found it; a rule for one kind of identifier is more specific than a label.
    RETURNS (str): A label that is in no scheme, or is Presidio's own, stays.
    """
    for kind in detector.split("+"):
        for prefix, entity in ENTITIES_OF_KINDS.items():
            if kind == prefix or kind.startswith(f"{prefix}_"):
                return entity
    phi_type = phi_type_of(label)
    return label if phi_type is None or label in _ENTITIES else ENTITIES.get(phi_type, ID)


class BioclinRecognizer(LocalRecognizer):
    """Return the spans of `doc.spans[spans_key]` as Presidio's results.

    nlp (Language | str | Path): The pipeline, or its name or folder.
    lang (str): Language of the analyzer's requests; "" for the pipeline's.
    entities (Sequence[str] | None): Presidio's entities that may be found; None for all.
    spans_key (str): Where the pipeline writes PHI.
    name (str): Name of the recognizer in the results.
    """

    name: str

    def __init__(
        self,
        nlp: Language | str | Path,
        lang: str = "",
        *,
        entities: Sequence[str] | None = None,
        spans_key: str = "phi",
        name: str = "BioclinRecognizer",
    ) -> None:
        self.nlp = nlp if isinstance(nlp, Language) else spacy.load(nlp)
        self.spans_key = spans_key
        known = {*ENTITIES.values(), *ENTITIES_OF_KINDS.values(), ID, *self._own_labels()}
        unknown = sorted(set(entities or ()) - known)
        if unknown:
            raise BioclinError(
                f"entities = {unknown}: the pipeline does not find them, want some of "
                f"{', '.join(sorted(known))}"
            )
        super().__init__(
            supported_entities=sorted(known if entities is None else entities),
            supported_language=lang or str(self.nlp.lang),
            name=name,
            version=str(self.nlp.meta.get("version", "0.0.0")),
        )

    def _own_labels(self) -> set[str]:
        """List the entities of the components' labels."""
        return {entity_of(label) for names in self.nlp.pipe_labels.values() for label in names}

    def load(self) -> None:
        """Do nothing: the pipeline is loaded."""

    def analyze(
        self, text: str, entities: Sequence[str], nlp_artifacts: Any = None
    ) -> list[RecognizerResult]:
        """Find PHI.

        entities (Sequence[str]): The wanted entities of Presidio; all if empty.
        nlp_artifacts (Any): Not used.
        RETURNS (list[RecognizerResult]): In the order of the group; they may overlap.
        RAISES (BioclinError): No component of the pipeline writes such a group.
        """
        wanted = set(entities or self.supported_entities) & set(self.supported_entities)
        results = self._results(self.nlp(text))
        return [result for result in results if result.entity_type in wanted]

    def _results(self, doc: Doc) -> list[RecognizerResult]:
        if self.spans_key not in doc.spans:
            raise BioclinError(
                f"spans_key = {self.spans_key!r}: no component of the pipeline "
                f"({', '.join(self.nlp.pipe_names) or 'none'}) writes doc.spans"
                f"[{self.spans_key!r}]; add bioclin_ner with this spans_key or bioclin_phi_rules"
            )
        return [self._result(phi) for phi in get_phi(doc, self.spans_key)]

    def _result(self, phi: PhiSpan) -> RecognizerResult:
        entity = entity_of(phi.label, phi.detector)
        reason = f"Identified as {entity} by {phi.detector} (label: {phi.label})"
        return RecognizerResult(
            entity_type=entity,
            start=phi.start,
            end=phi.end,
            score=phi.confidence,
            analysis_explanation=AnalysisExplanation(
                recognizer=self.name, original_score=phi.confidence, textual_explanation=reason
            ),
            recognition_metadata={
                RecognizerResult.RECOGNIZER_NAME_KEY: self.name,
                RecognizerResult.RECOGNIZER_IDENTIFIER_KEY: self.id,
                "label": phi.label,
                "detector": phi.detector,
            },
        )
