import itertools
import re
from xml.etree import ElementTree

from spacy_bioclin.pages import draw_curves, draw_scores

CURVES = {"es": [(0, 100.0), (10, 10.0)], "en & more": [(0, 50.0), (10, 20.0)]}


def places(svg: str) -> list[list[tuple[float, float]]]:
    lines = re.findall(r'points="([^"]*)"', svg)
    return [[tuple(map(float, p.split(","))) for p in line.split()] for line in lines]


def test_higher_values_stand_higher_and_names_are_escaped() -> None:
    svg = draw_curves(CURVES, title="Perplexity", x_label="updates")
    ElementTree.fromstring(svg)
    (es_first, es_last), (en_first, en_last) = places(svg)
    assert es_first[0] == en_first[0] < es_last[0] == en_last[0]
    assert es_first[1] < en_first[1] < en_last[1] < es_last[1]  # y grows downwards in SVG
    assert "en &amp; more" in svg


def test_equal_ratios_are_equal_steps_on_a_logarithmic_axis() -> None:
    points = [(0.0, 1.0), (1.0, 10.0), (2.0, 100.0)]
    svg = draw_curves({"a": points}, title="", x_label="", logarithmic=True)
    [(_, y0), (_, y1), (_, y2)] = places(svg)[0]
    assert abs((y0 - y1) - (y1 - y2)) < 0.2
    assert [f">{value}<" in svg for value in (1, 2, 5, 10, 20, 50, 100)] == [True] * 7


def test_a_single_point_can_be_drawn() -> None:
    ElementTree.fromstring(draw_curves({"a": [(1, 2.0)]}, title="", x_label=""))


RATES = {1e-5: "1e-5", 1e-4: "1e-4", 1e-3: "1e-3"}


def draw(lines: dict, names: dict = RATES) -> str:
    svg = draw_scores(lines, title="F1", x_label="rate", x_names=names)
    ElementTree.fromstring(svg)
    return svg


def dots(svg: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r'<circle cx="(.*?)" cy="(.*?)"', svg)]


def test_scores_are_dots_around_their_mean() -> None:
    svg = draw({"a": [(1e-5, [0.5]), (1e-4, [0.6, 0.8]), (1e-3, [0.9])]})
    [line] = places(svg)
    (x0, _), (x1, y1), (x2, _) = line
    assert abs((x1 - x0) - (x2 - x1)) < 0.2  # equal ratios
    low, high = dots(svg)[1:3]
    assert low[0] == high[0] == x1
    assert low[1] > y1 > high[1] and abs(low[1] + high[1] - 2 * y1) < 0.2
    # Whiskers: sd of (0.6, 0.8) is 0.1414, the dots stand 0.1 from the mean.
    [(bottom, top)] = re.findall(rf'<path d="M{x1} (.*?)V(.*?)"', svg)
    assert abs((float(bottom) - y1) / (low[1] - y1) - 1.414) < 0.02
    assert abs(float(bottom) + float(top) - 2 * y1) < 0.2
    assert "a, 1e-4: 0.6000" in svg and ">1e-3<" in svg


def test_lines_of_scores_stand_apart() -> None:
    line = [(1e-5, [0.5, 0.6]), (1e-3, [0.7])]
    a, b = places(draw({"a": line, "b & c": line}))
    assert [x for x, _ in b] == [x + 7 for x, _ in a]
    assert [y for _, y in b] == [y for _, y in a]


def test_strategies_at_one_rate_have_columns() -> None:
    svg = draw({name: [(1e-5, [0.5, 0.6, 0.61])] for name in "abc"})
    columns = sorted({x for x, _ in dots(svg)})
    assert len(columns) == 3 and columns[2] - columns[1] > 100
    draw({"a": [(1e-5, [0.5])]})  # one dot: no height at all


def test_names_of_near_rates_do_not_lie_on_each_other() -> None:
    rates = [10 ** (-5 + i / 50) for i in range(100)]
    svg = draw({"a": [(rate, [0.5]) for rate in rates]}, {rate: f"{rate:g}" for rate in rates})
    middles = re.findall(r'<text x="([^"]*)" y="330" text-anchor="middle"', svg)
    assert 5 < len(middles) < 13
    assert all(float(b) - float(a) >= 40 for a, b in itertools.pairwise(middles))
