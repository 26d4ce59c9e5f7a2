"""Plans, results and folders of sweeps that are hostile, damaged or shared."""

import json
from html.parser import HTMLParser

import pytest
import spacy
from spacy.tokens import DocBin
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.outputs import grow_folder
from spacy_bioclin.sweeps import search
from spacy_bioclin.sweeps.plan import Plan, read_plan
from spacy_bioclin.sweeps.report import write_report
from spacy_bioclin.sweeps.results import (
    CRASHED,
    DONE,
    get_folder,
    make_result,
    read_results,
    write_result,
)
from spacy_bioclin.sweeps.run import Resources, run_sweep
from spacy_bioclin.sweeps.trial import prepare_corpora, run_trial
from tests.hostile.test_training import ROOT, write_corpus

NAMES = [
    "../../out",
    "/etc/evil",
    "a/b",
    "..",
    ".hidden",
    "a\\..\\b",
    "C:\\x",
    "a%2Fb",
    "<script>alert(1)</script>",
    "=cmd()",
    "CON",
    "ñandú 東京",
    'x" onload="y',
]
REFUSED = ["", " ", "a\nb", "a\0b", "\x1b[31mred", "x" * 101, "\u202egnp", "whole"]
SCORES = {"p": 0.5, "r": 0.5, "f": 0.5, "per_doc": [[1, 1, 1]] * 3}


def make_plan(**changes):
    values = {
        "tasks": {"t": {"path": "corpus", "lang": "es"}},
        "encoders": {"e": "folder"},
        "learn_rates": [1e-4],
        "seeds": [0],
        "config": str(ROOT / "configs/ner.cfg"),
    }
    return Plan.model_validate({**values, **changes})


def done(plan, trial):
    extra = {"steps": 1, "best_step": 1, "best_epoch": 1.0, "dev": SCORES, "test": SCORES}
    return make_result(plan, trial) | extra


@pytest.mark.parametrize("axis", ["tasks", "strategies"])
def test_names_stay_in_their_folder(tmp_path, axis):
    value = {"tasks": {"path": "c", "lang": "es"}, "strategies": {}}[axis]
    for name in NAMES:
        plan = make_plan(**{axis: {name: value}})
        [trial] = plan.list_trials()
        folder = get_folder(tmp_path / "out", trial)
        assert folder.parent == tmp_path / "out" / "trials", name
        assert not set(folder.name) & set('/\\:<>"|?*') and not folder.name.startswith("."), name
        write_result(tmp_path / "out", done(plan, trial))
        assert [path.name for path in tmp_path.iterdir()] == ["out"], name
        assert read_results(tmp_path / "out", [trial]) == [done(plan, trial)], name


def test_names_that_are_none_are_refused():
    for name in REFUSED:
        with pytest.raises(ValueError, match=r"tasks|encoders"):
            make_plan(**({"tasks": {name: "c"}} if name == "whole" else {"encoders": {name: "f"}}))


def test_trials_that_cannot_be_told_apart_or_run_are_refused():
    for changes in (
        {"seeds": [1, 1]},
        {"learn_rates": [1e-5, 1.00000001e-5]},
        {"tasks": {"a": "c", "a-b": "c"}, "encoders": {"b-c": "f", "c": "f"}},
        {"encoders": {"BERT": "f", "bert": "g"}},
        {"learn_rates": [-1.0]},
        {"learn_rates": [float("nan")]},
        {"learn_rates": [float("inf")]},
        {"seeds": [-1]},
        {"seeds": [2**40]},
    ):
        with pytest.raises(ValueError, match=r"folder|want"):
            make_plan(**changes)


def test_damaged_results_are_one_error(tmp_path):
    plan = make_plan()
    [trial] = plan.list_trials()
    folder = get_folder(tmp_path, trial)
    folder.mkdir(parents=True)
    for content in ("", "[]", "{}", '{"trial": {"task', "null", "\x00" * 9):
        (folder / "result.json").write_text(content)
        with pytest.raises(BioclinError, match=r"result\.json: "):
            read_results(tmp_path, [trial])


def test_result_of_another_trial_is_not_taken(tmp_path):
    plan = make_plan(seeds=[0, 1])
    first, second = plan.list_trials()
    write_result(tmp_path, done(plan, first))
    get_folder(tmp_path, first).rename(get_folder(tmp_path, second))
    with pytest.raises(BioclinError, match="another trial"):
        read_results(tmp_path, [second])


