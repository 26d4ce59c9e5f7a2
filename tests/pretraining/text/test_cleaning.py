"""Raw text into a corpus for pretraining."""

import bz2
import gzip
import json
import lzma
import random
from pathlib import Path
from typing import Any

import numpy
import pytest
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.pretraining.text import cleaning
from spacy_bioclin.pretraining.text.cleaning import clean_texts
from spacy_bioclin.pretraining.text.documents import (
    clean_document,
    document_noise,
    language_of,
    normalize,
    sentence_noise,
    split_sentences,
)
from spacy_bioclin.pretraining.text.repeats import MAX_DOCUMENTS

LANGS = ("es", "en")
NO_TEST = numpy.empty(0, numpy.uint64)
SPANISH = (
    "Paciente de 40 años que acude al servicio de urgencias por dolor torácico de dos horas. "
    "La exploración física y el electrocardiograma fueron normales en todo momento."
)
ENGLISH = (
    "A 40-year-old woman came to the emergency department with chest pain for two hours. "
    "Her physical examination and the electrocardiogram were normal at all times."
)
FRENCH = (
    "Patiente de quarante ans qui se présente aux urgences pour une douleur thoracique depuis "
    "deux heures. L'examen clinique et l'électrocardiogramme étaient tout à fait normaux."
)


def note(number: int, n_sentences: int = 4) -> str:
    """An invented note of Spanish words; other numbers have hardly a 5-gram in common."""
    words = SPANISH.replace(".", "").split()
    chance = random.Random(number)
    sentences = (" ".join(chance.choices(words, k=15)).lower() for _ in range(n_sentences))
    return " ".join(f"{sentence.capitalize()}." for sentence in sentences)


