"""The metrics, the page and the command, on a small pipeline of rules."""

import json
import re
from html.parser import HTMLParser

import pytest
import spacy
from spacy.tokens import Doc, DocBin
from typer.testing import CliRunner

from spacy_bioclin.annotations.pairs import get_boundary, make_pair
from spacy_bioclin.annotations.relations import Relation, set_relations
from spacy_bioclin.cli import app
from spacy_bioclin.evaluation.confusion import ErrorExample, LayerDoc
from spacy_bioclin.evaluation.metrics import layer_metrics, run_pipeline, spacy_scores
from spacy_bioclin.evaluation.report import Piece, make_matrix, make_snippet, render_report
from spacy_bioclin.types import GOLD_KEY

pytestmark = pytest.mark.usefixtures("kept_pipelines")
TEXTS = {
    "caso-uno": "Paciente Rosalinda Etxeberria con cefalea intensa.\nToma <b>nolotil</b> & agua.",
    "caso-dos": "Cefalea tensional de Rosalinda desde hace tres días, sin fiebre; toma ibuprofeno.",
    "caso-tres": "",
}
# layer -> (surface, label)
GOLD = {
    "caso-uno": {
        "ents": [("cefalea intensa", "SINTOMA"), ("<b>nolotil</b>", "FARMACO")],
        "phi": [("Rosalinda Etxeberria", "NOMBRE")],
    },
    "caso-dos": {
        "ents": [
            ("Cefalea tensional", "SINTOMA"),
            ("fiebre", "SINTOMA"),
            ("ibuprofeno", "FARMACO"),
        ],
        "phi": [("Rosalinda", "NOMBRE")],
    },
    "caso-tres": {"ents": [], "phi": []},
}


def located(text, items):
    return [[text.index(s), text.index(s) + len(s), label, ""] for s, label in items]


@pytest.fixture(scope="module")
def nlp():
    nlp = spacy.blank("es")
    nlp.add_pipe("entity_ruler").add_patterns(
        [
            {"label": "SINTOMA", "pattern": "cefalea intensa"},  # right
            {"label": "SINTOMA", "pattern": "Cefalea"},  # too short
            {"label": "SINTOMA", "pattern": "ibuprofeno"},  # wrong label
            {"label": "FARMACO", "pattern": "agua"},  # spurious
        ]
    )
    ruler = nlp.add_pipe("span_ruler", config={"spans_key": "phi"})
    ruler.add_patterns([{"label": "NOMBRE", "pattern": "Rosalinda"}])
    return nlp


def gold_docs(nlp, layers=("ents", "phi")):
    docs = []
    for name, text in TEXTS.items():
        doc = nlp.make_doc(text)
        gold = {layer: located(text, GOLD[name][layer]) for layer in layers}
        doc.user_data[GOLD_KEY] = {"id": name, "task": "t", "layers": gold}
        docs.append(doc)
    return docs


def run(nlp, layers=("ents", "phi")):
    return run_pipeline(nlp, gold_docs(nlp, layers), lambda doc: None)


def make_page(nlp, **kwargs):
    result = run(nlp)
    metrics = {
        "pipeline": {"name": "es_reglas", "version": "1.0"},
        "corpus": {"name": "dev.spacy", "docs": 3, "words": 10},
        "layers": {name: layer_metrics(docs) for name, docs in result.layers.items()},
        "speed": {"words_per_second": 10.0},
        "date": "2026-11-20",
        "versions": {"spacy": "3"},
        "commit": None,
    }
    for layer in metrics["layers"].values():
        layer["official"] = None
    return render_report(metrics, result.layers, **kwargs)


