"""What the service answers to requests that are as they should be."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from spacy_bioclin.about import __version__
from tests.serving.util import (
    BROKEN,
    NOTE,
    PANIC,
    SLOW,
    Running,
    closed_door,
    make_nlp,
    running,
    shared_nlp,
    wait_until,
)

BATCHES = "bioclin_batch_notes_count"
PIPELINE = {"name": "es_tiny", "version": "1.2.3", "lang": "es"}


@pytest.fixture(scope="module")
def it() -> Iterator[Running]:
    with running() as found:
        yield found


def test_one_note(it: Running) -> None:
    answer = it.post("/annotate", text=NOTE, id="n1")
    found = answer.json()
    assert answer.status_code == 200
    assert (found["id"], found["pipeline"], found["version"]) == ("n1", PIPELINE, __version__)
    assert found["characters"] == len(NOTE) == 70
    entities = [
        (each["layer"], each["start"], each["end"], each["label"], each["section"], each["negated"])
        for each in found["entities"]
    ]
    assert entities == [
        ("ents", 14, 18, "DISEASE", "past_history", False),
        ("ents", 40, 46, "SYMPTOM", "past_history", False),
        ("ents", 51, 54, "SYMPTOM", "past_history", True),
        ("phi", 29, 35, "NOMBRE_SUJETO_ASISTENCIA", "past_history", False),
        ("phi", 60, 69, "ID_SUJETO_ASISTENCIA", "past_history", False),
    ]
    [section] = found["sections"]
    assert (section["start"], section["title_end"], section["body_start"]) == (0, 12, 14)
    assert section["label"] == "past_history"
    assert (found["relations"], found["categories"], found["coverage"]) == ([], None, None)


def test_a_note_longer_than_spacy_allows() -> None:
    nlp = make_nlp()
    nlp.max_length = 20
    with running(nlp) as it:
        assert it.post("/annotate", text=NOTE).status_code == 200


def test_health_for_those_who_want_no_body(it: Running) -> None:
    for path in ("/health", "/ready"):
        answer = it.client.head(path)
        assert (answer.status_code, answer.content) == (200, b"")
        assert answer.headers["Content-Length"] == it.client.get(path).headers["Content-Length"]
        assert list(it.client.get("/openapi.json").json()["paths"][path]) == ["get"]


def test_safe_note(it: Running) -> None:
    found = it.post("/deidentify", text=NOTE).json()
    assert found["text"] == (
        "Antecedentes: asma.\nPaciente [NOMBRE_SUJETO_ASISTENCIA] con fiebre. No tos. "
        "DNI [ID_SUJETO_ASISTENCIA]."
    )
    for each in found["spans"]:
        assert found["text"][each["safe_start"] : each["safe_end"]] == each["replacement"]
    assert [NOTE[each["start"] : each["end"]] for each in found["spans"]] == ["Xabina", "12345678Z"]


def test_many_notes_keep_their_order_and_ids(it: Running) -> None:
    notes = [{"id": i, "text": "tos " * i} for i in range(5)]
    found = it.post("/annotate", notes=notes).json()
    assert [(each["id"], len(each["entities"])) for each in found["notes"]] == [
        (i, i) for i in range(5)
    ]
    assert found["pipeline"] == PIPELINE
    assert it.post("/annotate", notes=[]).json()["notes"] == []


def test_a_note_that_fails_does_not_take_others_with_it(it: Running) -> None:
    for word in (BROKEN, PANIC):
        notes = [{"text": "tos"}, {"id": "bad", "text": f"{word} Xabina"}, {"text": "fiebre"}]
        answer = it.post("/annotate", notes=notes)
        good, bad, last = answer.json()["notes"]
        assert answer.status_code == 200 and len(good["entities"]) == len(last["entities"]) == 1
        assert bad["id"] == "bad" and "note 2: the pipeline failed with" in bad["error"]
        assert "Xabina" not in answer.text + it.log.getvalue()
        alone = it.post("/annotate", text=f"{word} Xabina")
        assert alone.status_code == 422 and "Xabina" not in alone.text
        assert it.post("/annotate", text="tos").status_code == 200


def test_empty_and_odd_notes(it: Running) -> None:
    for text in ("", " \r\n\t", "\0", "\u202efiebre\u202c", "🩺 tos", "e\u0301"):
        found = it.post("/annotate", text=text).json()
        assert found["characters"] == len(text), text
    emoji = it.post("/annotate", text="🩺 tos").json()["entities"]
    assert [(each["start"], each["end"]) for each in emoji] == [(2, 5)]


def test_language_is_guessed_and_checked(it: Running) -> None:
    spanish = "el paciente refiere que la fiebre es de ayer y no tiene tos por la noche " * 3
    english = "the patient says that he had a fever and there is no cough at all in the night " * 3
    assert it.post("/annotate", text=spanish, language="es").json()["language"] == "es"
    assert it.post("/annotate", text=spanish, language="es-ES").status_code == 200
    assert it.post("/annotate", text=english).json()["language"] == "en"
    assert it.post("/annotate", text="tos").json()["language"] is None
    other = it.post("/annotate", text=english, language="en")
    assert other.status_code == 422
    assert other.json()["error"] == "language: the pipeline reads es only"


def test_state(it: Running) -> None:
    for path in ("/health", "/ready"):
        answer = it.client.get(path)
        assert answer.status_code == 200 and answer.json()["pipeline"] == PIPELINE
    about = it.client.get("/info").json()
    assert about["pipeline"] == PIPELINE and about["deidentify"] is True
    assert about["labels"]["ents"] == ["DISEASE", "SYMPTOM"]
    assert about["limits"]["max_notes"] == 100
    paths = it.client.get("/openapi.json").json()["paths"]
    assert {"/annotate", "/deidentify", "/info", "/health", "/ready", "/metrics"} == set(paths)
    examples = paths["/annotate"]["post"]["requestBody"]["content"]["application/json"]["examples"]
    for example in examples.values():
        assert it.post("/annotate", **example["value"]).status_code == 200


def read_metrics(it: Running) -> dict[str, float]:
    lines = it.client.get("/metrics").text.splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


def test_metrics_count() -> None:
    with running() as it:
        before = read_metrics(it)
        notes = [{"text": "tos seca"}, {"text": BROKEN}]
        assert it.post("/annotate", notes=notes).status_code == 200
        assert it.post("/annotate", nots=notes).status_code == 422
        words = "bioclin_words_total"  # counted last, after the answer
        wait_until(lambda: read_metrics(it)[words] >= before[words] + 3)
        after = read_metrics(it)

    def gain(name: str) -> float:
        return after[name] - before.get(name, 0)

    assert gain('bioclin_requests_total{path="/annotate",status="200"}') == 1
    assert gain('bioclin_requests_total{path="/annotate",status="422"}') == 1
    assert gain('bioclin_request_seconds_count{path="/annotate"}') == 2
    assert gain('bioclin_notes_total{outcome="done"}') == 1
    assert gain('bioclin_notes_total{outcome="failed"}') == 1
    assert gain("bioclin_words_total") == 3
    assert gain("bioclin_batch_notes_sum") == 2
    assert after["bioclin_queue_notes"] == 0


def test_batching_changes_nothing() -> None:
    """What a note gets depends on the notes beside it if this fails."""
    texts = [f"{NOTE} Nota {i}. " + "tos " * (i % 7) for i in range(20)]
    answers = []
    # The first note of a service and the one at the door are batches of their own.
    for batch_words, wanted in ((10_000, 3), (0, 22)):
        with (
            running(shared_nlp(deid=False), batch_words=batch_words) as it,
            ThreadPoolExecutor(2) as pool,
            closed_door() as door,
        ):
            pool.submit(it.post, "/annotate", text=SLOW)
            door.await_one()
            found = pool.submit(it.post, "/annotate", notes=[{"text": text} for text in texts])
            it.await_queue(len(texts))
            door.opened.set()
            answers.append(found.result().json()["notes"])
            # A batch is counted after it was answered.
            wait_until(lambda it=it, n=wanted: read_metrics(it)[BATCHES] >= n)
            assert read_metrics(it)[BATCHES] == wanted
    assert answers[0] == answers[1]
    assert [each["characters"] for each in answers[0]] == [len(text) for text in texts]
