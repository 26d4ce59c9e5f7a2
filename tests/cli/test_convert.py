"""`bioclin convert` as a user types it."""

import json
import shutil
from pathlib import Path

import pytest
from spacy.vocab import Vocab
from typer.testing import CliRunner, Result

from spacy_bioclin.catalog.tasks import load_tasks
from spacy_bioclin.cli import app
from spacy_bioclin.corpora.bioc_format import format_bioc
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.corpora.formats import FORMATS, find_files
from spacy_bioclin.corpora.tables.formats import TABLE_FORMATS
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.types import GOLD_KEY, AnnotatedText

TEXT = "Paciente de 40 años.\r\nIngresa por tos."
ANN = "T1\tEDAD 12 19\t40 años\n#1\tAnnotatorNotes T1\tC1\nT2\tEDAD 12 14\t40\n*\tEquiv T1 T2\n"
ROOT = Path(__file__).parents[2]


def convert(*args: str | Path) -> Result:
    return CliRunner().invoke(app, ["convert", *map(str, args)])


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "brat"
    folder.mkdir()
    for i in range(3):
        (folder / f"note{i}.txt").write_bytes(TEXT.encode())
        (folder / f"note{i}.ann").write_bytes(ANN.encode())
    return folder


def test_brat_to_docs_to_brat(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "corpus" / "train.spacy"
    result = convert("brat", corpus, out, "--lang", "es", "--layer", "phi", "--task", "mine")
    assert result.exit_code == 0, result.output
    assert "nested" in result.stderr and "Loss report" in result.stderr
    docs = list(read_docs(out, Vocab()))
    assert [doc.text for doc in docs] == [TEXT] * 3
    assert [[span.text for span in doc.spans["phi"]] for doc in docs] == [["40 años", "40"]] * 3
    assert not any(doc.ents for doc in docs)
    assert [sent.text.strip() for sent in docs[0].sents] == TEXT.split("\r\n")
    assert [doc.user_data[GOLD_KEY]["id"] for doc in docs] == ["note0", "note1", "note2"]
    assert {doc.user_data[GOLD_KEY]["task"] for doc in docs} == {"mine"}
    report = json.loads((tmp_path / "corpus" / "train.report.json").read_text())
    assert (report["docs"], report["read"], report["kept"], report["nested"]) == (3, 6, 6, 3)
    assert report["files"]["nested"] == {f"note{i}.ann": 1 for i in range(3)}

    assert convert("spacy", out, tmp_path / "back").exit_code == 0
    for file in sorted(corpus.iterdir()):
        assert (tmp_path / "back" / file.name).read_bytes() == file.read_bytes()
    again = convert("spacy", out, tmp_path / "back")
    assert again.exit_code == 1 and "exists already" in again.stderr


def test_the_layer_null_leaves_a_label_out(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.spacy"
    for note in corpus.glob("*.ann"):
        note.write_text(f"{ANN}T3\tSINTOMA 34 37\ttos\n", newline="")
    options = ("--lang", "es", "--layer", "EDAD=clinical", "--layer", "*=null")
    result = convert("brat", corpus, out, *options, "--annotated", "EDAD")
    assert result.exit_code == 0, result.output
    docs = list(read_docs(out, Vocab()))
    assert {span.label_ for doc in docs for span in doc.spans["clinical"]} == {"EDAD"}
    assert {key for doc in docs for key in doc.spans} == {"clinical"}
    assert json.loads((tmp_path / "x.report.json").read_text())["left_out"] == 3


def test_the_catalogue_sets_language_layers_and_labels(tmp_path: Path) -> None:
    source = tmp_path / "x.txt"
    source.write_text("7|t|Ataxia.\n7|a|Rare.\n7\t0\t6\tAtaxia\tSpecificDisease\tD1\n")
    out = tmp_path / "x.spacy"
    report = tmp_path / "losses.json"
    result = convert("pubtator", source, out, "--task", "ncbi-disease", "--report", report)
    assert result.exit_code == 0, result.output
    (doc,) = read_docs(out, Vocab())
    assert [(ent.text, ent.label_, ent.kb_id_) for ent in doc.ents] == [("Ataxia", "Disease", "D1")]
    assert json.loads(report.read_text())["kept"] == 1


def test_common_labels(tmp_path: Path) -> None:
    source = tmp_path / "x.txt"
    tags = ("7\t0\t6\tAtaxia\tDisease\tD1", "7\t14\t18\tLead\tChemical\tD2")
    source.write_text("7|t|Ataxia.\n7|a|Rare. Lead.\n" + "\n".join(tags) + "\n")
    for task, spans, labels in (
        ("bc5cdr", [("Ataxia", "DISEASE", "D1"), ("Lead", "DRUG", "D2")], ["DISEASE", "DRUG"]),
        ("bc5cdr-disease", [("Ataxia", "DISEASE", "D1")], ["DISEASE"]),
        ("ncbi-disease", [("Ataxia", "DISEASE", "D1"), ("Lead", "DISEASE", "D2")], ["DISEASE"]),
    ):
        out = tmp_path / f"{task}.spacy"
        result = convert("pubtator", source, out, "--task", task, "--common")
        assert result.exit_code == 0, result.output
        (doc,) = read_docs(out, Vocab())
        assert not doc.has_annotation("ENT_IOB") and list(doc.spans) == ["clinical"]
        found = [(span.text, span.label_, span.kb_id_) for span in doc.spans["clinical"]]
        assert found == spans
        assert doc.user_data[GOLD_KEY]["annotated"] == {"clinical": tuple(labels)}
    result = convert("pubtator", source, tmp_path / "plain.spacy", "--task", "bc5cdr")
    assert result.exit_code == 0, result.output
    (doc,) = read_docs(tmp_path / "plain.spacy", Vocab())
    assert "annotated" not in doc.user_data[GOLD_KEY]


def test_labels_of_a_corpus_of_ones_own(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.spacy"
    options = ("--lang", "es", "--layer", "clinical", "--label", "EDAD=AGE")
    annotated = ("--annotated", "AGE, DRUG", "--annotated", "SEX")
    result = convert("brat", corpus, out, *options, *annotated)
    assert result.exit_code == 0, result.output
    doc = next(read_docs(out, Vocab()))
    assert {span.label_ for span in doc.spans["clinical"]} == {"AGE"}
    assert doc.user_data[GOLD_KEY]["annotated"] == {"clinical": ("AGE", "DRUG", "SEX")}
    assert "without a span: DRUG, SEX" in " ".join(result.stderr.split())
    report = json.loads((tmp_path / "x.report.json").read_text())
    assert report["unused_labels"] == ["DRUG", "SEX"]


def test_a_bad_document_is_an_error_or_a_counted_skip(corpus: Path, tmp_path: Path) -> None:
    (corpus / "note1.ann").write_text("T1\t12 19\t40 años\n")
    (corpus / "note2.txt").unlink()
    out = tmp_path / "x.spacy"
    result = convert("brat", corpus, out, "--lang", "es")
    assert result.exit_code == 1 and not out.exists()
    assert "note1.ann, line 1: malformed T line" in result.stderr.replace("\n", " ")
    assert "--skip-bad" in result.stderr and "40 años" not in result.stderr
    result = convert("brat", corpus, out, "--lang", "es", "--skip-bad")
    assert result.exit_code == 0, result.output
    report = json.loads((tmp_path / "x.report.json").read_text())
    assert (report["docs"], report["skipped"]) == (1, 2)
    assert report["files"]["skipped"] == {"note1.ann": 1, "note2.ann": 1}


def test_a_file_that_is_not_utf8_is_skipped_too(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"tos\tO\n")
    (tmp_path / "b.tsv").write_bytes("señora\tO\n".encode("latin-1"))
    (tmp_path / "c.tsv").write_bytes(b"tos\n")
    out = tmp_path / "x.spacy"
    result = convert("columns", tmp_path, out, "--lang", "es", "--skip-bad")
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "x.report.json").read_text())["skipped"] == 2
    result = convert("columns", tmp_path / "c.tsv", tmp_path / "y.spacy", "--lang", "es")
    assert result.exit_code == 1 and result.stderr.count("--skip-bad") == 1


def test_too_much_loss_is_an_error_that_leaves_out_as_it_was(corpus: Path, tmp_path: Path) -> None:
    (corpus / "note1.ann").write_text("T1\tEDAD 0 0\t\n")
    out = tmp_path / "x.spacy"
    out.write_text("before")
    result = convert("brat", corpus, out, "--lang", "es", "--overwrite")
    assert result.exit_code == 1 and out.read_text() == "before"
    assert "1 of 5 spans are lost" in result.stderr
    assert json.loads((tmp_path / "x.report.json").read_text())["lost"] == 1
    options = ("--lang", "es", "--allow-loss", "--overwrite")
    assert convert("brat", corpus, out, *options).exit_code == 0
    assert len(list(read_docs(out, Vocab()))) == 3


COLUMNS = "-DOCSTART-\tO\n\nTos\tB-FINDING\nseca\tI-FINDING\n\nNiega\tO\nfiebre\tB-FINDING\n\n"
PUBTATOR = "7|t|Ataxia.\n7|a|Rare.\n7\t0\t6\tAtaxia\tDisease\tD1\n7\tCID\tD3\tD1\n\n"
I2B2 = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<deIdi2b2>\n<TEXT><![CDATA[Ana, 40]]></TEXT>\n<TAGS>\n'
    '  <NAME id="P0" start="0" end="3" text="Ana" TYPE="PATIENT"/>\n</TAGS>\n</deIdi2b2>\n'
)


