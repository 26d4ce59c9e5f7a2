"""Codes of terminologies, and the concepts of OMOP that they stand for.

A table of concepts has the columns of OMOP's own SOURCE_TO_CONCEPT_MAP (CDM 5.4), which Usagi
writes too.
"""

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from ...context.medication.record import ACTIVE_SECTIONS, ALLERGY_SECTIONS
from ...errors import BioclinError, without_context
from ...files import check_regular
from ...settings import Settings, read_settings, read_yaml

MAX_CONCEPT_ID = 2**31 - 1  # the columns are integers of four bytes
CODE, VOCABULARY = "source_code", "source_vocabulary_id"
TARGET, SOURCE, INVALID = "target_concept_id", "source_concept_id", "invalid_reason"
_DELIMITERS = {".csv": ",", ".tsv": "\t"}


class Namespace(Settings):
    """A terminology.

    system (str | None): URI of the code system in FHIR; None if it has none.
    aliases (list[str]): Other prefixes of its ids.
    keep_prefix (bool): The prefix is part of the code, as in "HP:0001945".
    """

    system: str | None = None
    aliases: list[str] = Field(default_factory=list)
    keep_prefix: bool = False


class CodeSettings(Settings):
    """What is converted, and how its ids are read. OMOP and FHIR have these settings in common.

    spans_key (str | None): The layer of mentions; None for `doc.ents`.
    namespace (str | None): The terminology of ids without a prefix ("38341003").
    namespaces (dict[str, Namespace]): More terminologies by prefix. They go before those of
        namespaces.yml.
    active_sections (list[str]): Sections whose drugs are taken, if nothing says otherwise.
    allergy_sections (list[str]): Sections whose drugs are allergies, unless an order or a verb says
        that they are taken.
    """

    spans_key: str | None = None
    namespace: str | None = None
    namespaces: dict[str, Namespace] = Field(default_factory=dict)
    active_sections: list[str] = Field(default_factory=lambda: list(ACTIVE_SECTIONS))
    allergy_sections: list[str] = Field(default_factory=lambda: list(ALLERGY_SECTIONS))


class Code(NamedTuple):
    """A code of a terminology.

    namespace (str | None): Main prefix of the terminology; the prefix in lower case if it is not
        known; None without one.
    value (str): The code, with the prefix only where that is part of it.
    system (str | None): URI of the code system in FHIR.
    """

    namespace: str | None
    value: str
    system: str | None


class _Shipped(Settings):
    namespaces: dict[str, Namespace]


@lru_cache(maxsize=1)
def _read_shipped() -> dict[str, Namespace]:
    path = Path(__file__).parent / "namespaces.yml"
    content = {"namespaces": read_yaml(path)}
    return read_settings(_Shipped, content, where=str(path)).namespaces


class Namespaces:
    """Read ids of a knowledge base as codes.

    settings (CodeSettings): Terminologies that go before the shipped ones, and the one of ids
        without a prefix.
    RAISES (BioclinError): `namespace` is none of them.
    """

    def __init__(self, settings: CodeSettings) -> None:
        self.known = {**_read_shipped(), **settings.namespaces}
        self._by_prefix: dict[str, str] = {}
        for names in (settings.namespaces, _read_shipped()):
            for name, namespace in names.items():
                for prefix in (name, *namespace.aliases):
                    self._by_prefix.setdefault(prefix.casefold(), name)
        self.default = None
        if settings.namespace is not None:
            self.default = self._by_prefix.get(settings.namespace.casefold())
            if self.default is None:
                raise BioclinError(
                    f"namespace = {settings.namespace!r}: unknown; want one of "
                    f"{', '.join(sorted(self.known))}, or describe it in `namespaces`"
                )

    def split(self, kb_id: str) -> Code:
        """Read an id of a knowledge base: "MESH:D006973", "HP:0001945", "38341003"."""
        prefix, colon, rest = kb_id.partition(":")
        if not (colon and rest):
            return self._make(self.default, kb_id)
        name = self._by_prefix.get(prefix.casefold())
        return self._make(name, rest) if name else Code(prefix.casefold(), rest, None)

    def normalize(self, vocabulary: str, code: str) -> Code:
        """Read a code beside the name of its vocabulary, as tables of OMOP have it."""
        if not vocabulary:
            return self.split(code)
        name = self._by_prefix.get(vocabulary.casefold())
        prefix, colon, rest = code.partition(":")
        own = self._by_prefix.get(prefix.casefold(), prefix.casefold())
        if colon and own == (name or vocabulary.casefold()):
            code = rest
        return self._make(name, code) if name else Code(vocabulary.casefold(), code, None)

    def _make(self, name: str | None, value: str) -> Code:
        if name is None:
            return Code(None, value, None)
        namespace = self.known[name]
        return Code(name, f"{name}:{value}" if namespace.keep_prefix else value, namespace.system)


