"""Readers of texts and pairs, on invented files and on the real corpora."""

from collections import Counter
from pathlib import Path

import pytest

from spacy_bioclin.corpora.tables.formats import read_texts
from spacy_bioclin.corpora.tables.hallmarks import list_nodes
from spacy_bioclin.corpora.texts import LabeledText
from spacy_bioclin.errors import BioclinError

SECRET = "Zyxwin"
EUADR_HEADER = (
    '"ASSOCIATION_TYPE"\t"PMID"\t"NUM_SENTENCE"\t"ENTITY1_TEXT"\t"ENTITY1_INI"\t"ENTITY1_END"\t'
    '"ENTITY1_TYPE"\t"ENTITY2_TEXT"\t"ENTITY2_INI"\t"ENTITY2_END"\t"ENTITY2_TYPE"\t"SENTENCE"\n'
)
BIOSSES_HEADER = "pair_id\tsentence1\tsentence2\tannotator_A\tmean_score\n"


def write(path: Path, content: str, encoding: str = "utf-8") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode(encoding))
    return path


def get_error(format: str, path: Path) -> str:
    with pytest.raises(BioclinError) as raised:
        read_texts(format, [path])
    message = str(raised.value).replace(str(path.parent), "")
    assert SECRET not in message and path.name in message
    return message


def test_rqe(tmp_path: Path) -> None:
    content = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<RQE-med-train>\n'
        '<pair pid="1" type="x" value="true"><chq>\n  Is fever\n a sign?\n</chq><faq>Fever?</faq>'
        '</pair>\n<pair pid="2" value="false"><chq>A &lt; B?</chq><faq>C?</faq></pair>\n'
        '<pair pid="3" value="false"><chq>\n</chq><faq>D?</faq></pair>\n</RQE-med-train>\n'
    )
    path = write(tmp_path / "RQE_Train_8588_AMIA2016.xml", content)
    assert read_texts("rqe", [path]) == (
        [
            LabeledText("train-1", ("Is fever a sign?", "Fever?"), ("true",), None),
            LabeledText("train-2", ("A < B?", "C?"), ("false",), None),
        ],
        1,  # a question is empty
    )


def test_bad_rqe(tmp_path: Path) -> None:
    rows = [
        (f"<a><pair pid='1' value='{SECRET}'/></a>", "line 1: want a pair with a pid"),
        (f"<a><pair value='true'><chq>{SECRET}</chq></pair></a>", "want a pair with a pid"),
        (f"<a><pair pid='1' value='true'>{SECRET}</a>", "malformed XML"),
        (f'<!DOCTYPE a [<!ENTITY x "{SECRET}">]><a/>', "defines XML entities"),
        ("<a/>", "no texts to convert"),
        ("<a><pair pid='1' value='true'/></a>", "no texts to convert"),
    ]
    wrong = [
        (content, found)
        for content, message in rows
        for found in [get_error("rqe", write(tmp_path / "RQE_Test_1.xml", content))]
        if message not in found
    ]
    assert not wrong


def test_biosses(tmp_path: Path) -> None:
    rows = 'p1\tThe "gene.\tThe gene is here.\t4\t3.80\np2\tA \tB\t0\t0\n'
    path = write(tmp_path / "biosses.tsv", BIOSSES_HEADER + rows)
    assert read_texts("biosses", [path])[0] == [
        LabeledText("p1", ('The "gene.', "The gene is here."), (), 3.8),
        LabeledText("p2", ("A ", "B"), (), 0.0),
    ]


