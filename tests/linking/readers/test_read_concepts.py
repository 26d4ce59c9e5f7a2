"""Any source: formats found out, languages filled in, and errors that say what to do."""

import lzma
from pathlib import Path

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.kb.concepts import Alias, Concept, SkipReport
from spacy_bioclin.linking.readers import detect_format, read_concepts

SOURCES = {
    "a.obo": ("obo", "[Term]\nid: A\nname: a\n"),
    "a.txt": ("obo", "format-version: 1.2\n\n[Term]\nid: A\nname: a\n"),
    "b.jsonl": ("jsonl", '{"id": "A", "name": "a"}\n'),
    "b.json": ("jsonl", '{"id": "A", "name": "a"}\n'),
    "c.ttl": ("skos", '<urn:A> a skos:Concept ; skos:prefLabel "a" .\n'),
    "d.txt": ("names", "A||a\nB||b, c\n"),
    "e.csv": ("table", "id,name\nA,a\n"),
    "f.tsv": (
        "babelon",
        "source_language\ttranslation_language\tsubject_id\tsource_value\tpredicate_id\t"
        "translation_value\ttranslation_status\nen\tes\tA\ta\trdfs:label\tb\tOFFICIAL\n",
    ),
    "g.xml": ("skos", '<?xml version="1.0"?>\n<rdf:RDF\n xmlns="x">\n</rdf:RDF>\n'),
    "h.xml": ("mesh-xml", '<?xml version="1.0"?>\n<!DOCTYPE x>\n<DescriptorRecordSet>\n'),
    "i.tsv": ("mesh-tsv", "DescriptorUI\tDescriptorName\ttree_location\nD1\ta\tC01\n"),
}


def test_formats_are_found_out(tmp_path: Path) -> None:
    found = {}
    for name, (_, text) in SOURCES.items():
        plain, packed = tmp_path / name, tmp_path / f"{name}.xz"
        plain.write_text(text, "utf-8")
        packed.write_bytes(lzma.compress(text.encode()))
        found[name] = (detect_format(plain), detect_format(packed))
    assert found == {name: (format, format) for name, (format, _) in SOURCES.items()}


UNKNOWN = [
    ("x.tsv", "foo\tbar\n"),
    ("x.txt", "Just some text.\n"),
    ("x.txt", ""),
    ("x.xml", "<?xml version='1.0'?>\n<note/>\n"),
    ("x.bin", "\x00\x01\x02"),
    ("MRCONSO.RRF", "C1|ENG|P|L1|PF|S1|Y|A1||M1|D1|MSH|MH|D1|pain|0|N|256|\n"),
]


def test_an_unknown_format_is_an_error_that_lists_them(tmp_path: Path) -> None:
    for name, text in UNKNOWN:
        (tmp_path / name).write_text(text, "utf-8")
        with pytest.raises(BioclinError, match=r"not recognised .*obo, babelon, skos"):
            list(read_concepts(tmp_path / name, SkipReport()))


RELEASES = [
    ("rrf", "META/MRCONSO.RRF"),
    ("rrf", "RXNCONSO.RRF.gz"),
    ("rf2", "Snapshot/Terminology/sct2_Concept_SpanishExtensionSnapshot_INT_20990101.txt"),
]


def test_releases_are_found_out_by_their_files(tmp_path: Path) -> None:
    for i, (format, file) in enumerate(RELEASES):
        path = tmp_path / str(i) / file
        path.parent.mkdir(parents=True)
        path.touch()
        assert detect_format(tmp_path / str(i)) == format


def test_folders_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(BioclinError, match="not recognised as a terminology"):
        detect_format(tmp_path)
    with pytest.raises(BioclinError, match="no such file or folder"):
        detect_format(tmp_path / "x.obo")


def read(path: Path, **options: object) -> tuple[list[Concept], SkipReport]:
    report = SkipReport()
    return list(read_concepts(path, report, **options)), report  # type: ignore[arg-type]


