"""UMLS and RxNorm: an invented release in the layout of the real ones."""

import gzip
from pathlib import Path

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.kb.concepts import Alias, Concept, SkipReport
from spacy_bioclin.linking.readers.releases.rrf import read_rrf

UMLS = {
    # CUI LAT TS LUI STT SUI ISPREF AUI SAUI SCUI SDUI SAB TTY CODE STR SRL SUPPRESS CVF
    "MRCONSO.RRF": """\
C0000001|ENG|S|L1|PF|S1|Y|A1||||MSH|ET|D900001|Blue cough|0|N||
C0000001|ENG|P|L2|VO|S2|Y|A2||||SNOMEDCT_US|SY|7001|Cerulean coughs|9|N||
C0000001|ENG|P|L2|PF|S3|Y|A3||||SNOMEDCT_US|PT|7001|Cerulean cough|9|N|256|
C0000001|ENG|P|L2|PF|S3|N|A4||||MSH|MH|D900001|Cerulean cough|0|N|256|
C0000001|ENG|S|L3|PF|S4|Y|A5||||MTH|XX|NOCODE|Cough, old blue|0|O||
C0000001|FIN|P|L4|PF|S5|Y|A6||||MSHFIN|MH|D900001|Sininen yskä|3|N||
C0000001|SPA|S|L5|PF|S6|Y|A7||||MSHSPA|ET|D900001|Tos color cielo|3|N||
C0000001|SPA|P|L6|PF|S7|Y|A8||||SCTSPA|PT|7001|tos cerúlea|9|N||
C0000002|ENG|P|L7|PF|S8|Y|A9||||SNOMEDCT_US|PT|7002|Cough|9|N||
C0000003|ENG|P|L8|PF|S9|Y|A10||||MSH|MH|D900003|Azurol|0|N||
C0000004|ENG|P|L9|PF|S10|Y|A11||||MSH|MH|D900004|Gone concept|0|E||
C0000005|ENG|P|L10|PF|S11|Y|A12||||MSH|MH|D900005|Half a row
""",
    "MRSTY.RRF": """\
C0000001|T047|B2.2.1.2.1|Disease or Syndrome|AT1|256|
C0000001|T184|A2.2.2|Sign or Symptom|AT2||
C0000002|T184|A2.2.2|Sign or Symptom|AT3||
C0000003|T109|A1.4.1.2.1|Organic Chemical|AT4||
C0000004|T047|B2.2.1.2.1|Disease or Syndrome|AT5||
""",
    "MRDEF.RRF": """\
C0000001|A6|AT6||MSHFIN|Yskä, joka on sininen.|N||
C0000001|A4|AT7||MSH|An old text.|O||
C0000001|A4|AT8||MSH|A cough that is blue.|N||
C0000004|A11|AT9||MSH|Of a concept without a name.|N||
""",
    # CUI1 AUI1 STYPE1 REL CUI2 AUI2 STYPE2 RELA RUI SRUI SAB SL RG DIR SUPPRESS CVF
    "MRREL.RRF": """\
C0000001|A3|SCUI|PAR|C0000002|A9|SCUI|inverse_isa|R1||SNOMEDCT_US|SNOMEDCT_US||N|N||
C0000001|A3|AUI|PAR|C0000001|A4|AUI||R2||MSH|MSH||N|N||
C0000001|A3|AUI|PAR|C0000004|A11|AUI||R3||MSH|MSH||N|N||
C0000001|A3|AUI|PAR|C0000003|A10|AUI||R4||MSH|MSH||N|O||
C0000002|A9|SCUI|CHD|C0000001|A3|SCUI|isa|R5||SNOMEDCT_US|SNOMEDCT_US||N|N||
C0000002|A9|SCUI|RO|C0000003|A10|SCUI||R6||SNOMEDCT_US|SNOMEDCT_US||N|N||
""",
    "MRCUI.RRF": """\
C0000009|2020AA|SY|||C0000001|Y|
C0000008|2020AA|RO|||C0000001|Y|
C0000007|2020AA|DEL||||N|
""",
}

RXNORM = {
    "RXNCONSO.RRF": """\
101|ENG||||||201|||V1|MTHSPL|SU|U1|AZUROL SODIUM||N||
101|ENG||||||202|202|101||RXNORM|SY|101|Azurol, sodium salt||N||
101|ENG||||||203|203|101||RXNORM|PIN|101|azurol sodium||N|4096|
102|ENG||||||204|204|102||RXNORM|IN|102|azurol||N|4096|
102|ENG||||||205|205|102||RXNORM|TMSY|102|AZUROL||Y||
""",
    "RXNSTY.RRF": "101|T109|A1.4.1.2.1|Organic Chemical|AT1||\n",
    "RXNREL.RRF": """\
101||CUI|RB|102||CUI|inverse_isa|1||RXNORM|RXNORM||||4096|
102||CUI|RN|101||CUI|isa|2||RXNORM|RXNORM||||4096|
|201|AUI|RB||204|AUI|inverse_isa|3||MTHSPL|MTHSPL|||||
""",
    "RXNCUI.RRF": """\
90|20AA|20AB|1|102|
91|20AA|20AB|2|102|
102|20AA|20AB|1|102|
""",
}