def test_documents_annotated_for_each_label(nlp, tmp_path):
    docs = gold_docs(nlp, ["ents"])
    for doc in docs[1:]:
        doc.user_data[GOLD_KEY]["annotated"] = {"ents": ["SINTOMA"]}
        gold = doc.user_data[GOLD_KEY]["layers"]["ents"]
        gold[:] = [item for item in gold if item[2] == "SINTOMA"]
    result = run_pipeline(nlp, docs, lambda doc: None)
    metrics = layer_metrics(result.layers["ents"])
    assert metrics["docs"] == 3 and metrics["docs_per_label"] == {"FARMACO": 1, "SINTOMA": 3}
    drug = metrics["strict"]["per_type"]["FARMACO"]
    whole = layer_metrics(run(nlp, ["ents"]).layers["ents"])["strict"]["per_type"]["FARMACO"]
    assert drug["tp"] + drug["fp"] < whole["tp"] + whole["fp"] or drug["fn"] < whole["fn"]
    nlp.to_disk(tmp_path / "nlp")
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "x.spacy")
    page = tmp_path / "x.html"
    command = ["evaluate", str(tmp_path / "nlp"), str(tmp_path / "x.spacy"), "--html", str(page)]
    done = CliRunner().invoke(app, [*command, "-o", str(tmp_path / "x.json")])
    assert done.exit_code == 0, done.output
    [head] = [line for line in done.stdout.splitlines() if "Label" in line]
    [row] = [line for line in done.stdout.splitlines() if "FARMACO" in line]
    assert head.split()[-1] == "Docs" and row.split()[-1] == "1"
    assert '<th scope="col">Documents</th>' in page.read_text("utf-8")


# -- metrics ---------------------------------------------------------------------------------------


def test_run_and_metrics_by_hand(nlp):
    result = run(nlp)
    assert (result.n_docs, result.unpredicted, set(result.layers)) == (3, [], {"ents", "phi"})
    assert [doc.id for doc in result.layers["ents"]] == list(TEXTS)
    ents = layer_metrics(result.layers["ents"])
    micro = ents["strict"]["micro"]
    assert (micro["tp"], micro["fp"], micro["fn"]) == (1, 3, 4)
    assert (micro["p"], micro["r"], micro["f"]) == pytest.approx((1 / 4, 1 / 5, 2 / 9))
    assert 0 <= micro["f_interval"][0] <= micro["f"] <= micro["f_interval"][1] <= 1
    assert ents["relaxed"]["micro"]["tp"] == 2
    assert ents["confusion"] == [
        [None, "FARMACO", 1],
        ["FARMACO", None, 1],
        ["FARMACO", "SINTOMA", 1],
        ["SINTOMA", None, 1],
        ["SINTOMA", "SINTOMA", 2],
    ]
    scores = spacy_scores({"ents": ents, "phi": layer_metrics(result.layers["phi"])})
    assert scores["ents_f"] == micro["f"]
    assert scores["ents_per_type"]["FARMACO"] == {"p": 0.0, "r": 0.0, "f": 0.0}
    assert (scores["spans_phi_p"], scores["spans_phi_r"]) == (0.5, 0.5)


def test_references_are_not_changed(nlp):
    docs = gold_docs(nlp)
    before = [doc.to_bytes() for doc in docs]
    run_pipeline(nlp, docs, lambda doc: None)
    assert [doc.to_bytes() for doc in docs] == before


def test_layers_without_gold_offsets(nlp):
    doc = Doc(nlp.vocab, words=["Cefalea", "."], ents=["B-SINTOMA", "O"])
    result = run_pipeline(nlp, [doc], lambda doc: None)
    assert list(result.layers) == ["ents"]
    assert result.layers["ents"][0].reference == {(0, 7, "SINTOMA")}


def test_nested_entities_of_the_pipeline_count_before_its_flat_ones():
    nlp = spacy.blank("es")
    nlp.add_pipe("span_ruler", config={"spans_key": "ents"}).add_patterns(
        [{"label": "A", "pattern": "cefalea"}, {"label": "B", "pattern": "cefalea intensa"}]
    )
    doc = nlp.make_doc("cefalea intensa")
    layers = {"ents": [[0, 7, "A", ""], [0, 15, "B", ""]]}
    doc.user_data[GOLD_KEY] = {"id": "d", "task": "t", "layers": layers}
    result = run_pipeline(nlp, [doc], lambda doc: None)
    assert layer_metrics(result.layers["ents"])["strict"]["micro"]["f"] == 1.0


# -- page ------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Tags that are open at the end, attributes, and text."""

    VOID = ("meta",)

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.attributes, self.words = [], [], [], ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data


@pytest.fixture(scope="module")
def html(nlp):
    """A page with the text of the notes."""
    return make_page(nlp, with_text=True)


