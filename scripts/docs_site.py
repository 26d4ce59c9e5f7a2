"""Hooks of mkdocs: the pages of the site that are made from the code and the repository.

mkdocs.yml names this file. `mkdocs build --strict` makes the site without a network:

- `reference/` is made from the commands, the registered names and the docstrings;
- `notebooks/NAME.md` is made from docs/notebooks/NAME.ipynb with its outputs;
- `repository/` has what the pages link to outside of docs/, so that the same links work here and
  on a site that hosts the code.
"""

import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from scripts.docs import api, commands, notebooks
from scripts.docs.links import DOCS, find_outside, find_uri, rewrite_links

NOTEBOOKS = DOCS / "notebooks"
OUTPUT = re.compile(r'<div data-notebook="(\d+)"></div>')


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages that are made, and the files that the pages link to."""
    made = {
        "reference/commands.md": commands.write_page(),
        "reference/python.md": api.write_names(),
        "reference/registered.md": api.write_registered(),
    }
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        made[f"notebooks/{path.stem}.md"] = notebooks.write_page(path)
    for uri, content in made.items():
        files.append(File.generated(config, uri, content=content))
    for path in find_outside():
        uri = find_uri(path)
        if path.suffix == ".md":
            file = File.generated(config, uri, content=path.read_text("utf-8"))
            file.inclusion = InclusionLevel.NOT_IN_NAV
        else:
            file = File.generated(config, uri, abs_src_path=str(path))
        files.append(file)
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn the links between files of the repository into links between pages of the site."""
    return rewrite_links(markdown, page.file.src_uri)


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put the outputs of a notebook where its page says so."""
    path = NOTEBOOKS / f"{Path(page.file.src_uri).stem}.ipynb"
    if not page.file.src_uri.startswith("notebooks/") or not path.exists():
        return html
    outputs = notebooks.list_outputs(path)
    return OUTPUT.sub(lambda match: outputs[int(match[1])], html)
