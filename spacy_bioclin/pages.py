"""Render pages from Jinja templates, and draw curves and scores as SVG pictures.

A page is one file: no script, no font, nothing from outside.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

# Size and margins, in pixels.
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 360, 70, 90, 40, 50
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f")

KEY = 200  # width of the names beside scores, in the place of RIGHT
APART = 40  # least distance of the names below scores

Points = Sequence[tuple[float, float]]
Scores = Sequence[tuple[float, Sequence[float]]]


def render_template(
    template: Path, *, filters: Mapping[str, Callable[..., str]] | None = None, **values: Any
) -> str:
    """Render a Jinja template.

    template (Path): The template. Values are escaped if its name says that it is HTML
        ("page.html.jinja"). A value that it names and that is missing is an error.
    filters (Mapping[str, Callable] | None): Filters beside `percent`, which writes 0.5 as 50.00.
    RETURNS (str): The text.
    """
    environment = Environment(
        loader=FileSystemLoader(template.parent),
        autoescape=".html" in template.suffixes,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update({"percent": lambda value: f"{100 * value:.2f}", **(filters or {})})
    return environment.get_template(template.name).render(**values)


def draw_curves(
    curves: Mapping[str, Points], *, title: str, x_label: str, logarithmic: bool = False
) -> str:
    """Draw curves over one pair of axes.

    curves (Mapping[str, Points]): Name -> (x, y), in the order of x; no y is negative.
    logarithmic (bool): Of the axis of y, which starts at the smallest y; else it starts at 0.
    RETURNS (str): The SVG.
    """
    xs = [x for points in curves.values() for x, _ in points]
    ys = [y for points in curves.values() for _, y in points]
    low, high = (math.log10(min(ys)), math.log10(max(ys))) if logarithmic else (0, 1.15 * max(ys))
    first, last = min(xs), max(xs)

    def x(value: float) -> float:
        share = (value - first) / (last - first or 1)
        return round(LEFT + (WIDTH - LEFT - RIGHT) * share, 1)

    def y(value: float) -> float:
        share = ((math.log10(value) if logarithmic else value) - low) / (high - low or 1)
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share, 1)

    parts = _frame(title, x_label, WIDTH / 2)
    for value in _log_ticks(low, high) if logarithmic else _ticks(high):
        parts.append(
            f'<path d="M{LEFT} {y(value)}H{WIDTH - RIGHT}" stroke="#ddd"/>'
            f'<text x="{LEFT - 8}" y="{y(value) + 4}" text-anchor="end">{value:,g}</text>'
        )
    for i in range(6):
        value = first + (last - first) * i / 5
        place = f'x="{x(value)}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle"'
        parts.append(f"<text {place}>{value:,.0f}</text>")
    for i, (name, points) in enumerate(curves.items()):
        colour = COLOURS[i % len(COLOURS)]
        line = " ".join(f"{x(a)},{y(b)}" for a, b in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        end = f'x="{x(points[-1][0]) + 5}" y="{y(points[-1][1]) + 4}"'
        parts.append(f'<text {end} fill="{colour}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _ticks(high: float) -> list[float]:
    """RETURNS (list[float]): Round numbers from 0 up, at most ten."""
    step = 10.0 ** math.floor(math.log10(high))
    return [i * step for i in range(int(high / step) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """RETURNS (list[float]): 1, 2 and 5 times the powers of ten between these logarithms."""
    powers = range(math.floor(low), math.ceil(high) + 1)
    values = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    return [value for value in values if low - 1e-9 <= math.log10(value) <= high + 1e-9]


def draw_scores(
    lines: Mapping[str, Scores], *, title: str, x_label: str, x_names: Mapping[float, str]
) -> str:
    """Draw scores of repeated runs: every run a dot, means with a line through them, whiskers of
    one standard deviation. Lines stand a little apart, so that none hides another; where there is
    one x only, each has a column.

    lines (Mapping[str, Scores]): Name -> (x, scores at x), in the order of x; x > 0, and its axis
        is logarithmic. The axis of y goes from the lowest to the highest score.
    x_names (Mapping[float, str]): What to write at each x.
    RETURNS (str): The SVG. Each dot says its value when it is pointed at.
    """
    xs = sorted({x for line in lines.values() for x, _ in line})
    spreads = [(*scores, *_whisker(scores)) for line in lines.values() for _, scores in line]
    low, high = min(map(min, spreads)), max(map(max, spreads))
    right = WIDTH - KEY
    apart = 7.0 if len(xs) > 1 else (right - LEFT) / (len(lines) + 1)

    def x(value: float, line: float) -> float:
        spread = math.log(xs[-1] / xs[0]) if len(xs) > 1 else 0.0
        share = math.log(value / xs[0]) / spread if spread else 0.5
        room = apart * (len(lines) + 1) / 2  # to either side of a place on the axis
        middle = LEFT + room + (right - LEFT - 2 * room) * share
        return round(middle + apart * (line - (len(lines) - 1) / 2), 1)

    def y(value: float) -> float:
        share = (value - low) / (high - low) if high > low else 0.5
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share, 1)

    parts = _frame(title, x_label, (LEFT + right) / 2)
    for value in _ticks_between(low, high):
        parts.append(
            f'<path d="M{LEFT} {y(value)}H{right}" stroke="#ddd"/>'
            f'<text x="{LEFT - 8}" y="{y(value) + 4}" text-anchor="end">{value:g}</text>'
        )
    last = -math.inf
    for value in xs:
        middle = x(value, (len(lines) - 1) / 2)
        if middle < last + APART:
            continue  # its name would lie on the last one
        last = middle
        place = f'x="{middle}" y="{HEIGHT - BOTTOM + 20}"'
        parts.append(f'<text {place} text-anchor="middle">{escape(x_names[value])}</text>')
    for i, (name, line) in enumerate(lines.items()):
        colour = COLOURS[i % len(COLOURS)]
        means = " ".join(f"{x(a, i)},{y(statistics.fmean(scores))}" for a, scores in line)
        parts.append(f'<polyline points="{means}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for a, scores in line:
            bottom, top = map(y, _whisker(scores))
            parts.append(f'<path d="M{x(a, i)} {bottom}V{top}" stroke="{colour}"/>')
            mean = y(statistics.fmean(scores))
            parts.append(f'<path d="M{x(a, i) - 6} {mean}h12" stroke="{colour}" stroke-width="2"/>')
            parts += [
                f'<circle cx="{x(a, i)}" cy="{y(score)}" r="3" fill="{colour}" fill-opacity=".6">'
                f"<title>{escape(name)}, {escape(x_names[a])}: {score:.4f}</title></circle>"
                for score in scores
            ]
        place = f'x="{right + 15}" y="{TOP + 10 + 18 * i}"'
        parts.append(f'<text {place} fill="{colour}">● {escape(name)}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _whisker(scores: Sequence[float]) -> tuple[float, float]:
    """RETURNS (tuple[float, float]): Mean less and plus the standard deviation (of a sample)."""
    mean = statistics.fmean(scores)
    sd = statistics.stdev(scores) if len(scores) > 1 else 0.0
    return mean - sd, mean + sd


def _frame(title: str, x_label: str, middle: float) -> list[str]:
    """RETURNS (list[str]): The start of a picture: a white page, its title, the name of x."""
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="20" font-size="14">{escape(title)}</text>',
        f'<text x="{middle}" y="{HEIGHT - 10}" text-anchor="middle">{escape(x_label)}</text>',
    ]


def _ticks_between(low: float, high: float) -> list[float]:
    """RETURNS (list[float]): Round numbers within these bounds, three to eleven."""
    if high <= low:
        return [low]
    step = 10.0 ** math.floor(math.log10(high - low))
    step = next(s for s in (step, step / 2, step / 5) if math.floor((high - low) / s) >= 3)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]
