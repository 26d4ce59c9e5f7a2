import re
from xml.etree import ElementTree

from spacy_bioclin.training.picture import draw_curves

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