class Loads(HTMLParser):
    found: list

    def handle_starttag(self, tag, attrs):
        wanted = {"src", "href", "srcset", "data", "action", "style", "onload", "onerror"}
        self.found += [(tag, key) for key, _ in attrs if key in wanted]
        self.found += [tag] * (tag in {"script", "link", "img", "iframe", "object", "base", "b"})


def test_page_and_tables_hold_hostile_names_as_text(tmp_path):
    evil = "<script src=//x></script><b onload=y>|=cmd()"
    published = {"task": evil, "model": f"{evil}\n| x", "source": "\x1b[31m", "median": 0.5}
    plan = make_plan(
        tasks={evil: {"path": "c", "lang": "es"}}, encoders={evil: "f"}, published=[published]
    )
    [trial] = plan.list_trials()
    failed = make_result(plan, trial, CRASHED, f"{evil}\n\x1b[31m") | {"best_step": 0}
    results = [done(plan, trial), failed]
    write_report(evil, tmp_path, plan, results, against=None)
    page = (tmp_path / "report.html").read_text("utf-8")
    parser = Loads()
    parser.found = []
    parser.feed(page)
    assert parser.found == []
    assert "default-src 'none'" in page
    tables = (tmp_path / "tables.md").read_text("utf-8")
    assert "\x1b" not in tables
    for block in tables.split("###"):  # a name begins no row of its own
        widths = {line.replace("\\|", "").count("|") for line in block.splitlines() if "|" in line}
        assert len(widths) <= 1 or block.startswith(" <script")


def sweep(tmp_path, plan_text, *options):
    (tmp_path / "plan.yml").write_text(plan_text, "utf-8")
    arguments = ["sweep", str(tmp_path / "plan.yml"), "-o", str(tmp_path / "out"), *options]
    return CliRunner().invoke(app, arguments)


def plan_text(tmp_path, encoder, **changes):
    values = {
        "tasks": {"t": {"path": str(tmp_path / "corpus"), "lang": "es"}},
        "encoders": {"e": str(encoder)},
        "learn_rates": [1e-3],
        "seeds": [0],
        "config": str(ROOT / "configs/ner.cfg"),
        "settings": {
            "components.transformer.model.window": 32,
            "components.transformer.model.stride": 32,
            "training.max_steps": 2,
            "training.eval_frequency": 1,
        },
    }
    return json.dumps({**values, **changes})  # JSON is YAML


PLANS = [
    "",
    "[]",
    "tasks: {",
    "tasks: !!python/object/apply:os.system [touch executed]",
    "\x00",
    "a: &a [x]\nb: &b [*a,*a,*a]\nc: [*b,*b,*b]\n",
    "tasks: {t: {path: c, lang: '../x'}}\nencoders: {e: f}\nlearn_rates: [1]\nseeds: [0]",
    "tasks: {t: c}\nencoders: {e: f}\nlearn_rates: [1]\nseeds: [0]\nconfig: no.cfg",
]


def test_hostile_plans_are_one_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for text in PLANS:
        done = sweep(tmp_path, text)
        assert (done.exit_code, type(done.exception)) == (1, SystemExit), (text, done.output)
        assert done.stderr.startswith("bioclin: ") and "Traceback" not in done.output, text
        assert "unexpected" not in done.stderr, (text, done.stderr)
        assert not (tmp_path / "executed").exists(), text


@pytest.fixture
def corpus(tmp_path):
    for split in ("train", "dev", "test"):
        write_corpus(tmp_path / "corpus" / f"{split}.spacy")
    return tmp_path / "corpus"


def test_one_sweep_at_a_time_and_never_over_its_inputs(tmp_path, corpus, tiny_encoder):
    text = plan_text(tmp_path, tiny_encoder)
    with grow_folder(tmp_path / "out"):
        assert "another run" in sweep(tmp_path, text).stderr
    (tmp_path / "plan.yml").write_text(text)
    plan = read_plan(tmp_path / "plan.yml")
    for out in (corpus, tmp_path):
        with pytest.raises(BioclinError, match="is the input"):
            run_sweep(plan, out, Resources(1, -1, None))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "report.html").write_text("mine")
    with pytest.raises(BioclinError, match="is not of a sweep"):
        run_sweep(plan, tmp_path / "mine", Resources(1, -1, None))
    assert (tmp_path / "mine" / "report.html").read_text() == "mine"


