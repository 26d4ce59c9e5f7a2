"""Every control of the page, by pointer: what it shows, hides, copies and says."""

import json
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

import pytest

from tests.serving.page.fixtures import NOTE, annotate, list_marks, opened, text_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route
    from spacy.language import Language

pytestmark = pytest.mark.slow  # as all tests in a browser

SAFE = (
    NOTE.replace("Xabina", "[NOMBRE_SUJETO_ASISTENCIA]")
    .replace("12345678Z", "[ID_SUJETO_ASISTENCIA]")
    .replace("Madre", "[FAMILIARES_SUJETO_ASISTENCIA]")
)


AGE = "Varón de 68 años, exfumador."


def make_entity(text: str, label: str, layer: str, **kinds: bool) -> dict[str, Any]:
    """Make an entity of `AGE`, as the service answers it."""
    start = AGE.index(text)
    place = {"start": start, "end": start + len(text), "text": text}
    return {**place, "label": label, "layer": layer, "probability": None, **kinds}


def show_left_out(page: "Page") -> None:
    """Show the spans that overlap an entity too."""
    page.click("#labels summary >> nth=2")
    page.click("button[aria-label='Show all of Left out: overlap an entity']")


def ask(url: str, path: str, text: str) -> object:
    """Ask the service without the page."""
    body = json.dumps({"text": text}).encode()
    request = Request(url + path, body, {"Content-Type": "application/json"})
    with urlopen(request) as answer:
        return json.load(answer)


def fulfil(fields: dict[str, Any], route: "Route") -> None:
    """Answer in place of the service."""
    route.fulfill(**fields)


def test_entities_are_marked_with_what_they_mean(page: "Page") -> None:
    # Without them, the page would show text only, or colours that nobody can tell apart.
    annotate(page)
    assert list_marks(page) == [
        ["neumonía", "disease unc."],
        ["tos", "symptom"],
        ["fiebre", "symptom neg."],
        ["cáncer de mama", "disease fam."],
        ["Amoxicilina", "drug"],
        ["500 mg", "quantity"],
    ]
    struck = page.eval_on_selector_all(
        "#note .mark > *",
        "all => all.filter((each) => getComputedStyle(each).textDecorationLine == 'line-through')"
        ".map((each) => each.textContent)",
    )
    assert struck == ["fiebre"]
    titles = page.locator("#note h3").all_text_contents()
    assert titles == ["chief complaint", "past history", "treatment"]
    assert text_of(page, "#note .text >> nth=0").startswith("Paciente: Xabina")
    assert text_of(page, "#status").startswith("11 entities in ")
    assert text_of(page, "#count-found") == "6"
    assert text_of(page, "#legend") == ("Key: negated (neg.)uncertain (unc.)of the family (fam.)")


def test_the_text_of_the_note_is_whole(page: "Page") -> None:
    # A character that is lost or doubled between two marks would be seen nowhere else.
    annotate(page)
    parts = page.locator("#note .text").all_text_contents()
    assert "".join(parts) == NOTE


def test_overlapping_entities_have_a_line_each(page: "Page") -> None:
    # "cáncer" lies in "cáncer de mama", which overlaps "mama izquierda": both are left out of ents.
    annotate(page)
    show_left_out(page)
    shadows = page.eval_on_selector_all(
        "#note .mark", "marks => marks.slice(3, 7).map((mark) => mark.style.boxShadow)"
    )
    lines = [[part for part in each.split(", ") if "hue" in part] for each in shadows]
    assert [len(each) for each in lines] == [2, 0, 2, 1]  # 0: only the line that any mark has
    assert shadows[1] == ""
    page.hover("#note .mark >> nth=5")
    titles = page.locator("#card .title").all_text_contents()
    assert titles == ["cáncer de mama", "mama izquierda"]


