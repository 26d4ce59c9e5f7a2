"""Everything that the page can do, with the keyboard alone."""

from typing import TYPE_CHECKING

import pytest

from tests.serving.page.fixtures import annotate, list_marks, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow  # as all tests in a browser

WHERE = "document.activeElement.id || document.activeElement.textContent"


def press(page: "Page", *keys: str) -> str:
    """Press keys, and name what has the focus then."""
    for key in keys:
        page.keyboard.press(key)
    return str(page.evaluate(WHERE))


def test_the_tab_key_reaches_every_control_in_order(page: "Page") -> None:
    assert press(page, "Tab") == "Skip to the note"
    top = page.eval_on_selector(".skip", "link => link.getBoundingClientRect().top")
    assert top >= 0  # it is seen while it has the focus
    assert [press(page, "Tab") for _ in range(2)] == ["language", "theme"]
    order = [press(page, "Tab") for _ in range(5)]
    assert order == ["tab-write", "annotate", "text", "example", "clear"]


def test_the_skip_link_leads_past_the_header(page: "Page") -> None:
    press(page, "Tab", "Enter")
    assert press(page, "Tab") == "tab-write"


def test_a_note_is_written_and_read_without_a_pointer(page: "Page") -> None:
    page.focus("#tab-write")
    press(page, "Tab", "Tab")
    page.keyboard.type("Posible fiebre. No tos. ")
    press(page, "Control+Enter")
    page.wait_for_selector("#workspace[aria-busy=false]")
    page.focus("#annotate")
    assert press(page, "Tab") == "note"
    # One stop for all marks of the note; the arrows move between them.
    assert press(page, "Tab") == "fiebre"
    assert "uncertain" in page.inner_text("#card")
    assert press(page, "ArrowRight") == "tos"
    assert press(page, "ArrowRight") == "tos"  # the last one
    assert press(page, "Home") == "fiebre"
    assert press(page, "End") == "tos"
    assert "negated" in page.inner_text("#card")
    assert press(page, "Escape") == "tos"
    assert not page.is_visible("#card")
    # Enter goes to the list, and from there back.
    assert press(page, "Enter").startswith("tos")
    assert page.evaluate("document.activeElement.getAttribute('role')") == "option"
    assert press(page, "ArrowUp").startswith("fiebre")
    assert page.locator("#note .lit").all_text_contents() == ["fiebre"]
    assert press(page, "Enter") == "fiebre"
    assert page.evaluate("document.activeElement.className").startswith("mark")


def test_filters_are_set_with_the_keyboard(page: "Page") -> None:
    annotate(page, "Cáncer: cáncer de mama izquierda. Tos y tos.")
    page.focus("#threshold")
    press(page, "End")
    page.wait_for_selector("#threshold-value >> text=100%")
    assert [text for text, _ in list_marks(page)] == ["cáncer de mama", "tos"]
    press(page, "Home")
    page.wait_for_selector("#threshold-value >> text=0%")
    for key in ("Tab", "Tab", "Space"):  # the group, then its first label
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.type") == "checkbox"
    assert "cáncer de mama" not in [text for text, _ in list_marks(page)]


def test_tabs_and_replacements_have_arrows(page: "Page") -> None:
    annotate(page)
    page.focus("#tab-found")
    assert press(page, "ArrowRight") == "tab-safe"
    assert page.is_visible("#panel-safe") and not page.is_visible("#panel-found")
    assert press(page, "ArrowRight") == "tab-write"
    assert press(page, "End") == "tab-safe"
    page.focus("#safe-note")
    assert press(page, "Tab") == "[NOMBRE_SUJETO_ASISTENCIA]"
    assert press(page, "ArrowDown") == "[ID_SUJETO_ASISTENCIA]"
    lit = page.locator("#safe-note .lit").all_text_contents()
    assert lit == ["12345678Z", "[ID_SUJETO_ASISTENCIA]"]
    assert "12345678Z" in page.inner_text("#card")
    assert press(page, "Tab") == "copy-text"
    assert press(page, "Tab") == "copy-safe"


def test_the_focus_is_always_seen(page: "Page") -> None:
    # Without an outline, whoever has no pointer does not know where they are.
    annotate(page)
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    page.focus("#tab-found")
    hidden = []
    for _ in range(25):
        where = press(page, "Tab")
        if page.evaluate(outline) == "none" and where != page.evaluate("document.body.textContent"):
            hidden.append(where)
    assert hidden == []


def test_a_narrow_page_keeps_its_place(browser: "Browser", page_url: str) -> None:
    # The list is below the note there: moving in it must not scroll to the note.
    narrow = {"width": 320, "height": 700}
    with opened(browser, page_url, viewport=narrow) as page:
        annotate(page)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 320
        page.focus("#list [role=option]")
        before = page.evaluate("scrollY")
        press(page, "ArrowDown", "ArrowDown")
        assert abs(page.evaluate("scrollY") - before) < 200
        assert page.is_visible("#card")
