"""Settings of `bioclin_relations`."""

from typing import Any, Literal

from pydantic import Field, field_validator
from thinc.api import Config

from ..settings import Settings, check_choice
from .candidates import SCOPES
from .inputs import INPUTS

DEFAULT_CONFIG = Config().from_str(
    """
[component]
spans_key = null
relations_key = "relations"
level = "mention"
input = "spans"
scope = "sentence"
window = 50
types = {}
symmetric = []
thresholds = {}

[component.scorer]
@scorers = "spacy-bioclin.relation_scorer.v1"
relations_key = ${component.relations_key}

[component.model]
@architectures = "spacy-bioclin.RelationClassifier.v1"
context = true
feature_width = 32
hidden_width = 256
dropout = 0.1
learn_rate_scale = 10.0

[component.model.tok2vec]
@architectures = "spacy-transformers.TransformerListener.v1"
grad_factor = 1.0

[component.model.tok2vec.pooling]
@layers = "reduce_mean.v1"
"""
)
SCORE_WEIGHTS = {
    "rels_f": 1.0,
    "rels_p": 0.0,
    "rels_r": 0.0,
    "rels_macro_f": 0.0,
    "rels_per_type": None,
}


class RelationSettings(Settings):
    """Settings of the component, see `make_relations`."""

    spans_key: str | None
    relations_key: str = Field(min_length=1)
    level: Literal["mention", "concept"]
    input: str
    scope: str
    window: int = Field(ge=0)
    types: dict[str, list[list[str]]]
    symmetric: list[str]
    thresholds: dict[str, float]

    @field_validator("input")
    @classmethod
    def _check_input(cls, value: str) -> str:
        return check_choice(value, tuple(INPUTS))

    @field_validator("scope")
    @classmethod
    def _check_scope(cls, value: str) -> str:
        return check_choice(value, SCOPES)

    @field_validator("types", "thresholds")
    @classmethod
    def _check_keys(cls, values: dict[str, Any]) -> dict[str, Any]:
        for label in values:
            if not label or label[0] in "#;[" or set(label) & {":", "="}:
                raise ValueError(
                    f"a config cannot have {label!r} as a key: leave it out, since types can come "
                    "from the training corpus, and thresholds from `bioclin calibrate`"
                )
        return values

    @field_validator("types")
    @classmethod
    def _check_types(cls, values: dict[str, list[list[str]]]) -> dict[str, list[list[str]]]:
        for label, pairs in values.items():
            if not pairs:
                raise ValueError(f"{label} has no pair of entity labels")
            for pair in pairs:
                if len(pair) != 2:
                    raise ValueError(
                        f"{label} has {pair}: want the labels of two entities, head and child"
                    )
        return values

    @field_validator("thresholds")
    @classmethod
    def _check_thresholds(cls, values: dict[str, float]) -> dict[str, float]:
        for label, value in values.items():
            if not 0 <= value <= 1:
                raise ValueError(f"the threshold of {label} is {value}, want 0 to 1")
        return values
