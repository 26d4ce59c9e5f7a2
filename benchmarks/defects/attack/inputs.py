"""Input files that are damaged or malicious: what ended in a traceback, or came out changed."""

import json

from benchmarks.defects.case import Done, Seen, Tree, case

NAME = "Zkanarienvogel"
BIOC = (
    "<collection><source/><date/><key/><document><id>d</id><passage><offset>{}</offset>"
    "<text>Acude hoy</text></passage></document></collection>"
)


def refused(done: Done, *names: str) -> Seen:
    """Check that a command ended with one error that has these names, and no traceback."""
    named = all(name in done.text for name in names)
    holds = done.code == 1 and not done.crashed and named
    last = (done.err.strip().splitlines() or [""])[-1]
    return Seen(holds, {"exit": done.code, "crashed": done.crashed, "said": last[-160:]})


def convert(tree: Tree, format: str, name: str, content: str | bytes) -> Done:
    text = content if isinstance(content, str) else content.decode("latin-1")
    tree.write(name, text)
    if isinstance(content, bytes):
        (tree.folder / name).write_bytes(content)
    return tree.bioclin("convert", format, name, "out.spacy", "--lang", "es", timeout=60)


@case(6, "A PubTator offset that is a superscript digit is an error that names file and line.")
def pubtator_superscript_offset(tree: Tree) -> Seen:
    content = "1|t|Hola\n1|a|fiebre\n1\t²\t3\tx\tA\tC\n"
    return refused(convert(tree, "pubtator", "x.txt", content), "x.txt", "line 3")


@case(6, "A BioC offset of 99999999999 is an error, not a MemoryError.")
def bioc_huge_offset(tree: Tree) -> Seen:
    return refused(convert(tree, "bioc", "x.xml", BIOC.format(99999999999)), "x.xml", "offset")


@case(6, "A BioC offset before the text is an error.")
def bioc_negative_offset(tree: Tree) -> Seen:
    return refused(convert(tree, "bioc", "x.xml", BIOC.format(-5)), "x.xml", "offset")


@case(8, "A brat offset of 5,000 digits is an error that names file and line.")
def brat_long_offset(tree: Tree) -> Seen:
    tree.write("x.txt", "Acude hoy")
    done = convert(tree, "brat", "x.ann", f"T1\tA 0 {'9' * 5000}\tAcude\n")
    return refused(done, "x.ann", "line 1")


@case(8, "A .spacy file in which a string is missing is an error that names it.")
def docbin_without_strings(tree: Tree) -> Seen:
    code = (
        "import spacy, srsly, zlib; from spacy.tokens import DocBin\n"
        f"data = DocBin(docs=[spacy.blank('es')('Acude {NAME}')]).to_bytes()\n"
        "content = srsly.msgpack_loads(zlib.decompress(data)); content['strings'] = []\n"
        "open('x.spacy', 'wb').write(zlib.compress(srsly.msgpack_dumps(content)))\n"
    )
    tree.python("-c", code)
    done = tree.bioclin("convert", "spacy", "x.spacy", "out", "--to", "brat", timeout=60)
    return refused(done, "x.spacy", "bioclin convert")


@case(8, "Attributes of i2b2 XML with a billion laughs are refused at once.")
def xml_that_grows(tree: Tree) -> Seen:
    laughs = "".join(f'<!ENTITY l{i + 1} "{f"&l{i};" * 10}">' for i in range(7))
    content = (
        f'<!DOCTYPE r [<!ENTITY l0 "{"x" * 10}">{laughs}]><r><TEXT><![CDATA[Acude]]></TEXT>'
        "<TAGS><A id='1' start='0' end='3' text='&l7;'/></TAGS></r>"
    )
    return refused(convert(tree, "i2b2", "x.xml", content), "x.xml", "ENTITY")


@case(8, "What a reader was given is in no exception that its error was raised from.")
def canary_in_the_chain(tree: Tree) -> Seen:
    tree.write("x.txt", "")
    (tree.folder / "x.txt").write_bytes(f"{NAME} año".encode("latin-1"))
    code = (
        "from pathlib import Path; from spacy_bioclin.corpora.files import read_text\n"
        "try: read_text(Path('x.txt'))\n"
        "except ValueError as error:\n"
        f"    print({NAME!r} in repr((error.args, error.__cause__, error.__context__)))\n"
    )
    done = tree.python("-c", code)
    return Seen(done.out.strip() == "False", done.out.strip() or done.err[-160:])


