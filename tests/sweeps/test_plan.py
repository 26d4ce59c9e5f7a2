"""The YAML file of a sweep, and the trials that it lists."""

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.sweeps.plan import Trial, read_plan

PLAN = """
tasks: {mine: {path: corpus, lang: es}}
encoders: {small: {path: folder, learn_rate_scale: 10}, base: elsewhere}
strategies: {plain: {}, frozen: {freeze_layers: 2, training.dropout: 0.3}}
learn_rates: [1.0e-5, 3e-5]
seeds: [0, 1, 2]
settings: {training.optimizer.L2: 0.5}
train_notes: {mine: 64}
"""


def make_plan(tmp_path, text=PLAN):
    path = tmp_path / "plan.yml"
    path.write_text(text, encoding="utf-8")
    return read_plan(path)


def test_grid_is_the_product_of_its_axes_seed_by_seed(tmp_path):
    trials = make_plan(tmp_path).list_trials()
    assert len(trials) == len(set(trials)) == 2 * 2 * 2 * 3
    assert [trial.seed for trial in trials] == sorted(trial.seed for trial in trials)
    assert trials[1] == Trial("mine", "small", "plain", 3e-5, 0)  # "3e-5" is a text in YAML
    assert trials[1].name == "mine-small-plain-3e-05-0"


def test_settings_of_a_trial_join_those_of_plan_encoder_and_strategy(tmp_path):
    plan = make_plan(tmp_path)
    settings = plan.get_settings(Trial("mine", "small", "frozen", 3e-5, 1))
    assert settings["learn_rate"] == pytest.approx(3e-4)
    assert settings["encoder"] == "folder"
    assert settings["train_notes"] == 64
    assert settings["settings"] == {
        "training.optimizer.L2": 0.5,
        "components.transformer.model.strategy.freeze_layers": 2,
        "training.dropout": 0.3,
    }
    assert plan.get_settings(Trial("mine", "base", "plain", 3e-5, 1))["learn_rate"] == 3e-5


def test_mistakes_in_the_plan(tmp_path):
    for change, message in (
        (("seeds:", "seed:"), r"unknown key 'seed'; did you mean seeds\? want some of tasks, "),
        (("seeds: [0, 1, 2]", ""), r"plan\.yml: seeds is missing"),
        (("seeds: [0, 1, 2]", "seeds: []"), r"seeds = \[\]: want at least one"),
        (("seeds: [0, 1, 2]", "seeds: 3"), "seeds = 3: want a valid list"),
        (("3e-5]", "fast]"), r"learn_rates\[1\] = 'fast': want a valid number"),
        (("path: folder", "pat: x"), r"unknown key 'encoders\.small\.pat'; did you mean path\?"),
        (("path: folder, ", ""), r"encoders\.small\.path is missing"),
        (("base: elsewhere", "base: 3"), r"encoders\.base = 3: want a valid dictionary"),
        (("settings: {", "settings: ["), "not YAML"),
        (
            ("seeds:", "published: [{task: t}]\nseeds:"),
            r"published\[0\]\.model is missing",
        ),
    ):
        with pytest.raises(BioclinError, match=message):
            make_plan(tmp_path, PLAN.replace(*change))
    with pytest.raises(BioclinError, match="no such file"):
        read_plan(tmp_path / "nothing.yml")
