"""Read from servers that may lie: about length, content, and where a file is.

Addresses are followed only from http to http or https and from https to https. A login is sent to
the host that it is for, never to one that it redirects to. Nothing is decompressed on the way, and
no more is read than is wanted.
"""

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from ...errors import BioclinError, first_line
from ...outputs import naming
from ...types import Progress

TIMEOUT = 30  # seconds without an answer
MAX_REDIRECTS = 10
MAX_BYTES = 2**36  # of a file whose size nobody states
# A server that sends less than this is as good as dead.
SLOWEST, PATIENCE = 100, 60  # bytes per second, seconds before that is measured
REDIRECTS = (301, 302, 303, 307, 308)


class BrokenOff(BioclinError):
    """A download ended early; it can be resumed."""


@contextmanager
def open_url(url: str, headers: Mapping[str, str]) -> Iterator[Any]:
    """Request a file.

    headers (Mapping[str, str]): An `authorization` among them is for the host of `url` alone.
    YIELDS (requests.Response): The answer, of any status but a redirection; not read yet.
    RAISES (BioclinError): It redirects to an address that is not followed, or too often.
    """
    from huggingface_hub.utils import get_session

    headers = {**headers, "Accept-Encoding": "identity"}
    for _ in range(MAX_REDIRECTS + 1):
        answer = get_session().get(
            url, headers=headers, stream=True, timeout=TIMEOUT, allow_redirects=False
        )
        with answer:
            if answer.status_code not in REDIRECTS:
                yield answer
                return
            target = urljoin(url, answer.headers.get("Location", ""))
        before, after = urlsplit(url), urlsplit(target)
        wanted = ("https",) if before.scheme == "https" else ("http", "https")
        if after.scheme not in wanted or not after.hostname:
            raise BioclinError(
                f"{hide_query(url)} redirects to {after.scheme or 'no'}://{after.hostname or ''}, "
                "which is not followed: only https is; use another network or mirror"
            )
        if (before.scheme, before.netloc) != (after.scheme, after.netloc):
            headers = {k: v for k, v in headers.items() if k.lower() != "authorization"}
        url = target
    raise BioclinError(f"{hide_query(url)} redirects more than {MAX_REDIRECTS} times")


def read_short(url: str, headers: Mapping[str, str], *, limit: int) -> tuple[Any, bytes]:
    """Read a short answer.

    limit (int): Bytes; a longer answer is an error.
    RETURNS (tuple): The answer, whose content is not to be read again, and its content.
    RAISES (BioclinError): It is longer, too slow, or redirects to where it is not followed.
    """
    with open_url(url, headers) as answer:
        content = b"".join(_read_parts(answer, url, limit, 2**16))
        answer._content = content  # for `raise_for_status` of the hub's library
        return answer, content


def download(
    url: str,
    path: Path,
    headers: Mapping[str, str],
    *,
    size: int | None,
    chunk: int,
    check: Any,
    progress: Progress,
) -> None:
    """Download a file, and resume an earlier attempt if the server supports that.

    path (Path): Where to; what was begun there is continued. It is not a link.
    size (int | None): Bytes that the file has; None if only the server can tell.
    chunk (int): Bytes to read at once.
    check (Callable): Raises an error if the answer is one. Called with the answer.
    progress (Progress): Called with the share that is done, and megabytes.
    RAISES (BrokenOff): The connection ended early, or is too slow.
    RAISES (BioclinError): More is sent than the file has, or see `open_url`.
    """
    with naming(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    with os.fdopen(descriptor, "r+b") as file:
        start = file.seek(0, os.SEEK_END)
        if size is not None and start >= size:
            start = file.truncate(0)
        ranges = {"Range": f"bytes={start}-"} if start else {}
        with open_url(url, {**headers, **ranges}) as answer:
            if answer.status_code == 416 and size is None:  # nothing is left to send
                return
            check(answer)
            resumes = answer.headers.get("Content-Range", f"bytes {start}-")
            if answer.status_code != 206 or not resumes.startswith(f"bytes {start}-"):
                start = 0
            file.seek(start)
            file.truncate()
            stated = answer.headers.get("Content-Length", "")
            total = start + int(stated) if stated.isdigit() else None
            if size is not None and total not in (None, size):
                raise BioclinError(
                    f"{hide_query(url)}: has {total:,} bytes, and should have {size:,}; run it "
                    "again, or use another mirror"
                )
            limit = size if size is not None else total if total is not None else MAX_BYTES
            for part in _read_parts(answer, url, limit - start, chunk):
                with naming(path):
                    file.write(part)
                    file.flush()
                progress(file.tell() / max(total or limit, file.tell()), file.tell() // 10**6)
        end = size if size is not None else total
        if end is not None and file.tell() < end:
            raise BrokenOff(
                f"{hide_query(url)} broke off at {file.tell():,} bytes: run it again to resume"
            )


def _read_parts(answer: Any, url: str, limit: int, chunk: int) -> Iterator[bytes]:
    """Read the body of an answer as it is sent, up to a limit."""
    from requests import RequestException
    from urllib3.exceptions import HTTPError

    read = getattr(answer.raw, "read1", answer.raw.read)
    started, n_read = time.monotonic(), 0
    try:
        while part := read(chunk, decode_content=False):
            n_read += len(part)
            if n_read > limit:
                raise BioclinError(
                    f"{hide_query(url)}: sends more than {limit:,} bytes; run it again, or use "
                    "another mirror"
                )
            yield part
            seconds = time.monotonic() - started
            if seconds > PATIENCE and n_read < SLOWEST * seconds:
                raise BrokenOff(f"{hide_query(url)}: is too slow: run it again to resume")
    except (HTTPError, RequestException, ConnectionError, TimeoutError) as error:
        raise BrokenOff(
            f"{hide_query(url)} broke off ({type(error).__name__}): run it again to resume, or "
            "download it on a machine with a network"
        ) from None


def hide_secrets(message: str) -> str:
    """Leave out the queries of addresses in a message, which may be signatures."""
    return re.sub(r"\?[^\s)]*", "", message)


def hide_query(url: str) -> str:
    """Leave out what may be a secret of an address: a login, a signature."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"


def explain(name: str, hub: str, revision: str, error: Exception) -> str:
    """Say what an error of the hub means for a user.

    name (str): Name in the catalogue.
    hub (str): Id on the hub.
    revision (str): Commit, branch or tag.
    error (Exception): An error of the hub's library.
    """
    from huggingface_hub.errors import (
        GatedRepoError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    if isinstance(error, GatedRepoError):
        return (
            f"{hub} requires a login: accept its conditions at https://huggingface.co/{hub}, "
            "then `huggingface-cli login`, and run it again"
        )
    if isinstance(error, RevisionNotFoundError):
        return f"{hub} has no revision {revision} (any more): give --revision main"
    if isinstance(error, RepositoryNotFoundError):
        return f"the hub has no {hub} (any more), or it is private: {name} may have a new name"
    if isinstance(error, OfflineModeIsEnabled):
        return "HF_HUB_OFFLINE is set: unset it on a machine with a network"
    return (
        f"the hub cannot be reached ({hide_secrets(first_line(error))}). Check the network, or set "
        f"HF_ENDPOINT to a mirror; or run `bioclin fetch {name} -o FOLDER` on a machine with a "
        "network and copy FOLDER here"
    )
