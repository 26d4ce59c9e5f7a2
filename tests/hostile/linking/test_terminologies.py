"""Broken and hostile terminologies through `bioclin kb build`: one line of error, or what is left
out is counted with its place; nothing crashes, hangs, grows or is read from elsewhere."""

import bz2
import gzip
import json
import lzma
import os
import re

import pytest
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.linking.kb.knowledge_base import KnowledgeBase
from spacy_bioclin.linking.readers import skos

OBO = "format-version: 1.2\n\n[Term]\nid: A:1\nname: asthma\n"
CSV = "code,name\nA,asthma\n"
JSONL = '{"id": "A", "name": "asthma"}\n'
NAMES = "A||asthma|wheeze\nB||flu\n"
TTL = (
    "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n"
    '<urn:a> a skos:Concept ; skos:prefLabel "asthma"@en .\n'
)
LAUGHS = "".join(
    f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=1)
)
DTD = {
    "laughs": f'<!DOCTYPE x [<!ENTITY a "lol">{LAUGHS}]>',
    "file": '<!DOCTYPE x [<!ENTITY i SYSTEM "file:///etc/passwd">]>',
    "address": '<!DOCTYPE x [<!ENTITY i SYSTEM "http://127.0.0.1:9/x">]>',
    "parameter": '<!DOCTYPE x [<!ENTITY % i SYSTEM "file:///etc/passwd"> %i;]>',
    "long": f'<!DOCTYPE x [<!ENTITY i "{"x" * 5000}">]>',
}


def mesh(dtd, name="&i;"):
    record = (
        f"<DescriptorUI>D1</DescriptorUI><DescriptorName><String>{name}</String></DescriptorName>"
    )
    body = f"<DescriptorRecord>{record}</DescriptorRecord>"
    return f'<?xml version="1.0"?>{dtd}<DescriptorRecordSet>{body}</DescriptorRecordSet>'


def rdf(dtd, name="&i;"):
    concept = f'<s:Concept rdf:about="urn:a"><s:prefLabel>{name}</s:prefLabel></s:Concept>'
    spaces = (
        'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        'xmlns:s="http://www.w3.org/2004/02/skos/core#"'
    )
    return f'<?xml version="1.0"?>{dtd}<rdf:RDF {spaces}>{concept}</rdf:RDF>'


