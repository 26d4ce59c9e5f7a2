"""MeSH: invented XML and tables in the layouts of the real ones, and the real tables."""

import gzip
import lzma
from pathlib import Path

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.kb.concepts import Alias, Concept, SkipReport
from spacy_bioclin.linking.readers.mesh import read_mesh_tsv, read_mesh_xml

HEAD = (
    '<?xml version="1.0"?>\n<!DOCTYPE {0} SYSTEM "https://example.org/dtd/{0}.dtd">\n'
    '<{0} LanguageCode="{1}">'
)
TERM = (
    '<Term ConceptPreferredTermYN="{1}" IsPermutedTermYN="N" LexicalTag="NON" '
    'RecordPreferredTermYN="{1}"><TermUI>T1</TermUI><String>{0}</String></Term>'
)


def descriptor(
    own_id: str, names: list[str], trees: list[str], note: str = "", record_name: str = ""
) -> str:
    terms = "".join(TERM.format(name, "YN"[i > 0]) for i, name in enumerate(names))
    numbers = "".join(f"<TreeNumber>{tree}</TreeNumber>" for tree in trees)
    return f"""
    <DescriptorRecord DescriptorClass = "1">
      <DescriptorUI>{own_id}</DescriptorUI>
      <DescriptorName><String>{record_name or names[0]}</String></DescriptorName>
      <PharmacologicalActionList><PharmacologicalAction><DescriptorReferredTo>
        <DescriptorUI>D900009</DescriptorUI>
      </DescriptorReferredTo></PharmacologicalAction></PharmacologicalActionList>
      <TreeNumberList>{numbers}</TreeNumberList>
      <ConceptList>
        <Concept PreferredConceptYN="Y"><ConceptUI>M1</ConceptUI>
          <ConceptName><String>{names[0]}</String></ConceptName>
          <RegistryNumber>50-78-2</RegistryNumber>
          <RegistryNumberList><RegistryNumber>0</RegistryNumber>
            <RegistryNumber>EC 1.1.1.-</RegistryNumber>
            <RegistryNumber>R16CO5Y76E</RegistryNumber></RegistryNumberList>
          <ScopeNote>{note}
          </ScopeNote>
          <TermList>{terms}</TermList></Concept>
        <Concept PreferredConceptYN="N"><ConceptUI>M2</ConceptUI>
          <ScopeNote>Of a narrower concept.</ScopeNote>
          <TermList><Term><String>{names[-1]}</String></Term>
            <Term><String> </String></Term></TermList></Concept>
      </ConceptList>
    </DescriptorRecord>"""


def write_descriptors(path: Path, lang: str = "eng", more: str = "") -> Path:
    records = [
        descriptor("D900001", ["Sky Diseases"], ["C90", "F90.100"]),
        descriptor(
            "D900002",
            ["Blue Cough", "Cough, Blue", "Azure &amp; Cough"],
            ["C90.100", "C91.100"],
            "A cough.",
            "Blue Cough[Cough]",
        ),
    ]
    text = HEAD.format("DescriptorRecordSet", lang) + "".join(records) + more
    path.write_text(text + "</DescriptorRecordSet>", encoding="utf-8")
    return path


def test_descriptors(tmp_path: Path) -> None:
    report = SkipReport()
    xrefs = ("CAS:50-78-2", "EC:1.1.1.-", "UNII:R16CO5Y76E")
    assert list(read_mesh_xml(write_descriptors(tmp_path / "desc2024.xml"), report)) == [
        Concept("D900001", "Sky Diseases", "en", types=("C90", "F90.100"), xrefs=xrefs),
        Concept(
            "D900002",
            "Blue Cough",
            "en",
            (Alias("Cough, Blue", "en"), Alias("Azure & Cough", "en")),
            ("C90.100", "C91.100"),
            "A cough.",
            xrefs=xrefs,
        ),
        Concept("D900002", parents=("D900001",)),
    ]
    assert not report.counts


