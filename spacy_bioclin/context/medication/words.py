"""Load the words of orders of drugs: words.yml."""

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import srsly

from ..measurements.rules.lexicon import squeeze
from ..measurements.rules.trie import words_pattern

ACTIONS = (
    "hold",
    "stop",
    "replace",
    "change",
    "start",
    "continue",
    "avoid",
    "past",
    "take",
    "tolerate",
)


class Words:
    """The words of some languages as patterns.

    langs (Iterable[str]): "es", "en" or both.
    """

    def __init__(self, langs: Iterable[str]) -> None:
        data = srsly.read_yaml(Path(__file__).with_name("words.yml"))
        self._own: list[dict[str, Any]] = [data[lang] for lang in langs]
        self._read_routes(data)
        self._read_times()
        self._read_verbs()

    def _read_routes(self, data: dict[str, Any]) -> None:
        """Read routes and forms, which all languages share."""
        self.routes = _by_form(data["routes"])
        self.route = _bounded(words_pattern(_forms(data["routes"])))
        forms: dict[str, dict[str, str]] = data["forms"]
        self._same_form: dict[str, str] = data["same_form"]
        self.forms = _by_form({name: form["words"] for name, form in forms.items()})
        self.form = _bounded(words_pattern(_forms({n: f["words"] for n, f in forms.items()})))
        forms_of_half = words_pattern(_forms({n: f["words"] for n, f in forms.items()}))
        self.half = re.compile(
            rf"(?i)(?<!\w)(?:medi[oa]|half(?:\san?)?)\s(?P<form>{forms_of_half})(?!\w)"
        )
        self.form_units = {name: form["unit"] for name, form in forms.items() if "unit" in form}
        self.form_routes = {name: form["route"] for name, form in forms.items() if "route" in form}

    def _read_times(self) -> None:
        """Read when, how often and why a drug is given."""
        when: dict[str, str] = {}
        for own in self._own:
            for code, written in own["when"].items():
                when[code] = f"{when.get(code, '')} {written}"
        self.whens = _by_form(when)
        self.when = _bounded(words_pattern(_forms(when)))
        self.not_alone = {squeeze(form) for own in self._own for form in own["not_alone"].split()}
        self.needed = _bounded(
            words_pattern(form for own in self._own for form in own["needed"].split())
        )
        self.condition = self._any("if", r"\s+(?!{})", "not_if")
        self.purpose = self._any("for", r"\s+(?!{})", "not_for")
        self.reason_end = self._any("reason_end")
        self.taper = self._any("taper")
        self.then = self._any("then")
        self.single = self._any("single")
        self.breaks = self._any("breaks")
        self.allergy = self._any("allergy", end=r"(?!\w)")
        self.no_allergy = self._any("no_allergy")
        self.frequencies = self._times("frequencies")
        self.durations = self._times("durations")
        self.days = [
            re.compile(
                rf"(?i)(?<![\w-])(?:{own['days']})(?:(?:{own['day_join']})(?:{own['days']}))+(?![\w-])"
            )
            for own in self._own
        ]
        self.day = self._any("days")

    def _read_verbs(self) -> None:
        """Read what is done with a drug, and the small words between."""
        small = self._join("small")
        self.small = re.compile(rf"(?i)(?:{small}|{self._join('joins')})")
        self.small_words = re.compile(rf"(?i)(?<!\w)(?:{small}|{self._join('joins')})(?!\w)")
        self.only_small = re.compile(rf"(?i)\W*(?:(?:{small})(?!\w)\W*)*")
        self.joining = re.compile(rf"(?i)(?<!\w)(?:{self._join('joins')})(?!\w)|[+&/]")
        self.joined = re.compile(rf"(?i)\s*(?:,|/|\+|,?\s?(?:{self._join('joins')}))\s*")
        self.boundary = re.compile(
            rf"(?i),(?!\d)|[;:\n()+→]|\.\s|\s/|\s(?:{self._join('joins')})(?=\s)"
        )
        self.new = re.compile(rf"(?i)(?:^|\s)(?:{self._join('to')})\s+(?:{small}|\s)*$")
        self.old = re.compile(rf"(?i)(?<!\w)(?:{self._join('from')})\s+$")
        self.if_after = re.compile(r"(?i)\W{0,2}(?:si|if|when|for sbp|cuando)\b")
        self.ends = re.compile(
            r"(?i)\s*(?:$|[.,;:)(\n+→\d-]|(?:por|x|for|due|because|a|to|hasta|until|el|desde|since|hace"
            r"|today|hoy|this|on|en|in|temp\w+|antes|before|given|during|durante|y|and|yesterday|ayer"
            r"|secondary|per|while|mientras|tras|after|pending)\b)"
        )
        self.not_action = re.compile(rf"(?i)(?<!\w)(?:{self._join('not_actions')})\s+$")
        maybe = rf"(?<!\w)(?:{self._join('maybe')})(?!\w)"
        self.maybe = re.compile(rf"(?i)(?:{maybe}|[?¿])\s*(?:[^\s,;:.]+\s+)?$")
        self.action = re.compile(
            r"(?i)(?<![\w/])(?:"
            + "|".join(
                f"(?P<{kind}>{'|'.join(own['actions'][kind] for own in self._own)})"
                for kind in ACTIONS
            )
            + r")(?![\w/])"
        )
        condition = self._join("if")
        purpose = self._join("for")
        small_end = (
            rf"\s*[:,]?\s*(?:(?:{small}|{self._join('joins')}|{self._join_action('take')})\s+)*$"
        )
        why = r"(?P<reason>[^,.;:()\n]{2,40}?(?:[.,]\d[^,.;:()\n]{0,20}?)?)"
        self.condition_before = re.compile(
            rf"(?i)(?<!\w)(?:{condition})\s+(?!{self._join('not_if')}){why}{small_end}"
        )
        self.purpose_before = re.compile(
            rf"(?i)(?:^|[\n.:;]\s*|^\W*)(?:{purpose})\s+(?:the\s+|el\s+|la\s+)?{why}{small_end}"
        )

    def form_name(self, form: str) -> str:
        """Name the form that a user reads: eye drops are drops."""
        return self._same_form.get(form, form)

    def _join(self, key: str) -> str:
        return "|".join(own[key] for own in self._own if key in own)

    def _join_action(self, kind: str) -> str:
        return "|".join(own["actions"][kind] for own in self._own)

    def _any(
        self, key: str, then: str = "", unless: str = "", end: str = r"(?!\w)"
    ) -> re.Pattern[str]:
        """Match one of the alternatives of a list, as whole words."""
        after = then.format(f"(?:{self._join(unless)})") if then else end
        return re.compile(rf"(?i)(?<![\w/])(?:{self._join(key)}){after}")

    def _times(self, key: str) -> list[tuple[re.Pattern[str], dict[str, Any]]]:
        return [(_alone(each["regex"]), each) for own in self._own for each in own.get(key, ())]


def _by_form(table: dict[str, str]) -> dict[str, str]:
    return {squeeze(form): name for name, forms in table.items() for form in forms.split()}


def _forms(table: dict[str, str]) -> list[str]:
    return [form for forms in table.values() for form in forms.split()]


def _alone(regex: str) -> re.Pattern[str]:
    before = "" if regex.startswith("/") else r"(?<![\w.,/])"
    return re.compile(rf"(?i){before}(?:{regex})(?![\w/]|[.,-]\d)")


def _bounded(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?i)(?<![\w.]){pattern}(?!\w)")


@lru_cache(maxsize=8)
def get_words(langs: tuple[str, ...]) -> Words:
    """Get the words of some languages; they are loaded once."""
    return Words(langs)
