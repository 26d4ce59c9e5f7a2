"""`bioclin calibrate` and `bioclin augment-phi` on a few notes."""

import json
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.deid.fit import calibrate, judge
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.types import GOLD_KEY

CONFIG = {"nlp": {"tokenizer": {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}}}
NOTES = [
    (
        "Dra. Marta Olmedo. Cita el 12/03/2018 en Lugo.",
        {"Marta Olmedo": "NOMBRE_PERSONAL_SANITARIO"},
    ),
    ("Visto el 1/2/2019, tel. 913 908 121.", {"913 908 121": "NUMERO_TELEFONO"}),
    ("Acude Rosa el 7 de mayo de 2020.", {"Rosa": "NOMBRE_SUJETO_ASISTENCIA"}),
]
DATES = ("12/03/2018", "1/2/2019", "7 de mayo de 2020")


def gold_docs(make_doc) -> list[Doc]:
    docs = []
    for i, ((text, phi), day) in enumerate(zip(NOTES, DATES, strict=True)):
        doc = make_doc(text)
        found = {**phi, day: "FECHAS"}
        layer = [[text.index(v), text.index(v) + len(v), label, ""] for v, label in found.items()]
        doc.spans["phi"] = [doc.char_span(s, e, label=label) for s, e, label, _ in layer]
        doc.user_data[GOLD_KEY] = {"id": str(i), "task": "", "layers": {"phi": layer}}
        docs.append(doc)
    return docs


def test_spans_of_labels_that_were_not_annotated_are_no_mistakes() -> None:
    nlp = spacy.blank("es", config=CONFIG)
    nlp.add_pipe("bioclin_phi_rules")
    nlp.add_pipe("bioclin_deid")
    docs = gold_docs(nlp.make_doc)
    for doc in docs:
        layer = doc.user_data[GOLD_KEY]["layers"]["phi"]
        layer[:] = [item for item in layer if item[2] == "FECHAS"]
    judged = [c for _, found in judge(nlp, docs) for c in found]
    others = [c for c in judged if c.span.label != "FECHAS"]
    assert others and not any(c.correct for c in others) and all(c.annotated for c in judged)
    for doc in docs:
        doc.user_data[GOLD_KEY]["annotated"] = {"phi": ["FECHAS"]}
    judged = [c for _, found in judge(nlp, docs) for c in found]
    assert all(c.annotated == (c.span.label == "FECHAS") for c in judged)
    report = calibrate(nlp, docs, 0.99, operating_point="balanced")
    assert set(report["labels"]) == {"FECHAS"} and report["calibration_error"]["before"] < 0.1


def test_a_span_is_right_if_most_of_it_is_phi_whatever_the_label() -> None:
    """What hides PHI under another label, or with a word too much, is no false alarm."""
    nlp = spacy.blank("es", config=CONFIG)
    patterns = [("TERRITORIO", "Rosa"), ("PAIS", "Marta Olmedo."), ("CALLE", "Cita el")]
    nlp.add_pipe("span_ruler", config={"spans_key": "phi"}).add_patterns(
        [{"label": label, "pattern": text} for label, text in patterns]
    )
    nlp.add_pipe("bioclin_deid")
    judged = [
        (c.span.label, c.correct) for _, found in judge(nlp, gold_docs(nlp.make_doc)) for c in found
    ]
    assert sorted(judged) == [("CALLE", False), ("PAIS", True), ("TERRITORIO", True)]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "dev.spacy"
    docs = gold_docs(spacy.blank("es", config=CONFIG).make_doc)
    DocBin(docs=docs, store_user_data=True).to_disk(path)
    return path


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    nlp = spacy.blank("es", config=CONFIG)
    nlp.add_pipe("bioclin_phi_rules")
    nlp.to_disk(tmp_path / "rules")
    return tmp_path / "rules"


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("target", [(), ("--target-recall", "0.99")], ids=["f1", "recall"])
def test_thresholds_are_chosen_reported_and_saved(tmp_path, corpus, pipeline, target) -> None:
    out = tmp_path / "calibrated"
    shown = run("calibrate", pipeline, corpus, "-o", out, *target)
    report = json.loads((out / "deid_calibration_report.json").read_text())
    labels = report["labels"]
    point = "high_recall" if target else "balanced"
    for name in ("balanced", "high_recall"):
        assert labels["FECHAS"]["n_gold"] == 3 and labels["FECHAS"][name]["recall"] == 1.0
        assert labels["NOMBRE_SUJETO_ASISTENCIA"][name]["recall"] == 0  # no rule can find it
    nlp = spacy.load(out)
    deid = nlp.get_pipe("bioclin_deid")
    assert deid.operating_point == point == report["operating_point"]
    assert nlp.config["components"]["bioclin_deid"]["operating_point"] == point
    assert deid.thresholds["FECHAS"] > 0 and deid.calibration
    assert set(deid.operating_points) == {"balanced", "high_recall"}
    assert deid.thresholds is deid.operating_points[point]
    assert report["calibration_error"]["after"] <= report["calibration_error"]["before"]
    for text, phi in NOTES:
        assert all(value not in shown + json.dumps(report) for value in phi), text


