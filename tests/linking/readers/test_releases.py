"""Releases of OMOP, ICD-10-CM, LOINC and MedDRA, in folders and archives: invented rows in the
layouts of the real ones."""

import zipfile
from pathlib import Path

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.kb.concepts import Alias, Concept, SkipReport
from spacy_bioclin.linking.readers import detect_format, read_concepts
from spacy_bioclin.linking.readers.sources import find_source

# Cells with "^" between them, which is a tab in the files.
OMOP = {
    "CONCEPT.csv": "concept_id^concept_name^domain_id^vocabulary_id^concept_class_id^"
    "standard_concept^concept_code^valid_start_date^valid_end_date^invalid_reason\n"
    '1^"blue" fever^Condition^SNOMED^Disorder^S^71^20000101^20991231^\n'
    "2^fever^Condition^SNOMED^Disorder^S^72^20000101^20991231^\n"
    "3^azure fever^Condition^SNOMED^Disorder^^73^20000101^20100101^U\n"
    "4^A10.0^Condition^ICD10CM^Code^^A10.0^20000101^20991231^\n",
    "CONCEPT_SYNONYM.csv": "concept_id^concept_synonym_name^language_concept_id\n"
    "1^fiebre azul^4182511\n1^azulina^999\n3^old^4180186\n",
    "CONCEPT_RELATIONSHIP.csv": "concept_id_1^concept_id_2^relationship_id^valid_start_date^"
    "valid_end_date^invalid_reason\n"
    "1^2^Is a^1^2^\n3^1^Concept replaced by^1^2^\n4^1^Maps to^1^2^\n",
}
MEDDRA = {
    "pt.asc": "100$Blue fever$$900$$$$$$$$\n",
    "llt.asc": "100$Blue fever$100$$$$$$$Y$$\n101$Azulina$100$$$$$$$Y$$\n102$Old$100$$$$$$$N$$\n",
    "mdhier.asc": "100$300$500$900$Blue fever$Fevers HLT$Fevers HLGT$General$Genrl$$900$Y$\n",
}
ORDER = (
    f"00001 A10     0 {'Blue fever':60} Blue fever\n"
    f"00002 A100    1 {'Blue fever, m':60} Blue fever, mild\n"
)
TABULAR = """<?xml version="1.0"?>
<ICD10CM.tabular><chapter><name>1</name><section id="A10-A19">
<diag><name>A10</name><desc>Blue fever</desc><diag><name>A10.0</name><desc>Blue fever, mild</desc>
<inclusionTerm><note>Azulina</note></inclusionTerm><sevenChrDef/></diag></diag>
</section></chapter></ICD10CM.tabular>
"""
LOINC = """\
LOINC_NUM,COMPONENT,CLASS,STATUS,CONSUMER_NAME,RELATEDNAMES2,SHORTNAME,LONG_COMMON_NAME
"1-8","Azurin","CHEM","ACTIVE","Azurin, Blood","Azur; Blue; Az","Azurin Bld","Azurin in Blood"
"2-6","Azurin","CHEM","DEPRECATED","","","","Azurin old"
"""


def write(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text.replace("^", "\t"), "utf-8")
    return folder


def read(source: Path, **options: object) -> tuple[list[Concept], SkipReport]:
    report = SkipReport()
    return list(read_concepts(source, report, **options)), report  # type: ignore[arg-type]


def test_omop(tmp_path: Path) -> None:
    folder = write(tmp_path / "athena", OMOP)
    concepts, report = read(folder, vocabularies=["SNOMED"])
    types = ("Condition", "Disorder")
    assert concepts == [
        Concept("1", '"blue" fever', "en", types=types, xrefs=("SNOMED:71",)),
        Concept("2", "fever", "en", types=types, xrefs=("SNOMED:72",)),
        Concept("1", aliases=(Alias("fiebre azul", "es"),)),
        Concept("1", aliases=(Alias("azulina", "und"),)),
        Concept("1", parents=("2",)),
        Concept("1", alternative_ids=("3",)),
    ]
    assert report.counts == {
        "retired: invalid_reason U": 1,
        "concept of another vocabulary": 1,
        "synonym of a concept that was not kept": 1,
    }
    with pytest.raises(BioclinError, match="vocabulary LOINC; there are ICD10CM, SNOMED"):
        read(folder, vocabularies=["LOINC"])
    (folder / "CONCEPT_RELATIONSHIP.csv").unlink()
    assert read(folder)[1].counts["file missing: CONCEPT_RELATIONSHIP.csv"] == 1


