"""`bioclin annotate`, and the command line of `bioclin package`."""

import json
import os

import pytest
import spacy
from typer.testing import CliRunner

from spacy_bioclin.annotations.relations import Relation, set_relations
from spacy_bioclin.cli import app
from spacy_bioclin.cli.package.package import read_license
from spacy_bioclin.cli.run.annotate import find_texts
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.kb.build import build_kb
from spacy_bioclin.linking.kb.concepts import Concept
from spacy_bioclin.outputs import lock_output

pytestmark = pytest.mark.usefixtures("kept_pipelines")
NOTE = "Paciente con neumonía en el Hospital General ."


def run(*arguments, **options):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes"
    (folder / "more").mkdir(parents=True)
    (folder / "one.txt").write_bytes(("\ufeff" + NOTE + "\r\n").encode())
    (folder / "more" / "two.txt").write_bytes(NOTE.encode())
    (folder / "empty.txt").write_bytes(b"")
    return folder


def test_jsonl_has_offsets_of_the_untouched_text(pipeline, notes, tmp_path):
    out = tmp_path / "out" / "notes.jsonl"
    done = run("annotate", pipeline, notes, "-o", out)
    assert done.exit_code == 0, done.output
    records = {r["id"]: r for r in map(json.loads, out.read_text("utf-8").splitlines())}
    assert list(records) == ["empty", "more/two", "one"]
    [entity] = records["more/two"]["entities"]
    start = NOTE.index("neumonía")
    assert (entity["start"], entity["end"], entity["label"]) == (start, start + 8, "DISEASE")
    assert entity["text"] == "neumonía"
    assert 0 < entity["probability"] <= 1
    [place] = records["more/two"]["spans"]["phi"]
    assert place["text"] == "Hospital General"
    for record in records.values():  # byte-order mark and CRLF count
        text = (notes / f"{record['id']}.txt").read_bytes().decode()
        for span in record["entities"] + record["spans"].get("phi", []):
            assert text[span["start"] : span["end"]] == span["text"]
    assert records["empty"]["entities"] == []
    assert [path.name for path in out.parent.iterdir()] == ["notes.jsonl"]


def test_links_stand_beside_the_entity(notes, tmp_path):
    build_kb([Concept("K1", "neumonía", "es")], tmp_path / "kb")
    nlp = spacy.blank("es")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "DISEASE", "pattern": "neumonía"}])
    nlp.add_pipe("bioclin_linker", config={"kb": str(tmp_path / "kb")})
    nlp.to_disk(tmp_path / "pipeline")
    done = run("annotate", tmp_path / "pipeline", notes / "one.txt", "-o", tmp_path / "out.jsonl")
    assert done.exit_code == 0, done.output
    [entity] = json.loads((tmp_path / "out.jsonl").read_text("utf-8"))["entities"]
    assert entity["kb_id"] == "K1"
    [candidate] = entity["candidates"]
    assert candidate["name"] == "neumonía"
    assert candidate["score"] > 0.9


def test_outputs_are_not_overwritten_unless_asked(pipeline, notes, tmp_path):
    out = tmp_path / "notes.jsonl"
    out.write_text("mine")
    done = run("annotate", pipeline, notes, "-o", out)
    assert done.exit_code == 1
    assert "--overwrite" in done.stderr
    assert out.read_text() == "mine"
    assert run("annotate", pipeline, notes, "-o", out, "--overwrite").exit_code == 0
    assert out.read_text() != "mine"


def test_unreadable_files_are_errors_or_counted(pipeline, notes, tmp_path):
    (notes / "latin.txt").write_bytes("neumonía\nbronquitis señora".encode("latin-1"))
    out = tmp_path / "notes.jsonl"
    done = run("annotate", pipeline, notes, "-o", out)
    assert done.exit_code == 1
    assert "latin.txt, line 1: not UTF-8" in done.stderr.replace("\n", " ")
    assert not out.exists()
    done = run("annotate", pipeline, notes, "-o", out, "--skip-bad")
    assert done.exit_code == 0
    assert "1 of 4 files skipped" in done.stderr
    assert len(out.read_text("utf-8").splitlines()) == 3
    assert "Paciente" not in done.stderr  # no text of a note


