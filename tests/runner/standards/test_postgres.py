"""Rows of NOTE_NLP are loaded into a real PostgreSQL.

The test runs where BIOCLIN_POSTGRES is a connection string of psql ("host=/tmp dbname=test"), for a
database in which a schema may be made. The schema is dropped at the end.
"""

import csv
import io
import os
import subprocess
from datetime import datetime

import pytest

from spacy_bioclin.runner.standards.omop import NoteNlpRow, OmopSettings, to_note_nlp

from .notes import make_doc
from .test_omop import CONCEPTS, DDL


@pytest.mark.skipif("BIOCLIN_POSTGRES" not in os.environ, reason="BIOCLIN_POSTGRES is not set")
def test_rows_are_loaded_into_postgresql() -> None:
    words = "ñ" * 300
    doc = make_doc(
        f'😀 AP: HTA "y" \\N , {words} fiebre',
        [
            ("HTA", "DISEASE", "MESH:D006973", ["historical"]),
            ('"y"', "A,B", "", []),
            (words, "DISEASE", "", ["uncertain"]),
            ("fiebre", "L" * 2100, "HP:0001945", ["negated"]),
        ],
        sections=[("past_history", "11348-0", "AP:")],
    )
    settings = OmopSettings(
        nlp_system="demo 1.0", nlp_datetime=datetime(2026, 11, 25, 9, 30), snippet=True
    )
    rows = to_note_nlp(doc, note_id=7, first_id=1, settings=settings, concepts=CONCEPTS)
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows(rows)
    columns = ", ".join(f'"{name}"' for name in NoteNlpRow._fields)
    concept_ids = ", ".join(f"({each})" for each in (0, 320128, 45618364, 437663, 3000001))
    asked = 'lexical_variant = substring(note.text FROM "offset"::integer + 1 FOR 3), term_exists'
    text = doc.text.replace("'", "''")
    script = f"""
    CREATE SCHEMA bioclin_test;
    SET search_path TO bioclin_test;
    {DDL}
    INSERT INTO concept VALUES {concept_ids};
    INSERT INTO note VALUES (7);
    COPY note_nlp ({columns}) FROM STDIN WITH (FORMAT csv);
{table.getvalue()}\\.
    SELECT {asked} FROM note_nlp, (SELECT '{text}' AS text) note WHERE note_nlp_id <= 2
        ORDER BY note_nlp_id;
    SELECT count(*), sum(length(snippet)), max(length(term_modifiers)) FROM note_nlp;
    DROP SCHEMA bioclin_test CASCADE;
    """
    command = ["psql", os.environ["BIOCLIN_POSTGRES"], "-qAtX", "-v", "ON_ERROR_STOP=1"]
    done = subprocess.run(
        [*command, "--single-transaction"], input=script, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["t|Y", "t|Y", "4|1000|2000"]
