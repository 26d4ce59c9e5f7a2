"""`bioclin fetch` from a hub and an archive server that run in this process."""

import hashlib
import io
import json
import socket
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import huggingface_hub
import pytest
from typer.testing import CliRunner

from spacy_bioclin.catalog.checkpoints import load_checkpoints
from spacy_bioclin.catalog.encoders import load_encoders
from spacy_bioclin.cli import app
from spacy_bioclin.cli.package.package import read_license
from spacy_bioclin.encoders.hub import download
from spacy_bioclin.encoders.hub.download import MANIFEST, fetch_encoder, find_damaged, needed_files
from spacy_bioclin.errors import BioclinError
from tests.ner.hf.test_component import make_checkpoint

COMMIT = "0123456789abcdef0123456789abcdef01234567"
HUB = "bsc/tiny"


class Server:
    """A hub with one repository, and files at /archive/NAME."""

    def __init__(self):
        self.files, self.archives, self.asked = {}, {}, []
        self.error = None  # (status, X-Error-Code) of every answer
        self.break_off = None  # bytes after which an archive's answer ends
        self.false_hashes = False
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self):
                server.answer(self, body=False)

            def do_GET(self):
                server.answer(self, body=True)

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, request, body):
        path = request.path.partition("?")[0]
        self.asked.append((request.command, path))
        if self.error:
            status, code = self.error
            return self.send(request, b"{}", body, status, {"X-Error-Code": code})
        if path.startswith("/api/models/"):
            revision = path.rpartition("/")[2]
            if revision not in (COMMIT, "main"):
                headers = {"X-Error-Code": "RevisionNotFound"}
                return self.send(request, b"{}", body, 404, headers)
            return self.send(request, json.dumps(self.describe()).encode(), body)
        if path.startswith("/archive/"):
            return self.send_archive(request, self.archives[path.rpartition("/")[2]])
        content = self.files[path.partition(f"/resolve/{COMMIT}/")[2]]
        headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{hashlib.sha256(content).hexdigest()}"'}
        return self.send(request, content, body, 200, headers)

    def describe(self):
        def hash_of(content):
            return hashlib.sha256(b"else" if self.false_hashes else content).hexdigest()

        return {
            "id": HUB,
            "sha": COMMIT,
            "siblings": [
                {
                    "rfilename": name,
                    "size": len(content),
                    **(
                        {"lfs": {"sha256": hash_of(content), "size": 1, "pointerSize": 1}}
                        if name.endswith((".safetensors", ".bin"))
                        else {}
                    ),
                }
                for name, content in self.files.items()
            ],
        }

    def send(self, request, content, body, status=200, headers=None):
        request.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": len(content)}.items():
            request.send_header(name, str(value))
        request.end_headers()
        if body:
            request.wfile.write(content)

    def send_archive(self, request, content):
        start = int(request.headers.get("Range", "bytes=0-")[len("bytes=") : -1])
        self.asked[-1] = (*self.asked[-1], start)
        if start >= len(content):
            return self.send(request, b"", True, 416)
        rest = content[start:]
        request.send_response(206 if start else 200)
        request.send_header("Content-Length", str(len(rest)))
        request.end_headers()
        request.wfile.write(rest[: self.break_off])
        return None


@pytest.fixture
def server(monkeypatch, tiny_encoder):
    reset = huggingface_hub.utils.reset_sessions
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    reset()
    running = Server()
    running.files = {path.name: path.read_bytes() for path in tiny_encoder.iterdir()}
    yield running
    running.http.shutdown()
    running.http.server_close()
    monkeypatch.undo()
    reset()


@pytest.fixture
def on_hub():
    return load_encoders()["biobert-v1.1"].model_copy(update={"hub": HUB, "revision": COMMIT})


def downloads(server):
    return [path.rpartition("/")[2] for kind, path, *_ in server.asked if kind == "GET"]


def test_hub(server, on_hub, tmp_path):
    weights = server.files["model.safetensors"]
    server.files |= {"pytorch_model.bin": b"old", "tf_model.h5": b"", "onnx/model.onnx": b""}
    del server.files["tokenizer_config.json"]
    out = tmp_path / "encoder"
    manifest = fetch_encoder("biobert-v1.1", on_hub, out, endpoint=server.url)
    assert manifest == json.loads((out / MANIFEST).read_text("utf-8"))
    assert (manifest["revision"], manifest["source"]) == (COMMIT, HUB)
    assert manifest["files"]["model.safetensors"] == {
        "bytes": len(weights),
        "sha256": hashlib.sha256(weights).hexdigest(),
    }
    # One format of the weights, and a tokenizer_config.json, which the source lacks
    assert manifest["added"] == ["tokenizer_config.json", "README.md"]
    assert json.loads((out / "tokenizer_config.json").read_text()) == {"do_lower_case": False}
    assert read_license(out) == "Apache-2.0"
    names = {path.name for path in out.iterdir()}
    assert names == {*manifest["files"], MANIFEST}
    assert names >= {"config.json", "tokenizer.json", "model.safetensors"}
    assert not names & {"pytorch_model.bin", "tf_model.h5", "onnx", ".cache"}


