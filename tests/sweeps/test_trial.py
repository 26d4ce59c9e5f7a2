"""One trial of a sweep for real: a tiny encoder, a few invented notes."""

from pathlib import Path

import pytest
import spacy
from spacy.vocab import Vocab

from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.sweeps import trial as trial_module
from spacy_bioclin.sweeps.plan import Plan, read_plan
from spacy_bioclin.sweeps.results import CRASHED, DIVERGED, DONE, read_results
from spacy_bioclin.sweeps.trial import make_config, prepare_corpora, run_trial
from tests.sweeps.invented import write_corpus
from tests.training.several import DRUGS, NOTES, make_ner, write_two
from tests.training.several import make_config as make_several

ROOT = Path(__file__).parents[2]
PLAN = """
tasks: {{mine: {{path: {corpus}, lang: es, layer: phi}}}}
encoders: {{tiny: {encoder}}}
strategies: {{plain: {{}}, wrong: {{freeze_layers: 9}}}}
learn_rates: [1.0e-3, 1.0e+30]
seeds: [0]
train_notes: 3
dev_notes: 2
test_notes: 2
settings:
  components.transformer.model.window: 64
  components.transformer.model.stride: 64
  training.max_steps: 2
  training.eval_frequency: 2
"""


@pytest.fixture
def plan(tmp_path: Path, tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.chdir(ROOT)
    corpus = write_corpus(tmp_path / "mine", "entities", layer="phi")
    text = PLAN.format(encoder=tiny_encoder, corpus=corpus)
    (tmp_path / "plan.yml").write_text(text, encoding="utf-8")
    return read_plan(tmp_path / "plan.yml")


def test_corpora_are_drawn_once(plan: Plan, tmp_path: Path) -> None:
    corpora = prepare_corpora(plan, "mine", tmp_path)
    vocab = Vocab()
    sizes = {
        split: len(list(read_docs(corpora / f"{split}.spacy", vocab)))
        for split in ("train", "dev", "test")
    }
    assert sizes == {"train": 3, "dev": 2, "test": 2}
    before = (corpora / "train.spacy").stat().st_mtime_ns
    prepare_corpora(plan, "mine", tmp_path)
    assert (corpora / "train.spacy").stat().st_mtime_ns == before
    assert plan.find_setup("mine").layer == "phi"


@pytest.mark.slow
def test_a_corpus_of_the_catalogue(plan: Plan, tmp_path: Path) -> None:
    demo = plan.tasks["mine"].model_copy(update={"path": None, "lang": "en"})
    plan = plan.model_copy(update={"tasks": {"demo": demo}})
    corpora = prepare_corpora(plan, "demo", tmp_path)
    for split, size in (("train", 3), ("dev", 2), ("test", 2)):
        assert len(list(read_docs(corpora / f"{split}.spacy", Vocab()))) == size


def test_a_trial_is_trained_scored_and_cleared_away(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [trial, *_] = plan.list_trials()
    losses = []
    score = trial_module.score_split
    monkeypatch.setattr(
        trial_module,
        "score_split",
        lambda nlp, *rest: losses.append(nlp.pipe_names) or score(nlp, *rest),
    )
    run_trial(plan, tmp_path, -1, 1, trial)
    [result] = read_results(tmp_path, [trial])
    assert result["status"] == DONE and result["error"] is None
    assert [step for step, _ in result["curve"]] == [0, 2]
    assert len(result["test"]["per_doc"]) == 2 and len(losses) == 2
    tp, fp, fn = (sum(column) for column in zip(*result["test"]["per_doc"], strict=True))
    assert tp + fn > 0
    assert result["test"]["f"] == pytest.approx(2 * tp / max(1, 2 * tp + fp + fn))
    assert result["settings"]["train_notes"] == 3
    assert not (tmp_path / "trials" / trial.name / "training").exists()


def test_dev_is_scored_by_the_layer_alone(plan: Plan, tmp_path: Path) -> None:
    [trial, *_] = plan.list_trials()
    config = make_config(plan, trial, prepare_corpora(plan, "mine", tmp_path))
    nlp = spacy.util.load_model_from_config(config, auto_fill=True)
    weights = nlp.config["training"]["score_weights"]
    assert {key: weight for key, weight in weights.items() if weight} == {"spans_phi_f": 1.0}


def test_a_trial_that_diverges_says_at_which_rate(plan: Plan, tmp_path: Path) -> None:
    trial = plan.list_trials()[1]
    run_trial(plan, tmp_path, -1, 1, trial)
    [result] = read_results(tmp_path, [trial])
    assert result["status"] == DIVERGED
    assert "training diverged: the loss of [components." in result["error"]
    assert "is nan at update" in result["error"] and "learning rate" in result["error"]
    assert result["dev"] is None


def test_a_trial_that_cannot_be_set_up_says_why(plan: Plan, tmp_path: Path) -> None:
    trial = plan.list_trials()[2]
    run_trial(plan, tmp_path, -1, 1, trial)
    [result] = read_results(tmp_path, [trial])
    assert result["status"] == CRASHED
    assert "freeze_layers = 9" in result["error"] and "2 layers" in result["error"]


def test_a_language_is_needed_for_a_corpus_of_ones_own(plan: Plan) -> None:
    own = plan.tasks["mine"].model_copy(update={"path": "corpus", "lang": ""})
    with pytest.raises(BioclinError, match="has no lang"):
        plan.model_copy(update={"tasks": {"mine": own}}).find_setup("mine")


@pytest.mark.slow
def test_several_tasks_are_trained_together(tmp_path: Path, tiny_encoder: Path) -> None:
    """A task of the plan is a folder with a folder for each task of the config; it is scored on all
    their spans."""
    for name, path in write_two(tmp_path).items():
        for split in ("train", "dev", "test"):
            file = tmp_path / "data" / name / f"{split}.spacy"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(Path(path).read_bytes())
    heads = {"signs": make_ner("signs"), "drugs": make_ner("drugs")}
    tasks = {name: {"path": None, "heads": [name]} for name in heads}
    short = {"training.max_steps": 2, "training.eval_frequency": 2}
    config = make_several(tiny_encoder, heads, tasks, short)
    config["training"]["optimizer"]["learn_rate"] = {"@schedules": "constant.v1", "rate": 0.001}
    config.to_disk(tmp_path / "several.cfg")
    text = f"""
tasks: {{both: {{path: {tmp_path / "data"}, lang: es}}, none: {{path: {tmp_path}, lang: es}}}}
encoders: {{tiny: {tiny_encoder}}}
learn_rates: [1.0e-3]
seeds: [0]
config: {tmp_path / "several.cfg"}
test_notes: 2
"""
    (tmp_path / "plan.yml").write_text(text, encoding="utf-8")
    plan = read_plan(tmp_path / "plan.yml")
    trial = plan.list_trials()[0]
    run_trial(plan, tmp_path / "out", -1, 1, trial)
    [result] = read_results(tmp_path / "out", [trial])
    assert (result["status"], result["error"]) == (DONE, None)
    assert len(result["dev"]["per_doc"]) == len(NOTES) + len(DRUGS)
    assert len(result["test"]["per_doc"]) == 2 + 2
    tp, fp, fn = (sum(counts) for counts in zip(*result["dev"]["per_doc"], strict=True))
    assert result["dev"]["f"] == pytest.approx(2 * tp / (2 * tp + fp + fn))
    assert [step for step, _ in result["curve"]] == [0, 2]
    with pytest.raises(BioclinError, match=r"signs has no train.spacy"):
        prepare_corpora(plan, "none", tmp_path / "out")