def test_the_operating_point_is_given_saved_or_refused(tmp_path, corpus, pipeline) -> None:
    out = tmp_path / "out"
    run("calibrate", pipeline, corpus, "-o", out)

    def load(folder=out, **settings):
        config = {"components": {"bioclin_deid": settings}}
        return spacy.load(folder, config=config)

    assert load(operating_point="high_recall").get_pipe("bioclin_deid").operating_point == (
        "high_recall"
    )
    nlp = load()
    nlp.get_pipe("bioclin_deid").operating_point = "high_recall"
    thresholds = nlp.get_pipe("bioclin_deid").operating_points
    thresholds["high_recall"]["FECHAS"] = 0.1 + 0.2  # to the last digit
    nlp.to_disk(tmp_path / "again")
    assert load(tmp_path / "again").get_pipe("bioclin_deid").operating_points == thresholds
    again = tmp_path / "again"
    assert load(again).get_pipe("bioclin_deid").operating_point == "high_recall"
    assert load(again, operating_point=None).get_pipe("bioclin_deid").operating_point is not None
    with pytest.raises(BioclinError, match="'recall': want balanced or high_recall"):
        nlp.get_pipe("bioclin_deid").operating_point = "recall"
    nlp = spacy.load(pipeline)
    nlp.add_pipe("bioclin_deid", config={"operating_point": "balanced"})
    with pytest.raises(BioclinError, match="no thresholds for it; make them with bioclin calib"):
        nlp("Visto el 1/2/2019.")


def test_a_pipeline_that_an_earlier_version_calibrated(tmp_path, pipeline) -> None:
    nlp = spacy.load(pipeline)
    nlp.add_pipe("bioclin_deid")
    nlp.to_disk(tmp_path / "old")
    old = {"thresholds": {"FECHAS": 0.3}, "calibration": {}, "scheme": "meddocan"}
    (tmp_path / "old" / "bioclin_deid" / "calibration.json").write_text(json.dumps(old))
    deid = spacy.load(tmp_path / "old").get_pipe("bioclin_deid")
    assert deid.thresholds == {"FECHAS": 0.3} and deid.operating_point is None
    with pytest.raises(BioclinError, match="operating_point = 'high_recall': this pipeline has no"):
        deid.operating_point = "high_recall"
    config = {"components": {"bioclin_deid": {"operating_point": "high_recall"}}}
    with pytest.raises(BioclinError, match="operating_point = 'high_recall': this pipeline has no"):
        spacy.load(tmp_path / "old", config=config)


