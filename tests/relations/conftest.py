"""A trained pipeline that tests of `bioclin_relations` share: a folder to load, never to change."""

from pathlib import Path

import pytest
from thinc.api import Adam

from tests.relations.test_component import make_examples, make_nlp, train


@pytest.fixture(scope="session")
def finder(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a pipeline that finds the relations of NOTES."""
    nlp = make_nlp(tiny_encoder)
    examples = make_examples(nlp)
    train(nlp, examples)
    optimizer = Adam(2e-3)
    while nlp.evaluate(make_examples(nlp))["rels_f"] < 1:
        nlp.update(examples, sgd=optimizer)
    folder = tmp_path_factory.mktemp("relations") / "nlp"
    nlp.to_disk(folder)
    return folder