def test_meddra(tmp_path: Path) -> None:
    concepts, report = read(write(tmp_path / "MedAscii", MEDDRA))
    assert concepts == [
        Concept("100", "Blue fever", types=("PT",)),
        Concept("100", "Blue fever", types=("PT",)),
        Concept("100", aliases=(Alias("Azulina"),), types=("PT",), alternative_ids=("101",)),
        Concept("100", parents=("300",)),
        Concept("300", "Fevers HLT", types=("HLT",), parents=("500",)),
        Concept("500", "Fevers HLGT", types=("HLGT",), parents=("900",)),
        Concept("900", "General", types=("SOC",)),
    ]
    assert report.counts == {"retired: lowest level term that is not current": 1}


def test_icd10cm(tmp_path: Path) -> None:
    path = tmp_path / "icd10cm_order_2031.txt"
    path.write_text(ORDER)
    mild = Concept("A10.0", "Blue fever, mild", "en", parents=("A10",))
    assert read(path)[0] == [
        Concept("A10", "Blue fever", "en", types=("heading",)),
        mild._replace(aliases=(Alias("Blue fever, m", "en"),), types=("billable",)),
    ]
    path.write_text(ORDER.replace("A10", "0A1"))  # ICD-10-PCS has no dots
    assert [concept.id for concept in read(path)[0]] == ["0A1", "0A10"]
    (tmp_path / "x.xml").write_text(TABULAR)
    concepts, report = read(tmp_path / "x.xml")
    assert concepts == [
        Concept("A10", "Blue fever", "en"),
        mild._replace(aliases=(Alias("Azulina", "en"),)),
    ]
    assert report.counts == {"seventh characters, which the order file has as codes": 1}


def test_loinc(tmp_path: Path) -> None:
    (tmp_path / "Loinc.csv").write_text(LOINC)
    concepts, report = read(tmp_path)
    aliases = ("Azurin, Blood", "Azur", "Blue", "Az", "Azurin Bld")
    assert concepts == [
        Concept("1-8", "Azurin in Blood", aliases=tuple(map(Alias, aliases)), types=("CHEM",))
    ]
    assert report.counts["retired: column 'STATUS' says so"] == 1


def test_an_archive_is_read_as_what_is_in_it(tmp_path: Path) -> None:
    omop = write(tmp_path / "omop", OMOP)
    archives = {
        "omop": {f"a/{path.name}": path.read_text() for path in omop.iterdir()},
        "meddra": {f"m/MedAscii/{name}": text for name, text in MEDDRA.items()},
        "icd10cm": {"icd10cm_order_2031.txt": ORDER, "readme.pdf": "%PDF"},
        "rrf": {"rrf/RXNCONSO.RRF": "1|ENG||||||2|2|1||RXNORM|IN|1|azurol||N||\n"},
        "table": {"export.csv": "code;name\nA;Asma\n"},
    }
    for format, files in archives.items():
        path = tmp_path / f"{format}.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for name, text in files.items():
                archive.writestr(name, text)
        source = find_source(str(path))
        assert (source.format, source.files) == (format, (path,))
        concepts, report = read(path)
        assert concepts
        places = [place for found in report.places.values() for place in found]
        assert all(place.startswith(str(path)) or "/" not in place for place in places), places
    assert read(tmp_path / "icd10cm.zip")[1].counts == {"file of the archive that is not read": 1}
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a.csv", "code;name\n")
        archive.writestr("b.csv", "code;name\n")
    with pytest.raises(BioclinError, match=r"x\.zip: 2 files, and no release"):
        detect_format(tmp_path / "x.zip")
