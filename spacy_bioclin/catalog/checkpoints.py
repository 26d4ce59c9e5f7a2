"""The published fine-tuned checkpoints of `checkpoints.yml`."""

import functools
from pathlib import Path
from typing import Any

from pydantic import field_validator

from ..settings import Settings, check_choice, read_settings, read_yaml
from .encoders import Encoder, check_commit, find_encoder

CHECKPOINTS = Path(__file__).with_name("checkpoints.yml")


class Checkpoint(Settings):
    """A checkpoint for token classification. The head of checkpoints.yml describes each field.

    hub (str): Id on the Hugging Face hub.
    revision (str | None): Commit of the hub repository, 40 hexadecimal digits.
    encoder (str): Name in encoders.yml of the encoder that was fine-tuned.
    langs (list[str]): Languages of the notes.
    finds (str): What it finds, and the corpus that it learned that from.
    labels (list[str]): Its labels, without prefixes; [] if they are not known.
    spans_key (str): `--spans-key` for `bioclin import-hf`; "" for doc.ents.
    licence (str): Licence of the weights.
    non_commercial (bool): Whether the licence forbids commercial use.
    gated (bool): Whether the hub requires a login and a click.
    notes (str): What to know before use.
    unconfirmed (list[str]): Fields that no source confirms.
    """

    hub: str
    revision: str | None
    encoder: str
    langs: list[str]
    finds: str
    labels: list[str]
    spans_key: str
    licence: str
    non_commercial: bool
    gated: bool
    notes: str
    unconfirmed: list[str]

    @field_validator("revision")
    @classmethod
    def _check_revision(cls, revision: str | None) -> str | None:
        return check_commit(revision)

    @field_validator("unconfirmed")
    @classmethod
    def _check_unconfirmed(cls, fields: list[str]) -> list[str]:
        return [check_choice(field, list(cls.model_fields)) for field in fields]

    @property
    def import_options(self) -> str:
        """Options of `bioclin import-hf` that suit the checkpoint."""
        key = f" --spans-key {self.spans_key}" if self.spans_key else ""
        return f"--lang {self.langs[0]}{key}"

    def to_encoder(self) -> Encoder:
        """Describe it as an encoder of the same kind, for `bioclin fetch`."""
        _, base = find_encoder(self.encoder)
        shared = ("hub", "revision", "langs", "licence", "non_commercial", "gated", "notes")
        unconfirmed = [name for name in self.unconfirmed if name in Encoder.model_fields]
        source: dict[str, Any] = {"archive": None, "folder": None, "unfit": "", "default_for": []}
        fields = {name: getattr(self, name) for name in shared}
        return base.model_copy(update={**source, **fields, "unconfirmed": unconfirmed})


@functools.cache
def load_checkpoints() -> dict[str, Checkpoint]:
    """Read the catalogue of checkpoints by name."""
    return {
        name: read_settings(Checkpoint, fields, where=f"{CHECKPOINTS.name}, {name}")
        for name, fields in read_yaml(CHECKPOINTS).items()
        if not name.startswith(".")
    }


def match_checkpoint(name: str) -> str | None:
    """Find the checkpoint that has a name, in any case, with or without its organisation.

    RETURNS (str | None): Its name in the catalogue.
    """
    wanted = name.casefold()
    for key, checkpoint in load_checkpoints().items():
        if wanted in (key.casefold(), checkpoint.hub.casefold()):
            return key
    return None
