"""Damaged knowledge bases: each opens with one line of error, or links as before; none crashes."""

import json
import os
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.kb import storage
from spacy_bioclin.linking.kb.build import build_kb
from spacy_bioclin.linking.kb.checks import RULES
from spacy_bioclin.linking.kb.concepts import Alias, Concept
from spacy_bioclin.linking.kb.knowledge_base import KnowledgeBase
from spacy_bioclin.linking.kb.storage import ARRAYS

WORDS = ["acute", "chronic", "renal", "hepatic", "failure", "infection", "left", "lower", "limb"]
MENTIONS = ("acute renal infection", "Hepatic failure", "lower limb fracture", "nothing")


def make_concepts(n):
    rng = np.random.default_rng(0)
    for i in range(n):
        names = [" ".join([*rng.choice(WORDS, 3), f"w{i % 97}"]) for _ in range(3)]
        aliases = tuple(Alias(name, "es") for name in names[1:])
        parents = (f"C{i // 2}",) if i else ()
        yield Concept(
            *(f"C{i}", names[0], "en", aliases, (f"T{i % 7}", "T9"), f"Definition {i}.", parents),
            *((f"ICD:{i}",), (f"OLD{i}",)),
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A knowledge base whose arrays count as large: they are mapped, and without sample hashes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage, "MIN_MAPPED", 64)
        patch.setattr(storage, "PIECE_BYTES", 1)
        path = tmp_path_factory.mktemp("hostile") / "kb"
        build_kb(make_concepts(60), path, meta={"name": "hostile"})
    meta = json.loads((path / "meta.json").read_text("utf-8"))
    (path / "meta.json").write_text(json.dumps({**meta, "samples": {}}), "utf-8")
    return path


def save(path, array):
    np.save(path.with_suffix(".tmp.npy"), array, allow_pickle=True)
    path.with_suffix(".tmp.npy").replace(path)