def deid_numbers(tree: Tree, *numbers: str) -> Seen:
    lines = [f'{{"text": "Acude hoy", "v": {number}}}\n' for number in numbers]
    tree.write("x.jsonl", "".join(lines))
    done = tree.bioclin("deid", "x.jsonl", "out.jsonl", "--lang", "es", "--keep", "v")
    out = tree.folder / "out.jsonl"
    found = out.read_text("utf-8").splitlines() if out.exists() else []
    values = [line.partition('"v": ')[2].removesuffix("}") for line in found]
    return Seen(values == list(numbers), values or done.text[-160:])


@case(6, "deid writes 1e400 as it is, not as Infinity, which is not JSON.")
def infinite_number(tree: Tree) -> Seen:
    return deid_numbers(tree, "1e400", "-1e400")


@case(6, "deid writes numbers that it only carries with all their digits.")
def long_numbers(tree: Tree) -> Seen:
    return deid_numbers(
        tree, "1.10", "0.1000000000000000055511151231257827", "12345678901234567890.5", "-0"
    )


@case(8, "A line of JSON with two fields of one name is refused, not cut to one of them.")
def fields_of_one_name(tree: Tree) -> Seen:
    tree.write("x.jsonl", '{"text": "a", "v": 1, "v": 2}\n')
    done = tree.bioclin("deid", "x.jsonl", "out.jsonl", "--lang", "es", "--keep", "v")
    return refused(done, "line 1", "same name")


@case(8, "A line of JSON with 400 levels is a bad record, not a RecursionError.")
def deep_line(tree: Tree) -> Seen:
    rows = ['{"text": "a", "v": 1}', '{"text": "b", "v": ' + "[" * 400 + "1" + "]" * 400 + "}"]
    tree.write("x.jsonl", "\n".join(rows) + "\n")
    options = ("--lang", "es", "--keep", "v", "--skip-bad")
    done = tree.bioclin("deid", "x.jsonl", "out.jsonl", *options)
    out = tree.folder / "out.jsonl"
    n_written = len(out.read_text("utf-8").splitlines()) if out.exists() else 0
    return Seen(done.code == 0 and n_written == 1 and "skipped: 1 of 2" in done.text, n_written)


@case(6, "Parquet times in nanoseconds and of the year 10,000 go through deid unchanged.")
def parquet_times(tree: Tree) -> Seen:
    code = (
        "import pyarrow as pa, pyarrow.parquet as pq\n"
        "n = pa.array([1, 2**62, None], pa.int64())\n"
        "ns, us = (n.cast(pa.timestamp(unit)) for unit in ('ns', 'us'))\n"
        "t = {'text': ['a'] * 3, 'ns': ns, 'us': us}\n"
        "pq.write_table(pa.table(t), 'x.parquet')\n"
    )
    tree.python("-c", code)
    keep = ("--keep", "ns", "--keep", "us")
    done = tree.bioclin("deid", "x.parquet", "out.parquet", "--lang", "es", *keep)
    code = (
        "import pyarrow.parquet as pq\n"
        "a, b = (pq.read_table(p).drop(['text']) for p in ('x.parquet', 'out.parquet'))\n"
        "print(a.equals(b))\n"
    )
    same = tree.python("-c", code).out.strip()
    return Seen(same == "True", same or done.text[-160:])


@case(6, "Metrics of another shape are one error that names the file and the key.")
def malformed_metrics(tree: Tree) -> Seen:
    metrics = dict.fromkeys(("corpus", "scores", "layers", "speed", "date", "versions"), "x")
    tree.write("m.json", json.dumps({**metrics, "commit": None}))
    code = "import spacy; spacy.blank('es').to_disk('model')"
    tree.python("-c", code)
    done = tree.bioclin(
        *("package", "model", "dist", "--name", "a", "--version", "1.0.0", "--metrics", "m.json")
    )
    return refused(done, "m.json")


@case(8, "A policy whose aliases stand for a billion values is refused, and one of itself too.")
def yaml_that_grows(tree: Tree) -> Seen:
    pairs = zip("abcdefgh", "bcdefghi", strict=True)
    lines = [f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in pairs]
    tree.write("laughs.yml", "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(lines))
    tree.write("itself.yml", "operators: &a {x: *a}\n")
    tree.write("x.txt", "Acude hoy")
    seen = [
        refused(
            tree.bioclin("deid", "x.txt", "o.txt", "--lang", "es", "--policy", name, timeout=60),
            name,
            "alias",
        )
        for name in ("laughs.yml", "itself.yml")
    ]
    return Seen(all(each.holds for each in seen), [each.value for each in seen])
