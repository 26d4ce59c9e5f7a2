"""Chromium and a service of the small pipeline, started once for the tests of this folder."""

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.serving.page.fixtures import OPTIONS, checked, make_nlp

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page
    from spacy.language import Language

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def page_nlp(tmp_path_factory: pytest.TempPathFactory) -> "Language":
    """The small pipeline."""
    from spacy_bioclin.linking.kb.build import build_kb
    from spacy_bioclin.linking.kb.concepts import Concept

    concepts = (
        Concept("C1", "neumonía", "es", definition="Inflamación <b>del</b> pulmón."),
        Concept("C2", "fiebre", "es"),
    )
    return make_nlp(str(build_kb(concepts, tmp_path_factory.mktemp("page") / "kb", meta={}).path))


@pytest.fixture(scope="package")
def page_url(page_nlp: "Language") -> Iterator[str]:
    """The address of a service of the small pipeline."""
    from tests.serving.util import running

    with running(page_nlp) as service:
        yield f"{service.url}/"


@pytest.fixture(scope="package")
def browser() -> "Iterator[Browser]":
    """Chromium. It ends before tests of other folders, which cannot use asyncio beside it."""
    api = pytest.importorskip("playwright.sync_api", reason="the page is tested with playwright")
    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if program is None:
        pytest.skip("the page is tested in Chromium, which is not installed")
    with api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        found.new_page().close()
        yield found
        found.close()


@pytest.fixture(scope="package")
def window(browser: "Browser") -> "Iterator[Page]":
    """A window for the tests that need nothing else of the browser; they load the page anew."""
    context = browser.new_context(**OPTIONS)
    yield context.new_page()
    context.close()


@pytest.fixture
def page(window: "Page", page_url: str) -> "Iterator[Page]":
    """The page, loaded in English."""
    window.mouse.move(5, 5)
    with checked(window, page_url) as found:
        yield found
