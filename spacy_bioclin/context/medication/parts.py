"""Find the parts of an order in the text beside a drug: how much, when, how often, why."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..measurements.measurement import Measurement
from ..measurements.rules.lexicon import squeeze
from ..measurements.rules.numbers import read_digits
from ..measurements.rules.units import DOSE_FORMS
from .words import Words

MAX_ORDER = 300  # characters
_DOSE_UNITS = (
    "g",
    "mg",
    "ug",
    "ng",
    "kg",
    "mL",
    "cm3",
    "L",
    "uL",
    "[IU]",
    "U",
    "meq",
    "mmol",
    "m[IU]",
    "k[IU]",
    "%",
    "[tsp_us]",
    "[tbs_us]",
)
_IN_BLOOD = ("/L", "/dL", "/mm3", "/uL")  # a result of a test, no dose
# How many words that are no part of an order may be before a part.
_GAPS = {"reason": 0, "needed": 1, "action": 2, "bare": 0, "duration": 0}
_FOR = re.compile(r"(?i)(?<!\w)(?:for|x|durante|por|during|otros|another)\s*$")
_MAX_GAP = 3
_NUMBER = r"(?:\d{1,3}(?:[.,]\d{1,2})?|1/2|1/4|½|¼)"
_SCHEDULE = re.compile(rf"(?<![\w.,/-])\(?{_NUMBER}(?:\s?-\s?{_NUMBER}){{2,3}}(?![\d/]|[-.,]\d)")
_EVENTS = ("MORN", "NOON", "EVE", "NIGHT")  # of "1-0-1" and "1-1-1-1"
_AMOUNT = re.compile(rf"(?i)(?<![\w.,/])(?P<n>{_NUMBER}|una?|medi[oa]|half|one|two|dos)\W{{1,2}}$")
_IN_WORDS = {"un": 1.0, "una": 1.0, "one": 1.0, "two": 2.0, "dos": 2.0}
_HALVES = ("medio", "media", "half", "1/2", "½")
_BARE = re.compile(
    r"\s*[:(@]?\s*(?:a\s|to\s|at\s)?(?P<n>(?!0\d)\d{1,6}(?:[.,]\d{1,3})?)(?:/\d{1,4}(?:[.,]\d{1,2})?)?"
    r"(?![\w%]|[.,]\d)"
)
_AFTER_BARE = re.compile(
    r"(?i)\s*(?:$|[,;.)(+>/\n→]|->|(?:y|e|and|then|luego|extra|m[áa]x|x ?\d|no|con)(?!\w))"
)
_WHY = re.compile(r"(?:[^,.;:()\n+]|[.,](?=\d)){2,70}")
_NO_DURATION_BEFORE = re.compile(
    r"(?i)(?<!\w)(?:hace|en|in|within|tras|after|desde|since|last|a los|a las|de|day|d)\s*$"
)
_MOST = re.compile(r"(?i)(?<!\w)(?:m[áa]x(?:imo)?\.?(?: de)?|max(?:imum)?|up to|hasta)\s*$")
_NOT_TODAY = re.compile(r"(?i)(?<!\w)(?:esta|this|ayer|yesterday|last)\s*$")
_GRAMS = re.compile(  # "2 G IV"; "25G" is a needle
    r"(?<![\w.,/])(?!(?:1[4-9]|2\d|30)G)(\d{1,2}(?:[.,]\d{1,2})?)\s?G(/KG)?(?![\w/])"
)
_NO_DURATION_AFTER = re.compile(r"(?i)\s(?:antes|before|prior|despu[eé]s|later|ago|previ)")
# "PR" is a partial response, or an interval of an ECG.
_NO_ROUTE_BEFORE = re.compile(
    r"(?i)(?:respuesta|response|parcial|partial|intervalo|segmento|con|enfermedad|reci?st)\W*$"
)
_NO_ROUTE_AFTER = re.compile(r"(?i)\W*(?:\d{2,3}\s?ms|interval|segment)")


class When(NamedTuple):
    """A time of the day at which a drug is given.

    code (str): Event of FHIR's EventTiming, such as "MORN", "CM" (breakfast), "HS" or "AC".
    amount (float | None): How much then, where the order says so for each time: "1-0-1/2".
    unit (str | None): UCUM unit of the amount.
    """

    code: str
    amount: float | None = None
    unit: str | None = None


class Part(NamedTuple):
    """A part of an order, by characters of the text.

    kind (str): "dose", "bare", "frequency", "duration", "when", "route", "form", "needed",
        "schedule" (a list of times of the day), "reason", "taper", "action" or "other".
    value (Any): What it says.
    """

    kind: str
    start: int
    end: int
    value: Any = None


def is_dose(one: Measurement) -> bool:
    """Check whether a measurement can be the dose of a drug."""
    if one.kind not in ("quantity", "range") or one.unit is None or one.unit.endswith(_IN_BLOOD):
        return False
    first = one.unit.split("/")[0]
    return first in _DOSE_UNITS or first in DOSE_FORMS


def find_parts(
    text: str, start: int, end: int, measured: Sequence[Measurement], words: Words, lang: str
) -> list[Part]:
    """Find the parts of an order in a stretch of text, in order of their starts.

    measured (Sequence[Measurement]): The measurements of the stretch.
    lang (str): "es" or "en": how digits are read.
    """
    end = min(end, start + MAX_ORDER)
    schedules = list(_find_schedules(text, start, end, lang))
    own = [
        part
        for part in _find_times(text, start, end, words)
        if not any(_contains(one, part) for one in measured)
    ]
    taken = [*schedules, *own]
    found = [*taken, *_measured_parts(text, end, measured, taken)]
    for kind, pattern, names in (
        ("route", words.route, words.routes),
        ("form", words.form, words.forms),
    ):
        for match in pattern.finditer(text, start, end):
            value = names[squeeze(match[0])]
            if kind == "form" or _is_route(text, match):
                found.append(Part(kind, *match.span(), value))
    found += [Part("taper", *m.span()) for m in words.taper.finditer(text, start, end)]
    found += _find_whens(text, start, end, found, words)
    found.sort(key=lambda part: part.start)
    found += list(_find_reasons(text, start, end, found, words))
    return sorted(found, key=lambda part: (part.start, part.end))


def _contains(one: Measurement, part: Part) -> bool:
    """Check whether a measurement says more than a part: "cada 8 horas" and "cada 8"."""
    is_longer = one.end_char - one.start_char > part.end - part.start
    return one.start_char <= part.start and part.end <= one.end_char and is_longer


def _is_route(text: str, match: re.Match[str]) -> bool:
    if match[0].lower() != "pr":
        return True
    before = text[max(0, match.start() - 20) : match.start()]
    return not (_NO_ROUTE_BEFORE.search(before) or _NO_ROUTE_AFTER.match(text, match.end()))


def _overlaps(start: int, end: int, parts: Sequence[Part]) -> bool:
    return any(part.start < end and start < part.end for part in parts)


def _measured_parts(
    text: str, end: int, measured: Sequence[Measurement], taken: Sequence[Part]
) -> Iterator[Part]:
    for one in measured:
        if one.end_char > end or _overlaps(one.start_char, one.end_char, taken):
            continue
        kind = "dose" if is_dose(one) else one.kind
        kind = "other" if kind in ("age", "date", "quantity", "range") else kind
        if kind == "frequency" and _MOST.search(text[max(0, one.start_char - 12) : one.start_char]):
            kind = "other"
        if kind == "duration":
            before = text[max(0, one.start_char - 14) : one.start_char]
            if _NO_DURATION_BEFORE.search(before) or _NO_DURATION_AFTER.match(text, one.end_char):
                kind = "other"
        if kind in ("dose", "frequency", "duration", "other"):
            yield Part(kind, one.start_char, one.end_char, one)


def _find_schedules(text: str, start: int, end: int, lang: str) -> Iterator[Part]:
    """Find "1-0-1/2": a number for the morning, for noon and for the evening."""
    for match in _SCHEDULE.finditer(text, start, end):
        amounts = [_read(part, lang) for part in match[0].strip("(").split("-")]
        if any(amount is None for amount in amounts):
            continue
        numbers = [amount or 0.0 for amount in amounts]
        if (max(numbers) > 4 and 0 not in numbers) or not any(numbers):
            continue  # may be a date
        whens = [When(code, n) for code, n in zip(_EVENTS, numbers, strict=False) if n]
        yield Part("schedule", *match.span(), whens)


def _read(written: str, lang: str) -> float | None:
    written = written.strip().lower()
    if written in _HALVES:
        return 0.5
    return _IN_WORDS.get(written) or read_digits(written, lang)


def _find_times(text: str, start: int, end: int, words: Words) -> Iterator[Part]:
    """Find times that only mean something beside a drug: "c/12", "7/7", "l-m-v", "stat"."""
    for kind, patterns in (("frequency", words.frequencies), ("duration", words.durations)):
        for pattern, rule in patterns:
            for match in pattern.finditer(text, start, end):
                value, high, unit = rule.get("value"), None, rule["unit"]
                groups = match.groupdict()
                if hours := groups.get("hours"):
                    value, unit = 24 / float(hours), "d"
                    if more := groups.get("more"):
                        value, high = 24 / float(more), value
                elif times := groups.get("times"):
                    value = float(times)
                before = text[max(0, match.start() - 14) : match.start()]
                if value is None or (kind == "duration" and _NO_DURATION_BEFORE.search(before)):
                    continue
                one = Measurement(kind, round(value, 4), high, None, unit, *match.span())
                yield Part(kind, *match.span(), one)
    for match in _GRAMS.finditer(text, start, end):
        value = read_digits(match[1], "es")
        if value is not None:
            unit = "g/kg" if match[2] else "g"
            one = Measurement("quantity", value, None, None, unit, *match.span())
            yield Part("dose", *match.span(), one)
    for match in words.half.finditer(text, start, end):
        if unit := words.form_units.get(words.forms[squeeze(match["form"])]):
            one = Measurement("quantity", 0.5, None, None, unit, *match.span())
            yield Part("dose", *match.span(), one)
    for match in words.single.finditer(text, start, end):
        yield Part(
            "frequency",
            *match.span(),
            Measurement("frequency", 1.0, None, None, None, *match.span()),
        )
    for pattern in words.days:
        for match in pattern.finditer(text, start, end):
            n_days = float(len(words.day.findall(match[0])))
            one = Measurement("frequency", n_days, None, None, "wk", *match.span())
            yield Part("frequency", *match.span(), one)


def _find_whens(
    text: str, start: int, end: int, found: Sequence[Part], words: Words
) -> Iterator[Part]:
    """Find times of the day and meals, with the amounts before them."""
    doses = [part for part in found if part.kind == "dose"]
    last = start
    for match in words.when.finditer(text, start, end):
        amount, unit = None, None
        between = words.only_small.match
        for dose in doses:
            gap = text[dose.end : match.start()]
            if last > dose.start or dose.end > match.start() or len(gap) > 12:
                continue
            if (fits := between(gap)) and fits.end() == len(gap):
                amount, unit = dose.value.value, dose.value.unit
        number = None if amount is not None else _AMOUNT.search(text, last, match.start())
        if number is not None:
            amount = _read(number["n"], "es")
        if _NOT_TODAY.search(text[max(start, match.start() - 12) : match.start()]):
            continue
        alone = amount is None and last == start
        if alone and squeeze(match[0]) in words.not_alone:
            continue
        last = match.end()
        begin = number.start() if number is not None else match.start()
        code = words.whens[squeeze(match[0])]
        yield Part("when", begin, match.end(), [When(code, amount, unit)])


def _find_reasons(
    text: str, start: int, end: int, found: Sequence[Part], words: Words
) -> Iterator[Part]:
    """Find "si dolor", "PRN for pain", "para la tensión"."""
    last = start
    matches = [
        *((match, "needed") for match in words.needed.finditer(text, start, end)),
        *((match, "condition") for match in words.condition.finditer(text, start, end)),
        *((match, "purpose") for match in words.purpose.finditer(text, start, end)),
    ]
    for match, kind in sorted(matches, key=lambda each: (each[0].start(), -each[0].end())):
        if match.start() < last or (
            kind == "condition" and _is_of_verb(text, start, match.start(), words)
        ):
            continue
        at = match.end()
        if kind == "needed":
            joined = words.purpose.match(text, at + 1, end) or words.condition.match(
                text, at + 1, end
            )
            at = joined.end() if joined else at
        reason = read_reason(text, at, end, found, words)
        if kind != "needed" and reason is None:
            continue
        last = reason[1] if reason else at
        if kind != "purpose":
            yield Part("needed", match.start(), match.end())
        if reason:
            # The part begins with its preposition, so that nothing is between it and the order.
            yield Part("reason", match.start(), reason[1], reason)


def _is_of_verb(text: str, start: int, end: int, words: Words) -> bool:
    """Check whether a condition is that of a verb before it: "hold if INR > 3"."""
    before = text[max(start, end - 40) : end].rstrip()
    return any(
        match.end() == len(before) and match.lastgroup not in ("take", "continue")
        for match in words.action.finditer(before)
    )


def read_reason(
    text: str, at: int, end: int, found: Sequence[Part], words: Words
) -> tuple[int, int] | None:
    """Read the words of a reason at a place, up to what cannot be part of it.

    RETURNS (tuple[int, int] | None): Its characters.
    """
    match = _WHY.match(text, at, end)
    if match is None:
        return None
    first, last = match.span()
    if stop := words.reason_end.search(text, first, last):
        last = stop.start()
    if action := words.action.search(text, first, last):
        last = action.start()
    for part in found:
        if first <= part.start < last and part.kind != "other":
            last = part.start
    written = text[first:last]
    kept = written.strip(" -–")
    while kept and (tail := re.search(r"\s(\w+)$", kept)) and words.small.fullmatch(tail[1]):
        kept = kept[: tail.start()]
    if not kept or not kept[0].isalpha() or len(kept.split()) > 6 or words.small.fullmatch(kept):
        return None
    first += written.index(kept)
    return first, first + len(kept)


def find_bare(
    text: str, start: int, end: int, found: Sequence[Part], lang: str, *, strict: bool
) -> Part | None:
    """Find the dose of "enalapril 5 c/12": a number without a unit right after the drug.

    strict (bool): Only before another part of an order.
    """
    match = _BARE.match(text, start, end)
    if match is None:
        return None
    first, last = match.start("n"), match.end()
    whens = [part for part in found if part.kind == "when"]
    if any(part.start < last and first < part.end and part.kind != "when" for part in found):
        return None
    if sum(part.value[0].amount is not None for part in whens) > 1:
        return None  # "Sintrom: 1 al desayuno y medio a la comida"
    after = text[last:end]
    follows = any(-last + part.start <= 2 and last < part.end for part in found)
    if not follows and (strict or not _AFTER_BARE.match(after)):
        return None
    value = read_digits(match["n"], lang)
    if value is None:
        return None
    one = Measurement("quantity", value, None, None, None, first, last)
    return Part("bare", first, last, one)


def keep_near(text: str, start: int, end: int, found: Sequence[Part], words: Words) -> list[Part]:
    """Keep the parts that follow each other, with few other words between them."""
    kept: list[Part] = []
    last = start
    broken = words.breaks.search(text, start, end)
    end = broken.start() if broken else end
    for part in found:
        if part.start >= end:
            break
        gap = _count_words(text[last : part.start], words) if part.start > last else 0
        most = _GAPS.get(part.kind, _MAX_GAP)
        if part.kind == "duration" and _FOR.search(text[max(0, part.start - 10) : part.start]):
            most = _MAX_GAP
        if gap > most:
            if gap > _MAX_GAP:
                break
            continue
        kept.append(part)
        last = max(last, part.end)
    return kept


def _count_words(text: str, words: Words) -> int:
    return sum(words.small.fullmatch(word) is None for word in re.findall(r"[^\W\d_]{2,}", text))


def keep_before(text: str, end: int, found: Sequence[Part], words: Words) -> list[Part]:
    """Keep the parts right before a drug, with no other words between them."""
    kept: list[Part] = []
    first = end
    for part in reversed(found):
        written = text[part.start : part.end].lower()
        is_inside = part.end > first  # of the dose: "1 tablet"
        if written != "pr" and (is_inside or not _count_words(text[part.end : first], words)):
            kept.append(part)
            first = min(first, part.start)
    return kept[::-1]
