"""`bioclin kb`: every command, and what it says when something is wrong."""

import gzip
import hashlib
import json
import re

import pytest
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.linking.kb.knowledge_base import KnowledgeBase

ICD = "codigo;descriptor;corto;otro\nC50;Cáncer de mama;Ca. mama;\nF32;Depresión;Depre;Melancolía\n"
OBO = """format-version: 1.2

[Term]
id: X:1
name: breast cancer
namespace: tumours
synonym: "breast carcinoma" EXACT []
is_a: X:2

[Term]
id: X:2
name: neoplasm
namespace: tumours

[Term]
id: X:3
name: obsolete thing
is_obsolete: true
"""
COLUMNS = "id=codigo,name=descriptor,alias=corto,alias=otro"


def run(*arguments):
    return CliRunner().invoke(app, ["kb", *map(str, arguments)], env={"COLUMNS": "200"})


def succeed(*arguments):
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    return done


def fail(*arguments):
    done = run(*arguments)
    assert done.exit_code == 1 and isinstance(done.exception, SystemExit), repr(done.exception)
    return done.output


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "icd.csv").write_text(ICD, "utf-8")
    (tmp_path / "x.obo.gz").write_bytes(gzip.compress(OBO.encode()))
    return tmp_path


@pytest.fixture
def built(folder):
    out = folder / "kb"
    licences = ("--license", "free", "--license", "CC0")
    names = ("--columns", COLUMNS, "--names-in", "es", "--name", "mine", "--version", "2")
    sources = (folder / "icd.csv", f"obo:{folder / 'x.obo.gz'}")
    done = succeed("build", *sources, "-o", out, *licences, *names)
    return out, done


def test_build_joins_sources_and_says_where_they_come_from(folder, built):
    out, done = built
    assert "4 concepts" in done.output and "obsolete; first: X:3" in done.output
    kb = KnowledgeBase.open(out)
    assert (kb.meta["name"], kb.meta["version"]) == ("mine", "2")
    assert kb.concept("X:1").parents == ("X:2",)
    data = (folder / "x.obo.gz").read_bytes()
    assert kb.meta["sources"][1] == {
        "file": "x.obo.gz",
        "format": "obo",
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "licence": "CC0",
    }
    assert kb.meta["sources"][0]["licence"] == "free"
    assert str(folder) not in (out / "meta.json").read_text("utf-8")


def test_build_with_columns_types_languages_and_a_format(folder):
    out = folder / "kb"
    (folder / "unknown").write_text(OBO, "utf-8")
    source = f"obo:{folder / 'unknown'}"
    succeed("build", folder / "icd.csv", source, "-o", out, "--columns", COLUMNS)
    kb = KnowledgeBase.open(out)
    assert [alias.text for alias in kb.concept("F32").aliases] == ["Depre", "Melancolía"]
    assert "X:1" in kb
    assert "exists already" in fail("build", source, "-o", out)
    succeed("build", source, "-o", out, "--overwrite", "--types", "tum*, other", "--lang", "en,es")
    assert list(KnowledgeBase.open(out).ids) == ["X:1", "X:2"]


def test_info(built):
    out, _ = built
    said = succeed("info", out, "--check").output
    for text in ("mine 2", "4", "free", "CC0", "icd.csv", "obsolete", KnowledgeBase.open(out).hash):
        assert text in said
    assert "as they were written" in said
    described = json.loads(succeed("info", out, "--json").stdout)
    assert described["n_concepts"] == 4 and described["names_in"]["es"] == 8
    assert described["bytes"] == sum(file.stat().st_size for file in out.iterdir())


def test_info_finds_a_changed_file(built):
    out, _ = built
    path = out / "names.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    for arguments in (("info", out), ("info", out, "--check"), ("check", out)):
        said = fail(*arguments)
        assert "names.npy: its SHA-256" in said and "4 concepts" not in said


def test_search(built):
    out, _ = built
    found = json.loads(succeed("search", out, "carcinomas of Breast", "--json").stdout)
    assert found[0]["id"] == "X:1" and found[0]["why"] == "same words: breast carcinoma"
    assert len({f["id"] for f in found}) == len(found)
    found = json.loads(succeed("search", out, "DEPRESION", "--json", "--top", "1").stdout)
    assert [(f["id"], f["score"], f["why"]) for f in found] == [
        ("F32", 1.0, "same name: Depresión")
    ]
    found = json.loads(succeed("search", out, "melancolico", "--json").stdout)
    assert found[0]["id"] == "F32" and 0.3 < found[0]["score"] < 1
    assert "Depresión" in succeed("search", out, "depre").output
    assert json.loads(succeed("search", out, "???", "--json").stdout) == []


def test_merge_and_diff(folder, built):
    out, _ = built
    newer = folder / "newer"
    (folder / "icd.csv").write_text(ICD.replace("Depre;", "Bajón;") + "Z1;Cosa;;\n", "utf-8")
    succeed("build", folder / "icd.csv", "-o", newer, "--columns", COLUMNS, "--license", "new")
    said = json.loads(succeed("diff", out, newer, "--json").stdout)
    assert said["added"] == ["Z1"] and said["removed"] == ["X:1", "X:2"]
    assert said["names_added"] == {"F32": ["Bajón"]} and said["counts"]["names_removed"] == 1
    assert "concepts removed" in succeed("diff", out, newer).output
    assert "hashes are the same" in succeed("diff", out, out).output
    both = folder / "both"
    done = succeed("merge", out, newer, "-o", both)
    assert "5 concepts" in done.output and "2 ids were in several" in done.output
    licences = [source["licence"] for source in KnowledgeBase.open(both).meta["sources"]]
    assert licences == ["free", "CC0", "new"]


