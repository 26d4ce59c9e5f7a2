"""Options of `bioclin run`."""

from pathlib import Path
from typing import Annotated

import typer

Pipeline = Annotated[str, typer.Argument(help="Folder or package name of the pipeline")]
Source = Annotated[
    Path,
    typer.Argument(
        metavar="IN", help=".txt, .jsonl, .csv, .tsv, .parquet, .spacy, a folder of such, or .sql"
    ),
]
Out = Annotated[
    Path, typer.Argument(metavar="OUT", help="File for jsonl, omop, fhir; else a folder, made anew")
]
To = Annotated[
    str | None,
    typer.Option(
        help="jsonl, parquet, spacy, brat, omop or fhir; without it, the ending of OUT chooses"
    ),
]
TextColumn = Annotated[str, typer.Option(help="Column with the note")]
IdColumn = Annotated[str | None, typer.Option(help="Column with the note's id")]
Database = Annotated[
    str | None,
    typer.Option(metavar="URL", help="For a .sql file; a password as '${VARIABLE}'"),
]
Key = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="For a .sql file: a column that is unique")
]
Keep = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Write as it is; may be repeated")
]
EntityText = Annotated[bool, typer.Option("--entity-text", help="Write the text of each entity")]
NoteText = Annotated[bool, typer.Option("--note-text", help="Write the text of each note")]
Encoding = Annotated[str, typer.Option(help="Encoding of IN, such as cp1252; OUT is in UTF-8")]
Concepts = Annotated[
    Path | None,
    typer.Option(help="omop: table of concept ids (.csv, .tsv), as SOURCE_TO_CONCEPT_MAP"),
]
Snippet = Annotated[bool, typer.Option("--snippet", help="omop: write the text around each entity")]
PatientColumn = Annotated[
    str | None, typer.Option(help="fhir: column with the id of the Patient resource")
]
SettingsFile = Annotated[
    Path | None, typer.Option("--settings", help="omop and fhir: YAML with more settings")
]
Limit = Annotated[int | None, typer.Option(min=1, help="Read only the first notes of IN")]
Sample = Annotated[int | None, typer.Option(min=1, help="Read only so many notes, at random")]
Seed = Annotated[int | None, typer.Option(help="Random seed for --sample; without it, 0")]
Since = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="OUT2", help="Leave out notes with ids of an earlier output; may be repeated"
    ),
]
Price = Annotated[
    float | None, typer.Option(min=0, help="For --dry-run: price per hour of the machines")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Write nothing: columns, first note, hours, cost")
]
Engine = Annotated[str, typer.Option(help="local, ray or spark: where the processes are")]
Processes = Annotated[int, typer.Option(min=1, help="Each loads the pipeline")]
GpuId = Annotated[int, typer.Option("--gpu-id", "-g", help="GPU to use; -1 for the CPU")]
Precision = Annotated[
    str | None, typer.Option("--precision", help="auto, fp32, bf16, fp16 (GPU) or int8 (CPU)")
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue an interrupted run")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace OUT")]
SkipBad = Annotated[
    bool,
    typer.Option("--skip-bad", help="Put notes that fail into OUT.quarantine.jsonl, and go on"),
]
