"""Measures of one source tree, without importing it.

- lines: of *.py files below spacy_bioclin, tests and benchmarks. Code lines are those that hold a
  token other than a comment, and are no docstring.
- folders: *.py files in each folder, __init__.py not counted.
- rooms: folders directly below spacy_bioclin. An edge is a room that imports another, a statement
  an `import` or `from … import` of another room, also within a function. Imports of modules that
  lie directly below spacy_bioclin are counted apart, as "ground".
- repeats: maximal runs of six or more equal code lines (stripped; without blank lines, comments,
  docstrings and imports, which are skipped) that are found at two places of spacy_bioclin. "blocks"
  are different texts of such runs, "lines" code lines that belong to one, at all its places.
- docstrings: of modules, and of functions, classes and methods of the top level. A public one has a
  name, and a class's name, that does not begin with "_". It opens with a sentence if its first
  paragraph ends in ".", "?", "!" or ":" and begins neither with RETURNS, YIELDS or RAISES nor with
  an argument ("name (Type): …").
- help: strings given as `help=`, and those of them that begin with "Of".
"""

import ast
import io
import re
import subprocess
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import Result

ROOTS = ("spacy_bioclin", "tests", "benchmarks")
PACKAGE = "spacy_bioclin"
MIN_REPEAT = 6
KEYWORD = re.compile(r"(RETURNS|YIELDS|RAISES)\b")
ARGUMENT = re.compile(r"\*{0,2}\w+(, \*{0,2}\w+)* \([^)]*\): ")
BLANK_TOKENS = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef


class Source:
    """A Python file: its text, syntax tree and code lines."""

    def __init__(self, path: Path, tree: Path) -> None:
        self.name = path.relative_to(tree).as_posix()
        self.text = path.read_text("utf-8")
        self.module = ast.parse(self.text)
        self.lines = self.text.splitlines()
        self.nodes = list(ast.walk(self.module))
        self.code = self._code_lines()

    def _code_lines(self) -> set[int]:
        """Find the numbers of code lines, from 1."""
        found: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type not in BLANK_TOKENS:
                found.update(range(token.start[0], token.end[0] + 1))
        for node in self.nodes:
            if isinstance(node, ast.Module | Definition) and ast.get_docstring(node) is not None:
                found.difference_update(line_range(node.body[0]))
        return found

    def comparable(self) -> list[tuple[int, str]]:
        """List number and stripped text of the code lines other than imports."""
        imports: set[int] = set()
        for node in self.nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                imports.update(line_range(node))
        return [(n, self.lines[n - 1].strip()) for n in sorted(self.code - imports)]


