"""The house of the design: imports go down, never sideways, never in a circle; files stay small."""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "spacy_bioclin"
FLOORS = (
    ("about", "errors", "types", "interrupts"),
    ("text", "files", "rewrite"),
    ("notices",),
    (
        "settings",
        "parallel",
        "pages",
        "annotations",
        "spans",
        "vocab",
        "dates",
        "machine",
        "outputs",
        "torch_bridge",
    ),
    ("catalog", "corpora", "tokenization", "evaluation", "runs"),
    ("encoders", "training", "deid", "context"),
    ("ner", "relations", "pairs", "linking"),
    ("pretraining", "packaging", "runner", "suggestions"),
    ("sweeps", "serving", "notebook"),
    ("cli",),
    ("__main__",),
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
MAX_MODULE_LINES = 400  # aim: 300
MAX_FUNCTION_LINES = 80  # aim: 60
MAX_MODULES = 15  # of a folder, beside its __init__

Graph = dict[str, dict[str, int]]  # module -> imported module of the package -> line


def module_name(path: Path, package: Path) -> str:
    """ "ner.model" for spacy_bioclin/ner/model.py, "ner" for its __init__, "" for the package's."""
    parts = path.relative_to(package).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imported(node: ast.stmt, package: str, inside: str) -> Iterator[str]:
    """Names, below the package, that an import statement of a file in folder `inside` may mean."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            folder = [package, *filter(None, inside.split("."))]
            base = ".".join([*folder[: len(folder) - node.level + 1], *filter(None, [base])])
        names = [f"{base}.{alias.name}" for alias in node.names]
    else:
        return
    yield from (
        name.removeprefix(f"{package}.") for name in names if name.startswith(f"{package}.")
    )


@cache
def parse(path: Path) -> list[ast.AST]:
    """Every node of a module."""
    return list(ast.walk(ast.parse(path.read_text("utf-8"))))


@cache
def import_graph(package: Path) -> Graph:
    """Every import of one module by another, those inside functions too."""
    paths = {module_name(path, package): path for path in package.rglob("*.py")}
    graph: Graph = {name: {} for name in paths}
    for name, path in paths.items():
        inside = name if path.stem == "__init__" else name.rpartition(".")[0]
        for node in parse(path):
            if not isinstance(node, ast.stmt):
                continue
            for target in imported(node, package.name, inside):
                # "room.module.thing" is the module that defines the thing.
                module = target if target in paths else target.rpartition(".")[0]
                if module and module != name:
                    graph[name].setdefault(module, node.lineno)
    return graph


# Imports that still go up; each goes when its part moves down.
PENDING = {}


def breaches(graph: Graph) -> list[str]:
    found = []
    for name, targets in graph.items():
        room = name.split(".")[0]
        for target, line in targets.items():
            other = target.split(".")[0]
            if (name, target) in PENDING:
                continue
            if name and other != room and FLOOR[other] >= FLOOR[room]:
                found.append(
                    f"{name}, line {line}: imports {target} "
                    f"(floor {FLOOR[other]}) from floor {FLOOR[room]}"
                )
    return found


def circle(graph: Graph) -> list[str]:
    """One circle of modules that import each other, or []."""
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name not in done:
            for target in graph.get(name, {}):
                if found := visit(target, [*path, name]):
                    return found
            done.add(name)
        return []

    return next((found for name in graph if (found := visit(name, []))), [])


def test_every_room_stands_on_a_floor() -> None:
    rooms = {name.split(".")[0] for name in import_graph(PACKAGE)} - {""}
    assert rooms <= set(FLOOR), "give the new room a floor in this file and in DESIGN.md"


def test_imports_go_down() -> None:
    assert breaches(import_graph(PACKAGE)) == []


def test_no_imports_in_a_circle() -> None:
    assert circle(import_graph(PACKAGE)) == []


def test_modules_are_small() -> None:
    lines = {
        str(path.relative_to(PACKAGE)): len(path.read_text("utf-8").splitlines())
        for path in PACKAGE.rglob("*.py")
    }
    assert {name: n for name, n in lines.items() if n > MAX_MODULE_LINES} == {}


def test_functions_are_small() -> None:
    lines = {
        f"{path.relative_to(PACKAGE)}:{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in PACKAGE.rglob("*.py")
        for node in parse(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: n for name, n in lines.items() if n > MAX_FUNCTION_LINES} == {}


def test_folders_are_small() -> None:
    modules = Counter(
        path.parent.relative_to(ROOT).as_posix()
        for folder in ("spacy_bioclin", "tests", "benchmarks", "scripts")
        for path in (ROOT / folder).rglob("*.py")
        if path.name != "__init__.py"
    )
    assert {name: n for name, n in modules.items() if n > MAX_MODULES} == {}


def test_benchmarks_do_not_import_in_a_circle() -> None:
    assert circle(import_graph(ROOT / "benchmarks")) == []


def test_breaches_and_circles_are_found(tmp_path: Path) -> None:
    package = tmp_path / "house"
    for file in ("__init__", "ner/__init__", "ner/model", "encoders/__init__", "cli/__init__"):
        (package / file).parent.mkdir(parents=True, exist_ok=True)
        (package / f"{file}.py").write_text("", "utf-8")
    (package / "corpora").mkdir()
    statements = {
        "from ..ner.model import build": "ner.model",
        "from ..ner import model": "ner.model",
        "from .. import ner": "ner",
        "import house.ner.model": "ner.model",
        "from ..encoders import thing": "encoders",
        "def f():\n    from ..cli import app": "cli",
    }
    for number, statement in enumerate(statements):
        path = package / "corpora" / f"reader{number}.py"
        path.write_text(f"from . import x\n{statement}\n", "utf-8")
    graph = import_graph(package)
    found = breaches(graph)
    for number, target in enumerate(statements.values()):
        name = f"corpora.reader{number}"
        assert any(one.startswith(name) and f"imports {target} " in one for one in found), name
    assert circle({"a": {"b": 1}, "b": {"c": 1}, "c": {"b": 2}}) == ["b", "c", "b"]
