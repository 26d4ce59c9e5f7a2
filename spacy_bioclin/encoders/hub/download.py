"""Download a pretrained encoder from the Hugging Face hub or from an archive.

Besides `spacy project assets`, this is the only code of the package that uses a network. Files are
checked in a hidden folder, and moved to their names once all are there, config.json last.
"""

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from ...catalog.encoders import Encoder
from ...errors import BioclinError, first_line
from ...files import CHUNK_BYTES, hash_file
from ...interrupts import tell
from ...outputs import (
    grow_folder,
    make_private_folder,
    remove,
    replace,
    temporary_folder,
    write_atomic,
)
from ...runs import read_object
from ...types import Progress
from .archive import DAMAGED_ARCHIVE, unpack
from .transfer import download, explain, hide_query, read_short

# File that is written next to the weights: their source and the hash of each file.
MANIFEST = "fetched.json"
PARTS = ".download"  # folder in the folder, for what is not complete
ARCHIVE = "archive.part"
CONFIG = "config.json"
NEEDED = re.compile(
    r"(config|tokenizer[\w.-]*|special_tokens_map|added_tokens|vocab)\.json|(vocab|merges)\.txt"
    r"|[\w-][\w.-]*\.(model|spm)|README\.md|LICEN[CS]E[\w.-]*",
    re.IGNORECASE | re.ASCII,
)
# Formats of weights, in order of preference; only one is downloaded.
WEIGHTS = tuple(
    re.compile(rf"{stem}(-\d+-of-\d+)?\.{ending}(\.index\.json)?", re.ASCII)
    for stem, ending in (("model", "safetensors"), ("pytorch_model", "bin"))
)
COMMIT = re.compile("[0-9a-f]{40}")
SHA256 = re.compile("[0-9a-f]{64}")
MAX_LISTING = 2**24  # bytes of the hub's description of a repository