def test_page_is_well_formed_and_asks_nothing_of_the_network(html):
    page = Page(html)
    assert page.open == []
    assert "b" in page.tags and "script" not in page.tags and "link" not in page.tags
    assert not {"src", "href", "onclick"} & {name for name, _ in page.attributes}
    assert not re.search(r"https?:|url\(|@import", html)


def test_page_escapes_note_text_and_says_that_it_holds_it(html):
    assert "This page holds note text." in html
    assert "<b>nolotil" not in html
    assert "&lt;b&gt;nolotil&lt;/b&gt;" in html
    assert '<mark class="predicted">agua</mark>' in html
    assert '<mark class="gold predicted">ibuprofeno</mark>' in html
    assert "intensa. ↵ Toma" in Page(html).words


def test_page_without_text_holds_none(nlp):
    html = make_page(nlp, with_text=False)
    assert "Documents</th>" not in html  # labels are annotated in all documents
    assert "This page holds no note text." in html
    assert Page(html).open == []
    visible = Page(html).words
    for name, text in TEXTS.items():
        assert name not in html
        for word in re.findall(r"\w{5,}", text):
            assert word not in visible, word
    for layers in GOLD.values():
        for surface, _ in (item for items in layers.values() for item in items):
            assert surface not in html
    assert "FARMACO" in html and "missed" in html


def test_labels_are_escaped():
    for label in ("<script>alert(1)</script>", '"><img>'):
        docs = [LayerDoc("<i>", "Fiebre", {(0, 6, label)}, set())]
        metrics = {
            "pipeline": {"name": label, "version": label},
            "corpus": {"name": label, "docs": 1, "words": 1},
            "layers": {label: {**layer_metrics(docs), "official": None}},
            "speed": {"words_per_second": 1.0},
            "date": "",
            "versions": {},
            "commit": label,
        }
        page = Page(render_report(metrics, {label: docs}, with_text=True))
        assert page.open == []
        assert not {"script", "img", "i"} & set(page.tags)


def test_snippet_marks_both_spans_with_60_characters_around():
    text = "a" * 100 + "Ana Ruiz" + "b" * 100
    doc = LayerDoc("d", text, set(), set())
    snippet = make_snippet(ErrorExample(doc, ((100, 108, "N"), (104, 109, "N"))))
    assert snippet.pieces == [
        Piece("a" * 60, False, False),
        Piece("Ana ", True, False),
        Piece("Ruiz", True, True),
        Piece("b", False, True),
        Piece("b" * 60, False, False),
    ]


def test_snippet_at_the_ends_of_a_text_and_of_a_very_long_span():
    doc = LayerDoc("d", "Ana", set(), set())
    assert make_snippet(ErrorExample(doc, (None, (0, 3, "N")))).pieces == [
        Piece("Ana", False, True)
    ]
    doc = LayerDoc("d", "x" * 5000, set(), set())
    (piece,) = make_snippet(ErrorExample(doc, ((0, 5000, "N"), None))).pieces
    assert len(piece.text) < 420 and "[…]" in piece.text


def test_matrix_has_the_labels_that_occur_and_none_last():
    matrix = make_matrix([("B", "A", 3), ("B", None, 1), (None, "A", 2)])
    assert (matrix.rows, matrix.columns) == (["B", None], ["A", None])
    assert matrix.cells == [[(3, 0.75), (1, 0.25)], [(2, 1.0), (0, 0.0)]]


# -- command ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(nlp, tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluate")
    nlp.meta["name"] = "reglas"
    nlp.to_disk(folder / "pipeline")
    DocBin(docs=gold_docs(nlp), store_user_data=True).to_disk(folder / "dev.spacy")
    DocBin().to_disk(folder / "empty.spacy")
    return folder


def evaluate(folder, *arguments, pipeline="pipeline", corpus="dev.spacy"):
    command = ["evaluate", str(folder / pipeline), str(folder / corpus)]
    output = ["-o", str(folder / "out" / "metrics.json"), "--overwrite"]
    return CliRunner().invoke(app, [*command, *output, *map(str, arguments)])