FILES = {"columns": ("x.tsv", COLUMNS), "pubtator": ("x.txt", PUBTATOR), "i2b2": ("x.xml", I2B2)}
BETWEEN = {"brat": "brat", "spacy": "d.spacy", "bioc": "b.json"}


def test_every_format_is_written_and_read_back(tmp_path: Path) -> None:
    for to, (name, content) in FILES.items():
        for between, place in BETWEEN.items():
            folder = tmp_path / f"{to} {between}"
            folder.mkdir()
            (folder / name).write_bytes(content.encode())
            options = ("--to", between, "--lang", "es")
            result = convert(to, folder / name, folder / place, *options)
            assert result.exit_code == 0, (to, between, result.output)
            out = folder / "out" / ("" if to == "i2b2" else name)
            result = convert(between, folder / place, out, "--to", to)
            assert result.exit_code == 0, (to, between, result.output)
            written, wanted = (folder / "out" / name).read_text("utf-8"), content
            if to == "pubtator" and between != "spacy":
                written, wanted = ("\n".join(sorted(t.split("\n"))) for t in (written, wanted))
            elif to == "i2b2" and between == "brat":  # ids of spans begin with T
                wanted = content.replace("P0", "T1")
            elif to == "i2b2" and between == "bioc":  # it has no element beside the label
                wanted = content.replace('NAME id="P0"', 'PATIENT id="P0"')
                wanted = wanted.replace(' TYPE="PATIENT"', "")
            assert written == wanted, (to, between)
            if to != "i2b2":
                assert out.stat().st_mode & 0o777 == 0o600, (to, between)


