"""Notes that nobody would write, and that the page must show all the same."""

from typing import TYPE_CHECKING

import pytest

from tests.serving.page.fixtures import EVIL, annotate, list_marks, text_of

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.slow  # as all tests in a browser
SCRIPT = (
    "<script>window.hacked=1</script><svg onload=window.hacked=1> {{7*7}} ${7*7} "
    "</textarea><img src=x onerror=window.hacked=1> &lt;b&gt; tos"
)
RLO, RLE, PDF, LRM = "\u202e", "\u202b", "\u202c", "\u200e"


def test_a_note_is_never_read_as_html(page: "Page") -> None:
    annotate(page, f"{SCRIPT}\nbrote")  # a label of the pipeline is markup too
    page.hover("#note .mark >> nth=1")
    assert EVIL in page.inner_text("#card")
    assert "".join(page.locator("#note .text").all_text_contents()) == f"{SCRIPT}\nbrote"
    page.click("#tab-safe")
    assert text_of(page, "#safe-note .row >> nth=0").count("<script>") == 2
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main script, main svg").count() == 0


def test_offsets_are_those_of_code_points(page: "Page") -> None:
    # An emoji is one code point for the service and two units for JavaScript: without care, marks
    # behind it move to the left.
    family = "👩‍👩‍👧"
    annotate(page, f"{family}😀 No tos. 🩺 fiebre🤒 DNI 12345678Z 😀")
    assert [text for text, _ in list_marks(page)] == ["tos", "fiebre"]
    page.click("#tab-safe")
    assert list_marks(page, "#safe-note .row > :first-child")[0][0] == "12345678Z"
    assert list_marks(page, "#safe-note .row > :last-child")[0][0] == "[ID_SUJETO_ASISTENCIA]"
    assert text_of(page, "#size") == "40 characters"


def test_half_of_a_character_does_not_stop_the_note(page: "Page") -> None:
    page.evaluate("document.getElementById('text').value = 'a\\ud800 tos \\udc00'")
    page.click("#annotate")
    page.wait_for_selector("#workspace[aria-busy=false]")
    assert [text for text, _ in list_marks(page)] == ["tos"]
    assert text_of(page, "#note .text") == "a\ufffd tos \ufffd"


def test_marks_of_direction_are_shown_and_have_no_effect(page: "Page") -> None:
    # U+202E reverses what follows: "No tos" could look like something else.
    note = f"{RLO}No tos.{PDF} {RLE}fiebre {LRM}حمى"
    annotate(page, note)
    assert text_of(page, "#note .text") == note
    names = page.eval_on_selector_all(
        "#note .control", "all => all.map((each) => each.dataset.name)"
    )
    assert names == ["RLO", "PDF", "RLE", "LRM"]
    lefts = page.evaluate(
        """() => {
            const mark = document.querySelector("#note .mark > *").firstChild;
            return [0, 1, 2].map((i) => {
                const range = document.createRange();
                range.setStart(mark, i);
                range.setEnd(mark, i + 1);
                return range.getBoundingClientRect().left;
            });
        }"""
    )
    assert lefts == sorted(lefts) and len(set(lefts)) == 3
    assert page.evaluate("getComputedStyle(document.querySelector('#list bdi')).direction") == "ltr"


def test_blank_lines_tabs_and_combining_accents_stay(page: "Page") -> None:
    note = "\n\n\tNo tos.\n\n\n\nAntecedentes:\n\n  neumoni\u0301a \u00a0\n\n"
    annotate(page, note)
    assert "".join(page.locator("#note .text").all_text_contents()) == note


def test_an_entity_can_lie_across_sections(page: "Page") -> None:
    annotate(page, "Antecedentes: cáncer\nde mama\nTratamiento: Amoxicilina")
    text = "".join(page.locator("#note .text").all_text_contents())
    assert text == "Antecedentes: cáncer\nde mama\nTratamiento: Amoxicilina"


def test_a_long_note_is_shown_whole(page: "Page") -> None:
    """All of its text and its marks; what is out of sight is not drawn, or only when it is asked
    for."""
    sentence = (
        "Posible neumonía, tos y fiebre, niega cáncer de mama izquierda; Amoxicilina 500 mg. "
    )
    note = (sentence * 10 + "\n") * 12
    annotate(page, note)
    n_sentences = note.count("Posible")
    page.wait_for_selector(f"#note .mark >> nth={6 * n_sentences - 1}", state="attached")
    assert "".join(page.locator("#note .text").all_text_contents()) == note
    assert page.locator("#note .block").count() > 2
    assert page.locator("#list [role=option]").count() == 200
    page.focus("#list [role=option]")
    page.keyboard.press("End")  # the last of all entities, which the list had not shown yet
    assert page.evaluate("document.activeElement.textContent").startswith("500 mg")
    page.click("#tab-safe")
    assert page.locator("#safe-note .row").count() >= note.count("\n")


def test_a_note_without_lines_is_divided(page: "Page") -> None:
    # Blocks out of sight are not laid out: one block of everything would be slow.
    note = "palabra 😀 " * 2_200 + "tos"
    annotate(page, note)
    assert page.locator("#note .block").count() > 1
    assert "".join(page.locator("#note .text").all_text_contents()) == note
    assert list_marks(page) == [["tos", "symptom"]]