def test_a_concept_has_name_and_definition(page: "Page") -> None:
    annotate(page)
    page.hover("#note .mark >> nth=0")
    shown = page.inner_text("#card")
    for part in (
        "neumonía",
        "uncertain",
        "chief complaint",
        "C1",
        "Inflamación <b>del</b> pulmón.",
    ):
        assert part in shown
    assert page.locator("#card strong").all_text_contents() == ["neumonía"]
    page.hover("#note .mark >> nth=3")
    assert "Not linked. The closest concepts:" in page.inner_text("#card")
    page.hover("#note .mark >> nth=5")
    assert page.inner_text("#card dl").split("\n")[:2] == ["Value", "500 mg"]
    page.mouse.move(5, 5)
    page.wait_for_selector("#card", state="hidden")


def test_the_threshold_hides_what_is_less_probable(page: "Page") -> None:
    # 0.9 for the body part, 0.4 for the tumour, none for the others.
    annotate(page)
    show_left_out(page)
    page.fill("#threshold", "50")
    page.evaluate("() => new Promise(requestAnimationFrame)")  # the page draws in the next frame
    assert text_of(page, "#threshold-value") == "50%"
    assert text_of(page, "#count-found") == "7"
    assert "cáncer" not in [text for text, _ in list_marks(page)]
    page.fill("#threshold", "95")
    page.wait_for_selector("#relation-list li", state="detached")  # of 0.75
    assert [text for text, _ in list_marks(page)][3:4] == ["cáncer de mama"]
    assert text_of(page, "#list-count") == "6 of 11"


def test_labels_are_chosen_with_their_counts(page: "Page") -> None:
    annotate(page)
    groups = page.locator("#labels summary").all_inner_texts()
    assert groups == [
        "Entities 5",
        "Measurements 1",
        "Left out: overlap an entity 2",
        "Protected health information 3",
    ]
    symptom = page.locator("#labels label", has_text="symptom")
    assert symptom.inner_text().split() == ["Symptom", "2"]
    symptom.click()
    assert "tos" not in [text for text, _ in list_marks(page)]
    page.click("button[aria-label='Show none of Entities']")
    assert [text for text, _ in list_marks(page)] == ["500 mg"]
    page.click("button[aria-label='Show all of Entities']")
    assert text_of(page, "#count-found") == "6"
    assert list_marks(page)[0][0] == "neumonía"
    page.click("#labels summary >> nth=3")
    page.locator("#labels label", has_text="nombre sujeto").click()
    assert list_marks(page)[0] == ["Xabina", "nombre sujeto asistencia"]


def test_nothing_is_left_when_no_label_is_chosen(page: "Page") -> None:
    annotate(page, "Paciente con tos.")
    page.locator("#labels label", has_text="symptom").click()
    assert list_marks(page) == []
    assert page.is_visible("#list-empty") and not page.is_visible("#list")


def test_a_relation_lights_both_of_its_entities(page: "Page") -> None:
    annotate(page)
    relation = page.locator("#relation-list button")
    assert relation.inner_text().split() == ["Amoxicilina", "treats", "neumonía", "75%"]
    relation.hover()
    assert page.locator("#note .lit").all_text_contents() == ["neumonía", "Amoxicilina"]
    page.mouse.move(5, 5)
    assert page.locator("#note .lit").count() == 0
    relation.click()
    assert page.evaluate("document.activeElement.textContent") == "Amoxicilina"


def test_the_list_and_the_note_show_each_other(page: "Page") -> None:
    annotate(page)
    page.click("#list [role=option] >> nth=2")
    assert page.locator("#note .lit").all_text_contents() == ["fiebre"]
    assert "negated" in page.inner_text("#card")
    page.click("#note .mark >> nth=4")
    selected = page.locator("#list [aria-selected=true]").all_inner_texts()
    assert [text.split() for text in selected] == [["Amoxicilina", "drug"]]


