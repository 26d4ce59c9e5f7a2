"""Invented dates and ages, in every form in which notes write them."""

import random
from datetime import date, timedelta

from .values import Values

FIRST_DAY, LAST_DAY = date(1998, 1, 1), date(2027, 12, 31)
ROMAN = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"]
MAX_AGE = 104


def draw_date(rng: random.Random) -> date:
    """Draw the day of a note."""
    return FIRST_DAY + timedelta(days=rng.randrange((LAST_DAY - FIRST_DAY).days))


def draw_birth_date(age: int, day: date, rng: random.Random) -> date:
    """Draw the birth date of a person who has this age on a day."""
    return day - timedelta(days=int(age * 365.25) + rng.randrange(1, 365))


def draw_age(rng: random.Random) -> int:
    """Draw an age; most patients are old."""
    return (
        rng.randint(1, 17) if rng.random() < 0.1 else min(MAX_AGE, int(rng.triangular(18, 99, 72)))
    )


def write_date(day: date, form: str, values: Values, rng: random.Random) -> str:
    """Write a date in a form of layouts; "" is any."""
    lists = values.lists
    month = lists["months"][day.month - 1]
    weekday = lists["weekdays"][day.weekday()]
    env = {
        "d": str(day.day),
        "dd": f"{day.day:02}",
        "m": str(day.month),
        "mm": f"{day.month:02}",
        "yyyy": str(day.year),
        "yy": f"{day.year % 100:02}",
        "month": month,
        "mon": rng.choice((month[:3], month[:3], lists["short_months"][day.month - 1])),
        "MON": month[:3].upper(),
        "Mon": month[:3].capitalize(),
        "Month": month.capitalize(),
        "weekday": weekday,
        "wd": lists["short_weekdays"][day.weekday()],
        "roman": ROMAN[day.month - 1],
        "ordinal": _ordinal(day.day),
        "day_words": write_number(day.day, values),
        "ordinal_words": lists["ordinals"][day.day - 1],
        "year_words": write_number(day.year, values),
        "h": f"{rng.randrange(24):02}",
        "min": f"{rng.randrange(60):02}",
    }
    return values.write(f"date.{form}" if form else "date", rng, env)


def write_age(age: int, form: str, values: Values, rng: random.Random) -> str:
    """Write an age in a form of layouts; months and days are those of another child."""
    months = rng.randint(2, 23)
    days, weeks = rng.randint(2, 28), rng.randint(2, 12)
    env = {
        "n": str(age),
        "words": write_number(age, values),
        "unit": values.lists["years"][age != 1],
        "months": str(months),
        "months_words": write_number(months, values),
        "days": str(days),
        "weeks": str(weeks),
    }
    return values.write(f"age.{form}" if form else "age", rng, env)


def write_number(number: int, values: Values) -> str:
    """Write a number up to 2099 in words."""
    units, tens = values.lists["units"], values.lists["tens"]
    is_es = values.lang == "es"
    if number >= 1000:
        thousands, rest = divmod(number, 1000)
        head = ("" if thousands == 1 else f"{units[thousands]} ") + "mil"
        if not is_es:
            head = f"{units[thousands]} thousand"
        return f"{head} {write_number(rest, values)}" if rest else head
    if number >= 100:
        hundreds, rest = divmod(number, 100)
        head = values.lists["hundreds"][hundreds - 1]
        if is_es and number == 100:
            return "cien"
        joint = " " if is_es else " and "
        return f"{head}{joint}{write_number(rest, values)}" if rest else head
    if number < len(units):
        return units[number]
    ten, unit = divmod(number, 10)
    joint = " y " if is_es else "-"
    return f"{tens[ten]}{joint}{units[unit]}" if unit else tens[ten]


def _ordinal(number: int) -> str:
    ending = "th" if 10 < number < 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
