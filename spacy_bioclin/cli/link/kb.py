"""`bioclin kb`: build a knowledge base from terminologies, look into it, join or compare two."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...errors import BioclinError
from ...outputs import check_output
from ...parallel import show_progress
from ..tables import AS_JSON, print_json, print_table

if TYPE_CHECKING:
    from rich.console import Console

    from ...linking.kb.concepts import SkipReport
    from ...linking.kb.knowledge_base import KnowledgeBase
    from ...linking.readers.sources import Source

KB = Annotated[Path, typer.Argument(metavar="KB", help="Folder of a knowledge base")]
OUTPUT = Annotated[Path, typer.Option("--output", "-o", help="Folder for the knowledge base")]
OVERWRITE = Annotated[bool, typer.Option("--overwrite", help="Replace OUTPUT")]
NAME = Annotated[str, typer.Option(help="Name of the knowledge base; default: name of the folder")]
VERSION = Annotated[str, typer.Option(help="Version, such as the release date")]
LANGUAGE = re.compile("[a-z]{2,3}")


def build(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="SOURCE...", help="Files or folders of releases; or FORMAT:path"),
    ],
    output: OUTPUT,
    lang: Annotated[str, typer.Option(help="Keep names in these: es,en; default: all")] = "",
    types: Annotated[
        str, typer.Option(help="Keep concepts of these types: C04*,F03*; default: all")
    ] = "",
    format: Annotated[
        str | None, typer.Option(help="Format of sources without a prefix; default: detected")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns: id=codigo,name=descriptor,alias=corto,alias=otro; for all tables, or "
            'once for each source, in order ("" to recognise them)'
        ),
    ] = None,
    vocabularies: Annotated[
        str,
        typer.Option(help="Read these of UMLS, RxNorm or OMOP: SNOMEDCT_US,SCTSPA; default: all"),
    ] = "",
    ids: Annotated[
        Path | None, typer.Option(help="Keep the concepts of this file, an id a line")
    ] = None,
    descendants_of: Annotated[
        str, typer.Option(help="Keep these concepts and all below them: HP:0000118,HP:0012823")
    ] = "",
    names_in: Annotated[
        str, typer.Option(help="Language of names for which the source states none: es")
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
    from ...linking.kb.storage import FILES, META
    from ...linking.readers import WITH_VOCABULARIES
    from ...linking.readers.sources import read_sources

    langs = [parse_language(code, "--lang") for code in _split(lang)]
    stated = parse_language(names_in, "--names-in") if names_in.strip() else ""
    found, table_columns = _find_sources(sources, format, columns or [])
    if vocabularies and not any(source.format in WITH_VOCABULARIES for source in found):
        raise BioclinError(
            f"--vocabularies is for UMLS, RxNorm and OMOP, and none of {', '.join(sources)} is one"
        )
    inputs = [source.path for source in found]
    check_output(output, inputs=inputs, overwrite=overwrite, marker=META, only=FILES)
    licences = _for_each(license, sources, "--license")
    wanted, below = _read_ids(ids) if ids else [], _split(descendants_of)
    console, report = _stderr(), SkipReport()
    builder = KbBuilder(report, langs=langs)
    with _printing_skipped(report, console):
        with show_progress(console, "records") as progress:
            for concept in read_sources(
                found,
                report,
                lang=stated,
                columns=table_columns,
                vocabularies=_split(vocabularies),
                progress=progress,
            ):
                builder.add(concept)
        with console.status("Indexing the names"):
            described = (s.describe(x) for s, x in zip(found, licences, strict=True))
            files = [file for files in described for file in files]
            meta = {"name": name or output.name, "version": version, "sources": files}
            kb = builder.build(types=_split(types), ids=wanted, below=below, meta=meta)
            kb = kb.write(output, overwrite=overwrite)
    console.print(f"{_summary(kb)}\nWritten: {output}")


def info(
    kb: KB,
    check: Annotated[
        bool, typer.Option("--check", help="Read everything and compare the hashes")
    ] = False,
    as_json: AS_JSON = False,
) -> None:
    """Show what a knowledge base contains and where it comes from."""
    from ...linking.kb.knowledge_base import KnowledgeBase

    opened = KnowledgeBase.open(kb)
    if check:
        opened.verify()
    about = opened.describe()
    if as_json:
        print_json(about)
        return
    rows = {
        "name": f"{about['name']} {about['version']}".strip(),
        "concepts": f"{about['n_concepts']:,}",
        "names": f"{about['n_names']:,} ({_counts(about['names_in'])})",
        "types": f"{about['n_types']:,}",
        "size": _megabytes(about["bytes"]),
        "hash": about["hash"],
    }
    for source in about["sources"]:
        licence = source["licence"] or "licence not stated"
        size = _megabytes(source["bytes"])
        rows[f"source {source['file']}"] = f"{source['format']}, {size}, {licence}"
    rows |= {f"left out: {reason}": f"{n:,}" for reason, n in about["skipped"].items()}
    print_table(rows.items())
    if check:
        typer.echo(f"All {len(opened.arrays)} arrays and the description are as they were written.")


def search(
    kb: KB,
    text: Annotated[str, typer.Argument(help="A name")],
    top: Annotated[int, typer.Option(min=1, help="Number of concepts")] = 10,
    as_json: AS_JSON = False,
) -> None:
    """Show the concepts whose names are most like TEXT."""
    from ...linking.kb.knowledge_base import KnowledgeBase
    from ...linking.kb.search import find_concepts

    found = find_concepts(KnowledgeBase.open(kb), text, top)
    if as_json:
        print_json(found)
        return
    rows = (
        [f["id"], f["name"], f"{f['score']:.3f}", f["why"], " ".join(f["types"])] for f in found
    )
    print_table(rows, ("id", "name", "score", "found by", "types"))


def merge(
    kbs: Annotated[list[Path], typer.Argument(metavar="KB...", help="Knowledge bases")],
    output: OUTPUT,
    code_map: Annotated[
        Path | None,
        typer.Option("--map", help="Table with codes of your own: columns code and maps_to"),
    ] = None,
    name: NAME = "",
    version: VERSION = "",
    overwrite: OVERWRITE = False,
) -> None:
    """Join knowledge bases; concepts of one id become one, with the preferred name of the first."""
    from ...linking.kb.combine import merge_kbs, read_code_map
    from ...linking.kb.concepts import SkipReport
    from ...linking.kb.knowledge_base import KnowledgeBase
    from ...linking.kb.storage import FILES, META

    check_output(output, inputs=kbs, overwrite=overwrite, marker=META, only=FILES)
    report, console = SkipReport(), _stderr()
    opened = [KnowledgeBase.open(kb) for kb in kbs]
    with _printing_skipped(report, console), console.status("Joining"):
        meta = {"name": name or output.name, "version": version}
        codes = None if code_map is None else read_code_map(code_map, report)
        merged, joined = merge_kbs(opened, output, meta=meta, report=report, codes=codes)
    console.print(f"{_summary(merged)}; {joined:,} ids were in several\nWritten: {output}")


def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="Folder of a knowledge base")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Folder of a newer one")],
    as_json: Annotated[bool, typer.Option("--json", help="JSON with the ids")] = False,
) -> None:
    """Count the concepts and names that were added, removed or changed from OLD to NEW."""
    from ...linking.kb.combine import compare_kbs
    from ...linking.kb.knowledge_base import KnowledgeBase

    before, after = KnowledgeBase.open(old), KnowledgeBase.open(new)
    changes = compare_kbs(before, after)
    counts = changes.counts()
    if as_json:
        print_json({"counts": counts, **changes._asdict()})
        return
    labels = {
        "concepts added": "added",
        "concepts removed": "removed",
        "concepts merged into others": "merged",
        "concepts with another preferred name": "renamed",
        "names added to concepts in both": "names_added",
        "names removed from concepts in both": "names_removed",
    }
    print_table((label, f"{counts[key]:,}") for label, key in labels.items())
    if before.hash == after.hash:
        typer.echo("The hashes are the same.")


def check(
    kb: KB,
    vectors: Annotated[
        Path | None, typer.Option(help="Folder of `bioclin embed-kb`, to be checked too")
    ] = None,
) -> None:
    """Read everything in a knowledge base, and say what is wrong with each file."""
    from ...linking.kb.faults import check_folder

    found, meta = check_folder(kb)
    faults = [f"{kb}/{fault}" for fault in found]
    have_hashes = all("sha256" in described for described in meta["arrays"].values())
    if not faults:
        from ...linking.dense.faults import check_indexes

        faults, all_hashed = check_indexes(kb, [] if vectors is None else [vectors])
        have_hashes = have_hashes and all_hashed
    for fault in faults:
        typer.echo(fault, err=True)
    if not have_hashes:
        typer.echo(f"{kb}: no hashes recorded, so changed numbers and names are not found")
    if faults:
        typer.echo(f"{kb}: {len(faults):,} faults", err=True)
        raise typer.Exit(1)
    n_arrays = len(meta["arrays"])
    typer.echo(
        f"{kb}: {meta['n_concepts']:,} concepts, {meta['n_names']:,} names; all {n_arrays} arrays "
        "and the description are as they were written"
    )


COMMANDS: tuple[Callable[..., None], ...] = (build, info, search, check, merge, diff)


def parse_columns(text: str) -> dict[str, list[str]]:
    """Parse "id=codigo,name=descriptor" to {"id": ["codigo"], "name": ["descriptor"]}.

    RAISES (BioclinError): It has another form.
    """
    columns: dict[str, list[str]] = {}
    for part in _split(text):
        key, _, column = part.partition("=")
        if not column:
            raise BioclinError(
                f"--columns holds {part!r}, want KEY=COLUMN such as id=codigo,name=descriptor"
            )
        columns.setdefault(key.strip(), []).append(column.strip())
    return columns


def parse_language(text: str, option: str) -> str:
    """Shorten a language code to two letters, as the readers do: "es" of "ES", "es-MX" or "spa".

    RAISES (BioclinError): It is not a language code; the message names the option.
    """
    from ...linking.readers.values import language_code

    code = language_code(text)
    if not LANGUAGE.fullmatch(code):
        raise BioclinError(
            f"{option} {text!r}: not a language code; want one of two or three letters, such as es"
        )
    return code


def _find_sources(
    sources: Sequence[str], format: str | None, columns: Sequence[str]
) -> tuple[list["Source"], list[dict[str, list[str]]]]:
    """Find the sources, and the columns of each.

    columns (Sequence[str]): Given for each source, which then is a table unless they are empty; or
        once for all that are not recognised as something else.
    RAISES (BioclinError): A source is not found, or columns are given and none is a table.
    """
    from ...linking.readers.sources import find_source

    given = _for_each(columns, sources, "--columns")
    own = len(columns) == len(sources)
    found = [
        find_source(
            text,
            format=format or ("table" if own and its.strip() else None),
            otherwise="table" if its.strip() else None,
        )
        for text, its in zip(sources, given, strict=True)
    ]
    is_table = [source.format == "table" for source in found]
    if any(given) and not any(is_table):
        raise BioclinError(f"--columns is for tables, and none of {', '.join(sources)} is one")
    return found, [parse_columns(x) if t else {} for x, t in zip(given, is_table, strict=True)]


def _for_each(given: Sequence[str] | None, sources: Sequence[str], option: str) -> list[str]:
    """Spread an option over the sources: given once for all, or once for each.

    RAISES (BioclinError): It is given another number of times.
    """
    values = list(given or [""])
    if len(values) not in (1, len(sources)):
        raise BioclinError(
            f"{option} is given {len(values)} times for {len(sources)} sources: give it once, or "
            "once for each"
        )
    return values * len(sources) if len(values) == 1 else values


def _read_ids(path: Path) -> list[str]:
    """Read the first cell of each line of a file.

    RAISES (BioclinError): The file cannot be read, or has none.
    """
    from ...linking.kb.concepts import SkipReport
    from ...linking.readers.lines import read_lines

    lines = (line for _, line in read_lines(path, SkipReport()))
    ids = [id for line in lines if (id := re.split("[\t;,]", line)[0].strip().strip('"'))]
    if not ids:
        raise BioclinError(f"--ids {path}: no id in it")
    return ids


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _stderr() -> "Console":
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False)


def _summary(kb: "KnowledgeBase") -> str:
    counts = _counts(kb.names_by_language())
    return f"{kb.meta['n_concepts']:,} concepts, {kb.meta['n_names']:,} names ({counts})"


def _counts(names_in: Mapping[str, int]) -> str:
    return ", ".join(f"{lang or 'language not stated'} {n:,}" for lang, n in names_in.items())


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB"


@contextmanager
def _printing_skipped(report: "SkipReport", console: "Console") -> Iterator[None]:
    """Print what was left out when the block ends, also if that is why nothing is left."""
    try:
        yield
    except BioclinError:
        _print_skipped(report, console)
        raise
    _print_skipped(report, console)


def _print_skipped(report: "SkipReport", console: "Console") -> None:
    for reason, n in report.counts.most_common():
        places = ", ".join(report.places[reason])
        console.print(f"{n:>9,}  {reason}; first: {places}", soft_wrap=True)