def test_run_again_it_compares_hashes_and_fetches_what_is_damaged(server, on_hub, tmp_path):
    out = tmp_path / "encoder"
    before = fetch_encoder("biobert-v1.1", on_hub, out, endpoint=server.url)
    server.asked.clear()
    assert fetch_encoder("biobert-v1.1", on_hub, out, endpoint=server.url) == before
    assert server.asked == []  # no network
    (out / "config.json").write_text("{}")
    (out / "model.safetensors").unlink()
    assert find_damaged(out) == ["config.json", "model.safetensors"]
    done = CliRunner().invoke(app, ["encoders", "check", str(out)])
    assert (done.exit_code, "is not the file that was fetched" in done.output) == (1, True)
    assert fetch_encoder("biobert-v1.1", on_hub, out, endpoint=server.url) == before
    assert find_damaged(out) == []
    assert "model.safetensors" in downloads(server)
    with pytest.raises(BioclinError, match=f"holds revision {COMMIT}, not main"):
        fetch_encoder("biobert-v1.1", on_hub, out, endpoint=server.url, revision="main")
    with pytest.raises(BioclinError, match=r"holds biobert-v1\.1, not scibert"):
        fetch_encoder("scibert", on_hub, out, endpoint=server.url)


def test_weights_that_are_not_what_the_hub_says(server, on_hub, tmp_path):
    server.false_hashes = True
    with pytest.raises(BioclinError, match=r"model\.safetensors is damaged"):
        fetch_encoder("biobert-v1.1", on_hub, tmp_path / "new", endpoint=server.url)
    assert not (tmp_path / "new" / "model.safetensors").exists()
    server.false_hashes = False  # what was begun goes on
    fetch_encoder("biobert-v1.1", on_hub, tmp_path / "new", endpoint=server.url)


def test_answers_of_the_hub_that_are_errors(server, on_hub, tmp_path):
    for status, code, message in (
        (403, "GatedRepo", "requires a login: accept its conditions"),
        (404, "RepoNotFound", f"the hub has no {HUB}"),
        (500, "", "the hub cannot be reached"),
    ):
        server.error = (status, code)
        with pytest.raises(BioclinError, match=message):
            fetch_encoder("biobert-v1.1", on_hub, tmp_path / "new", endpoint=server.url)


def test_revisions_and_hubs_that_are_not_there(server, on_hub, tmp_path, monkeypatch):
    with pytest.raises(BioclinError, match=r"no revision v9 .*--revision main"):
        fetch_encoder("x", on_hub, tmp_path / "a", endpoint=server.url, revision="v9")
    with socket.socket() as closed:  # a port that is taken, and where nobody answers
        closed.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(BioclinError, match="bioclin fetch x -o FOLDER"):
            fetch_encoder("x", on_hub, tmp_path / "b", endpoint=nowhere)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    huggingface_hub.utils.reset_sessions()
    with pytest.raises(BioclinError, match="HF_HUB_OFFLINE is set"):
        fetch_encoder("x", on_hub, tmp_path / "c", endpoint=server.url)


