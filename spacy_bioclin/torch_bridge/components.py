"""What components with a trained head share: settings that are stored with them, checks of what is
loaded, and a check that their encoder has run."""

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import srsly
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model, xp2torch

from ..errors import BioclinError, BioclinWarning, first_line
from .outline import check_finite

# Where `doc._.trf_data` is stored.
TRF_DATA: Any = ("._.", "trf_data", None, None)
# Name of a listener's node in a model -> whether its encoder has left vectors in a Doc. Without
# them the listener returns zeros, in which a head finds nothing.
LISTENERS: dict[str, Callable[[Doc], bool]] = {
    "transformer-listener": lambda doc: doc.user_data.get(TRF_DATA) is not None,
    "tok2vec-listener": lambda doc: doc.tensor.size > 0,
}
# Key of `cfg`: the settings of the config that the component was made from.
GIVEN = "given"

Scorer = Callable[..., dict[str, Any]]
Self = TypeVar("Self", bound="StoredSettings")


def check_encoded(model: Model[Any, Any], docs: Iterable[Doc], name: str, verb: str) -> None:
    """Check that the encoder to which a model listens has run.

    model (Model): The model of a component.
    docs (Iterable[Doc]): What it is about to annotate.
    name (str): Name of the component.
    verb (str): What it cannot do otherwise ("find entities").
    RAISES (BioclinError): A Doc has tokens, but no vectors.
    """
    docs = list(docs)
    for node in model.walk():
        has_vectors = LISTENERS.get(node.name)
        if has_vectors is None or all(has_vectors(doc) for doc in docs if len(doc)):
            continue
        upstream = getattr(node, "upstream_name", "*")
        encoder = node.name.removesuffix("-listener") if upstream == "*" else upstream
        raise BioclinError(
            f"[components.{name}] cannot {verb}: its encoder, the component {encoder!r}, has not "
            f"run on the Doc. Load the pipeline without excluding or disabling {encoder!r} and "
            f"with {name!r} after it, or exclude {name!r} too"
        )


class StoredSettings(TrainablePipe):
    """A component whose settings are stored with its weights.

    cfg (dict): Settings that are stored with the pipeline. Those that are given when it is loaded,
        as in `spacy.load(folder, config={"components.ner.threshold": 0.4})`, win.
    scorer (Callable | None): Takes examples, returns scores.
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

    @property
    def labels(self) -> tuple[str, ...]:
        """What the head predicts."""
        raise NotImplementedError

    def add_label(self, label: str) -> int:
        """Accept a label that the component has: a trained head cannot grow.

        RAISES (BioclinError): The label is new.
        """
        if label in self.labels:
            return 0
        raise BioclinError(
            f"[components.{self.name}] cannot add a label to an existing head: put the label into "
            "the training data, or into [initialize.components.NAME.labels]"
        )

    def check_settings(self, changed: Collection[str]) -> None:
        """Check the settings after loading.

        changed (Collection[str]): Names of those that were given when loading.
        """

    def check_stored(self) -> None:
        """Check that what was loaded belongs together. RAISES (BioclinError): It does not."""
        if not isinstance(self.cfg.get(GIVEN, {}), dict):
            raise BioclinError("the settings are not a table")

    def from_disk(self: Self, path: str | Path, *, exclude: Iterable[str] = ()) -> Self:
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

    def from_bytes(self: Self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> Self:
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
