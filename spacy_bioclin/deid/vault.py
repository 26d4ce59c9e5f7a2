"""The way back from a safe note to the original, encrypted and apart from it."""

import hashlib
import json

from .operators import N_NONCE, seal, unseal
from .result import DeidResult
from .rewrite import rewrite
from .secret import Secret


def seal_originals(result: DeidResult, original: str, key: bytes) -> str:
    """Encrypt what de-identification took out of a note (AES-256-GCM).

    result (DeidResult): Of the note.
    original (str): The note's text.
    key (bytes): The secret key.
    RETURNS (str): One line of base64. It opens with this key and this safe text alone.
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
    """Put back what was taken out of a note.

    safe (str): The safe text, as it was written.
    sealed (str): From `seal_originals`.
    RETURNS (str): The original text.
    RAISES (BioclinError): Another key, another text, or a line that was changed.
    """
    taken = json.loads(unseal(sealed, key, _digest(safe)))
    return rewrite(safe, [(start, end, text) for start, end, text in taken])[0]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