def test_each_replacement_lights_what_it_replaces(page: "Page") -> None:
    annotate(page)
    assert text_of(page, "#count-safe") == "3"
    page.click("#tab-safe")
    page.hover("#safe-note .row > :last-child .mark >> nth=0")
    assert page.locator("#safe-note .lit").all_text_contents() == [
        "Xabina",
        "[NOMBRE_SUJETO_ASISTENCIA]",
    ]
    assert "Xabina" in page.inner_text("#card")
    page.hover("#safe-note .row > :first-child .mark >> nth=1")
    assert page.locator("#safe-note .lit").all_text_contents() == [
        "12345678Z",
        "[ID_SUJETO_ASISTENCIA]",
    ]
    for side, text in ((1, NOTE), (2, SAFE)):
        cells = page.locator(f"#safe-note .row > :nth-child({side})")
        assert "".join(cells.all_text_contents()) == text
    tops = page.eval_on_selector_all(
        "#safe-note .row", "rows => rows.map((row) => [...row.children].map((c) => c.offsetTop))"
    )
    assert len(tops) == NOTE.count("\n") and all(left == right for left, right in tops)


def test_json_is_copied_and_downloaded_whole(browser: "Browser", page_url: str) -> None:
    # The filters are of the page; the file has everything that the service answered.
    permissions = ["clipboard-read", "clipboard-write"]
    with opened(browser, page_url, permissions=permissions) as page:
        annotate(page)
        page.fill("#threshold", "95")
        expected = {path: ask(page_url, path, NOTE) for path in ("annotate", "deidentify")}
        for tab, path in (("found", "annotate"), ("safe", "deidentify")):
            page.click(f"#tab-{tab}")
            page.click(f"#copy-{tab}")
            page.wait_for_selector("#status >> text=Copied.")
            assert json.loads(page.evaluate("navigator.clipboard.readText()")) == expected[path]
            with page.expect_download() as download:
                page.click(f"#download-{tab}")
            file = download.value.path()
            assert json.loads(file.read_text("utf-8")) == expected[path]
        assert download.value.suggested_filename == "safe-note.json"
        page.click("#copy-text")
        page.wait_for_selector("#status >> text=Copied.")
        assert page.evaluate("navigator.clipboard.readText()") == SAFE


def test_the_page_speaks_spanish(browser: "Browser", page_url: str) -> None:
    with opened(browser, page_url, locale="es-MX") as page:
        assert page.get_attribute("html", "lang") == "es"
        annotate(page)
        assert text_of(page, "#tab-found").split() == ["Hallazgos", "6"]
        assert list_marks(page)[2] == ["fiebre", "síntoma neg."]
        titles = page.locator("#note h3").all_text_contents()
        assert titles == ["motivo de consulta", "antecedentes personales", "tratamiento"]
        groups = page.locator("#labels summary").all_inner_texts()
        assert groups[1:3] == ["Medidas 1", "Descartadas: solapan una entidad 2"]
        page.select_option("#language", "en")
        assert text_of(page, "#tab-found").split() == ["Findings", "6"]
        assert text_of(page, "#pipeline") == "es_tiny 1.2.3 · Spanish"
        host = page_url.split("/")[2]
        assert f"only to the service at {host}." in text_of(page, "#local")


def test_a_telephone_has_the_safe_note_alone(browser: "Browser", page_url: str) -> None:
    with opened(browser, page_url, viewport={"width": 390, "height": 800}) as page:
        annotate(page)
        page.click("#tab-safe")
        page.wait_for_selector("#safe-note .row", state="attached")
        lines = [line.rstrip() for line in page.inner_text("#safe-note").splitlines() if line]
        assert lines == [line for line in SAFE.splitlines() if line]
        page.focus("#safe-note [role=button]")
        assert "Xabina" in page.inner_text("#card")


