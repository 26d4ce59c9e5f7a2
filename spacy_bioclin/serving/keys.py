"""API keys: who may send notes."""

import hmac
import os
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path

from ..errors import BioclinError
from ..files import check_regular

VARIABLE = "BIOCLIN_SERVE_KEYS"
MIN_CHARS = 16


class Keys:
    """The keys of the service, of which only hashes are kept.

    keys (Iterable[str]): The keys; without one, nobody needs a key.
    """

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._hashes = [_hash(key.encode()) for key in keys]

    def __bool__(self) -> bool:
        return bool(self._hashes)

    def accept(self, headers: Mapping[bytes, bytes]) -> bool:
        """Check the key of a request: `Authorization: Bearer KEY` or `X-API-Key: KEY`.

        headers (Mapping[bytes, bytes]): Names in small letters.
        """
        if not self._hashes:
            return True
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer":
            given = headers.get(b"x-api-key", b"")
        found = _hash(given.strip())
        # Every key is compared, so that the time does not depend on which one is right.
        return any([hmac.compare_digest(found, known) for known in self._hashes])


def read_keys(path: Path | None = None) -> Keys:
    """Read the keys of a file, one a line, or else those of the environment, between blanks.

    path (Path | None): The file. Empty lines and those that begin with # do not count.
    RETURNS (Keys): None are in it if no file is given and the variable is not set.
    RAISES (BioclinError): The file cannot be read or has no key, or a key is not as it should be.
    """
    if path is None:
        where, keys = VARIABLE, os.environ.get(VARIABLE, "").split()
    else:
        where, keys = f"--keys {path}", _read(path)
        if not keys:
            raise BioclinError(f"{where}: has no key; write one on a line of its own")
    for number, key in enumerate(keys, start=1):
        if len(key) < MIN_CHARS or not key.isascii() or not key.isprintable() or " " in key:
            raise BioclinError(
                f"{where}: key {number} is not one word of {MIN_CHARS} or more ASCII characters; "
                'make one with python -c "import secrets; print(secrets.token_urlsafe(32))"'
            )
    return Keys(keys)


def _read(path: Path) -> list[str]:
    try:
        if path.exists():
            check_regular(path)
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise BioclinError(f"--keys {path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise BioclinError(f"--keys {path}: not UTF-8; write one key a line") from None
    return [key for line in lines if (key := line.strip()) and not key.startswith("#")]


def _hash(key: bytes) -> bytes:
    return sha256(key).digest()