def fetch_encoder(
    name: str,
    encoder: Encoder,
    out: Path,
    *,
    revision: str | None = None,
    accept_licence: bool = False,
    endpoint: str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Download the files of an encoder that are needed, and write their hashes to fetched.json.

    In a folder that was downloaded before, files are compared with their hashes, and only damaged
    ones are downloaded again.

    name (str): Name in the catalogue.
    out (Path): Folder: new, empty, or with an earlier download.
    revision (str | None): Commit, branch or tag of the hub; None for the catalogue's.
    accept_licence (bool): Whether the user accepts a licence that forbids commercial use.
    endpoint (str | None): Address of the hub; None for the default ($HF_ENDPOINT).
    progress (Progress | None): Called with the share of an archive that is downloaded, from 0 to 1,
        and the number of megabytes.
    RETURNS (dict): The content of fetched.json.
    RAISES (BioclinError): There is no source, the licence is not accepted, the hub cannot be
        reached, or files are damaged.
    """
    _check_source(name, encoder, accept_licence)
    with grow_folder(out):
        return _fetch(name, encoder, out, revision, endpoint, progress or (lambda *_: None))


def _fetch(
    name: str,
    encoder: Encoder,
    out: Path,
    revision: str | None,
    endpoint: str | None,
    progress: Progress,
) -> dict[str, Any]:
    """Download into a folder that no other process uses; see `fetch_encoder`."""
    before = read_manifest(out)
    if before.get("complete"):
        _check_same(before, name, revision, out)
        damaged = find_damaged(out)
        if not damaged:
            return before
        for file in damaged:
            remove(out / file)
        revision = before["revision"]
    elif not before and any(path.name != ".lock" for path in out.iterdir()):
        raise BioclinError(f"{out} holds other files: give an empty or new folder with -o")
    begun = {"name": name, "source": encoder.source, "licence": encoder.licence, "complete": False}
    _write_manifest(out, begun)
    tell(lambda: f"what was downloaded to {out} is kept; run the same command again")
    if encoder.hub:
        wanted = revision or encoder.revision or "main"
        commit, hashes = _from_hub(name, encoder, out, wanted, endpoint, progress)
    else:
        commit, hashes = None, _from_archive(encoder.source, out, progress)
    added = _add_missing(encoder, out, hashes)
    files = {
        file: {"bytes": (out / file).stat().st_size, "sha256": hashes[file]}
        for file in sorted(hashes)
    }
    manifest = {**begun, "complete": True, "revision": commit, "added": added, "files": files}
    _write_manifest(out, manifest)
    return manifest


def _check_source(name: str, encoder: Encoder, accept_licence: bool) -> None:
    if encoder.folder:
        raise BioclinError(f"{name} ships with the repository: use {encoder.folder}")
    if not encoder.source:
        raise BioclinError(f"{name} cannot be fetched: {encoder.notes or encoder.unfit}")
    if encoder.non_commercial and not accept_licence:
        raise BioclinError(
            f"{name}: {encoder.licence_warning}. If that suits you, give --accept-license"
        )


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read fetched.json; {} if there is none.

    RAISES (BioclinError): It is damaged, or names files that are not in the folder itself.
    """
    path = folder / MANIFEST
    if not path.is_file():
        return {}
    content = read_object(path)
    files = content.get("files", {})
    if (
        not isinstance(content.get("name"), str)
        or not isinstance(content.get("revision"), str | None)
        or not isinstance(files, dict)
        or not all(_is_needed(name) and _is_known(file) for name, file in files.items())
        or (content.get("complete") and not files)
    ):
        raise BioclinError(
            f"{path}: is damaged, or not what `bioclin fetch` writes; delete the folder and start "
            "again"
        )
    return content


def _is_needed(name: str) -> bool:
    return any(form.fullmatch(name) for form in (NEEDED, *WEIGHTS))


def _is_known(file: Any) -> bool:
    return isinstance(file, dict) and bool(SHA256.fullmatch(str(file.get("sha256"))))


def _write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    write_atomic(folder / MANIFEST, json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")


def _check_same(before: dict[str, Any], name: str, revision: str | None, out: Path) -> None:
    if before["name"] != name:
        raise BioclinError(f"{out} holds {before['name']}, not {name}: give another folder with -o")
    if revision and revision != before["revision"]:
        raise BioclinError(
            f"{out} holds revision {before['revision']}, not {revision}: give another with -o"
        )


def find_damaged(folder: Path) -> list[str]:
    """List the files that are missing or have another hash than in fetched.json."""
    return [
        file
        for file, known in read_manifest(folder).get("files", {}).items()
        if (folder / file).is_symlink()
        or not (folder / file).is_file()
        or hash_file(folder / file) != known["sha256"]
    ]


def needed_files(names: Collection[str], where: str) -> list[str]:
    """Choose configuration, tokenizer, licence, and one format of the weights.

    names (Collection[str]): Files of a folder; those in subfolders are ignored.
    RAISES (BioclinError): There are no weights that torch can read.
    """
    here = sorted(name for name in names if "/" not in name)
    weights = ([name for name in here if form.fullmatch(name)] for form in WEIGHTS)
    chosen = next((files for files in weights if files), None)
    if chosen is None:
        raise BioclinError(
            f"{where} holds no weights that torch reads: {', '.join(here) or 'none'}"
        )
    return [name for name in here if NEEDED.fullmatch(name)] + chosen


def _add_missing(encoder: Encoder, out: Path, hashes: dict[str, str]) -> list[str]:
    """Write what the source lacks and the catalogue knows.

    This is that the tokenizer keeps case (transformers lower-cases if there is only a vocabulary),
    and the licence, which `bioclin package` reads.

    RETURNS (list[str]): The files that were written.
    """
    missing = {}
    if encoder.tokenizer == "wordpiece" and encoder.cased:
        missing["tokenizer_config.json"] = '{"do_lower_case": false}\n'
    if encoder.licence:
        card = f"---\nlicense: {encoder.licence}\n---\nFrom {encoder.source}. {encoder.paper}\n"
        missing["README.md"] = card
    added = [name for name in missing if name not in hashes]
    for name in added:
        write_atomic(out / name, missing[name])
        hashes[name] = hash_file(out / name)
    return added


def _from_hub(
    name: str,
    encoder: Encoder,
    out: Path,
    revision: str,
    endpoint: str | None,
    progress: Progress,
) -> tuple[str, dict[str, str]]:
    """Download from the hub. RETURNS (tuple): Commit, and file → SHA-256."""
    from huggingface_hub import constants
    from huggingface_hub.utils import hf_raise_for_status
    from requests import RequestException

    hub, address = str(encoder.hub), (endpoint or constants.ENDPOINT).rstrip("/")
    headers = _make_headers(address)
    parts = out / PARTS
    make_private_folder(parts)
    try:
        url = f"{address}/api/models/{hub}/revision/{quote(revision, safe='')}?blobs=true"
        answer, content = read_short(url, headers, limit=MAX_LISTING)
        hf_raise_for_status(answer)
        commit, known = _read_listing(content, hub, revision)
        files = needed_files(known, f"{hub} on the hub")
        for file in files:
            if not _matches(out / file, known[file]):
                url = f"{address}/{hub}/resolve/{commit}/{quote(file)}"
                _get_file(url, parts / file, headers, known[file], progress)
    except (RequestException, OSError, ValueError) as error:
        # The library's errors are errors of the system too: one of the disk has a number.
        if isinstance(error, BioclinError) or (
            isinstance(error, OSError) and not isinstance(error, RequestException) and error.errno
        ):
            raise
        raise BioclinError(explain(name, hub, revision, error)) from None
    _land(parts, out, files)
    remove(parts)
    return commit, {file: hash_file(out / file) for file in files}


def _make_headers(address: str) -> dict[str, str]:
    """Make the headers for the hub, with the user's token where nobody else can read it."""
    from huggingface_hub.utils import build_hf_headers

    parts = urlsplit(address)
    is_private = parts.scheme == "https" or parts.hostname in ("localhost", "127.0.0.1", "::1")
    headers: dict[str, str] = build_hf_headers(token=None if is_private else False)
    return headers


def _read_listing(content: bytes, hub: str, revision: str) -> tuple[str, dict[str, dict[str, Any]]]:
    """Read the hub's description of a repository. RETURNS (tuple): Commit, and file → its facts."""
    wrong = BioclinError(f"the hub describes {hub} in a form that is not known: try it later")
    try:
        listing = json.loads(content)
        commit = str(listing["sha"])
        known = {str(file["rfilename"]): file for file in listing["siblings"]}
    except (ValueError, KeyError, TypeError, RecursionError):
        raise wrong from None
    sizes = [file.get("size") for file in known.values()]
    if not COMMIT.fullmatch(commit) or not all(isinstance(size, int | None) for size in sizes):
        raise wrong
    if COMMIT.fullmatch(revision) and commit != revision:
        raise BioclinError(f"the hub answers with commit {commit} of {hub}, not {revision}")
    return commit, known


def _get_file(
    url: str, path: Path, headers: Mapping[str, str], facts: dict[str, Any], progress: Progress
) -> None:
    """Download a file of the hub, and compare it with what the hub says of it."""
    from huggingface_hub.utils import hf_raise_for_status

    if _matches(path, facts):
        return
    begun = path.with_name(f"{path.name}.part")
    download(
        url,
        begun,
        headers,
        size=facts.get("size"),
        chunk=CHUNK_BYTES,
        check=hf_raise_for_status,
        progress=progress,
    )
    if not _matches(begun, facts, unknown=True):
        begun.unlink()
        raise BioclinError(
            f"{path.parent.parent / path.name} is damaged (its hash is not the hub's): run it again"
        )
    begun.replace(path)


def _matches(path: Path, facts: dict[str, Any], *, unknown: bool = False) -> bool:
    """Check whether a file has the hash that the hub states.

    unknown (bool): What to say if it states none.
    """
    if path.is_symlink() or not path.is_file():
        return False
    lfs = facts.get("lfs")
    if isinstance(lfs, dict) and "sha256" in lfs:
        return hash_file(path) == lfs["sha256"]
    if COMMIT.fullmatch(str(facts.get("blobId"))):
        content = path.read_bytes()
        header = f"blob {len(content)}\0".encode()
        digest = hashlib.sha1(header + content, usedforsecurity=False)
        return digest.hexdigest() == facts["blobId"]
    return unknown


def _land(parts: Path, out: Path, files: Collection[str]) -> None:
    """Move complete files to their names; the folder is an encoder once the last is there."""
    for file in sorted(files, key=lambda file: file == CONFIG):
        if (parts / file).is_file():
            replace(parts / file, out / file)


def _from_archive(url: str, out: Path, progress: Progress) -> dict[str, str]:
    """Download an archive and unpack it. RETURNS (dict): File → SHA-256."""
    from requests import RequestException

    archive = out / ARCHIVE
    try:
        download(
            url,
            archive,
            {},
            size=None,
            chunk=CHUNK_BYTES,
            check=lambda answer: _check_status(answer, url),
            progress=progress,
        )
    except RequestException as error:
        raise BioclinError(
            f"{hide_query(url)} cannot be reached ({type(error).__name__}): run it again to "
            "resume, or download and unpack it on a machine with a network, and give that folder "
            "as the encoder"
        ) from None
    try:
        with temporary_folder(out / "unpacked") as parts:
            files = unpack(archive, parts, url, needed_files)
            _land(parts, out, files)
    except DAMAGED_ARCHIVE as error:
        archive.unlink()
        raise BioclinError(f"{url} arrived damaged ({first_line(error)}): run it again") from None
    archive.unlink()
    return {file: hash_file(out / file) for file in files}


def _check_status(answer: Any, url: str) -> None:
    if answer.status_code >= 400:
        raise BioclinError(
            f"{hide_query(url)}: the server answers {answer.status_code} {answer.reason}"
        )
