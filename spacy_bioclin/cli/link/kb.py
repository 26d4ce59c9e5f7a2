"""`bioclin kb`: build a knowledge base from terminologies, look into it, join or compare two."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import BioclinError
from ...files import check_output
from ...parallel import show_progress

if TYPE_CHECKING:
    from rich.console import Console

    from ...linking.kb.build import KbBuilder
    from ...linking.kb.concepts import SkipReport
    from ...linking.kb.knowledge_base import KnowledgeBase
    from ...linking.readers.sources import Source

# The bar moves after so many records.
EVERY = 500
KB = Annotated[Path, typer.Argument(metavar="KB", help="Folder of a knowledge base")]
OUTPUT = Annotated[Path, typer.Option("--output", "-o", help="Folder for the knowledge base")]
OVERWRITE = Annotated[bool, typer.Option("--overwrite", help="Replace OUTPUT")]
NAME = Annotated[str, typer.Option(help="Name of the knowledge base; else that of the folder")]
VERSION = Annotated[str, typer.Option(help="Its version, such as the release date")]
AS_JSON = Annotated[bool, typer.Option("--json", help="JSON instead of a table")]


def build(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="SOURCE...", help="Files or folders of releases; or FORMAT:path"),
    ],
    output: OUTPUT,
    lang: Annotated[str, typer.Option(help="Keep names in these: es,en; else in all")] = "",
    types: Annotated[
        str, typer.Option(help="Keep concepts of these types: C04*,F03*; else all")
    ] = "",
    format: Annotated[
        str | None, typer.Option(help="Of sources that do not say it; else it is found out")
    ] = None,
    columns: Annotated[
        str, typer.Option(help="Of tables: id=codigo,name=descriptor,alias=corto,alias=otro")
    ] = "",
    names_in: Annotated[
        str, typer.Option(help="Language of names for which a source says none: es")
    ] = "",
    name: NAME = "",
    version: VERSION = "",
    license: Annotated[
        list[str] | None,
        typer.Option(help="Licence of all sources, or given once for each, in order"),
    ] = None,
    overwrite: OVERWRITE = False,
) -> None:
    """Read terminologies, join the records of each id, and write a knowledge base."""
    from ...linking.kb.build import KbBuilder
    from ...linking.kb.concepts import SkipReport
    from ...linking.kb.storage import META, check_target
    from ...linking.readers.sources import find_source

    check_target(output)
    table_columns = parse_columns(columns)
    found = [find_source(s, format=format or ("table" if columns else None)) for s in sources]
    inputs = [source.path for source in found]
    check_output(output, inputs=inputs, overwrite=overwrite, marker=META)
    if columns and not any(source.format == "table" for source in found):
        raise BioclinError(f"--columns is for tables, and none of {', '.join(sources)} is one")
    licences = list(license or [""])
    if len(licences) not in (1, len(found)):
        raise BioclinError(
            f"--license is given {len(licences)} times for {len(found)} sources: give it once, or "
            "once for each"
        )
    licences *= len(found) if len(licences) == 1 else 1
    console, report = _stderr(), SkipReport()
    builder = KbBuilder(report, langs=_split(lang))
    _read(found, builder, report, table_columns, names_in, console)
    with console.status("Indexing the names"):
        described = (s.describe(x) for s, x in zip(found, licences, strict=True))
        files = [file for files in described for file in files]
        meta = {"name": name or output.name, "version": version, "sources": files}
        kb = builder.build(types=_split(types), meta=meta).write(output)
    _print_skipped(report, console)
    console.print(f"{_summary(kb)}\nWritten: {output}")


def _read(
    sources: "Sequence[Source]",
    builder: "KbBuilder",
    report: "SkipReport",
    columns: Mapping[str, list[str]],
    names_in: str,
    console: "Console",
) -> None:
    from ...linking.readers import read_concepts
    from ...linking.readers.lines import n_bytes_read

    total = max(sum(source.n_bytes() for source in sources), 1)
    begin, n = n_bytes_read(), 0
    with show_progress(console, "records") as show:
        for source in sources:
            own = columns if source.format == "table" and columns else None
            concepts = read_concepts(
                source.path, report, format=source.format, lang=names_in, columns=own
            )
            for concept in concepts:
                builder.add(concept)
                n += 1
                if n % EVERY == 0:
                    show(min((n_bytes_read() - begin) / total, 1), n)


def info(
    kb: KB,
    check: Annotated[
        bool, typer.Option("--check", help="Read everything and compare the hashes")
    ] = False,
    as_json: AS_JSON = False,
) -> None:
    """Say what a knowledge base holds and where it comes from."""
    from ...linking.kb.knowledge_base import KnowledgeBase

    opened = KnowledgeBase.open(kb)
    if check:
        opened.verify()
    said = describe(opened, kb)
    if as_json:
        typer.echo(json.dumps(said, indent=2, ensure_ascii=False))
        return
    rows = {
        "name": f"{said['name']} {said['version']}".strip(),
        "concepts": f"{said['n_concepts']:,}",
        "names": f"{said['n_names']:,} ({_counts(said['names_in'])})",
        "types": f"{said['n_types']:,}",
        "size": _megabytes(said["bytes"]),
        "hash": said["hash"],
    }
    for source in said["sources"]:
        licence = source["licence"] or "licence not stated"
        size = _megabytes(source["bytes"])
        rows[f"source {source['file']}"] = f"{source['format']}, {size}, {licence}"
    rows |= {f"left out: {reason}": f"{n:,}" for reason, n in said["skipped"].items()}
    _print_table((), rows.items())
    if check:
        typer.echo(f"All {len(opened.arrays)} arrays and the description are as they were written.")


def describe(kb: "KnowledgeBase", folder: Path) -> dict[str, Any]:
    """RETURNS (dict[str, Any]): What `info` prints, as numbers and strings."""
    keys = ("name", "version", "n_concepts", "n_names", "sources", "skipped", "format", "hash")
    return {
        **{key: kb.meta[key] for key in keys},
        "names_in": names_by_language(kb),
        "n_types": len(kb.meta["types"]),
        "bytes": sum(file.stat().st_size for file in folder.iterdir()),
    }


def names_by_language(kb: "KnowledgeBase") -> dict[str, int]:
    """RETURNS (dict[str, int]): Language -> number of names."""
    import numpy as np

    counts = np.bincount(kb.name_lang, minlength=len(kb.langs)).tolist()
    return {lang: n for lang, n in zip(kb.langs, counts, strict=True) if n}


def search(
    kb: KB,
    text: Annotated[str, typer.Argument(help="A name")],
    top: Annotated[int, typer.Option(min=1, help="So many concepts")] = 10,
    as_json: AS_JSON = False,
) -> None:
    """Show the concepts whose names are most like TEXT."""
    from ...linking.kb.knowledge_base import KnowledgeBase
    from ...linking.kb.search import find_concepts

    found = find_concepts(KnowledgeBase.open(kb), text, top)
    if as_json:
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    rows = (
        [f["id"], f["name"], f"{f['score']:.3f}", f["why"], " ".join(f["types"])] for f in found
    )
    _print_table(("id", "name", "score", "found by", "types"), rows)


def merge(
    kbs: Annotated[list[Path], typer.Argument(metavar="KB...", help="Knowledge bases")],
    output: OUTPUT,
    name: NAME = "",
    version: VERSION = "",
    overwrite: OVERWRITE = False,
) -> None:
    """Join knowledge bases; concepts of one id become one, named as the first one says."""
    from ...linking.kb.combine import merge_kbs
    from ...linking.kb.concepts import SkipReport
    from ...linking.kb.knowledge_base import KnowledgeBase
    from ...linking.kb.storage import META

    check_output(output, inputs=kbs, overwrite=overwrite, marker=META)
    report, console = SkipReport(), _stderr()
    opened = [KnowledgeBase.open(kb) for kb in kbs]
    with console.status("Joining"):
        meta = {"name": name or output.name, "version": version}
        merged, joined = merge_kbs(opened, output, meta=meta, report=report)
    _print_skipped(report, console)
    console.print(f"{_summary(merged)}; {joined:,} ids were in several\nWritten: {output}")


def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="Folder of a knowledge base")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Folder of a newer one")],
    as_json: Annotated[bool, typer.Option("--json", help="JSON with the ids")] = False,
) -> None:
    """Count the concepts and names that NEW has and OLD has not, and the other way round."""
    from ...linking.kb.combine import compare_kbs
    from ...linking.kb.knowledge_base import KnowledgeBase

    before, after = KnowledgeBase.open(old), KnowledgeBase.open(new)
    changes = compare_kbs(before, after)
    counts = changes.counts()
    if as_json:
        content = {"counts": counts, **changes._asdict()}
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        return
    said = {
        "concepts added": "added",
        "concepts removed": "removed",
        "concepts merged into others": "merged",
        "concepts with another preferred name": "renamed",
        "names added to concepts in both": "names_added",
        "names removed from concepts in both": "names_removed",
    }
    _print_table((), ((text, f"{counts[key]:,}") for text, key in said.items()))
    if before.hash == after.hash:
        typer.echo("The hashes are the same.")


COMMANDS: tuple[Callable[..., None], ...] = (build, info, search, merge, diff)


def parse_columns(text: str) -> dict[str, list[str]]:
    """RETURNS (dict[str, list[str]]): {"id": ["codigo"]} of "id=codigo".
    RAISES (BioclinError): For anything else."""
    columns: dict[str, list[str]] = {}
    for part in _split(text):
        key, _, column = part.partition("=")
        if not column:
            raise BioclinError(
                f"--columns holds {part!r}, want KEY=COLUMN such as id=codigo,name=descriptor"
            )
        columns.setdefault(key.strip(), []).append(column.strip())
    return columns


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _stderr() -> "Console":
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False)


def _summary(kb: "KnowledgeBase") -> str:
    counts = _counts(names_by_language(kb))
    return f"{kb.meta['n_concepts']:,} concepts, {kb.meta['n_names']:,} names ({counts})"


def _counts(names_in: Mapping[str, int]) -> str:
    return ", ".join(f"{lang or 'language not stated'} {n:,}" for lang, n in names_in.items())


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB"


def _print_skipped(report: "SkipReport", console: "Console") -> None:
    for reason, skipped in report.as_dict().items():
        places = skipped["first"]
        assert isinstance(places, list)
        console.print(f"{skipped['n']:>9,}  {reason}; first: {', '.join(places)}", soft_wrap=True)


def _print_table(head: Sequence[str], rows: Any) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*(head or ("", "")), box=SIMPLE_HEAD, show_header=bool(head), pad_edge=False)
    for row in rows:
        table.add_row(*map(Text, row))
    Console(highlight=False).print(table)
