"""What the service answers to requests that are not as they should be: a status, a sentence, and
never what the client wrote."""

import io
import json
import logging
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest

from spacy_bioclin.serving.log import Log
from tests.serving.util import (
    SLOW,
    Running,
    closed_door,
    make_nlp,
    running,
    shared_nlp,
)

CANARY = "Xabina"
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def it() -> Iterator[Running]:
    with running(max_bytes=20_000, max_notes=3) as found:
        yield found


def send(it: Running, content: bytes | str, path: str = "/annotate", **headers: str):  # type: ignore[no-untyped-def]
    return it.client.post(path, content=content, headers={**JSON, **headers})


BODIES = {
    "cut JSON": (f'{{"text": "{CANARY}', 400),
    "no JSON": (CANARY, 400),
    "not UTF-8": (b'{"text": "\xff\xfe\xe9"}', 400),
    "nested too deep": ("[" * 9_000, 400),
    "a huge number": ('{"text": ' + "9" * 9_000 + "}", 400),
    "nothing": ("", 422),
    "a list": (f'["{CANARY}"]', 422),
    "a string": (f'"{CANARY}"', 422),
    "null": ("null", 422),
    "NaN": ('{"text": NaN}', 422),
    "no text": ("{}", 422),
    "text and notes": (f'{{"text": "{CANARY}", "notes": []}}', 422),
    "text is a number": ('{"text": 7}', 422),
    "text is a list": (f'{{"text": ["{CANARY}"]}}', 422),
    "notes is an object": (f'{{"notes": {{"{CANARY}": 1}}}}', 422),
    "a note is a string": (f'{{"notes": ["{CANARY}"]}}', 422),
    "a note without text": ('{"notes": [{"id": "1"}]}', 422),
    "an unknown key": (f'{{"text": "", "{CANARY}": 1}}', 422),
    "an unknown key of a note": (f'{{"notes": [{{"text": "", "{CANARY}": 1}}]}}', 422),
    "half of a surrogate pair": ('{"text": "tos \\ud83d"}', 422),
    "half in an id": ('{"text": "tos", "id": "\\ud83d"}', 422),
    "id of many notes": ('{"notes": [], "id": 1}', 422),
    "another language": (f'{{"text": "", "language": "{CANARY}"}}', 422),
    "too many notes": (json.dumps({"notes": [{"text": CANARY}] * 4}), 413),
    "too large": (json.dumps({"text": CANARY * 5_000}), 413),
}


def test_bad_bodies(it: Running) -> None:
    for (name, (body, status)), path in product(BODIES.items(), ("/annotate", "/deidentify")):
        answer = send(it, body, path)
        assert answer.status_code == status, (name, answer.text)
        sentence = answer.json()["error"]
        assert sentence and sentence[0].islower() and not sentence.endswith("."), name
        assert answer.json()["pipeline"]["name"] == "es_tiny", name
        assert CANARY not in answer.text, name
    assert send(it, '{"text": "tos"}').status_code == 200
    assert CANARY not in it.log.getvalue()


def test_the_sentence_says_where_the_mistake_is(it: Running) -> None:
    for body, sentence in (
        ('{"notes": [{"text": "a"}, {"text": 7}]}', "notes[1].text: want a string"),
        ('{"notes": [{"id": "1"}]}', "notes[0].text: is missing"),
        ('{"text": a}', "the body is not JSON: see its character 9"),
        ('{"text": "\\ud83d"}', "text: has half of a surrogate pair, which is no character"),
        (
            '{"notes": [{"text": "", "id": "\\ud83d"}]}',
            "notes[0].id: has half of a surrogate pair, which is no character",
        ),
        ("{}", "want either text, for one note, or notes"),
    ):
        assert send(it, body).json()["error"] == sentence
    form = '{"notes": [{"text": "..."}, {"text": "..."}]}'
    for body, begin, end in (
        ('{"notes": ["Xabina", "b"]}', "notes[0]: want a note as an object", '"text": "..."}'),
        ('{"notes": "Xabina"}', "notes: want a list of notes", form),
        ('["Xabina", "b"]', "want a JSON object with text or notes", form),
    ):
        sentence = send(it, body).json()["error"]
        assert sentence.startswith(begin) and sentence.endswith(end) and "Xabina" not in sentence


