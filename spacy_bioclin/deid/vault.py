"""Encrypt the originals for authorised re-identification, and restore them."""

import hashlib
import json

from ..rewrite import rewrite
from .operators import N_NONCE, seal, unseal
from .result import DeidResult
from .secret import Secret


def seal_originals(result: DeidResult, original: str, key: bytes) -> str:
    """Encrypt the strings that de-identification took out of a note (AES-256-GCM).

    result (DeidResult): The result for the note.
    original (str): The note's text.
    key (bytes): The secret key.
    RETURNS (str): One line of base64, which can be opened only with this key and this safe text.
    """
    taken = [
        [edit.safe_start, edit.safe_end, original[edit.start : edit.end]]
        for edit in result.offsets.edits
    ]
    plain = json.dumps(taken, ensure_ascii=False)
    digest = _digest(result.text)
    nonce = Secret(key, "").derive("vault", f"{digest}\0{plain}")[:N_NONCE]
    return seal(plain, key, nonce, digest)


def restore(safe: str, sealed: str, key: bytes) -> str:
    """Restore the original text of a note.

    safe (str): The safe text, unchanged.
    sealed (str): From `seal_originals`.
    RETURNS (str): The original text.
    RAISES (BioclinError): Another key, another text, or a line that was changed.
    """
    taken = json.loads(unseal(sealed, key, _digest(safe)))
    return rewrite(safe, [(start, end, text) for start, end, text in taken])[0]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