def clean(folder: Path, *documents: str, **settings: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """Clean documents given as lines of one file. RETURNS: The report; name -> file content."""
    source, out = folder / "in.txt", folder / "out"
    source.write_text("\n".join(documents), encoding="utf-8")
    report = clean_texts([source], out, **{"langs": LANGS, "held_out": 0.0, **settings})
    return report, {path.name: path.read_bytes().decode() for path in out.iterdir()}


def adds_up(row: dict[str, Any]) -> bool:
    parts = [*row["kept"].values(), *row["dropped"].values()]
    return all(n == sum(part[unit] for part in parts) for unit, n in row["read"].items())


def test_documents_go_to_the_file_of_their_language(tmp_path: Path) -> None:
    report, files = clean(tmp_path, SPANISH, "", ENGLISH, FRENCH)
    assert files["es.train.txt"] == SPANISH.replace(". ", ".\n") + "\n\n"
    assert files["en.train.txt"] == ENGLISH.replace(". ", ".\n") + "\n\n"
    assert files["es.held-out.txt"] == files["en.held-out.txt"] == ""
    assert json.loads(files["report.json"]) == report
    assert report["read"]["documents"] == 3
    assert report["dropped"] == {"language": {"documents": 1, "sentences": 2, "words": 25}}
    assert "electrocardiogram" not in files["report.json"]


def test_only_the_wanted_language(tmp_path: Path) -> None:
    report, files = clean(tmp_path, SPANISH, ENGLISH, langs=("es",))
    assert sorted(files) == ["es.held-out.txt", "es.train.txt", "report.json"]
    assert report["dropped"]["language"]["documents"] == 1


def test_the_report_adds_up(tmp_path: Path) -> None:
    letters = "Hemograma: 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31."
    documents = [note(number) for number in range(30)]
    documents += [f"{note(number)} {letters} {FRENCH} Ya." for number in range(30, 40)]
    documents += [documents[0], documents[1].upper(), f"{documents[35]} Fin del informe.", "Sin."]
    documents += [FRENCH, f"{note(3, 1)} {note(5, 1)}"]
    report, files = clean(tmp_path, *documents, held_out=0.2)
    assert adds_up(report) and adds_up(report["files"]["in.txt"])
    assert report["read"]["documents"] == len(documents)
    dropped = {reason: n["documents"] for reason, n in report["dropped"].items()}
    assert dropped["duplicate_document"] == 2 and dropped["short_document"] == 1
    assert dropped["near_duplicate"] == 1 and dropped["nothing_new"] == 1
    assert report["dropped"]["sentence_language"]["sentences"] == 10 + 1
    assert report["dropped"]["few_letters"]["sentences"] == 10 + 2
    for name, n in report["kept"].items():
        blocks = files[f"{name}.txt"].split("\n\n")[:-1]
        assert len(blocks) == n["documents"]
        assert sum(len(block.split("\n")) for block in blocks) == n["sentences"]
        assert sum(len(block.split()) for block in blocks) == n["words"]


@pytest.mark.slow
def test_result_does_not_depend_on_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [note(number) for number in range(20)] + [note(7), ENGLISH, FRENCH]
    monkeypatch.setattr(cleaning, "BATCH_BYTES", 1000)  # more batches than may wait
    results = []
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        folder.mkdir()
        results.append(clean(folder, *documents, held_out=0.1, workers=workers))
    assert results[0] == results[1]
    assert results[0][0]["dropped"]["duplicate_document"]["documents"] == 1


def test_held_out_does_not_depend_on_order(tmp_path: Path) -> None:
    documents = [note(number, 2) for number in range(120)]
    held_out = []
    for name, order in (("a", documents), ("b", documents[::-1]), ("c", documents[:60])):
        (tmp_path / name).mkdir()
        _, files = clean(tmp_path / name, *order, held_out=0.1)
        held_out.append(set(files["es.held-out.txt"].split("\n\n")[:-1]))
    assert held_out[0] == held_out[1] > held_out[2]
    assert 4 <= len(held_out[0]) <= 22  # 12 expected, standard deviation 3.3


def test_a_long_sentence_is_kept_once(tmp_path: Path) -> None:
    long, short = note(1, 1), "Sin alergias."
    documents = [f"{note(number)} {long} {short} {long} {short}" for number in range(2, 4)]
    report, files = clean(tmp_path, *documents)
    assert files["es.train.txt"].count(long) == 1
    assert files["es.train.txt"].count(short) == 4
    assert report["dropped"] == {
        "duplicate_sentence": {"documents": 0, "sentences": 3, "words": 45}
    }


def test_boilerplate_stays_in_some_documents(tmp_path: Path) -> None:
    documents = [f"{note(number)} Consulte a su médico." for number in range(MAX_DOCUMENTS + 3)]
    report, files = clean(tmp_path, *documents)
    assert files["es.train.txt"].count("Consulte a su médico.") == MAX_DOCUMENTS
    assert report["dropped"] == {"boilerplate": {"documents": 0, "sentences": 3, "words": 12}}


def test_near_duplicates_are_dropped(tmp_path: Path) -> None:
    text = note(1, 20)
    words = text.split()
    near, far = words.copy(), words.copy()
    near[10] = "otro"  # 5 of 296 5-grams
    far[2::12] = ["otro"] * len(far[2::12])  # 5 of 12
    report, _ = clean(tmp_path, text, " ".join(near), " ".join(far))
    assert report["dropped"]["near_duplicate"]["documents"] == 1
    assert report["kept"]["es.train"]["documents"] == 2


def test_test_splits_are_kept_out(tmp_path: Path) -> None:
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "note.txt").write_text(note(1), encoding="utf-8")
    report, files = clean(tmp_path, note(1), note(2), against=[tmp_path / "test"])
    assert report["dropped"]["test_overlap"]["documents"] == 1
    assert note(1, 1) not in files["es.train.txt"] and note(2, 1) in files["es.train.txt"]


