"""The script that builds the open terminology, on tiny invented files."""

import lzma
from collections import defaultdict
from pathlib import Path

import pytest
import spacy

from scripts import terminology
from scripts.short_names import ShortNames, find_doubtful, read_short_names
from spacy_bioclin.linking.bundle import describe_kb
from spacy_bioclin.linking.kb.concepts import Alias, Concept, SkipReport

OBO = """format-version: 1.2

[Term]
id: {id}
name: {name}
{more}
"""
FILES = {
    "doid/HumanDO_hierarchy.tsv": (
        'id\tlabel\tsubClassOf\n"DOID:1"\t"flumpitis"\t"disease"\n'
        '"DOID:2"\t"tarsal flumpitis"\t"flumpitis"\n'
    ),
    "doid/MESHinDO.tsv": (
        'id\tlabel\txrefs\n"DOID:1"\t"flumpitis"\t"MESH:D01, MESH:D09"\n'
        '"DOID:2"\t"tarsal flumpitis"\t"MESH:D01"\n'
    ),
    "doid/DO_cancer_slim.obo": OBO.format(
        id="DOID:1", name="flumpitis", more="xref: SNOMEDCT_US_2025_09_01:123\nxref: UMLS_CUI:C1"
    ),
    "doid/DO_rare_slim.obo": OBO.format(id="DOID:1", name="flumpitis", more=""),
    "doid/HumanDO-2015-11-11.obo.xz": OBO.format(
        id="DOID:9", name="withdrawn disease", more='synonym: "flump" EXACT []'
    ),
    "doid/doid-es-translated.tsv": (
        "source_id\tpredicate\tsource_text\ttranslation_text\tsource_lang\ttranslation_lang\tstatus\n"
        "DOID:1\toboInOwl:hasExactSynonym\tflump disease\tflumpa\ten\tes\tOFFICIAL\n"
    ),
    "hpo/hp-es.babelon.tsv": (
        "source_language\ttranslation_language\tsubject_id\tsource_value\tpredicate_id"
        "\ttranslation_value\ttranslation_status\n"
        "en\tes\tHP:0000118\tPhenotypic abnormality\trdfs:label\tAnomalía\tOFFICIAL\n"
        "en\tes\tHP:0000002\tFlumpitis\trdfs:label\tFlumpitis aguda\tOFFICIAL\n"
        "en\tes\tHP:0000003\tGlorbing\trdfs:label\tGlorbeo\tOFFICIAL\n"
        "en\tes\tHP:0000005\tMode of glorbing\trdfs:label\tModo de glorbeo\tOFFICIAL\n"
    ),
    "hpo/hp-2017-04-13.obo.xz": "".join(
        OBO.format(id=id, name=name, more=more)
        for id, name, more in (
            ("HP:0000118", "Phenotypic abnormality", ""),
            ("HP:0000002", "Flumpitis", "is_a: HP:0000118\nxref: UMLS:C1"),
            ("HP:0000003", "Glorbing", 'is_a: HP:0000118\nsynonym: "Flump disease" EXACT []'),
            ("HP:0000005", "Mode of glorbing", "is_a: HP:0000001"),
        )
    ),
    "hpo/layperson-synonyms.tsv": (
        "?term\t?term_label\t?layperson\n"
        '<http://purl.obolibrary.org/obo/HP_0000003>\t"Glorbing"\t"Glorbs"\n'
    ),
    "mesh/mesh2024_descriptor_terms.tsv.xz": (
        "DescriptorUI\tDescriptorName\tTermName\n"
        "D01\tFlumpitis\tFlumpitis\nD01\tFlumpitis\tFlumpitides, Acute\n"
        "D01\tFlumpitis\tAcute Flumpitides\n"
        "D02\tGlorbillin\tGlorbillin\nD02\tGlorbillin\t4-(2-glorb)-1,3-flump\n"
        "D03\tGlorbectomy\tGlorbectomy\nD04\tGlorb Studies\tGlorb Studies\n"
        "D05\tFlumpitis, Bovine\tFlumpitis, Bovine\n"
    ),
    "mesh/mesh2024_tree_numbers.tsv.xz": (
        "DescriptorUI\tDescriptorName\ttree_location\n"
        "D01\tFlumpitis\tC01.100\nD02\tGlorbillin\tD02.200\nD03\tGlorbectomy\tE04.100\n"
        "D04\tGlorb Studies\tN05.300\nD05\tFlumpitis, Bovine\tC22.100\n"
    ),
    "mesh/mesh_disease_scr.tsv": (
        "MESH_SCR_ID\tMESH_SCR_NAME\tMESH_ID\nC01\tFamilial glorb syndrome\tD01\n"
    ),
}


