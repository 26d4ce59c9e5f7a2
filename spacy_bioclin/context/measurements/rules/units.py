"""Read units as notes write them, and name them in UCUM.

The written forms are data: units.yml, and those that a user adds.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import srsly

from ....errors import BioclinError
from .trie import BLANK, words_pattern

Forms = dict[str, str]  # written form without blanks -> UCUM code

TIMES = ("s", "min", "h", "d", "wk", "mo", "a")
DOSE_FORMS = (
    "{tablet}",
    "{capsule}",
    "{puff}",
    "{ampule}",
    "{sachet}",
    "{spray}",
    "{patch}",
    "[drp]",
)
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")

# "x10^3", "x 10 9", "x103", "10e9", "×10⁹", "x 10(9)"
_POWER = (
    r"(?:[x×*·]\s?10(?:\s?(?:\^|\*\*?|e|\(|E)\s?-?\d{1,2}\)?|[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]{1,3}|\s?\d{1,2}(?=\s?/))"
    r"|10\s?(?:\^|\*\*?|e|E|\()\s?-?\d{1,2}\)?|10[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]{1,3})"
)
_POWER_PARTS = re.compile(r"(?i)[x×*·\s]*10[\s^*e(]*(-?[\d⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)\)?")
_SLASH = r"\s?\.?/\s?"
_PER = r"\s(?:por|per)\s(?:cada\s)?"
_PER_TIME = r"\s(?:al|a|en)\s(?:la\s)?"
_SEPARATOR = re.compile(rf"(?i){_SLASH}|(?:^|\s)(?:por|per)\s(?:cada\s)?|{_PER_TIME}")
# A number may stand right before these: "11.200/mm3", "80 por minuto".
_BARE = ("min", "mm3", "uL", "L", "mL", "dL", "cm2", "[HPF]", "(10.[HPF])")
_END = r"(?:(?<![^\W\d_])|(?![^\W_]))"  # a letter must not go on with letters or digits
# What a code of UCUM may consist of: atoms, brackets, annotations, exponents, "/" and ".".
UCUM_LIKE = re.compile(
    r"(?=.*[A-Za-z%{*])(?:[A-Za-z%'*0-9^+./()-]|\[[^\s\[\]{}]{1,40}\]|\{[^\s{}]{0,40}\}){1,80}"
)


class Units:
    """The written forms of units.

    extra (Mapping[str, str]): Further written forms, with their UCUM codes.
    """

    def __init__(self, extra: Mapping[str, str]) -> None:
        data = _load()
        self._extra = dict(extra)
        self._own = {_squeeze(form).lower(): code for form, code in extra.items()}
        self._forms = {form.lower(): code for form, code in data["units"].items()}
        self._exact = data["exact"]
        self._counted = {form.lower(): code for form, code in data["counted"].items()}
        self._powers = data["powers"]
        self._per = {form.lower(): code for form, code in data["per"].items()}
        self.time_pattern = self.powers = ""
        self.pattern = self._make_pattern(extra)
        self.read = lru_cache(maxsize=4096)(self._read)

    def __reduce__(self) -> Any:
        """Pickle the user's forms alone: the rest is made again."""
        return Units, (self._extra,)

    def _make_pattern(self, extra: Mapping[str, str]) -> re.Pattern[str]:
        data = _raw()
        own = words_pattern(form.replace(" ", BLANK) for form in extra) if extra else "(?!)"
        forms = words_pattern(form for kind in ("units",) for form in data[kind])
        exact = words_pattern(data["exact"])
        counted = words_pattern(data["counted"])
        per = words_pattern(data["per"])
        self.powers = words_pattern(data["powers"])
        power = f"(?:{_POWER}|{self.powers})"
        simple = rf"(?:{own}|{forms}|(?-i:{exact})(?!\.[^\W\d_])){_END}"
        below = f"(?:{own}|{per}|{forms}|(?-i:{exact})){_END}"
        times = words_pattern(f for f, code in data["units"].items() if code in TIMES)
        self.time_pattern = f"(?:{times}|(?-i:[hHsd])){_END}"
        part = f"(?:(?:{_SLASH}|{_PER}){below}|{_PER_TIME}{times}{_END})"
        bare = words_pattern(
            form
            for kind in ("units", "exact", "per")
            for form, code in data[kind].items()
            if code in _BARE
        )
        first = rf"(?:{_SLASH}|(?:por|per)\s){bare}{_END}"
        return re.compile(
            rf"(?i)(?:{power}\s?)?(?:{simple}{part}{{0,3}}|{counted}{_END}{part}{{1,2}}"
            rf"|{first}{part}{{0,2}})|{_POWER}"
        )

    def words_of(self, codes: Iterable[str]) -> str:
        """Match the written forms of some units of more than one letter, in lower case."""
        wanted = set(codes)
        forms = [form for form, code in _raw()["units"].items() if code in wanted]
        return words_pattern(form.lower() for form in forms)

    def read_power(self, word: str) -> str:
        """Name a multiple in UCUM: "mil" is "10*3"."""
        return self._powers[word.lower()]

    def _read(self, text: str) -> str | None:
        """Name a written unit in UCUM.

        text (str): What `pattern` matched.
        RETURNS (str | None): None if it is not a unit.
        """
        if (whole := self._find(_squeeze(text))) is not None:
            return whole
        power = ""
        if found := _POWER_PARTS.match(text):
            power = f"10*{int(found[1].translate(SUPERSCRIPTS))}"
            text = text[found.end() :].lstrip()
            if not text:
                return power
        parts = [_squeeze(part) for part in _SEPARATOR.split(text)]
        first, *below = parts
        if not power and (split := _power_word(text, self._powers)):
            power, rest = split
            first = _squeeze(_SEPARATOR.split(rest)[0])
        code = self._find(first)
        if code is None and below:
            code = self._counted.get(first.lower()) if first else ""
        if code is None:
            return None
        codes = [self._find_below(part) for part in below]
        if None in codes:
            return None
        joined = "".join(f"/{each}" for each in codes)
        return (f"{power}.{code}" if power and code else power or code) + joined or None

    def _find(self, form: str) -> str | None:
        return (
            self._own.get(form.lower())
            or self._exact.get(form)
            or (self._forms.get(form.lower()) if form else None)
        )

    def _find_below(self, form: str) -> str | None:
        return self._own.get(form.lower()) or self._per.get(form.lower()) or self._find(form)