def write(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def read(folder: Path, **options: list[str]) -> tuple[dict[str, list[Concept]], SkipReport]:
    """RETURNS: id -> its records, and the report."""
    report = SkipReport()
    found: dict[str, list[Concept]] = {}
    for concept in read_rrf(folder, report, **options):
        found.setdefault(concept.id, []).append(concept)
    return found, report


def test_umls(tmp_path: Path) -> None:
    found, report = read(write(tmp_path / "META", UMLS))
    assert found["C0000001"] == [
        Concept(
            "C0000001",
            "Cerulean cough",
            "en",
            (
                Alias("Cerulean coughs", "en"),
                Alias("Blue cough", "en"),
                Alias("Sininen yskä", "fi"),
                Alias("tos cerúlea", "es"),
                Alias("Tos color cielo", "es"),
            ),
            xrefs=(
                "SNOMEDCT_US:7001",
                "MSH:D900001",
                "MSHFIN:D900001",
                "SCTSPA:7001",
                "MSHSPA:D900001",
            ),
        ),
        Concept("C0000001", types=("T047", "T184")),
        Concept("C0000001", definition="A cough that is blue."),
        Concept("C0000001", parents=("C0000002",)),
        Concept("C0000001", alternative_ids=("C0000009",)),
    ]
    assert set(found) == {"C0000001", "C0000002", "C0000003"}  # 4 is suppressed, 5 a half row
    assert report.counts == {
        "suppressed: obsolete (SUPPRESS O)": 1,
        "suppressed: by an editor (SUPPRESS E)": 1,
        "row without 18 columns": 1,
        "parent that was not kept": 1,
        "parent suppressed or of another vocabulary": 1,
    }
    wrong_row = f"{tmp_path / 'META' / 'MRCONSO.RRF'}, line 12"
    assert report.places["row without 18 columns"] == [wrong_row]


def test_release_above_meta_is_found_and_files_may_be_compressed(tmp_path: Path) -> None:
    plain, _ = read(write(tmp_path / "plain", UMLS))
    folder = write(tmp_path / "2024AA" / "META", UMLS)
    path = folder / "MRCONSO.RRF"
    with gzip.open(folder / "MRCONSO.RRF.gz", "wt", encoding="utf-8") as file:
        file.write(path.read_text(encoding="utf-8"))
    path.unlink()
    assert read(tmp_path / "2024AA")[0] == plain


def test_vocabularies(tmp_path: Path) -> None:
    found, report = read(write(tmp_path, UMLS), vocabularies=["SCTSPA", "SNOMEDCT_US"])
    assert set(found) == {"C0000001", "C0000002"}
    concept = found["C0000001"][0]
    assert [concept.name, *(alias.text for alias in concept.aliases)] == [
        "Cerulean cough",
        "Cerulean coughs",
        "tos cerúlea",
    ]
    assert not any(concept.definition for concept in found["C0000001"])  # it is of MSH
    assert report.counts["name of another vocabulary"] == 7


def test_types_let_no_record_of_another_concept_through(tmp_path: Path) -> None:
    found, report = read(write(tmp_path, UMLS), types=["T109", "T184"])
    assert set(found) == {"C0000001", "C0000002", "C0000003"}
    found, report = read(tmp_path, types=["T109"])
    assert set(found) == {"C0000003"}
    assert report.counts["name of a concept of another type"] == 10


def test_filter_that_nothing_meets(tmp_path: Path) -> None:
    write(tmp_path, UMLS)
    with pytest.raises(BioclinError, match="T999; there are T047 Disease or Syndrome, T109"):
        read(tmp_path, types=["T999"])
    with pytest.raises(BioclinError, match="vocabulary SNOMED; there are MSH, MSHFIN"):
        read(tmp_path, vocabularies=["MSH", "SNOMED"])


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(BioclinError, match=r"no MRCONSO\.RRF .* give the folder"):
        read(tmp_path)
    names = {"MRCONSO.RRF": UMLS["MRCONSO.RRF"]}
    found, report = read(write(tmp_path, names))
    assert found["C0000002"] == [
        Concept("C0000002", "Cough", "en", xrefs=("SNOMEDCT_US:7002",)),
    ]
    missing = {f"file missing: {name}" for name in UMLS if name != "MRCONSO.RRF"}
    assert missing <= set(report.counts)
    with pytest.raises(BioclinError, match=r"no MRSTY\.RRF, which is needed for the types T047"):
        read(tmp_path, types=["T047"])


def test_file_of_another_layout(tmp_path: Path) -> None:
    for n_rows in (3, 500):
        text = "C0000001\tENG\tP\tCerulean cough\n" * n_rows
        with pytest.raises(BioclinError, match=r"MRCONSO\.RRF: none of its first \d+ .* the 18"):
            read(write(tmp_path, {"MRCONSO.RRF": text}))


def test_names_of_a_concept_in_two_places(tmp_path: Path) -> None:
    first, *rest = UMLS["MRCONSO.RRF"].splitlines(keepends=True)
    found, _ = read(write(tmp_path, {"MRCONSO.RRF": "".join([*rest, first])}))
    assert [concept.name for concept in found["C0000001"]] == ["Cerulean cough", "Blue cough"]


def test_rxnorm(tmp_path: Path) -> None:
    found, report = read(write(tmp_path / "rrf", RXNORM).parent)
    assert found == {
        "101": [
            Concept(
                "101",
                "azurol sodium",
                "en",
                (Alias("Azurol, sodium salt", "en"), Alias("AZUROL SODIUM", "en")),
                xrefs=("MTHSPL:U1",),
            ),
            Concept("101", types=("T109",)),
            Concept("101", parents=("102",)),
        ],
        "102": [Concept("102", "azurol", "en"), Concept("102", alternative_ids=("90",))],
    }
    assert report.counts == {"suppressed: by its kind of name (SUPPRESS Y)": 1}
