"""Read the secret key, and derive values from it.

A surrogate, a hash and a date shift depend only on the key, the patient and the value: another run
on another machine gives the same, and there is no lookup table to protect. Values are derived by
HMAC-SHA256 (RFC 2104) of purpose and value, so those of one purpose reveal nothing about another.
"""

import base64
import codecs
import hashlib
import hmac
import os
import stat
from multiprocessing.context import get_spawning_popen
from pathlib import Path
from typing import Any

from ..errors import BioclinError
from ..text import fold_alnum

KEY_VARIABLE = "BIOCLIN_DEID_KEY"
MIN_KEY_BYTES = 16
MAX_KEY_BYTES = 2**16


class SecretKey:
    """Hold the secret key so that it is never written anywhere.

    A pickle, such as `pickle.dumps(nlp)`, does not hold it: where it is read again, the key is that
    of the environment. Only a process that multiprocessing starts, as in
    `nlp.pipe(texts, n_process=2)`, gets the key, through a pipe and not through a file. Copies in
    memory keep it. Printed, it is not shown.

    key (bytes | None): The key; None for none.
    """

    __slots__ = ("_key",)

    def __init__(self, key: bytes | None) -> None:
        self._key = key

    def reveal(self) -> bytes | None:
        """Get the key."""
        return self._key

    def __repr__(self) -> str:
        return "SecretKey(none)" if self._key is None else "SecretKey(hidden)"

    def __copy__(self) -> "SecretKey":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "SecretKey":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # What multiprocessing does with its own keys.
        if get_spawning_popen() is not None:
            return SecretKey, (self._key,)
        return _read_key_here, ()


def _read_key_here() -> SecretKey:
    return SecretKey(read_key())


class Secret:
    """Derive values for one patient.

    key (bytes): The project's secret key.
    patient_id (str): The same in all notes of the patient. It is not kept: for a note without one
        it is the whole text of the note.
    """

    def __init__(self, key: bytes, patient_id: str) -> None:
        self.key = key
        self._patient = hmac.new(key, _pack(patient_id), hashlib.sha256)
        self._name = self._patient.digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._name == other._name

    def __hash__(self) -> int:
        return hash(self._name)

    def derive(self, purpose: str, value: str) -> bytes:
        """Derive 32 bytes that look random without the key."""
        derived = self._patient.copy()
        derived.update(_pack(purpose, value))
        return derived.digest()

    def number(self, purpose: str, value: str, n: int) -> int:
        """Derive a number from 0 to n - 1, uniform up to about 2**-64."""
        return int.from_bytes(self.derive(purpose, value)[:16], "big") % n


def _pack(*parts: str) -> bytes:
    """Join texts with their lengths, so that no two lists of texts are equal."""
    encoded = [part.encode("utf-8") for part in parts]
    return b"".join(len(part).to_bytes(4, "big") + part for part in encoded)


def patient_secret(key: bytes, patient_id: object, text: str) -> Secret:
    """Make the secret of a note's patient.

    patient_id (object): Its id; a note without one has a patient of its own.
    text (str): The note.
    """
    return Secret(key, str(patient_id or f"note:{fold_alnum(text)}"))


def read_key(path: Path | None = None) -> bytes | None:
    """Read the secret key: a file's content, or the environment's BIOCLIN_DEID_KEY.

    path (Path | None): File with the key alone; blanks and line ends around it do not count.
    RETURNS (bytes | None): None if no file is given and the variable is not set.
    RAISES (BioclinError): The file cannot be read, or what it holds is too short, too long, or text
        in another encoding than ASCII and UTF-8.
    """
    if path is not None:
        try:
            with path.open("rb") as file:
                key = file.read(MAX_KEY_BYTES + 1).strip()
        except OSError as error:
            raise BioclinError(f"{path}: the key cannot be read ({error.strerror})") from None
        source = str(path)
    else:
        key = os.environ.get(KEY_VARIABLE, "").encode("utf-8", "surrogateescape").strip()
        source = KEY_VARIABLE
        if not key:
            return None
    if len(key) < MIN_KEY_BYTES:
        raise BioclinError(
            f"{source}: a key of {len(key)} bytes can be guessed, want {MIN_KEY_BYTES} or more; "
            "make one with: bioclin deid-key FILE"
        )
    if len(key) > MAX_KEY_BYTES:
        raise BioclinError(
            f"{source}: more than {MAX_KEY_BYTES:,} bytes are no key; give the file of deid-key"
        )
    if is_recoded(key):
        raise BioclinError(
            f"{source}: the key was saved as UTF-16, or with a byte order mark, and would be "
            "another key than before; save it as plain text (ASCII)"
        )
    return key


def is_recoded(key: bytes) -> bool:
    """Check whether an editor or a shell has saved a key of plain text in another encoding."""
    if key.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        plain = key.lstrip(codecs.BOM_UTF8 + codecs.BOM_UTF16_LE).replace(b"\0", b"")
    elif 2 * key.count(0) >= len(key) - 1:  # every other byte
        plain = key.replace(b"\0", b"")
    else:
        return False
    return bool(plain) and plain.isascii() and plain.decode("ascii").strip().isprintable()


def can_others_read(path: Path) -> bool:
    """Check whether every user of the machine can read a file."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return os.name == "posix" and stat.S_ISREG(mode) and bool(mode & stat.S_IROTH)


def fingerprint_key(key: bytes | None) -> str:
    """Compute what tells one key from another, and reveals nothing else; "" without a key."""
    return "" if key is None else hmac.digest(key, b"fingerprint", "sha256").hex()[:16]


def make_key() -> str:
    """Make a new random key, 256 bits in base64."""
    return base64.b64encode(os.urandom(32)).decode("ascii")
