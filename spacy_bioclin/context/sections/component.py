"""`bioclin_sections`: find the sections of a note."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import srsly
from spacy.language import Language
from spacy.tokens import Doc, Span

from ...errors import BioclinError
from ...settings import read_json, read_yaml
from .finder import SectionSpan, find_sections
from .result import DEFAULT_KEY, install_extensions, titles_key
from .rules import LANGS, SectionRules, make_rules, read_titles

FILE = "titles.json"
DEFAULT_CONFIG = {"spans_key": DEFAULT_KEY, "titles": None, "rules": None, "langs": None}


@Language.factory(
    "bioclin_sections", assigns=["doc.spans"], default_config=DEFAULT_CONFIG, retokenizes=False
)
def make_sections(
    nlp: Language,
    name: str,
    spans_key: str,
    titles: dict[str, Any] | None,
    rules: str | None,
    langs: Sequence[str] | None,
) -> "SectionFinder":
    """Make the component.

    nlp (Language): The pipeline.
    name (str): The component's name in the pipeline.
    spans_key (str): The sections are in `doc.spans[spans_key]`, their titles in another group
        ("section_titles" for "sections").
    titles (dict | None): Category -> titles, added to the shipped ones, see rules.py.
    rules (str | None): Path of a YAML file with more of them. It is read once; its content is saved
        with the pipeline, which then loads without the file.
    langs (list[str] | None): Languages of the titles, "es" and "en"; None for the pipeline's.
    RAISES (BioclinError): There are no titles for a language, or a mistake in titles or rules.
    """
    where = f"[components.{name}]"
    lang = str(nlp.lang)
    if langs is None and lang not in LANGS:
        raise BioclinError(
            f"{where} langs = null: there are no section titles for the pipeline's language "
            f"'{lang}'; set langs to some of {', '.join(LANGS)}"
        )
    added = read_titles(titles, where=f"{where} titles")
    missing = rules is not None and not Path(rules).exists()
    if rules is not None and not missing:
        added = _join(read_titles(read_yaml(Path(rules)), where=rules), added)
    finder = SectionFinder(name, spans_key, tuple(langs or (lang,)), added)
    if missing:
        # A saved pipeline brings the content of a file that is gone: see from_disk.
        finder.fault = f"{where} rules = {rules!r}: no such file; give the path of a YAML file"
    return finder


class SectionFinder:
    """Find the sections of a note. See `make_sections`.

    added (Mapping[str, Any]): Titles beside the shipped ones, see `rules.read_titles`.
    fault (str): Why there are no rules yet, or "".
    """

    def __init__(
        self, name: str, spans_key: str, langs: tuple[str, ...], added: Mapping[str, Any]
    ) -> None:
        self.name = name
        self.spans_key = spans_key
        self.langs = langs
        self.fault = ""
        self._set_added(added)
        install_extensions()

    def _set_added(self, added: Mapping[str, Any]) -> None:
        self.added = added
        try:
            self.rules: SectionRules = make_rules(self.langs, added)
        except BioclinError as error:
            raise BioclinError(f"[components.{self.name}] langs: {error}") from None

    def __call__(self, doc: Doc) -> Doc:
        """Set the span groups of sections and titles, replacing earlier ones.

        Spans consist of whole tokens: a token that a heading begins or ends in is part of its
        title. Of two headings that begin in one token, the second counts.

        doc (Doc): The Doc.
        RETURNS (Doc): The same Doc.
        RAISES (BioclinError): The file of rules was not there when the component was made.
        """
        self._check()
        install_extensions()  # lost when a worker process starts
        sections: list[Span] = []
        titles: list[Span] = []
        for found in find_sections(doc.text, self.rules):
            title = doc.char_span(found.start, found.title_end, alignment_mode="expand")
            section = doc.char_span(found.start, found.end, alignment_mode="expand")
            if title is None or section is None:
                continue
            if sections and section.start <= sections[-1].start:
                del sections[-1], titles[-1]
            elif sections and section.start < sections[-1].end:
                _shorten(sections, titles, section.start)
            sections.append(self._label(doc, section, found))
            titles.append(self._label(doc, title, found))
        doc.spans[self.spans_key] = sections
        doc.spans[titles_key(self.spans_key)] = titles
        return doc

    def _label(self, doc: Doc, span: Span, found: SectionSpan) -> Span:
        loinc = self.rules.loinc.get(found.category) or ""
        return Span(doc, span.start, span.end, label=found.category, kb_id=loinc)

    def _check(self) -> None:
        if self.fault:
            raise BioclinError(self.fault)

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Serialize the titles that were added."""
        self._check()
        return srsly.msgpack_dumps(self.added)

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "SectionFinder":
        """Load what `to_bytes` made."""
        return self._restore(srsly.msgpack_loads(data), f"[components.{self.name}]")

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Save the titles that were added in a folder."""
        self._check()
        Path(path).mkdir(parents=True, exist_ok=True)
        srsly.write_json(Path(path) / FILE, self.added)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "SectionFinder":
        """Load what `to_disk` saved."""
        file = Path(path) / FILE
        return self._restore(read_json(file), str(file))

    def _restore(self, added: Any, where: str) -> "SectionFinder":
        self._set_added(read_titles(added, where=where))
        self.fault = ""
        return self


def _shorten(sections: list[Span], titles: list[Span], end: int) -> None:
    """End the last section and its title where the next one begins, within a token."""
    for spans in (sections, titles):
        last = spans[-1]
        spans[-1] = Span(
            last.doc, last.start, min(last.end, end), label=last.label, kb_id=last.kb_id
        )


def _join(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Join titles of two sources; the codes of the second count."""
    joined = dict(first)
    for category, values in second.items():
        known = joined.get(category, {**values, "titles": [], "parts": [], "loinc": None})
        joined[category] = {
            "titles": [*known["titles"], *values["titles"]],
            "parts": [*known["parts"], *values["parts"]],
            "loinc": values["loinc"] or known["loinc"],
            "new": known["new"],
        }
    return joined