@pytest.fixture
def data(tmp_path, monkeypatch):
    for name, text in FILES.items():
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        packed = name.endswith(".xz")
        path.write_bytes(lzma.compress(text.encode()) if packed else text.encode())
    ours = tmp_path / "ours.tsv"
    ours.write_text("id\tname_en\talias\nHP:0000003\tGlorbing\tglorbos|GLB\n", encoding="utf-8")
    monkeypatch.setattr(terminology, "OURS", terminology.OURS._replace(path=str(ours)))
    return tmp_path / "data"


def names(concept):
    return {concept.name, *(alias.text for alias in concept.aliases)}


def test_concepts_of_three_sources_become_one(data, tmp_path):
    kb = terminology.build(data, "en", tmp_path / "en")
    assert list(kb.ids) == [
        "DOID:1",
        "DOID:2",
        "HP:0000003",
        "MESH:C01",
        "MESH:D02",
        "MESH:D03",
    ]
    joined = kb.concept("MESH:D01")
    assert joined == kb.concept("HP:0000002") == kb.concept("DOID:1")
    # The references of both sources; MESH:D09 is of one concept only, but not its own id.
    assert joined.xrefs == ("HP:0000002", "MESH:D01", "MESH:D09", "SNOMEDCT:123", "UMLS:C1")
    assert joined.types == ("C01", "doid", "hp")
    # A narrow concept that refers to the same descriptor stays one of its own.
    assert kb.concept("DOID:2").xrefs == ("<MESH:D01",)
    assert len(names(joined) & {"Flumpitides, Acute", "Acute Flumpitides"}) == 1
    assert names(kb.concept("HP:0000003")) == {"Glorbing", "Glorbs"}  # "flump disease" is joined's
    assert names(kb.concept("MESH:D02")) == {"Glorbillin"}
    assert kb.meta["lang_codes"] == ["en"]


def test_spanish_names_come_first_and_our_own_before_them(data, tmp_path):
    kb = terminology.build(data, "es", tmp_path / "es")
    assert "MESH:D03" not in kb  # a procedure, whose name is English
    assert kb.concept("DOID:1").name == "Flumpitis aguda"
    assert "flumpa" in names(kb.concept("DOID:1"))
    assert kb.concept("HP:0000003")[1:3] == ("glorbos", "es")
    assert Alias("Glorbilin", "en") in kb.concept("MESH:D02").aliases
    again = terminology.build(data, "es", tmp_path / "again")
    assert again.hash == kb.hash


def test_licences_reach_the_card(data, tmp_path):
    sources = describe_kb(terminology.build(data, "es", tmp_path / "es"))["sources"]
    licences = {source["licence"].split(",")[0].split(" (")[0] for source in sources}
    assert licences == {"CC0 1.0", "CC BY 3.0", "HPO licence", "NLM terms", "MIT"}
    assert len(sources) == len(FILES) + 4  # our names, brands and codes


def test_an_alias_that_is_the_name_of_another_concept_is_left_out():
    stroke = Concept("DOID:1", "stroke", "en", types=("doid",))
    vascular = Concept("DOID:2", "vascular disease", "en", (Alias("Strokes", "en"),), ("doid",))
    report = SkipReport()
    resolved = list(terminology.resolve([stroke, vascular], {}, ShortNames({}, {}), report))
    assert resolved == [stroke, vascular._replace(aliases=())]
    assert report.counts == {"alias that is rather the name of another concept": 1}


