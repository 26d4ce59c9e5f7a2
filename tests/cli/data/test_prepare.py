"""`bioclin prepare` and `bioclin tasks` as a user types them."""

import json
from pathlib import Path

import pytest
from click.testing import Result
from spacy.vocab import Vocab
from typer.testing import CliRunner

from spacy_bioclin.catalog.tasks import SPLITS, load_tasks
from spacy_bioclin.cli import app
from spacy_bioclin.corpora.docbin import read_docs


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def get_error(*arguments: object) -> str:
    done = run(*arguments)
    assert done.exit_code == 1
    [line] = [line for line in done.stderr.splitlines() if line.startswith("bioclin: ")]
    return line


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of corpora with a small file of GAD."""
    folder = tmp_path / "data"
    (folder / "gad").mkdir(parents=True)
    (folder / "gad" / "train.tsv").write_text("a\t1\nb\t0\nc\t1\nd\t0\n")
    (folder / "gad" / "test.tsv").write_text("e\t1\nf\t0\n")
    monkeypatch.setenv("BIOCLIN_DATA", str(folder))
    return folder


def count(folder: Path) -> list[int]:
    return [len(list(read_docs(folder / f"{split}.spacy", Vocab()))) for split in SPLITS]


def test_prepare_texts(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run("prepare", "gad", out)
    assert done.exit_code == 0, done.output
    assert f"gad is in {out}: train.spacy, dev.spacy, test.spacy" in done.stdout
    assert count(out) == [3, 1, 2]
    assert "exists already" in get_error("prepare", "gad", out, "--fold", "0")
    done = run("prepare", "gad", out, "--fold", "0", "--overwrite")
    assert done.exit_code == 0 and count(out) == [3, 1, 2]
    assert {path.name for path in out.iterdir()} == {f"{split}.spacy" for split in SPLITS}


@pytest.mark.slow
def test_prepare_notes_in_both_languages(tmp_path: Path) -> None:
    for lang in ("es", "en"):
        done = run("prepare", "demo", tmp_path / lang, "--lang", lang)
        assert done.exit_code == 0, done.output
        assert "Loss report" in done.stderr
    names = {f"{split}{end}" for split in SPLITS for end in (".spacy", ".report.json")}
    assert {path.name for path in (tmp_path / "es").iterdir()} == names
    assert count(tmp_path / "es") == count(tmp_path / "en")
    assert run("prepare", "demo", tmp_path / "es", "--overwrite").exit_code == 0


def test_prepare_mistakes(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert "did you mean gad?" in get_error("prepare", "gadd", out)
    assert "has no fold '11'; it has folds 0 to 9" in get_error(
        "prepare", "gad", out, "--fold", "11"
    )
    assert "in language en, not es" in get_error("prepare", "gad", out, "--lang", "es")
    said = get_error("prepare", "rqe", out)
    assert "rqe does not exist: get it from https://" in said and "BIOCLIN_DATA" in said
    (data / "gad" / "test.tsv").write_text("e\tx\n")
    assert "test.tsv, line 1: want a sentence and the label" in get_error("prepare", "gad", out)
    assert not out.exists()
    (data / "gad" / "test.tsv").write_text("e\t1\n")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.doc").touch()
    said = get_error("prepare", "gad", tmp_path / "mine", "--overwrite")
    assert "it holds thesis.doc" in said


def test_convert_names_the_command(tmp_path: Path) -> None:
    said = get_error("convert", "hoc", tmp_path, tmp_path / "x.spacy")
    assert "`bioclin prepare TASK OUT` converts; TASK is hoc" in said


def test_list_of_tasks() -> None:
    done = run("tasks")
    listed = [line.split()[0] for line in done.stdout.splitlines() if line.strip()]
    assert done.exit_code == 0 and set(load_tasks()) <= set(listed)
    tasks = json.loads(run("tasks", "--paper", "blurb", "--kind", "pairs", "--json").stdout)
    assert list(tasks) == ["biosses"] and tasks["biosses"]["score"] == "pairs_pearson"
    tasks = json.loads(run("tasks", "--lang", "es", "--json").stdout)
    assert {"meddocan", "cantemist"} < set(tasks) and "gad" not in tasks


def test_list_marks_what_nobody_could_test() -> None:
    lines = run("tasks", "--paper", "mulyar-2020").stdout.splitlines()
    [mednli] = [line for line in lines if line.split()[:1] == ["mednli"]]
    assert mednli.split() == ["mednli", "pairs", "en", "pairs_accuracy", "agreement,", "untested"]
    assert "untested: the reader was not tested on real files." in lines


def test_one_task() -> None:
    shown = " ".join(run("tasks", "gad").stdout.split())
    for part in (
        "kind texts",
        "labels no, yes",
        "metric texts_positive_f",
        "folds 0 to 9, --fold; without it, the split of the authors",
        "licence CC BY 4.0",
        "Published, in percent",
        "RoBERTa-base 79.4 texts_positive_f Lewis 2020, table 2 median of nine folds of BioBERT",
        "Convert it: bioclin prepare gad OUT --fold 0",
    ):
        assert part in shown
    found = json.loads(run("tasks", "gad", "--json").stdout)
    assert (found["name"], found["folds"], len(found["published"])) == ("gad", 10, 8)
    shown = " ".join(run("tasks", "chemprot").stdout.split())
    assert "labels CPR:3, CPR:4, CPR:5, CPR:6, CPR:9" in shown
    assert "RoBERTa-base 69.6 relations_macro_f" in shown and "ouBioBERT 75.0 rel" in shown
    assert "reader was not tested on real files" in run("tasks", "mednli").stdout


def test_mistakes() -> None:
    for arguments, message in (
        (["--paper", "blu"], "--paper blu: unknown; did you mean blue?"),
        (["--kind", "pair"], "--kind pair: unknown; did you mean pairs?"),
        (["--lang", "de"], "--lang de: unknown; want one of en, es, fr"),
        (["gad", "--kind", "texts"], "choose from the list; leave out NAME"),
        (["eu-adr"], "did you mean euadr?"),
    ):
        assert message in get_error("tasks", *arguments)
