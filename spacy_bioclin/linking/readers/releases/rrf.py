"""UMLS in Rich Release Format, and RxNorm, which has the same layout.

Columns: UMLS Reference Manual, chapter 3; RxNorm Technical Documentation, section 12.
"""

from collections.abc import Collection, Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from ....errors import BioclinError
from ...kb.concepts import Alias, Concept, SkipReport, wrong_id
from ..lines import OPENERS
from ..rows import read_rows
from ..values import language_code

LAYOUTS = {
    "CONSO": "CUI LAT TS LUI STT SUI ISPREF AUI SAUI SCUI SDUI SAB TTY CODE STR SRL SUPPRESS CVF",
    "STY": "CUI TUI STN STY ATUI CVF",
    "DEF": "CUI AUI ATUI SATUI SAB DEF SUPPRESS CVF",
    "REL": "CUI1 AUI1 STYPE1 REL CUI2 AUI2 STYPE2 RELA RUI SRUI SAB SL RG DIR SUPPRESS CVF",
}
# MRCUI: ids that were retired; RxNorm's file of the same kind has its own columns.
LAYOUTS_OF_PREFIX = {
    "MR": {**LAYOUTS, "CUI": "CUI1 VER REL RELA MAPREASON CUI2 MAPIN"},
    "RXN": {**LAYOUTS, "CUI": "CUI1 VER_START VER_END CARDINALITY CUI2"},
}
SUBFOLDERS = ("", "META", "rrf")
SUPPRESSED = {
    "O": "suppressed: obsolete (SUPPRESS O)",
    "E": "suppressed: by an editor (SUPPRESS E)",
    "Y": "suppressed: by its kind of name (SUPPRESS Y)",
}
# Kinds of RxNorm's own names that are not the normal form of the concept.
RXNORM_SECONDARY = {"SY", "TMSY", "ET", "PSN"}


class Release(NamedTuple):
    """The folder of a release, and what is read of it.

    folder (Path): Folder of the .RRF files.
    prefix (str): "MR" (UMLS) or "RXN" (RxNorm).
    vocabularies (frozenset[str]): Read names, definitions and relations of these; all if empty.
    """

    folder: Path
    prefix: str
    vocabularies: frozenset[str]

    def file(self, kind: str) -> Path | None:
        """Find the file of this kind ("CONSO"), compressed or not."""
        name = f"{self.prefix}{kind}.RRF"
        paths = (self.folder / f"{name}{end}" for end in ("", *OPENERS))
        return next((path for path in paths if path.is_file()), None)

    def reads(self, sab: str) -> bool:
        """Check whether this source vocabulary is to be read."""
        return not self.vocabularies or sab in self.vocabularies

    def rows(self, kind: str, columns: str, report: SkipReport) -> Iterator[tuple[int, list[str]]]:
        """Read the rows of the file of this kind; none if there is no such file, which is reported.

        columns (str): Names of the columns, with a blank between them.
        YIELDS (tuple[int, list[str]]): See `read_rows`.
        """
        path = self.file(kind)
        if path is None:
            place = str(self.folder / f"{self.prefix}{kind}.RRF")
            report.skip(f"file missing: {self.prefix}{kind}.RRF", place)
            return
        layout = LAYOUTS_OF_PREFIX[self.prefix][kind].split()
        yield from read_rows(path, report, columns.split(), layout=layout, delimiter="|")

    def groups(
        self, kind: str, columns: str, report: SkipReport
    ) -> Iterator[tuple[str, Iterator[tuple[int, list[str]]]]]:
        """Group consecutive rows by their first column, the id of a concept. See `rows`."""
        return groupby(self.rows(kind, columns, report), key=lambda row: row[1][0])


def read_rrf(
    folder: Path,
    report: SkipReport,
    *,
    vocabularies: Collection[str] = (),
    types: Collection[str] = (),
) -> Iterator[Concept]:
    """Read the UMLS or RxNorm, file after file; only the ids of the concepts are kept in memory.

    folder (Path): Folder with MRCONSO.RRF or RXNCONSO.RRF, or the one above META or rrf.
    report (SkipReport): Counts suppressed names, what the two filters leave out, wrong rows,
        and missing files, of which MRSTY (types), MRDEF (definitions), MRREL (parents) and MRCUI
        (retired ids) are optional.
    vocabularies (Collection[str]): Source vocabularies (SAB) to read, all if empty.
    types (Collection[str]): Semantic types (TUI, "T047") to read, all if empty.
    YIELDS (Concept): Per concept its names, preferred first in each language, and its codes in
        the source vocabularies; then partial records with its types (TUI), one definition,
        parents, retired ids.
    RAISES (BioclinError): No MRCONSO; `types` without MRSTY; a vocabulary or type that does not
        occur; a file of another layout.
    """
    release = find_release(folder, vocabularies)
    wanted = _ids_of_types(release, report, types) if types else None
    kept: set[str] = set()
    languages: dict[str, str] = {}
    yield from _names(release, report, wanted, kept, languages)
    yield from _types(release, report, kept)
    if release.prefix == "MR":
        yield from _definitions(release, report, kept, languages)
    yield from _parents(release, report, kept)
    yield from _retired(release, report, kept)


def find_release(folder: Path, vocabularies: Collection[str] = ()) -> Release:
    """Find the release in a folder.

    RAISES (BioclinError): The folder holds neither MRCONSO.RRF nor RXNCONSO.RRF.
    """
    for name in SUBFOLDERS:
        for prefix in ("MR", "RXN"):
            release = Release(folder / name, prefix, frozenset(vocabularies))
            if release.file("CONSO"):
                return release
    raise BioclinError(
        f"{folder}: no MRCONSO.RRF (UMLS) or RXNCONSO.RRF (RxNorm) here, nor in META or rrf; give "
        "the folder of the .RRF files"
    )


