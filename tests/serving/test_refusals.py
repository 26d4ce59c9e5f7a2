"""What the service answers to requests that are not as they should be: a status, a sentence, and
never what the client wrote."""

import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.serving.util import SLOW, Running, make_nlp, running

httpx = pytest.importorskip("httpx")

CANARY = "Xabina"
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def it() -> Iterator[Running]:
    with running(make_nlp(), max_bytes=20_000, max_notes=3) as found:
        yield found


def send(it: Running, content: bytes | str, path: str = "/annotate", **headers: str):  # type: ignore[no-untyped-def]
    return httpx.post(it.url + path, content=content, headers={**JSON, **headers}, timeout=30)


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


@pytest.mark.parametrize("path", ["/annotate", "/deidentify"])
def test_bad_bodies(it: Running, path: str) -> None:
    for name, (body, status) in BODIES.items():
        answer = send(it, body, path)
        assert answer.status_code == status, (name, answer.text)
        sentence = answer.json()["error"]
        assert sentence and sentence[0].islower() and not sentence.endswith("."), name
        assert answer.json()["pipeline"]["name"] == "es_tiny", name
        assert CANARY not in answer.text, name
    assert send(it, '{"text": "tos"}', path).status_code == 200
    assert CANARY not in it.log.getvalue()


def test_the_sentence_says_where_the_mistake_is(it: Running) -> None:
    for body, sentence in (
        ('{"notes": [{"text": "a"}, {"text": 7}]}', "notes[1].text: want a string"),
        ('{"notes": [{"id": "1"}]}', "notes[0].text: is missing"),
        ('{"notes": 7}', "notes: want a list of notes"),
        ('{"text": a}', "the body is not JSON: see its character 9"),
        ('{"text": "\\ud83d"}', "text: has half of a surrogate pair, which is no character"),
        (
            '{"notes": [{"text": "", "id": "\\ud83d"}]}',
            "notes[0].id: has half of a surrogate pair, which is no character",
        ),
        ("{}", "want either text, for one note, or notes"),
        ("[]", "want a JSON object with text or notes"),
    ):
        assert send(it, body).json()["error"] == sentence


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
        answer = httpx.request(method, it.url + path)
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
        answer = httpx.request(method, it.url + path)
        assert answer.status_code == 405
        assert set(answer.headers["Allow"].split(", ")) == methods, (method, path)


def test_a_slash_at_the_end_is_another_route(it: Running) -> None:
    """A redirect repeats the query, and leads a client of a proxy with TLS to http."""
    for path in (f"/annotate/?a={CANARY}", f"/health/?a={CANARY}", f"/page?a={CANARY}"):
        answer = httpx.post(it.url + path, json={"text": "tos"})
        assert answer.status_code == 404 and "location" not in answer.headers, path
        assert CANARY not in str(answer.headers)


def test_headers_keep_other_sites_out(it: Running) -> None:
    """Another site in the user's browser could read answers, or reach a service on this machine by
    a name that leads to it, if this fails."""
    answer = httpx.get(f"{it.url}/health", headers={"Origin": "https://elsewhere.example"})
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
        assert httpx.get(f"{it.url}/health", headers={"Host": host}).status_code == status, host


def test_keys() -> None:
    keys = ("first-key-of-sixteen", "second-key-of-sixteen")
    with running(make_nlp(), keys=keys) as it:
        for headers in (
            {},
            {"Authorization": "Bearer wrong-key-of-sixteen"},
            {"Authorization": f"Basic {keys[0]}"},
            {"Authorization": "Bearer"},
            {"X-API-Key": keys[0][:-1]},
            {"X-API-Key": "ñ"},
        ):
            encoded = {name: value.encode() for name, value in headers.items()}
            answer = httpx.post(f"{it.url}/annotate", json={"text": CANARY}, headers=encoded)
            assert answer.status_code == 401 and answer.headers["WWW-Authenticate"] == "Bearer"
        for headers in (
            {"Authorization": f"Bearer {keys[0]}"},
            {"authorization": f"bearer {keys[1]}"},
            {"X-API-Key": keys[1]},
        ):
            answer = httpx.post(f"{it.url}/annotate", json={"text": "tos"}, headers=headers)
            assert answer.status_code == 200
            assert httpx.get(f"{it.url}/info", headers=headers).status_code == 200
        for path, status in (("/info", 401), ("/metrics", 401), ("/health", 200), ("/ready", 200)):
            assert httpx.get(it.url + path).status_code == status
        assert not any(key in it.log.getvalue() for key in keys)


def test_a_pipeline_without_deid() -> None:
    with running(make_nlp(deid=False)) as it:
        answer = send(it, '{"text": "tos"}', "/deidentify")
        assert answer.status_code == 404 and "bioclin_deid" in answer.json()["error"]
        assert httpx.get(f"{it.url}/info").json()["deidentify"] is False


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


@pytest.mark.parametrize("n_requests", [60, pytest.param(1_000, marks=pytest.mark.slow)])
def test_malformed_requests_are_never_a_fault(it: Running, n_requests: int) -> None:
    """A client can bring the service down, or notes into its log, if this fails."""
    draw = random.Random(0)
    pieces = ['{"text":', '"notes":', "[", "]", "{", "}", ",", f'"{CANARY}"', "1e999", "\\u0000"]
    pieces += ["null", "true", '"id":', "\x00", "ñ", "\ud83d", "-", '"language":', '"es"']
    found: dict[int, int] = {}
    with httpx.Client(timeout=30) as client:
        for number in range(n_requests):
            if number % 3:
                text = "".join(draw.choices(pieces, k=draw.randint(1, 12)))
                content = text.encode("utf-8", "surrogatepass")
            else:
                content = draw.randbytes(draw.randint(0, 200))
            path = draw.choice(["/annotate", "/deidentify"])
            answer = client.post(it.url + path, content=content, headers=JSON)
            found[answer.status_code] = found.get(answer.status_code, 0) + 1
            assert CANARY not in answer.text and answer.json()["error"]
    assert set(found) <= {400, 413, 422} and sum(found.values()) == n_requests
    assert send(it, '{"text": "tos"}').status_code == 200
    assert CANARY not in it.log.getvalue()


def test_a_full_queue_is_429() -> None:
    with running(make_nlp(), max_queue=4, max_notes=4, batch_words=0) as it:
        with httpx.Client(timeout=30) as client, ThreadPoolExecutor(16) as pool:
            answers = list(
                pool.map(
                    lambda _: client.post(f"{it.url}/annotate", json={"text": SLOW}), range(16)
                )
            )
        statuses = [answer.status_code for answer in answers]
        # One in the pipeline and four in the queue, and those that came when they were done.
        assert set(statuses) == {200, 429} and statuses.count(200) >= 5
        refused = next(answer for answer in answers if answer.status_code == 429)
        assert int(refused.headers["Retry-After"]) >= 1
        assert "too many notes are waiting" in refused.json()["error"]
        assert send(it, '{"text": "tos"}').status_code == 200


def test_a_request_that_takes_too_long_is_503() -> None:
    with running(make_nlp(), timeout=0.05, batch_words=0) as it:
        answer = send(it, json.dumps({"notes": [{"text": SLOW}] * 3}))
        assert answer.status_code == 503 and answer.headers["Retry-After"]
        # The notes that had not begun were taken out of the queue: the next one is served at once.
        assert [send(it, '{"text": "tos"}').status_code for _ in range(20)].count(200) >= 15
