"""INCEpTION: CAS files of its own, and what XML cannot hold."""

import zipfile
from pathlib import Path

import pytest

from spacy_bioclin.corpora.docs import spans_of
from spacy_bioclin.corpora.export import write_corpus
from spacy_bioclin.corpora.tools.exchange import UNREAD
from spacy_bioclin.corpora.tools.inception import (
    TYPE_SYSTEM,
    format_inception,
    format_type_system,
    read_inception,
)
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.types import AnnotatedText, OtherAnnotation, SpanAnnotation
from tests.corpora.tools.documents import HARD

cassis = pytest.importorskip("cassis", reason="dkpro-cassis is not installed")
NAMED_ENTITY = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity"
META_DATA = "de.tudarmstadt.ukp.dkpro.core.api.metadata.type.DocumentMetaData"
SENTENCE = "de.tudarmstadt.ukp.dkpro.core.api.segmentation.type.Sentence"


def write_own(folder: Path, text: str = "😀 tos y fiebre") -> Path:
    """Write a CAS with the layers that every project of INCEpTION has."""
    types = cassis.TypeSystem()
    entity = types.create_type(NAMED_ENTITY, "uima.tcas.Annotation")
    for name in ("value", "identifier"):
        types.create_feature(entity, name, "uima.cas.String")
    meta = types.create_type(META_DATA, "uima.tcas.DocumentAnnotation")
    types.create_feature(meta, "documentTitle", "uima.cas.String")
    sentence = types.create_type(SENTENCE, "uima.tcas.Annotation")
    other = types.create_type("webanno.custom.Wound", "uima.tcas.Annotation")
    cas = cassis.Cas(types)
    cas.sofa_string = text
    cas.add(meta(begin=0, end=14, documentTitle="nota 7.txt"))
    cas.add(sentence(begin=0, end=14))
    cas.add(entity(begin=2, end=5, value="SINTOMA", identifier="http://snomed.info/id/49727002"))
    cas.add(entity(begin=8, end=14, value="SINTOMA"))
    cas.add(other(begin=2, end=5))
    (folder / TYPE_SYSTEM).write_text(types.to_xml(), "utf-8")
    (folder / "annotator.xmi").write_text(cas.to_xmi(), "utf-8")
    return folder / "annotator.xmi"


def test_named_entities_of_a_project(tmp_path: Path) -> None:
    (document,) = read_inception(write_own(tmp_path))
    assert (document.id, document.text) == ("nota 7", "😀 tos y fiebre")
    first, second = spans_of(document)
    assert (first.fragments, first.concept_ids) == (((2, 5),), ("http://snomed.info/id/49727002",))
    assert (second.fragments, second.label) == (((8, 14),), "SINTOMA")
    assert document.annotations[-1] == OtherAnnotation(UNREAD, "webanno.custom.Wound")


def test_offsets_in_the_file_are_utf16(tmp_path: Path) -> None:
    xmi = format_inception(AnnotatedText("x", "😀a", (SpanAnnotation("T1", "A", ((1, 2),)),)))
    assert 'begin="2" end="3"' in xmi[".xmi"]


def test_a_zip_as_inception_exports_it(tmp_path: Path) -> None:
    path = tmp_path / "admin.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("admin.xmi", format_inception(HARD)[".xmi"])
        archive.writestr(TYPE_SYSTEM, format_type_system())
    (document,) = read_inception(path)
    assert (document.id, document.text) == (HARD.id, HARD.text)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("admin.xmi", "")
    with pytest.raises(BioclinError, match=r"wants one \.xmi file and TypeSystem\.xml"):
        read_inception(path)


def test_characters_that_xml_cannot_hold_come_back(tmp_path: Path) -> None:
    text = "a" + "b".join(("\x01", "\x0b", "\x1f", "\ufffe", "\uffff", "\r", "\x85")) + "b"
    (tmp_path / TYPE_SYSTEM).write_text(format_type_system(), "utf-8")
    path = tmp_path / "n.xmi"
    path.write_text(format_inception(AnnotatedText("n", text))[".xmi"], "utf-8")
    assert read_inception(path)[0].text == text


def test_private_characters_of_other_documents_stay(tmp_path: Path) -> None:
    (document,) = read_inception(write_own(tmp_path, "😀 tos y fiebre \ue70b"))
    assert document.text == "😀 tos y fiebre \ue70b"
    ours = AnnotatedText("n", "a\ue70b")
    with pytest.raises(BioclinError, match="n: the text has private characters"):
        write_corpus([ours], tmp_path / "out", "inception")


def test_entities_and_missing_files(tmp_path: Path) -> None:
    path = write_own(tmp_path)
    (tmp_path / TYPE_SYSTEM).unlink()
    with pytest.raises(BioclinError, match=TYPE_SYSTEM):
        read_inception(path)
    (tmp_path / TYPE_SYSTEM).write_text(format_type_system(), "utf-8")
    path.write_text('<!DOCTYPE r [<!ENTITY a "b">]><r/>', "utf-8")
    with pytest.raises(BioclinError, match="defines XML entities"):
        read_inception(path)
