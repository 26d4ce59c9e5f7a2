"""Open the page of a service in Chromium: first paint, time to the result of a note of 5 kB,
requests that leave the origin, violations that axe-core finds; pictures for the docs."""

import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.harness import ROOT, Result, make_parser, report, thread_environment

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

IMAGES = ROOT / "docs" / "images"
WINDOW = {"width": 1280, "height": 860}
TELEPHONE = {"width": 390, "height": 844}
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
SHOW = """() => new Promise((resolve) => {
    const tab = document.getElementById("tab-found");
    const begun = performance.now();
    const tell = () => resolve(performance.now() - begun);
    new MutationObserver((_, observer) => {
        observer.disconnect();
        requestAnimationFrame(() => requestAnimationFrame(tell)); // it was painted
    }).observe(tab, { attributes: true, attributeFilter: ["aria-selected"] });
    document.getElementById("annotate").click();
})"""
ASK = """async (text) => {
    const begun = performance.now();
    const options = { method: "POST", headers: { "Content-Type": "application/json" } };
    await (await fetch("annotate", { ...options, body: JSON.stringify({ text }) })).json();
    return performance.now() - begun;
}"""


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--pipeline", default="es_bioclin_sm", help="pipeline to serve")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pictures", action="store_true", help="write docs/images/page-*.png too")
    parser.add_argument(
        "--dry-run", action="store_true", help="print the result, and do not keep it"
    )
    args = parser.parse_args()
    with serve(args.pipeline, args.threads) as url, launch() as browser:
        result = {
            "pipeline": args.pipeline,
            "rounds": args.rounds,
            "threads": args.threads,
            "chromium": browser.version,
            **measure_times(browser, url, args.rounds),
            "violations": find_violations(browser, url),
        }
        if args.pictures:
            result["pictures"] = take_pictures(browser, url)
    if args.dry_run:
        print(json.dumps(result, indent=2))
    else:
        report("page", result)


@contextmanager
def serve(pipeline: str, n_threads: int) -> Iterator[str]:
    """Serve a pipeline on a free port.

    YIELDS (str): The address of its page.
    """
    command = [sys.executable, "-m", "spacy_bioclin", "serve", pipeline, "--port", "0"]
    environment = {**thread_environment(n_threads), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()  # "es_bioclin_sm 0.3.0 at http://127.0.0.1:8000 (Ctrl-C…"
        try:
            yield f"{line.partition(' at ')[2].split()[0]}/"
        finally:
            process.terminate()


@contextmanager
def launch() -> "Iterator[Browser]":
    """Start Chromium.

    RAISES (SystemExit): It is not installed.
    """
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if program is None:
        sys.exit("Chromium is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(browser: "Browser", url: str, **options: Any) -> "Iterator[Page]":
    """Open the page in a context of its own, so that nothing is in its cache."""
    context = browser.new_context(**{"locale": "en-US", "viewport": WINDOW, **options})
    page = context.new_page()
    page.goto(url)
    page.wait_for_function("() => document.getElementById('pipeline').textContent.trim()")
    yield page
    context.close()


def measure_times(browser: "Browser", url: str, rounds: int) -> Result:
    """Measure paint and result in milliseconds; count the requests that leave the origin."""
    requests: list[str] = []
    paints, results, answers = [], [], []
    for _ in range(rounds):
        with opened(browser, url) as page:
            page.on("request", lambda request: requests.append(request.url))
            paints.append(page.evaluate(FIRST_PAINT))
            page.click("#example")
            example = page.input_value("#text")
            note = (example * (5_000 // len(example.encode()) + 1)).encode()[:5_000].decode()
            page.fill("#text", note)
            answers.append(page.evaluate(ASK, note))
            results.append(page.evaluate(SHOW))
            page.wait_for_selector("#workspace[aria-busy=false]")
    return {
        "first_paint_ms": describe(paints),
        "note_bytes": len(note.encode()),
        "answer_ms": describe(answers),  # of the service alone, without the page
        "result_ms": describe(results),
        "requests": len(requests),
        "requests_that_left": sum(not each.startswith(url) for each in requests),
    }


def describe(values: list[float]) -> Result:
    """Give median, least and greatest."""
    return {
        "median": round(statistics.median(values), 1),
        "min": round(min(values), 1),
        "max": round(max(values), 1),
    }


def show_example(page: "Page") -> None:
    """Annotate the invented note."""
    page.click("#example")
    page.click("#annotate")
    page.wait_for_selector("#workspace[aria-busy=false] #note .mark", state="attached")


def find_violations(browser: "Browser", url: str) -> Result:
    """Count what axe-core finds in each view, light and dark."""
    from axe_playwright_python.sync_playwright import Axe

    found = {}
    for theme in ("light", "dark"):
        with opened(browser, url, color_scheme=theme) as page:
            found[f"{theme}, note"] = len(Axe().run(page).response["violations"])
            show_example(page)
            page.hover("#note .mark >> nth=1")
            found[f"{theme}, findings"] = len(Axe().run(page).response["violations"])
            page.click("#tab-safe")
            page.focus("#safe-note [role=button]")
            found[f"{theme}, de-identified"] = len(Axe().run(page).response["violations"])
    return found


def take_pictures(browser: "Browser", url: str) -> Result:
    """Write the pictures of the docs.

    RETURNS (Result): Name -> bytes.
    """
    IMAGES.mkdir(exist_ok=True)
    for theme in ("light", "dark"):
        with opened(browser, url, color_scheme=theme) as page:
            show_example(page)
            page.hover("#note .mark >> nth=2")
            page.screenshot(path=IMAGES / f"page-{theme}.png")
            if theme == "light":
                page.click("#tab-safe")
                page.hover("#safe-note .row > :last-child .mark >> nth=0")
                page.screenshot(path=IMAGES / "page-deidentified.png")
    with opened(browser, url, viewport=TELEPHONE, locale="es-ES", color_scheme="dark") as page:
        show_example(page)
        page.evaluate("scrollTo(0, 120)")
        page.screenshot(path=IMAGES / "page-telephone.png")
    return {path.name: path.stat().st_size for path in sorted(Path(IMAGES).glob("page-*.png"))}


if __name__ == "__main__":
    main()