def test_language_and_compression(tmp_path: Path) -> None:
    plain = write_descriptors(tmp_path / "spadesc2024.xml", "spa")
    packed = tmp_path / "spadesc2024.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    concepts = list(read_mesh_xml(packed, SkipReport()))
    assert concepts == list(read_mesh_xml(plain, SkipReport()))
    assert (concepts[1].lang, concepts[1].aliases[0].lang) == ("es", "es")


def test_record_without_name(tmp_path: Path) -> None:
    nameless = "\n<DescriptorRecord><DescriptorUI>D900003</DescriptorUI></DescriptorRecord>"
    path = write_descriptors(tmp_path / "desc.xml", more=nameless)
    report = SkipReport()
    assert len(list(read_mesh_xml(path, report))) == 3
    assert report.counts == {"record without id or name": 1}


def test_supplementary_records(tmp_path: Path) -> None:
    path = tmp_path / "supp2024.xml"
    path.write_text(
        HEAD.format("SupplementalRecordSet", "eng")
        + f"""<SupplementalRecord SCRClass="3">
        <SupplementalRecordUI>C900001</SupplementalRecordUI>
        <SupplementalRecordName><String>Cough, Turquoise</String></SupplementalRecordName>
        <HeadingMappedToList><HeadingMappedTo><DescriptorReferredTo>
          <DescriptorUI>*D900002</DescriptorUI>
          <DescriptorName><String>Blue Cough</String></DescriptorName>
        </DescriptorReferredTo></HeadingMappedTo></HeadingMappedToList>
        <ConceptList><Concept PreferredConceptYN="Y"><TermList>
        {TERM.format("Cough, Turquoise", "Y")}{TERM.format("Turquoise cough", "N")}
        </TermList></Concept></ConceptList></SupplementalRecord></SupplementalRecordSet>""",
        encoding="utf-8",
    )
    assert list(read_mesh_xml(path, SkipReport())) == [
        Concept(
            "C900001",
            "Cough, Turquoise",
            "en",
            (Alias("Turquoise cough", "en"),),
            ("SCR_Disease",),
            parents=("D900002",),
        )
    ]


def test_broken_and_foreign_xml(tmp_path: Path) -> None:
    path = write_descriptors(tmp_path / "desc.xml")
    text = path.read_text(encoding="utf-8")
    path.write_text(text[:-200], encoding="utf-8")
    with pytest.raises(BioclinError, match=r"desc\.xml, line \d+: broken XML"):
        list(read_mesh_xml(path, SkipReport()))
    path.write_text("<rdf/>", encoding="utf-8")
    with pytest.raises(BioclinError, match="root element is 'rdf'"):
        list(read_mesh_xml(path, SkipReport()))
    path.write_text("no XML", encoding="utf-8")
    with pytest.raises(BioclinError, match=r"desc\.xml, line 1: broken XML"):
        list(read_mesh_xml(path, SkipReport()))
    for name, cut in [("desc.gz", gzip.compress(text.encode())[:-100]), ("desc.gz", b"no gzip")]:
        (tmp_path / name).write_bytes(cut)
        with pytest.raises(BioclinError, match="may be cut off"):
            list(read_mesh_xml(tmp_path / name, SkipReport()))


def test_entities_are_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret", encoding="utf-8")
    path = tmp_path / "desc.xml"
    for entity in (f'<!ENTITY e SYSTEM "{secret.as_uri()}">', '<!ENTITY e "lol">'):
        path.write_text(
            f"<!DOCTYPE DescriptorRecordSet [{entity}]><DescriptorRecordSet>"
            + descriptor("D900001", ["Sky &e;"], ["C90"])
            + "</DescriptorRecordSet>",
            encoding="utf-8",
        )
        with pytest.raises(BioclinError, match="declares entities"):
            list(read_mesh_xml(path, SkipReport()))