def test_an_age_in_the_history_is_not_over(browser: "Browser", page_url: str) -> None:
    answer = {
        "entities": [
            make_entity("68 años", "age", "measurements", historical=True),
            make_entity("exfumador", "DISEASE", "ents", historical=True),
        ],
        "sections": [],
        "relations": [],
        "categories": None,
    }
    with opened(browser, page_url) as page:
        body = json.dumps(answer)
        page.route(
            "**/annotate", partial(fulfil, {"content_type": "application/json", "body": body})
        )
        annotate(page, AGE)
        assert list_marks(page) == [["68 años", "age"], ["exfumador", "disease hist."]]
        style = "each => getComputedStyle(each).textDecorationLine"
        assert page.eval_on_selector("#note .historical", style) == "none"


def test_the_theme_is_chosen(page: "Page") -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(paper) == "rgb(244, 243, 239)"
    page.select_option("#theme", label="Dark")
    assert page.evaluate(paper) == "rgb(16, 21, 24)"
    page.select_option("#theme", label="Light")
    assert page.evaluate(paper) == "rgb(244, 243, 239)"
    page.emulate_media(color_scheme="dark")
    page.select_option("#theme", label="System")
    assert page.evaluate(paper) == "rgb(16, 21, 24)"
    page.emulate_media(color_scheme="light")  # other tests use this window too


def test_an_invented_note_and_an_empty_one(page: "Page") -> None:
    page.wait_for_selector("#pipeline >> text=es_tiny")  # until then it does not know the language
    page.click("#example")
    assert page.input_value("#text").startswith("INFORME DE ALTA")  # the pipeline reads Spanish
    assert text_of(page, "#size") == f"{len(page.input_value('#text')):,} characters"
    page.click("#clear")
    assert page.input_value("#text") == "" and text_of(page, "#size") == "0 characters"
    page.click("#annotate")
    assert text_of(page, "#problem") == "There is no note. Paste or write one first."
    assert page.evaluate("document.activeElement.id") == "text"
    annotate(page, "tos")
    assert text_of(page, "#problem") == ""
    assert text_of(page, "#status").startswith("1 entity in ")


def test_a_service_with_keys_asks_for_one(browser: "Browser", page_nlp: "Language") -> None:
    from tests.serving.util import running

    key = "a-key-of-sixteen-or-more"
    with (
        running(page_nlp, keys=(key,)) as service,
        opened(browser, f"{service.url}/", expected=("401",)) as page,
    ):
        page.wait_for_selector("#key-form")
        page.fill("#text", "tos")
        page.fill("#key", "not-the-key-of-this-one")
        page.click("#key-form button")
        told = "This service needs an API key, or does not know the one given."
        page.wait_for_selector(f"#problem >> text={told}")
        page.fill("#key", key)
        page.click("#key-form button")
        page.wait_for_selector("#workspace[aria-busy=false] #note .mark", state="attached")
        assert list_marks(page) == [["tos", "symptom"]]
        assert not page.is_visible("#key-form") and text_of(page, "#problem") == ""


def test_errors_are_sentences(browser: "Browser", page_nlp: "Language") -> None:
    from tests.serving.util import running

    with (
        running(page_nlp, max_bytes=60) as service,
        opened(browser, f"{service.url}/", expected=("REFUSED",)) as page,
    ):
        page.wait_for_selector("#pipeline >> text=es_tiny")
        page.fill("#text", "ñ" * 30)  # 60 bytes, and 11 of {"text":""}
        page.keyboard.press("Control+Enter")
        assert text_of(page, "#problem") == (
            "The note is too long: it has 71 bytes, and the service takes at most 60."
        )
        page.fill("#text", "tos")
        page.route("**/annotate", lambda route: route.abort("connectionrefused"))
        page.click("#annotate")
        page.wait_for_selector("#problem >> text=The service cannot be reached.")


