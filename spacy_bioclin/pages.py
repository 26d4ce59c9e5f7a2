"""Render pages from Jinja templates, and draw curves and scores as SVG pictures.

A page is one file: no script, no font, nothing from outside.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import cycle
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

# Size and margins of pictures, in pixels.
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 720, 360, 70, 40, 50
CURVES_END, SCORES_END = WIDTH - 90, WIDTH - 200  # the rest is for the names of the lines
LABELS = HEIGHT - BOTTOM + 20  # y of the labels of the x axis
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f")
LABEL_GAP = 40  # smallest distance of labels of the x axis
LINE_GAP = 7.0  # distance of lines of scores

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

    curves (Mapping[str, Points]): Name -> (x, y), ordered by x; no y is negative.
    title, x_label (str): Title of the picture and name of the x axis.
    logarithmic (bool): Whether the y axis is logarithmic and starts at the smallest y instead of 0.
    RETURNS (str): The SVG.
    """
    xs = [x for points in curves.values() for x, _ in points]
    ys = [y for points in curves.values() for _, y in points]
    low, high = (min(ys), max(ys)) if logarithmic else (0.0, 1.15 * max(ys))
    x = _make_scale(min(xs), max(xs), LEFT, CURVES_END)
    y = _make_scale(low, high, HEIGHT - BOTTOM, TOP, logarithmic)
    ticks = _find_log_ticks(low, high) if logarithmic else _find_ticks(low, high)
    parts = _draw_axes(title, x_label, y, ticks, CURVES_END)
    for i in range(6):
        value = min(xs) + (max(xs) - min(xs)) * i / 5
        parts.append(_write(x(value), LABELS, f"{value:,.0f}", "middle"))
    for (name, points), colour in zip(curves.items(), cycle(COLOURS), strict=False):
        places = [(x(a), y(b)) for a, b in points]
        parts.append(_draw_line(places, colour))
        parts.append(_write(places[-1][0] + 5, places[-1][1] + 4, name, colour=colour))
    return "\n".join([*parts, "</svg>\n"])


def draw_scores(
    lines: Mapping[str, Scores], *, title: str, x_label: str, x_names: Mapping[float, str]
) -> str:
    """Draw scores of repeated runs: a dot for each run, a line through the means, whiskers of one
    standard deviation.

    The lines are drawn next to each other, so that none hides another. If there is only one x, each
    has a column. A dot shows its run when the pointer is over it.

    lines (Mapping[str, Scores]): Name -> (x, scores at x), ordered by x; x > 0, on a logarithmic
        axis. The y axis goes from the lowest to the highest score or whisker.
    title, x_label (str): Title of the picture and name of the x axis.
    x_names (Mapping[float, str]): The label of each x.
    RETURNS (str): The SVG.
    """
    xs = sorted({x for line in lines.values() for x, _ in line})
    extremes = [(*scores, *_find_whisker(scores)) for line in lines.values() for _, scores in line]
    low, high = min(map(min, extremes)), max(map(max, extremes))
    gap = LINE_GAP if len(xs) > 1 else (SCORES_END - LEFT) / (len(lines) + 1)
    margin = gap * (len(lines) + 1) / 2
    x = _make_scale(xs[0], xs[-1], LEFT + margin, SCORES_END - margin, logarithmic=True)
    y = _make_scale(low, high, HEIGHT - BOTTOM, TOP)
    parts = _draw_axes(title, x_label, y, _find_ticks(low, high), SCORES_END)
    last = -math.inf
    for value in xs:
        if x(value) >= last + LABEL_GAP:
            last = x(value)
            parts.append(_write(last, LABELS, x_names[value], "middle"))
    for i, ((name, line), colour) in enumerate(zip(lines.items(), cycle(COLOURS), strict=False)):
        means = []
        for value, scores in line:
            middle = round(x(value) + gap * (i - (len(lines) - 1) / 2), 1)
            bottom, top = map(y, _find_whisker(scores))
            mean = y(statistics.fmean(scores))
            means.append((middle, mean))
            parts.append(f'<path d="M{middle} {bottom}V{top}" stroke="{colour}"/>')
            parts.append(f'<path d="M{middle - 6} {mean}h12" stroke="{colour}" stroke-width="2"/>')
            parts += [
                f'<circle cx="{middle}" cy="{y(score)}" r="3" fill="{colour}" fill-opacity=".6">'
                f"<title>{escape(name)}, {escape(x_names[value])}: {score:.4f}</title></circle>"
                for score in scores
            ]
        parts.append(_draw_line(means, colour))
        parts.append(_write(SCORES_END + 15, TOP + 10 + 18 * i, f"● {name}", colour=colour))
    return "\n".join([*parts, "</svg>\n"])


def _make_scale(
    low: float, high: float, start: float, end: float, logarithmic: bool = False
) -> Callable[[float], float]:
    """Make a function from the values between low and high to the pixels between start and end."""
    convert = math.log10 if logarithmic else float

    def scale(value: float) -> float:
        span = convert(high) - convert(low)
        share = (convert(value) - convert(low)) / span if span else 0.5
        return round(start + (end - start) * share, 1)

    return scale


def _draw_axes(
    title: str, x_label: str, y: Callable[[float], float], ticks: Sequence[float], end: float
) -> list[str]:
    """Begin a picture: a white page with title, name of the x axis and a grid line at each tick."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="20" font-size="14">{escape(title)}</text>',
        _write((LEFT + end) / 2, HEIGHT - 10, x_label, "middle"),
    ]
    for value in ticks:
        parts.append(f'<path d="M{LEFT} {y(value)}H{end}" stroke="#ddd"/>')
        parts.append(_write(LEFT - 8, y(value) + 4, f"{value:,g}", "end"))
    return parts


def _draw_line(places: Points, colour: str) -> str:
    points = " ".join(f"{x},{y}" for x, y in places)
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'


def _write(x: float, y: float, text: str, anchor: str = "start", colour: str = "black") -> str:
    place = f'x="{x}" y="{y}" text-anchor="{anchor}" fill="{colour}"'
    return f"<text {place}>{escape(text)}</text>"


def _find_whisker(scores: Sequence[float]) -> tuple[float, float]:
    """Compute mean minus and plus the standard deviation (of a sample)."""
    mean = statistics.fmean(scores)
    sd = statistics.stdev(scores) if len(scores) > 1 else 0.0
    return mean - sd, mean + sd


def _find_ticks(low: float, high: float) -> list[float]:
    """Find three to eleven round numbers between two bounds."""
    if high <= low:
        return [low]
    step = 10.0 ** math.floor(math.log10(high - low))
    step = next(s for s in (step, step / 2, step / 5) if math.floor((high - low) / s) >= 3)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def _find_log_ticks(low: float, high: float) -> list[float]:
    """Find 1, 2 and 5 times the powers of ten between two bounds."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    return [tick for tick in ticks if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]
