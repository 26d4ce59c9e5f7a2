"""Servers that lie, and folders that were made to lead elsewhere."""

import gc
import gzip
import hashlib
import io
import json
import tarfile
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import huggingface_hub
import pytest

from spacy_bioclin.catalog.encoders import load_encoders
from spacy_bioclin.encoders.hub import archive, transfer
from spacy_bioclin.encoders.hub.download import MANIFEST, fetch_encoder
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.outputs import grow_folder
from tests.util import make_encoder

COMMIT = "0123456789abcdef0123456789abcdef01234567"
HUB = "clinic/encoder"
TOKEN = "hf_SecretSecretSecretSecret"


class Server:
    """Answers what `lies` says for a path, else as the hub does."""

    def __init__(self, files):
        self.files, self.lies, self.asked, self.listing = files, {}, [], {}
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                path = self.path.partition("?")[0]
                server.asked.append((path, self.headers.get("Authorization")))
                name = path.rpartition("/")[2]
                lie = server.lies.get(path) or server.lies.get(name)
                if lie is not None:
                    lie(self)
                elif path.startswith("/api/models/"):
                    server.send(self, json.dumps(server.describe()).encode())
                else:
                    server.send(self, server.files[name])

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    def send(self, request, content, status=200, **headers):
        request.send_response(status)
        for name, value in {"Content_Length": len(content), **headers}.items():
            request.send_header(name.replace("_", "-"), str(value))
        request.end_headers()
        with suppress(OSError):
            request.wfile.write(content)

    def describe(self):
        def facts(name, content):
            if name.endswith((".safetensors", ".bin")):
                lfs = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
                return {"size": len(content), "lfs": lfs}
            blob = hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()
            return {"size": len(content), "blobId": blob}

        siblings = [{"rfilename": n, **facts(n, content)} for n, content in self.files.items()]
        return {"sha": COMMIT, "siblings": siblings, **self.listing}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = make_encoder(tmp_path_factory.mktemp("source") / "encoder")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def start(source, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    huggingface_hub.utils.reset_sessions()
    servers = []

    def begin():
        servers.append(Server(dict(source)))
        return servers[-1]

    yield begin
    for server in servers:
        server.http.shutdown()
        server.http.server_close()
    monkeypatch.undo()
    huggingface_hub.utils.reset_sessions()


@pytest.fixture
def server(start):
    return start()


@pytest.fixture
def fetch(server, tmp_path):
    encoder = load_encoders()["biobert-v1.1"].model_copy(update={"hub": HUB, "revision": COMMIT})

    def run(out=tmp_path / "out", **options):
        return fetch_encoder("biobert-v1.1", encoder, out, endpoint=server.url, **options)

    return run


@pytest.fixture
def unpack(server, tmp_path):
    def run(content, out=tmp_path / "out"):
        server.files["tiny.tar.gz"] = content
        update = {"archive": f"{server.url}/tiny.tar.gz"}
        encoder = load_encoders()["bio-lm-base-pm"].model_copy(update=update)
        return fetch_encoder("bio-lm-base-pm", encoder, out, accept_licence=True)

    return run


def one_line(error):
    return "\n" not in str(error.value) and TOKEN not in str(error.value)


def nothing_landed(out):
    return not (out / "config.json").exists() and not (out / "model.safetensors").exists()


def test_honest_server(fetch, tmp_path, server, source):
    manifest = fetch()
    assert {*source} <= manifest["files"].keys()
    there = {path.name for path in (tmp_path / "out").iterdir()}
    assert there == {*manifest["files"], MANIFEST}
    assert {token for _, token in server.asked} == {f"Bearer {TOKEN}"}  # its own host


CONFIG, WEIGHTS = "config.json", "model.safetensors"


@pytest.mark.parametrize(
    ("lie", "name"),
    [
        *[("short", CONFIG), ("long", WEIGHTS), ("other", CONFIG), ("other", WEIGHTS)],
        *[("endless", WEIGHTS), ("endless", CONFIG), ("gzip", CONFIG), ("wrong length", WEIGHTS)],
    ],
)
def test_content_that_is_not_what_the_hub_states(fetch, server, source, tmp_path, name, lie):
    content = source[name]
    packed = gzip.compress(b"\0" * 10**6)

    def endless(request):
        request.send_response(200)
        request.end_headers()
        with suppress(OSError):
            while True:
                request.wfile.write(b"x" * 2**16)

    server.lies[name] = {
        "short": lambda r: server.send(r, content[:-1]),
        "long": lambda r: server.send(r, content + b"x"),
        "other": lambda r: server.send(r, b"x" * len(content)),
        "endless": endless,
        "gzip": lambda r: server.send(r, packed, Content_Encoding="gzip"),
        "wrong length": lambda r: server.send(r, content[:-5], Content_Length=len(content)),
    }[lie]
    with pytest.raises(BioclinError, match="run it again") as error:
        fetch()
    assert one_line(error) and nothing_landed(tmp_path / "out")
    size = sum(path.stat().st_size for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert size < sum(map(len, source.values())) + 2**20
    server.lies.clear()
    assert fetch()["complete"]
    assert (tmp_path / "out" / name).read_bytes() == content


def test_errors_of_the_hub_are_one_line(fetch, server, tmp_path):
    listing = f"/api/models/{HUB}/revision/{COMMIT}"
    cases = [(status, listing) for status in (401, 403, 404, 429, 500, 503)]
    for status, path in [*cases, (403, WEIGHTS), (503, WEIGHTS)]:
        server.lies = {
            path: lambda r, code=status: server.send(r, b"<html>" + TOKEN.encode(), code)
        }
        with pytest.raises(BioclinError) as error:
            fetch()
        assert one_line(error) and nothing_landed(tmp_path / "out"), (status, path)


NAMES = [
    "../../evil.model",
    "/tmp/evil.model",
    "..\\..\\evil.model",
    "a/../../evil.spm",
    "LICENSE/../../evil",
    ".hidden.model",
    "tokenizer/../../x.json",
    "LICENSE\nx",
    "evil.model\0",
    "a" * 300 + ".py",
    "modeling_evil.py",
    "fetched.json",
]


def test_names_of_a_listing_do_not_lead_elsewhere(fetch, server, tmp_path):
    server.files |= dict.fromkeys(NAMES, b"evil")
    manifest = fetch()
    assert not manifest["files"].keys() & set(NAMES)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    found = {path.name for path in tmp_path.rglob("*")}
    assert not [name for name in found if "evil" in name or "hidden" in name or len(name) > 99]


def test_listing_that_lies_is_one_error(fetch, server, tmp_path):
    for listing in (
        {"sha": "f" * 40},
        {"sha": "../x"},
        {"sha": None},
        {"siblings": None},
        {"siblings": [1]},
        {"siblings": [{"rfilename": "config.json", "size": "big"}]},
    ):
        server.listing = listing
        with pytest.raises(BioclinError) as error:
            fetch()
        assert one_line(error) and nothing_landed(tmp_path / "out"), listing


def test_listing_that_is_none_is_one_error(fetch, server):
    # Deep brackets exhaust the stack; what other tests left must not be finalized there.
    gc.collect()
    gc.disable()
    try:
        for content in (b"", b"[]", b"null", b"[" * 10**5, b"x" * (2**24 + 2**16)):
            server.lies[COMMIT] = lambda r, content=content: server.send(r, content)
            with pytest.raises(BioclinError) as error:
                fetch()
            assert one_line(error), content[:20]
    finally:
        gc.enable()


@pytest.mark.parametrize("path", [COMMIT, "model.safetensors"])
def test_token_stays_with_its_host(fetch, server, start, path):
    other = start()

    def redirect(request):
        server.send(request, b"", 302, Location=f"{other.url}{request.path}")

    server.lies[path] = redirect
    assert fetch()["complete"]
    assert other.asked and {token for _, token in other.asked} == {None}


def test_redirects_to_other_schemes_are_refused(fetch, server, tmp_path):
    for target in ("file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://x", "data:,x"):
        server.lies[WEIGHTS] = lambda r, to=target: server.send(r, b"", 302, Location=to)
        with pytest.raises(BioclinError, match="is not followed") as error:
            fetch()
        assert one_line(error) and nothing_landed(tmp_path / "out"), target


def test_endless_redirects_end(fetch, server):
    server.lies["config.json"] = lambda r: server.send(r, b"", 302, Location=r.path)
    with pytest.raises(BioclinError, match="redirects more than"):
        fetch()


def test_https_is_not_left(monkeypatch):
    class Answer(io.BytesIO):
        status_code, headers = 302, {"Location": "http://mirror/x?signature=1"}

    class Session:
        def get(self, url, **_):
            return Answer()

    monkeypatch.setattr(huggingface_hub.utils, "get_session", Session)
    with (
        pytest.raises(BioclinError, match=r"redirects to http://mirror.*only https"),
        transfer.open_url("https://hub/x", {}),
    ):
        pass


def test_slow_server_is_given_up(fetch, server, source, monkeypatch):
    monkeypatch.setattr(transfer, "PATIENCE", -1)
    monkeypatch.setattr(transfer, "SLOWEST", 1e12)
    with pytest.raises(BioclinError, match="too slow: run it again to resume"):
        fetch()


def test_begun_download_goes_on_and_changed_content_is_found(fetch, server, source, tmp_path):
    content = source["model.safetensors"]
    half = len(content) // 2

    def stop(request):
        server.send(request, content[:half], Content_Length=len(content))

    server.lies["model.safetensors"] = stop
    with pytest.raises(BioclinError, match="broke off"):
        fetch()
    ranges = []

    def rest(request):
        ranges.append(request.headers["Range"])
        span = f"bytes {half}-{len(content) - 1}/{len(content)}"
        server.send(request, b"x" * (len(content) - half), 206, Content_Range=span)

    server.lies["model.safetensors"] = rest
    with pytest.raises(BioclinError, match="is damaged"):
        fetch()
    assert ranges == [f"bytes={half}-"]
    server.lies.clear()
    assert fetch()["complete"]


def test_links_in_the_folder_are_not_followed(fetch, server, tmp_path):
    fetch()
    victim = tmp_path / "victim"
    victim.write_text("mine")
    for name in ("config.json", "README.md"):
        (tmp_path / "out" / name).unlink()
        (tmp_path / "out" / name).symlink_to(victim)
    fetch()
    assert victim.read_text() == "mine"
    assert not (tmp_path / "out" / "config.json").is_symlink()


def test_begun_archive_that_is_a_link_is_not_followed(unpack, tmp_path, source):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    out = tmp_path / "out"
    out.mkdir()
    (out / MANIFEST).write_text('{"name": "bio-lm-base-pm", "complete": false}')
    (out / "archive.part").symlink_to(victim)
    with pytest.raises((BioclinError, OSError)):
        unpack(pack(source))
    assert victim.read_text() == "mine"


def facts(name):
    files = {name: {"bytes": 1, "sha256": "0" * 64}}
    made = {"name": "biobert-v1.1", "complete": True, "revision": COMMIT, "files": files}
    return json.dumps(made)


def test_hostile_manifest_deletes_nothing(fetch, tmp_path):
    manifests = ["[]", "{", "", '{"complete": true}']
    manifests += ['{"name": "biobert-v1.1", "complete": true, "revision": null, "files": []}']
    manifests += map(facts, ("../victim.txt", "/etc/passwd", "sub/x.json", "victim.txt"))
    (tmp_path / "victim.txt").write_text("mine")
    out = tmp_path / "out"
    out.mkdir()
    (out / "victim.txt").write_text("mine")
    for manifest in manifests:
        (out / MANIFEST).write_text(manifest)
        with pytest.raises(BioclinError, match=r"fetched\.json") as error:
            fetch()
        assert one_line(error), manifest
        assert (tmp_path / "victim.txt").exists() and (out / "victim.txt").exists(), manifest


def test_one_process_at_a_time(fetch, tmp_path):
    with grow_folder(tmp_path / "out"), pytest.raises(BioclinError, match="another run"):
        fetch()


def test_token_is_not_sent_in_clear(monkeypatch):
    from spacy_bioclin.encoders.hub.download import _make_headers

    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert TOKEN not in str(_make_headers("http://mirror.hospital"))
    assert TOKEN in str(_make_headers("https://mirror.hospital"))


# Archives


def pack(files):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def test_gzip_bomb_is_not_unpacked(unpack, source, tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "FREE_BYTES", 10**6)
    bomb = pack({**source, "vocab.json": b"\0" * 3 * 10**7})
    with pytest.raises(BioclinError, match="made to fill a disk"):
        unpack(bomb)
    assert nothing_landed(tmp_path / "out")


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE]
)
def test_what_is_no_file_is_left_out(unpack, source, tmp_path, kind):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        link = tarfile.TarInfo("vocab.txt")
        link.type, link.linkname = kind, "/etc/passwd"
        tar.addfile(link)
        for name, content in source.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    unpack(packed.getvalue())
    assert not (tmp_path / "out" / "vocab.txt").exists()


@pytest.mark.parametrize("cut", [0, 1, 50, 2000])
def test_archive_that_is_cut_short_is_one_error(unpack, source, tmp_path, cut):
    with pytest.raises(BioclinError) as error:
        unpack(pack(source)[:cut])
    assert one_line(error) and nothing_landed(tmp_path / "out")
    assert unpack(pack(source))["complete"]
