"""Download a pretrained encoder from the Hugging Face hub or from an archive.

Besides `spacy project assets`, this is the only code of the package that uses a network.
"""

import json
import re
import shutil
import tarfile
import zlib
from collections.abc import Collection
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from ...catalog.encoders import Encoder
from ...errors import BioclinError, first_line
from ...files import CHUNK_BYTES, hash_file, write_atomic
from ...types import Progress

# File that is written next to the weights: their source and the hash of each file.
MANIFEST = "fetched.json"
NEEDED = re.compile(
    r"(config|tokenizer.*|special_tokens_map|added_tokens|vocab)\.json|(vocab|merges)\.txt"
    r"|.*\.(model|spm)|README\.md|LICEN[CS]E.*",
    re.IGNORECASE,
)
# Formats of weights, in order of preference; only one is downloaded.
WEIGHTS = tuple(
    re.compile(rf"{stem}(-\d+-of-\d+)?\.{ending}(\.index\.json)?")
    for stem, ending in (("model", "safetensors"), ("pytorch_model", "bin"))
)
TIMEOUT = 30  # seconds without an answer
DAMAGED_ARCHIVE = (tarfile.TarError, EOFError, zlib.error)


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
    before = read_manifest(out)
    if before.get("complete"):
        _check_same(before, name, revision, out)
        damaged = find_damaged(out)
        if not damaged:
            return before
        for file in damaged:
            (out / file).unlink(missing_ok=True)
        revision = before["revision"]
    elif not before and out.is_dir() and any(out.iterdir()):
        raise BioclinError(f"{out} holds other files: give an empty or new folder with -o")
    out.mkdir(parents=True, exist_ok=True)
    begun = {"name": name, "source": encoder.source, "licence": encoder.licence, "complete": False}
    _write_manifest(out, begun)
    if encoder.hub:
        wanted = revision or encoder.revision or "main"
        commit, hashes = _from_hub(name, encoder, out, wanted, endpoint)
    else:
        commit, hashes = None, _from_archive(encoder.source, out, progress or (lambda *_: None))
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
    """Read fetched.json; {} if there is none."""
    path = folder / MANIFEST
    if not path.is_file():
        return {}
    try:
        content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise BioclinError(
            f"{path} is not JSON ({error}): delete the folder and start again"
        ) from None
    return content


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
        if not (folder / file).is_file() or hash_file(folder / file) != known["sha256"]
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
        (out / name).write_text(missing[name], "utf-8")
        hashes[name] = hash_file(out / name)
    return added


def _from_hub(
    name: str, encoder: Encoder, out: Path, revision: str, endpoint: str | None
) -> tuple[str, dict[str, str]]:
    """Download from the hub. RETURNS (tuple): Commit, and file → SHA-256."""
    from huggingface_hub import HfApi, hf_hub_download
    from requests import RequestException

    hub = str(encoder.hub)
    try:
        info = HfApi(endpoint=endpoint).model_info(
            hub, revision=revision, files_metadata=True, timeout=TIMEOUT
        )
        known = {file.rfilename: file for file in info.siblings or []}
        files = needed_files(known, f"{hub} on the hub")
        for file in files:
            hf_hub_download(hub, file, revision=info.sha, local_dir=out, endpoint=endpoint)
    except (RequestException, OSError, ValueError) as error:
        if isinstance(error, BioclinError):
            raise
        raise BioclinError(_explain(name, hub, revision, error)) from error
    shutil.rmtree(out / ".cache", ignore_errors=True)  # what hf_hub_download needs to resume
    hashes = {file: hash_file(out / file) for file in files}
    for file, found in hashes.items():
        expected = known[file].lfs
        if expected and expected["sha256"] != found:
            (out / file).unlink()
            raise BioclinError(f"{out / file} is damaged (its hash is not the hub's): run it again")
    return str(info.sha), hashes


def _explain(name: str, hub: str, revision: str, error: Exception) -> str:
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
        f"the hub cannot be reached ({first_line(error)}). Check the network, or set HF_ENDPOINT "
        f"to a mirror; or run `bioclin fetch {name} -o FOLDER` on a machine with a network and "
        "copy FOLDER here"
    )


def _from_archive(url: str, out: Path, progress: Progress) -> dict[str, str]:
    """Download an archive and unpack it. RETURNS (dict): File → SHA-256."""
    archive = out / "archive.part"
    _download(url, archive, progress)
    try:
        files = _unpack(archive, out, url)
    except DAMAGED_ARCHIVE as error:
        archive.unlink()
        raise BioclinError(f"{url} arrived damaged ({error}): run it again") from error
    archive.unlink()
    return {file: hash_file(out / file) for file in files}


def _download(url: str, path: Path, progress: Progress) -> None:
    """Download a file, and resume an earlier attempt if the server supports that."""
    start = path.stat().st_size if path.is_file() else 0
    request = Request(url, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        with urlopen(request, timeout=TIMEOUT) as answer:
            start = start if answer.status == 206 else 0
            total = start + int(answer.headers.get("Content-Length") or 0)
            with path.open("ab" if start else "wb") as file:
                while chunk := answer.read(CHUNK_BYTES):
                    file.write(chunk)
                    progress(file.tell() / max(total, file.tell()), file.tell() // 10**6)
    except HTTPError as error:
        if error.code == 416:  # nothing is left to send
            return
        raise BioclinError(f"{url}: the server answers {error.code} {error.reason}") from error
    except (URLError, OSError) as error:
        raise BioclinError(
            f"{url} cannot be reached or broke off ({error}): run it again to resume, or download "
            f"and unpack it on a machine with a network, and give that folder as the encoder"
        ) from error
    if path.stat().st_size < total:
        raise BioclinError(
            f"{url} broke off at {path.stat().st_size:,} bytes: run it again to resume"
        )


def _unpack(archive: Path, out: Path, url: str) -> list[str]:
    """Unpack the needed files from the folder that has config.json."""
    with tarfile.open(archive, "r:gz") as tar:
        members = {PurePosixPath(member.name): member for member in tar if member.isfile()}
        for path in members:
            if path.is_absolute() or ".." in path.parts:
                raise BioclinError(
                    f"{url} holds {path}, outside of any folder: nothing is unpacked"
                )
        homes = [path.parent for path in members if path.name == "config.json"]
        if not homes:
            raise BioclinError(f"{url} holds no config.json: not from the transformers library")
        home = min(homes, key=lambda path: len(path.parts))
        names = {path.name: path for path in members if path.parent == home}
        files = needed_files(names, url)
        for name in files:
            content = tar.extractfile(members[names[name]])
            assert content is not None  # a file
            with content, (out / name).open("wb") as file:
                shutil.copyfileobj(content, file)
    return files