def test_the_language_is_filled_in_where_none_is_stated(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(
        '{"id": "A", "name": "a", "aliases": [["b", "en"], "c"]}\n{"id": "B", "aliases": ["d"]}\n'
    )
    concepts, _ = read(path, lang="es")
    assert concepts == [
        Concept("A", "a", "es", aliases=(Alias("b", "en"), Alias("c", "es"))),
        Concept("B", aliases=(Alias("d", "es"),)),
    ]


def test_columns_make_a_table_of_any_file(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("foo|bar\nA|a\n")
    assert read(path, columns={"id": "foo", "name": "bar"})[0] == [Concept("A", "a")]
    with pytest.raises(BioclinError, match="columns are for format table"):
        read(path, columns={"id": "foo", "name": "bar"}, format="names")


def test_ids_that_come_again_are_counted_where_a_concept_stands_once(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("A||a\nB||b\nA||c\n")
    concepts, report = read(path)
    assert [concept.name for concept in concepts] == ["a", "b", "c"]
    assert report.places == {"id that came before: records joined": [f"{path}, A"]}
    table = tmp_path / "x.tsv"
    table.write_text("id\tname\nA\ta\nA\tc\n")
    assert not read(table)[1].counts


def test_nothing_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_text("id\tname\nA;a\nB;b\n")
    with pytest.raises(BioclinError, match=r"no concept in it, read as table \(no name: 2\)"):
        read(path)
    with pytest.raises(BioclinError, match=r"read as jsonl \(broken JSON: 3\)"):
        read(path, format="jsonl")
    with pytest.raises(BioclinError, match=r"format 'owl': unknown; there are obo"):
        read(path, format="owl")


def test_a_truncated_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.obo.xz"
    text = "".join(f"[Term]\nid: T:{n}\nname: name {n * n}\n\n" for n in range(5000))
    path.write_bytes(lzma.compress(text.encode())[:-2000])
    with pytest.raises(BioclinError, match="the file may be cut off"):
        read(path)


CP1252 = "Código;Descripción\nJ45;Asma\nK25;Úlcera gástrica\n".encode("cp1252")
NOT_UTF8 = r"x\.csv: is not UTF-8 text \({}\); if it is Windows-1252 .*iconv -f WINDOWS-1252"


def test_a_table_in_another_encoding_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    for columns in (None, {"id": "Código", "name": "Descripción"}, {"id": "1", "name": "2"}):
        for before in (b"", b"\r\n \n"):
            path.write_bytes(before + CP1252)
            number = 1 + before.count(b"\n")
            with pytest.raises(BioclinError, match=NOT_UTF8.format(f"line {number} is not")):
                read(path, columns=columns)


SINGLE_LINES = [
    (2, 1, False),
    (1, 2, False),
    (0, 3, True),
    (295, 3, True),
    (296, 3, False),
    (900, 9, False),
]


def test_single_lines_in_another_encoding_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    for n_good, n_wrong, is_error in SINGLE_LINES:
        rows = ["K25;Úlcera\n"] * n_wrong + [f"A{i};Asma\n" for i in range(n_good)]
        path.write_bytes(("codigo;nombre\n" + "".join(rows)).encode("cp1252"))
        if is_error:
            where = f"{n_wrong} of its {1 + n_wrong + n_good} lines are not"
            with pytest.raises(BioclinError, match=NOT_UTF8.format(where)):
                read(path)
        else:
            concepts, report = read(path)
            assert len(concepts) == n_good
            assert report.counts == {"line is not UTF-8": n_wrong}


def test_a_line_without_end_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spacy_bioclin.linking.readers.lines.MAX_LINE_BYTES", 100)
    path = tmp_path / "x.tsv"
    path.write_text("id\tname\nA\t" + "a" * 1000 + "\nB\tb\n")
    concepts, report = read(path)
    assert concepts == [Concept("B", "b")]
    assert report.places == {"line over 100 bytes": [f"{path}, line 2"]}
