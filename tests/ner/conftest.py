"""Trained pipelines that tests of `bioclin_ner` share: folders to load, never to change."""

from pathlib import Path

import pytest

from tests.ner.test_component import make_examples, make_nlp, train
from tests.trained import train_on


@pytest.fixture(scope="session")
def tagger(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a pipeline that finds the entities of NOTES."""
    nlp = make_nlp(tiny_encoder)
    examples = make_examples(nlp)
    train(nlp, examples)
    train_on(nlp, examples, lambda: nlp.evaluate(examples)["ents_f"] == 1)
    folder = tmp_path_factory.mktemp("tagger") / "nlp"
    nlp.to_disk(folder)
    return folder
