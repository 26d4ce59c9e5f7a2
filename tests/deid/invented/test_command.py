"""`bioclin invent-notes`, and the sentences that it takes from clinical text."""

import lzma
from pathlib import Path

import pytest
import spacy
from click.testing import Result
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.deid.invented.fillers import make_check
from spacy_bioclin.deid.invented.values import load_values

CLEAN = {
    "es": "La colonoscopia mostró una lesión compatible con enfermedad de Crohn.",
    "en": "The patient may resume a normal diet and bear weight as tolerated.",
}


def invent(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["invent-notes", *map(str, arguments)])


def test_notes_are_written(tmp_path: Path) -> None:
    out, again = tmp_path / "a.spacy", tmp_path / "b.spacy"
    done = invent("-o", out, "--lang", "es", "--number", 12)
    assert done.exit_code == 0, done.output
    vocab = spacy.blank("es").vocab
    docs = list(read_docs(out, vocab))
    assert len(docs) == 12
    labels = {span.label_ for doc in docs for span in doc.spans["phi"]}
    assert {"NOMBRE_SUJETO_ASISTENCIA", "FECHAS", "TERRITORIO"} <= labels
    assert invent("-o", out, "--lang", "es").exit_code == 1
    assert invent("-o", again, "--lang", "es", "--number", 12).exit_code == 0
    assert [doc.text for doc in read_docs(again, vocab)] == [doc.text for doc in docs]
    options = ["--number", 12, "--names", "held-out", "--overwrite"]
    assert invent("-o", again, "--lang", "es", *options).exit_code == 0
    assert not {doc.text for doc in read_docs(again, vocab)} & {doc.text for doc in docs}


def test_layouts_and_texts_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "layouts").mkdir()
    layout = "Seen by {doctor.last}. {text.1}"
    (tmp_path / "layouts" / "mine.txt").write_text(layout, "utf-8")
    document = f"Title. {CLEAN['en']} She saw Dr. Walker in Boston on 3/4/2019. The end.\n"
    (tmp_path / "a.txt.xz").write_bytes(lzma.compress(document.encode()))
    out = tmp_path / "a.spacy"
    texts = ["--texts", tmp_path / "a.txt.xz"]
    options = ["-o", out, "--lang", "en", "--number", 24]
    done = invent(tmp_path / "layouts", *options, *texts)
    assert done.exit_code == 0, done.output
    docs = list(read_docs(out, spacy.blank("en").vocab))
    assert sum(CLEAN["en"] in doc.text for doc in docs) > 12
    assert not any("walker" in doc.text.lower() and "boston" in doc.text.lower() for doc in docs)
    assert {span.label_ for doc in docs for span in doc.spans["phi"]} == {"DOCTOR"}


def test_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.txt").write_text("Prado.\n")
    Path("bad.txt").write_text("{pacient}")
    for options, message in (
        (["--lang", "fr"], "lang = 'fr': want one of es, en"),
        (["--lang", "es", "--names", "all"], "names = 'all': want one of training, held-out"),
        (["--lang", "es", "--scheme", "mine"], "scheme = 'mine'"),
        (["--lang", "es", "--texts", "empty.txt"], "has no sentence"),
        (["bad.txt", "--lang", "es"], "did you mean patient?"),
        (["n.txt", "--lang", "es"], "no such file or folder"),
    ):
        done = invent(*options, "-o", "o.spacy")
        assert done.exit_code == 1
        assert message in done.output.replace("\n", " ")
        assert "Prado" not in done.output
        assert not Path("o.spacy").exists()


def test_sentences_that_suggest_phi() -> None:
    wrong = []
    for lang, sentence in (
        ("es", "Acude acompañado de su hermana por dolor en la pierna."),
        ("es", "Valorado por Carmen, que pauta tratamiento con hierro."),
        ("es", "Paciente de 67 años que consulta por dolor en la pierna."),
        ("es", "Ingresa en marzo por dolor en la pierna y fiebre alta."),
        ("es", "Trasladado desde Lugo por dolor en la pierna y fiebre."),
        ("es", "Intervenido el 12/03/2019 de dolor en la pierna y fiebre."),
        ("en", "This 67-year-old has had pain in the leg and a fever."),
        ("en", "The wound was seen by Walker, who took out the stitches."),
        ("en", "The pain in the leg has been there since last March."),
        ("en", "The patient was transferred from Boston with a fever."),
        ("en", "Too short."),
    ):
        is_clean = make_check(load_values(lang, "training"))
        assert is_clean(CLEAN[lang])
        if is_clean(sentence):
            wrong.append(sentence)
    assert not wrong, wrong
