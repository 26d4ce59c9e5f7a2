"""Tables: delimiters, recognised and named columns, cells with several values, broken rows."""

from pathlib import Path

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.kb.concepts import Alias, Concept, SkipReport
from spacy_bioclin.linking.readers.headers import Columns
from spacy_bioclin.linking.readers.table import COMMAS, UNCLOSED, UNREAD, read_table


def read(
    tmp_path: Path, text: str, columns: Columns | None = None
) -> tuple[list[Concept], SkipReport]:
    path = tmp_path / "t.tsv"
    path.write_text(text, "utf-8", newline="")
    report = SkipReport()
    return list(read_table(path, report, columns=columns)), report


def test_delimiters_and_spanish_headers(tmp_path: Path) -> None:
    rows = [["Código", "Descriptor completo", "Descriptor corto"], ["8140/3", "Adeno ca", "Adca"]]
    for delimiter in "\t;,|":
        text = "".join(delimiter.join(row) + "\r\n" for row in rows)
        concepts, report = read(tmp_path, text)
        assert concepts == [Concept("8140/3", "Adeno ca", aliases=(Alias("Adca"),))]
        assert not report.counts


def test_a_tab_wins_over_commas_in_the_first_line(tmp_path: Path) -> None:
    concepts, _ = read(tmp_path, "C1\ta, b, c, d\n", {"id": "1", "name": "2"})
    assert concepts == [Concept("C1", "a, b, c, d")]


def test_every_key_and_several_values_a_cell(tmp_path: Path) -> None:
    concepts, _ = read(
        tmp_path,
        "cui,name,synonyms,language,type_ids,description,parent_ids,xrefs\n"
        'C1,"pain, acute| ache",hurt| sore ,es-ES,T1|T2,"a  long\n\nstory",C0|C9,A:1|B:2\n',
    )
    assert concepts == [
        Concept(
            "C1",
            "pain, acute",
            "es",
            aliases=(Alias("ache", "es"), Alias("hurt", "es"), Alias("sore", "es")),
            types=("T1", "T2"),
            definition="a long story",
            parents=("C0", "C9"),
            xrefs=("A:1", "B:2"),
        )
    ]


def test_every_column_of_synonyms_is_read(tmp_path: Path) -> None:
    aliases = tuple(map(Alias, ("ataque", "IAM", "síncope")))
    for headers in ("synonyms,Otros nombres", "Sinónimo 1,Sinónimo 2", "alias_1,siglas"):
        text = f"code,name,{headers}\nA,infarto,ataque|IAM,síncope\n"
        concepts, report = read(tmp_path, text)
        assert concepts == [Concept("A", "infarto", aliases=aliases)]
        assert not report.counts


def test_values_of_other_columns_are_counted(tmp_path: Path) -> None:
    text = "id,name,ward,short,Notes\nA,a,x,,\nB,b,y,s,\n"
    assert read(tmp_path, text)[1].counts == {UNREAD.format("ward"): 2, UNREAD.format("short"): 1}
    _, report = read(tmp_path, text, {"id": "id", "alias": ["short"]})
    assert report.counts[UNREAD.format("name")] == 2 and UNREAD.format("short") not in report.counts
    _, report = read(tmp_path, "A\tx\ty\nB\tz\n", {"id": "1", "name": "2"})
    assert report.places == {UNREAD.format("3"): [f"{tmp_path / 't.tsv'}, line 1"]}


def test_a_description_is_the_name_where_no_other_is(tmp_path: Path) -> None:
    assert read(tmp_path, "code\tdescription\nA\tpain\n")[0] == [Concept("A", "pain")]


def test_columns_by_header_are_the_only_ones_read(tmp_path: Path) -> None:
    text = "id\tname\tlabel\n<http://purl.obolibrary.org/obo/HP_0000001>\tno\tyes\n"
    concepts, _ = read(tmp_path, text, {"id": "id", "alias": ["label"]})
    assert concepts == [Concept("HP:0000001", aliases=(Alias("yes"),))]


