"""The package writes through spacy_bioclin/outputs alone, or inside what that has made."""

import ast
from collections.abc import Iterator
from functools import cache

from tests.hostile.code import parse_files

# Methods of paths, pipelines and models that change the disk, and functions of libraries that do.
METHODS = {
    *("write_text", "write_bytes", "mkdir", "touch", "rename", "unlink", "rmdir", "chmod"),
    *("symlink_to", "hardlink_to", "truncate", "tofile", "extract", "extractall"),
    *("to_disk", "save_pretrained", "save_file", "savefig", "write_index"),
}
FUNCTIONS = {
    "os": {"mkdir", "makedirs", "rename", "replace", "remove", "unlink", "link", "symlink"},
    "shutil": {"copy", "copy2", "copyfile", "copyfileobj", "copytree", "move", "rmtree"},
    "tempfile": {"mkstemp", "mkdtemp", "NamedTemporaryFile", "TemporaryDirectory"},
    "np": {"save", "savez", "savez_compressed", "savetxt"},
    "torch": {"save"},
    "json": {"dump"},
    "pickle": {"dump"},
    "srsly": {"write_json", "write_jsonl", "write_yaml", "write_msgpack"},
}
# What fills a folder or file that outputs has made, or that a locked run grows; or is hidden in a
# temporary folder of the system and holds no text of notes.
FILLS_AN_OUTPUT = {
    "cli.deid.calibrate.main",
    "cli.link.train_linker.main",
    "cli.link.train_linker.write_concepts",
    "cli.pretrain.learn_vocabulary.main",
    "corpora.docbin.write_docs",
    "corpora.export.write_corpus",
    "linking.dense.embed",
    "linking.dense.graph.write_graph",
    "linking.kb.knowledge_base.write",
    "linking.readers.releases.find.unpack",
    "packaging.build",
    "pretraining.architecture.write_encoder",
    "pretraining.trainer.save_encoder",
    "runner.notes.tables",
    "runner.notes.targets.join",
    "runner.parquet.join",
    "runner.records.join",
    "runner.records.write_parts",
    "runner.standards.targets.join",
    "runner.work",
    "training.loop",
    "training.state",
}
GROWS_A_FOLDER = {
    "encoders.hub",
    "ner.distill.teacher.write_corpus",
    "pretraining.blocks.prepare_blocks",
    "sweeps",
}
# spaCy calls these for a folder that whoever saves the pipeline has made.
PARTS_OF_A_PIPELINE = {
    "context.rules.component.to_disk",
    "context.sections.component.to_disk",
    "deid.calibration.to_disk",
    "linking.bundle",
    "linking.component.to_disk",
    "linking.entity_linker.knowledge_base",
    "vocab.save_pipeline",
}
TEMPORARY = {"encoders.files", "encoders.loading", "packaging.check", "packaging.probe"}
# The room below outputs, which removes what a signal finds half made.
BELOW = {"interrupts"}
NOT_WRITING = {"deid.component.__call__"}  # a method of its own is called touch
ALLOWED = FILLS_AN_OUTPUT | GROWS_A_FOLDER | PARTS_OF_A_PIPELINE | TEMPORARY | BELOW | NOT_WRITING


def find_writes(tree: ast.AST, name: str) -> Iterator[tuple[str, int, str]]:
    """Find what may change the disk: function, line, call."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from find_writes(node, f"{name}.{node.name}")
            continue
        if isinstance(node, ast.Call) and (call := name_write(node)):
            yield name, node.lineno, call
        yield from find_writes(node, name)


def name_write(node: ast.Call) -> str:
    """Name a call that may change the disk, or ""."""
    called = node.func
    if isinstance(called, ast.Name):
        return "open for writing" if called.id == "open" and _is_for_writing(node, 1) else ""
    if not isinstance(called, ast.Attribute):
        return ""
    owner = called.value.id if isinstance(called.value, ast.Name) else ""
    if called.attr in METHODS or called.attr in FUNCTIONS.get(owner, ()):
        return called.attr
    if called.attr == "open":
        at = 1 if owner in ("io", "lzma", "gzip", "bz2", "tarfile", "codecs") else 0
        return "open for writing" if _is_for_writing(node, at) else ""
    # str.replace has two arguments.
    return "replace" if called.attr == "replace" and len(node.args) == 1 else ""


def _is_for_writing(node: ast.Call, at: int) -> bool:
    modes = [*node.args[at : at + 1], *(k.value for k in node.keywords if k.arg == "mode")]
    return any(
        isinstance(mode, ast.Constant)
        and isinstance(mode.value, str)
        and set(mode.value) <= set("rwax+bt")
        and set(mode.value) & set("wax+")
        for mode in modes
    )


@cache
def all_writes() -> list[tuple[str, int, str]]:
    found = []
    words = [f"{word}(" for word in METHODS.union(*FUNCTIONS.values(), ["open"])]
    # A string's has a comma: nearly every file has one.
    for path, tree in parse_files("spacy_bioclin", words, r"\.replace\([^,]*?\)"):
        parts = path.with_suffix("").parts[1:]
        if parts[0] != "outputs":
            found += find_writes(tree, ".".join(parts))
    return found


def belongs(name: str, place: str) -> bool:
    return name == place or name.startswith(f"{place}.")


def test_writes_go_through_outputs() -> None:
    stray = [
        f"{name}, line {line}: {call}"
        for name, line, call in all_writes()
        if not any(belongs(name, place) for place in ALLOWED)
    ]
    assert stray == [], "write through spacy_bioclin/outputs, or say here what the folder is"


def test_no_place_is_allowed_for_nothing() -> None:
    names = {name for name, _, _ in all_writes()}
    assert [p for p in sorted(ALLOWED) if not any(belongs(name, p) for name in names)] == []


def test_a_write_is_found() -> None:
    statements = [
        "open(path, 'w')",
        "path.open(mode='ab')",
        "lzma.open(path, 'w')",
        "path.write_text('x')",
        "Path('x').replace(other)",
        "shutil.rmtree(path)",
        "nlp.to_disk(path)",
        "np.save(path, array)",
    ]
    for statement in statements:
        code = f"def save(path):\n    if path:\n        {statement}\n"
        assert [name for name, _, _ in find_writes(ast.parse(code), "m")] == ["m.save"], statement
    assert not list(find_writes(ast.parse("open(p); p.open('rb'); s.replace('a', 'b')"), "m"))