def test_an_alias_of_several_concepts_stays_with_the_one_of_most_sources():
    short = (Alias("short of breath", "en"),)
    concepts = [
        Concept("HP:1", "Dyspnea", "en", short, ("hp",), alternative_ids=("MESH:D1",)),
        Concept("HP:2", "Respiratory distress", "en", short, ("hp",)),
    ]
    resolved = list(terminology.resolve(concepts, {}, ShortNames({}, {}), SkipReport()))
    assert [concept.aliases for concept in resolved] == [short, ()]


def test_short_names_mean_what_the_lexicon_says():
    fibrillation = Concept("D:1", "atrial fibrillation", "en", types=("doid",))
    rare = Concept("D:2", "familial atrial fibrillation", "en", types=("doid",))
    syndrome = Concept("D:3", "Afib like syndrome", "en", (Alias("AF", "en"),), ("doid",))
    shorts = read_short_names([fibrillation, rare, syndrome], "en")
    assert Alias("AF", "en") in shorts.first["D:1"]
    assert not shorts.allows(syndrome, "AF") and shorts.allows(fibrillation, "AF")
    # Two letters are no name of a rare form of three words, which the check lists, too.
    assert not shorts.allows(rare, "QX") and shorts.allows(rare, "QAXF")
    named = [rare._replace(aliases=(Alias("QX", "en"),)), syndrome._replace(name="qx")]
    assert [name for name, _ in find_doubtful(named)] == ["QX", "qx"]


def test_a_code_of_several_concepts_is_that_of_their_ancestor():
    concepts = [
        Concept("D:1", "flump", types=("doid",), xrefs=("ICD10CM:F1", "ICD10CM:F1-F9", "UMLS:1")),
        Concept("D:2", "left flump", types=("doid",), parents=("flump",), xrefs=("ICD10CM:F1",)),
        Concept("D:3", "glorb", types=("doid",), xrefs=("ICD10CM:G1", "ICD10CM:G1.2", "X:5")),
        Concept("D:4", "other glorb", types=("doid",), xrefs=("X:5",)),
    ]
    marked = {concept.id: concept.xrefs for concept in terminology.mark_broader(concepts)}
    assert marked["D:1"] == ("ICD10CM:F1", "<ICD10CM:F1-F9", "UMLS:1")
    assert marked["D:2"] == ("<ICD10CM:F1",)
    assert marked["D:3"] == ("<ICD10CM:G1", "ICD10CM:G1.2", "<X:5")
    assert marked["D:4"] == ("<X:5",)


def test_a_brand_has_one_ingredient():
    for files in terminology.BRANDS.values():
        owners = defaultdict(set)
        for file in files:
            for record in terminology.read(Path(), file, SkipReport()):
                assert record.id.startswith("MESH:D")
                for alias in record.aliases:
                    owners[alias.text.lower()].add(record.id)
        assert len(owners) > 400 and [one for one, ids in owners.items() if len(ids) > 1] == []


def test_a_pipeline_links_labels_to_their_branches_only(data, tmp_path):
    terminology.build(data, "en", tmp_path / "en")
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    for label in ("DISEASE", "DRUG", "DOSAGE"):
        ruler.add_patterns([{"label": label, "pattern": f"{label.lower()} flumpitis"}])
    settings = terminology.linker_settings("en")
    present = {
        "DISEASE": ["doid", "hp", "C*"],
        "DRUG": ["D*"],
    }  # the invented files have no F, B, A
    assert present["DRUG"] == settings["types"]["DRUG"]
    assert "DOSAGE" not in settings["labels"]
    config = {**settings, "types": present, "kb": str(tmp_path / "en"), "overwrite": True}
    linker = nlp.add_pipe("bioclin_linker", config=config)
    doc = nlp.make_doc("flumpitis flumpitis flumpitis")
    doc.ents = [
        spacy.tokens.Span(doc, i, i + 1, label=label)
        for i, label in enumerate(("DISEASE", "DRUG", "DOSAGE"))
    ]
    assert [ent.kb_id_ for ent in linker(doc).ents] == ["DOID:1", "", ""]
