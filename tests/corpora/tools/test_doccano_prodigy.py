"""doccano and Prodigy: files as these tools write them."""

import json
from pathlib import Path
from typing import Any

import pytest

from spacy_bioclin.corpora.docs import spans_of
from spacy_bioclin.corpora.tools.doccano import format_doccano, read_doccano
from spacy_bioclin.corpora.tools.prodigy import format_prodigy, make_tokens, read_prodigy
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.types import RelationAnnotation
from tests.corpora.tools.documents import HARD


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return path


def test_doccano_counts_utf16_units_and_crlf_as_one(tmp_path: Path) -> None:
    # https://github.com/doccano/doccano/issues/2290: this word is at 22-32 in doccano, at 19-29 in
    # Python, if the text has the joiner that the issue lost in print.
    text = "👨🏻‍🚒 firemen drive firetrucks"
    row = {"id": 1, "text": text, "label": [[22, 32, "X"]], "Comments": []}
    crlf = {"id": 2, "data": "a\r\nb", "label": [[2, 3, "X"]]}
    first, second = read_doccano(write(tmp_path / "d.jsonl", row, crlf))
    assert [text[s:e] for span in spans_of(first) for s, e in span.fragments] == ["firetrucks"]
    assert [span.fragments for span in spans_of(second)] == [((3, 4),)]


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    path = write(tmp_path / "d.jsonl", {"text": "a😀b", "label": [[3, 4, "X"]]})
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    (document,) = read_doccano(path)
    assert [span.fragments for span in spans_of(document)] == [((2, 3),)]


def test_doccano_gives_new_ids_and_relations_follow(tmp_path: Path) -> None:
    row = json.loads(format_doccano([HARD]))
    for entity in row["entities"]:
        entity["id"] += 100
    for relation in row["relations"]:
        relation |= {"from_id": relation["from_id"] + 100, "to_id": relation["to_id"] + 100}
    row["id"] = 55
    (document,) = read_doccano(write(tmp_path / "d.jsonl", row))
    assert (document.id, document.text) == (HARD.id, HARD.text)
    by_id = {span.id: span for span in spans_of(document)}
    assert {span.fragments for span in by_id.values()} == {s.fragments for s in spans_of(HARD)}
    (relation,) = (a for a in document.annotations if isinstance(a, RelationAnnotation))
    assert [by_id[target].surface for _, target in relation.args] == [
        "Dolor en brazo",
        "disne\u0301a",
    ]


def test_doccano_offsets_that_are_none(tmp_path: Path) -> None:
    for offset in (2, -1, 1.5, True, None):
        row = {"text": "a😀", "label": [[0, offset, "X"]]}  # 2 is within the smiley
        with pytest.raises(BioclinError, match=r"line 1: (an offset is not|offset 2 is not)"):
            read_doccano(write(tmp_path / "d.jsonl", row))


def test_prodigy_tokens_are_the_text() -> None:
    for text in ("", " a  b\n\nc", "disne\u0301a, 38.5 ºC\t😀", HARD.text):
        tokens = make_tokens(text, {1, 3}, {2, 4})
        joined = "".join(token["text"] + (" " if token["ws"] else "") for token in tokens)
        assert joined == text
        assert [token["id"] for token in tokens] == list(range(len(tokens)))
        assert all(text[token["start"] : token["end"]] == token["text"] for token in tokens)


def test_prodigy_spans_begin_and_end_with_tokens() -> None:
    row = json.loads(format_prodigy([HARD]))
    for span in row["spans"]:
        first, last = (row["tokens"][span[key]] for key in ("token_start", "token_end"))
        assert (first["start"], last["end"]) == (span["start"], span["end"])
    heads = {row["tokens"][relation["head"]]["text"] for relation in row["relations"]}
    assert heads == {"brazo", "Dolor"}  # the last token of T2; that of the first fragment of T3


def test_prodigy_answers(tmp_path: Path) -> None:
    row = json.loads(format_prodigy([HARD]))
    # As after correcting: Prodigy writes spans and the ends of relations again, without our ids.
    for relation in row["relations"]:
        for end in ("head_span", "child_span"):
            relation[end].pop("id")
    done = [{**row, "answer": answer} for answer in ("accept", "reject", "ignore")]
    skipped: list[BioclinError] = []
    path = write(tmp_path / "p.jsonl", *done, row)
    (document,) = read_prodigy(path, lambda name, error: skipped.append(error))
    assert len(skipped) == 3
    assert {s.fragments for s in spans_of(document)} == {s.fragments for s in spans_of(HARD)}
    (relation,) = (a for a in document.annotations if isinstance(a, RelationAnnotation))
    assert relation.args == (("Arg1", "T2"), ("Arg2", "T1"))
    with pytest.raises(BioclinError, match="line 2: was not accepted in Prodigy"):
        read_prodigy(path)