def _power_word(text: str, powers: Mapping[str, str]) -> tuple[str, str] | None:
    """Divide "mil/mm3" into "10*3" and "/mm3"."""
    found = re.match(r"[^\W\d_]+", text)
    code = powers.get(found[0].lower()) if found else None
    return (code, text[found.end() :].lstrip()) if found and code else None


def _squeeze(form: str) -> str:
    return "".join(form.replace(BLANK, " ").split())


@lru_cache(maxsize=1)
def _raw() -> dict[str, Forms]:
    """Load units.yml: forms with "_" -> code."""
    data = srsly.read_yaml(Path(__file__).with_name("units.yml"))
    return {
        kind: {form: code for code, forms in table.items() for form in forms.split()}
        for kind, table in data.items()
    }


def _load() -> dict[str, Forms]:
    return {kind: {_squeeze(f): c for f, c in table.items()} for kind, table in _raw().items()}


def list_codes() -> list[str]:
    """List the UCUM codes of units.yml."""
    return sorted({code for table in _raw().values() for code in table.values() if code})


def check_code(code: str, where: str) -> str:
    """Check that a code could be UCUM; the extra `units` can check that it is.

    RAISES (BioclinError): It cannot be.
    """
    if not isinstance(code, str) or not UCUM_LIKE.fullmatch(code):
        raise BioclinError(f"{where} = {code!r}: want a UCUM code such as 'mg/dL' or '{{sachet}}'")
    return code


def check_form(form: str, where: str) -> str:
    """Check a written form of a unit that a user adds.

    RAISES (BioclinError): It is empty, or has signs that a config cannot hold.
    """
    if not re.fullmatch(r"[^\W\d_](?:[\w ./%'·-]{0,38}[\w.%'])?|%\w{0,9}", form):
        raise BioclinError(
            f"{where}: {form!r} is not a unit as a note may write it; want letters, then letters, "
            "digits, blanks or . / % - '"
        )
    return form