def line_range(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def read_sources(tree: Path, root: str) -> list[Source]:
    return [Source(path, tree) for path in sorted((tree / root).rglob("*.py"))]


def count_lines(sources: list[Source]) -> Result:
    return {
        "files": len(sources),
        "lines": sum(len(source.lines) for source in sources),
        "code_lines": sum(len(source.code) for source in sources),
    }


def count_folders(sources: list[Source]) -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    for source in sources:
        folder, _, name = source.name.rpartition("/")
        found[folder] += name != "__init__.py"
    return dict(sorted(found.items()))


# Imports.


def imported_modules(node: ast.stmt, package: list[str]) -> Iterator[list[str]]:
    """List the dotted names within spacy_bioclin that an import may mean.

    package (list[str]): Package of the file with the import.
    """
    if isinstance(node, ast.Import):
        names = [alias.name.split(".") for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        base = package[: len(package) - node.level + 1] if node.level else []
        base = base + (node.module.split(".") if node.module else [])
        names = [[*base, alias.name] for alias in node.names]
    else:
        names = []
    yield from (name for name in names if name[0] == PACKAGE and len(name) > 1)


def count_imports(tree: Path, sources: list[Source]) -> Result:
    rooms = {path.name for path in (tree / PACKAGE).iterdir() if path.is_dir()}
    edges: dict[str, int] = defaultdict(int)
    statements = ground = 0
    for source in sources:
        package = source.name.split("/")[:-1]
        room = package[1] if len(package) > 1 else ""
        for node in source.nodes:
            if not isinstance(node, ast.stmt):
                continue
            others = {name[1] for name in imported_modules(node, package)} - {room}
            for other in others & rooms if room else ():
                edges[f"{room} -> {other}"] += 1
            statements += bool(room and others & rooms)
            ground += bool(room and others - rooms)
    return {
        "rooms": len(rooms & {source.name.split("/")[1] for source in sources}),
        "edges": len(edges),
        "statements": statements,
        "ground_statements": ground,
        "by_edge": dict(sorted(edges.items())),
    }


# Repeated blocks.


def count_repeats(sources: list[Source]) -> Result:
    files = [source.comparable() for source in sources]
    places: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
    for i, lines in enumerate(files):
        for at in range(len(lines) - MIN_REPEAT + 1):
            places[tuple(text for _, text in lines[at : at + MIN_REPEAT])].append((i, at))
    blocks: dict[tuple[str, ...], set[tuple[int, int]]] = defaultdict(set)
    for found in places.values():
        for n, first in enumerate(found):
            for second in found[n + 1 :]:
                length = common_run(files, first, second)
                if length:
                    (i, at) = first
                    text = tuple(line for _, line in files[i][at : at + length])
                    blocks[text] |= {first, second}
    covered = {
        (i, at + n) for text, found in blocks.items() for i, at in found for n in range(len(text))
    }
    longest = sorted(blocks, key=len, reverse=True)[:5]
    return {
        "blocks": len(blocks),
        "lines": len(covered),
        "longest": [
            {
                "lines": len(text),
                "places": [
                    f"{sources[i].name}:{files[i][at][0]}" for i, at in sorted(blocks[text])
                ],
            }
            for text in longest
        ],
    }


def common_run(
    files: list[list[tuple[int, str]]], first: tuple[int, int], second: tuple[int, int]
) -> int:
    """Measure the run of equal lines that begins at two places.

    RETURNS (int): Its length; 0 if it is too short or begins before these places. Two runs in one
        file do not overlap.
    """
    (i, a), (j, b) = first, second
    one, other = files[i], files[j]
    if a and b and one[a - 1][1] == other[b - 1][1]:
        return 0
    length = 0
    while a + length < len(one) and b + length < len(other):
        if one[a + length][1] != other[b + length][1] or (i == j and a + length == b):
            break
        length += 1
    return length if length >= MIN_REPEAT else 0


# Docstrings and help texts.


def documented(source: Source) -> Iterator[tuple[bool, str | None]]:
    """Walk over module, functions, classes and methods: whether it is public, its docstring."""
    yield True, ast.get_docstring(source.module)
    nodes = [(True, node) for node in source.module.body]
    while nodes:
        public, node = nodes.pop()
        if not isinstance(node, Definition):
            continue
        public = public and not node.name.startswith("_")
        yield public, ast.get_docstring(node)
        if isinstance(node, ast.ClassDef):
            nodes += [(public, inner) for inner in node.body]


def opening(docstring: str | None) -> str:
    """Classify how a docstring opens: "none", "keyword", "argument", "sentence" or "other"."""
    if not docstring:
        return "none"
    if KEYWORD.match(docstring):
        return "keyword"
    if ARGUMENT.match(docstring):
        return "argument"
    paragraph = re.split(r"\n\s*\n", docstring)[0].rstrip()
    return "sentence" if paragraph.endswith((".", "?", "!", ":")) else "other"


def count_docstrings(sources: list[Source]) -> Result:
    found = {
        name: dict.fromkeys(("sentence", "keyword", "argument", "other", "none"), 0)
        for name in ("public", "private")
    }
    for source in sources:
        for public, docstring in documented(source):
            found["public" if public else "private"][opening(docstring)] += 1
    return found


def count_help(sources: list[Source]) -> Result:
    texts = [
        keyword.value.value
        for source in sources
        for node in source.nodes
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "help" and isinstance(keyword.value, ast.Constant)
    ]
    return {"texts": len(texts), "begin_with_of": sum(text.startswith("Of ") for text in texts)}


# Sizes.


def find_largest(sources: list[Source]) -> Result:
    file = max(sources, key=lambda source: len(source.lines))
    functions = [
        (len(line_range(node)), f"{source.name}:{node.name}")
        for source in sources
        for node in source.nodes
        if isinstance(node, Function)
    ]
    lines, name = max(functions)
    return {
        "file": {"name": file.name, "lines": len(file.lines)},
        "function": {"name": name, "lines": lines},
        "files_over_300": sum(len(source.lines) > 300 for source in sources),
        "functions_over_60": sum(length > 60 for length, _ in functions),
    }


def count_text(tree: Path) -> Result:
    pages = sorted((tree / "docs").rglob("*.md"))
    return {
        "readme_lines": len((tree / "README.md").read_text("utf-8").splitlines()),
        "docs_pages": len(pages),
        "docs_lines": sum(len(page.read_text("utf-8").splitlines()) for page in pages),
    }


def measure_tree(tree: Path) -> Result:
    sources = {root: read_sources(tree, root) for root in ROOTS}
    package = sources[PACKAGE]
    folders = count_folders([source for found in sources.values() for source in found])
    commit = ["git", "-C", str(tree), "describe", "--always", "--dirty"]
    largest = {}
    for root in ROOTS:
        own = {name: n for name, n in folders.items() if name.split("/")[0] == root}
        name = max(own, key=lambda folder: own[folder])
        largest[root] = {"name": name, "files": own[name]}
    return {
        "commit": subprocess.run(commit, capture_output=True, text=True).stdout.strip(),
        "lines": {root: count_lines(found) for root, found in sources.items()},
        "folders": folders,
        "largest_folder": largest,
        "imports": count_imports(tree, package),
        "repeats": count_repeats(package),
        "docstrings": count_docstrings(package),
        "help": count_help(package),
        "largest": {root: find_largest(found) for root, found in sources.items()},
        **count_text(tree),
    }
