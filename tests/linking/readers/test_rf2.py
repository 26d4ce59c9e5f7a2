"""SNOMED CT: an invented international release and a Spanish extension of it."""

from pathlib import Path

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.kb.build import KbBuilder
from spacy_bioclin.linking.kb.concepts import Alias, Concept, SkipReport
from spacy_bioclin.linking.readers.releases.rf2 import read_rf2

FSN, SYNONYM, DEFINITION = "900000000000003001", "900000000000013009", "900000000000550004"
US, GB, ES = "900000000000509007", "900000000000508004", "448879004"
PREFERRED, ACCEPTABLE = "900000000000548007", "900000000000549004"
REPLACED_BY, POSSIBLY = "900000000000526001", "900000000000523009"
SAME_AS = "900000000000527005"

HEADERS = {
    "Concept": "id effectiveTime active moduleId definitionStatusId",
    "Description": "id effectiveTime active moduleId conceptId languageCode typeId term "
    "caseSignificanceId",
    "Relationship": "id effectiveTime active moduleId sourceId destinationId relationshipGroup "
    "typeId characteristicTypeId modifierId",
    "Language": "id effectiveTime active moduleId refsetId referencedComponentId acceptabilityId",
    "Association": "id effectiveTime active moduleId refsetId referencedComponentId "
    "targetComponentId",
}
HEADERS["TextDefinition"] = HEADERS["Description"]


def concept(own_id: str, active: str = "1", date: str = "20240101") -> list[str]:
    return [own_id, date, active, "M", "900000000000074008"]


def described(
    own_id: str, of: str, kind: str, term: str, lang: str = "en", active: str = "1"
) -> list[str]:
    return [own_id, "20240101", active, "M", of, lang, kind, term, "900000000000448009"]


def related(child: str, parent: str, kind: str = "116680003", active: str = "1") -> list[str]:
    return ["R", "20240101", active, "M", child, parent, "0", kind, "9000", "9001"]


def member(refset: str, component: str, value: str, active: str = "1") -> list[str]:
    return ["uuid", "20240101", active, "M", refset, component, value]


INTERNATIONAL = {
    "Terminology/sct2_Concept_Snapshot_INT_20240101.txt": [
        concept("100"),
        concept("101"),
        concept("102"),
        concept("109", active="0"),
    ],
    "Terminology/sct2_Description_Snapshot-en_INT_20240101.txt": [
        described("1", "100", FSN, "Blue disease (disorder)"),
        described("2", "100", SYNONYM, "Blue disease"),
        described("3", "101", FSN, "Anaemia of the sky (disorder)"),
        described("4", "101", SYNONYM, "Sky anaemia"),
        described("5", "101", SYNONYM, "Sky anemia"),
        described("6", "101", SYNONYM, '"Sky" blood'),
        described("7", "101", SYNONYM, "Old name", active="0"),
        described("8", "102", FSN, "Cloud (physical object)"),
        described("9", "109", SYNONYM, "Azure anemia"),
    ],
    "Terminology/sct2_TextDefinition_Snapshot-en_INT_20240101.txt": [
        described("20", "101", DEFINITION, "Too little sky in the blood."),
    ],
    "Terminology/sct2_Relationship_Snapshot_INT_20240101.txt": [
        related("101", "100"),
        related("101", "102", kind="363698007"),
        related("102", "100", active="0"),
        related("102", "109"),
    ],
    # Neither of these is a file of relationships that the reader knows.
    "Terminology/sct2_StatedRelationship_Snapshot_INT_20240101.txt": [],
    "Terminology/sct2_RelationshipConcreteValues_Snapshot_INT_20240101.txt": [],
    "Refset/Language/der2_cRefset_LanguageSnapshot-en_INT_20240101.txt": [
        member(US, "1", PREFERRED),
        member(US, "2", PREFERRED),
        member(US, "5", PREFERRED),
        member(US, "6", ACCEPTABLE),
        member(GB, "2", PREFERRED),
        member(GB, "4", PREFERRED),
    ],
    "Refset/Content/der2_cRefset_AssociationSnapshot_INT_20240101.txt": [
        member(REPLACED_BY, "109", "101"),
        member(POSSIBLY, "109", "102"),
    ],
}
SPANISH = {
    "Terminology/sct2_Concept_SpanishExtensionSnapshot_INT_20231001.txt": [concept("501")],
    "Terminology/sct2_Description_SpanishExtensionSnapshot-es_INT_20231001.txt": [
        described("31", "101", FSN, "anemia del cielo (trastorno)", "es"),
        described("32", "101", SYNONYM, "anemia del cielo", "es"),
        described("33", "101", SYNONYM, "anemia celeste", "es"),
    ],
    "Refset/Language/der2_cRefset_LanguageSpanishExtensionSnapshot-es_INT_20231001.txt": [
        member(ES, "31", PREFERRED),
        member(ES, "33", PREFERRED),
    ],
}


