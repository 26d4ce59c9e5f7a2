"""Notebooks as pages: their text, code and outputs."""

import re
from html import escape
from pathlib import Path
from typing import Any

import nbformat

TERMINAL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def write_page(path: Path) -> str:
    """Write the page of a notebook; a mark says where each output goes."""
    parts = []
    n_outputs = 0
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        magic, _, rest = cell.source.partition("\n")
        is_shell = magic.startswith("%%bash")
        parts.append(f"```bash\n{rest}\n```" if is_shell else f"```python\n{cell.source}\n```")
        for _ in cell.outputs:
            parts.append(f'<div data-notebook="{n_outputs}"></div>')
            n_outputs += 1
    title, _, text = parts[0].partition("\n")
    # Not in Markdown, where the link would lead to this page.
    link = f'<a href="{path.name}" download>Download this notebook</a>'
    return "\n\n".join([title, link, text, *parts[1:]])


def list_outputs(path: Path) -> list[str]:
    """Write the outputs of a notebook as HTML, in order."""
    cells = nbformat.read(path, as_version=4).cells
    return [
        f'<div class="notebook-output">{write_output(output)}</div>'
        for cell in cells
        if cell.cell_type == "code"
        for output in cell.outputs
    ]


def write_output(output: Any) -> str:
    """Write an output: HTML and pictures as they are, other text escaped."""
    if output.output_type == "stream":
        return _write_text(output.text)
    data = output.data
    if "text/html" in data:
        return str(data["text/html"])
    if "image/png" in data:
        return f'<img alt="" src="data:image/png;base64,{data["image/png"]}">'
    return _write_text(data.get("text/plain", ""))


def _write_text(text: str) -> str:
    lines = [line.rstrip() for line in TERMINAL.sub("", text).splitlines()]
    return f"<pre>{escape(chr(10).join(lines).strip(chr(10)))}</pre>"
