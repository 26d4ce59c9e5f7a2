"""The files of ChemProt, by invented documents."""

from pathlib import Path

import pytest

from spacy_bioclin.corpora.brat import format_ann, parse_ann
from spacy_bioclin.corpora.convert import read_corpus
from spacy_bioclin.corpora.docs import spans_of
from spacy_bioclin.corpora.formats import find_files, list_inputs
from spacy_bioclin.corpora.relations.chemprot import parse_chemprot, read_chemprot
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.types import NoteAnnotation, RelationAnnotation, SpanAnnotation
from tests.corpora.errors import error_of, is_wrong

ABSTRACTS = "7\tCloro 🙂 blocks X1.\tX1 is a gene.\n8\tNo names\t\n"
ENTITIES = "7\tT1\tCHEMICAL\t0\t5\tCloro\n7\tT2\tGENE-Y\t15\t17\tX1\n7\tT3\tGENE-N\t19\t21\tX1\n"
RELATIONS = (
    "7\tCPR:4\tY \tINHIBITOR\tArg1:T1\tArg2:T2\n7\tCPR:4\tY \tBLOCKER\tArg1:T1\tArg2:T2\n"
    "7\tCPR:2\tN \tREGULATOR\tArg1:T1\tArg2:T3\n"
)
SOURCES = ("a.tsv", "e.tsv", "r.tsv")


def parse(abstracts: str = ABSTRACTS, entities: str = ENTITIES, relations: str = RELATIONS):  # type: ignore[no-untyped-def]
    return parse_chemprot(abstracts, entities, relations, sources=SOURCES)


def test_documents() -> None:
    first, second = documents = parse()
    assert (first.id, first.text) == ("7", "Cloro 🙂 blocks X1.\nX1 is a gene.")
    assert [first.text[slice(*span.fragments[0])] for span in spans_of(first)] == [
        "Cloro", "X1", "X1",
    ]  # fmt: skip
    assert first.annotations == (
        SpanAnnotation("T1", "CHEMICAL", ((0, 5),), "Cloro"),
        SpanAnnotation("T2", "GENE-Y", ((15, 17),), "X1"),
        SpanAnnotation("T3", "GENE-N", ((19, 21),), "X1"),
        RelationAnnotation("R1", "CPR:4", (("Arg1", "T1"), ("Arg2", "T2"))),
        NoteAnnotation("", "type", "R1", "INHIBITOR"),
        RelationAnnotation("R2", "CPR:4", (("Arg1", "T1"), ("Arg2", "T2"))),
        NoteAnnotation("", "type", "R2", "BLOCKER"),
        RelationAnnotation("R3", "CPR:2", (("Arg1", "T1"), ("Arg2", "T3"))),
        NoteAnnotation("", "type", "R3", "REGULATOR"),
    )
    assert (second.id, second.text, second.annotations) == ("8", "No names\n", ())
    contents = (ABSTRACTS, ENTITIES, RELATIONS)
    assert parse(*(content.replace("\n", "\r\n") for content in contents)) == documents
    assert parse(*("\ufeff" + content for content in contents)) == documents


def test_it_can_be_written_as_brat() -> None:
    first = parse()[0]
    read = parse_ann(format_ann(first.annotations), text_length=len(first.text), source="x.ann")
    assert [a for a in read if not isinstance(a, NoteAnnotation)] == [
        a for a in first.annotations if not isinstance(a, NoteAnnotation)
    ]


def write(folder: Path, ending: str, relations: dict[str, str]) -> Path:
    folder.mkdir()
    (folder / f"x_abstracts{ending}").write_text(ABSTRACTS, "utf-8")
    (folder / f"x_entities{ending}").write_text(ENTITIES, "utf-8")
    for name, content in relations.items():
        (folder / name).write_text(content, "utf-8")
    return folder


