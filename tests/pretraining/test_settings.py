"""Settings of trainings, and the options that commands derive from them."""

from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from spacy_bioclin.cli.pretrain.options import add_options, parse_shares
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.pretraining.settings import AlignSettings, PretrainSettings


@pytest.fixture
def app():
    app = typer.Typer()

    @app.command()
    @add_options(AlignSettings)
    def main(
        name: str, settings: AlignSettings, times: Annotated[int, typer.Option(help="Times.")] = 1
    ) -> None:
        print(name, times, settings)

    return app


def test_defaults_are_those_of_the_class(app):
    assert CliRunner().invoke(app, ["a"]).output == f"a 1 {AlignSettings(max_seconds=0.0)}\n"


def test_options_set_the_fields_and_leave_those_of_the_command(app):
    arguments = ["a", "--steps", "7", "--learn-rate", "0.5", "--precision", "fp32", "--times", "2"]
    settings = AlignSettings(steps=7, learn_rate=0.5, precision="fp32", max_seconds=0.0)
    assert CliRunner().invoke(app, arguments).output == f"a 2 {settings}\n"


def test_help_has_the_documentation_of_the_fields(app):
    shown = CliRunner().invoke(app, ["--help"]).output
    assert "Pairs of names per update" in " ".join(shown.split())
    assert "--settings" not in shown


def test_a_field_without_documentation_is_no_option():
    app = typer.Typer()
    app.command()(add_options(PretrainSettings)(lambda settings: print(settings.shares)))
    assert CliRunner().invoke(app, []).output == "{}\n"
    assert CliRunner().invoke(app, ["--shares", "es=1"]).exit_code == 2


def test_shares():
    assert parse_shares(["es=0.6", "en=1"]) == {"es": 0.6, "en": 1.0}
    assert parse_shares(None) == {}
    with pytest.raises(BioclinError, match="--share is 'en', want LANG=SHARE"):
        parse_shares(["en"])
