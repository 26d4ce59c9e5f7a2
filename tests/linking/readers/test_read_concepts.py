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
    "b2.json": ("jsonl", '[{"id": "A", "name": "a"},\n{"id": "B", "name": "b"}]'),
    "b3.json": ("fhir", '{\n  "resourceType": "CodeSystem"}\n'),
    "b4.json": ("obographs", '{\n  "graphs": []}\n'),
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
]
# What is not read -> what the error says that it is.
UNREAD = {
    "MRCONSO.RRF": ("C1|ENG|P|L1|PF|S1|Y|A1||M1|D1|MSH|MH|D1|pain|0|N|256|\n", "of UMLS or RxNorm"),
    "sct2.txt": ("id\teffectiveTime\tactive\tmoduleId\tx\n", "a single file of SNOMED CT"),
    "hp.owl": ('<rdf:RDF xmlns:owl="x">\n<owl:Ontology/>\n', r"is OWL; give the \.obo or \.json"),
    "o.ttl": ("@prefix owl: <http://x/owl#> .\n:a a owl:Class .\n", "is OWL; .*robot convert"),
    "o.ofn": ("Prefix(:=<urn:a>)\nOntology(<urn:a>)\n", "is OWL"),
    "icd.xml": ('<?xml version="1.0"?>\n<ClaML version="2.0">\n', "is ClaML"),
    "cima.xml": ("<aemps_prescripcion>\n", "the XML of CIMA"),
    "fhir.xml": ('<CodeSystem xmlns="http://hl7.org/fhir">\n', "is FHIR in XML; give it as JSON"),
    "codes.txt": ("A000    Blue fever\nA001    Mild\n", "fixed width; give the order file"),
    "a.csv": ("<!DOCTYPE html>\n<html>\n", "an HTML page; .*login"),
    "a.pdf": ("%PDF-1.7\n", "is a PDF"),
    "a.docx": ("PK\x03\x04", "a zip archive or an Office document"),
    "a.db": ("SQLite format 3\0", "an SQLite database"),
    "a.sql": ("CREATE TABLE icd (a int);\n", "a dump of a database"),
    "a.jsonld": ('{\n"@context": {}}\n', "is JSON-LD"),
    "a.json": ('{\n"asthma": "A"}\n', "is JSON of an unknown layout; there are FHIR"),
    "a.zip": ("PK\x03\x04", "cannot be read as a zip archive"),
    "a.xlsx": ("PK\x03\x04", "cannot be read as a workbook"),
}


def test_what_is_not_read_is_said_by_its_name(tmp_path: Path) -> None:
    for name, (text, message) in UNREAD.items():
        (tmp_path / name).write_text(text, "utf-8")
        with pytest.raises(BioclinError, match=message):
            list(read_concepts(tmp_path / name, SkipReport()))


def test_an_unknown_format_is_an_error_that_lists_them(tmp_path: Path) -> None:
    for name, text in UNKNOWN:
        (tmp_path / name).write_text(text, "utf-8")
        with pytest.raises(BioclinError, match=r"not recognised .*obo, obographs, babelon, skos"):
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


TABLE = "codigo;nombre\nA1;Asma\nA2;{}\n"
# Names, and encodings in which they are read; in all others they are an error.
ENCODED = {
    "Úlcera gástrica": "utf-8 utf-8-sig cp1252 latin-1 utf-16 utf-16-le utf-16-be",
    "NEUMONÍA": "utf-8 cp1252 latin-1 utf-16",
    "NEUMONíA": "utf-8 cp1252",
    "Crohn’s disease": "utf-8 cp1252",
    "38 °C": "utf-8 cp1252",
    "hipotálamo–hipófisis": "utf-8 cp1252",
}
OTHERS = ("cp850", "mac_roman", "utf-32")


def test_an_encoding_is_right_or_an_error(tmp_path: Path) -> None:
    path, wrong = tmp_path / "x.csv", []
    for name, encodings in ENCODED.items():
        for encoding in (*encodings.split(), *OTHERS):
            path.write_bytes(TABLE.format(name).encode(encoding, "replace"))
            try:
                found = read(path)[0][1].name
            except BioclinError:
                found = ""
            lossless = TABLE.format(name).encode(encoding, "replace").decode(encoding)
            expected = "" if encoding in OTHERS else name
            if found != expected and name in lossless:
                wrong.append((name, encoding, found))
    assert wrong == []


FAULTS = {
    # two encodings in one file
    "Úlcera".encode() + b"\nA3;" + "Úlcera".encode("cp1252"): "line 4: is not in the encoding of",
    # UTF-8 that was taken for Windows-1252 and saved again
    "Úlcera".encode().decode("cp1252").encode(): "1 of its 1 lines with accents have broken",
    "Диабет".encode("cp1251"): "line 3: is neither UTF-8 nor Windows-1252; .*iconv",
    "糖尿病".encode("gbk"): "line 3: is neither UTF-8 nor Windows-1252",
    "Żółtaczka".encode("latin2"): "line 3: is neither UTF-8 nor Windows-1252",
}


def test_characters_that_are_not_sure_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    for name, message in FAULTS.items():
        path.write_bytes(TABLE.encode().replace(b"{}", name))
        for columns in (None, {"id": "codigo", "name": "nombre"}, {"id": "1", "name": "2"}):
            with pytest.raises(BioclinError, match=message):
                read(path, columns=columns)


def test_lines_in_another_encoding_are_read_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    for n_good, n_wrong in ((2, 1), (0, 3), (900, 9)):
        rows = ["K25;Úlcera\n"] * n_wrong + [f"A{i};Asma\n" for i in range(n_good)]
        path.write_bytes(("codigo;nombre\n" + "".join(rows)).encode("cp1252"))
        concepts, report = read(path)
        assert [c.name for c in concepts] == ["Úlcera"] * n_wrong + ["Asma"] * n_good
        assert report.counts == {"line that is not UTF-8 (read as Windows-1252)": n_wrong}
    path.write_text("codigo;nombre\nA;Úlcera\nB;Rin\ufffdn\nC;Tos ferina ó\n", "utf-8")
    assert read(path)[1].places == {
        "line with broken characters, such as Ã³ for ó (kept)": [f"{path}, line 3"]
    }


def test_a_line_without_end_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spacy_bioclin.linking.readers.lines.MAX_LINE_BYTES", 100)
    path = tmp_path / "x.tsv"
    path.write_text("id\tname\nA\t" + "a" * 1000 + "\nB\tb\n")
    concepts, report = read(path)
    assert concepts == [Concept("B", "b")]
    assert report.places == {"line over 100 bytes": [f"{path}, line 2"]}