def test_table_and_stdin(pipeline):
    done = run("annotate", pipeline, "-", input=NOTE)
    assert done.exit_code == 0
    assert "neumonía" in done.stdout
    assert "PLACE" in done.stdout
    assert run("annotate", pipeline, "-", input="").stdout.strip() == "stdin: nothing found"


def test_ids_that_clash_and_missing_files_are_errors(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.txt").write_text("")
    with pytest.raises(BioclinError, match="would both be document 'x'"):
        find_texts([tmp_path / "a", tmp_path / "b"])
    assert list(find_texts([tmp_path])) == ["a/x", "b/x"]
    assert list(find_texts([tmp_path / "a", tmp_path / "a"])) == ["x"]
    with pytest.raises(BioclinError, match="no such file"):
        find_texts([tmp_path / "c"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(BioclinError, match=r"no \.txt file"):
        find_texts([tmp_path / "empty"])


@pytest.mark.usefixtures("_without_setuptools")
def test_package_command_takes_licences_from_catalogue_and_encoder(pipeline, tmp_path):
    encoder = tmp_path / "some-encoder"
    encoder.mkdir()
    (encoder / "README.md").write_text("---\nlanguage: es\nlicense: apache-2.0\n---\n# Title\n")
    options = ("--name", "x", "--version", "0.1.0", "--task", "meddocan", "--encoder", encoder)
    done = run("package", pipeline, tmp_path / "out", *options)
    assert done.exit_code == 0, done.output
    [wheel] = (tmp_path / "out").iterdir()
    assert wheel.name == "es_bioclin_x-0.1.0-py3-none-any.whl"
    done = run("package", pipeline, tmp_path / "out", *options[:4], "--task", "meddocam")
    assert done.exit_code == 1
    assert "want one of" in done.stderr
    metrics = tmp_path / "metrics.json"
    metrics.write_text('{"scores": {}}')
    done = run("package", pipeline, tmp_path / "out", *options, "--metrics", metrics)
    assert done.exit_code == 1
    assert "has no corpus, layers" in done.stderr


def test_license_of_an_encoder(tmp_path):
    card = tmp_path / "README.md"
    assert read_license(tmp_path) == ""
    card.write_text("---\nlicense: mit\n---\ntext\n---\n")
    assert read_license(tmp_path) == "mit"
    for content in (
        "# No front matter\n---\nlicense: mit\n---\n",
        "---\n: [\n---\n",
        "",
        "---\na\n---\n",
    ):
        card.write_text(content)
        assert read_license(tmp_path) == ""


def test_what_cannot_be_read_is_an_error_or_counted(pipeline, notes, tmp_path):
    (notes / "lost.txt").symlink_to(tmp_path / "nowhere")
    (notes / "wide.txt").write_bytes("neumonia".encode("utf-16-le"))
    (notes / "linked").symlink_to(tmp_path / "beside")
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "three.txt").write_text(NOTE, "utf-8")
    os.mkfifo(notes / "pipe.txt")
    out = tmp_path / "notes.jsonl"
    done = run("annotate", pipeline, notes, "-o", out)
    assert done.exit_code == 1 and "lost.txt: is a link" in " ".join(done.stderr.split())
    done = run("annotate", pipeline, notes, "-o", out, "--skip-bad")
    assert done.exit_code == 0
    assert "4 documents written" in done.stderr and "3 of 7 files skipped" in done.stderr
    assert "NUL characters" in done.stderr
    ids = [json.loads(line)["id"] for line in out.read_text("utf-8").splitlines()]
    assert ids == ["empty", "linked/three", "more/two", "one"]
    done = run("annotate", pipeline, notes / "pipe.txt")
    assert done.exit_code == 1 and "is a pipe, socket or device" in done.stderr


def test_encoding_and_lock(pipeline, tmp_path):
    note, out = tmp_path / "note.txt", tmp_path / "out.jsonl"
    note.write_bytes(NOTE.encode("cp1252"))
    assert run("annotate", pipeline, note, "-o", out, "--encoding", "cp1252").exit_code == 0
    assert json.loads(out.read_text("utf-8"))["entities"][0]["text"] == "neumonía"
    before = out.read_bytes()
    with lock_output(out):
        done = run("annotate", pipeline, note, "-o", out, "--overwrite", "--encoding", "cp1252")
    assert done.exit_code == 1 and "another run is writing it" in " ".join(done.stderr.split())
    assert out.read_bytes() == before


def test_context_is_beside_the_entity(tmp_path):
    nlp = spacy.blank("es")
    nlp.add_pipe("bioclin_sentences")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "DISEASE", "pattern": "neumonía"}])
    nlp.add_pipe("bioclin_context")
    nlp.to_disk(tmp_path / "pipeline")
    (tmp_path / "one.txt").write_text("Sin neumonía.", "utf-8")
    done = run("annotate", tmp_path / "pipeline", tmp_path / "one.txt", "-o", tmp_path / "o.jsonl")
    assert done.exit_code == 0, done.output
    record = json.loads((tmp_path / "o.jsonl").read_text("utf-8"))
    [entity] = record["entities"]
    assert entity["negated"] and not entity["uncertain"]
    assert entity["context"] == [
        {"kind": "negated", "rule": "sin", "source": "rules", "start": 0, "end": 3}
    ]
    assert "negated" not in record["spans"]["context"][0]
    done = run("annotate", tmp_path / "pipeline", tmp_path / "one.txt")
    assert "Context" in done.output and "negated" in done.output