def test_types_of_content(it: Running) -> None:
    body = '{"text": "tos"}'
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        assert send(it, body, **{"Content-Type": kind}).status_code == 415, kind
    good = "application/json; charset=utf-8"
    assert send(it, body, **{"Content-Type": good}).status_code == 200
    assert send(it, body, **{"Content-Encoding": "gzip"}).status_code == 415


def test_a_body_without_a_length_is_cut_off(it: Running) -> None:
    """A body in chunks fills the memory if this fails: no header says how long it is."""

    def chunks() -> Iterator[bytes]:
        for _ in range(50):
            yield CANARY.encode() * 1_000

    assert send(it, chunks()).status_code == 413  # type: ignore[arg-type]
    assert send(it, '{"text": "tos"}').status_code == 200


def test_routes_and_methods(it: Running) -> None:
    for method, path, status in (
        ("GET", "/annotate", 405),
        ("PUT", "/annotate", 405),
        ("OPTIONS", "/annotate", 405),
        ("POST", "/health", 405),
        ("GET", f"/{CANARY}", 404),
        ("GET", f"/page/{CANARY}", 404),
        ("GET", "/page/../../../setup.cfg", 404),
        ("GET", "/page/%2e%2e/%2e%2e/errors.py", 404),
        ("GET", f"/docs?text={CANARY}", 404),
    ):
        answer = it.client.request(method, path)
        assert answer.status_code == status, (method, path, answer.text)
        assert answer.json()["error"] and CANARY not in answer.text
    assert CANARY not in it.log.getvalue()


def test_the_methods_of_a_route_are_told(it: Running) -> None:
    for method, path, methods in (
        ("GET", "/annotate", {"POST"}),
        ("OPTIONS", "/deidentify", {"POST"}),
        ("POST", "/health", {"GET", "HEAD"}),
        ("PUT", "/ready", {"GET", "HEAD"}),
    ):
        answer = it.client.request(method, path)
        assert answer.status_code == 405
        assert set(answer.headers["Allow"].split(", ")) == methods, (method, path)


def test_a_slash_at_the_end_is_another_route(it: Running) -> None:
    """A redirect repeats the query, and leads a client of a proxy with TLS to http."""
    for path in (f"/annotate/?a={CANARY}", f"/health/?a={CANARY}", f"/page?a={CANARY}"):
        answer = it.post(path, text="tos")
        assert answer.status_code == 404 and "location" not in answer.headers, path
        assert CANARY not in str(answer.headers)


def test_headers_keep_other_sites_out(it: Running) -> None:
    """Another site in the user's browser could read answers, or reach a service on this machine by
    a name that leads to it, if this fails."""
    answer = it.client.get("/health", headers={"Origin": "https://elsewhere.example"})
    assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'self'")
    for host, status in (
        ("elsewhere.example", 421),
        ("elsewhere.example:80", 421),
        ("127.0.0.1.elsewhere.example", 421),
        ("localhost", 200),
        ("LOCALHOST:8000", 200),
        ("127.0.0.1:1", 200),
        ("10.1.2.3", 200),
        ("[::1]:80", 200),
    ):
        assert it.client.get("/health", headers={"Host": host}).status_code == status, host


def test_keys() -> None:
    keys = ("first-key-of-sixteen", "second-key-of-sixteen")
    with running(keys=keys) as it:
        for headers in (
            {},
            {"Authorization": "Bearer wrong-key-of-sixteen"},
            {"Authorization": f"Basic {keys[0]}"},
            {"Authorization": "Bearer"},
            {"X-API-Key": keys[0][:-1]},
            {"X-API-Key": "ñ"},
        ):
            encoded = {name: value.encode() for name, value in headers.items()}
            answer = it.client.post("/annotate", json={"text": CANARY}, headers=encoded)
            assert answer.status_code == 401 and answer.headers["WWW-Authenticate"] == "Bearer"
        for headers in (
            {"Authorization": f"Bearer {keys[0]}"},
            {"authorization": f"bearer {keys[1]}"},
            {"X-API-Key": keys[1]},
        ):
            answer = it.client.post("/annotate", json={"text": "tos"}, headers=headers)
            assert answer.status_code == 200
            assert it.client.get("/info", headers=headers).status_code == 200
        for path, status in (("/info", 401), ("/metrics", 401), ("/health", 200), ("/ready", 200)):
            assert it.client.get(path).status_code == status
        assert not any(key in it.log.getvalue() for key in keys)


