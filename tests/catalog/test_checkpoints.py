"""The published checkpoints of the catalogue, and `bioclin encoders` on them."""

import json

from typer.testing import CliRunner, Result

from spacy_bioclin.catalog.checkpoints import load_checkpoints, match_checkpoint
from spacy_bioclin.catalog.encoders import load_encoders
from spacy_bioclin.cli import app

NAMED = ("bsc-bio-ehr-es-pharmaconer", "bsc-bio-ehr-es-cantemist", "obi/deid_roberta_i2b2")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["encoders", *arguments])


def test_names_do_not_collide_with_encoders() -> None:
    names = {spelling for one in load_encoders().values() for spelling in one.names}
    assert not {name.casefold() for name in load_checkpoints()} & {*load_encoders(), *names}


def test_the_checkpoints_that_users_ask_for() -> None:
    for name in NAMED:
        key = match_checkpoint(name.upper())
        assert key is not None
        one = load_checkpoints()[key]
        encoder = one.to_encoder()
        assert encoder.source == one.hub and encoder.revision == one.revision
        assert one.licence


def test_what_is_not_known_is_unconfirmed() -> None:
    for name, one in load_checkpoints().items():
        for field in ("revision", "labels"):
            assert getattr(one, field) or field in one.unconfirmed, (name, field)


def test_commands() -> None:
    listed = run("checkpoints", "--lang", "en")
    assert listed.exit_code == 0 and "deid_roberta_i2b2" in listed.stdout
    assert "pharmaconer" not in listed.stdout
    assert "encoders checkpoints" in run("list").stdout
    shown = run("show", "obi/deid_roberta_i2b2").stdout
    assert "import-hf checkpoints/deid_roberta_i2b2 -o PIPELINE --lang en --spans-key phi" in shown
    assert "roberta-large (unconfirmed)" in shown
    content = json.loads(run("show", "deid_roberta_i2b2", "--json").stdout)
    assert content["licence"] == "MIT"
