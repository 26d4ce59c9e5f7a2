"""The page is for everybody: axe-core finds nothing, and colours have enough contrast."""

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.serving.page.fixtures import annotate, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow  # as all tests in a browser
N_HUES = 12


def find_violations(page: "Page") -> list[Any]:
    """Let axe-core look at the page as it is."""
    reason = "accessibility is tested with axe-playwright-python"
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason=reason)
    found = axe.Axe().run(page).response["violations"]
    return [(each["id"], each["help"], [node["html"] for node in each["nodes"]]) for each in found]


def test_axe_finds_no_violation(page: "Page") -> None:
    page.click("#annotate")  # with an error
    assert find_violations(page) == []
    show_everything(page)
    assert find_violations(page) == []
    page.click("#list [role=option]")
    page.click("#tab-safe")
    page.focus("#safe-note [role=button]")
    assert page.is_visible("#card")
    assert find_violations(page) == []


def show_everything(page: "Page") -> None:
    annotate(page)
    for summary in page.query_selector_all("#labels details:not([open]) summary"):
        summary.click()
    page.hover("#note .mark >> nth=0")
    assert page.is_visible("#card")


def test_axe_finds_no_violation_in_the_dark(browser: "Browser", page_url: str) -> None:
    with opened(browser, page_url, color_scheme="dark") as page:
        show_everything(page)
        assert find_violations(page) == []
        page.click("#tab-safe")
        page.focus("#safe-note [role=button]")
        assert find_violations(page) == []


def test_axe_finds_no_violation_on_a_telephone_in_spanish(
    browser: "Browser", page_url: str
) -> None:
    small = {"width": 390, "height": 800}
    with opened(browser, page_url, locale="es-ES", viewport=small) as page:
        annotate(page)
        page.evaluate("document.getElementById('key-form').hidden = false")
        assert find_violations(page) == []


def luminance(colour: str) -> float:
    """Relative luminance of "rgb(1, 2, 3)", as WCAG 2 defines it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Contrast of two colours, 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_labels_can_be_read_in_every_hue(page: "Page") -> None:
    # axe-core does not see text that a style sheet writes.
    for theme in ("Dark", "Light"):
        page.select_option("#theme", label=theme)
        rows = page.evaluate(
            """(n) => Array.from({length: n}, (_, i) => {
                const mark = document.createElement("span");
                mark.className = `mark hue-${i}`;
                mark.dataset.label = "label";
                document.getElementById("panel-write").append(mark);
                const [own, after] = [getComputedStyle(mark), getComputedStyle(mark, "::after")];
                return [own.color, after.color, own.backgroundColor];
            })""",
            N_HUES,
        )
        for text, label, tint in rows:
            assert contrast(text, tint) >= 4.5 and contrast(label, tint) >= 4.5, (text, label, tint)
        assert len({tint for _, _, tint in rows}) == N_HUES
        assert luminance(rows[0][2]) < 0.5 or theme == "Light"