def test_refusals_of_the_service_are_shown(browser: "Browser", page_url: str) -> None:
    answers = {
        429: ('{"error": "the queue is full"}', "The queue is full. Try again in 7 s."),
        500: ("<html>", "The service sent an answer that is not JSON (status 500)."),
        422: ("{}", "The service answered with status 422."),
    }
    with opened(browser, page_url, expected=("429", "500", "422")) as page:
        page.fill("#text", "tos")
        for status, (body, told) in answers.items():
            fields = {
                "status": status,
                "body": body,
                "headers": {"Retry-After": "7"} if status == 429 else {},
            }
            page.unroute("**/annotate")
            page.route("**/annotate", partial(fulfil, fields))
            page.click("#annotate")
            page.wait_for_selector(f"#problem >> text={told}")
            assert text_of(page, "#problem") == told


def test_a_note_that_cannot_be_deidentified_is_still_annotated(
    browser: "Browser", page_url: str
) -> None:
    with opened(browser, page_url, expected=("422",)) as page:
        body = '{"error": "PHI of this note is in the safe note"}'
        page.route("**/deidentify", lambda route: route.fulfill(status=422, body=body))
        annotate(page)
        assert text_of(page, "#count-found") == "6"
        page.click("#tab-safe")
        assert page.inner_text("#safe-problem") == "PHI of this note is in the safe note."
        assert not page.is_visible("#pair") and not page.is_visible("#copy-text")


def test_a_pipeline_without_deidentification_has_no_such_view(browser: "Browser") -> None:
    from tests.serving.util import running, shared_nlp

    with (
        running(shared_nlp(deid=False)) as service,
        opened(browser, f"{service.url}/") as page,
    ):
        page.wait_for_selector("#tab-safe", state="hidden")
        annotate(page, "No tos.")
        assert list_marks(page) == [["tos", "symptom neg."]]


def test_the_safe_note_is_never_that_of_another_note(browser: "Browser", page_url: str) -> None:
    with opened(browser, page_url) as page:
        assert page.is_disabled("#tab-found") and page.is_disabled("#tab-safe")
        annotate(page)
        waiting: list[Route] = []
        page.route("**/deidentify", lambda route: waiting.append(route))
        page.click("#tab-write")
        page.fill("#text", "No tos.")
        page.click("#annotate")
        page.wait_for_selector("#count-found >> text=1")
        assert page.is_disabled("#tab-safe") and text_of(page, "#count-safe") == ""
        assert text_of(page, "#safe-note") == ""
        waiting[0].continue_()
        page.wait_for_selector("#count-safe >> text=0")
        assert text_of(page, "#safe-note .row > :last-child") == "No tos."


def test_a_request_can_be_cancelled(browser: "Browser", page_url: str) -> None:
    with opened(browser, page_url) as page:
        page.fill("#text", "tos")
        waiting: list[Route] = []
        page.route("**/annotate", lambda route: waiting.append(route))
        page.click("#annotate")
        assert text_of(page, "#status") == "Annotating…"
        page.click("#cancel")
        page.wait_for_selector("#status >> text=Cancelled.")
        assert not page.is_visible("#cancel")
        page.unroute("**/annotate")
        annotate(page, "fiebre")
        assert list_marks(page) == [["fiebre", "symptom"]]


def test_a_long_list_has_pages(page: "Page") -> None:
    # 19,000 entities in one list would take seconds to show.
    annotate(page, "tos " * 450)
    options = page.locator("#list [role=option]")
    assert options.count() == 200 and not page.is_visible("#list-previous")
    page.click("#list-next")
    page.click("#list-next >> text=Next 50")
    assert options.count() == 50 and not page.is_visible("#list-next")
    assert options.nth(0).get_attribute("aria-posinset") == "401"
    assert options.nth(0).get_attribute("aria-setsize") == "450"
    page.click("#list-previous")
    page.click("#note .mark >> nth=3")
    assert page.get_attribute("#list [aria-selected=true]", "aria-posinset") == "4"


def test_titles_of_sections_are_bold(page: "Page") -> None:
    annotate(page)
    titles = page.locator("#note strong").all_text_contents()
    assert titles == ["Motivo de consulta", "Antecedentes", "Tratamiento"]
