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
from ...files import open_folder
from ..names.columns import Strings
from ..names.index import NGRAM, hash_texts
from ..names.ngrams import NgramIndex
from ..names.normalize import normalize
from .concepts import Alias, Concept
from .storage import (
    ARRAYS,
    META,
    array_hash,
    check_meta,
    check_target,
    load_array,
    meta_hash,
)


class KnowledgeBase:
    """Look up concepts, sorted by id, and their names.

    arrays (Mapping[str, np.ndarray]): The arrays that `KbBuilder` makes.
    meta (Mapping): name, version, langs, lang_codes, types, sources (file, format, bytes, sha256,
        licence), n_concepts, n_names, skipped; format, arrays (dtype, shape and SHA-256 of each)
        and hash, see `seal`.
    path (Path | None): Folder that it was opened from; None if it is in memory.
    """

    def __init__(
        self, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any], path: Path | None = None
    ) -> None:
        self.arrays, self.meta, self.path = dict(arrays), dict(meta), path
        self.ids = self._strings("ids")
        self.names = self._strings("names")
        self._definitions = self._strings("definitions")
        self._xrefs = self._strings("xrefs")
        self._other_ids = self._strings("other_ids")
        self.name_concept = arrays["name_concept"]
        self.name_lang = arrays["name_lang"]
        self.first_name = arrays["first_name"]
        self.langs: list[str] = self.meta["lang_codes"]

    # -- opening and writing ---------------------------------------------------------------------

    @classmethod
    def open(cls, path: Path | str, *, hash: str | None = None) -> "KnowledgeBase":
        """Open a folder that `bioclin kb build` wrote.

        path (Path | str): The folder.
        hash (str | None): Hash that it must have.
        RAISES (BioclinError): It is not a knowledge base, has another format version or hash, or is
            damaged. The content of the arrays is not checked: see `verify`.
        """
        path = Path(path)
        try:
            meta = json.loads((path / META).read_text("utf-8"))
        except OSError as error:
            raise BioclinError(
                f"{path} is not a knowledge base: {META} cannot be read ({error.strerror}); build "
                "one with `bioclin kb build SOURCE -o FOLDER`"
            ) from None
        except (ValueError, RecursionError):
            raise BioclinError(
                f"{path / META} is damaged: build the knowledge base again"
            ) from None
        check_meta(meta, str(path))
        arrays = {name: load_array(path, name, meta["arrays"][name]) for name in sorted(ARRAYS)}
        kb = cls(arrays, meta, path)
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
        """Compare the SHA-256 of all arrays and of meta.json with what was written.

        RAISES (BioclinError): Something was changed.
        """
        where = self.path or "the knowledge base"
        for name, array in self.arrays.items():
            if array_hash(array) != self.meta["arrays"][name]["sha256"]:
                raise BioclinError(
                    f"{where}, {name}.npy: its SHA-256 is not the one in {META}: it was changed; "
                    "copy the folder again, or build it again"
                )
        if meta_hash(self.meta) != self.hash:
            raise BioclinError(
                f"{where}, {META}: its hash is not that of its content: it was changed; copy the "
                "folder again, or build it again"
            )

    def write(self, path: Path | str) -> "KnowledgeBase":
        """Write to a folder that is new or holds a knowledge base, completely or not at all.

        RETURNS (KnowledgeBase): The one in the folder, memory-mapped.
        RAISES (BioclinError): The folder holds something else.
        RAISES (OSError): It cannot be written.
        """
        check_target(Path(path))
        with open_folder(Path(path).resolve()) as folder:
            for name, array in self.arrays.items():
                np.save(folder / f"{name}.npy", array)
            text = json.dumps(self.meta, indent=1, ensure_ascii=False)
            (folder / META).write_text(text, "utf-8")
        return KnowledgeBase.open(path)

    def to_bytes(self) -> bytes:
        """Write everything to bytes, for a pipeline that is passed on as bytes."""
        arrays = {name: array.tobytes() for name, array in self.arrays.items()}
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
                name: np.frombuffer(bytearray(content), described[name]["dtype"]).reshape(
                    described[name]["shape"]
                )
                for name, content in loaded["arrays"].items()
            }
        except (ValueError, TypeError, KeyError) as error:
            raise BioclinError(f"the bytes are no knowledge base ({error})") from None
        return cls(arrays, loaded["meta"])

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
    def hash(self) -> str:
        """A hash of all content."""
        return str(self.meta["hash"])

    def number(self, id: str) -> int | None:
        """Find the row of the concept with this id or alternative id."""
        found = self.ids.find(id)
        if found is None and (other := self._other_ids.find(id)) is not None:
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
            self._definitions[i],
            tuple(self.ids[j] for j in self._row("parents", i)),
            tuple(self._xrefs[j] for j in range(*self._bounds("xrefs", i))),
            tuple(self._other_ids[j] for j in self._row("others", i)),
        )

    def __iter__(self) -> Iterator[Concept]:
        return (self.concept_at(i) for i in range(len(self)))

    def name_of(self, i: int, lang: str = "") -> str:
        """Get the preferred name of the concept in row i.

        lang (str): Language in which the name is wanted. A concept without a name in it has its
            preferred name; so have all if it is "".
        """
        first, end = int(self.first_name[i]), int(self.first_name[i + 1])
        langs = (self.langs[code] for code in self.name_lang[first:end])
        return self.names[first + next((j for j, own in enumerate(langs) if own == lang), 0)]

    def types_of(self, i: int) -> tuple[str, ...]:
        """Get the semantic types of the concept in row i."""
        return tuple(self.meta["types"][j] for j in self._row("types", i))

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
        return Strings(self.arrays[name], self.arrays[f"{name}_at"])

    def _bounds(self, name: str, i: int) -> tuple[int, int]:
        start = self.arrays[f"{name}_start"]
        return int(start[i]), int(start[i + 1])

    def _row(self, name: str, i: int) -> np.ndarray:
        low, high = self._bounds(name, i)
        return np.asarray(self.arrays[name][low:high])


def _open_same(path: Path, hash: str) -> KnowledgeBase:
    return KnowledgeBase.open(path, hash=hash)
