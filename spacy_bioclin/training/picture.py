"""Curves as an SVG picture: a page that any browser opens, without a plotting library."""

import math
from collections.abc import Mapping, Sequence
from html import escape

# Size and margins, in pixels.
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 360, 70, 90, 40, 50
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f")

Points = Sequence[tuple[float, float]]


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

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="20" font-size="14">{escape(title)}</text>',
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 10}" text-anchor="middle">{escape(x_label)}</text>',
    ]
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