class Target(NamedTuple):
    """What a code stands for in OMOP.

    concept_id (int): The standard concept.
    source_concept_id (int): The concept of the code itself; 0 if OMOP has none.
    """

    concept_id: int
    source_concept_id: int


class ConceptMap:
    """Concepts of OMOP by code.

    targets (Mapping[tuple[str | None, str], Iterable[Target]]): By namespace and code. A code may
        stand for several concepts.
    n_invalid (int): Rows of the table that have an `invalid_reason`, and were left out.
    """

    def __init__(
        self, targets: Mapping[tuple[str | None, str], Iterable[Target]], n_invalid: int = 0
    ) -> None:
        self.targets = {key: tuple(sorted(set(found))) for key, found in targets.items()}
        self.n_invalid = n_invalid

    def __len__(self) -> int:
        return len(self.targets)

    def find(self, code: Code) -> tuple[Target, ...]:
        """Find the concepts of a code, sorted; empty if the table does not have it."""
        return self.targets.get((code.namespace, code.value), ())


@without_context()
def read_concept_map(path: Path, namespaces: Namespaces) -> ConceptMap:
    """Read a table of concepts: CSV or TSV with the columns of SOURCE_TO_CONCEPT_MAP.

    source_code and target_concept_id must be there. source_vocabulary_id ("SNOMED") may be missing
    where the codes have a prefix, source_concept_id counts as 0 if it is missing or empty, and rows
    with an invalid_reason are left out. Other columns do not matter.

    path (Path): Ends with .csv or .tsv.
    namespaces (Namespaces): Reads the codes as it reads the ids of entities.
    RAISES (BioclinError): The table cannot be read, lacks a column, or has an id that is no number.
    """
    delimiter = _DELIMITERS.get(path.suffix.lower())
    if delimiter is None:
        raise BioclinError(f"{path}: want a table that ends with .csv or .tsv")
    targets: defaultdict[tuple[str | None, str], set[Target]] = defaultdict(set)
    n_invalid = 0
    try:
        check_regular(path)
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, delimiter=delimiter, strict=True)
            columns = reader.fieldnames or ()
            for name in (CODE, TARGET):
                if name not in columns:
                    raise BioclinError(f"{path}: no column {name!r}; it has {', '.join(columns)}")
            for row in reader:
                if row.get(INVALID):
                    n_invalid += 1
                    continue
                place = f"{path}, line {reader.line_num}"
                code = (row[CODE] or "").strip()
                if not code:
                    raise BioclinError(f"{place}: no {CODE}; fill it in or delete the row")
                key = namespaces.normalize((row.get(VOCABULARY) or "").strip(), code)
                target = Target(_read_id(row, TARGET, place), _read_id(row, SOURCE, place))
                targets[key.namespace, key.value].add(target)
    except OSError as error:
        raise BioclinError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeError:
        raise BioclinError(f"{path}: not UTF-8; save it as UTF-8") from None
    except csv.Error as error:
        raise BioclinError(f"{path}: not a table ({error})") from None
    return ConceptMap(targets, n_invalid)


def _read_id(row: Mapping[str, str | None], column: str, place: str) -> int:
    written = (row.get(column) or "").strip()
    if not written and column == SOURCE:
        return 0
    if not (written.isascii() and written.isdigit() and int(written) <= MAX_CONCEPT_ID):
        raise BioclinError(
            f"{place}: {column} = {written[:20]!r}: want a concept_id, "
            f"a number from 0 to {MAX_CONCEPT_ID}"
        )
    return int(written)
