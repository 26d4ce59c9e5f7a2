"""Assemble a de-identification pipeline from the components that find PHI and `bioclin_deid`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.util import is_package, load_config

from ..errors import BioclinError
from ..vocab import find_folder
from .component import DEFAULT_CONFIG, LANGS, Deidentifier
from .policy import Policy, load_policy, make_policy

# From the best to the smallest: the first that is installed is the default.
SIZES = ("lg", "md", "sm")
# Components that neither find PHI nor change what is found, unless they write the spans of
# `bioclin_deid`.
UNNEEDED = frozenset(
    {
        "bioclin_context",
        "bioclin_ents",
        "bioclin_hf_ner",
        "bioclin_linker",
        "bioclin_measurements",
        "bioclin_ner",
        "bioclin_sections",
        "entity_linker",
        "ner",
        "spancat",
        "spancat_singlelabel",
        "textcat",
        "textcat_multilabel",
    }
)
# Needed only by the components that listen to them.
ENCODERS = frozenset({"transformer", "tok2vec"})
# What these read is known: for the windows of an encoder, the starts of sentences.
REMOVERS = frozenset({"bioclin_deid", "bioclin_phi_rules"})
KNOWN = UNNEEDED | ENCODERS | REMOVERS
KNOWN |= {"bioclin_cleaner", "bioclin_sentences", "sentencizer", "senter", "span_ruler"}


def make_pipeline(
    source: Language | str,
    *,
    rules_only: bool = False,
    policy: Policy | Mapping[str, Any] | Path | None = None,
    key: bytes | None = None,
) -> Language:
    """Make a pipeline that finds PHI and writes the safe note to `doc._.deid`.

    source (Language | str): A pipeline that finds PHI, to which the rules and `bioclin_deid` are
        added if it has none; or a language, "es" or "en", for the largest installed pipeline of
        ours (es_bioclin_sm, en_bioclin_sm) without the components that find no PHI.
    rules_only (bool): With a language: a pipeline of rules alone. They miss most names, places and
        occupations in running text.
    policy (Policy | Mapping | Path | None): What to do with each kind of PHI: settings, or a YAML
        file of them. None keeps the policy of the pipeline; without one, everything is masked.
    key (bytes | None): The secret key; None for that of the environment.
    RETURNS (Language): The pipeline; it is `source` if that is one.
    RAISES (BioclinError): There is no such language, no pipeline of ours is installed for it, a
        mistake in the policy, or a component finds PHI that would not be removed: it is disabled,
        or runs after `bioclin_deid`.
    """
    if isinstance(source, Language):
        if rules_only:
            raise BioclinError('rules_only = True is for a language ("es"), not for a pipeline')
        nlp = source
    elif source not in LANGS:
        raise BioclinError(f"language {source!r}: want one of {', '.join(LANGS)}, or a pipeline")
    elif rules_only:
        tokenizer = {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}
        nlp = spacy.blank(source, config={"nlp": {"tokenizer": tokenizer}})
    else:
        name = find_installed(source, or_else="or give rules_only=True for rules alone, which miss")
        nlp = spacy.load(name, exclude=list_unneeded_of(name))
    nlp.max_length = 2**31  # spaCy's limit is for its parser
    deid = add_deid(nlp)
    check_detectors(nlp)
    if policy is not None:
        if isinstance(policy, Path):
            policy = load_policy(policy, lang=deid.lang)
        elif not isinstance(policy, Policy):
            policy = make_policy(policy, lang=deid.lang, source="policy")
        deid.policy = policy
        nlp.get_pipe_config(deid.name)["policy"] = policy.model_dump()
    if key is not None:
        deid.key = key
    return nlp


def add_deid(nlp: Language) -> Deidentifier:
    """Add `bioclin_phi_rules` and `bioclin_deid` to a pipeline that does not have them.

    RETURNS (Deidentifier): The pipeline's `bioclin_deid`.
    """
    names = {factory: name for name, factory in nlp.pipe_factories.items()}
    if "bioclin_phi_rules" not in names:
        nlp.add_pipe("bioclin_phi_rules", before=names.get("bioclin_deid"))
    if "bioclin_deid" not in names:
        nlp.add_pipe("bioclin_deid")
    return find_deid(nlp)


def check_detectors(nlp: Language) -> None:
    """Check that what every detector of PHI finds is removed.

    RAISES (BioclinError): A detector or `bioclin_deid` is disabled, a detector runs after it, or
        one with which the pipeline was calibrated is missing.
    """
    detectors = _find_detectors(nlp)
    disabled = [name for name in detectors if name in nlp.disabled]
    if disabled:
        raise BioclinError(
            f"{', '.join(disabled)}: a disabled component leaves PHI in the notes. Enable it with "
            "nlp.enable_pipe, or remove it"
        )
    deid = find_deid(nlp)
    late = detectors[detectors.index(deid.name) + 1 :]
    if late:
        raise BioclinError(
            f"{', '.join(late)}: what it finds after {deid.name} stays in the notes. Add "
            f"{deid.name} at the end of the pipeline"
        )
    deid.check_detectors()


def finds_phi(nlp: Language) -> bool:
    """Check whether a component of a pipeline finds PHI: the rules, or one that writes the spans of
    `bioclin_deid`."""
    return bool(_find_detectors(nlp))


def list_detectors(nlp: Language) -> list[str]:
    """List the enabled components that find PHI, without `bioclin_deid`."""
    factories = nlp.pipe_factories
    return [
        name
        for name in _find_detectors(nlp)
        if name in nlp.pipe_names and factories[name] != "bioclin_deid"
    ]


def _find_detectors(nlp: Language) -> list[str]:
    """List the components that find PHI, and `bioclin_deid`, in their order."""
    spans_key = DEFAULT_CONFIG["spans_key"]
    return [
        name
        for name in nlp.component_names
        if nlp.get_pipe_meta(name).factory in ("bioclin_phi_rules", "bioclin_deid")
        or nlp.get_pipe_config(name).get("spans_key") == spans_key
    ]


def find_deid(nlp: Language) -> Deidentifier:
    """Find the pipeline's `bioclin_deid`.

    RAISES (BioclinError): The pipeline does not have one.
    """
    for name, factory in nlp.pipe_factories.items():
        if factory == "bioclin_deid":
            return nlp.get_pipe(name)  # type: ignore[return-value]
    raise BioclinError("the pipeline has no bioclin_deid: add it at its end")


def find_installed(lang: str, *, or_else: str) -> str:
    """Find the largest installed pipeline of ours for a language.

    lang (str): "es" or "en".
    or_else (str): The remedy beside installing one, which ends in "which miss".
    RETURNS (str): Name of the package, such as es_bioclin_sm.
    RAISES (BioclinError): None is installed.
    """
    names = [f"{lang}_bioclin_{size}" for size in SIZES]
    for name in names:
        if is_package(name):
            return name
    raise BioclinError(
        f"no pipeline that finds PHI is installed for {lang!r}: install {names[-1]} (pip install "
        f"{names[-1]}-VERSION-py3-none-any.whl), {or_else} most names, places and occupations in "
        "running text"
    )


def list_unneeded(config: Mapping[str, Any]) -> list[str]:
    """List the components that need not be loaded to find and remove PHI.

    A component that is not one of ours or of spaCy's can read anything, so that a pipeline with
    one needs all its components.

    config (Mapping): Config of the pipeline.
    RETURNS (list[str]): Names of components, in the order of the pipeline.
    """
    names = config.get("nlp", {}).get("pipeline", [])
    parts = {name: config.get("components", {}).get(name, {}) for name in names}
    if any(part.get("factory") not in KNOWN for part in parts.values()):
        return []
    keys = {part.get("spans_key") for part in parts.values() if part["factory"] in REMOVERS}
    keys.add(DEFAULT_CONFIG["spans_key"])
    unneeded = {
        name
        for name, part in parts.items()
        if part["factory"] in UNNEEDED and part.get("spans_key") not in keys
    }
    encoders = {name for name, part in parts.items() if part["factory"] in ENCODERS}
    # Any model may listen to the encoder.
    if not any("model" in parts[name] for name in parts.keys() - unneeded - encoders):
        unneeded |= encoders
    return [name for name in names if name in unneeded]


def list_unneeded_of(pipeline: str) -> list[str]:
    """List the components of a stored pipeline that need not be loaded, see `list_unneeded`.

    pipeline (str): Name of an installed package, or a folder.
    RETURNS (list[str]): Names of components; none if there is no config.cfg.
    """
    path = find_folder(pipeline) / "config.cfg"
    return list_unneeded(load_config(path)) if path.is_file() else []
