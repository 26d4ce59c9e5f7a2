"""SNOMED CT, Release Format 2: the international edition, extensions, national editions.

Columns and file names: SNOMED CT Release File Specifications, sections 3.3.2, 4.2 and 5.2.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from sys import intern

from ....errors import BioclinError
from ...kb.concepts import Alias, Concept, SkipReport, wrong_id
from ..rows import read_rows

FSN = "900000000000003001"
IS_A = "116680003"
PREFERRED = "900000000000548007"
# If en-US and en-GB prefer different names, that of en-US is the name, the other an alias.
GB_REFSET = "900000000000508004"
# Associations of a retired concept with its successor: SAME AS, REPLACED BY.
SUCCESSORS = {"900000000000527005", "900000000000526001"}
# Prefixes of the file names; extensions insert their name before "Snapshot".
KINDS = {
    "Concept": r"x?sct2_Concept_",
    "Description": r"x?sct2_Description_",
    "TextDefinition": r"x?sct2_TextDefinition_",
    "Relationship": r"x?sct2_Relationship_",
    "Language": r"x?der2_cRefset_Language",
    "Association": r"x?der2_cRefset_Association",
}
SNAPSHOT = r"\w*Snapshot[\w-]*\.txt(\.gz|\.bz2|\.xz)?"
TAG = re.compile(r"(.*\S)\s*\(([^()]+)\)")


def read_rf2(folder: Path, report: SkipReport) -> Iterator[Concept]:
    """Read the snapshot files of a release, or of several (international and an extension).

    folder (Path): Folder of the unpacked release, at any level above its files; releases that
        belong together are side by side in it.
    report (SkipReport): Counts inactive concepts and descriptions, those of inactive or unknown
        concepts, retired ids that lead to no active concept, wrong rows, and kinds of files that
        are missing: TextDefinition, Relationship, Language (preferred names) and Association
        (retired ids) are optional.
    YIELDS (Concept): Partial records, one per row, English files first: names (preferred terms, or
        fully specified names without their tag), aliases, the tags as types
        ("disorder", "trastorno"), definitions, parents, retired ids.
    RAISES (BioclinError): No Concept or Description snapshot, two dates of one file, a missing
        column, or an extension without the release that it extends.
    """
    files = find_files(folder, report)
    concepts = _versions(files["Concept"], report)
    preferred = _preferred(files["Language"], report)
    named: set[str] = set()
    waiting: dict[str, Alias] = {}
    for path in files["Description"]:
        rows = _described(path, report, concepts, folder)
        yield from _names(rows, report, preferred, named, waiting)
    for concept_id, name in waiting.items():
        yield Concept(concept_id, name.text, name.lang)
    for path in files["TextDefinition"]:
        for _, concept_id, _, _, text in _described(path, report, concepts, folder):
            yield Concept(concept_id, definition=text)
    for path in files["Relationship"]:
        yield from _parents(path, report, concepts)
    yield from _retired(files["Association"], concepts, report)


def find_files(folder: Path, report: SkipReport) -> dict[str, list[Path]]:
    """Find the snapshot files by their names, English ones first.

    folder (Path): Searched with all its subfolders.
    report (SkipReport): Counts optional kinds that are missing.
    RETURNS (dict[str, list[Path]]): Kind (as in `KINDS`) -> files.
    RAISES (BioclinError): No Concept or Description file, or one of two dates.
    """
    paths = sorted(folder.rglob("*_*"), key=lambda path: ("-en" not in path.name, path))
    files = {
        kind: [p for p in paths if re.fullmatch(start + SNAPSHOT, p.name)]
        for kind, start in KINDS.items()
    }
    for kind, found in files.items():
        if not found and kind in ("Concept", "Description"):
            raise BioclinError(
                f"{folder}: no sct2_{kind}_…Snapshot….txt; give the folder of an unpacked SNOMED "
                "CT release with its Snapshot files (Full and Delta files are not read)"
            )
        if not found:
            report.skip(f"file missing: {kind} snapshot", str(folder))
        seen: dict[str, Path] = {}
        for path in found:
            name = re.sub(r"_\d{8}.*", "", path.name)
            if name in seen:
                raise BioclinError(
                    f"{folder}: two releases, {seen[name].name} and {path.name}; keep one of them"
                )
            seen[name] = path
    return files


def _versions(paths: list[Path], report: SkipReport) -> dict[str, str]:
    """Map each concept id to the date of its newest version, followed by 1 if active, else 0."""
    versions: dict[str, str] = {}
    for path in paths:
        rows = read_rows(path, report, ("id", "effectiveTime", "active"))
        for number, (concept_id, date, active) in rows:
            why = wrong_id(concept_id) or ("" if active in ("0", "1") else "active is not 0 or 1")
            if why:
                report.skip(why, f"{path}, line {number}")
                continue
            version = max(versions.get(concept_id, ""), date + active)
            versions[concept_id] = intern(version)  # a few hundred different ones
    for concept_id, version in versions.items():
        if version[-1] != "1":
            report.skip("inactive concept", concept_id)
    return versions


def _is_active(concepts: dict[str, str], concept_id: str) -> bool:
    return concepts.get(concept_id, "0")[-1] == "1"


def _preferred(paths: list[Path], report: SkipReport) -> set[str]:
    """Collect the ids of the descriptions that some language or dialect prefers."""
    columns = ("active", "refsetId", "referencedComponentId", "acceptabilityId")
    return {
        description
        for path in paths
        for _, (active, refset, description, acceptability) in read_rows(path, report, columns)
        if active == "1" and acceptability == PREFERRED and refset != GB_REFSET
    }


def _described(
    path: Path, report: SkipReport, concepts: dict[str, str], folder: Path
) -> Iterator[tuple[str, str, str, str, str]]:
    """Read the active descriptions or text definitions of active concepts.

    YIELDS (tuple[str, str, str, str, str]): Id, concept id, type id, language, term.
    RAISES (BioclinError): Most of them belong to concepts that no Concept file holds.
    """
    columns = ("id", "active", "conceptId", "typeId", "languageCode", "term")
    known = unknown = 0
    for number, (own_id, active, concept_id, kind, lang, term) in read_rows(path, report, columns):
        if active == "1" and term and _is_active(concepts, concept_id):
            known += 1
            yield own_id, concept_id, kind, lang[:2].lower(), term
            continue
        if active != "1":
            reason = "inactive description"
        elif concept_id not in concepts:
            unknown += 1
            reason = "description of an unknown concept"
        elif not _is_active(concepts, concept_id):
            reason = "description of an inactive concept"
        else:
            reason = "description without a term"
        report.skip(reason, f"{path}, line {number}")
    if unknown > known:
        raise BioclinError(
            f"{path}: {unknown:,} of its descriptions are of concepts that no Concept file under "
            f"{folder} holds; an extension needs the release that it extends (the international "
            "edition) beside it in the same folder"
        )


def _names(
    rows: Iterator[tuple[str, str, str, str, str]],
    report: SkipReport,
    preferred: set[str],
    named: set[str],
    waiting: dict[str, Alias],
) -> Iterator[Concept]:
    """Yield a record per description; `waiting` keeps the first fully specified name of each
    concept that has no preferred name yet, `named` the ids of those that have one."""
    for own_id, concept_id, kind, lang, term in rows:
        if kind == FSN:
            match = TAG.fullmatch(term)
            if match is None:
                report.skip("fully specified name without a tag", concept_id)
            name, types = (match[1], (match[2],)) if match else (term, ())
            if concept_id not in named:
                waiting.setdefault(concept_id, Alias(name, lang))
            yield Concept(concept_id, aliases=(Alias(name, lang),), types=types)
        elif own_id in preferred:
            named.add(concept_id)
            waiting.pop(concept_id, None)
            yield Concept(concept_id, term, lang)
        else:
            yield Concept(concept_id, aliases=(Alias(term, lang),))


def _parents(path: Path, report: SkipReport, concepts: dict[str, str]) -> Iterator[Concept]:
    columns = ("active", "sourceId", "destinationId", "typeId")
    for number, (active, child, parent, kind) in read_rows(path, report, columns):
        if kind != IS_A or active != "1" or not _is_active(concepts, child):
            continue
        if _is_active(concepts, parent):
            yield Concept(child, parents=(parent,))
        else:
            report.skip("inactive or unknown parent", f"{path}, line {number}")


def _retired(paths: list[Path], concepts: dict[str, str], report: SkipReport) -> Iterator[Concept]:
    """Yield retired ids as alternative ids of the active concepts that they lead to."""
    columns = ("active", "refsetId", "referencedComponentId", "targetComponentId")
    successors: dict[str, list[str]] = {}
    for path in paths:
        for _, (active, refset, old, new) in read_rows(path, report, columns):
            if active == "1" and refset in SUCCESSORS and not _is_active(concepts, old):
                successors.setdefault(old, []).append(new)
    for old in successors:
        found = _find_active(old, successors, concepts)
        for new in found:
            yield Concept(new, alternative_ids=(old,))
        if not found:
            report.skip("retired id that leads to no active concept", old)


def _find_active(old: str, successors: dict[str, list[str]], concepts: dict[str, str]) -> list[str]:
    """Find the nearest active concepts that a retired one leads to, through other retired ones."""
    seen, ids = {old}, [old]
    while ids:
        following = (new for id in ids for new in successors.get(id, ()))
        ids = [new for new in dict.fromkeys(following) if new not in seen]
        seen.update(ids)
        if active := [new for new in ids if _is_active(concepts, new)]:
            return active
    return []
