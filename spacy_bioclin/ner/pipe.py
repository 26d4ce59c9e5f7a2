"""What the components that find entities share: where they write them, and how they are scored."""

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import srsly
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model, xp2torch

from ..encoders.cleaner import TRF_DATA
from ..errors import BioclinError, BioclinWarning, first_line
from ..spans import install_extensions, set_spans
from ..torch_bridge.outline import check_finite
from .inference import Entity

ASSIGNS = ["doc.ents", "doc.spans", "token.ent_iob", "token.ent_type", "span._.probability"]
SCORE_WEIGHTS = {"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None}
# `span.id_` of an entity that is not in the most probable tags.
DOUBTFUL = "doubtful"
# Name of a listener's node in a model -> whether its encoder has left vectors in a Doc. Without
# them the listener returns zeros, in which a head finds nothing.
LISTENERS: dict[str, Callable[[Doc], bool]] = {
    "transformer-listener": lambda doc: doc.user_data.get(TRF_DATA) is not None,
    "tok2vec-listener": lambda doc: doc.tensor.size > 0,
}
# Key of `cfg`: the settings of the config that the component was made from.
GIVEN = "given"

Scorer = Callable[..., dict[str, Any]]


class EntityPipe(TrainablePipe):
    """Write entities to `doc.ents` and their probabilities to `span._.probability`, or to
    `doc.spans[spans_key]` and `doc.spans[spans_key].attrs["scores"]`.

    cfg (dict): Settings that are stored with the pipeline. Those that are given when it is loaded,
        as in `spacy.load(folder, config={"components.ner.threshold": 0.4})`, win.
    scorer (Callable | None): See `spacy-bioclin.span_scorer.v1`.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model[list[Doc], Any],
        *,
        name: str,
        cfg: dict[str, Any],
        scorer: Scorer | None,
    ) -> None:
        self.vocab = vocab
        self.model = model
        self.name = name
        self.cfg = {**cfg, GIVEN: cfg}
        self.scorer = scorer
        install_extensions()

    @property
    def spans_key(self) -> str | None:
        """Key of `doc.spans` where entities are, or None for `doc.ents`."""
        raise NotImplementedError

    def check_encoded(self, docs: list[Doc]) -> None:
        """Check that the encoder to which the model listens has run.

        RAISES (BioclinError): A Doc has tokens, but no vectors.
        """
        for node in self.model.walk():
            has_vectors = LISTENERS.get(node.name)
            if has_vectors is None or all(has_vectors(doc) for doc in docs if len(doc)):
                continue
            name = getattr(node, "upstream_name", "*")
            encoder = node.name.removesuffix("-listener") if name == "*" else name
            raise BioclinError(
                f"[components.{self.name}] cannot find entities: its encoder, the component "
                f"{encoder!r}, has not run on the Doc. Load the pipeline without excluding or "
                f"disabling {encoder!r} and with {self.name!r} after it, or exclude {self.name!r} "
                "too"
            )

    def set_annotations(self, docs: Iterable[Doc], scores: list[list[Entity]]) -> None:
        """Write entities to the Docs."""
        for doc, entities in zip(docs, scores, strict=True):
            spans = [
                Span(doc, e.start, e.end, label=e.label, span_id=DOUBTFUL if e.doubtful else 0)
                for e in entities
            ]
            set_spans(doc, self.spans_key, spans, [entity.probability for entity in entities])

    def check_settings(self, changed: Collection[str]) -> None:
        """Check the settings after loading.

        changed (Collection[str]): Names of those that were given when loading.
        """

    def check_stored(self) -> None:
        """Check that what was loaded belongs together. RAISES (BioclinError): It does not."""
        if not isinstance(self.cfg.get(GIVEN, {}), dict):
            raise BioclinError("the settings are not a table")

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "EntityPipe":
        """Load what `to_disk` wrote.

        RAISES (BioclinError): A file is missing. With a missing cfg, which spaCy takes for an empty
            one, the component would find nothing.
        """
        for name in ("cfg", "model"):
            if name not in exclude and not (Path(path) / name).is_file():
                raise BioclinError(
                    f"[components.{self.name}] cannot be loaded: {path} has no file {name!r}; the "
                    "pipeline was not copied completely, or not saved by nlp.to_disk"
                )
        given = self.cfg[GIVEN]
        with self._explained(str(path)):
            if "cfg" not in exclude and not isinstance(srsly.read_json(Path(path) / "cfg"), dict):
                raise BioclinError("the file 'cfg' holds no settings")
            super().from_disk(path, exclude=exclude)
        self._keep_given(given)
        return self

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "EntityPipe":
        """Load what `to_bytes` wrote."""
        given = self.cfg[GIVEN]
        with self._explained("the bytes"):
            super().from_bytes(bytes_data, exclude=exclude)
        self._keep_given(given)
        return self

    @contextmanager
    def _explained(self, where: str) -> Iterator[None]:
        """Let whatever is wrong with stored settings and weights be one line, and check that they
        are numbers.

        RAISES (BioclinError): Something is wrong.
        """
        try:
            yield
            self.check_stored()
            for node in self.model.walk():
                weights = {name: node.get_param(name) for name in node.param_names}
                known = {name: xp2torch(w) for name, w in weights.items() if w is not None}
                check_finite(known)
        except Exception as error:  # files of other people can raise any error
            kind = "" if isinstance(error, BioclinError) else f" ({type(error).__name__})"
            raise BioclinError(
                f"[components.{self.name}] cannot be loaded from {where}: {first_line(error)}{kind}"
            ) from None

    def _keep_given(self, given: dict[str, Any]) -> None:
        """Restore the settings that were given when loading: those that differ from the config that
        was saved. Pipelines of 0.2 and before did not save it; then what they saved wins."""
        saved = self.cfg[GIVEN]
        changed = {key: value for key, value in given.items() if saved.get(key, value) != value}
        self.cfg |= {**changed, GIVEN: given}
        self.check_settings(changed)

    def rehearse(self, examples: Iterable[Example], **_: Any) -> None:
        """Warn that the component cannot rehearse, and change nothing."""
        warnings.warn(
            f"[components.{self.name}] does not rehearse, nlp.rehearse() leaves it as it is: "
            "against forgetting, mix annotated examples of the old kind into nlp.update()",
            BioclinWarning,
            stacklevel=2,
        )