def test_bad_biosses(tmp_path: Path) -> None:
    rows = [
        (f"p1\t{SECRET}\tB\t4\t4.5\n", "line 2: mean_score is not a number from 0 to 4"),
        (f"p1\tA\tB\t4\t{SECRET}\n", "line 2: mean_score is not a number"),
        (f"p1\tA\tB\t4\t4\np2\t{SECRET}\tB\n", "line 3: 3 columns, but the header has 5"),
        ("p1\tA\tB\t4\tnan\n", "line 2: mean_score"),
        ("p1\tA\tB\t4\t1\np1\tC\tD\t4\t1\n", "two rows have the same id"),
    ]
    wrong = [
        (content, found)
        for content, message in rows
        for found in [
            get_error("biosses", write(tmp_path / "biosses.tsv", BIOSSES_HEADER + content))
        ]
        if message not in found
    ]
    assert not wrong


def test_nodes_of_a_label() -> None:
    assert list_nodes("A--B --C", 1) == ["A"]
    assert list_nodes("A--B --C", 2) == ["A", "A--B"]
    assert list_nodes("A--", 9) == ["A"]


def test_hoc(tmp_path: Path) -> None:
    write(tmp_path / "text" / "7.txt", "One .\n\nTwo .\nThree .\nFour . \n")
    labels = "< <NULL <Death--Apoptosis ANDGrowth--Receptors--A ANDDeath--Necrosis< Growth--"
    write(tmp_path / "labels" / "7.txt", labels)
    found = {
        format: [(row.id, row.texts[0], row.labels) for row in read_texts(format, [folder])[0]]
        for format in ("hoc", "hoc-nodes")
        for folder in [tmp_path / "labels"]
    }
    assert found["hoc"] == [
        ("7-0", "One .", ()),
        ("7-1", "Two .", ()),
        ("7-2", "Three .", ("Death", "Growth")),
        ("7-3", "Four .", ("Growth",)),
    ]
    assert found["hoc-nodes"][2][2] == (
        *("Death", "Death--Apoptosis", "Death--Necrosis"),
        *("Growth", "Growth--Receptors", "Growth--Receptors--A"),
    )


def test_hoc_with_other_texts(tmp_path: Path) -> None:
    path = write(tmp_path / "labels" / "7.txt", "< <")
    with pytest.raises(BioclinError, match=r"text.7\.txt"):
        read_texts("hoc", [path])
    write(tmp_path / "text" / "7.txt", f"{SECRET} .\n")
    assert "has labels of 2 sentences, but the abstract has 1" in get_error("hoc", path)


def test_gad(tmp_path: Path) -> None:
    train = write(tmp_path / "train.tsv", '@GENE$ in @DISEASE$.\t1\nIt\'s "not" @GENE$.\t0\n')
    test = write(tmp_path / "test.tsv", "index\tsentence\tlabel\n0\t@GENE$ in @DISEASE$.\t0\n")
    assert read_texts("gad", [train, test])[0] == [
        LabeledText("train-0", ("@GENE$ in @DISEASE$.",), ("yes",), None),
        LabeledText("train-1", ('It\'s "not" @GENE$.',), ("no",), None),
        LabeledText("test-0", ("@GENE$ in @DISEASE$.",), ("no",), None),
    ]
    bad = write(tmp_path / "bad.tsv", f"A\t1\n{SECRET}\tx\n")
    assert "line 2: want a sentence and the label 0 or 1" in get_error("gad", bad)


def test_euadr(tmp_path: Path) -> None:
    rows = (
        '"PA"\t11\t3\t"ABC1"\t0\t4\t"Genes & Molecular Sequences"\t"gota"\t9\t13\t'
        '"Diseases & Disorders"\t"ABC1 and gota ""é""."\n'
        '"FA"\t11\t4\t"asma"\t7\t11\t"Diseases & Disorders"\t"rs1"\t0\t3\t'
        '"SNP & Sequence variations"\t"rs1 en asma."\n'
        '"NA"\t12\t0\t"x"\t0\t1\t"Chemicals & Drugs"\t"y"\t2\t3\t"Diseases & Disorders"\t"x y"\n'
        '"SA"\t12\t0\t"x"\t0\t1\t"Chemicals & Drugs"\t"y"\t2\t3\t"Diseases & Disorders"\t"x y"\n'
    )
    path = write(tmp_path / "e.csv", EUADR_HEADER + rows, "latin-1")
    assert read_texts("euadr", [path])[0] == [
        LabeledText("11-0", ('@GENE$ and @DISEASE$ "é".',), ("yes",), None),
        LabeledText("11-1", ("@GENE$ en @DISEASE$.",), ("no",), None),
        LabeledText("12-2", ("@CHEMICAL$ @DISEASE$",), ("yes",), None),
        LabeledText("12-3", ("@CHEMICAL$ @DISEASE$",), ("yes",), None),
    ]


