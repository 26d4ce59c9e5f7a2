"""Whatever is in a file of texts or pairs, the error is one that names it and quotes nothing."""

import itertools
from pathlib import Path

from spacy_bioclin.corpora.tables.formats import TABLE_FORMATS, read_texts
from spacy_bioclin.errors import BioclinError

SECRET = "Zyxwin, 12345"  # no name of a column, which a message may show
CONTENTS = {
    "nothing": b"",
    "a line": f"{SECRET}\n".encode(),
    "cells": f"{SECRET}\t{SECRET}\t{SECRET}\n".encode() * 3,
    "a quotation mark": f'"{SECRET}\t"\n'.encode(),
    "other bytes": b"\xff\xfe\x00" + SECRET.encode("utf-16"),
    "NUL": f"{SECRET}\0\n".encode(),
    "half a surrogate pair": b'{"sentence1": "\\ud800' + SECRET.encode() + b'"}\n',
    "numbers": b"{" * 5000,
    "XML": f"<a><b>{SECRET}</a>".encode(),
    "deep XML": b"<a>" * 5000,
    "JSON": f'{{"{SECRET}": ["{SECRET}"]}}\n'.encode(),
    "segments": f"<{SECRET}<{SECRET}".encode(),
}


def test_damaged_files(tmp_path: Path) -> None:
    for folder in ("labels", "text"):
        (tmp_path / folder).mkdir()
    wrong: list[object] = []
    for format, content in itertools.product(TABLE_FORMATS, CONTENTS):
        name = f"x{TABLE_FORMATS[format].suffixes[0]}"
        path = tmp_path / "labels" / name
        path.write_bytes(CONTENTS[content])
        (tmp_path / "text" / name).write_text("One .\nTwo .\n")
        try:
            rows, _ = read_texts(format, [path])
        except BioclinError as error:
            message = str(error).replace(str(tmp_path), "")
            if SECRET in message or name not in message or len(message) >= 500:
                wrong.append((format, content, message))
            if error.__cause__ or error.__context__:
                wrong.append((format, content, "an error behind it"))
        else:  # hoc: any string can be a label, until the task says which there are
            is_label = format.startswith("hoc") and content in ("segments", "a line")
            if not is_label or len(rows) != 2:
                wrong.append((format, content, rows))
        path.unlink()
    assert not wrong
