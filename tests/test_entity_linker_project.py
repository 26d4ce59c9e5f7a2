"""projects/entity_linker: its commands fit together, its files belong together, and it learns.

All of it (`python -m spacy project run all`) takes a minute of CPU; here it trains for a few steps.
"""

import importlib.util
import json
import re
from pathlib import Path

import pytest
from spacy.cli.train import train
from spacy.util import load_config, load_model_from_config
from typer.testing import CliRunner
from weasel.util import load_project_config

from spacy_bioclin.cli import app
from spacy_bioclin.corpora.pubtator import read_pubtator
from spacy_bioclin.linking.kb.knowledge_base import KnowledgeBase
from spacy_bioclin.types import SpanAnnotation

PROJECT = Path(__file__).parents[1] / "projects" / "entity_linker"
SPLITS = ("train", "dev", "test")


def run(*args: str) -> None:
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 0, result.output


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the first two commands make, where they make it."""
    folder = tmp_path_factory.mktemp("project")
    run(*("kb", "build", str(PROJECT / "assets" / "terminology.tsv")),
        *("-o", str(folder / "kb"), "--names-in", "es"))  # fmt: skip
    for split in SPLITS:
        run(*("convert", "pubtator", str(PROJECT / "assets" / f"{split}.pubtator")),
            *(str(folder / f"{split}.spacy"), "--lang", "es"))  # fmt: skip
    return folder


def test_commands_fit_together(tmp_path: Path) -> None:
    (tmp_path / "project.yml").write_bytes((PROJECT / "project.yml").read_bytes())
    project = load_project_config(tmp_path)
    have = set()
    for command in project["commands"]:
        for path in command["deps"]:
            assert path in have or (PROJECT / path).exists(), f"{command['name']} needs {path}"
        have.update(command["outputs"])
    assert project["workflows"] == {"all": [command["name"] for command in project["commands"]]}


def test_every_id_is_in_the_terminology(made: Path) -> None:
    kb, sentences = KnowledgeBase.open(made / "kb"), {}
    for split in SPLITS:
        notes = read_pubtator(PROJECT / "assets" / f"{split}.pubtator")
        spans = [a for note in notes for a in note.annotations if isinstance(a, SpanAnnotation)]
        assert all(id in kb for span in spans for id in span.concept_ids)
        sentences[split] = {s for note in notes for s in re.split(r"[.\n] ?", note.text) if s}
    assert not sentences["train"] & (sentences["dev"] | sentences["test"])


def test_config_says_everything() -> None:
    path = PROJECT / "configs" / "entity_linker.cfg"
    config = load_config(path)
    nlp = load_model_from_config(config, auto_fill=False, validate=True)
    filled = load_model_from_config(config, auto_fill=True).config
    assert filled["components"] == nlp.config["components"]


@pytest.mark.slow
def test_it_learns_what_names_do_not_say(made: Path, tmp_path: Path) -> None:
    overrides = {f"paths.{split}": str(made / f"{split}.spacy") for split in ("train", "dev")}
    steps = {"training.max_steps": 40, "training.eval_frequency": 40}
    config = PROJECT / "configs" / "entity_linker.cfg"
    train(config, tmp_path, overrides={**overrides, **steps, "paths.kb": str(made / "kb")})
    spec = importlib.util.spec_from_file_location("compare", PROJECT / "scripts" / "compare.py")
    assert spec is not None and spec.loader is not None
    compare = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(compare)
    out = tmp_path / "metrics" / "test.json"
    compare.main(made / "kb", tmp_path / "model-best", made / "test.spacy", out)
    metrics = json.loads(out.read_text("utf-8"))
    assert (metrics["mentions"], metrics["ambiguous"]) == (51, 48)
    trained, untrained = metrics["scores"].values()
    # Names alone: one of two for each ambiguous one, all of the others.
    assert untrained["nel_micro_f of ambiguous names"] == 0.5
    assert untrained["nel_micro_f"] == round(27 / 51, 4)
    assert trained["nel_micro_f of ambiguous names"] > 0.6
