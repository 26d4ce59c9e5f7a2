"""What the tests of the page share: a small pipeline that has something to show, and how the page
is opened and read."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page
    from spacy.language import Language
    from spacy.tokens import Doc

NOTE = """Paciente: Xabina. DNI 12345678Z

Motivo de consulta:
Posible neumonía. Refiere tos. No fiebre.

Antecedentes:
Madre con cáncer de mama izquierda.

Tratamiento:
Amoxicilina 500 mg.
"""
OPTIONS: Any = {"locale": "en-US", "viewport": {"width": 1360, "height": 900}}
EVIL = "<img src=x onerror=window.hacked=1>"


def add_extras(doc: "Doc") -> "Doc":
    """Give spans probabilities, and relate each drug to each disease."""
    import numpy as np

    from spacy_bioclin.annotations.relations import Relation, set_relations

    group = doc.spans["clinical"]
    scores = [0.9 if span.label_ == "BODY" else 0.4 for span in group]
    group.attrs["scores"] = np.array(scores, np.float32)
    by_label = {
        label: [ent for ent in doc.ents if ent.label_ == label] for label in ("DRUG", "DISEASE")
    }
    relations = [
        Relation(drug, disease, "TREATS", 0.75)
        for drug in by_label["DRUG"]
        for disease in by_label["DISEASE"][:1]
    ]
    set_relations(doc, "relations", relations)
    return doc


def make_nlp(kb: str) -> "Language":
    """Make a pipeline with sections, entities, overlapping spans, concepts, relations and PHI."""
    import spacy

    from spacy_bioclin.spans import install_extensions

    spacy.Language.component("tests_page_extras", func=add_extras)
    install_extensions()  # as a tagger does
    tokenizer = {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}
    nlp = spacy.blank("es", config={"nlp": {"tokenizer": tokenizer}})
    nlp.meta.update(name="tiny", version="1.2.3")
    nlp.add_pipe("bioclin_sentences")
    nlp.add_pipe("bioclin_sections")
    ruler: Any = nlp.add_pipe("entity_ruler")
    found = {
        "SYMPTOM": ("fiebre", "tos"),
        "DISEASE": ("neumonía", "cáncer de mama"),
        "DRUG": ("Amoxicilina",),
        EVIL: ("brote",),
    }
    for label, words in found.items():
        ruler.add_patterns([{"label": label, "pattern": word} for word in words])
    more: Any = nlp.add_pipe("span_ruler", name="overlapping", config={"spans_key": "clinical"})
    more.add_patterns([{"label": "TUMOUR", "pattern": "cáncer"}])
    more.add_patterns([{"label": "BODY", "pattern": "mama izquierda"}])
    names: Any = nlp.add_pipe("span_ruler", name="names", config={"spans_key": "phi"})
    names.add_patterns([{"label": "NOMBRE_SUJETO_ASISTENCIA", "pattern": "Xabina"}])
    nlp.add_pipe("bioclin_phi_rules")
    nlp.add_pipe("bioclin_context")
    nlp.add_pipe("bioclin_measurements")
    nlp.add_pipe("bioclin_linker", config={"kb": kb})
    nlp.add_pipe("tests_page_extras")
    nlp.add_pipe("bioclin_deid")
    return nlp


@contextmanager
def checked(page: "Page", url: str, expected: tuple[str, ...] = ()) -> "Iterator[Page]":
    """Load the page. At the end of the block, no request has left its origin, and nothing has
    failed.

    expected (tuple[str, ...]): Parts of messages on the console that are no failure.
    """
    requests: list[str] = []
    messages: list[str] = []
    listeners: dict[Any, Any] = {
        "request": lambda request: requests.append(request.url),
        "console": lambda message: messages.append(message.text),
        "pageerror": lambda error: messages.append(str(error)),
    }
    for event, listener in listeners.items():
        page.on(event, listener)
    page.goto(url)
    yield page
    assert [each for each in requests if not each.startswith((url, "blob:"))] == []
    left = [text for text in messages if not any(part in text for part in expected)]
    assert left == []
    stores = "[localStorage.length, sessionStorage.length, document.cookie]"
    assert page.evaluate(stores) == [0, 0, ""]
    for event, listener in listeners.items():
        page.remove_listener(event, listener)


@contextmanager
def opened(
    browser: "Browser", url: str, *, expected: tuple[str, ...] = (), **options: Any
) -> "Iterator[Page]":
    """Open the page in a context of its own; see `checked`.

    options: Of the context: "locale", "color_scheme", "viewport" and others.
    """
    context = browser.new_context(**{**OPTIONS, **options})
    try:
        with checked(context.new_page(), url, expected) as page:
            yield page
    finally:
        context.close()


def annotate(page: "Page", text: str = NOTE) -> None:
    """Write a note, and wait until everything is shown."""
    page.click("#tab-write")
    page.fill("#text", text)
    page.click("#annotate")
    page.wait_for_selector("#workspace[aria-busy=false]")


def text_of(page: "Page", selector: str) -> str:
    """Give the text of an element, shown or not."""
    return page.text_content(selector) or ""


def list_marks(page: "Page", within: str = "#note") -> list[list[str]]:
    """List the marks of a note: their text, and the label after it."""
    found: list[list[str]] = page.eval_on_selector_all(
        f"{within} .mark",
        "marks => marks.map((mark) => [mark.textContent, mark.dataset.label ?? ''])",
    )
    return found
