"""Drawings are XML, higher values stand higher, and scores are dots around their mean."""

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


def test_a_single_point_can_be_drawn() -> None:
    ElementTree.fromstring(draw_curves({"a": [(1, 2.0)]}, title="", x_label="", logarithmic=True))
    draw({"a": [(1e-5, [0.5])]})


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
