"""The site is built without a warning, and can be read and searched as files, without a network."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.markdown import ROOT

pytestmark = pytest.mark.slow
READ = ("index", "run", "notebooks/annotate", "reference/commands", "reference/registered")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site."""
    pytest.importorskip("material", reason="the site is built with mkdocs-material")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def context() -> Iterator[Any]:
    """Chromium without a network."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("the site is looked at with Chromium, which is not installed")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser.new_context(offline=True)
        browser.close()


@pytest.fixture
def page(context: Any) -> Iterator[Any]:
    """A page of Chromium; what it asks for and complains about is noted."""
    page = context.new_page()
    page.complaints = []
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on(
        "request",
        lambda request: (
            request.url.startswith(("file:", "data:")) or page.complaints.append(request.url)
        ),
    )
    page.on("requestfailed", partial(note_failure, page.complaints))
    yield page
    page.close()


def note_failure(complaints: list[str], request: Any) -> None:
    """Note a request that failed, unless the browser had left its page before the answer."""
    if request.failure != "net::ERR_ABORTED":
        complaints.append(request.url)


def test_pages_can_be_read_and_searched(site: Path, page: Any) -> None:
    """Fonts or scripts from a network, or a search that needs a server, would be found here."""
    for name in READ:
        page.goto((site / f"{name}.html").as_uri())
        assert page.locator("h1").count() == 1
    page.keyboard.press("/")
    page.keyboard.type("displacy")
    result = page.locator('.md-search-result__link[href*="/notebooks.html"]').first
    result.wait_for(timeout=120_000)
    result.click()
    page.wait_for_url("**/notebooks.html?h=displacy*")
    assert page.complaints == []


def test_notebooks_show_their_outputs(site: Path, page: Any) -> None:
    page.goto((site / "notebooks" / "annotate.html").as_uri())
    assert page.locator(".notebook-output mark.entity").count() > 10
    assert page.locator(".notebook-output table.dataframe").count() >= 2
    assert page.locator("[data-notebook]").count() == 0
    link = page.get_by_text("Download this notebook").get_attribute("href")
    assert (site / "notebooks" / link).is_file() and link == "annotate.ipynb"
    assert page.complaints == []


def test_axe_finds_nothing(site: Path, page: Any) -> None:
    module = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe")
    for name, scheme in (
        ("index", "light"),
        ("reference/registered", "light"),
        ("run", "dark"),
        ("notebooks/annotate", "dark"),
    ):
        page.emulate_media(color_scheme=scheme)
        page.goto((site / f"{name}.html").as_uri())
        page.add_style_tag(content="* { transition: none !important; }")  # colours change slowly
        only = {"runOnly": ["wcag2a", "wcag2aa"]}
        found = module.Axe().run(page, options=only).response["violations"]
        shown = [(each["id"], node["html"]) for each in found for node in each["nodes"]]
        assert shown == [], name
