"""Read cues_es.yml, cues_en.yml and a user's own rules; cues_es.yml explains the fields."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from pydantic import Field, field_validator, model_validator

from ...errors import BioclinError
from ...evaluation.context import ATTRIBUTES
from ...settings import Settings, check_choice, read_settings, read_yaml
from .phrases import PhraseTable, expand_choices, fold_phrase

LANGS = ("es", "en")
KINDS = ATTRIBUTES
Direction = Literal["forward", "backward", "both", "either", "self"]
DIRECTIONS: tuple[str, ...] = get_args(Direction)
CUE, TERMINATOR = 0, 1  # slots of the phrase table
TRAINED = "trained"  # the rule of what a tagger has found
PSEUDO = "pseudo"  # the kind of a phrase that is no cue
SECTION = "section"  # the rule of the scopes that a section's category gives
RESERVED = (SECTION, TRAINED)
WORD_LISTS = ("carry", "join", "link", "dangling", "relatives")


class RuleSettings(Settings):
    """A rule as it is in a file."""

    kind: str | None = None
    direction: str | None = None
    phrases: list[str] = Field(default_factory=list)
    regex: str | None = None
    name: str | None = None
    max_tokens: int | None = None
    not_before: list[str] = Field(default_factory=list)
    until: list[str] = Field(default_factory=list)
    concord: bool = False
    pseudo: bool = False

    @field_validator("kind")
    @classmethod
    def _known_kind(cls, kind: str | None) -> str | None:
        return kind and check_choice(kind, KINDS)

    @field_validator("direction")
    @classmethod
    def _known_direction(cls, direction: str | None) -> str | None:
        return direction and check_choice(direction, DIRECTIONS)

    @field_validator("phrases")
    @classmethod
    def _right_phrases(cls, phrases: list[str]) -> list[str]:
        return _check_phrases(phrases)

    @field_validator("regex")
    @classmethod
    def _compiles(cls, regex: str | None) -> str | None:
        return _check_regex(regex)

    @field_validator("name")
    @classmethod
    def _free_name(cls, name: str | None) -> str | None:
        if name in RESERVED or name == "":
            raise ValueError(f"want another name than {', '.join(RESERVED)}, which are in use")
        return name

    @field_validator("max_tokens")
    @classmethod
    def _positive(cls, max_tokens: int | None) -> int | None:
        if max_tokens is not None and max_tokens < 1:
            raise ValueError("want a number of words from 1")
        return max_tokens

    @model_validator(mode="after")
    def _complete(self) -> "RuleSettings":
        if bool(self.phrases) == bool(self.regex):
            raise ValueError("want either phrases or regex")
        if not self.pseudo and not self.kind:
            raise ValueError(f"kind is missing; want one of {', '.join(KINDS)}")
        if not self.pseudo and not self.direction:
            raise ValueError(f"direction is missing; want one of {', '.join(DIRECTIONS)}")
        return self


class TerminatorSettings(Settings):
    """A terminator as it is in a file."""

    phrases: list[str] = Field(default_factory=list)
    regex: str | None = None
    after: list[str] = Field(default_factory=list)
    kinds: list[str] = Field(default_factory=lambda: list(KINDS))
    direction: Literal["forward", "backward", "both"] = "forward"

    @field_validator("kinds")
    @classmethod
    def _known_kinds(cls, kinds: list[str]) -> list[str]:
        return [check_choice(kind, KINDS) for kind in kinds]

    @field_validator("phrases", "after")
    @classmethod
    def _right_phrases(cls, phrases: list[str]) -> list[str]:
        return _check_phrases(phrases)

    @field_validator("regex")
    @classmethod
    def _compiles(cls, regex: str | None) -> str | None:
        return _check_regex(regex)

    @model_validator(mode="after")
    def _complete(self) -> "TerminatorSettings":
        if bool(self.phrases) == bool(self.regex):
            raise ValueError("want either phrases or regex")
        return self


class ListSettings(Settings):
    """How enumerations go on, as it is in a file."""

    carry: list[str] = Field(default_factory=list)
    join: list[str] = Field(default_factory=list)
    time: list[str] = Field(default_factory=list)
    link: list[str] = Field(default_factory=list)
    dangling: list[str] = Field(default_factory=list)
    relatives: list[str] = Field(default_factory=list)
    max_words: int = 5


class FileSettings(Settings):
    """A file of rules."""

    rules: list[RuleSettings] = Field(default_factory=list)
    terminators: list[TerminatorSettings] = Field(default_factory=list)
    lists: ListSettings = Field(default_factory=ListSettings)
    today: str | None = None

    @field_validator("today")
    @classmethod
    def _compiles(cls, today: str | None) -> str | None:
        return _check_regex(today)


class Rule(NamedTuple):
    """A rule that is in use.

    name (str): Name for `span.id_`.
    max_words (int): Most words and marks of its scope.
    not_before (frozenset[str]): Words with which no forward scope begins.
    until (frozenset[str]): Words before which a forward scope ends.
    concord (bool): Whether it is no cue where another cue of its kind reaches it.
    """

    kind: str
    direction: str
    name: str
    max_words: int
    not_before: frozenset[str]
    until: frozenset[str]
    concord: bool


class Terminator(NamedTuple):
    """What ends scopes of some kinds on its left (forward scopes), its right (backward) or both."""

    kinds: frozenset[str]
    forward: bool
    backward: bool


class RuleSet(NamedTuple):
    """Compiled rules.

    table (PhraseTable): Phrase -> rules; () for one that is no cue.
    patterns (list[tuple]): Regular expressions for the folded text, with their rule; None blocks.
    endings (list[tuple]): Regular expressions for the folded text that end scopes.
    carry (frozenset[str]): Words that show that an enumeration goes on ("ni").
    join (frozenset[str]): Words that join two things or two clauses ("y").
    time (frozenset[str]): Phrases that begin when something is, after an enumeration.
    link (frozenset[str]): Words between a finding and a cue after it ("fue").
    dangling (frozenset[str]): Words with which no scope ends ("la").
    relatives (frozenset[str]): Words for relatives: a line that begins with one and a colon goes on
        with the history of the family.
    max_words (int): Most words of an item of an enumeration.
    today (list[re.Pattern]): Regular expressions for the folded text that begin today's problem.
    """

    table: PhraseTable
    patterns: list[tuple[re.Pattern[str], Rule | None]]
    endings: list[tuple[re.Pattern[str], Terminator]]
    carry: frozenset[str]
    join: frozenset[str]
    time: frozenset[str]
    link: frozenset[str]
    dangling: frozenset[str]
    relatives: frozenset[str]
    max_words: int
    today: list[re.Pattern[str]]


@cache
def read_shipped(lang: str) -> FileSettings:
    """Read the rules of a language that the package ships.

    lang (str): One of LANGS.
    """
    path = Path(__file__).with_name(f"cues_{lang}.yml")
    return read_settings(FileSettings, read_yaml(path), where=path.name)


def read_own(rules: str | Path | Mapping[str, Any], *, where: str) -> dict[str, Any]:
    """Read a user's rules, and check them.

    rules (str | Path | Mapping): A YAML file, or its content.
    where (str): What begins the messages about rules that are not in a file.
    RETURNS (dict[str, Any]): Its content.
    RAISES (BioclinError): The file cannot be read, or has a mistake in it.
    """
    is_file = isinstance(rules, str | Path)
    content = read_yaml(Path(rules)) if isinstance(rules, str | Path) else dict(rules)
    read_settings(FileSettings, content, where=str(rules) if is_file else where)
    return dict(content or {})


def make_rules(langs: Sequence[str], own: Mapping[str, Any] | None = None) -> RuleSet:
    """Compile the rules of some languages and a user's own.

    langs (Sequence[str]): Of LANGS.
    own (Mapping[str, Any] | None): Checked by `read_own`. Its phrases replace equal phrases of the
        languages.
    RETURNS (RuleSet): The rules.
    """
    files = [read_shipped(lang) for lang in langs]
    table = PhraseTable()
    patterns: list[tuple[re.Pattern[str], Rule | None]] = []
    endings: list[tuple[re.Pattern[str], Terminator]] = []
    lists: dict[str, set[str]] = {name: set() for name in WORD_LISTS}
    time: set[str] = set()
    for is_own, file in [*((False, file) for file in files), (True, _read_checked(own))]:
        of_phrase: dict[tuple[str, ...], list[Rule]] = {}
        for settings in file.rules:
            if settings.regex:
                pattern = re.compile(settings.regex, re.MULTILINE)
                patterns.append((pattern, _make_rule(settings, settings.regex)))
            for phrase in _variants(settings.phrases):
                rules = of_phrase.setdefault(fold_phrase(phrase), [])
                if rule := _make_rule(settings, phrase):
                    rules.append(rule)
        for words, rules in of_phrase.items():
            earlier = () if is_own else table.get(words, CUE) or ()
            table.add(words, CUE, (*earlier, *rules))
        for ending in file.terminators:
            terminator = _make_terminator(ending)
            if ending.regex:
                endings.append((re.compile(ending.regex, re.MULTILINE), terminator))
            _add_terminator(table, ending, terminator)
        for name, words_of in lists.items():
            words_of.update(getattr(file.lists, name))
        time.update(_variants(file.lists.time))
    max_words = max((file.lists.max_words for file in files), default=ListSettings().max_words)
    by_list = {name: frozenset(words_of) for name, words_of in lists.items()}
    today = [re.compile(file.today, re.MULTILINE) for file in files if file.today]
    return RuleSet(
        table,
        patterns,
        endings,
        carry=by_list["carry"],
        join=by_list["join"],
        time=frozenset(time),
        link=by_list["link"],
        dangling=by_list["dangling"],
        relatives=by_list["relatives"],
        max_words=max_words,
        today=today,
    )


def check_langs(langs: Sequence[str] | None, lang: str, name: str) -> tuple[str, ...]:
    """Check the languages of a component's rules.

    langs (Sequence[str] | None): The setting; None for the pipeline's language.
    lang (str): The pipeline's language.
    name (str): The component's name.
    RAISES (BioclinError): There are no rules for a language.
    """
    wanted = (lang,) if langs is None else tuple(langs)
    unknown = [one for one in wanted if one not in LANGS]
    if unknown or not wanted:
        raise BioclinError(
            f"[components.{name}] langs = {langs!r}: there are no context rules for "
            f"{unknown[0] if unknown else 'no language'!r}; set langs to some of {', '.join(LANGS)}"
        )
    return wanted


def _read_checked(own: Mapping[str, Any] | None) -> FileSettings:
    return read_settings(FileSettings, own, where="rules")


def _make_rule(settings: RuleSettings, phrase: str) -> Rule | None:
    if settings.pseudo or settings.kind is None or settings.direction is None:
        return None
    max_words = settings.max_tokens or 1_000_000_000
    not_before, until = frozenset(settings.not_before), frozenset(settings.until)
    return Rule(
        settings.kind,
        settings.direction,
        settings.name or phrase,
        max_words,
        not_before,
        until,
        settings.concord,
    )


def _make_terminator(settings: TerminatorSettings) -> Terminator:
    direction = settings.direction
    return Terminator(frozenset(settings.kinds), direction != "backward", direction != "forward")


def _add_terminator(
    table: PhraseTable, settings: TerminatorSettings, terminator: Terminator
) -> None:
    for phrase in _variants(settings.phrases):
        for first in settings.after or [""]:
            words = fold_phrase(f"{first} {phrase}")
            others = table.get(words, TERMINATOR) or ()
            table.add(words, TERMINATOR, (*others, terminator))


def _variants(phrases: Sequence[str]) -> list[str]:
    return [variant.strip() for phrase in phrases for variant in expand_choices(phrase)]


def _check_regex(regex: str | None) -> str | None:
    try:
        pattern = re.compile(regex or "x", re.MULTILINE)
    except re.error as error:
        raise ValueError(f"not a regular expression ({error})") from None
    if pattern.match(""):
        raise ValueError("want a regular expression that does not match the empty text")
    return regex


def _check_phrases(phrases: list[str]) -> list[str]:
    for phrase in phrases:
        try:
            empty = [variant for variant in expand_choices(phrase) if not fold_phrase(variant)]
        except ValueError as error:
            raise ValueError(f"{phrase!r}: {error}") from None
        if empty:
            raise ValueError(f"{phrase!r}: want at least one word")
    return phrases
