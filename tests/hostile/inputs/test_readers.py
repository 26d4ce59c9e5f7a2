"""Corpus files that are damaged, malicious or of another kind: one error each, or documents."""

import os
import random
import zlib
from pathlib import Path

import pytest
import srsly
from spacy.vocab import Vocab

from spacy_bioclin.corpora.convert import convert_to_docs
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.corpora.formats import FORMATS
from spacy_bioclin.corpora.tools.inception import TYPE_SYSTEM, format_type_system
from spacy_bioclin.errors import BioclinError
from tests.hostile.inputs.files import (
    CANARY,
    TEXT,
    check_message,
    make_files,
    mutated,
    read_as_users_do,
    recoded,
    truncated,
)

KINDS = (
    *("brat.ann", "pubtator.txt", "i2b2.xml", "bioc.xml", "bioc.json", "columns.conll"),
    *("spacy.spacy", "i2b2-2010.con", "i2b2-2012.xml", "share-clef.pipe"),
    *("label-studio.json", "doccano.jsonl", "prodigy.jsonl", "inception.xmi"),
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return make_files(tmp_path_factory.mktemp("whole"))


def read(kind: str, data: bytes, folder: Path) -> bool:
    """Read a file; return whether it had documents, and check the error if it had none."""
    format, _, suffix = kind.partition(".")
    path = folder / f"x.{suffix}"
    path.write_bytes(data)
    if format == "brat":
        (folder / "x.txt").write_text(f"{CANARY} Pérez tiene fiebre alta y otras cosas más")
    elif format in ("i2b2-2010", "share-clef"):
        (folder / "x.txt").write_text(TEXT)
        path = folder / "x.txt" if format == "share-clef" else path
    elif format == "inception":
        (folder / TYPE_SYSTEM).write_text(format_type_system())
    try:
        return bool(read_as_users_do(format, path))
    except Exception as error:
        check_message(error, "x.")
        return False


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files(whole: dict[str, bytes], kind: str, tmp_path: Path) -> None:
    assert read(kind, whole[kind], tmp_path)
    damaged = [*truncated(whole[kind], 25)]
    if kind != "spacy.spacy":
        damaged += recoded(whole[kind])
    rng = random.Random(17)
    damaged += [mutated(whole[kind], rng) for _ in range(35)]
    n_read = sum(read(kind, data, tmp_path) for data in damaged)
    assert n_read < len(damaged)


@pytest.mark.parametrize(
    "n",
    [
        pytest.param(150, marks=pytest.mark.slow),
        pytest.param(100_000, marks=pytest.mark.full),  # at every byte
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_files_damaged_at_many_places(
    whole: dict[str, bytes], kind: str, n: int, tmp_path: Path
) -> None:
    rng = random.Random(18)
    for data in truncated(whole[kind], n):
        read(kind, data, tmp_path)
    for _ in range(min(n, 2000)):
        read(kind, mutated(whole[kind], rng), tmp_path)


LAUGHS = "".join(f'<!ENTITY l{i + 1} "{f"&l{i};" * 10}">' for i in range(9))
BILLION = f'<!DOCTYPE r [<!ENTITY l0 "{CANARY}">{LAUGHS}]>'
XXE = '<!DOCTYPE r [<!ENTITY l9 SYSTEM "file:///etc/hostname">]>'
I2B2 = (
    "<r><TEXT><![CDATA[{text}]]></TEXT><TAGS><A id='1' start='{start}' end='{end}' text='{x}'/>"
    "</TAGS></r>"
)
BIOC = (
    "<collection><source/><date/><key/><document><id>d</id><passage><offset>{offset}</offset>"
    "<text>{text}</text><annotation id='T1'><infon key='type'>A</infon>"
    "<location offset='{start}' length='{n}'/><text/></annotation></passage></document>"
    "</collection>"
)
BIOC_JSON = (
    '{"source": "", "date": "", "key": "", "infons": {}, "documents": [{"id": ID, "infons": {}, '
    '"passages": [{"offset": OFFSET, "infons": {}, "text": TEXT, "sentences": [], '
    '"annotations": [SPAN], "relations": []}], "annotations": [], "relations": []}]}'
)


def bioc(**values: object) -> str:
    return BIOC.format(**{"offset": 0, "text": CANARY, "start": 0, "n": 3, **values})


def bioc_json(**values: str) -> str:
    content = BIOC_JSON
    for name, value in {
        "ID": '"1"',
        "SPAN": "",
        "OFFSET": "0",
        "TEXT": f'"{CANARY}"',
        **values,
    }.items():
        content = content.replace(name, value)
    return content


def bioc_span(label: str) -> str:
    place = '{"offset": 0, "length": 3}'
    return f'{{"id": "T1", "infons": {{"type": "{label}"}}, "text": "", "locations": [{place}]}}'


def i2b2(**values: object) -> str:
    return I2B2.format(**{"text": CANARY, "start": 0, "end": 3, "x": "", **values})


def pubtator(*fields: str, id: str = "1") -> str:
    line = "\t".join((id, *fields)) + "\n" if fields else ""
    return f"{id}|t|{CANARY}\n{id}|a|fiebre\n{line}"


REFUSED = {
    "entities that grow": ("i2b2.xml", BILLION + i2b2(x="&l9;")),
    "entities that grow, BioC": ("bioc.xml", BILLION + bioc(text="&l9;")),
    "an entity from a file": ("i2b2.xml", XXE + i2b2(x="&l9;")),
    "an entity from a file, BioC": ("bioc.xml", XXE + bioc(text="&l9;")),
    "offset of a passage too large": ("bioc.xml", bioc(offset=99999999999)),
    "offset of a passage negative": ("bioc.xml", bioc(offset=-1)),
    "offset of a passage not ASCII": ("bioc.xml", bioc(offset="²")),
    "offset of a passage with 5000 digits": ("bioc.xml", bioc(offset="9" * 5000)),
    "offset of a passage a fraction": ("bioc.json", bioc_json(OFFSET="1.5")),
    "offset of a passage true": ("bioc.json", bioc_json(OFFSET="true")),
    "offset of a passage infinite": ("bioc.json", bioc_json(OFFSET="1e400")),
    "text a list": ("bioc.json", bioc_json(TEXT=f'["{CANARY}"]')),
    "id a list": ("bioc.json", bioc_json(ID=f'["{CANARY}"]')),
    "documents a string": ("bioc.json", f'{{"documents": "{CANARY}"}}'),
    "100,000 brackets": ("bioc.json", '{"a":' + "[" * 100_000),
    "annotation before the text": ("bioc.xml", bioc(start=-3)),
    "annotation of negative length": ("bioc.xml", bioc(start=5, n=-3)),
    "annotation behind the text": ("bioc.xml", bioc(start=5, n=99999999999)),
    "superscript digit as offset": ("pubtator.txt", pubtator("²", "3", "x", "A", "C")),
    "offset with 5000 digits": ("pubtator.txt", pubtator("0", "9" * 5000, "x", "A", "C")),
    "offsets reversed": ("pubtator.txt", pubtator("3", "0", "x", "A", "C")),
    "offset negative": ("pubtator.txt", pubtator("-1", "3", "x", "A", "C")),
    "NUL in an id": ("pubtator.txt", pubtator(id="1\0")),
    "no document": ("pubtator.txt", CANARY),
    "superscript digit, brat": ("brat.ann", f"T1\tA ² 3\t{CANARY}\n"),
    "5000 digits, brat": ("brat.ann", f"T1\tA 0 {'9' * 5000}\t{CANARY}\n"),
    "reversed, brat": ("brat.ann", f"T1\tA 3 0\t{CANARY}\n"),
    "superscript digit, i2b2": ("i2b2.xml", i2b2(end="²")),
    "Arabic digit, i2b2": ("i2b2.xml", i2b2(end="٣")),
    "no tags, only text": ("columns.conll", f"{CANARY}\n"),
    "blank in a word": ("columns.conll", f"{CANARY} x\tO\n"),
    "half a surrogate pair in a label": ("bioc.json", bioc_json(SPAN=bioc_span(label="T\\ud800"))),
    "half a surrogate pair in a text": ("bioc.json", bioc_json(TEXT='"\\ud800"')),
    "a name of 5000 characters": ("i2b2.xml", i2b2(end="²").replace("<A ", f"<{'A' * 5000} ")),
    "not a DocBin": ("spacy.spacy", CANARY),
    "msgpack of something else": ("spacy.spacy", zlib.compress(srsly.msgpack_dumps([CANARY]))),
    "empty": ("spacy.spacy", ""),
}


def test_refused_files(tmp_path: Path) -> None:
    for name, (kind, content) in REFUSED.items():
        data = content if isinstance(content, bytes) else content.encode()
        folder = tmp_path / name.replace("/", " ")
        folder.mkdir()
        assert not read(kind, data, folder), name


def test_documents_beside_a_bad_one_are_read_and_the_bad_one_is_counted(tmp_path: Path) -> None:
    content = "\n".join(
        [pubtator(id="1"), pubtator("²", "3", "x", "A", "C", id="2"), pubtator(id="3")]
    )
    (tmp_path / "x.txt").write_text(content)
    skipped: list[BioclinError] = []
    documents = FORMATS["pubtator"].read(
        tmp_path / "x.txt", lambda name, error: skipped.append(error)
    )
    assert [document.id for document in documents] == ["1", "3"] and len(skipped) == 1
    check_message(skipped[0], "x.txt", "line 6")


def test_bioc_with_a_document_type_and_gaps_is_read(tmp_path: Path) -> None:
    """The files of the field begin with a DOCTYPE, and leave parts of an article out."""
    path = tmp_path / "x.xml"
    path.write_text('<!DOCTYPE collection SYSTEM "BioC.dtd">' + bioc(offset=5000, start=5000))
    [document] = FORMATS["bioc"].read(path)  # type: ignore[call-arg]
    assert document.text == "\n" * 5000 + CANARY


NO_FILES = ["pipe", "link", "loop", "folder", "device"]


@pytest.mark.parametrize("turn", range(2))
def test_what_is_not_a_file_is_refused_at_once(turn: int, tmp_path: Path) -> None:
    """By each format; what it is takes turns."""
    for number, (format, form) in enumerate(FORMATS.items()):
        name = NO_FILES[(number + 2 * turn) % len(NO_FILES)]
        path = tmp_path / f"{format}{form.suffixes[0]}"
        if name == "pipe":
            os.mkfifo(path)
        elif name == "link":
            path.symlink_to(tmp_path / "nowhere")
        elif name == "loop":
            path.symlink_to(path)
        elif name == "folder":
            path.mkdir()
        else:
            path.symlink_to("/dev/zero")
        with pytest.raises(BioclinError) as caught:
            convert_to_docs(format, [path], tmp_path / "out.spacy", lang="es")
        check_message(caught.value, path.stem)
        assert not (tmp_path / "out.spacy").exists(), (format, name)


def test_many_annotations(tmp_path: Path) -> None:
    spans = "".join(f"T{i}\tA {i % 40} {i % 40 + 4}\tx\n" for i in range(20_000))
    (tmp_path / "x.txt").write_text("hola " * 10)
    (tmp_path / "x.ann").write_text(spans)
    [document] = FORMATS["brat"].read(tmp_path / "x.ann")  # type: ignore[call-arg]
    assert len(document.annotations) == 20_000


def test_docbin_that_unpacks_to_more_than_spacy_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.spacy"
    path.write_bytes(zlib.compress(bytes(2**22)))
    monkeypatch.setattr("spacy_bioclin.corpora.docbin.MAX_BYTES", 2**20)
    with pytest.raises(BioclinError) as caught:
        list(read_docs(path, Vocab()))
    check_message(caught.value, "x.spacy", "holds more than")


def test_docbin_does_not_unpickle(whole: dict[str, bytes], tmp_path: Path) -> None:
    """An array of objects, which other readers of msgpack unpickle."""
    code = b"cos\nsystem\n(S'touch executed'\ntR."
    evil = {b"nd": True, b"type": "|O", b"kind": b"O", b"shape": (1,), b"data": code}
    content = srsly.msgpack_loads(zlib.decompress(whole["spacy.spacy"]))
    content["user_data"] = [srsly.msgpack_dumps({"x": evil})]
    path = tmp_path / "x.spacy"
    path.write_bytes(zlib.compress(srsly.msgpack_dumps(content)))
    with pytest.raises(BioclinError) as caught:
        list(read_docs(path, Vocab()))
    check_message(caught.value, "x.spacy")
    assert not Path("executed").exists() and not (tmp_path / "executed").exists()


def annotated(labels: object) -> bytes:
    """Pack the user data of the whole Doc as if it was annotated for some labels."""
    layers = {"ents": [[0, 20, "PER", "C1"], [27, 33, "DIS", ""]]}
    gold = {"id": "d1", "task": "t", "layers": layers, "annotated": labels}
    return srsly.msgpack_dumps({"bioclin_gold": gold})


def source(annotation: list[object]) -> bytes:
    """Pack the user data of the whole Doc as if its file had one annotation."""
    spans = [[0, 20, "PER", "C1"], [27, 33, "DIS", ""]]
    gold = {"id": "d1", "task": "t", "layers": {"ents": spans}}
    return srsly.msgpack_dumps({"bioclin_gold": gold, "bioclin_source": [annotation]})


WRONG_PARTS: list[dict[str, object]] = [
    {"attrs": []},
    {"attrs": [99999]},
    {"lengths": b"\0"},
    {"strings": []},
    {"cats": []},
    {"tokens": b""},
    {"span_groups": [b"\xc1"]},
    {"user_data": [b"\xc1"]},
    {"user_data": [srsly.msgpack_dumps({"bioclin_gold": {"id": CANARY}})]},
    {"user_data": [source(["span", "T1", "A", [[0, 3]], "", -13])]},
    {"user_data": [source(["span", "T1", "A", [[0, 3]], "", "C1"])]},
    {"user_data": [source(["span", "T1", "A", [], "", []])]},
    {"user_data": [source(["span", "T1", "A", [[0, 999]], "", []])]},
    {"user_data": [source(["span", "T1", 7, [[0, 3]], "", []])]},
    {"user_data": [source(["relation", "R1", "rel", [["Arg1"]]])]},
    {"user_data": [source(["other", 7, "E1"])]},
    {"user_data": [srsly.msgpack_dumps({"bioclin_gold": {"layers": {"ents": [[9, 1]]}}})]},
    {"user_data": [annotated(None)]},
    {"user_data": [annotated(["PER", "DIS"])]},
    {"user_data": [annotated({"ents": None})]},
    {"user_data": [annotated({"ents": "PER"})]},
    {"user_data": [annotated({"ents": ["PER", 7]})]},
    {"user_data": [annotated({"ents": [["PER"]]})]},
    {"user_data": [annotated({7: ["PER"]})]},
]


def test_docbin_with_wrong_parts(whole: dict[str, bytes], tmp_path: Path) -> None:
    content = srsly.msgpack_loads(zlib.decompress(whole["spacy.spacy"]))
    for change in WRONG_PARTS:
        data = zlib.compress(srsly.msgpack_dumps({**content, **change}))
        assert not read("spacy.spacy", data, tmp_path), change
