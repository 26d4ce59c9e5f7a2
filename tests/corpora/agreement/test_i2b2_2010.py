"""Files of i2b2 2010, invented from its documentation."""

from pathlib import Path

import pytest

from spacy_bioclin.annotations.relations import get_gold_relations
from spacy_bioclin.corpora.agreement.i2b2_2010 import (
    Files,
    find_i2b2_2010,
    parse_i2b2_2010,
    read_i2b2_2010,
)
from spacy_bioclin.corpora.convert import convert_to_docs, make_nlp
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.corpora.docs import spans_of
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.types import AnnotatedText, NoteAnnotation, RelationAnnotation
from tests.corpora.errors import error_of, is_wrong

# Line 2 is empty, line 3 has two blanks between words, and a concept goes over lines 3 and 4.
TEXT = """\
Admission Date :

He had  Shortness of Breath and a " leaky
valve " , given Nebulizers .
"""
CON = """\
c="shortness of breath" 3:2 3:4||t="problem"
c="a " leaky valve "" 3:6 4:1||t="problem"
c="nebulizers" 4:4 4:4||t="treatment"
"""
AST = """\
c="shortness of breath" 3:2 3:4||t="problem"||a="present"
c="a " leaky valve "" 3:6 4:1||t="problem"||a="possible"
"""
REL = """\
c="nebulizers" 4:4 4:4||r="TrAP"||c="shortness of breath" 3:2 3:4
c="shortness of breath" 3:2 3:4||r="PIP"||c="a " leaky valve "" 3:6 4:1
"""
FILES = Files(Path("a.txt"), Path("a.con"), Path("a.rel"), Path("a.ast"))


def parse(
    text: str = TEXT, concepts: str = CON, relations: str = "", assertions: str = ""
) -> AnnotatedText:
    return parse_i2b2_2010(text, concepts, relations, assertions, id="a", files=FILES)


def covered(document: AnnotatedText) -> list[str]:
    return [document.text[s:e] for span in spans_of(document) for s, e in span.fragments]


def test_concepts() -> None:
    document = parse()
    assert document.text == TEXT
    assert covered(document) == ["Shortness of Breath", 'a " leaky\nvalve "', "Nebulizers"]
    assert [span.fragments for span in spans_of(document)] == [
        ((26, 45),), ((50, 67),), ((76, 86),),
    ]  # fmt: skip
    assert [span.label for span in spans_of(document)] == ["problem", "problem", "treatment"]
    # The file has them in lower case, which is no wrong offset.
    assert spans_of(document)[0].surface == "Shortness of Breath"


def test_relations_and_assertions() -> None:
    document = parse(relations=REL, assertions=AST)
    relations = [a for a in document.annotations if isinstance(a, RelationAnnotation)]
    assert [(r.label, r.args) for r in relations] == [
        ("TrAP", (("Arg1", "T3"), ("Arg2", "T1"))),
        ("PIP", (("Arg1", "T1"), ("Arg2", "T2"))),
    ]
    notes = [a for a in document.annotations if isinstance(a, NoteAnnotation)]
    assert [(n.kind, n.target, n.text) for n in notes] == [
        ("assertion", "T1", "present"),
        ("assertion", "T2", "possible"),
    ]


def test_words_that_two_blanks_separate() -> None:
    """The text shows whether the empty word between two blanks was counted."""
    for words in ("3:2 3:4", "3:3 3:5"):
        document = parse(concepts=f'c="shortness of breath" {words}||t="problem"\n')
        assert covered(document) == ["Shortness of Breath"]


def test_a_text_that_differs_is_counted(tmp_path: Path) -> None:
    document = parse(concepts='c="fever" 3:2 3:4||t="problem"\n')
    assert covered(document) == ["Shortness of Breath"]
    assert spans_of(document)[0].surface == "fever"


def test_line_ends_of_windows_and_a_byte_order_mark() -> None:
    text = "\ufeff" + TEXT.replace("\n", "\r\n")
    document = parse(text, CON.replace("\n", "\r\n"), REL.replace("\n", "\r\n"))
    assert covered(document)[0] == "Shortness of Breath" and document.text == text
    assert covered(document)[1] == 'a " leaky\r\nvalve "'


