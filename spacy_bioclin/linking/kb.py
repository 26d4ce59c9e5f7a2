"""A knowledge base on disk: NumPy arrays in a folder, memory-mapped, opened in milliseconds and
shared by all processes that use it.

meta.json says what it holds and where that came from; each other file is one array. Strings are
columns: the UTF-8 bytes of all, and where each begins.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import srsly

from ..errors import BioclinError
from .concepts import Alias, Concept
from .ngrams import NgramIndex
from .normalize import normalize

# Raised with every change of the arrays; a folder of another version has to be built again.
FORMAT = 1
META = "meta.json"
# Arrays whose names begin so belong to the index of similar names.
NGRAM = "ngram."


class Strings(Sequence[str]):
    """A column of strings over two arrays: `data` (n_bytes,) uint8, `start` (n + 1,) int64."""

    def __init__(self, data: np.ndarray, start: np.ndarray) -> None:
        self.data, self.start = data, start

    def __len__(self) -> int:
        return len(self.start) - 1

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        return bytes(self.data[self.start[i] : self.start[i + 1]]).decode("utf-8")

    def find(self, text: str) -> int | None:
        """RETURNS (int | None): Where the text stands, if the column is sorted by bytes."""
        wanted, low, high = text.encode("utf-8"), 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if bytes(self.data[self.start[middle] : self.start[middle + 1]]) < wanted:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self) and self[low] == text else None


def pack_strings(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """RETURNS (tuple[np.ndarray, np.ndarray]): The arrays of `Strings`."""
    encoded = [text.encode("utf-8") for text in texts]
    start = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(e) for e in encoded], out=start[1:])
    return np.frombuffer(b"".join(encoded), np.uint8), start


def hash_text(text: str) -> int:
    """RETURNS (int): 64 bits of BLAKE2b: the same in every process and on every machine."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest(), "little")