def write(folder: Path, files: dict[str, list[list[str]]]) -> Path:
    """Write files as released: tabs, CRLF, and a header by the kind of file."""
    for name, rows in files.items():
        path = folder / "Snapshot" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        kind = next((k for k in HEADERS if f"_{k}_" in name or f"_cRefset_{k}" in name), "Concept")
        lines = [HEADERS[kind].split(), *rows]
        text = "".join("\t".join(line) + "\r\n" for line in lines)
        path.write_text(text, encoding="utf-8", newline="")
    return folder


def read(folder: Path) -> tuple[dict[str, list[Concept]], SkipReport]:
    """RETURNS: id -> its records, and the report."""
    report = SkipReport()
    found: dict[str, list[Concept]] = {}
    for record in read_rf2(folder, report):
        found.setdefault(record.id, []).append(record)
    return found, report


def test_international_release(tmp_path: Path) -> None:
    found, report = read(write(tmp_path, INTERNATIONAL))
    assert found == {
        "100": [
            Concept("100", aliases=(Alias("Blue disease", "en"),), types=("disorder",)),
            Concept("100", "Blue disease", "en"),
        ],
        "101": [
            Concept("101", aliases=(Alias("Anaemia of the sky", "en"),), types=("disorder",)),
            Concept("101", aliases=(Alias("Sky anaemia", "en"),)),
            Concept("101", "Sky anemia", "en"),
            Concept("101", aliases=(Alias('"Sky" blood', "en"),)),
            Concept("101", definition="Too little sky in the blood."),
            Concept("101", parents=("100",)),
            Concept("101", alternative_ids=("109",)),
        ],
        "102": [
            Concept("102", aliases=(Alias("Cloud", "en"),), types=("physical object",)),
            Concept("102", "Cloud", "en"),  # no preferred name: the fully specified one
        ],
    }
    assert report.counts == {
        "inactive concept": 1,
        "inactive description": 1,
        "description of an inactive concept": 1,
        "inactive or unknown parent": 1,
    }


def test_spanish_extension_beside_the_international_release(tmp_path: Path) -> None:
    write(tmp_path / "SnomedCT_International", INTERNATIONAL)
    write(tmp_path / "SnomedCT_SpanishExtension", SPANISH)
    found, report = read(tmp_path)
    spanish = [record for record in found["101"] if "es" in (record.lang, *langs(record))]
    assert spanish == [
        Concept("101", aliases=(Alias("anemia del cielo", "es"),), types=("trastorno",)),
        Concept("101", aliases=(Alias("anemia del cielo", "es"),)),
        Concept("101", "anemia celeste", "es"),
    ]
    names = [(record.lang, record.name) for record in found["101"] if record.name]
    assert names == [("en", "Sky anemia"), ("es", "anemia celeste")]
    assert not any(reason.startswith("file missing") for reason in report.counts)


def langs(record: Concept) -> list[str]:
    return [alias.lang for alias in record.aliases]


def test_the_name_preferred_in_spanish_may_come_after_a_synonym(tmp_path: Path) -> None:
    write(tmp_path / "a", INTERNATIONAL)
    write(tmp_path / "b", SPANISH)
    for langs in ((), ("es", "en"), ("es",)):
        builder = KbBuilder(SkipReport(), langs=langs)
        for record in read_rf2(tmp_path, SkipReport()):
            builder.add(record)
        kb = builder.build()
        row = kb.number("101")
        assert row is not None and kb.name_of(row, "es") == "anemia celeste"
        assert kb.name_of(row) == ("anemia celeste" if langs == ("es",) else "Sky anemia")