def test_malformed_files() -> None:
    rows = [
        ({"concepts": CON + 'c="x" 3:1||t="problem"'}, r"a.con, line 4: malformed, expected c="),
        ({"concepts": 'c="x" 1:0 1:0||t=""'}, r"a.con, line 1: malformed"),
        ({"concepts": 'c="x" 0:0 0:0||t="test"'}, r"a.con, line 1: the text has no words at 0:0"),
        ({"concepts": '\nc="x" 9:0 9:0||t="test"'}, r"a.con, line 2: the text has no words at 9:0"),
        ({"concepts": 'c="x" 1:0 1:7||t="test"'}, r"no words at 1:0 to 1:7; was it changed"),
        ({"concepts": 'c="x" 1:2 1:1||t="test"'}, r"no words at 1:2 to 1:1"),
        ({"assertions": 'c="x" 1:0 1:0||t="problem"||a="absent"'}, r"a.ast, line 1: no concept of"),
        ({"assertions": CON}, r"a.ast, line 1: malformed, expected .*a="),
        ({"relations": REL + "\n" + CON}, r"a.rel, line 4: malformed, expected .*r="),
    ]
    wrong = [
        (contents, found)
        for contents, message in rows
        for found in [error_of(parse, **contents)]
        if is_wrong(found, message, "leaky", "breath")
    ]
    assert not wrong


def write(folder: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, "utf-8")


def test_the_folders_of_the_release(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "train/beth/txt/record-1.txt": TEXT,
            "train/beth/concept/record-1.con": CON,
            "train/beth/ast/record-1.ast": AST,
            "train/beth/rel/record-1.rel": REL,
            "test_data/0002.txt": TEXT,
            "reference/concepts/0002.con": CON,
            "reference/rel/0002.rel": REL,
        },
    )
    convert_to_docs(
        "i2b2-2010",
        [tmp_path / "train", tmp_path / "reference"],
        tmp_path / "x.spacy",
        lang="en",
        relations=["TrAP", "PIP"],
    )
    docs = list(read_docs(tmp_path / "x.spacy", make_nlp("en").vocab))
    assert [doc.user_data["bioclin_gold"]["id"] for doc in docs] == ["0002", "record-1"][::-1]
    for doc in docs:
        assert doc.text == TEXT
        assert (doc.ents[0].text, doc.ents[0].label_) == ("Shortness of Breath", "problem")
        assert [(r.label, r.head[2], r.child[2]) for r in get_gold_relations(doc) or ()] == [
            ("TrAP", "treatment", "problem"),
            ("PIP", "problem", "problem"),
        ]


def test_a_relation_to_nothing_is_counted(tmp_path: Path) -> None:
    rel = 'c="had" 3:1 3:1||r="PIP"||c="shortness of breath" 3:2 3:4\n'
    write(tmp_path, {"a.txt": TEXT, "a.con": CON, "a.rel": REL + rel})
    with pytest.raises(BioclinError, match=r"1 of 3 relations"):
        convert_to_docs(
            "i2b2-2010", [tmp_path], tmp_path / "x.spacy", lang="en", relations=["TrAP", "PIP"]
        )


def test_files_that_are_missing(tmp_path: Path) -> None:
    with pytest.raises(BioclinError, match=r"with concepts end in \.con"):
        read_i2b2_2010(tmp_path / "a.txt")
    write(tmp_path, {"concept/a.con": CON})
    with pytest.raises(BioclinError, match=r"a\.txt is neither beside it nor in .*txt nor in "):
        read_i2b2_2010(tmp_path / "concept" / "a.con")
    write(tmp_path, {"concept/a.txt": TEXT})
    assert find_i2b2_2010(tmp_path / "concept" / "a.con")[2:] == (None, None)
    [document] = read_i2b2_2010(tmp_path / "concept" / "a.con")
    assert (document.id, len(document.annotations)) == ("a", 3)