def _ids_of_types(release: Release, report: SkipReport, types: Collection[str]) -> set[str]:
    """Collect the ids of the concepts that have one of the types."""
    if release.file("STY") is None:
        raise BioclinError(
            f"{release.folder}: no {release.prefix}STY.RRF, which is needed for the types "
            f"{', '.join(sorted(types))}; add the file or leave the types out"
        )
    ids = set()
    found: dict[str, str] = {}
    # Wrong rows are reported when the file is read again.
    for _, (cui, tui, name) in release.rows("STY", "CUI TUI STY", SkipReport()):
        found[tui] = name
        if tui in types:
            ids.add(cui)
    if missing := sorted(set(types) - found.keys()):
        known = ", ".join(f"{tui} {name}" for tui, name in sorted(found.items()))
        raise BioclinError(
            f"{release.file('STY')}: no concept of type {', '.join(missing)}; there are {known}"
        )
    return ids


def _names(
    release: Release,
    report: SkipReport,
    wanted: set[str] | None,
    kept: set[str],
    languages: dict[str, str],
) -> Iterator[Concept]:
    """Read the names; fill `kept` with the concepts' ids, and `languages` with the language of each
    vocabulary."""
    path = release.file("CONSO")
    columns = "CUI LAT TS STT ISPREF SAB TTY CODE STR SUPPRESS"
    for cui, group in release.groups("CONSO", columns, report):
        ranked: list[tuple[tuple[bool, ...], Alias, str]] = []
        for number, (_, lat, ts, stt, ispref, sab, tty, code, text, suppress) in group:
            languages.setdefault(sab, lat)
            if wanted is not None and cui not in wanted:
                reason = "name of a concept of another type"
            elif not release.reads(sab):
                reason = "name of another vocabulary"
            elif suppress in SUPPRESSED:
                reason = SUPPRESSED[suppress]
            elif not cui or not text:
                reason = "no id or no name"
            elif why := wrong_id(cui):
                reason = why
            else:
                rank: tuple[bool, ...] = (lat != "ENG", ts != "P", stt != "PF", ispref != "Y")
                if release.prefix == "RXN":
                    rank = (sab != "RXNORM", tty in RXNORM_SECONDARY)
                xref = f"{sab}:{code}" if code not in ("", "NOCODE", cui) else ""
                ranked.append((rank, Alias(text, language_code(lat)), xref))
                continue
            report.skip(reason, f"{path}, line {number}")
        if ranked:
            kept.add(cui)
            yield _concept(cui, ranked)
    if missing := sorted(release.vocabularies - languages.keys()):
        raise BioclinError(
            f"{path}: no name of the vocabulary {', '.join(missing)}; there are "
            f"{', '.join(sorted(languages))}"
        )


def _concept(cui: str, ranked: list[tuple[tuple[bool, ...], Alias, str]]) -> Concept:
    """Make a concept with its best name first and each name once."""
    ranked.sort(key=lambda name: name[0])
    name, *aliases = dict.fromkeys(alias for _, alias, _ in ranked)
    xrefs = dict.fromkeys(xref for _, _, xref in ranked if xref)
    return Concept(cui, name.text, name.lang, tuple(aliases), xrefs=tuple(xrefs))


def _types(release: Release, report: SkipReport, kept: set[str]) -> Iterator[Concept]:
    for cui, group in release.groups("STY", "CUI TUI", report):
        if cui in kept:
            yield Concept(cui, types=tuple(tui for _, (_, tui) in group))


def _definitions(
    release: Release, report: SkipReport, kept: set[str], languages: dict[str, str]
) -> Iterator[Concept]:
    """Yield one definition a concept, an English one if there is any."""
    for cui, group in release.groups("DEF", "CUI SAB DEF SUPPRESS", report):
        definitions = [
            (languages.get(sab) != "ENG", text)
            for _, (_, sab, text, suppress) in group
            if suppress not in SUPPRESSED and release.reads(sab)
        ]
        if cui in kept and definitions:
            yield Concept(cui, definition=min(definitions, key=lambda found: found[0])[1])


def _parents(release: Release, report: SkipReport, kept: set[str]) -> Iterator[Concept]:
    """Yield the second concept of a row as parent of the first if the relation is PAR, or, as in
    RxNorm, inverse_isa (a row means "first has parent second")."""
    path = release.file("REL")
    for cui, group in release.groups("REL", "CUI1 REL CUI2 RELA SAB SUPPRESS", report):
        parents: dict[str, None] = {}
        if cui not in kept:
            continue
        for number, (_, relation, parent, attribute, sab, suppress) in group:
            if relation != "PAR" and attribute != "inverse_isa":
                continue
            if suppress in SUPPRESSED or not release.reads(sab):
                report.skip("parent suppressed or of another vocabulary", f"{path}, line {number}")
            elif parent not in kept:
                report.skip("parent that was not kept", f"{path}, line {number}")
            elif parent != cui:  # else a relation between two names of one concept
                parents[parent] = None
        if parents:
            yield Concept(cui, parents=tuple(parents))


def _retired(release: Release, report: SkipReport, kept: set[str]) -> Iterator[Concept]:
    """Yield ids that were merged into a kept concept."""
    certain = {"MR": ("REL", "SY"), "RXN": ("CARDINALITY", "1")}[release.prefix]
    for _, (old, value, new) in release.rows("CUI", f"CUI1 {certain[0]} CUI2", report):
        if value == certain[1] and new in kept and old not in kept:
            yield Concept(new, alternative_ids=(old,))