def test_changed_corpus_is_not_mixed_with_the_old_one(tmp_path, corpus, tiny_encoder):
    (tmp_path / "plan.yml").write_text(plan_text(tmp_path, tiny_encoder))
    plan = read_plan(tmp_path / "plan.yml")
    folder = prepare_corpora(plan, "t", tmp_path / "out")
    before = (folder / "train.spacy").read_bytes()
    write_corpus(corpus / "train.spacy", ["Sufre tos."])
    with pytest.raises(BioclinError, match="corpora was"):
        prepare_corpora(plan, "t", tmp_path / "out")
    assert (folder / "train.spacy").read_bytes() == before
    assert (folder / "train.spacy").stat().st_mode & 0o077 == 0
    smaller = plan.model_copy(update={"train_notes": 1})
    with pytest.raises(BioclinError, match="was"):
        prepare_corpora(smaller, "t", tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["cut", "other"])
def test_damaged_state_of_a_trial_starts_it_again(tmp_path, corpus, tiny_encoder, damage):
    (tmp_path / "plan.yml").write_text(plan_text(tmp_path, tiny_encoder))
    plan = read_plan(tmp_path / "plan.yml")
    [trial] = plan.list_trials()
    run_trial(plan, tmp_path / "out", -1, 1, trial)
    [whole] = read_results(tmp_path / "out", [trial])
    assert whole["status"] == DONE
    state = get_folder(tmp_path / "again", trial) / "training" / "state"
    (state / "pipeline").mkdir(parents=True)
    (state / "values.pt").write_bytes(b"PK half of it")
    if damage == "other":
        (state / "run.json").write_text('{"format": 2, "made_from": {"x": 1}}')
    run_trial(plan, tmp_path / "again", -1, 1, trial)
    [again] = read_results(tmp_path / "again", [trial])
    assert (again["status"], again["curve"]) == (DONE, whole["curve"])


def test_no_text_of_notes_in_a_log_or_result(tmp_path, corpus, tiny_encoder, capfd):
    nlp = spacy.blank("es")
    secret = "Zacarías Quintanilla"
    doc = nlp(f"Paciente {secret} con tos.")
    DocBin(docs=[doc]).to_disk(corpus / "train.spacy")  # no span: the head has no labels
    (tmp_path / "plan.yml").write_text(plan_text(tmp_path, tiny_encoder))
    plan = read_plan(tmp_path / "plan.yml")
    [trial] = plan.list_trials()
    run_trial(plan, tmp_path / "out", -1, 1, trial)
    [result] = read_results(tmp_path / "out", [trial])
    assert result["status"] == CRASHED
    shown = "".join(capfd.readouterr()) + json.dumps(result, ensure_ascii=False)
    for log in get_folder(tmp_path / "out", trial).glob("*.log"):
        shown += log.read_text("utf-8")
    assert not any(word in shown for word in secret.split())


# Searches


@pytest.mark.parametrize("damage", ["half a line", "stale lock"])
def test_killed_search_goes_on(tmp_path, damage):
    pytest.importorskip("optuna")
    plans = [make_plan(learn_rates=[1e-5, 1e-4], search={"n_trials": n}) for n in (2, 3)]
    tried = []

    def evaluate(samples):
        tried.extend(samples)
        return [0.5] * len(samples)

    search.run_study(plans[0], plans[0].search, tmp_path, "s", evaluate)
    journal = tmp_path / search.JOURNAL
    if damage == "half a line":
        with journal.open("ab") as file:
            file.write(b'{"op_code": 4, "worker')
    else:
        (tmp_path / f"{search.JOURNAL}.lock").symlink_to("dead")
    search.run_study(plans[1], plans[1].search, tmp_path, "s", evaluate)
    assert len(tried) == len(search.read_samples(tmp_path, "s")) == 3


def test_damaged_search_is_one_error(tmp_path):
    pytest.importorskip("optuna")
    (tmp_path / search.JOURNAL).write_text("garbage\n{}\n")
    with pytest.raises(BioclinError, match=r"search\.journal: is damaged"):
        search.read_samples(tmp_path, "s")