def test_command_writes_metrics_page_and_predictions(folder, nlp):
    page, predicted = folder / "out" / "page.html", folder / "out" / "predicted.spacy"
    result = evaluate(
        folder, "--html", page, "--official", "meddocan", "--save-predictions", predicted
    )
    assert result.exit_code == 0, result.output
    written = (folder / "out" / "metrics.json").read_text(encoding="utf-8")
    metrics = json.loads(written)
    assert metrics["pipeline"] == {
        "name": "es_reglas",
        "version": "0.0.0",
        "components": ["entity_ruler", "span_ruler"],
    }
    assert metrics["corpus"]["docs"] == 3
    assert metrics["scores"]["ents_f"] == pytest.approx(2 / 9)
    official = metrics["layers"]["phi"]["official"]["scores"]
    assert official["ner"] == {"leak": 1 / 3, "p": 0.5, "r": 0.5, "f": 0.5}  # 1 missed, 3 lines
    assert metrics["speed"]["words_per_second"] > 0
    for word in re.findall(r"\w{5,}", " ".join(TEXTS.values())):
        assert word not in written and word not in result.output, word
    assert "This page holds note text." in page.read_text(encoding="utf-8")
    docs = list(DocBin().from_disk(predicted).get_docs(nlp.vocab))
    assert [ent.text for ent in docs[0].ents] == ["cefalea intensa", "agua"]
    assert [span.text for span in docs[0].spans["phi"]] == ["Rosalinda"]
    assert "SINTOMA" in result.output
    assert not list(folder.rglob("*.partial"))


def test_command_reads_a_folder_of_shards(folder, nlp):
    shards = folder / "shards"
    shards.mkdir(exist_ok=True)
    for index, doc in enumerate(gold_docs(nlp)):
        DocBin(docs=[doc], store_user_data=True).to_disk(shards / f"{index}.spacy")
    result = evaluate(folder, "--html", folder / "out" / "n.html", "--no-text", corpus="shards")
    assert result.exit_code == 0, result.output
    assert "Rosalinda" not in (folder / "out" / "n.html").read_text(encoding="utf-8")


def test_mistakes_are_one_message(folder):
    for arguments, kwargs, message in (
        ([], {"pipeline": "absent"}, r"cannot load the pipeline .*absent.* package"),
        ([], {"corpus": "absent.spacy"}, r"absent\.spacy: no such file"),
        ([], {"corpus": "empty.spacy"}, r"empty\.spacy: holds no Docs"),
        (["--gpu-id", "99"], {}, r"--gpu-id 99: this GPU cannot be used"),
        (["--official", "i2b2"], {}, r"No official score named 'i2b2': choose from meddocan"),
    ):
        result = evaluate(folder, *arguments, **kwargs)
        assert result.exit_code == 1, (message, result.output)
        assert re.search(message, " ".join(result.stderr.split()))
        assert "Traceback" not in result.output