def test_a_folder_of_files(tmp_path: Path) -> None:
    gold = "7\tCPR:4\tArg1:T1\tArg2:T2\n"
    train = write(tmp_path / "train", ".tsv", {"x_relations.tsv": RELATIONS,
                                                "x_gold_standard.tsv": gold})  # fmt: skip
    test = write(tmp_path / "test", "_gs.tsv", {"x_gold_standard.tsv": gold})
    assert find_files("chemprot", [tmp_path]) == [
        test / "x_abstracts_gs.tsv", train / "x_abstracts.tsv",
    ]  # fmt: skip
    assert {path.name for path in list_inputs("chemprot", [train])} == {
        "train", "x_abstracts.tsv", "x_entities.tsv", "x_relations.tsv", "x_gold_standard.tsv",
    }  # fmt: skip
    n_relations = {
        folder.name: sum(
            isinstance(annotation, RelationAnnotation)
            for document in read_corpus("chemprot", [folder])
            for annotation in document.annotations
        )
        for folder in (train, test)
    }
    assert n_relations == {"train": 3, "test": 1}


def test_files_that_are_missing(tmp_path: Path) -> None:
    folder = write(tmp_path / "x", ".tsv", {})
    with pytest.raises(BioclinError, match=r"x_relations.tsv and x_gold_standard.tsv are missing"):
        read_chemprot(folder / "x_abstracts.tsv")
    with pytest.raises(BioclinError, match=r"x_entities.tsv: .*with texts end in _abstracts.tsv"):
        read_chemprot(folder / "x_entities.tsv")
    (folder / "x_relations.tsv").write_text("")
    (folder / "x_entities.tsv").unlink()
    with pytest.raises(BioclinError, match=r"x_entities.tsv.*no such file"):
        read_chemprot(folder / "x_abstracts.tsv")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(BioclinError, match=r"no _abstracts.tsv or _abstracts_gs.tsv file"):
        find_files("chemprot", [empty])


def test_broken_files() -> None:
    rows = [
        (0, "7\tOnly a title\n", "a.tsv, line 1: expected document, title and abstract.* 2 col"),
        (0, ABSTRACTS + "7\tA\tB\n", "a.tsv, line 3: the document is there twice"),
        (0, "\tA\tB\n", "a.tsv, line 1"),
        (1, "7\tT1\tCHEMICAL\t0\t5\n", "e.tsv, line 1: expected document, entity.* 5 columns"),
        (1, "\n7\tT1\tCHEMICAL\t0\t-5\tx\n", "e.tsv, line 2: expected"),
        (1, "7\tT1\tCHEMICAL\t0\t99\tx\n", r"e.tsv, line 1: offsets 0-99 are not within the text"),
        (1, "7\tT1\t \t0\t5\tx\n", "e.tsv, line 1: the entity has no id or no label"),
        (1, ENTITIES + "7\tT1\tX\t0\t5\tx\n", "e.tsv, line 4: the document has this entity id tw"),
        (1, "9\tT1\tX\t0\t5\tx\n", "e.tsv, line 1: its document is not in a.tsv"),
        (2, "7\tCPR:4\tArg1:T1\n", "r.tsv, line 1: expected document, group.* 3 columns"),
        (2, "7\tCPR:4\tyes\tX\tArg1:T1\tArg2:T2\n", "r.tsv, line 1: expected .*Y or N"),
        (2, "7\tCPR:4\tT1\tT2\n", "r.tsv, line 1: the relation needs a group and arguments"),
        (2, "7\t\tArg1:T1\tArg2:T2\n", "r.tsv, line 1: the relation needs a group"),
        (2, "9\tCPR:4\tArg1:T1\tArg2:T2\n", "r.tsv, line 1: its document is not in a.tsv"),
    ]
    wrong: list[object] = []
    for which, content, message in rows:
        contents = [ABSTRACTS, "" if which == 0 else ENTITIES, "" if which == 0 else RELATIONS]
        contents[which] = content
        if is_wrong(found := error_of(parse, *contents), message):
            wrong.append((content, found))
    assert not wrong


def test_a_broken_document_can_be_skipped() -> None:
    errors: list[str] = []
    (document,) = parse_chemprot(
        ABSTRACTS,
        "7\tT1\tCHEMICAL\t0\n",
        RELATIONS,
        sources=SOURCES,
        on_error=lambda name, error: errors.append(str(error)),
    )
    assert document.id == "8" and len(errors) == 1 and "e.tsv, line 1" in errors[0]