# File name, content, and what the error says.
ERRORS = {
    **{f"mesh {k}": ("x.xml", mesh(v), "declares entities") for k, v in DTD.items()},
    **{f"rdf {k}": ("x.rdf", rdf(v), "the entity '[abi]'") for k, v in DTD.items()},
    "deep MeSH": ("x.xml", "<DescriptorRecordSet>" + "<a>" * 200_000, "broken XML"),
    "MeSH cut off": ("x.xml", mesh("", "asthma")[:-60], "broken XML"),
    "RDF cut off": ("x.rdf", rdf("", "asthma")[:-20], "line 1: cannot be read as RDF"),
    "deep RDF": ("x.rdf", rdf("", "")[:130] + "<a>" * 50_000, "cannot be read as RDF"),
    "Turtle cut off": ("x.ttl", TTL + "<urn:b> a", "cannot be read as RDF"),
    "Turtle with an open text": (
        "x.ttl",
        TTL + '<urn:b> skos:prefLabel "a',
        "cannot be read as RDF",
    ),
    "Turtle with an open long text": ("x.ttl", TTL + '<urn:b> a """a', "cannot be read as RDF"),
    "Turtle that is prose": ("x.ttl", "this is prose", "line 1: cannot be read as RDF"),
    "deep Turtle": ("x.ttl", TTL + "<urn:b> a " + "[" * 50_000, "cannot be read as RDF"),
    "Turtle lists": ("x.ttl", TTL + "<urn:b> a " + "(" * 50_000, "cannot be read as RDF"),
    "Turtle beyond Unicode": (
        "x.ttl",
        TTL.replace("asthma", "\\UFFFFFFFF"),
        "cannot be read as RDF",
    ),
    "Turtle with a rule": ("x.ttl", TTL + "{ ?x a ?y } => { ?x a ?z } .", "cannot be read as RDF"),
    "Turtle in Latin-1": (
        "x.ttl",
        TTL.replace("m", "é").encode("latin-1"),
        "cannot be read as RDF",
    ),
    "N-Triples that are prose": ("x.nt", "a b c d\n", "cannot be read as RDF"),
    "number of 5,000 digits": ("x.ttl", TTL + f"<urn:b> a {'9' * 5000} .", "cannot be read as RDF"),
    "UTF-16 cut off": ("x.obo", OBO.encode("utf-16")[:-1], "is UTF-16 with an error"),
    "UTF-32 JSONL": ("x.jsonl", JSONL.encode("utf-32"), "is UTF-32"),
    "CR alone": ("x.txt", NAMES.replace("\n", "\r"), "end in CR alone"),
    "CR alone in a table": ("x.csv", CSV.replace("\n", "\r"), "end in CR alone"),
    "name of 1 MB": ("x.obo", OBO.replace("asthma", "x" * 1_000_000), "name over 500 characters"),
    "cell of 1 MB": (
        "x.csv",
        CSV.replace("asthma", "x" * 1_000_000),
        "x.csv, line 2: field larger",
    ),
    "open quote": ("x.csv", 'code,name\nA,"asthma\n' + "B,flu\n" * 100_000, "may never be closed"),
    "one column": ("x.csv", "code\nA\n", "not recognised"),
    "no column of names": ("x.csv", "code,price\nA,1\n", "not recognised"),
    "300 languages": (
        "x.csv",
        "code,name,lang\n" + "".join(f"A{i},n{i},l{i}\n" for i in range(300)),
        "right column for the language",
    ),
    "MeSH table": (
        "x.tsv",
        "DescriptorUI\tDescriptorName\tTermName\n" + "D1\n" * 200,
        "none of its first 100 rows",
    ),
    "zeros": ("x.jsonl", b"\0" * 100_000, "no concept in it"),
    "empty": ("x.obo", "", "no .Term. in it"),
    "gz cut off": (
        "x.obo.gz",
        gzip.compress(OBO.encode() * 100)[:40],
        "cannot be read beyond byte",
    ),
    "gz of another file": ("x.obo.gz", OBO, "Not a gzipped file"),
    "xz cut off": (
        "x.obo.xz",
        lzma.compress(OBO.encode() * 100)[:-20],
        "cannot be read beyond byte",
    ),
    "bz2 cut off": (
        "x.obo.bz2",
        bz2.compress(OBO.encode() * 99)[:-9],
        "cannot be read beyond byte",
    ),
    "ttl.gz cut off": ("x.ttl.gz", gzip.compress(TTL.encode())[:60], "cannot be read beyond byte"),
}
# File name, content, ids of the concepts, and what is counted with its place.
COUNTED = {
    "address of a DTD": (
        "x.xml",
        mesh('<!DOCTYPE x SYSTEM "http://[::]:9/">', "a1"),
        ["D1"],
        "",
    ),
    "short entity": ("x.rdf", rdf('<!DOCTYPE x [<!ENTITY i "asthma">]>'), ["urn:a"], ""),
    "byte-order mark": ("x.obo", b"\xef\xbb\xbf" + OBO.encode(), ["A:1"], ""),
    "CRLF": ("x.csv", CSV.replace("\n", "\r\n"), ["A"], ""),
    "Latin-1 line": (
        "x.txt",
        NAMES.replace("flu", "á").encode("latin-1"),
        ["A", "B"],
        "line that is not UTF-8",
    ),
    "line of 17 MB": ("x.obo", OBO + "x" * 17_000_000, ["A:1"], "x.obo, line 6"),
    "gz bomb": (
        "x.obo.gz",
        gzip.compress(OBO.encode() + bytes(4 * 10**7)),
        ["A:1"],
        "x.obo.gz, line 6",
    ),
    "NUL in a name": (
        "x.txt",
        NAMES.replace("wheeze", "wh\0eze"),
        ["A", "B"],
        "control characters",
    ),
    "direction reversed": ("x.obo", OBO.replace("st", "s\u202et"), ["A:1"], "invisible or control"),
    "terminal codes": ("x.csv", CSV.replace("st", "\x1b[2J"), ["A"], "invisible or control"),
    "circles in OBO": (
        "x.obo",
        OBO + "is_a: B\n\n[Term]\nid: B\nname: b1\nis_a: A:1\n\n[Term]\nid: C\nname: c1\nis_a: C\n",
        ["A:1", "B", "C"],
        "3 +parent in a circle",
    ),
    "circles in SKOS": ("x.ttl", TTL + "<urn:a> skos:broader <urn:a> .", ["urn:a"], "in a circle"),
    "values of the wrong type": (
        "x.ttl",
        TTL + '<urn:a> skos:note "x"^^<http://www.w3.org/2001/XMLSchema#integer> .',
        ["urn:a"],
        "",
    ),
    "language of 1 MB": ("x.ttl", TTL.replace("@en", "@" + "e" * 10**6), ["urn:a"], "not a code"),
    "ids of a table": (
        "x.tsv",
        "code\tname\nA|B\tx1\nA\0B\tx2\n \tx3\n"
        + "y" * 10_000
        + "\tx4\nC\u202eD\tx5\nOK\tx6\nOK\tx7\n",
        ["OK"],
        r'id with "|", .*first: x.tsv, line 2',
    ),
    "ids of JSONL": (
        "x.jsonl",
        "".join(
            json.dumps({"id": id, "name": "asthma"}) + "\n"
            for id in (
                "A|B",
                "A\tB",
                "A\nB",
                "\0",
                "",
                None,
                5,
                ["A"],
                "\ud800",
                "y" * 10_000,
                "OK",
            )
        ),
        ["OK"],
        r"id over 500 characters; first: x.jsonl, line 10",
    ),
    "ids of OBO": ("x.obo", OBO + "\n[Term]\nid: B|C\nname: x\n", ["A:1"], "first: x.obo, line 7"),
    "other ids": (
        "x.jsonl",
        json.dumps({"id": "P", "name": "n", "parents": ["A|B"], "alternative_ids": ["x|y", "\0"]}),
        ["P"],
        r"parent: id with .*first: P",
    ),
    "numbers of JSON": (
        "x.jsonl",
        JSONL + '{"id": 1e999}\n{"id": NaN}\n' + "[" * 99_999,
        ["A"],
        "JSON",
    ),
    "missing name": ("x.csv", CSV + "B\n", ["A"], "no name; first: x.csv, line 3"),
    "more cells": ("x.csv", CSV + "B,flu,x\n", ["A"], "more cells .*first: x.csv, line 3"),
    "same id twice": ("x.jsonl", JSONL * 2, ["A"], "id that came before"),
}


