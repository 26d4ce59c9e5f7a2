"""The secret key, and everything that is derived from it.

A surrogate, a hash and a date shift depend on the key, the patient and the value alone: another run
on another machine gives the same, and there is no table to guard. Derivation is HMAC-SHA256
(RFC 2104); what is meant for one purpose says nothing about another, for the purpose is hashed too.
"""

import base64
import hashlib
import hmac
import os
from pathlib import Path
from typing import NamedTuple

from ..errors import BioclinError

KEY_VARIABLE = "BIOCLIN_DEID_KEY"
MIN_KEY_BYTES = 16


class Secret(NamedTuple):
    """What the surrogates of one patient are derived from.

    key (bytes): The project's secret key.
    patient_id (str): Never shown; notes of one patient have one id.
    """

    key: bytes
    patient_id: str

    def derive(self, purpose: str, value: str) -> bytes:
        """RETURNS (bytes): 32 bytes that look random without the key."""
        parts = [part.encode("utf-8") for part in (self.patient_id, purpose, value)]
        message = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
        return hmac.new(self.key, message, hashlib.sha256).digest()

    def number(self, purpose: str, value: str, n: int) -> int:
        """RETURNS (int): From 0 to n - 1; uniform but for 2**-64 or so."""
        return int.from_bytes(self.derive(purpose, value)[:16], "big") % n


def read_key(path: Path | None = None) -> bytes | None:
    """Read the secret key: a file's content, or the environment's BIOCLIN_DEID_KEY.

    path (Path | None): File that holds nothing but the key; blanks around it do not count.
    RETURNS (bytes | None): The key; None if no file is given and the variable is not set.
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
    """RETURNS (str): A new random key, 256 bits in base64."""
    return base64.b64encode(os.urandom(32)).decode("ascii")