def test_folders_of_others_and_sources_that_are_none(on_hub, tmp_path):
    (tmp_path / "mine.txt").write_text("")
    with pytest.raises(BioclinError, match="holds other files"):
        fetch_encoder("x", on_hub, tmp_path)
    encoders = load_encoders()
    with pytest.raises(BioclinError, match="ships with the repository"):
        fetch_encoder("bioclin-compact", encoders["bioclin-compact"], tmp_path / "new")
    with pytest.raises(BioclinError, match="mbert-galen cannot be fetched: Available only on"):
        fetch_encoder("mbert-galen", encoders["mbert-galen"], tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_needed_files():
    names = ["config.json", "a/config.json", "merges.txt", "spm.model", "rust_model.ot", "LICENSE"]
    shards = ["model-00001-of-00002.safetensors", "model.safetensors.index.json"]
    assert set(needed_files([*names, *shards, "pytorch_model.bin"], "x")) == {
        *("config.json", "merges.txt", "spm.model", "LICENSE"),
        *shards,
    }
    assert needed_files(["pytorch_model.bin", "training_args.bin"], "x") == ["pytorch_model.bin"]
    with pytest.raises(BioclinError, match=r"x holds no weights that torch reads: tf_model\.h5"):
        needed_files(["tf_model.h5"], "x")


# Archives


def pack(files, *, home="RoBERTa-base-PM/RoBERTa-base-PM-hf"):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"{home}/{name}" if home else name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


@pytest.fixture
def in_archive(server):
    server.archives["tiny.tar.gz"] = pack({**server.files, "train.log": b"", "x/config.json": b""})
    url = f"{server.url}/archive/tiny.tar.gz"
    return load_encoders()["bio-lm-base-pm"].model_copy(update={"archive": url})


def test_licences_against_commercial_use_must_be_accepted(server, in_archive, tmp_path):
    with pytest.raises(BioclinError, match=r"CC BY-NC 4\.0: no commercial use.*--accept-license"):
        fetch_encoder("bio-lm-base-pm", in_archive, tmp_path / "new")
    assert server.asked == []
    done = CliRunner().invoke(app, ["fetch", "bio-lm-base-pm", "-o", str(tmp_path / "new")])
    assert (done.exit_code, "--accept-license" in done.stderr) == (1, True)


def test_archive(server, in_archive, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "CHUNK_BYTES", 1000)
    shares = []
    manifest = fetch_encoder(
        "bio-lm-base-pm",
        in_archive,
        tmp_path / "new",
        accept_licence=True,
        progress=lambda share, _: shares.append(share),
    )
    assert manifest["files"].keys() == {*server.files, "README.md"}
    assert {path.name for path in (tmp_path / "new").iterdir()} == {*manifest["files"], MANIFEST}
    assert read_license(tmp_path / "new") == "CC BY-NC 4.0"
    assert len(shares) > 3 and shares == sorted(shares) and shares[-1] == 1
    for name, content in server.files.items():
        assert (tmp_path / "new" / name).read_bytes() == content


def test_an_archive_that_breaks_off_goes_on(server, in_archive, tmp_path):
    out = tmp_path / "new"
    server.break_off = 1234
    with pytest.raises(BioclinError, match="run it again"):
        fetch_encoder("bio-lm-base-pm", in_archive, out, accept_licence=True)
    begun = (out / "archive.part").stat().st_size
    assert begun == 1234
    server.break_off = None
    fetch_encoder("bio-lm-base-pm", in_archive, out, accept_licence=True)
    assert server.asked[-1][2] == begun
    assert (out / "config.json").read_bytes() == server.files["config.json"]


def test_archives_that_reach_outside_are_not_unpacked(server, in_archive, tmp_path):
    for evil in ("../../evil.txt", "/etc/evil.txt"):
        server.archives["tiny.tar.gz"] = pack({**server.files, evil: b"x"}, home="")
        with pytest.raises(BioclinError, match="outside of any folder: nothing is unpacked"):
            fetch_encoder("bio-lm-base-pm", in_archive, tmp_path / "new", accept_licence=True)
        assert not (tmp_path / "new" / "config.json").exists()
        assert not list(tmp_path.glob("**/evil.txt"))


def test_archives_that_hold_no_encoder(server, in_archive, tmp_path):
    for number, (content, message) in enumerate(
        (
            (b"no archive at all", "arrived damaged"),
            (pack({"weights.bin": b""}), "holds no config.json"),
            (pack({"config.json": b"{}"}), "holds no weights that torch reads"),
        )
    ):
        server.archives["tiny.tar.gz"] = content
        with pytest.raises(BioclinError, match=message):
            fetch_encoder("bio-lm-base-pm", in_archive, tmp_path / str(number), accept_licence=True)


def test_links_in_archives_are_left_out(server, in_archive, tmp_path):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, content in server.files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo("vocab.txt")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    server.archives["tiny.tar.gz"] = packed.getvalue()
    fetch_encoder("bio-lm-base-pm", in_archive, tmp_path / "new", accept_licence=True)
    assert not (tmp_path / "new" / "vocab.txt").exists()


def test_command(server, on_hub, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "spacy_bioclin.catalog.encoders.find_encoder", lambda _: ("biobert-v1.1", on_hub)
    )
    out = tmp_path / "new"
    real = fetch_encoder

    def with_endpoint(*args, **options):
        return real(*args, **options, endpoint=server.url)

    monkeypatch.setattr(download, "fetch_encoder", with_endpoint)
    done = CliRunner().invoke(app, ["fetch", "BioBERT", "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert COMMIT in done.stderr.replace("\n", "")
    assert "Encoder.v1 can read it" in done.stdout


def test_a_checkpoint_is_fetched_and_imported(server, tmp_path, monkeypatch):
    source = make_checkpoint(tmp_path / "source", "roberta")
    server.files = {path.name: path.read_bytes() for path in source.iterdir()}
    known = load_checkpoints()["bsc-bio-ehr-es-pharmaconer"]
    there = {"bsc-bio-ehr-es-pharmaconer": known.model_copy(update={"hub": HUB})}
    monkeypatch.setattr("spacy_bioclin.catalog.checkpoints.load_checkpoints", lambda: there)
    real = fetch_encoder

    def with_endpoint(*args, **options):
        return real(*args, **options, endpoint=server.url)

    monkeypatch.setattr(download, "fetch_encoder", with_endpoint)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["fetch", "bsc-bio-ehr-es-pharmaconer"])
    assert done.exit_code == 0, done.output
    command = done.stdout.strip().rpartition("bioclin ")[2]
    imported = CliRunner().invoke(app, command.replace("PIPELINE", "pipeline").split())
    assert imported.exit_code == 0, imported.output
    assert (tmp_path / "pipeline" / "config.cfg").is_file()