def test_language_codes_are_read_as_in_the_sources(folder):
    """SPA, ES and es-MX are Spanish, as in the records of terminologies."""
    records = (
        '{"id": "A", "name": "asthma", "lang": "EN", "aliases": ["asma", ["asthme", "fra"]]}\n'
    )
    (folder / "x.jsonl").write_text(records, "utf-8")
    for lang, stated in (("ES,en-GB", "SPA"), ("spa, eng", "es-MX"), ("es,EN", " ES ")):
        out = folder / "kb"
        succeed(
            *("build", folder / "x.jsonl", "-o", out, "--overwrite"),
            *("--lang", lang, "--names-in", stated),
        )
        kb = KnowledgeBase.open(out)
        assert (list(kb.names), kb.meta["langs"]) == (["asthma", "asma"], ["en", "es"])


# Arguments of a build, and what the message has.
WRONG = [
    (["icd.csv", "--names-in", "español"], "--names-in 'español': not a language code; want"),
    (["icd.csv", "--names-in", "es,en"], "--names-in 'es,en': not a language code"),
    (["icd.csv", "--names-in", "-"], "--names-in '-': not a language code"),
    (["icd.csv", "--lang", "es,spanish"], "--lang 'spanish': not a language code"),
    (["nowhere.obo"], "no such file"),
    (["icd.csv", "--format", "excel"], "unknown; there are obo"),
    (["icd.csv", "--columns", "codigo"], "want KEY=COLUMN"),
    (["icd.csv", "--columns", "id=code,name=x"], "no column 'code'"),
    (["x.obo.gz", "obo:icd.csv", "--columns", "id=codigo"], "none of .* is one"),
    (["obo:x.obo.gz", "--columns", "id=codigo,name=x"], "none of .* is one"),
    (["icd.csv", "--lang", "fr", "--names-in", "es"], "nothing is left"),
    (["icd.csv", "--license", "a", "--license", "b"], "2 times for 1 sources"),
    (["."], "not recognised|a folder"),
    (["table:."], "a folder; give a file"),
]


def test_build_that_cannot(folder, monkeypatch):
    monkeypatch.chdir(folder)
    before = set(folder.iterdir())
    for arguments, message in WRONG:
        said = fail("build", *arguments, "-o", "kb")
        assert re.search(message, said), (arguments, said)
        assert set(folder.iterdir()) == before, arguments


def test_out_is_something_else(folder):
    assert "is the input" in fail("build", folder / "icd.csv", "-o", folder)
    assert "is a file" in fail("build", folder / "icd.csv", "-o", folder / "x.obo.gz")
    assert "not a knowledge base" in fail("info", folder)
    assert "not a knowledge base" in fail("search", folder / "nowhere", "x")
    below_a_file = folder / "icd.csv" / "kb"
    assert "icd.csv" in fail("build", folder / "icd.csv", "-o", below_a_file)
    assert (folder / "icd.csv").read_text("utf-8") == ICD


def test_build_chooses_concepts_columns_and_vocabularies(folder):
    """Of each source its own columns; of the concepts a list and what is below some."""
    out = folder / "kb"
    (folder / "lab.csv").write_text("nr;was\nL1;Glucosa\nL2;Urea\n", "utf-8")
    tables = ("build", folder / "lab.csv", folder / "icd.csv", folder / "x.obo.gz", "-o", out)
    columns = ("--columns", "id=nr,name=was", "--columns", "", "--columns", "")
    (folder / "ids.txt").write_text("L1;glucose\nF32\nX:9\n", "utf-8")
    chosen = ("--ids", folder / "ids.txt", "--descendants-of", "X:2")
    done = succeed(*tables, *columns, *chosen)
    assert list(KnowledgeBase.open(out).ids) == ["F32", "L1", "X:1", "X:2"]
    assert "id asked for that no source has; first: X:9" in done.output
    assert "2  concept that was not asked for" in done.output
    assert "'X:7', of which" in fail(*tables, *columns, "--descendants-of", "X:7", "--overwrite")
    assert "2 times for 3 sources" in fail(*tables, "--overwrite", *columns[:4])
    # Given once, columns are for the sources that nothing else is known of.
    succeed("build", *tables[2:], "--columns", COLUMNS, "--overwrite")
    assert "X:1" in KnowledgeBase.open(out) and "Melancolía" in KnowledgeBase.open(out).names
    row = "C{0}|ENG|P|L1|PF|S1|Y|A1||M1|D1|{1}|MH|D{0}|cough {0}|0|N||\n"
    (folder / "MRCONSO.RRF").write_text(row.format(1, "MSH") + row.format(2, "ICD"), "utf-8")
    succeed("build", f"rrf:{folder}", "-o", out, "--overwrite", "--vocabularies", "MSH")
    assert list(KnowledgeBase.open(out).ids) == ["C1"]
    said = fail("build", folder / "icd.csv", "-o", folder / "x", "--vocabularies", "MSH")
    assert "--vocabularies is for UMLS" in said
