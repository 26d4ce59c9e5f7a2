"""Describe an annotated note, and a safe note, for the answers of the service."""

from collections.abc import Iterable

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import get_lang_class

from ..about import __version__
from ..context.sections.result import get_sections
from ..deid.component import LANGS, is_other_language
from ..deid.pipeline import find_deid
from ..encoders.cleaner import clean_doc
from ..errors import BioclinError
from ..linking.candidates import Candidate
from ..linking.docs import get_candidates
from ..linking.kb.knowledge_base import KnowledgeBase
from ..runner.columns import Row
from ..runner.leaks import Hidden
from ..runner.notes.coverage import take_coverage
from ..runner.notes.describe import (
    ENTS,
    describe_categories,
    describe_entities,
    describe_relations,
    describe_results,
)
from ..runner.notes.targets import to_json
from ..spans import get_layers

N_CANDIDATES = 5  # of each entity, best first
Place = tuple[str, int, int, str]  # layer, start, end, label


class Describer:
    """Take out of an annotated Doc what the service answers.

    nlp (Language): The pipeline.
    """

    def __init__(self, nlp: Language) -> None:
        self.nlp = nlp
        self.stop_words = {lang: get_lang_class(lang).Defaults.stop_words for lang in LANGS}
        self.bases: list[KnowledgeBase] = [
            pipe.kb  # type: ignore[attr-defined]
            for name, pipe in nlp.components
            if nlp.get_pipe_meta(name).factory == "bioclin_linker"
        ]

    def annotate(self, doc: Doc) -> Row:
        """Describe entities, sections, relations and classes of a note.

        RETURNS (Row): Values that JSON has. Offsets are code points of the unchanged text.
        """
        text = doc.text
        coverage = take_coverage(doc)
        clean_doc(doc)
        candidates = self._find_candidates(doc)
        entities = describe_entities(doc, text)
        for each in entities:
            place = (each["layer"], each["start"], each["end"], each["label"])
            each["candidates"] = candidates.get(place, [])
        return to_json(
            {
                "characters": len(text),
                "language": self.guess_language(text),
                "entities": entities,
                "sections": describe_sections(doc),
                "relations": describe_relations(doc),
                "results": describe_results(doc),
                "categories": describe_categories(doc),
                "coverage": coverage and coverage._asdict(),
            }
        )

    def deidentify(self, doc: Doc) -> Row:
        """Describe the safe note: its text, and each replacement with its places in both texts.

        RAISES (BioclinError): The safe note still has something that was hidden elsewhere in it.
        """
        result = doc._.deid
        hidden = Hidden(result.phi_values, str(self.nlp.lang))
        if kinds := hidden.find_in_note(result.checked_text):
            raise BioclinError(
                f"PHI of this note ({', '.join(kinds)}) is in the safe note: treat it with another "
                "operator in the policy"
            )
        spans = []
        for span in result.spans:
            start, end = result.offsets.to_safe(span.start, span.end)
            spans.append(
                {
                    "start": span.start,
                    "end": span.end,
                    "label": span.label,
                    "probability": round(float(span.confidence), 4),
                    "detector": span.detector,
                    "replacement": result.text[start:end],
                    "safe_start": start,
                    "safe_end": end,
                }
            )
        answer = {
            "characters": len(doc.text),
            "language": self.guess_language(doc.text),
            "text": result.text,
            "spans": spans,
        }
        return to_json(answer)

    def guess_language(self, text: str) -> str | None:
        """Guess whether a note is in Spanish or English.

        RETURNS (str | None): None for a note of fewer than 40 words, or in another language.
        """
        words = [word for word in text.lower().split() if word.isalpha()]
        if len(words) < 40:
            return None
        counts = {
            lang: sum(word in stop_words for word in words)
            for lang, stop_words in self.stop_words.items()
        }
        best = max(counts, key=lambda lang: counts[lang])
        return None if is_other_language(text, self.stop_words[best]) else best

    def _find_candidates(self, doc: Doc) -> dict[Place, list[Row]]:
        """Describe the candidates of the linked spans of a Doc, by place."""
        if not self.bases:
            return {}
        found: dict[Place, list[Row]] = {}
        for key, spans, _ in get_layers(doc):
            for span in spans:
                if candidates := get_candidates(span):
                    place = (key or ENTS, span.start_char, span.end_char, span.label_)
                    found[place] = [self._describe(one) for one in candidates[:N_CANDIDATES]]
        return found

    def _describe(self, candidate: Candidate) -> Row:
        return {
            "kb_id": candidate.kb_id,
            "name": candidate.name,
            "score": round(float(candidate.score), 4),
            "definition": self._find_definition(candidate.kb_id),
        }

    def _find_definition(self, kb_id: str) -> str | None:
        for kb in self.bases:
            number = kb.number(kb_id)
            if number is not None and (definition := kb.definition_of(number)):
                return definition
        return None


def describe_sections(doc: Doc) -> list[Row]:
    """Describe the sections of a note; `title_start` and `title_end` are None without a title."""
    return [
        {
            "start": section.title.start_char if section.title else section.body.start_char,
            "end": section.body.end_char,
            "label": section.category,
            "loinc": section.loinc,
            "title_start": section.title and section.title.start_char,
            "title_end": section.title and section.title.end_char,
            "body_start": section.body.start_char,
        }
        for section in get_sections(doc)
    ]


def describe_pipeline(nlp: Language) -> Row:
    """Name a pipeline, for every answer."""
    lang, meta = str(nlp.lang), nlp.meta
    return {"name": f"{lang}_{meta['name']}", "version": str(meta["version"]), "lang": lang}


def describe_service(nlp: Language, limits: Row) -> Row:
    """Describe the pipeline and the limits of the service.

    RETURNS (Row): "labels" has, for each layer, the labels of the components that write it.
    """
    return {
        "pipeline": describe_pipeline(nlp),
        "version": __version__,
        "components": list(nlp.pipe_names),
        "labels": find_labels(nlp),
        "deidentify": has_deid(nlp),
        "limits": limits,
    }


def find_labels(nlp: Language) -> dict[str, list[str]]:
    """Find the labels that components of a pipeline may give, by layer."""
    found: dict[str, set[str]] = {}
    for name, pipe in nlp.pipeline:
        labels: Iterable[str] = getattr(pipe, "labels", ())
        key = nlp.get_pipe_config(name).get("spans_key")
        if labels:
            found.setdefault(key or ENTS, set()).update(map(str, labels))
    return {layer: sorted(labels) for layer, labels in found.items()}


def has_deid(nlp: Language) -> bool:
    """Check whether a pipeline de-identifies."""
    try:
        return find_deid(nlp).name in nlp.pipe_names
    except BioclinError:
        return False
