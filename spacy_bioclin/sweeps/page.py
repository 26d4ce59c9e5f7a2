"""One self-contained HTML page about a sweep: no script, no font, nothing from outside."""

from collections.abc import Sequence
from pathlib import Path

from ..pages import render_template
from .tables import OURS, Table

TEMPLATE = Path(__file__).with_name("page.html.jinja")


def render_page(
    title: str, facts: Sequence[tuple[str, str]], pictures: Sequence[str], tables: Sequence[Table]
) -> str:
    """Write the page.

    facts (Sequence[tuple[str, str]]): What was run, and when: name and value.
    pictures (Sequence[str]): SVG, put into the page as it is.
    tables (Sequence[Table]): Their text is escaped.
    RETURNS (str): HTML.
    """
    return render_template(
        TEMPLATE, title=title, facts=facts, pictures=pictures, tables=tables, ours=OURS
    )