@spacy.Language.component("first_to_second")
def first_to_second(doc):
    """Relate the first entity to the second, and call the text urgent."""
    pair = doc.ents[:2]
    concepts = ("K1", "") if len(pair) == 2 else None
    found = [Relation(*pair, "TRATA", 0.98765, concepts)] if len(pair) == 2 else []
    set_relations(doc, "relations", found)
    doc.cats = {"NORMAL": 0.25, "URGENTE": 0.75} if "fiebre" not in doc.text else {}
    return doc


def test_relations_and_categories(tmp_path):
    nlp = spacy.blank("es")
    patterns = {"neumonía\nbasal": "DISEASE", "amoxicilina": "DRUG"}
    nlp.add_pipe("entity_ruler").add_patterns(
        [{"label": label, "pattern": text} for text, label in patterns.items()]
    )
    nlp.add_pipe("first_to_second")
    nlp.to_disk(tmp_path / "pipeline")
    note, fever = tmp_path / "note.txt", tmp_path / "fever.txt"
    note.write_text("Por neumonía\nbasal, amoxicilina.", "utf-8")
    fever.write_text("Sin fiebre.", "utf-8")
    done = run("annotate", tmp_path / "pipeline", note, fever, "-o", tmp_path / "o.jsonl")
    assert done.exit_code == 0, done.output
    first, second = map(json.loads, (tmp_path / "o.jsonl").read_text("utf-8").splitlines())
    assert first["relations"] == [
        {
            "label": "TRATA",
            "head": {
                "start": 4,
                "end": 18,
                "label": "DISEASE",
                "text": "neumonía\nbasal",
                "kb_id": "K1",
            },
            "child": {"start": 20, "end": 31, "label": "DRUG", "text": "amoxicilina"},
            "probability": 0.9877,
        }
    ]
    assert first["categories"] == {"NORMAL": 0.25, "URGENTE": 0.75}
    assert second["relations"] == [] and "categories" not in second
    done = run("annotate", tmp_path / "pipeline", note, fever)
    lines = [line.split() for line in done.stdout.splitlines() if line.strip()]
    assert ["TRATA", "neumonía", "basal", "DISEASE", "amoxicilina", "DRUG", "0.99"] in lines
    assert lines.index(["URGENTE", "0.75"]) < lines.index(["NORMAL", "0.25"])
    assert lines[-1] == ["fever:", "nothing", "found"]