def test_a_pipeline_without_deid() -> None:
    with running(shared_nlp(deid=False)) as it:
        answer = send(it, '{"text": "tos"}', "/deidentify")
        assert answer.status_code == 404 and "bioclin_deid" in answer.json()["error"]
        assert it.client.get("/info").json()["deidentify"] is False


def test_a_safe_note_that_is_not_safe_is_not_sent() -> None:
    """A value that the policy keeps in one place and hides in another gets out if this fails."""
    nlp = make_nlp()
    deid = nlp.get_pipe("bioclin_deid")
    nlp.get_pipe("span_ruler").add_patterns([{"label": "HOSPITAL", "pattern": "Clínica Xabina"}])  # type: ignore[attr-defined]
    deid.policy = deid.policy.model_copy(update={"operators": {"hospital": "keep"}})  # type: ignore[attr-defined]
    with running(nlp) as it:
        answer = send(it, '{"text": "Clínica Xabina. Paciente Xabina con tos."}', "/deidentify")
    assert answer.status_code in (200, 422)
    assert answer.status_code == 422 or "Xabina" not in answer.json()["text"]


def test_errors_of_libraries_are_logged_without_their_words() -> None:
    stream, library = io.StringIO(), logging.getLogger("uvicorn.error")
    before = library.handlers, library.propagate, library.level
    try:
        Log(stream).take_over()
        library.error(CANARY, exc_info=ValueError(CANARY))
    finally:
        library.handlers, library.propagate, level = before
        library.setLevel(level)
    row = json.loads(stream.getvalue())
    assert (row["event"], row["error"]) == ("library", "ValueError")
    assert CANARY not in stream.getvalue()


def test_malformed_requests_are_never_a_fault(it: Running) -> None:
    """A client can bring the service down, or notes into its log, if this fails."""
    draw, n_requests = random.Random(0), 100
    pieces = ['{"text":', '"notes":', "[", "]", "{", "}", ",", f'"{CANARY}"', "1e999", "\\u0000"]
    pieces += ["null", "true", '"id":', "\x00", "ñ", "\ud83d", "-", '"language":', '"es"']
    found: dict[int, int] = {}
    for number in range(n_requests):
        if number % 3:
            text = "".join(draw.choices(pieces, k=draw.randint(1, 12)))
            content: bytes = text.encode("utf-8", "surrogatepass")
        else:
            content = draw.randbytes(draw.randint(0, 200))
        answer = send(it, content, draw.choice(["/annotate", "/deidentify"]))
        found[answer.status_code] = found.get(answer.status_code, 0) + 1
        assert CANARY not in answer.text and answer.json()["error"]
    assert set(found) <= {400, 413, 422} and sum(found.values()) == n_requests
    assert send(it, '{"text": "tos"}').status_code == 200
    assert CANARY not in it.log.getvalue()


def test_a_full_queue_is_429() -> None:
    with (
        running(max_queue=4, max_notes=4, batch_words=0) as it,
        ThreadPoolExecutor(5) as pool,
        closed_door() as door,
    ):
        accepted = [pool.submit(it.post, "/annotate", text=SLOW)]
        door.await_one()
        accepted += [pool.submit(it.post, "/annotate", text="tos") for _ in range(4)]
        it.await_queue(4)
        refused = it.post("/annotate", text="tos")
        assert refused.status_code == 429 and int(refused.headers["Retry-After"]) >= 1
        assert "too many notes are waiting" in refused.json()["error"]
        door.opened.set()
        assert [answer.result().status_code for answer in accepted] == [200] * 5
        assert it.post("/annotate", text="tos").status_code == 200


def test_a_request_that_takes_too_long_is_503() -> None:
    with running(timeout=0.05, batch_words=0) as it, closed_door() as door:
        answer = it.post("/annotate", notes=[{"text": SLOW}] * 3)
        assert answer.status_code == 503 and answer.headers["Retry-After"]
        assert it.client.get("/health").status_code == 200  # the loop has gone on since
        door.opened.set()
        # The notes that had not begun were taken out of the queue: the next one is read at once.
        [done] = it.service.batcher.submit(["tos"], lambda doc: {"text": doc.text})
        assert done.result(120) == {"text": "tos"} and door.n_arrived <= 1