TABLES = {
    "terms": (
        "DescriptorUI DescriptorName ConceptUI TermUI TermName ConceptPreferredTermYN "
        "IsPermutedTermYN LexicalTag RecordPreferredTermYN",
        [
            "D900001|Sky Diseases|M1|T1|Sky Diseases|Y|N|NON|Y",
            "D900001|Sky Diseases|M1|T1|Diseases, Sky|Y|Y|NON|Y",
            "D900002|Blue Cough|M2|T2|Blue Cough|Y|N|NON|Y",
            "D900002|Blue Cough|M2|T3|cut off",
            "D900003||M3|T4|Nothing|Y|N|NON|Y",
        ],
        [
            Concept("D900001", "Sky Diseases", "en", (Alias("Diseases, Sky", "en"),)),
            Concept("D900002", "Blue Cough", "en"),
        ],
    ),
    "trees": (
        "DescriptorUI DescriptorName tree_location",
        [
            "D900001|Sky Diseases|C90",
            "D900002|Blue Cough|C90.100",
            "D900002|Blue Cough|C91.100",
        ],
        [
            Concept("D900001", "Sky Diseases", "en", types=("C90",)),
            Concept("D900002", "Blue Cough", "en", types=("C90.100", "C91.100")),
            Concept("D900002", parents=("D900001",)),
        ],
    ),
    "hierarchy": (
        "MESH_ID MESH_NAME PARENT_MESH_ID PARENT_MESH_CATEGORY ROOT_MESH_CATEGORY LEVEL",
        [
            "D900002|Blue Cough|D900001|C90|C90|0",
            "D900002|Blue Cough|D900001|C91|C91|0",
        ],
        [Concept("D900002", "Blue Cough", "en", types=("C90", "C91"), parents=("D900001",))],
    ),
    "supplementary": (
        "MESH_SCR_ID MESH_SCR_NAME MESH_ID",
        ["C900001|Cough, Turquoise|D900002", "C900001|Cough, Turquoise|D900001"],
        [
            Concept(
                "C900001",
                "Cough, Turquoise",
                "en",
                types=("SCR_Disease",),
                parents=("D900002", "D900001"),
            )
        ],
    ),
}


def test_tables(tmp_path: Path) -> None:
    path = tmp_path / "table.tsv.xz"
    for name, (columns, rows, expected) in TABLES.items():
        lines = ["\t".join(columns.split()), *(row.replace("|", "\t") for row in rows)]
        path.write_bytes(lzma.compress("\n".join(lines).encode()))
        report = SkipReport()
        assert list(read_mesh_tsv(path, report)) == expected, name
        places = {
            "row without 9 columns": [f"{path}, line 5"],
            "no id or no name": [f"{path}, line 6"],
        }
        assert report.places == (places if name == "terms" else {})


def test_table_with_another_header(tmp_path: Path) -> None:
    path = tmp_path / "table.tsv"
    for text in ("", "id\tname\n", "MESH_SCR_ID,MESH_SCR_NAME,MESH_ID\n"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(BioclinError, match="not the header of a table of MeSH"):
            list(read_mesh_tsv(path, SkipReport()))


@pytest.mark.corpora
@pytest.mark.parametrize(
    "name, counts",  # concepts, distinct names of each, types, parents
    [
        # 263,936 terms in data/README.md; five of them stand twice in their descriptor
        ("mesh2024_descriptor_terms.tsv.xz", (30_764, 263_931, 0, 0)),
        ("mesh2024_tree_numbers.tsv.xz", (30_652, 30_652, 64_342, 62_285)),
        ("mesh_descriptors_c_f_tree.tsv", (4_903, 4_903, 8_655, 7_623)),
        ("mesh_disease_scr.tsv", (6_483, 6_483, 6_483, 13_589)),
    ],
)
@pytest.mark.slow
def test_real_tables(data_dir: Path, name: str, counts: tuple[int, int, int, int]) -> None:
    report = SkipReport()
    concepts = list(read_mesh_tsv(data_dir / "mesh" / name, report))
    assert not report.counts
    assert counts == (
        len({concept.id for concept in concepts}),
        sum(1 + len(concept.aliases) for concept in concepts if concept.name),
        sum(len(concept.types) for concept in concepts),
        sum(len(concept.parents) for concept in concepts),
    )