class KnowledgeBase:
    """Concepts with their names, sorted by id, and the index of their names.

    path (Path | None): Folder it was opened from, None if it came from bytes.
    meta (dict): name, version, langs, sources (file, format, sha256, licence), n_concepts, n_names,
        types, skipped, hash.
    """

    def __init__(
        self, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any], path: Path | None = None
    ) -> None:
        self.arrays, self.meta, self.path = dict(arrays), dict(meta), path
        self.ids = self._strings("ids")
        self.names = self._strings("names")
        self.name_concept = arrays["name_concept"]
        self.name_lang = arrays["name_lang"]
        self.first_name = arrays["first_name"]
        self.langs: list[str] = self.meta["lang_codes"]

    # -- opening and writing ---------------------------------------------------------------------

    @classmethod
    def open(cls, path: Path | str, *, hash: str | None = None) -> "KnowledgeBase":
        """Open a folder that `bioclin kb build` wrote.

        path (Path | str): The folder.
        hash (str | None): What `meta["hash"]` has to be.
        RAISES (BioclinError): It is no knowledge base, of another format version, damaged, or
            another one than the hash says.
        """
        path = Path(path)
        try:
            meta = json.loads((path / META).read_text("utf-8"))
        except OSError as error:
            raise BioclinError(
                f"{path} is no knowledge base: {META} cannot be read ({error.strerror}); build one "
                "with `bioclin kb build SOURCE -o FOLDER`"
            ) from None
        except ValueError:
            raise BioclinError(
                f"{path / META} is damaged: build the knowledge base again"
            ) from None
        check_meta(meta, str(path), hash)
        arrays = {}
        for name, described in meta["files"].items():
            file = path / f"{name}.npy"
            try:
                # Copy on write: sparse_dot_topn takes no array that is read-only.
                arrays[name] = np.load(file, mmap_mode="c" if described["mapped"] else None)
                whole = file.stat().st_size == described["bytes"]
            except (OSError, ValueError, EOFError):
                whole = False
            if not whole:
                raise BioclinError(
                    f"{file} is missing or cut off: copy the folder again, or build it again"
                )
        return cls(arrays, meta, path)

    def verify(self) -> None:
        """Read every file and compare its SHA-256 with what meta.json says.

        RAISES (BioclinError): A file is not what was written.
        """
        if self.path is None:
            return
        for name, described in self.meta["files"].items():
            file = self.path / f"{name}.npy"
            if file_hash(file) != described["sha256"]:
                raise BioclinError(
                    f"{file}: its SHA-256 is not the one in {META}: the file was changed; copy the "
                    "folder again, or build it again"
                )

    def write(self, path: Path) -> "KnowledgeBase":
        """Write to a folder that is new or holds a knowledge base; whole or not at all.

        RETURNS (KnowledgeBase): The one in the folder, memory-mapped.
        """
        partial = path.with_name(f"{path.name}.partial")
        _clear(partial)
        partial.mkdir(parents=True)
        files = {}
        for name, array in self.arrays.items():
            file = partial / f"{name}.npy"
            np.save(file, array)
            # A mapping costs a file handle and a page; small arrays are read.
            files[name] = {
                "bytes": file.stat().st_size,
                "sha256": file_hash(file),
                "mapped": array.nbytes > 2**16,
            }
        digest = hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
        meta = {**self.meta, "files": files, "hash": digest, "format": FORMAT}
        (partial / META).write_text(json.dumps(meta, indent=1, ensure_ascii=False), "utf-8")
        if path.exists() and any(path.iterdir()) and not (path / META).is_file():
            raise BioclinError(f"{path} holds files that are no knowledge base: name a new folder")
        _clear(path)
        partial.rename(path)
        return KnowledgeBase.open(path)

    def to_bytes(self) -> bytes:
        """RETURNS (bytes): All of it, for a pipeline that is passed on as bytes."""
        arrays = {
            name: (array.dtype.str, list(array.shape), np.ascontiguousarray(array).tobytes())
            for name, array in self.arrays.items()
        }
        return srsly.msgpack_dumps({"meta": self.meta, "arrays": arrays})

    @classmethod
    def from_bytes(cls, data: bytes) -> "KnowledgeBase":
        """RETURNS (KnowledgeBase): The one that `to_bytes` was called on."""
        loaded = srsly.msgpack_loads(data)
        check_meta(loaded["meta"], "the bytes", None)
        arrays = {
            name: np.array(np.frombuffer(content, dtype)).reshape(shape)  # not read-only
            for name, (dtype, shape, content) in loaded["arrays"].items()
        }
        return cls(arrays, loaded["meta"])

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process maps the same files."""
        if self.path is not None:
            return (KnowledgeBase.open, (self.path.resolve(),))
        return (KnowledgeBase.from_bytes, (self.to_bytes(),))

    # -- concepts --------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, id: str) -> bool:
        return self.number(id) is not None

    @property
    def hash(self) -> str:
        """Changes with anything that the knowledge base holds."""
        return str(self.meta["hash"])

    def number(self, id: str) -> int | None:
        """RETURNS (int | None): Row of the concept with this id, or with this alternative id."""
        found = self.ids.find(id)
        if found is None and (other := self._other_ids.find(id)) is not None:
            return int(self.arrays["other_concept"][other])
        return found

    def concept(self, id: str) -> Concept | None:
        """RETURNS (Concept | None): All that is known of it; also by an alternative id."""
        number = self.number(id)
        return None if number is None else self.concept_at(number)

    def concept_at(self, i: int) -> Concept:
        """RETURNS (Concept): The one in row i."""
        aliases = [
            Alias(self.names[j], self.langs[self.name_lang[j]])
            for j in range(self.first_name[i], self.first_name[i + 1])
        ]
        others = np.flatnonzero(self.arrays["other_concept"] == i)
        return Concept(
            self.ids[i],
            *aliases[0],
            tuple(aliases[1:]),
            self.types_of(i),
            self._definitions[i],
            tuple(self.ids[j] for j in self._row("parents", i)),
            tuple(self._xrefs[j] for j in range(*self._bounds("xref_start", i))),
            tuple(self._other_ids[j] for j in others),
        )

    def __iter__(self) -> Iterator[Concept]:
        return (self.concept_at(i) for i in range(len(self)))

    def name_of(self, i: int) -> str:
        """RETURNS (str): Preferred name of the concept in row i."""
        return self.names[self.first_name[i]]

    def types_of(self, i: int) -> tuple[str, ...]:
        """RETURNS (tuple[str, ...]): Semantic types of the concept in row i."""
        return tuple(self.meta["types"][j] for j in self._row("types", i))

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
        """RETURNS (list[np.ndarray]): Names that differ from each text in case, accents or
        punctuation only."""
        return self._look_up("exact", [normalize(text) for text in texts])

    def same_key(self, keys: Sequence[str]) -> list[np.ndarray]:
        """RETURNS (list[np.ndarray]): Names with each key, see `normalize.name_key`."""
        return [
            self.names_of_key(int(found[0])) if len(found) else found
            for found in self._look_up("key", keys)
        ]

    def names_of_key(self, key: int) -> np.ndarray:
        """RETURNS (np.ndarray): The names with the key in a row of the index."""
        return self._row("key_names", key)

    def _look_up(self, what: str, texts: Sequence[str]) -> list[np.ndarray]:
        hashes = np.array([hash_text(text) for text in texts], np.uint64)
        known, rows = self.arrays[f"{what}_hash"], self.arrays[f"{what}_row"]
        low, high = (np.searchsorted(known, hashes, side) for side in ("left", "right"))
        return [np.asarray(rows[a:b]) for a, b in zip(low, high, strict=True)]

    # -- columns ---------------------------------------------------------------------------------

    def _strings(self, name: str) -> Strings:
        return Strings(self.arrays[name], self.arrays[f"{name}_at"])

    @cached_property
    def _definitions(self) -> Strings:
        return self._strings("definitions")

    @cached_property
    def _xrefs(self) -> Strings:
        return self._strings("xrefs")

    @cached_property
    def _other_ids(self) -> Strings:
        return self._strings("other_ids")

    def _bounds(self, name: str, i: int) -> tuple[int, int]:
        start = self.arrays[name]
        return int(start[i]), int(start[i + 1])

    def _row(self, name: str, i: int) -> np.ndarray:
        low, high = self._bounds(f"{name}_start", i)
        return np.asarray(self.arrays[name][low:high])


def check_meta(meta: Mapping[str, Any], where: str, hash: str | None) -> None:
    """RAISES (BioclinError): Of another format version, or another knowledge base."""
    if meta.get("format") != FORMAT:
        raise BioclinError(
            f"{where}: format {meta.get('format')!r}, this spacy-bioclin reads {FORMAT}: "
            "build it again with `bioclin kb build`"
        )
    if hash is not None and meta["hash"] != hash:
        raise BioclinError(
            f"{where}: hash {meta['hash']}, the pipeline was made with {hash}: give it the same "
            "knowledge base, or set kb_hash = null to take this one"
        )


def file_hash(path: Path) -> str:
    """RETURNS (str): SHA-256 of a file."""
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(2**20):
            digest.update(block)
        return digest.hexdigest()


def _clear(folder: Path) -> None:
    """Remove a folder that `write` made: it holds arrays and meta.json."""
    if folder.is_dir():
        for file in [*folder.glob("*.npy"), folder / META]:
            file.unlink(missing_ok=True)
        folder.rmdir()
