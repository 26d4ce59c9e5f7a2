"""A knowledge base on disk: NumPy arrays in a folder, memory-mapped, opened in milliseconds and
shared by all processes that use it.

meta.json describes the content and its sources; each other file is one array. Strings are stored as
columns: the UTF-8 bytes of all, and where each begins.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import srsly

from ...errors import BioclinError
from ...outputs import Output
from ..names.columns import Strings, as_array
from ..names.index import NGRAM, hash_texts
from ..names.ngrams import NgramIndex
from ..names.normalize import normalize
from .checks import RULES, CheckedArrays
from .concepts import Alias, Concept
from .faults import find_faults
from .storage import (
    FILES,
    META,
    check_array_hash,
    check_meta,
    complete,
    load_array,
    read_meta,
    stored,
)


class KnowledgeBase:
    """Look up concepts, sorted by id, and their names.

    arrays (Mapping[str, np.ndarray]): The arrays that `KbBuilder` makes.
    meta (Mapping): name, version, langs, lang_codes, types, sources (file, format, bytes, sha256,
        licence), n_concepts, n_names, skipped; format, arrays (dtype, shape and SHA-256 of each)
        and hash, see `seal`; and compact, whether arrays that follow from others are not stored.
    path (Path | None): Folder that it was opened from; None if it is in memory.
    """

    def __init__(
        self, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any], path: Path | None = None
    ) -> None:
        self.meta, self.path = dict(meta), path
        self.arrays = CheckedArrays(arrays, self.meta, str(path or "the knowledge base"))
        self.langs: list[str] = self.meta["lang_codes"]
        self._columns: dict[str, Strings] = {}

    # -- opening and writing ---------------------------------------------------------------------

    @classmethod
    def open(cls, path: Path | str, *, hash: str | None = None) -> "KnowledgeBase":
        """Open a folder that `bioclin kb build` wrote.

        path (Path | str): The folder.
        hash (str | None): Hash that it must have.
        RAISES (BioclinError): It is not a knowledge base, has another format version or hash, or is
            damaged. Numbers are checked when they are first used, see `CheckedArrays`; a change of
            a large array that leaves it valid is found by `verify` alone.
        """
        path = Path(path)
        meta = read_meta(path)
        arrays = {name: load_array(path, name, meta) for name in sorted(stored(meta))}
        kb = cls(complete(arrays, meta, str(path)), meta, path)
        kb.check_hash(hash)
        return kb

    def check_hash(self, hash: str | None) -> None:
        """Check that this is the knowledge base with a hash.

        hash (str | None): None accepts any.
        RAISES (BioclinError): It is another one.
        """
        if hash is not None and self.hash != hash:
            raise BioclinError(
                f"{self.path or 'the knowledge base'} has the hash {self.hash}, wanted is {hash}: "
                "it is another knowledge base or another version; give the one that the pipeline "
                "was made with, or set kb_hash = null to accept this one"
            )

    def verify(self) -> None:
        """Compare everything with what was written. See `find_faults`.

        RAISES (BioclinError): Something was changed.
        """
        for fault in find_faults(self.arrays, self.meta):
            raise BioclinError(f"{self.path or 'the knowledge base'}, {fault}")

    def write(self, path: Path | str, *, overwrite: bool = True) -> "KnowledgeBase":
        """Write to a folder that is new or holds a knowledge base, completely or not at all.

        Processes that have an older one in the folder open go on with that.

        overwrite (bool): Replace a knowledge base that is there.
        RETURNS (KnowledgeBase): The one in the folder, memory-mapped.
        RAISES (BioclinError): The folder holds something else, or another process writes it.
        RAISES (OSError): It cannot be written.
        """
        path = Path(path)
        output = Output(path.resolve(), overwrite=overwrite, marker=META, only=FILES)
        with output.open_folder() as folder:
            for name in sorted(stored(self.meta)):
                np.save(folder / f"{name}.npy", self.arrays[name])
            text = json.dumps(self.meta, indent=1, ensure_ascii=False)
            (folder / META).write_text(text, "utf-8")
        return KnowledgeBase.open(path)

    def to_bytes(self) -> bytes:
        """Write everything to bytes, for a pipeline that is passed on as bytes."""
        arrays = {name: self.arrays[name].tobytes() for name in sorted(stored(self.meta))}
        return srsly.msgpack_dumps({"meta": self.meta, "arrays": arrays})

    @classmethod
    def from_bytes(cls, data: bytes) -> "KnowledgeBase":
        """Read what `to_bytes` wrote.

        RAISES (BioclinError): The bytes hold something else, or have another format version.
        """
        try:
            loaded = srsly.msgpack_loads(data)
            check_meta(loaded["meta"], "the bytes")
            described = loaded["meta"]["arrays"]
            arrays = {
                name: as_array(bytearray(loaded["arrays"][name]), RULES[name]["dtype"])
                for name in sorted(stored(loaded["meta"]))
            }
            for name, array in arrays.items():
                if [len(array)] != described[name]["shape"]:
                    raise BioclinError(f"the bytes are damaged: {name} is cut off")
                check_array_hash(name, array, loaded["meta"], "the bytes")
            return cls(complete(arrays, loaded["meta"], "the bytes"), loaded["meta"])
        except (ValueError, TypeError, KeyError) as error:
            raise BioclinError(
                f"the bytes are no knowledge base ({type(error).__name__})"
            ) from None

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process maps the same files.
        if self.path is not None:
            return (_open_same, (self.path.resolve(), self.hash))
        return (KnowledgeBase.from_bytes, (self.to_bytes(),))

    # -- concepts --------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, id: str) -> bool:
        return self.number(id) is not None

    @property
    def ids(self) -> Strings:
        """The ids of the concepts, sorted."""
        return self._strings("ids")

    @property
    def names(self) -> Strings:
        """The names of the concepts, those of a concept together, the preferred one first, and of
        each language the one preferred in it."""
        return self._strings("names")

    @property
    def name_concept(self) -> np.ndarray:
        """Row of the concept of each name: (n_names,) int32."""
        return self.arrays["name_concept"]

    @property
    def name_lang(self) -> np.ndarray:
        """Language of each name, as a row of `langs`: (n_names,) uint8."""
        return self.arrays["name_lang"]

    @property
    def first_name(self) -> np.ndarray:
        """Where the names of each concept begin: (n_concepts + 1,) int64."""
        return self.arrays["first_name"]

    @property
    def hash(self) -> str:
        """A hash of all content."""
        return str(self.meta["hash"])

    def number(self, id: str) -> int | None:
        """Find the row of the concept with this id or alternative id."""
        found = self.ids.find(id)
        if found is None and (other := self._strings("other_ids").find(id)) is not None:
            return int(self.arrays["other_concept"][other])
        return found

    def concept(self, id: str) -> Concept | None:
        """Get the concept with this id or alternative id."""
        number = self.number(id)
        return None if number is None else self.concept_at(number)

    def concept_at(self, i: int) -> Concept:
        """Get the concept in row i."""
        aliases = [
            Alias(self.names[j], self.langs[self.name_lang[j]])
            for j in range(self.first_name[i], self.first_name[i + 1])
        ]
        return Concept(
            self.ids[i],
            *aliases[0],
            tuple(aliases[1:]),
            self.types_of(i),
            self.definition_of(i),
            tuple(self.ids[j] for j in self._row("parents", i)),
            self.xrefs_of(i),
            tuple(self._strings("other_ids")[j] for j in self._row("others", i)),
        )

    def __iter__(self) -> Iterator[Concept]:
        return (self.concept_at(i) for i in range(len(self)))

    def name_of(self, i: int, lang: str = "") -> str:
        """Get the preferred name of the concept in row i.

        lang (str): Language in which the preferred name is wanted. A concept without a name in it
            has its preferred name; so have all if it is "".
        """
        first, end = int(self.first_name[i]), int(self.first_name[i + 1])
        langs = (self.langs[code] for code in self.name_lang[first:end])
        return self.names[first + next((j for j, own in enumerate(langs) if own == lang != ""), 0)]

    def definition_of(self, i: int) -> str:
        """Get the definition of the concept in row i, or ""."""
        return self._strings("definitions")[i]

    def types_of(self, i: int) -> tuple[str, ...]:
        """Get the semantic types of the concept in row i."""
        return tuple(self.meta["types"][j] for j in self._row("types", i))

    def xrefs_of(self, i: int) -> tuple[str, ...]:
        """Get the cross references of the concept in row i."""
        return tuple(self._strings("xrefs")[j] for j in range(*self._bounds("xrefs", i)))

    def names_by_language(self) -> dict[str, int]:
        """Count the names in each language."""
        counts = np.bincount(self.name_lang, minlength=len(self.langs)).tolist()
        return {lang: n for lang, n in zip(self.langs, counts, strict=True) if n}

    def describe(self) -> dict[str, Any]:
        """Describe its content, sources and size, as numbers and strings."""
        keys = ("name", "version", "n_concepts", "n_names", "sources", "skipped", "format", "hash")
        return {
            **{key: self.meta[key] for key in keys},
            "names_in": self.names_by_language(),
            "n_types": len(self.meta["types"]),
            "bytes": sum(file.stat().st_size for file in self.path.iterdir()) if self.path else 0,
        }

    # -- index -----------------------------------------------------------------------------------

    @cached_property
    def similar(self) -> NgramIndex:
        """The index of similar names; its rows are keys, see `names_of_key`."""
        arrays = {
            name.removeprefix(NGRAM): array
            for name, array in self.arrays.items()
            if name.startswith(NGRAM)
        }
        return NgramIndex(arrays)

    def exact(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Find the names that differ from each text in case, accents or punctuation only.

        RETURNS (list[np.ndarray]): Rows of names for each text.
        """
        return self._look_up("exact", [normalize(text) for text in texts])

    def same_key(self, keys: Sequence[str]) -> list[np.ndarray]:
        """Find the names with each key, see `normalize.name_key`.

        RETURNS (list[np.ndarray]): Rows of names for each key.
        """
        return [
            self.names_of_key(int(found[0])) if len(found) else found
            for found in self._look_up("key", keys)
        ]

    def names_of_key(self, key: int) -> np.ndarray:
        """Get the rows of the names with the key in a row of the index."""
        return self._row("key_names", key)

    def _look_up(self, what: str, texts: Sequence[str]) -> list[np.ndarray]:
        hashes = hash_texts(texts)
        known, rows = self.arrays[f"{what}_hash"], self.arrays[f"{what}_row"]
        low, high = (np.searchsorted(known, hashes, side) for side in ("left", "right"))
        return [np.asarray(rows[a:b]) for a, b in zip(low, high, strict=True)]

    # -- columns ---------------------------------------------------------------------------------

    def _strings(self, name: str) -> Strings:
        if name not in self._columns:
            place = f"{self.path or 'the knowledge base'}, {name}.npy"
            self._columns[name] = Strings(self.arrays[name], self.arrays[f"{name}_at"], place)
        return self._columns[name]

    def _bounds(self, name: str, i: int) -> tuple[int, int]:
        start = self.arrays[f"{name}_start"]
        return int(start[i]), int(start[i + 1])

    def _row(self, name: str, i: int) -> np.ndarray:
        low, high = self._bounds(name, i)
        return np.asarray(self.arrays[name][low:high])


def _open_same(path: Path, hash: str) -> KnowledgeBase:
    return KnowledgeBase.open(path, hash=hash)