def build(path, source):
    done = CliRunner().invoke(app, ["kb", "build", source, "-o", "kb"])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert "Traceback" not in done.output and "unexpected" not in done.output
    assert sorted(p.name for p in path.iterdir() if p.name != source) in ([], ["kb"])
    return done


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name, content):
    with open(name, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())


def check_message(output, message, name):
    assert re.search(message, output), (name, output[-500:])
    assert "\x1b" not in output and "\0" not in output and "root:" not in output, name


def test_errors(tmp_path, monkeypatch):
    for number, (name, (file, content, message)) in enumerate(ERRORS.items()):
        here = tmp_path / str(number)
        here.mkdir()
        monkeypatch.chdir(here)
        write(file, content)
        done = build(here, file)
        assert done.exit_code == 1 and not (here / "kb").exists(), name
        check_message(done.output, message, name)
        assert len(done.output.splitlines()[-1]) < 500, name


LARGE = ("line of 17 MB", "gz bomb", "language of 1 MB")


@pytest.mark.parametrize("large", [False, True])
def test_counted(tmp_path, monkeypatch, large):
    for number, (name, (file, content, ids, message)) in enumerate(COUNTED.items()):
        if (name in LARGE) != large:
            continue
        here = tmp_path / str(number)
        here.mkdir()
        monkeypatch.chdir(here)
        write(file, content)
        done = build(here, file)
        assert done.exit_code == 0, (name, done.output)
        kb = KnowledgeBase.open("kb")
        assert list(kb.ids) == ids, name
        assert all(text.isprintable() for text in kb.names), name
        check_message(done.output, message, name)


