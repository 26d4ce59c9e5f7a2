"""Rows of NOTE_NLP are loaded into a real PostgreSQL, into the tables of the CDM.

The tests run where PostgreSQL is installed, or where BIOCLIN_POSTGRES is a connection string of
psql ("host=/tmp dbname=test"), for a database in which a schema may be made. The schemas are
dropped at the end.
"""

import csv
import io
import json
from datetime import datetime
from pathlib import Path

from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.runner.standards.omop import NoteNlpRow, OmopSettings, to_note_nlp
from tests.runner.postgres import run_psql

from .notes import CONCEPTS_CSV, NOTES, make_doc, write_pipeline
from .test_omop import CONCEPTS, DDL

COLUMNS = ", ".join(f'"{name}"' for name in NoteNlpRow._fields)
CONCEPT_IDS = ", ".join(f"({each})" for each in (0, 320128, 45618364, 437663, 3000001))


def test_rows_are_loaded_into_postgresql(postgres: str) -> None:
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
    asked = 'lexical_variant = substring(note.text FROM "offset"::integer + 1 FOR 3), term_exists'
    text = doc.text.replace("'", "''")
    script = f"""
    CREATE SCHEMA bioclin_test;
    SET search_path TO bioclin_test;
    {DDL}
    INSERT INTO concept VALUES {CONCEPT_IDS};
    INSERT INTO note VALUES (7);
    COPY note_nlp ({COLUMNS}) FROM STDIN WITH (FORMAT csv);
{table.getvalue()}\\.
    SELECT {asked} FROM note_nlp, (SELECT '{text}' AS text) note WHERE note_nlp_id <= 2
        ORDER BY note_nlp_id;
    SELECT count(*), sum(length(snippet)), max(length(term_modifiers)) FROM note_nlp;
    DROP SCHEMA bioclin_test CASCADE;
    """
    assert run_psql(postgres, script) == ["t|Y", "t|Y", "4|1000|2000"]


def test_the_table_of_a_run_is_loaded_whole(postgres: str, tmp_path: Path) -> None:
    """The file of `bioclin run` itself, with its notes beside it in the database."""
    write_pipeline(tmp_path / "model")
    (tmp_path / "concepts.csv").write_text(CONCEPTS_CSV, "utf-8")
    notes = tmp_path / "notes.jsonl"
    notes.write_text("".join(f"{json.dumps(note)}\n" for note in NOTES), "utf-8")
    out = tmp_path / "note_nlp.csv"
    paths = [str(tmp_path / "model"), str(notes), str(out)]
    more = ["--id-column", "note_id", "--concepts", str(tmp_path / "concepts.csv"), "--snippet"]
    done = CliRunner().invoke(app, ["run", *paths, "--to", "omop", *more])
    assert done.exit_code == 0, done.output
    texts = ", ".join(f"({n['note_id']}, $note${n['text']}$note$)" for n in NOTES)
    script = f"""
    CREATE SCHEMA bioclin_run;
    SET search_path TO bioclin_run;
    {DDL}
    ALTER TABLE note ADD COLUMN note_text text;
    INSERT INTO concept VALUES {CONCEPT_IDS};
    INSERT INTO note VALUES {texts};
    COPY note_nlp ({COLUMNS}) FROM STDIN WITH (FORMAT csv, HEADER);
{out.read_text("utf-8")}\\.
    SELECT count(*), count(DISTINCT note_nlp_id), min(note_nlp_id), max(note_nlp_id) FROM note_nlp;
    SELECT bool_and(lexical_variant = substring(note_text FROM "offset"::integer + 1
        FOR length(lexical_variant))) FROM note_nlp JOIN note USING (note_id);
    SELECT note_id, lexical_variant, note_nlp_concept_id, term_exists, section_concept_id
        FROM note_nlp ORDER BY note_nlp_id;
    DROP SCHEMA bioclin_run CASCADE;
    """
    assert run_psql(postgres, script) == [
        "5|5|1|5",
        "t",
        "70|HTA|320128|Y|3000001",
        "70|tos|0|N|3000001",
        "9|fiebre|437663|Y|",
        "9|tos|0|Y|",
        "9|tos|0|Y|",
    ]
