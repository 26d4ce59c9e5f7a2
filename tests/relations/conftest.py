"""A trained pipeline that tests of `bioclin_relations` share: a folder to load, never to change."""

from pathlib import Path

import pytest

from tests.relations.test_component import make_examples, make_nlp, train
from tests.trained import train_on


@pytest.fixture(scope="session")
def finder(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a pipeline that finds the relations of NOTES."""
    nlp = make_nlp(tiny_encoder)
    examples = make_examples(nlp)
    train(nlp, examples)
    train_on(nlp, examples, lambda: nlp.evaluate(examples)["rels_f"] == 1)
    folder = tmp_path_factory.mktemp("relations") / "nlp"
    nlp.to_disk(folder)
    return folder