def test_what_a_format_cannot_hold(corpus: Path, tmp_path: Path) -> None:
    (corpus / "note0.txt").write_bytes(TEXT.replace("Ingresa", "\nIngresa").encode())
    for to, out, message in (
        ("columns", "x.tsv", "note0: columns hold words that are separated by single"),
        ("pubtator", "x.txt", "note0: PubTator holds a title and an abstract"),
        ("bioc", "x.txt", "want a file for bioc, ending in .xml or .json"),
        ("docx", "x", "--to is 'docx', want one of brat,"),
        ("spacy", "x", "has to end in .spacy"),
    ):
        result = convert("brat", corpus, tmp_path / out, "--to", to, "--lang", "es")
        said = result.stderr.replace("\n", " ")
        assert result.exit_code == 1 and message in said, (to, out, said)
        assert not (tmp_path / out).exists() and "Paciente" not in said


def test_spans_that_a_format_cannot_hold_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("tos seca .")
    ann = "T1\tA 0 8\ttos seca\nT2\tB 0 3\ttos\nR1\tx a:T1 b:T2\n#1\tAnnotatorNotes T1\tbad\n"
    (tmp_path / "a.ann").write_text(ann)
    out = tmp_path / "x.tsv"
    result = convert("brat", tmp_path / "a.ann", out, "--to", "columns")
    assert result.exit_code == 1 and not out.exists()
    assert "a: columns cannot hold all of its spans" in result.stderr
    result = convert("brat", tmp_path / "a.ann", out, "--to", "columns", "--allow-loss")
    assert result.exit_code == 0, result.output
    for lost in ("1 spans", "1 relations", "1 notes"):
        assert f"cannot hold them: {lost}" in result.stderr
    assert out.read_text() == "tos\tB-A\nseca\tI-A\n.\tO\n\n"