def test_compressed_files_and_folders(tmp_path: Path) -> None:
    folder = tmp_path / "raw"
    (folder / "es").mkdir(parents=True)
    (folder / "es" / "a.txt.xz").write_bytes(lzma.compress(note(1).encode()))
    (folder / "b.txt.gz").write_bytes(gzip.compress(note(2).encode()))
    (folder / "c.txt.bz2").write_bytes(bz2.compress(note(3).encode()))
    (folder / "d.txt").write_bytes(b"\xef\xbb\xbf" + note(4).encode() + b"\r\n")
    (folder / "e.json").write_text("{}")
    seen: list[tuple[float, int]] = []
    report = clean_texts(
        [folder],
        tmp_path / "out",
        langs=LANGS,
        held_out=0.0,
        on_progress=lambda share, n_docs: seen.append((share, n_docs)),
    )
    assert list(report["files"]) == ["b.txt.gz", "c.txt.bz2", "d.txt", "es/a.txt.xz"]
    assert report["kept"]["es.train"] == {"documents": 4, "sentences": 16, "words": 240}
    assert seen[-1] == (1.0, 4) and seen == sorted(seen)
    text = (tmp_path / "out" / "es.train.txt").read_bytes()
    assert b"\r" not in text and "\ufeff" not in text.decode()


def test_errors_name_thing_and_remedy(tmp_path: Path) -> None:
    with pytest.raises(BioclinError, match="language is 'xx', want some of en, es"):
        clean(tmp_path, SPANISH, langs=("xx",))
    with pytest.raises(BioclinError, match="held-out is 1, want a share"):
        clean(tmp_path, SPANISH, held_out=1)
    with pytest.raises(BioclinError, match="workers is 0"):
        clean(tmp_path, SPANISH, workers=0)
    with pytest.raises(BioclinError, match=r"left of 2 \(language 2\); nothing was written") as e:
        clean(tmp_path, FRENCH, FRENCH.upper())
    assert "urgences" not in str(e.value)
    with pytest.raises(BioclinError, match="left of 0"):
        clean(tmp_path, "", " ")
    with pytest.raises(BioclinError, match="lies in the output folder"):
        clean_texts([tmp_path / "in.txt"], tmp_path, langs=LANGS, held_out=0)
    (tmp_path / "bad.txt").write_bytes(SPANISH.encode() + b"\n\xff\n")
    with pytest.raises(BioclinError, match=r"bad\.txt, line 2: not UTF-8"):
        clean_texts([tmp_path / "bad.txt"], tmp_path / "out", langs=LANGS, held_out=0)
    for data in (b"no xz", lzma.compress(note(1).encode())[:-20]):
        (tmp_path / "bad.txt.xz").write_bytes(data)
        with pytest.raises(BioclinError, match=r"bad\.txt\.xz: broken \.xz file"):
            clean_texts([tmp_path / "bad.txt.xz"], tmp_path / "out", langs=LANGS, held_out=0)
    assert list((tmp_path / "out").iterdir()) == []  # nothing half written


def test_an_error_leaves_the_corpus_that_was_there(tmp_path: Path) -> None:
    _, before = clean(tmp_path, SPANISH)
    with pytest.raises(BioclinError):
        clean(tmp_path, FRENCH)
    assert {path.name: path.read_text() for path in (tmp_path / "out").iterdir()} == before


