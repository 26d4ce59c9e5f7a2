"""One self-contained HTML page about a sweep: no script, no font, nothing from outside."""

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from .tables import OURS, Table

TEMPLATE = "page.html.jinja"


def render_page(
    title: str, facts: Sequence[tuple[str, str]], pictures: Sequence[str], tables: Sequence[Table]
) -> str:
    """Write the page.

    facts (Sequence[tuple[str, str]]): What was run, and when: name and value.
    pictures (Sequence[str]): SVG, put into the page as it is.
    tables (Sequence[Table]): Their text is escaped.
    RETURNS (str): HTML.
    """
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(TEMPLATE).render(
        title=title, facts=facts, pictures=pictures, tables=tables, ours=OURS
    )