def test_ids_stay_inside_the_folder(tmp_path: Path) -> None:
    ids = ["../up", "/etc/x", "a/b", "a b", "a%2Fb", ".", "..", "a", "a", "a-2", "C:\\x", "ñ", "%"]
    documents = [AnnotatedText(id, f"Nota {number}.") for number, id in enumerate(ids)]
    (tmp_path / "in.xml").write_text(format_bioc(documents), "utf-8")
    out = tmp_path / "deep" / "out"
    for to in ("brat", "i2b2"):
        result = convert("bioc", tmp_path / "in.xml", out, "--to", to)
        assert result.exit_code == 0, result.output
        suffix = ".txt" if to == "brat" else ".xml"
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert len(files) == 1 + len(ids) * (2 if to == "brat" else 1)
        assert all(path.parent == out for path in files if path.name != "in.xml")
        read = [FORMATS[to].read(path, _raise)[0] for path in out.glob(f"*{suffix}")]
        found = {document.text: document.id for document in read}
        expected = [*ids[:8], "a-2", "a-2-2", *ids[10:]]
        assert [found[document.text] for document in documents] == expected
        assert convert("bioc", tmp_path / "in.xml", out, "--to", to).exit_code == 1
        out = tmp_path / "deep" / "xml"
        shutil.rmtree(tmp_path / "deep")


def _raise(name: str, error: BioclinError) -> None:
    raise error