DISEASE = '"Diseases & Disorders"'


def test_bad_euadr(tmp_path: Path) -> None:
    rows = [
        (f'"XX"\t1\t1\t""\t0\t1\t{DISEASE}\t""\t2\t3\t{DISEASE}\t"{SECRET}"', "is not PA, NA"),
        (f'"PA"\t1\t1\t""\t0\t99\t{DISEASE}\t""\t2\t3\t{DISEASE}\t"{SECRET}"', "not within"),
        (f'"PA"\t1\t1\t""\t0\t3\t{DISEASE}\t""\t2\t4\t{DISEASE}\t"{SECRET}"', "overlap"),
        (f'"PA"\t1\t1\t""\t0\t1\t"{SECRET}"\t""\t2\t3\t{DISEASE}\t"{SECRET}"', "ENTITY1_TYPE"),
        (f'"PA"\t1\t1\t"{SECRET}"', "number of cells"),
        (f'"PA"\t1\t1\t"{SECRET}', "quotation mark"),
    ]
    wrong = [
        (content, found)
        for content, message in rows
        for found in [get_error("euadr", write(tmp_path / "e.csv", f"{EUADR_HEADER}{content}\n"))]
        if message not in found
    ]
    assert not wrong


def test_euadr_without_a_column(tmp_path: Path) -> None:
    path = write(tmp_path / "e.csv", EUADR_HEADER.replace("PMID", "ID"))
    assert "no column 'PMID'" in get_error("euadr", path)


def test_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(BioclinError, match="format is 'brat', want one of biosses"):
        read_texts("brat", [tmp_path])


@pytest.mark.corpora
def test_real_files(data_dir: Path) -> None:
    rows: list[tuple[str, str, int, dict[str, int]]] = [
        ("rqe", "rqe/RQE_Test_302_pairs_AMIA2016.xml", 302, {"true": 129, "false": 173}),
        ("gad", "gad/train.tsv", 4796, {"yes": 2520, "no": 2276}),
        ("gad", "gad/test.tsv", 534, {"yes": 281, "no": 253}),
        ("euadr", "euadr/EUADR_target_disease.csv", 355, {"yes": 262, "no": 93}),
        ("biosses", "biosses/biosses.tsv", 100, {}),
    ]
    assert [row for row in rows if count_rows(data_dir, row) != row] == []


@pytest.mark.corpora
@pytest.mark.slow
def test_large_real_files(data_dir: Path) -> None:
    rows: list[tuple[str, str, int, dict[str, int]]] = [
        ("rqe", "rqe/RQE_Train_8588_AMIA2016.xml", 8587, {"true": 4654, "false": 3933}),
        ("hoc", "hoc/labels", 17464, {"Tumor promoting inflammation": 518}),
    ]
    assert [row for row in rows if count_rows(data_dir, row) != row] == []


def count_rows(
    data_dir: Path, row: tuple[str, str, int, dict[str, int]]
) -> tuple[str, str, int, dict[str, int]]:
    """RETURNS: The row, with the number of rows and of each of its labels in the file."""
    format, path, _, counts = row
    read, _ = read_texts(format, [data_dir / path])
    found = Counter(label for each in read for label in each.labels)
    return format, path, len(read), {label: found[label] for label in counts}