def test_columns_by_number_read_the_first_line_too(tmp_path: Path) -> None:
    concepts, report = read(tmp_path, "A\tx\ty\nB\n", {"id": "1", "name": "2", "alias": ["3"]})
    assert concepts == [Concept("A", "x", aliases=(Alias("y"),))]
    assert report.places == {"no name": [f"{tmp_path / 't.tsv'}, line 2"]}


def test_broken_rows_are_counted(tmp_path: Path) -> None:
    concepts, report = read(
        tmp_path,
        'id\tname\n\tno id\nA\t\nB\tb\tmore\n\nC\t"open\nD\td\nE\te"\nF\tf\t\t\n',
    )
    assert concepts == [Concept("F", "f")]
    assert report.counts == {
        "no id": 1,
        "no name": 1,
        "more cells than the first line": 1,
        UNCLOSED: 3,
    }


def test_lines_within_a_quote_of_any_column_are_counted(tmp_path: Path) -> None:
    text = 'id\tname\tdefinition\nA\ta\t"open\nB\tb\tx\nC\tc\t"x"\nD\td\t"one\ntwo"\n'
    concepts, report = read(tmp_path, text)
    assert concepts == [Concept("D", "d", definition="one two")]
    assert report.counts == {UNCLOSED: 3}
    concepts, report = read(tmp_path, 'id,name\nA,"open\nB,b\nC,c\n')
    assert not concepts
    assert report.counts[UNCLOSED] >= 3


WRONG = [
    ("", None, "no line in it"),
    (",,\n", None, "no column is recognised as the id"),
    ('"id\tname\nA\ta\n', None, "no column is recognised as the id"),
    ("id^name\nA^a\n", None, "line 1: one column only"),
    ("id\tfoo\nA\ta\n", None, "no column is recognised as the name; there are 'id', 'foo'"),
    ("foo\tname\nA\ta\n", None, "no column is recognised as the id"),
    ("id\tfoo\nA\ta\n", {"id": "id", "name": "bar"}, r"no column 'bar' \(name\)"),
    ("A\ta\n", {"id": "1", "name": "3"}, r"no column '3' \(name\); there are '1', '2'"),
    ("id\tfoo\n", {"id": "id", "nom": "foo"}, "no key 'nom'; there are id, name"),
    ("id\tfoo\n", {"name": "foo"}, "must name the column of the id"),
    ("id\tname\nA\t" + '"open\n' + "x\n" * 100_000, None, "a quote before it may never be"),
]


def test_wrong_tables_are_errors(tmp_path: Path) -> None:
    for text, columns, message in WRONG:
        with pytest.raises(BioclinError, match=message):
            read(tmp_path, text, columns)


# Headers -> what is read of the row "1, 2, 3 …": id, name, aliases.
HEADERS = {
    "CODIGO;DENOMINACION;SINONIMOS": ("1", "2", ["3"]),
    "Cód. diagnóstico;Desc. diagnóstico;Desc. corta": ("1", "2", ["3"]),
    "COD_SERVICIO;COD_PRUEBA;DES_PRUEBA": ("2", "3", []),
    "CN;ATC;NOMBRE_COMERCIAL": ("1", "3", []),
    "CIE-10;Diagnóstico": ("1", "2", []),
    "ICD10CM;Long Title;Short Title": ("1", "2", ["3"]),
    "LOINC_NUM;LONG_COMMON_NAME;DisplayName": ("1", "2", ["3"]),
    "code;name_es;name_en;Sinónimos (inglés)": ("1", "2", ["3", "4"]),
    "code;Español;Inglés": ("1", "2", ["3"]),
    "CODIGO;FOO;SINONIMOS": None,
    "COD_A;COD_B;DESCRIPCION": None,
    "COD_A;DES_B;DES_C": None,
}


