"""A setting that nothing reads is an error; every setting that something reads is none."""

from pathlib import Path
from typing import Any

import pytest
from spacy.util import load_config
from typer.testing import CliRunner

from spacy_bioclin.catalog.overrides import apply_settings
from spacy_bioclin.cli import app
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.sweeps.plan import Plan, Trial
from spacy_bioclin.sweeps.trial import make_config
from tests.test_configs import flatten

ROOT = Path(__file__).parents[2]
CONFIGS = sorted((ROOT / "configs").glob("*.cfg"))
MISSPELT = {
    "training.maxsteps": "training.max_steps",
    "trainig.max_steps": "training.max_steps",
    "paths.trian": "paths.train",
    "nlp.langs": "nlp.lang",
    "components.nerr.scheme": "components.ner.scheme",
    "components.ner.schema": "components.ner.scheme",
    "components.transformer.model.windw": "components.transformer.model.window",
    "training.optimizer.learn_rate.warmup_step": "training.optimizer.learn_rate.warmup_steps",
    "training.batcher.sizes": "training.batcher.size",
    "corpora.train.max_token": "corpora.train.max_tokens",
    "initialize.vectros": "initialize.vectors",
}
# Read, although ner.cfg does not list them.
READ = (
    "components.transformer.model.strategy.freeze_layers",
    "components.transformer.model.transformer_config.hidden_dropout_prob",
    "components.ner.teacher_weight",
    "training.score_weights.spans_phi_f",
    "initialize.components.ner",
)


def test_the_nearest_is_named() -> None:
    config = load_config(ROOT / "configs" / "ner.cfg", interpolate=False)
    for path, meant in MISSPELT.items():
        with pytest.raises(BioclinError) as error:
            apply_settings(config, {path: 1}, prefix="--")
        assert f"--{path}: " in str(error.value)
        assert f"did you mean --{meant}?" in str(error.value)


def test_everything_in_a_config_can_be_set() -> None:
    for path in CONFIGS:
        config = load_config(path, interpolate=False)
        before = config.copy()
        apply_settings(config, dict(flatten(before)))
        assert config == before
    ner = load_config(ROOT / "configs" / "ner.cfg", interpolate=False)
    apply_settings(ner, dict.fromkeys(READ, 0))


def test_a_function_and_its_arguments_are_set_together() -> None:
    config = load_config(ROOT / "configs" / "ner.cfg", interpolate=False)
    schedule = "training.optimizer.learn_rate"
    apply_settings(config, {f"{schedule}.rate": 0.1, f"{schedule}.@schedules": "constant.v1"})
    with pytest.raises(BioclinError, match=r"learn_rate\.rat: .*learn_rate\.rate\?"):
        apply_settings(config, {f"{schedule}.rat": 0.1})


def run(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_train_and_distill_refuse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = ("--training.maxsteps", 4)
    ner = ROOT / "configs" / "ner.cfg"
    paths = ("--paths.train", "x.spacy")
    for command in (("train", ner), ("distill-ner", "teacher", ner), ("ensemble", ner)):
        done = run(*command, "-o", tmp_path / "out", *paths, *wrong)
        assert done.exit_code == 1
        assert "did you mean --training.max_steps?" in " ".join(done.output.split())
    monkeypatch.setenv("SPACY_CONFIG_OVERRIDES", "--training.maxsteps=4")
    assert run("train", ner, "-o", tmp_path / "out").exit_code == 1
    assert not (tmp_path / "out").exists()


def test_sweeps_refuse(tmp_path: Path) -> None:
    wrong = {"training.maxsteps": 4}
    values: dict[str, Any] = {
        "tasks": {"demo": {"lang": "es"}},
        "encoders": {"one": "folder"},
        "learn_rates": [1e-4],
        "seeds": [0],
        "config": str(ROOT / "configs" / "ner.cfg"),
    }
    trial = Trial("demo", "one", "plain", 1e-4, 0)
    for changes in ({"settings": wrong}, {"strategies": {"plain": wrong}}):
        plan = Plan.model_validate({**values, **changes})
        with pytest.raises(BioclinError, match=r"maxsteps: .*did you mean training\.max_steps"):
            make_config(plan, trial, tmp_path)