def test_what_is_not_a_file(here):
    """For each reader; the kinds of what is no file take turns."""
    kinds = ["pipe", "device", "link to nothing", "link to itself"]
    endings = ["obo", "csv", "ttl", "jsonl", "xml", "unknown"]
    cases = [*zip(endings, kinds + kinds, strict=False), ("csv", "pipe"), ("csv", "device")]
    for number, (ending, kind) in enumerate(cases):
        name = f"x{number}.{ending}"
        if kind == "pipe":
            os.mkfifo(name)
        else:
            os.symlink({"device": "/dev/zero", "link to itself": name}.get(kind, "nowhere"), name)
        done = build(here, name)
        assert done.exit_code == 1 and name in done.output, (ending, kind)
        os.unlink(name)


def test_a_release_with_broken_rows(here):
    """An empty date and state of a concept, and an id that cannot be one."""
    (here / "rf2").mkdir()
    head = "id\teffectiveTime\tactive\tmoduleId\tdefinitionStatusId\n"
    rows = "1\t20240101\t1\tm\td\n2\t\t\t\t\n3|4\t20240101\t1\tm\td\nx\n"
    (here / "rf2" / "sct2_Concept_Snapshot_INT_20240101.txt").write_text(head + rows)
    columns = (
        "id effectiveTime active moduleId conceptId languageCode typeId term caseSignificanceId"
    )
    row = "10 20240101 1 m 1 en 900000000000013009 asthma c"
    text = f"{columns}\n{row}\n".replace(" ", "\t")
    (here / "rf2" / "sct2_Description_Snapshot-en_INT_20240101.txt").write_text(text)
    done = build(here, "rf2")
    assert done.exit_code == 0, done.output
    assert "active is not 0 or 1; first: rf2/sct2_Concept" in done.output
    assert list(KnowledgeBase.open("kb").ids) == ["1"]


def test_a_graph_that_is_too_large(here, monkeypatch):
    """A small compressed file may hold more than the memory can."""
    monkeypatch.setattr(skos, "MAX_BYTES", 10**6)
    write("x.ttl.gz", gzip.compress(TTL.encode() + b" " * 10**7))
    done = build(here, "x.ttl.gz")
    assert done.exit_code == 1 and "over 1,000,000 bytes" in done.output


def test_a_source_is_not_replaced(here):
    write("x.csv", CSV)
    for output in ("x.csv", "."):
        arguments = ["kb", "build", "x.csv", "-o", output, "--overwrite"]
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 1 and (here / "x.csv").read_text() == CSV
    assert CliRunner().invoke(app, ["kb", "build", "x.csv", "-o", "kb"]).exit_code == 0
    before = sorted((p.name, p.read_bytes()) for p in (here / "kb").iterdir())
    arguments = ["kb", "merge", "kb", "-o", "kb", "--overwrite"]
    assert CliRunner().invoke(app, arguments).exit_code == 1
    assert before == sorted((p.name, p.read_bytes()) for p in (here / "kb").iterdir())
