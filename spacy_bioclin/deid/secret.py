"""Read the secret key, and derive values from it.

A surrogate, a hash and a date shift depend only on the key, the patient and the value: another run
on another machine gives the same, and there is no lookup table to protect. Values are derived by
HMAC-SHA256 (RFC 2104) of purpose and value, so those of one purpose reveal nothing about another.
"""

import base64
import hashlib
import hmac
import os
from pathlib import Path
from typing import NamedTuple

from ..errors import BioclinError
from ..text import fold_alnum

KEY_VARIABLE = "BIOCLIN_DEID_KEY"
MIN_KEY_BYTES = 16


class Secret(NamedTuple):
    """Derive values for one patient.

    key (bytes): The project's secret key.
    patient_id (str): The same in all notes of the patient. It is never shown.
    """

    key: bytes
    patient_id: str

    def derive(self, purpose: str, value: str) -> bytes:
        """Derive 32 bytes that look random without the key."""
        parts = [part.encode("utf-8") for part in (self.patient_id, purpose, value)]
        message = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
        return hmac.new(self.key, message, hashlib.sha256).digest()

    def number(self, purpose: str, value: str, n: int) -> int:
        """Derive a number from 0 to n - 1, uniform up to about 2**-64."""
        return int.from_bytes(self.derive(purpose, value)[:16], "big") % n


def patient_secret(key: bytes, patient_id: object, text: str) -> Secret:
    """Make the secret of a note's patient.

    patient_id (object): Its id; a note without one has a patient of its own.
    text (str): The note.
    """
    return Secret(key, str(patient_id or f"note:{fold_alnum(text)}"))


def read_key(path: Path | None = None) -> bytes | None:
    """Read the secret key: a file's content, or the environment's BIOCLIN_DEID_KEY.

    path (Path | None): File with the key alone; blanks around it do not count.
    RETURNS (bytes | None): None if no file is given and the variable is not set.
    RAISES (BioclinError): The file cannot be read, or the key has fewer than 16 bytes.
    """
    if path is not None:
        try:
            key = path.read_bytes().strip()
        except OSError as error:
            raise BioclinError(f"{path}: the key cannot be read ({error.strerror})") from None
        source = str(path)
    else:
        key = os.environ.get(KEY_VARIABLE, "").encode("utf-8").strip()
        source = KEY_VARIABLE
        if not key:
            return None
    if len(key) < MIN_KEY_BYTES:
        raise BioclinError(
            f"{source}: a key of {len(key)} bytes can be guessed, want {MIN_KEY_BYTES} or more; "
            "make one with: bioclin deid-key FILE"
        )
    return key


def make_key() -> str:
    """Make a new random key, 256 bits in base64."""
    return base64.b64encode(os.urandom(32)).decode("ascii")
