"""Real notes as OMOP in PostgreSQL with the constraints of the CDM, and as resources of FHIR.

    python -m benchmarks.runner.standards [--notes 1000] [--pipeline es_bioclin_sm]

The notes of PharmaCoNER go through `bioclin run`. The concepts of OMOP are invented, one for each
code that the pipeline found, because the vocabularies are not free to share; so this measures the
form of the table and that the database takes it, not the mapping.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.corpora import read_notes
from benchmarks.harness import ROOT, make_parser, report, thread_environment
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.runner.standards.fhir_check import check_bundle
from spacy_bioclin.runner.standards.omop import NoteNlpRow
from tests.runner.postgres import run_psql, run_server
from tests.runner.standards.test_omop import DDL

FOLDERS = [f"pharmaconer/{split}/brat" for split in ("train", "dev", "test")]
FIRST_CONCEPT = 2_000_000_001  # OMOP keeps those above two billion for a hospital's own
SCHEMA = f"SET search_path TO cdm;\n{DDL}\nALTER TABLE note ADD COLUMN note_text text;\n"


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--pipeline", default="es_bioclin_sm")
    parser.add_argument("--notes", type=int, default=1_000)
    options = parser.parse_args()
    texts = [text for folder in FOLDERS for text in read_notes(folder)][: options.notes]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [
            {"note_id": number, "person": f"p-{number % 97}", "text": text}
            for number, text in enumerate(texts, start=1)
        ]
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / "notes.jsonl").write_text("".join(lines), encoding="utf-8")
        fhir, codings = make_bundles(folder, options.pipeline)
        omop = make_table(folder, options.pipeline, codings, texts)
    pipeline = Path(options.pipeline).name
    words = sum(len(text.split()) for text in texts)
    result = {"pipeline": pipeline, "notes": len(texts), "words": words}
    report("run_standards", {**result, "omop": omop, "fhir": fhir})


def run(folder: Path, pipeline: str, out: str, *options: str) -> tuple[dict[str, Any], float]:
    """Run the command.

    RETURNS (tuple[dict, float]): What OUT.run.json says, and the seconds with the start.
    """
    base = [sys.executable, "-W", "ignore", "-m", "spacy_bioclin", "run", pipeline]
    began = time.perf_counter()
    subprocess.run(
        [*base, str(folder / "notes.jsonl"), str(folder / out), "--id-column", "note_id", *options],
        cwd=ROOT,
        env=thread_environment(),
        check=True,
    )
    seconds = time.perf_counter() - began
    return json.loads((folder / f"{out}.run.json").read_text(encoding="utf-8")), seconds


def make_bundles(folder: Path, pipeline: str) -> tuple[dict[str, Any], set[tuple[str, str]]]:
    """Make bundles, and check each as it is in the file.

    RETURNS (tuple[dict, set]): Counts, and the systems and codes of all resources.
    """
    options = ("--to", "fhir", "--patient-column", "person")
    about, seconds = run(folder, pipeline, "found.ndjson", *options)
    valid: Counter[str] = Counter()
    codings: set[tuple[str, str]] = set()
    n_invalid = 0
    for line in (folder / "found.ndjson").read_text(encoding="utf-8").splitlines():
        bundle = json.loads(line)
        resources = [entry["resource"] for entry in bundle["entry"]]
        try:
            check_bundle(bundle)
        except BioclinError:
            n_invalid += len(resources)
            continue
        valid.update(resource["resourceType"] for resource in resources)
        for resource in resources:
            code = resource.get("code") or resource.get("medicationCodeableConcept") or {}
            codings |= {(each["system"], each["code"]) for each in code.get("coding", ())}
    counts = {
        "bundles": about["records"]["written"],
        "resources_valid": sum(valid.values()),
        "resources_invalid": n_invalid,
        "valid_by_type": dict(valid.most_common()),
        "converted": about["converted"],
        "quarantined": about["records"]["quarantined"],
        "seconds": round(seconds, 1),
    }
    return counts, codings


def make_table(
    folder: Path, pipeline: str, codings: set[tuple[str, str]], texts: list[str]
) -> dict[str, Any]:
    """Make NOTE_NLP with a concept for each code, and load it into PostgreSQL."""
    from spacy_bioclin.runner.standards.mapping import CodeSettings, Namespaces

    systems = {space.system: name for name, space in Namespaces(CodeSettings()).known.items()}
    table = ["source_vocabulary_id,source_code,target_concept_id"]
    table += [
        f"{systems[system]},{code},{FIRST_CONCEPT + n}"
        for n, (system, code) in enumerate(sorted(codings))
    ]
    (folder / "concepts.csv").write_text("\n".join(table) + "\n", encoding="utf-8")
    options = ("--to", "omop", "--snippet", "--concepts", str(folder / "concepts.csv"))
    about, seconds = run(folder, pipeline, "note_nlp.csv", *options)
    with run_server() as connection:
        loaded = load(connection, folder, len(codings), texts)
    n_rows = about["converted"]["rows"]
    return {
        "rows": n_rows,
        "rows_loaded": loaded["rows"],
        "rows_rejected": n_rows - loaded["rows"],
        "rows_whose_words_are_at_their_offset": loaded["placed"],
        "converted": about["converted"],
        "quarantined": about["records"]["quarantined"],
        "seconds": round(seconds, 1),
        "seconds_to_load": loaded["seconds"],
    }


def load(connection: str, folder: Path, n_concepts: int, texts: list[str]) -> dict[str, Any]:
    """Load notes, concepts and the table, with every constraint there from the start."""
    columns = ", ".join(f'"{name}"' for name in NoteNlpRow._fields)
    notes = "".join(
        f"{number}\t{text.translate(ESCAPES)}\n" for number, text in enumerate(texts, start=1)
    )
    table = (folder / "note_nlp.csv").read_text(encoding="utf-8")
    run_psql(connection, f"CREATE SCHEMA cdm;\n{SCHEMA}")
    concepts = f"generate_series({FIRST_CONCEPT}, {FIRST_CONCEPT + n_concepts})"
    script = f"""SET search_path TO cdm;
INSERT INTO concept SELECT 0 UNION ALL SELECT {concepts};
COPY note FROM STDIN;
{notes}\\.
COPY note_nlp ({columns}) FROM STDIN WITH (FORMAT csv, HEADER);
{table}\\.
"""
    began = time.perf_counter()
    run_psql(connection, script)
    seconds = time.perf_counter() - began
    [line] = run_psql(
        connection,
        """SET search_path TO cdm;
        SELECT count(*), count(*) FILTER (WHERE lexical_variant =
            substring(note_text FROM "offset"::integer + 1 FOR length(lexical_variant)))
        FROM note_nlp JOIN note USING (note_id);""",
    )
    rows, placed = map(int, line.split("|"))
    return {"rows": rows, "placed": placed, "seconds": round(seconds, 2)}


ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


if __name__ == "__main__":
    main()
