"""`bioclin_pairs`: classes or graded scores of pairs of texts."""

import math
from collections.abc import Callable, Collection, Iterable
from itertools import islice
from typing import Any, Literal, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Config
from torch import Tensor

from ..annotations.pairs import get_boundary, install_extensions, set_pair
from ..errors import BioclinError
from ..settings import Settings, read_settings
from ..torch_bridge.components import GIVEN, Scorer, StoredSettings, check_encoded
from .gold import (
    check_predicted,
    choose_labels,
    collect_classes,
    collect_grades,
    find_classes,
    find_grades,
)
from .loss import Scale, class_loss, grade_loss
from .model import PairModel

DEFAULT_CONFIG = Config().from_str(
    """
[component]
objective = "classification"
require_pairs = true

[component.scorer]
@scorers = "spacy-bioclin.pair_scorer.v1"

[component.model]
@architectures = "spacy-bioclin.PairClassifier.v1"
dropout = 0.1
learn_rate_scale = 10.0
hidden = true
compare_texts = true

[component.model.tok2vec]
@architectures = "spacy-transformers.TransformerListener.v1"
grad_factor = 1.0

[component.model.tok2vec.pooling]
@layers = "reduce_mean.v1"
"""
)
SCORE_WEIGHTS = {
    "pairs_acc": 1.0,
    "pairs_micro_f": 0.0,
    "pairs_macro_f": 0.0,
    "pairs_per_type": None,
    "pairs_pearson": 0.0,
    "pairs_spearman": 0.0,
}
# How many Docs of the training corpus `initialize` looks at to infer widths.
N_SAMPLE = 10


class PairSettings(Settings):
    """Settings of the component, see `make_pairs`."""

    objective: Literal["classification", "regression"]
    require_pairs: bool


class PairPrediction(NamedTuple):
    """What is predicted of a pair, see `Pair`."""

    label: str | None
    score: float | None
    probabilities: dict[str, float]


@Language.factory(
    "bioclin_pairs",
    assigns=["doc.cats", "doc._.pair"],
    default_config=DEFAULT_CONFIG.interpolate()["component"],
    default_score_weights=SCORE_WEIGHTS,
)
def make_pairs(
    nlp: Language,
    name: str,
    model: PairModel,
    objective: str,
    require_pairs: bool,
    scorer: Scorer | None,
) -> "PairPipe":
    """Make the component.

    model (Model): `spacy-bioclin.PairClassifier.v1`.
    objective (str): "classification": each pair has one class, and `doc.cats` gets the probability
        of each. "regression": each pair has a score, any number, in `doc.cats["score"]`.
    require_pairs (bool): A Doc that is no pair of texts is an error. False to leave such Docs as
        they are, in a pipeline that has components for them, too.
    scorer (Callable | None): See `spacy-bioclin.pair_scorer.v1`.
    """
    values = {"objective": objective, "require_pairs": require_pairs}
    settings = read_settings(PairSettings, values, where=f"[components.{name}]")
    return PairPipe(nlp.vocab, model, name=name, settings=settings, scorer=scorer)