def test_an_output_is_replaced_only_if_it_is_one(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.spacy"
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")
    result = convert("brat", corpus, out, "--lang", "es", "--overwrite")
    assert result.exit_code == 1 and "not an output of this command" in result.stderr
    assert (out / "thesis.txt").read_text() == "years of work"
    shutil.rmtree(out)
    assert convert("brat", corpus, out, "--lang", "es").exit_code == 0
    assert out.stat().st_mode & 0o777 == 0o600
    result = convert("brat", corpus, out, "--lang", "es")
    assert result.exit_code == 1 and "or --overwrite" in result.stderr
    assert convert("brat", corpus, out, "--lang", "es", "--overwrite").exit_code == 0
    result = convert("spacy", out, out, "--lang", "es", "--overwrite")
    assert result.exit_code == 1 and "is the input" in result.stderr
    result = convert("spacy", out, corpus, "--overwrite")
    assert result.exit_code == 0
    assert sorted(path.name for path in corpus.iterdir()) == [
        f"note{i}.{suffix}" for i in range(3) for suffix in ("ann", "txt")
    ]
    (corpus / "README.md").touch()
    result = convert("spacy", out, corpus, "--overwrite")
    assert result.exit_code == 1 and "it holds README.md" in result.stderr


# Arguments, in which IN is a corpus and NONE is missing, and what the message has.
MISTAKES: list[tuple[list[str], str]] = [
    (["bratt", "IN", "x.spacy", "--lang", "es"], "format is 'bratt', want one of brat,"),
    (["brat", "IN", "x.spacy"], "the language is not known"),
    (["brat", "IN", "x.spacy", "--task", "medocan"], "the language is not known"),
    (["brat", "IN", "x.spacy", "--lang", "qq"], "--lang is 'qq'"),
    (
        ["brat", "IN", "x.spacy", "--lang", "es", "--layer", "A=phi"],
        "no layer is set for label",
    ),
    (["brat", "IN", "x.spacy", "--lang", "es", "--layer", "A="], "--layer wants the name"),
    (
        ["brat", "IN", "x.spacy", "--lang", "es", "--annotated", "DRUG"],
        "note0.ann: has spans of 'EDAD', but 'EDAD' is not one of the labels",
    ),
    (["brat", "IN", "x.spacy", "--lang", "es", "--annotated", "A,"], "wants names of labels"),
    (
        ["brat", "IN", "x.spacy", "--lang", "es", "--common"],
        "--common needs --task with one of",
    ),
    (
        ["brat", "IN", "x.spacy", "--task", "nubes", "--common"],
        "--common needs --task with one",
    ),
    (
        ["brat", "IN", "x.spacy", "--task", "distemist", "--common", "--annotated", "A"],
        "--annotated cannot be given with --common",
    ),
    (
        ["brat", "IN", "x.spacy", "--task", "distemist", "--common", "--layer", "a"],
        "--layer cannot be given with --common",
    ),
    (
        ["brat", "IN", "x.spacy", "--task", "symptemist", "--common"],
        "no layer is set for label 'EDAD'",
    ),
    (
        ["brat", "IN", "x.spacy", "--lang", "es", "--label", "A=X", "--label", "A=Y"],
        "--label is given twice for 'A': 'X' and 'Y'",
    ),
    (
        ["brat", "IN", "x.spacy", "--lang", "es", "--layer", "phi", "--layer", "ents"],
        "--layer is given twice for all labels: 'phi' and 'ents'",
    ),
    (
        ["brat", "IN", "x.spacy", "--lang", "es", "--label", "A=X", "--label", "B=x"],
        "--label: 'X' and 'x' differ only in case",
    ),
    (["brat", "IN", "x.spacy", "--lang", "es", "--label", "A="], "--label wants a new name"),
    (["brat", "IN", "out", "--task", "distemist", "--common"], "--common: only Docs have this"),
    (["brat", "IN", "out", "--annotated", "EDAD"], "--annotated: only Docs have this"),
    (["i2b2", "IN", "x.spacy", "--lang", "es"], "no .xml file"),
    (["brat", "NONE", "x.spacy", "--lang", "es"], "no such file or folder"),
]


def test_mistakes(corpus: Path, tmp_path: Path) -> None:
    paths = {"IN": corpus, "NONE": tmp_path / "none"}
    paths |= {name: tmp_path / name for name in ("x.spacy", "out")}
    before = set(tmp_path.iterdir())
    for args, message in MISTAKES:
        result = convert(*(paths.get(arg, arg) for arg in args))
        assert message in result.stderr.replace("\n", " "), (args, result.output)
        assert result.exit_code == 1 and "Traceback" not in result.output, args
        assert set(tmp_path.iterdir()) == before, args


def test_a_place_that_cannot_be_written(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for out in (tmp_path / "file" / "x.spacy", tmp_path / "file", tmp_path / "file" / "folder"):
        result = convert("brat", corpus, out, "--lang", "es")
        assert result.exit_code == 1 and result.stderr.startswith("bioclin: ")
        assert str(tmp_path / "file") in result.stderr


def test_catalogue() -> None:
    tasks = load_tasks()
    assert {"meddocan", "pharmaconer", "cantemist", "bc5cdr", "ncbi-disease"} <= set(tasks)
    for task in tasks.values():
        assert task.format in (TABLE_FORMATS if task.is_table else FORMATS)
        assert all(isinstance(paths, list) for paths in task.splits.values())
        if task.is_table:
            continue
        metrics = {
            "ents_f" if layer == "ents" else f"spans_{layer}_f" for layer in task.layer_names
        }
        assert task.metric in ({"rels_f"} if task.relations else metrics)
    assert tasks["meddocan"].layers == {"*": "phi"}


def test_a_split_of_a_folder_that_holds_several(tmp_path: Path) -> None:
    folder = tmp_path / "jnlpba" / "standoff" / "train"
    folder.mkdir(parents=True)
    for name in ("90110496", "99428687"):  # dev and train
        (folder / f"{name}.txt").write_text("IL-2 gene", "utf-8")
        (folder / f"{name}.ann").write_text("T1\tDNA 0 9\tIL-2 gene\n", "utf-8")
    out = tmp_path / "dev.spacy"
    result = convert("brat", folder, out, "--task", "jnlpba")
    assert result.exit_code == 1 and "train and dev: choose one with --split" in result.stderr
    for options, wrong in (
        (("--split", "dev"), "needs --task"),
        (("--split", "x"), "needs --task"),
    ):
        assert wrong in convert("brat", folder, out, "--lang", "en", *options).stderr
    result = convert("brat", folder, out, "--task", "jnlpba", "--split", "eval")
    assert result.exit_code == 1 and "want one of train, dev, test" in result.stderr
    assert not out.exists()
    assert convert("brat", folder, out, "--task", "jnlpba", "--split", "dev").exit_code == 0
    [doc] = read_docs(out, Vocab())
    assert doc.user_data[GOLD_KEY]["id"] == "90110496"
    assert (
        convert("brat", folder, tmp_path / "b", "--task", "jnlpba", "--split", "dev").exit_code == 0
    )
    assert {path.stem for path in (tmp_path / "b").iterdir()} == {"90110496"}


def test_the_demonstration_corpus(tmp_path: Path) -> None:
    (source,) = load_tasks()["demo"].splits["test"]
    folder = ROOT / source.replace("/es/", "/en/")
    result = convert("brat", folder, tmp_path / "x.spacy", "--task", "demo", "--lang", "en")
    assert result.exit_code == 0, result.output
    report = json.loads((tmp_path / "x.report.json").read_text())
    assert (report["docs"], report["lost"], report["not_in_ents"]) == (30, 0, 0)
    docs = list(read_docs(tmp_path / "x.spacy", Vocab()))
    assert {ent.label_ for doc in docs for ent in doc.ents} == {"PROBLEM", "DRUG", "PROCEDURE"}
    assert "NAME" in {span.label_ for doc in docs for span in doc.spans["phi"]}


@pytest.mark.slow
@pytest.mark.corpora
def test_the_files_of_the_catalogue(data_dir: Path) -> None:
    tasks = load_tasks()
    n_files = {
        name: {
            split: len(find_files(tasks[name].format, [data_dir / path for path in paths]))
            for split, paths in tasks[name].splits.items()
        }
        for name in ("cantemist", "jnlpba", "nubes", "quaero")
    }
    assert n_files["cantemist"] == {"train": 501, "dev": 500, "test": 300}
    assert n_files["jnlpba"] == {"train": 2000, "dev": 2000, "test": 404}  # two share a folder
    assert sum(n_files["nubes"].values()) == 608
    assert n_files["quaero"] == {"train": 11 + 833, "dev": 12 + 832, "test": 15 + 833}