def test_layers_that_the_pipeline_never_sets(folder, nlp):
    plain = spacy.blank("es")
    plain.add_pipe("entity_ruler").add_patterns([{"label": "SINTOMA", "pattern": "fiebre"}])
    plain.to_disk(folder / "plain")
    result = evaluate(folder, pipeline="plain")
    assert result.exit_code == 0
    assert "warning" in result.stderr and "layer 'phi', which the pipeline never sets" in " ".join(
        result.stderr.split()
    )
    metrics = json.loads((folder / "out" / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["layers_not_predicted"] == ["phi"]
    DocBin(docs=gold_docs(nlp, ["phi"]), store_user_data=True).to_disk(folder / "phi.spacy")
    result = evaluate(folder, pipeline="plain", corpus="phi.spacy")
    assert result.exit_code == 1
    assert "sets none of the layers that the corpus is annotated for (phi)" in " ".join(
        result.stderr.split()
    )


def test_wrong_language_is_a_warning(folder):
    english = spacy.blank("en")
    english.add_pipe("entity_ruler").add_patterns([{"label": "SINTOMA", "pattern": "fiebre"}])
    english.to_disk(folder / "english")
    text = "El dolor es para la paciente como un peso que tiene desde hace días. "
    doc = english.make_doc(9 * text)
    doc.user_data[GOLD_KEY] = {"id": "d", "task": "t", "layers": {"ents": []}}
    DocBin(docs=[doc], store_user_data=True).to_disk(folder / "spanish.spacy")
    result = evaluate(folder, pipeline="english", corpus="spanish.spacy")
    assert result.exit_code == 0
    assert "the corpus looks like 'es'" in " ".join(result.stderr.split())
    result = evaluate(folder, corpus="spanish.spacy")
    assert "looks like" not in result.stderr


# -- labels ----------------------------------------------------------------------------------------


def save_ruler(folder, name, label, key=None):
    nlp = spacy.blank("es")
    if key:
        ruler = nlp.add_pipe("span_ruler", config={"spans_key": key})
    else:
        ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": label, "pattern": "fiebre"}])
    nlp.to_disk(folder / name)
    return nlp


def test_labels_that_the_pipeline_does_not_have(folder, nlp):
    DocBin(docs=gold_docs(nlp, ["ents"]), store_user_data=True).to_disk(folder / "ents.spacy")
    save_ruler(folder, "one", "SINTOMA")
    result = evaluate(folder, pipeline="one", corpus="ents.spacy")
    assert result.exit_code == 0
    said = " ".join(result.stderr.split())
    assert said.count("warning") == 1
    assert "does not have these labels of the layer 'ents': FARMACO. Their gold spans" in said
    assert "does not have" not in evaluate(folder, corpus="ents.spacy").stderr
    save_ruler(folder, "other", "SYMPTOM")
    written = folder / "out" / "metrics.json"
    before = written.read_text("utf-8")
    result = evaluate(folder, pipeline="other", corpus="ents.spacy")
    assert result.exit_code == 1 and written.read_text("utf-8") == before
    assert re.search(
        r"none of the labels that the corpus is annotated with \(ents: FARMACO, SINTOMA\)\. It has "
        r"SYMPTOM\. Choose .* --label OLD=NEW",
        " ".join(result.stderr.split()),
    )


def test_labels_without_a_gold_span_and_labels_that_nobody_lists_are_no_mistakes(folder, nlp):
    docs = gold_docs(nlp, ["ents"])
    for doc in docs:
        doc.user_data[GOLD_KEY]["annotated"] = {"ents": ["SINTOMA", "PRUEBA"]}
        gold = doc.user_data[GOLD_KEY]["layers"]["ents"]
        gold[:] = [item for item in gold if item[2] == "SINTOMA"]
    DocBin(docs=docs, store_user_data=True).to_disk(folder / "part.spacy")
    plain = save_ruler(folder, "listed", "OTRA")
    plain.add_pipe("label_by_hand", first=True)
    plain.to_disk(folder / "unlisted")
    save_ruler(folder, "one", "SINTOMA")
    for pipeline in ("one", "unlisted"):
        result = evaluate(folder, pipeline=pipeline, corpus="part.spacy")
        assert result.exit_code == 0 and "does not have" not in result.stderr, result.output


@spacy.Language.component("label_by_hand")
def label_by_hand(doc):
    start = doc.text.find("fiebre")
    if start >= 0:
        doc.set_ents([doc.char_span(start, start + 6, label="SINTOMA")])
    return doc


def test_labels_of_phi_are_those_of_the_scheme(folder):
    nlp = save_ruler(folder, "phi", "NAME", key="phi")
    nlp.add_pipe("bioclin_phi_rules")
    nlp.to_disk(folder / "rules")
    text = "Con fiebre. DNI 12345678Z. Visto por Rosalinda."
    for label, name in (("NOMBRE_PERSONAL_SANITARIO", "meddocan"), ("DOCTOR", "i2b2")):
        doc = nlp.make_doc(text)
        gold = {"phi": located(text, [("Rosalinda", label)])}
        doc.user_data[GOLD_KEY] = {"id": "d", "task": "t", "layers": gold}
        DocBin(docs=[doc], store_user_data=True).to_disk(folder / f"{name}.spacy")
    assert "does not" not in evaluate(folder, pipeline="rules", corpus="meddocan.spacy").stderr
    result = evaluate(folder, pipeline="rules", corpus="i2b2.spacy")
    assert result.exit_code == 1 and "(phi: DOCTOR)" in result.stderr
    nlp.add_pipe("bioclin_deid", config={"policy": {"scheme": "i2b2"}})
    nlp.to_disk(folder / "deid")
    result = evaluate(folder, pipeline="deid", corpus="i2b2.spacy")
    assert result.exit_code == 0 and "does not have" not in result.stderr
    result = evaluate(folder, pipeline="deid", corpus="meddocan.spacy")
    assert result.exit_code == 1 and "NOMBRE_PERSONAL_SANITARIO)" in result.stderr


# -- relations and categories ----------------------------------------------------------------------

NOTE = "Cefalea intensa por nolotil.\nNáuseas por agua."


@spacy.Language.factory(
    "relate_all", default_config={"relations_key": "relations", "spans_key": None, "symmetric": []}
)
def make_relate_all(nlp, name, relations_key, spans_key, symmetric):
    """Relate every drug to every symptom of its line."""

    def relate(doc):
        lines = [0]
        for token in doc:
            lines.append(lines[-1] + ("\n" in token.text))
        found = [
            Relation(head, child, "ADE", 0.75)
            for head in doc.ents
            for child in doc.ents
            if (head.label_, child.label_) == ("FARMACO", "SINTOMA")
            and lines[head.start] == lines[child.start]
        ]
        set_relations(doc, relations_key, found)
        return doc

    return relate


def gold_relations(nlp):
    doc = nlp.make_doc(NOTE)
    ents = [("Cefalea", "SINTOMA"), ("nolotil", "FARMACO")]
    ents += [("Náuseas", "SINTOMA"), ("agua", "FARMACO")]
    layer = located(NOTE, ents)
    first, second, third, fourth = [item[:3] for item in layer]
    relations = [["ADE", second, first], ["ADE", fourth, third], ["CAUSA", third, first]]
    gold = {"id": "uno", "task": "t", "layers": {"ents": layer}, "relations": relations}
    doc.user_data[GOLD_KEY] = gold
    return [doc, nlp.make_doc("Sin anotar")]


def save_relations(folder, nlp, *, ruler=True):
    made = spacy.blank("es")
    if ruler:
        patterns = {"Cefalea": "SINTOMA", "nolotil": "FARMACO", "agua": "SINTOMA"}
        made.add_pipe("entity_ruler").add_patterns(
            [{"label": label, "pattern": text} for text, label in patterns.items()]
        )
    made.add_pipe("relate_all", name="related")
    made.to_disk(folder / "relate")
    DocBin(docs=gold_relations(nlp), store_user_data=True).to_disk(folder / "relations.spacy")


def read_output(folder):
    return json.loads((folder / "out" / "metrics.json").read_text("utf-8"))


def test_relations_are_scored_with_found_and_with_gold_entities(folder, nlp):
    save_relations(folder, nlp)
    page = folder / "out" / "relations.html"
    arguments = ["--html", page, "--no-text"]
    result = evaluate(folder, *arguments, pipeline="relate", corpus="relations.spacy")
    assert result.exit_code == 0, result.output
    metrics = read_output(folder)
    of_key = metrics["relations"]["relations"]
    found, given = of_key["predicted_entities"], of_key["gold_entities"]
    assert (found["docs"], found["level"]) == (1, "mention")
    # The ruler takes "agua" for a symptom: one relation is found of three.
    assert [found["micro"][key] for key in ("tp", "fp", "fn")] == [1, 0, 2]
    assert [given["micro"][key] for key in ("tp", "fp", "fn")] == [2, 0, 1]
    assert given["per_type"]["ADE"]["f"] == 1.0 and given["per_type"]["CAUSA"]["f"] == 0.0
    assert given["macro"]["f"] == 0.5 and len(given["micro"]["f_interval"]) == 2
    assert metrics["scores"]["rels_f"] == pytest.approx(1 / 2)
    assert metrics["scores"]["rels_per_type"]["ADE"]["r"] == 0.5
    assert "ents" in metrics["layers"]
    said = " ".join(result.stderr.split())
    assert "'related' does not have these labels of the relations of the corpus: CAUSA" in said
    assert "between the entities that the pipeline finds" in result.stdout
    assert "between the gold entities" in result.stdout
    html = page.read_text("utf-8")
    assert Page(html).open == [] and "Relations: relations" in html
    for word in re.findall(r"\w{5,}", NOTE):
        assert word not in html and word not in result.output


def test_relations_of_a_pipeline_without_entities(folder, nlp):
    save_relations(folder, nlp, ruler=False)
    result = evaluate(folder, pipeline="relate", corpus="relations.spacy")
    assert result.exit_code == 0, result.output
    metrics = read_output(folder)
    of_key = metrics["relations"]["relations"]
    assert of_key["predicted_entities"] is None and metrics["layers"] == {}
    assert of_key["gold_entities"]["micro"]["tp"] == 2
    assert metrics["scores"]["rels_r"] == pytest.approx(2 / 3)


def test_relations_that_no_component_finds_are_a_warning(folder, nlp):
    save_relations(folder, nlp)
    result = evaluate(folder, corpus="relations.spacy")
    assert result.exit_code == 0, result.output
    assert "the corpus has relations, but no component" in " ".join(result.stderr.split())
    assert read_output(folder)["relations"] == {}
    plain = spacy.blank("es")
    plain.to_disk(folder / "nothing")
    result = evaluate(folder, pipeline="nothing", corpus="relations.spacy")
    assert result.exit_code == 1
    assert "is annotated for (ents, relations)" in " ".join(result.stderr.split())


@spacy.Language.factory("label_texts", assigns=["doc.cats"])
class LabelTexts:
    """Call every text with the word "grave" urgent."""

    labels = ("URGENTE", "NORMAL")

    def __init__(self, nlp, name):
        self.scorer = spacy.registry.scorers.get("spacy.textcat_scorer.v2")()

    def __call__(self, doc):
        urgent = float(any(token.lower_ == "grave" for token in doc))
        doc.cats = {"URGENTE": urgent, "NORMAL": 1 - urgent}
        if get_boundary(doc) is not None:
            doc.cats["PAR"] = 0.0
        return doc

    def score(self, examples, **kwargs):
        return self.scorer(examples, labels=self.labels)

    def to_disk(self, path, exclude=()):
        pass

    def from_disk(self, path, exclude=()):
        return self


def test_categories_of_texts_and_pairs(folder, nlp):
    made = spacy.blank("es")
    made.add_pipe("label_texts", name="urgency")
    made.to_disk(folder / "urgency")
    docs = []
    for text, label in (("Estado grave.", "URGENTE"), ("Estable.", "URGENTE"), ("Bien.", "NORMAL")):
        doc = nlp.make_doc(text)
        doc.cats = {each: float(each == label) for each in ("URGENTE", "NORMAL", "OTRA")}
        docs.append(doc)
    docs.append(nlp.make_doc("Sin anotar, grave"))
    DocBin(docs=docs, store_user_data=True).to_disk(folder / "cats.spacy")
    page = folder / "out" / "cats.html"
    arguments = ["--html", page]
    result = evaluate(folder, *arguments, pipeline="urgency", corpus="cats.spacy")
    assert result.exit_code == 0, result.output
    metrics = read_output(folder)
    scores = metrics["categories"]["urgency"]
    assert scores["cats_micro_f"] == pytest.approx(2 / 3)
    assert scores["cats_f_per_type"]["NORMAL"]["p"] == 0.5
    assert metrics["scores"]["cats_micro_f"] == scores["cats_micro_f"]
    json.dumps(metrics, allow_nan=False)
    assert "urgency: categories" in result.stdout and "cats_f_per_type" in result.stdout
    said = " ".join(result.stderr.split())
    assert "'urgency' does not have these labels of the categories of the corpus: OTRA" in said
    html = page.read_text("utf-8")
    assert Page(html).open == [] and "Categories: urgency" in html
    result = evaluate(folder, corpus="cats.spacy")
    assert result.exit_code == 1 and "(categories)" in result.stderr
    pair = make_pair(nlp, "Está grave ", "Muy enfermo")
    pair.cats = {"URGENTE": 1.0, "NORMAL": 0.0, "PAR": 0.0}
    [eg] = run_pipeline(made, [pair], lambda doc: None).categories
    assert eg.predicted.cats["PAR"] == 0.0  # it was read as a pair
    assert eg.predicted.text == pair.text == "Está grave \nMuy enfermo"
