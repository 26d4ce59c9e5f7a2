"""`bioclin_context`: find what is negated, uncertain, historical, hypothetical or of the family."""

import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import srsly
from spacy.attrs import IDX, LENGTH, SENT_START
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc

from ...errors import BioclinError
from ...settings import check_choice
from ...text import fold_by_char
from ..trained import TRAINED_KINDS, add_rules, read_tagged
from .attributes import Context, Tokens, install_extensions, make_group
from .rule_data import KINDS, SECTION, TRAINED, check_langs, make_rules, read_own
from .scopes import find_context

SECTIONS_KEY, TITLES_KEY = "sections", "section_titles"
LINE_TITLE = re.compile(r"(?:\n[^\S\n]*|\. ?)([a-z]+)\.?(?: [a-z/&]+){0,3} ?:")
SOURCES = ("rules", "trained", "both")
DEFAULT_CONFIG = {
    "langs": None,
    "rules": None,
    "sections": {
        "family_history": "family",
        "surgical_history": "historical",
        "past_history": {"historical": ["PROCEDURE"]},
        "gynecologic_history": {"historical": ["PROCEDURE"]},
        "allergies": {"historical": ["SYMPTOM", "DISEASE"]},
        "plan": {"hypothetical": ["PROCEDURE", "TEST"]},
    },
    "source": "rules",
    "cues_key": "cues",
    "assertions_key": "assertions",
    "tagged": {},
    "scorer": {"@scorers": "spacy-bioclin.context_scorer.v1"},
}
Scorer = Callable[..., dict[str, Any]]


@Language.factory(
    "bioclin_context",
    assigns=[
        "doc.spans",
        "span._.negated",
        "span._.uncertain",
        "span._.historical",
        "span._.hypothetical",
        "span._.family",
        "span._.context",
    ],
    requires=["doc.sents"],
    default_config=DEFAULT_CONFIG,
    retokenizes=False,
)
def make_context(
    nlp: Language,
    name: str,
    langs: Sequence[str] | None,
    rules: str | dict[str, Any] | None,
    sections: dict[str, str | dict[str, list[str]]],
    source: str,
    cues_key: str,
    assertions_key: str,
    tagged: dict[str, str],
    scorer: Scorer | None,
) -> "BioclinContext":
    """Make the component. It needs sentences; entities may come before or after it.

    nlp (Language): The pipeline.
    name (str): The component's name in the pipeline.
    langs (Sequence[str] | None): Languages of the rules, "es" and "en"; None for the pipeline's.
    rules (str | dict | None): A YAML file with rules of your own, or its content. They are added to
        the languages' rules, and saved with the pipeline.
    sections (dict[str, str | dict[str, list[str]]]): Category of a section (`bioclin_sections`) ->
        what it makes of everything in it, or of spans with some labels: a procedure of the plan is
        to come, its drugs and problems are not.
    source (str): What finds negation and uncertainty: "rules"; "trained", a tagger; or "both", a
        tagger and what only rules find. The other kinds always come from rules.
    cues_key (str): The tagger's cues and scopes are in `doc.spans[cues_key]`, with the labels of
        the task nubes-context: "negated_cue", "negated_scope", "uncertain_cue", "uncertain_scope".
    assertions_key (str): Spans of another tagger are in `doc.spans[assertions_key]`, each with a
        kind as its label; what overlaps one is of this kind.
    tagged (dict[str, str]): Kind -> "trained" if this tagger decides it instead of rules and
        sections, "both" if it adds to them; other kinds come from these alone. The tagger's group
        is removed from the Doc when it has been read.
    scorer (Callable | None): See `spacy-bioclin.context_scorer.v1`.
    RETURNS (BioclinContext): The component.
    RAISES (BioclinError): There are no rules for a language, or a rule, a section's kind, the
        source or a tagged kind is wrong.
    """
    langs = check_langs(langs, str(nlp.lang), name)
    context = BioclinContext(
        name, langs, rules, sections=sections, source=source, cues_key=cues_key
    )
    for kind, source in tagged.items():
        context.check("tagged", kind, KINDS)
        context.check(f"tagged.{kind}", source, SOURCES[1:])
    context.assertions_key, context.tagged = assertions_key, dict(tagged)
    context.scorer = scorer
    return context


