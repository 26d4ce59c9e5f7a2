"""Translations in both layouts."""

from pathlib import Path

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.kb.build import KbBuilder
from spacy_bioclin.linking.kb.concepts import Alias, Concept, SkipReport
from spacy_bioclin.linking.readers.babelon import read_babelon

BABELON = (
    "source_language\ttranslation_language\tsubject_id\tsource_value\tpredicate_id\t"
    "translation_value\ttranslation_status\n"
)
DO = (
    "source_id\tpredicate\tsource_text\ttranslation_text\tsource_lang\ttranslation_lang\tstatus\t"
    "notes\n"
)


def read(tmp_path: Path, text: str) -> tuple[list[Concept], SkipReport]:
    path = tmp_path / "x.tsv"
    path.write_text(text, "utf-8")
    report = SkipReport()
    return list(read_babelon(path, report)), report


def test_babelon(tmp_path: Path) -> None:
    concepts, report = read(
        tmp_path,
        BABELON
        + "en\tes\tT:1\tFever\trdfs:label\tFiebre\tOFFICIAL\n"
        + "en\tes\tT:1\tPyrexia\toio:exactSynonym\tPirexia\tCANDIDATE\n"
        + "en\tes\tT:2\tobsolete Cough\trdfs:label\tTos obsoleta\tOFFICIAL\n"
        + "en\tes\tT:3\tAche\trdfs:label\t\tNOT_TRANSLATED\n"
        + "en\tes\t\tAche\trdfs:label\tDolor\tOFFICIAL\n"
        + "en\tes\tT:3\tAche\trdfs:comment\tDolor\tOFFICIAL\n"
        + "en\tes\n",
    )
    assert concepts == [
        Concept("T:1", "Fever", "en"),
        Concept("T:1", "Fiebre", "es"),
        Concept("T:1", aliases=(Alias("Pyrexia", "en"), Alias("Pirexia", "es"))),
    ]
    assert report.counts == {
        "obsolete": 1,
        "no translation": 1,
        "no id": 1,
        "predicate rdfs:comment": 1,
        "fewer cells than columns": 1,
    }


def test_a_label_without_its_source_is_a_preferred_name(tmp_path: Path) -> None:
    concepts, _ = read(tmp_path, BABELON + "en\tes\tT:1\t\trdfs:label\tFiebre\tOFFICIAL\n")
    assert concepts == [Concept("T:1", "Fiebre", "es")]


def test_a_translated_label_is_the_preferred_name_of_its_language(tmp_path: Path) -> None:
    synonym = "en\tes\tT:1\tPyrexia\toio:exactSynonym\tPirexia\tOFFICIAL\n"
    label = "en\tes\tT:1\tFever\trdfs:label\tFiebre\tOFFICIAL\n"
    for langs in ((), ("es", "en"), ("es",)):
        concepts, report = read(tmp_path, BABELON + synonym + label)
        builder = KbBuilder(report, langs=langs)
        for concept in concepts:
            builder.add(concept)
        kb = builder.build()
        assert kb.name_of(0, "es") == "Fiebre"
        assert kb.name_of(0) == ("Fiebre" if langs == ("es",) else "Fever")


def test_the_layout_of_the_disease_ontology(tmp_path: Path) -> None:
    concepts, report = read(
        tmp_path,
        DO
        + "D:1\toboInOwl:hasRelatedSynonym\tflu\tgripe\ten\tes\tdone\t\n"
        + 'D:1\tIAO:0000115\tA disease.\t"Una\nenfermedad."\ten\tes\tdone\t"a\n\nnote"\n'
        + "D:1\toboInOwl:hasBroadSynonym\tcold\tcatarro\ten\tes\tdone\t\n",
    )
    assert concepts == [
        Concept("D:1", aliases=(Alias("flu", "en"), Alias("gripe", "es"))),
        Concept("D:1", definition="Una enfermedad."),
    ]
    assert report.counts == {"broad synonym": 1}


def test_a_missing_column_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BioclinError, match=r"line 1: not a table of translations; .*subject_id"):
        read(tmp_path, BABELON.replace("subject_id", "id"))