def test_only_high_recall_hides_what_is_doubtful(pipeline) -> None:
    nlp = spacy.load(pipeline)
    deid = nlp.add_pipe("bioclin_deid")
    deid.operating_points = {"balanced": {"FECHAS": 0.5}, "high_recall": {}}

    def hides(point: str, confidence: float) -> bool:
        deid.operating_point = point
        doc = nlp.make_doc("Acude Rosa")
        doc.spans["phi"] = [Span(doc, 1, 2, label="FECHAS", span_id="doubtful")]
        doc.spans["phi"].attrs["scores"] = [confidence]
        return "Rosa" not in nlp(doc)._.deid.text

    assert hides("high_recall", 0.01) and not hides("balanced", 0.9)


def test_components_that_are_added_are_named(tmp_path, corpus, pipeline) -> None:
    assert "Added to the pipeline: bioclin_deid\n" in run(
        "calibrate", pipeline, corpus, "-o", tmp_path / "out"
    )
    assert "Added" not in run(
        "calibrate", tmp_path / "out", corpus, "-o", tmp_path / "again", "--overwrite"
    )


def test_a_pipeline_that_finds_no_phi_is_refused(tmp_path, corpus) -> None:
    nlp = spacy.blank("es", config=CONFIG)
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "DRUG", "pattern": "levodopa"}])
    nlp.add_pipe("span_ruler", config={"spans_key": "drugs"})
    nlp.to_disk(tmp_path / "drugs")
    arguments = ["calibrate", tmp_path / "drugs", corpus, "-o", tmp_path / "out"]
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 1 and not (tmp_path / "out").exists()
    assert "no component finds PHI" in result.output and "entity_ruler" in result.output


def test_a_span_below_the_threshold_is_left(tmp_path, corpus, pipeline) -> None:
    run("calibrate", pipeline, corpus, "-o", tmp_path / "out")
    nlp = spacy.load(tmp_path / "out")
    assert "1/2/2019" not in nlp(NOTES[1][0])._.deid.text
    nlp.get_pipe("bioclin_deid").thresholds["FECHAS"] = 1.0
    assert "1/2/2019" in nlp(NOTES[1][0])._.deid.text


def test_copies_have_other_people_in_the_same_places(tmp_path, corpus) -> None:
    out = tmp_path / "more.spacy"
    run("augment-phi", corpus, "-o", out, "--lang", "es", "--copies", "2")
    nlp = spacy.blank("es", config=CONFIG)
    docs = list(read_docs(out, nlp.vocab))
    assert len(docs) == 9
    originals, copies = docs[:3], docs[3:]
    assert [doc.text for doc in originals] == [text for text, _ in NOTES]
    assert len({doc.text for doc in docs}) == 9
    for i, doc in enumerate(copies):
        _, phi = NOTES[i // 2]
        assert all(value not in doc.text for value in (*phi, DATES[i // 2]))
        layer = doc.user_data[GOLD_KEY]["layers"]["phi"]
        assert [(s.start_char, s.end_char) for s in doc.spans["phi"]] == [
            (start, end) for start, end, _, _ in layer
        ]
        before = [
            [label for *_, label, _ in originals[i // 2].user_data[GOLD_KEY]["layers"]["phi"]]
        ]
        assert sorted(label for *_, label, _ in layer) == sorted(*before)
    again = tmp_path / "again.spacy"
    run("augment-phi", corpus, "-o", again, "--lang", "es", "--copies", "2")
    assert [doc.text for doc in read_docs(again, nlp.vocab)] == [doc.text for doc in docs]


def test_mistakes(tmp_path, corpus, pipeline) -> None:
    def fails(word: str, *arguments: object) -> None:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == 1 and word in result.output, result.output

    fails("is the input", "calibrate", pipeline, corpus, "-o", pipeline)
    fails(
        "--target-recall", "calibrate", pipeline, corpus, "-o", tmp_path / "o", "--target-recall", 2
    )
    fails(
        "has no layer",
        "augment-phi",
        corpus,
        "-o",
        tmp_path / "a.spacy",
        "--lang",
        "es",
        "--layer",
        "x",
    )
    fails(
        "scheme", "augment-phi", corpus, "-o", tmp_path / "a.spacy", "--lang", "es", "--scheme", "x"
    )