class BioclinContext(Pipe):
    """Write cues and scopes to `doc.spans["context"]`. See `make_context`."""

    scorer: Scorer | None = None
    assertions_key = "assertions"
    tagged: Mapping[str, str] = MappingProxyType({})

    def __init__(
        self,
        name: str,
        langs: Sequence[str],
        rules: str | Mapping[str, Any] | None,
        *,
        sections: Mapping[str, str | Mapping[str, Sequence[str]]],
        source: str,
        cues_key: str,
    ) -> None:
        self.name = name
        self.langs = tuple(langs)
        self.sections = dict(sections)
        for category, kinds in self.sections.items():
            for kind in [kinds] if isinstance(kinds, str) else kinds:
                self.check(f"sections.{category}", kind, KINDS)
        self.check("source", source, SOURCES)
        self.source = source
        self.cues_key = cues_key
        self.own: dict[str, Any] = {}
        self._missing: str | None = None  # a file that the saved pipeline may not need
        if isinstance(rules, str) and not Path(rules).exists():
            self._missing = rules
        elif rules is not None:
            self.own = read_own(rules, where=f"[components.{name}.rules]")
        self._rules = make_rules(self.langs, self.own)
        install_extensions()

    def __call__(self, doc: Doc) -> Doc:
        """Find the cues of a Doc and their scopes.

        doc (Doc): The Doc, with sentences.
        RETURNS (Doc): The same Doc.
        RAISES (BioclinError): It has no sentences.
        """
        self._check_file()
        if len(doc) > 1 and not doc.has_annotation("SENT_START"):
            raise BioclinError(
                f"[components.{self.name}] needs sentences, since no scope goes on past one: add "
                "'bioclin_sentences' (or another component that sets them) before it"
            )
        found = (*self._by_source(doc), *self._by_sections(doc))
        kept = [one for one in found if self.tagged.get(one[0]) != "trained"]
        make_group(doc, (*kept, *self._by_tagger(doc)))
        if self.tagged:  # what it said is in the group now
            del doc.spans[self.assertions_key]
        return doc

    def check(self, key: str, value: str, known: Sequence[str]) -> None:
        """Refuse a value that a setting cannot have."""
        try:
            check_choice(value, known)
        except ValueError as error:
            raise BioclinError(f"[components.{self.name}] {key} = {value!r}: {error}") from None

    def _by_source(self, doc: Doc) -> Iterator[Context]:
        by_rules = list(self._by_rules(doc))
        own = [one for one in by_rules if one[0] in KINDS]
        if self.source == "rules":
            yield from own
            return
        if self.cues_key not in doc.spans:
            raise BioclinError(
                f"[components.{self.name}] source = {self.source!r}: there is no doc.spans["
                f"{self.cues_key!r}]; add a trained 'bioclin_ner' with that spans_key before it, "
                "or set source = 'rules'"
            )
        yield from (one for one in own if one[0] not in TRAINED_KINDS)
        tagged = read_tagged(doc, self.cues_key, where=f"[components.{self.name}]")
        yield from tagged if self.source == "trained" else add_rules(tagged, by_rules)

    def _by_tagger(self, doc: Doc) -> Iterator[Context]:
        """Make a scope, which is its own cue, of each span of the tagger of assertions."""
        if self.tagged and self.assertions_key not in doc.spans:
            raise BioclinError(
                f"[components.{self.name}] tagged = {self.tagged!r}: there is no doc.spans["
                f"{self.assertions_key!r}]; add a trained 'bioclin_ner' with that spans_key before "
                "it, or set tagged = {}"
            )
        for span in doc.spans.get(self.assertions_key, ()):
            if span.label_ in self.tagged:
                place = span.start, span.end
                yield span.label_, TRAINED, place, place

    def _by_rules(self, doc: Doc) -> Iterator[Context]:
        tokens = doc.to_array([IDX, LENGTH, SENT_START])
        if not len(tokens):
            return
        starts = tokens[:, 0].tolist()
        ends = (tokens[:, 0] + tokens[:, 1]).tolist()
        borders = [starts[i] for i in np.flatnonzero(tokens[:, 2] == 1)]
        for section in doc.spans.get(SECTIONS_KEY, ()):
            borders += [starts[section.start], ends[section.end - 1]]

        def place(offsets: tuple[int, int]) -> Tokens:
            return bisect_right(ends, offsets[0]), bisect_left(starts, offsets[1])

        for found in find_context(doc.text, borders, self._rules):
            cue, scope = place(found.cue), found.scope and place(found.scope)
            if found.kind == "negated" and cue == scope and cue[1] - cue[0] == 1:
                scope = None  # "afebril": who is afebrile has no fever, and nothing else is negated
            yield found.kind, found.rule, cue, scope

    def _by_sections(self, doc: Doc) -> Iterator[Context]:
        """Make a scope of the text of each section that has a kind; its cue is the title.

        It ends where today's problem begins without a heading: "AF: madre con asma. Acude por tos".
        """
        titles = {title.start: title.end for title in doc.spans.get(TITLES_KEY, ())}
        for section in doc.spans.get(SECTIONS_KEY, ()):
            kinds = self.sections.get(section.label_, {})
            of_kind = {kinds: ()} if isinstance(kinds, str) else kinds
            for kind, labels in of_kind.items():
                body = titles.get(section.start, section.start)
                cue = section.start, max(body, section.start + 1)
                while body < section.end and not doc[body].is_alpha and not doc[body].is_digit:
                    body += 1  # the colon
                end = self._find_today(doc, body, section.end)
                rule = f"{SECTION} ({', '.join(labels)})" if labels else SECTION
                yield kind, rule, cue, (body, end) if body < end else None

    def _find_today(self, doc: Doc, start: int, end: int) -> int:
        """Find the first token of today's problem in a section; its end if there is none."""
        part = doc[start:end]
        folded = fold_by_char(part.text)
        found = [match.start() for one in self._rules.today if (match := one.search(folded))]
        # A line with a title that is in no list is not of the section, unless it names a relative.
        lines = (one for one in LINE_TITLE.finditer(folded) if one[1] not in self._rules.relatives)
        found += [one.start() for one in itertools.islice(lines, 1)]
        if not found:
            return end
        at = part.start_char + min(found)
        return next((token.i for token in part if token.idx + len(token) > at), end)

    def _check_file(self) -> None:
        """Refuse to work without the file of rules that the setting names."""
        if self._missing is not None:
            read_own(self._missing, where=self.name)

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Serialize the user's rules."""
        self._check_file()
        return srsly.msgpack_dumps({"rules": self.own})

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "BioclinContext":
        """Load what `to_bytes` made."""
        return self._load(srsly.msgpack_loads(data)["rules"], "bytes")

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Save the user's rules in a folder."""
        self._check_file()
        Path(path).mkdir(parents=True, exist_ok=True)
        srsly.write_json(Path(path) / "rules.json", self.own)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "BioclinContext":
        """Load what `to_disk` saved."""
        file = Path(path) / "rules.json"
        return self._load(srsly.read_json(file), str(file))

    def _load(self, own: Any, where: str) -> "BioclinContext":
        self.own, self._missing = read_own(own, where=where), None
        self._rules = make_rules(self.langs, self.own)
        return self