class PairPipe(StoredSettings):
    """Classify or grade pairs of texts. See `make_pairs`."""

    def __init__(
        self,
        vocab: Vocab,
        model: PairModel,
        *,
        name: str,
        settings: PairSettings,
        scorer: Scorer | None,
    ) -> None:
        super().__init__(vocab, model, name=name, cfg=settings.model_dump(), scorer=scorer)
        self.cfg["labels"], self.cfg["scale"] = [], None
        install_extensions()

    @property
    def is_regression(self) -> bool:
        """Whether pairs have scores, not classes."""
        return self.cfg["objective"] == "regression"

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes, sorted; none for scores."""
        return tuple(self.cfg["labels"])

    @property
    def label_data(self) -> tuple[str, ...]:
        """What `spacy init labels` stores."""
        return self.labels

    @property
    def scale(self) -> Scale:
        """How scores are standardised. RAISES (BioclinError): Before training."""
        if self.cfg["scale"] is None:
            raise BioclinError(f"[components.{self.name}] has not been trained")
        return Scale(*self.cfg["scale"])

    def check_settings(self, changed: Collection[str]) -> None:
        """Check the settings after loading, see `StoredSettings.check_settings`.

        RAISES (BioclinError): The weights are for another objective.
        """
        if "objective" in changed:
            raise BioclinError(
                f"[components.{self.name}] objective = {self.cfg['objective']!r}: the component "
                "was trained with another value; leave the setting out, or train again"
            )
        values = {key: self.cfg[key] for key in self.cfg[GIVEN]}
        read_settings(PairSettings, values, where=f"[components.{self.name}]")

    def check_stored(self) -> None:
        """Check that labels and weights belong together, see `StoredSettings.check_stored`."""
        super().check_stored()
        labels, scale = self.cfg.get("labels"), self.cfg.get("scale")
        if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
            raise BioclinError("the file 'cfg' has no labels")
        shape = self.model.get_ref("head").shims[0].cfg
        if not shape:  # saved before it was trained
            return
        if shape.get("n_outputs") != (1 if self.is_regression else len(labels)):
            raise BioclinError(
                f"the file 'cfg' has {len(labels)} labels, but the weights are for others: the "
                "pipeline was not copied completely"
            )
        if self.is_regression and not _is_scale(scale):
            raise BioclinError("the file 'cfg' has no mean and deviation of scores")

    def predict(self, docs: Iterable[Doc]) -> list[PairPrediction | None]:
        """Find the probabilities of the classes, or the score, of each pair.

        RETURNS (list[PairPrediction | None]): None for a Doc that is no pair.
        RAISES (BioclinError): There is one, see `make_pairs`.
        """
        docs = list(docs)
        pairs = [doc for doc in docs if get_boundary(doc) is not None]
        if len(pairs) < len(docs) and self.cfg["require_pairs"]:
            raise BioclinError(
                f"[components.{self.name}] a Doc is no pair of texts: make it with make_pair(nlp, "
                "first, second) of spacy_bioclin.annotations.pairs. In a pipeline for other Docs "
                "too, set require_pairs to false"
            )
        if not pairs or not self.model.get_ref("head").shims[0].cfg:
            return [None] * len(docs)
        check_encoded(self.model, pairs, self.name, "classify pairs")
        found = iter(self._read(self.model.predict(pairs)))
        return [None if get_boundary(doc) is None else next(found) for doc in docs]

    def _read(self, scores: Tensor) -> list[PairPrediction]:
        """Make predictions of the scores of pairs."""
        if self.is_regression:
            scale = self.scale
            grades = (scores[:, 0].double() * scale.std + scale.mean).tolist()
            return [PairPrediction(None, grade, {}) for grade in grades]
        rows = scores.softmax(dim=1).tolist()
        tables = [dict(zip(self.labels, row, strict=True)) for row in rows]
        return [PairPrediction(max(table, key=table.__getitem__), None, table) for table in tables]

    def set_annotations(self, docs: Iterable[Doc], scores: list[PairPrediction | None]) -> None:
        """Write predictions to `doc.cats` and `doc._.pair`."""
        for doc, found in zip(docs, scores, strict=True):
            if found is not None:
                set_pair(doc, **found._asdict())

    def get_loss(self, examples: Iterable[Example], scores: Tensor) -> tuple[float, Tensor]:
        """Compute the loss per annotated pair and its gradient: cross-entropy (nats), or squared
        error of standardised scores."""
        examples = list(examples)
        check_predicted(examples, self.name)
        if self.is_regression:
            return grade_loss(scores, find_grades(examples, self.name), self.scale)
        return class_loss(scores, find_classes(examples, self.labels, self.name))

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: Iterable[str] | None = None,
    ) -> None:
        """Collect the classes, or mean and deviation of the scores, and create the weights.

        labels (Iterable[str] | None): The classes; None to collect them from the examples.
        RAISES (BioclinError): There is nothing to learn from, see `collect_classes`.
        """
        if self.is_regression:
            scale = Scale.of(collect_grades(get_examples(), self.name))
            if not scale.std > 0:
                raise BioclinError(
                    f"[components.{self.name}] cannot learn: all pairs of the training corpus have "
                    f"the score {scale.mean}"
                )
            self.cfg["labels"], self.cfg["scale"] = [], list(scale)
        else:
            counts = collect_classes(get_examples(), self.name)
            given = None if labels is None else list(labels)
            self.cfg["labels"], self.cfg["scale"] = choose_labels(counts, given, self.name), None
        self.model.get_ref("head").attrs["n_outputs"] = len(self.labels) or 1
        sample = [eg.predicted for eg in islice(get_examples(), N_SAMPLE) if len(eg.predicted)]
        self.model.initialize(X=sample)


def _is_scale(values: Any) -> bool:
    """Check that stored values are mean and standard deviation."""
    if not isinstance(values, list) or len(values) != 2:
        return False
    return all(isinstance(value, float) and math.isfinite(value) for value in values) and (
        values[1] > 0
    )
