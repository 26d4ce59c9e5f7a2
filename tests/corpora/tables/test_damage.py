"""Whatever is in a file of texts or pairs, the error is one that names it and quotes nothing."""

from pathlib import Path

import pytest

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


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("format", TABLE_FORMATS)
def test_damaged_files(tmp_path: Path, format: str, content: str) -> None:
    suffix = TABLE_FORMATS[format].suffixes[0]
    path = tmp_path / "labels" / f"x{suffix}"
    for folder in ("labels", "text"):
        (tmp_path / folder).mkdir()
    path.write_bytes(CONTENTS[content])
    (tmp_path / "text" / path.name).write_text("One .\nTwo .\n")
    try:
        rows, _ = read_texts(format, [path])
    except BioclinError as error:
        message = str(error).replace(str(tmp_path), "")
        assert SECRET not in message and path.name in message and len(message) < 500
        assert error.__cause__ is None and error.__context__ is None
    else:  # hoc: any string can be a label, until the task says which there are
        assert format.startswith("hoc") and content in ("segments", "a line") and len(rows) == 2