def number(path, change):
    array = np.load(path)
    if not array.size:
        return
    array[len(array) // 2] = change(array)
    save(path, array)


def biggest(array):
    return "\U0010ffff" * 3 if array.dtype.kind == "U" else _limits(array).max


def smallest(array):
    return "" if array.dtype.kind == "U" else _limits(array).min


def _limits(array):
    return (np.finfo if array.dtype.kind == "f" else np.iinfo)(array.dtype)


def other_content(path, make):
    array = np.load(path)
    save(path, make(array.nbytes).view(array.dtype)[: len(array)])


def random_bytes(n):
    # A trigram holds code points, of which many are not valid.
    return np.random.default_rng(0).integers(0, 256, n, np.uint8)


DAMAGE = {
    "truncated": lambda path: os.truncate(path, path.stat().st_size - 1),
    "header alone": lambda path: os.truncate(path, 128),
    "empty": lambda path: path.write_bytes(b""),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\0" * 8),
    "zeros": lambda path: other_content(path, lambda n: np.zeros(n, np.uint8)),
    "max": lambda path: other_content(path, lambda n: np.full(n, 255, np.uint8)),
    "max signed": lambda path: other_content(
        path, lambda n: np.resize(np.array([255, 255, 255, 127], np.uint8), n)
    ),
    "random bytes": lambda path: other_content(path, random_bytes),
    "one maximum": lambda path: number(path, biggest),
    "one minimum": lambda path: number(path, smallest),
    "one not a number": lambda path: number(
        path, lambda a: np.nan if a.dtype.kind == "f" else biggest(a)
    ),
    "reversed": lambda path: save(path, np.load(path)[::-1].copy()),
    "wrong dtype": lambda path: save(path, np.zeros(len(np.load(path)), np.complex64)),
    "wrong byte order": lambda path: save(
        path, (a := np.load(path)).astype(a.dtype.newbyteorder())
    ),
    "wrong shape": lambda path: save(path, np.load(path).reshape(-1, 1)),
    "one longer": lambda path: save(path, np.append(np.load(path), np.load(path)[-1:])),
    "objects": lambda path: save(path, np.array([print, {}], dtype=object)),
    "another array": lambda path: shutil.copyfile(
        path.with_name("ids.npy" if path.stem == "names" else "names.npy"), path
    ),
    "zero device": lambda path: (path.unlink(), path.symlink_to("/dev/zero")),
    "pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "folder": lambda path: (path.unlink(), path.mkdir()),
    "link to nothing": lambda path: (path.unlink(), path.symlink_to("nowhere")),
    "text": lambda path: path.write_text("not an array"),
}
# What the process prints for each damaged copy: the links, or the error.
LINK = """
import json, sys
from pathlib import Path
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.candidates import CandidateGenerator
from spacy_bioclin.linking.kb import storage
from spacy_bioclin.linking.kb.combine import compare_kbs
from spacy_bioclin.linking.kb.knowledge_base import KnowledgeBase
from spacy_bioclin.linking.kb.search import find_concepts
from spacy_bioclin.linking.linker import Linker, Mention
from spacy_bioclin.linking.ranking import Ranker

storage.MIN_MAPPED = 64
mentions = [Mention(text) for text in sys.argv[1].split("|")]
for line in sys.stdin:
    print(line.strip(), flush=True)
    try:
        kb = KnowledgeBase.open(line.strip())
        generator = CandidateGenerator(kb, n_candidates=8, lang="es")
        settings = {"lang": "es", "types": {"": ["T9"]}, "n_shown": 3, "threshold": 0.0}
        seen = list(map(repr, Linker(generator, Ranker.untrained(), **settings)(mentions)))
        seen += map(repr, find_concepts(kb, "acute failure", 3))
        seen += [repr([concept for concept in kb]), repr(kb.names_by_language())]
        seen += [repr(compare_kbs(kb, kb)), repr(kb.concept("OLD7")), repr(len(kb.to_bytes()))]
        print(json.dumps({"links": seen}), flush=True)
    except BioclinError as error:
        print(json.dumps({"error": str(error)}), flush=True)
"""


def see_all(folders):
    """Use each knowledge base, in a new process after a crash.

    RETURNS (dict): Folder -> what it said; a folder is missing if the process crashed.
    """
    seen, left = {}, [str(folder) for folder in folders]
    while left:
        done = subprocess.run(
            [sys.executable, "-c", LINK, "|".join(MENTIONS)],
            input="\n".join(left),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        lines = done.stdout.splitlines()
        for place, answer in zip(lines[::2], lines[1::2], strict=False):
            seen[place] = json.loads(answer)
        if done.returncode:
            seen[lines[-1]] = {"crash": f"{done.returncode}: {done.stderr[-600:]}"}
        left = [folder for folder in left if folder not in seen] if lines else []
    return seen


def copy(folder, path):
    """Copy a knowledge base by links, except for the file that is to be damaged."""
    path.mkdir()
    for file in folder.iterdir():
        os.link(file, path / file.name)


def damage(folder, path, name, how):
    copy(folder, path)
    file = path / f"{name}.npy"
    content = file.read_bytes()
    file.unlink()
    file.write_bytes(content)
    DAMAGE[how](file)


def test_every_array_has_a_rule():
    assert set(RULES) == ARRAYS and len(ARRAYS) > 30


# A fifth of the pairs of an array and a damage has each of both.
@pytest.mark.slow
@pytest.mark.parametrize(
    "part", [0, *(pytest.param(i, marks=pytest.mark.full) for i in range(1, 5))]
)
def test_damaged_arrays(folder, tmp_path, part):
    """Sizes, types, pointers, rows and order alone show damage; nothing crashes.

    Large arrays have no hashes here.
    """
    places = {}
    for i, how in enumerate(DAMAGE):
        for j, name in enumerate(sorted(ARRAYS)):
            if (i + j) % 5 == part:
                places[how, name] = tmp_path / f"{how} {name}"
                damage(folder, places[how, name], name, how)
    seen = see_all([folder, *places.values()])
    good = seen[str(folder)]
    assert good["links"]
    for (how, name), path in places.items():
        what = seen[str(path)]
        assert "crash" not in what, (how, name, what)
        # A change that leaves an array valid cannot be told from another terminology.
        if error := what.get("error"):
            assert ".npy" in error and "\n" not in error and len(error) < 400, (how, name)
        elif how in ("empty", "longer", "objects", "pipe", "text", "truncated", "zero device"):
            assert what == good, (how, name)


def test_damage_is_found_by_its_hash(folder, tmp_path, monkeypatch):
    """Small arrays are compared whole when they are opened, large ones by `kb check`."""
    names = ("ngram.word_names", "names", "first_name", "name_lang", "ngram.grams")
    for number, how in enumerate(DAMAGE):
        for name in [names[(number + i) % len(names)] for i in range(2)]:
            path = tmp_path / f"{how} {name}"
            damage(folder, path, name, how)
            if (path / f"{name}.npy").is_file():
                same = (path / f"{name}.npy").read_bytes() == (folder / f"{name}.npy").read_bytes()
                if same:
                    continue
            with pytest.raises(BioclinError, match=rf"{name}\.npy"):
                KnowledgeBase.open(path)
            if name != names[number % len(names)]:
                continue
            with monkeypatch.context() as patch:
                patch.setattr(storage, "MIN_MAPPED", 64)
                done = CliRunner().invoke(app, ["kb", "check", str(path)])
            assert done.exit_code == 1 and f"{name}.npy" in done.output, (how, done.output)
            assert "Traceback" not in done.output


def test_samples_of_large_arrays(tmp_path, monkeypatch):
    """Zeros at the end, as a crash leaves them, are found without reading all."""
    monkeypatch.setattr(storage, "MIN_MAPPED", 2**10)
    monkeypatch.setattr(storage, "PIECE_BYTES", 2**6)
    kb = build_kb(make_concepts(60), tmp_path / "kb")
    assert "names" in kb.meta["samples"] and "ngram.idf" not in kb.meta["samples"]
    file = tmp_path / "kb" / "name_concept.npy"
    content = file.read_bytes()
    file.unlink()
    file.write_bytes(content[:-40] + b"\0" * 40)
    with pytest.raises(BioclinError, match=r"name_concept\.npy: its SHA-256"):
        KnowledgeBase.open(tmp_path / "kb")


def test_a_knowledge_base_without_hashes(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "kb")
    file = tmp_path / "kb" / "meta.json"
    meta = json.loads(file.read_text("utf-8"))
    for described in meta["arrays"].values():
        del described["sha256"]
    meta.pop("samples")
    meta["hash"] = storage.meta_hash(meta)
    file.write_text(json.dumps(meta), "utf-8")
    assert len(KnowledgeBase.open(tmp_path / "kb")) == 60
    done = CliRunner().invoke(app, ["kb", "check", str(tmp_path / "kb")])
    assert done.exit_code == 0 and "no hashes recorded" in done.output, done.output


META = {
    "a list": "[]",
    "deep": "[" * 100_000,
    "not JSON": "{",
    "not UTF-8": b"\xff\xfe{\0}\0",
    "empty": "",
    "a number": "1",
    "a truth value": '{"format": true}',
    "endless number": '{"format": 1e999}',
}
CHANGES = {
    "types a string": {"types": "T1"},
    "types numbers": {"types": [1]},
    "lang_codes missing": {"lang_codes": []},
    "too few types": {"types": []},
    "sources a string": {"sources": ["x"]},
    "hash a number": {"hash": 1},
    "n_names": {"n_names": 10**30},
    "n_concepts a string": {"n_concepts": "60"},
    "arrays a list": {"arrays": []},
    "arrays of nothing": {"arrays": dict.fromkeys(ARRAYS)},
    "arrays of objects": {
        "arrays": {key: {"dtype": "|O", "shape": [2], "sha256": None} for key in ARRAYS}
    },
    "arrays of the earth": {
        "arrays": {key: {"dtype": "<i8", "shape": [10**18], "sha256": ""} for key in ARRAYS}
    },
    "samples a list": {"samples": []},
}


def test_damaged_descriptions(folder, tmp_path):
    meta = json.loads((folder / "meta.json").read_text("utf-8"))
    contents = {**META, **{name: json.dumps({**meta, **new}) for name, new in CHANGES.items()}}
    for name, content in contents.items():
        path = tmp_path / name
        copy(folder, path)
        (path / "meta.json").unlink()
        raw = content if isinstance(content, bytes) else content.encode()
        (path / "meta.json").write_bytes(raw)
        with pytest.raises(BioclinError) as caught:
            KnowledgeBase.open(path).arrays.check()
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 400, name
        done = CliRunner().invoke(app, ["kb", "check", str(path)])
        assert done.exit_code == 1 and "Traceback" not in done.output, name
        assert done.exception is None or isinstance(done.exception, SystemExit), name


@pytest.mark.slow
def test_one_that_is_replaced_stays_open(tmp_path):
    """The older files stay mapped: nothing of ours shortens or changes a file in place."""
    path = tmp_path / "kb"
    code = f"""
        import sys
        from spacy_bioclin.linking.kb import storage
        storage.MIN_MAPPED = 64
        from spacy_bioclin.linking.kb.knowledge_base import KnowledgeBase
        kb = KnowledgeBase.open({str(path)!r})
        print("open", flush=True)
        sys.stdin.readline()
        print(len(list(kb)), len(kb.similar.search(["acut"], 3)[0]), flush=True)
    """
    build_kb(make_concepts(60), path)
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "open\n"
    build_kb(make_concepts(3), path)
    out, _ = process.communicate("\n", timeout=60)
    assert out == "60 1\n" and process.returncode == 0
    assert len(KnowledgeBase.open(path)) == 3


def test_a_folder_of_something_else_is_not_replaced(tmp_path):
    """A spaCy pipeline has a meta.json too."""
    pipeline = tmp_path / "pipeline"
    pipeline.mkdir()
    for name in ("meta.json", "config.cfg", "tokenizer"):
        (pipeline / name).write_text("{}")
    source = tmp_path / "list.csv"
    source.write_text("code,name\nA,asthma\n")
    arguments = ["kb", "build", str(source), "-o", str(pipeline), "--overwrite"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 1 and "not an output of this command" in done.output
    with pytest.raises(BioclinError, match="not an output"):
        build_kb([Concept("a", "name")], pipeline)
    assert sorted(p.name for p in pipeline.iterdir()) == ["config.cfg", "meta.json", "tokenizer"]


BYTES = {
    "cut off": lambda data: data[: len(data) // 2],
    "another byte": lambda data: data.replace(b"lower limb", b"upper limb"),
    "a bomb": lambda data: b"\xc6\xff\xff\xff\xff",
    "a list": lambda data: b"\x91\x01",
    "nothing": lambda data: b"",
}


def test_damaged_bytes(folder):
    data = KnowledgeBase.open(folder).to_bytes()
    assert len(KnowledgeBase.from_bytes(data)) == 60
    for change in BYTES.values():
        with pytest.raises(BioclinError):
            KnowledgeBase.from_bytes(change(data))