def test_command(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text(f"{SPANISH}\n{ENGLISH}\n", encoding="utf-8")
    options = ["-o", str(tmp_path / "out"), "--lang", "es", "--workers", "1"]
    result = CliRunner().invoke(app, ["clean-text", str(tmp_path / "in.txt"), *options])
    assert result.exit_code == 0, result.output
    assert "kept: es.train.txt" in result.stderr and "electro" not in result.output
    result = CliRunner().invoke(app, ["clean-text", str(tmp_path / "in.txt"), *options])
    assert result.exit_code == 1 and "exists already" in result.stderr
    options.append("--overwrite")
    result = CliRunner().invoke(app, ["clean-text", str(tmp_path / "none"), *options])
    assert result.exit_code == 1 and "no such file or folder" in result.stderr


def test_normalize() -> None:
    assert normalize("a\u00a0b\t\r\n c\x00d\ufeff") == "a b c d"
    assert normalize("neumoni\u0301a co\u00admu\u200bn \uf0b7 5 µg/m²") == "neumonía comun 5 µg/m²"


def test_language() -> None:
    for text, langs, lang in (
        (SPANISH, LANGS, "es"),
        (ENGLISH, LANGS, "en"),
        (ENGLISH, ("es",), ""),
        (FRENCH, LANGS, ""),
        ("La douleur est vive", LANGS, "es"),  # too short to tell: some wanted language
    ):
        found = language_of(text, langs)
        assert found == lang if len(text) > 80 else found in langs


def test_noise_of_sentences() -> None:
    reasons = {
        "Afebril.": "",
        "TA 120/80, FC 72 lpm.": "",
        "Hb 13,2 g/dl, leucocitos 8.500, plaquetas 220.000.": "",
        "3.2.1.": "few_letters",
        "Tabla 1 2 3 4 5 6 7 8 9 10 11 12.": "letter_share",
        "Nombre (*) [+] ==": "symbol_share",
        "Firma del médico responsable ..........": "repetition",
        "sí " * 8 + "que no": "repetition",
        FRENCH: "sentence_language",
        ENGLISH: "",
    }
    assert {sentence: sentence_noise(sentence, LANGS) for sentence in reasons} == reasons


def test_noise_of_documents() -> None:
    assert document_noise([]) == "short_document"
    assert document_noise(["Sin alergias.", "Afebril."]) == "short_document"
    assert document_noise(["Sin alergias conocidas.", "Está afebril."]) == ""
    assert document_noise(["Valor 123456 de 123456"] * 3) == "document_letter_share"


def test_sentences_keep_every_word() -> None:
    text = normalize(f"{SPANISH} Tratado por el Dr. Pérez.Se da de alta.")
    sentences = split_sentences(text, "es")
    assert len(sentences) == 4
    assert "".join(sentences).replace(" ", "") == text.replace(" ", "")
    assert split_sentences("", "es") == []


def test_copies_have_one_key() -> None:
    keys = {
        clean_document(text, LANGS, NO_TEST).key
        for text in (SPANISH, f"  {SPANISH.upper()}", SPANISH.replace(".", ","))
    }
    assert len(keys) == 1
    assert clean_document(ENGLISH, LANGS, NO_TEST).key not in keys


def test_text_of_each_source_is_written_apart(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"{SPANISH}\n{note(1)}\n", encoding="utf-8")
    (tmp_path / "b").mkdir()
    # A repeat of another source is dropped, since the first is kept.
    (tmp_path / "b" / "c.txt").write_text(f"{SPANISH}\n{ENGLISH}\n", encoding="utf-8")
    out = tmp_path / "out"
    arguments = [f"notes={tmp_path / 'a.txt'}", f"web={tmp_path / 'b'}", "-o", str(out)]
    options = ["--lang", "es", "--lang", "en", "--held-out", "0", "--workers", "1"]
    done = CliRunner().invoke(app, ["clean-text", *arguments, *options])
    assert done.exit_code == 0, done.output
    names = {"notes.es", "web.en"}
    assert {path.name for path in out.glob("*.train.txt")} == {f"{n}.train.txt" for n in names}
    assert (out / "notes.es.train.txt").read_text("utf-8").startswith(SPANISH[:40])
    report = json.loads((out / "report.json").read_text("utf-8"))
    assert report["kept"].keys() == {f"{name}.train" for name in names}
    assert adds_up(report)


def test_bad_sources(tmp_path: Path) -> None:
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for path in paths:
        path.write_text(SPANISH, encoding="utf-8")
    for sources, message in (
        (["notes"], "has no source; name the sources of all"),
        (["a.b", "c"], "source is 'a.b'"),
    ):
        named = dict(zip(paths, sources, strict=False))
        with pytest.raises(BioclinError, match=message):
            clean_texts(paths, tmp_path / "out", langs=LANGS, held_out=0.0, sources=named)