def test_chains_of_retired_ids_are_followed(tmp_path: Path) -> None:
    """The nearest active concept counts: of 203 it is 100, not 102. 205 and 206 are a circle."""
    retired = ("201", "202", "203", "204", "205", "206", "207", "208")
    files = {
        **INTERNATIONAL,
        "Terminology/sct2_Concept_More_Snapshot_INT_20240101.txt": [
            concept(id, active="0") for id in retired
        ],
        "Refset/Content/der2_cRefset_AssociationSnapshot_INT_20240101.txt": [
            member(REPLACED_BY, "201", "202"),
            member(REPLACED_BY, "202", "109"),
            member(REPLACED_BY, "109", "101"),
            member(SAME_AS, "203", "204"),
            member(REPLACED_BY, "203", "100"),
            member(REPLACED_BY, "204", "102"),
            member(REPLACED_BY, "205", "206"),
            member(REPLACED_BY, "206", "205"),
            member(REPLACED_BY, "207", "999"),
            member(REPLACED_BY, "208", "101", active="0"),
            member(REPLACED_BY, "100", "102"),
        ],
    }
    found, report = read(write(tmp_path, files))
    leads = {old: id for id, records in found.items() for r in records for old in r.alternative_ids}
    assert leads == {"201": "101", "202": "101", "109": "101", "203": "100", "204": "102"}
    assert report.counts["inactive concept"] == 1 + len(retired)
    assert report.places["retired id that leads to no active concept"] == ["205", "206", "207"]


def test_extension_alone(tmp_path: Path) -> None:
    with pytest.raises(BioclinError, match=r"3 of its descriptions .* beside it in the same"):
        read(write(tmp_path, SPANISH))


def test_newest_version_of_a_concept_counts(tmp_path: Path) -> None:
    extension = {
        "Terminology/sct2_Concept_Snapshot_ES1000276_20240601.txt": [
            concept("100", active="0", date="20240601"),
            concept("109", active="1", date="20200101"),
        ],
    }
    write(tmp_path / "a", extension)
    found, _ = read(write(tmp_path / "b", INTERNATIONAL))
    assert "100" in found
    found, _ = read(tmp_path)
    assert "100" not in found and "109" not in found


def test_two_dates_of_one_release(tmp_path: Path) -> None:
    write(tmp_path / "a", INTERNATIONAL)
    older = {name.replace("20240101", "20230101"): rows for name, rows in INTERNATIONAL.items()}
    with pytest.raises(BioclinError, match=r"two releases, sct2_Concept_.*; keep one"):
        read(write(tmp_path / "b", older).parent)


def test_missing_files(tmp_path: Path) -> None:
    full = {"Terminology/sct2_Concept_Full_INT_20240101.txt": [concept("100")]}
    with pytest.raises(BioclinError, match=r"no sct2_Concept_.*Full and Delta files are not read"):
        read(write(tmp_path, full))
    required = {name: rows for name, rows in INTERNATIONAL.items() if "Terminology/" in name}
    found, report = read(write(tmp_path, required))
    assert report.counts["file missing: Language snapshot"] == 1
    assert report.counts["file missing: Association snapshot"] == 1
    names = {own_id: [r.name for r in records if r.name] for own_id, records in found.items()}
    assert names == {"100": ["Blue disease"], "101": ["Anaemia of the sky"], "102": ["Cloud"]}


def test_wrong_rows_and_columns(tmp_path: Path) -> None:
    write(tmp_path, INTERNATIONAL)
    path = tmp_path / "Snapshot/Terminology/sct2_Description_Snapshot-en_INT_20240101.txt"
    with path.open("a", encoding="utf-8", newline="") as file:
        file.write("10\t20240101\t1\tM\t100\ten\r\n")
    _, report = read(tmp_path)
    assert report.places["row without 9 columns"] == [f"{path}, line 11"]
    path.write_text(path.read_text(encoding="utf-8").replace("conceptId", "concept"))
    with pytest.raises(BioclinError, match=r"line 1: no column conceptId in "):
        read(tmp_path)
