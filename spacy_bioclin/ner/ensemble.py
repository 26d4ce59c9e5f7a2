"""Ensembles: taggers with encoders of their own, whose probabilities are averaged.

An ensemble is a `bioclin_ner` whose model, `spacy-bioclin.Ensemble.v1`, has a tagger per member.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn

from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import Model

from ..errors import BioclinError
from .component import ClinicalNer
from .model import TaggerModel, TagScores

ARCHITECTURE = "spacy-bioclin.Ensemble.v1"
LISTENER = re.compile(r"\.(Transformer|Tok2Vec)Listener\.")
# Settings and labels that say what a head finds, and where it writes it.
SHARED = ("labels", "scheme", "nested", "spans_key")


def build_ensemble(*members: TaggerModel) -> Model[list[Doc], list[TagScores]]:
    """Build a model that scores tags with several taggers.

    It is made by `bioclin ensemble` and predicts only.

    members (Model): `spacy-bioclin.CrfTagger.v1` or `spacy-bioclin.LinearTagger.v1`, each with an
        encoder of its own as `tok2vec`.
    RAISES (BioclinError): There are fewer than two.
    """
    if len(members) < 2:
        raise BioclinError(f"{ARCHITECTURE} has {len(members)} members, want two or more")
    return Model("tagger_ensemble", _forward, init=_refuse, layers=list(members))


def _forward(
    model: Model, docs: list[Doc], is_train: bool
) -> tuple[list[TagScores], Callable[[Any], Any]]:
    if is_train:
        _refuse()
    return [member.predict(docs) for member in model.layers], _refuse


def _refuse(*_: Any, **__: Any) -> NoReturn:
    """Refuse to train."""
    raise BioclinError(
        f"{ARCHITECTURE} cannot be trained: train its members (`bioclin ensemble`), train one "
        "pipeline that imitates it (`bioclin distill-ner`), or list the component in "
        "[training] frozen_components"
    )


def join_pipelines(pipelines: Iterable[tuple[str, Language]]) -> Language:
    """Join trained pipelines into one whose `bioclin_ner` averages their probabilities.

    Everything else is that of the first pipeline: its other components, and the settings of its
    `bioclin_ner`. Only one pipeline is held in memory beside the members.

    pipelines (Iterable[tuple[str, Language]]): Name for messages and pipeline, which is changed.
        Each has one `bioclin_ner`, and no other component that uses the encoder.
    RETURNS (Language): The pipeline.
    RAISES (BioclinError): There are fewer than two, one cannot be a member, or they differ in
        anything but the weights and the encoder.
    """
    first: Language | None = None
    parts: dict[str, Any] = {}
    configs, weights = [], []
    for name, nlp in pipelines:
        head = find_head(nlp, name)
        give_own_encoder(nlp, head, name)
        found = describe_parts(nlp, head)
        first, parts = first or nlp, parts or found
        if different := [key for key in {**parts, **found} if parts.get(key) != found.get(key)]:
            raise BioclinError(
                f"{name}: has another {different[0]} than the first pipeline; join pipelines that "
                "were trained with the same config, on corpora with the same labels"
            )
        component: Any = nlp.get_pipe(head)
        configs.append(nlp.get_pipe_config(head)["model"])
        weights.append(component.model.to_bytes())
    if first is None or len(configs) < 2:
        raise BioclinError("an ensemble has two or more members: give more pipelines")
    head = find_head(first, "the first pipeline")
    old: Any = first.get_pipe(head)
    members = {str(number): config for number, config in enumerate(configs)}
    model = {"@architectures": ARCHITECTURE, "*": members}
    config = {**first.get_pipe_config(head), "model": model}
    del config["factory"]
    new: Any = first.replace_pipe(head, "bioclin_ner", config=config)
    new.cfg["labels"] = old.cfg["labels"]
    for member, content in zip(new.model.layers, weights, strict=True):
        member.from_bytes(content)
    new.check_stored()
    first.meta["performance"] = {}  # that of a member
    return first


def find_head(nlp: Language, name: str) -> str:
    """Find the one `bioclin_ner` of a pipeline.

    name (str): Of the pipeline, for messages.
    RETURNS (str): Name of the component.
    RAISES (BioclinError): There is none, there are several, or it is an ensemble.
    """
    found = [(pipe, each) for pipe, each in nlp.components if isinstance(each, ClinicalNer)]
    if len(found) != 1:
        names = f"several bioclin_ner ({', '.join(pipe for pipe, _ in found)})"
        raise BioclinError(
            f"{name}: has {names if found else 'no bioclin_ner'}, and a member of an ensemble has "
            "one; train a pipeline with a config like configs/ner.cfg"
        )
    [(pipe, component)] = found
    if component.is_ensemble:
        raise BioclinError(f"{name}: is an ensemble itself; join its members with the others")
    return pipe


def give_own_encoder(nlp: Language, head: str, name: str) -> None:
    """Move the encoder that a component listens to into the component.

    nlp (Language): The pipeline, changed in place.
    head (str): Name of the component.
    name (str): Of the pipeline, for messages.
    RAISES (BioclinError): Other components use the encoder, too.
    """
    sections = list(_find_listeners(nlp.get_pipe_config(head)["model"], "model"))
    for encoder, component in list(nlp.components):
        listeners: Mapping[str, Any] = getattr(component, "listener_map", {})
        if head not in listeners:
            continue
        if others := sorted({*listeners} - {head}):
            raise BioclinError(
                f"{name}: {', '.join(others)} uses the encoder of {head}, and in an ensemble each "
                f"member of {head} has its own; put {', '.join(others)} into a pipeline of its own"
            )
        nlp.replace_listeners(encoder, head, sections)
        nlp.remove_pipe(encoder)


def _find_listeners(section: Mapping[str, Any], path: str) -> Iterator[str]:
    """Find the listeners in a section of a config: their paths, joined with dots."""
    if LISTENER.search(str(section.get("@architectures"))):
        yield path
    for key, value in section.items():
        if isinstance(value, Mapping):
            yield from _find_listeners(value, f"{path}.{key}")


def describe_parts(nlp: Language, head: str) -> dict[str, Any]:
    """Describe what the members of an ensemble have in common.

    RETURNS (dict[str, Any]): Name for messages -> a value that can be compared.
    """
    component: Any = nlp.get_pipe(head)
    tokenizer: Any = nlp.tokenizer
    parts = {
        "language": nlp.lang,
        "list of components": [(name, nlp.get_pipe_meta(name).factory) for name in nlp.pipe_names],
        "tokenizer": tokenizer.to_bytes(),
        **{f"[components.{head}] {key}": component.cfg[key] for key in SHARED},
    }
    for name, other in nlp.components:
        if name != head and hasattr(other, "to_bytes"):
            parts[f"component {name}"] = other.to_bytes()
    return parts