def test_headers_of_hospitals(tmp_path: Path) -> None:
    found: dict[str, object] = {}
    for header in HEADERS:
        n = header.count(";") + 1
        try:
            ((id, name, _, aliases, *_),), _ = read(
                tmp_path, f"{header}\n{';'.join(str(i + 1) for i in range(n))}\n"
            )
            found[header] = (id, name, [alias.text for alias in aliases])
        except BioclinError as error:
            assert "no column is recognised as the" in str(error)
            found[header] = None
    assert found == HEADERS
    concepts, _ = read(tmp_path, "code;name_es;name_en\nA;tos;cough\n")
    assert concepts == [Concept("A", "tos", "es", aliases=(Alias("cough", "en"),))]


def test_a_title_above_the_header_is_counted(tmp_path: Path) -> None:
    concepts, report = read(tmp_path, "Catálogo, versión 3\n\ncodigo;nombre\nA;tos\n")
    assert concepts == [Concept("A", "tos")] and report.counts == {"line above the header": 1}
    with pytest.raises(BioclinError, match="line 1: no column"):
        read(tmp_path, "uno;dos\nA;tos\n")


# Cells of a column of synonyms, and the names in them.
LISTS = [
    (["HTA; tensión alta|hipertensión"], [["HTA", "tensión alta", "hipertensión"]]),
    (["HTA, tensión alta", "IAM,infarto"], [["HTA", "tensión alta"], ["IAM", "infarto"]]),
    (["Diabetes, tipo 2", "arthritis, rheumatoid"], None),
    (["vitamina 1,25", "N,N-dimetilo"], None),
    (["a, b; c, d"], [["a, b", "c, d"]]),
    (["LMA con t(8;21)(q22;q22); LMA (M2, M3)"], [["LMA con t(8;21)(q22;q22)", "LMA (M2, M3)"]]),
]


def test_several_names_in_a_cell(tmp_path: Path) -> None:
    for cells, names in LISTS:
        rows = "".join(f'{i}\tx\t"{cell}"\n' for i, cell in enumerate(cells))
        concepts, report = read(tmp_path, f"code\tname\tsinonimos\n{rows}")
        found = [[alias.text for alias in concept.aliases] for concept in concepts]
        assert found == (names or [[cell] for cell in cells])
    # What the preferred name has is part of its aliases.
    concepts, _ = read(tmp_path, "code\tname\talias\nA\tLeucemia; BCR-ABL1\tLMC; BCR-ABL1\n")
    assert concepts[0].aliases == (Alias("LMC; BCR-ABL1"),)
    # Commas that are part of a name are said.
    concepts, report = read(tmp_path, "code\tname\tsinonimos\nA\tx\tDiabetes, tipo 2\n")
    assert report.counts == {COMMAS.format("sinonimos"): 1}
    concepts, _ = read(tmp_path, "code\tname\tdescriptor corto\nA\tx\tTos, t(9; 22); fiebre\n")
    assert concepts[0].aliases == (Alias("Tos, t(9; 22); fiebre"),)


RETIRED = {
    "STATUS": ("ACTIVE TRIAL", "DEPRECATED inactive"),
    "estado": ("A Activo ALTA", "Baja Inactivo Obsoleto"),
    "activo": ("1 S Sí true", "0 N No false"),
    "deprecated": ("0 false no", "1 TRUE yes"),
    "invalid_reason": ("NULL", "D U"),
    "Fecha baja": ("31/12/2099 9999-12-31", "2020-01-01 3/2/2019"),
}


def test_retired_rows_are_left_out_and_counted(tmp_path: Path) -> None:
    for header, (current, retired) in RETIRED.items():
        values = [*current.split(), "", *retired.split()]
        rows = "".join(f"{i}\tx\t{value}\n" for i, value in enumerate(values))
        concepts, report = read(tmp_path, f"code\tname\t{header}\n{rows}")
        n = len(retired.split())
        assert len(concepts) == len(values) - n, header
        assert report.counts == {f"retired: column {header!r} says so": n}
