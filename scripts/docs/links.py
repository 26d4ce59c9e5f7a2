"""Links between files of the repository, and where they lead in the site."""

import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
OUTSIDE = "repository"  # the folder of the site with what is outside of docs/
TEXT = r"(!?\[(?:[^\[\]]|\[[^\]]*\]|!\[[^\]]*\]\([^)]*\))*\])"
LINK = re.compile(TEXT + r"\(([^)\s]+)\)")
FENCE = re.compile(r"^(```.*?^```)$", re.MULTILINE | re.DOTALL)


def rewrite_links(markdown: str, uri: str) -> str:
    """Turn the links of a page between files into links between pages of the site.

    uri (str): Where the page is in the site. A page that is made from code stays as it is.
    """
    source = find_source(uri)
    if source is None:
        return markdown
    parts = FENCE.split(markdown)
    parts[::2] = [
        LINK.sub(lambda match: rewrite_link(match, source, uri), part) for part in parts[::2]
    ]
    return "".join(parts)


def find_source(uri: str) -> Path | None:
    """Find the file of the repository of a page; None if the page is made from code."""
    path = ROOT / uri.removeprefix(f"{OUTSIDE}/") if uri.startswith(f"{OUTSIDE}/") else DOCS / uri
    if path.exists():
        return path
    notebook = path.with_suffix(".ipynb")
    return notebook if notebook.exists() else None


def find_target(source: Path, target: str) -> Path | None:
    """Find the file that a link leads to; None for an address, an anchor or a missing file."""
    path, _, _ = target.partition("#")
    if not path or re.match(r"[a-z]+:", path):
        return None
    found = Path(os.path.normpath(source.parent / path))
    if found.is_dir() and (found / "README.md").exists():
        found /= "README.md"
    return found if found.exists() and found.is_relative_to(ROOT) else None


def find_uri(path: Path) -> str:
    """Find where a file of the repository is in the site."""
    if not path.is_relative_to(DOCS):
        return f"{OUTSIDE}/{path.relative_to(ROOT).as_posix()}"
    uri = path.relative_to(DOCS).as_posix()
    return uri.removesuffix(".ipynb") + ".md" if path.suffix == ".ipynb" else uri


def rewrite_link(match: re.Match[str], source: Path, uri: str) -> str:
    """Rewrite a link of Markdown; what leads to a folder becomes plain text."""
    text, target = match[1], match[2]
    text = LINK.sub(lambda inner: rewrite_link(inner, source, uri), text)  # a picture in a link
    path = find_target(source, target)
    if path is None:
        return f"{text}({target})"
    if path.is_dir():
        return text[1:-1]
    there = find_uri(path)
    _, mark, anchor = target.partition("#")
    return f"{text}({posixpath.relpath(there, posixpath.dirname(uri) or '.')}{mark}{anchor})"


def find_links(source: Path) -> Iterator[Path]:
    """Find the files of the repository that a page links to."""
    for part in FENCE.split(source.read_text("utf-8"))[::2]:
        for target in re.findall(r"\]\(([^)\s]+)\)", part):
            if (path := find_target(source, target)) is not None:
                yield path


def find_outside() -> tuple[Path, ...]:
    """Find what the pages link to outside of docs/, and what those pages link to in turn."""
    waiting = [*DOCS.glob("*.md"), ROOT / "README.md"]
    known = set(waiting)
    found = {ROOT / "README.md"}
    while waiting:
        for path in find_links(waiting.pop()):
            if path in known or path.is_dir() or path.is_relative_to(DOCS):
                continue
            known.add(path)
            found.add(path)
            if path.suffix == ".md":
                waiting.append(path)
    return tuple(sorted(found))
