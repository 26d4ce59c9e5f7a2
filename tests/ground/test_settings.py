"""Every mistake in settings is one message: source, key, value, what is wanted, nearest name."""

from pathlib import Path
from typing import Literal

import pytest
from pydantic import Field, field_validator

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.settings import Settings, check_choice, load_settings, read_settings


class Part(Settings):
    path: str
    scale: float = 1.0


class Plan(Settings):
    """Settings of every kind that the package has."""

    kind: Literal["fast", "exact"] = "fast"
    share: float = Field(0.5, gt=0, le=1)
    layers: int = Field(0, ge=0)
    seeds: list[int] = Field(default_factory=list)
    notes: int | dict[str, int] | None = None
    parts: dict[str, Part] = Field(default_factory=dict)
    lang: str = "es"

    @field_validator("lang")
    @classmethod
    def _is_known(cls, value: str) -> str:
        return check_choice(value, ["es", "en"])


def test_defaults_and_values() -> None:
    assert read_settings(Plan, None, where="x") == Plan()
    plan = read_settings(Plan, {"share": 1, "parts": {"a": {"path": "b"}}}, where="x")
    assert (plan.share, plan.parts["a"]) == (1.0, Part(path="b"))


MISTAKES = [
    (["a"], "want a table with some of the keys kind, share"),
    ({"shares": 1}, "unknown key 'shares'; did you mean share? want some of kind, share, "),
    ({"parts": {"a": {"scale": 2}}}, "parts.a.path is missing"),
    ({"parts": {"a": {"pat": "x"}}}, "unknown key 'parts.a.pat'; did you mean path?"),
    (
        {"parts": {"a": {"path": "x", "scael": 1}}},
        "unknown key 'parts.a.scael'; did you mean scale? want some of path, scale",
    ),
    ({"kind": "exat"}, "kind = 'exat': did you mean exact? want one of fast, exact"),
    ({"share": 2}, "share = 2: want less than or equal to 1"),
    ({"share": True}, "share = True: want a valid number"),
    ({"layers": "3"}, "layers = '3': want a valid integer"),
    ({"layers": -1}, "layers = -1: want greater than or equal to 0"),
    ({"seeds": [1, "b"]}, "seeds[1] = 'b': want a valid integer"),
    ({"notes": {"a": "b"}}, "notes = {'a': 'b'}: want a valid integer"),
    ({"lang": "ess"}, "lang = 'ess': unknown; did you mean es? want one of es, en"),
]


def test_mistakes() -> None:
    found = []
    for values, _ in MISTAKES:
        with pytest.raises(BioclinError) as error:
            read_settings(Plan, values, where="plan.yml")
        found.append(str(error.value))
    wrong = [
        (said, message)
        for said, (_, message) in zip(found, MISTAKES, strict=True)
        if not said.startswith(f"plan.yml: {message}")
    ]
    assert not wrong


def test_private_values_are_not_shown() -> None:
    with pytest.raises(BioclinError) as error:
        read_settings(Plan, {"kind": "García"}, where="patient", private=True)
    assert "García" not in str(error.value)
    assert "kind" in str(error.value)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "plan.yml"
    with pytest.raises(BioclinError, match=r"plan\.yml: cannot be read"):
        load_settings(Plan, path)
    path.write_text("share: [1\n")
    with pytest.raises(BioclinError, match=r"plan\.yml.*: not YAML"):
        load_settings(Plan, path)
    path.write_text("share: 1\n")
    assert load_settings(Plan, path).share == 1
