"""Assemble a de-identification pipeline from the components that find PHI and `bioclin_deid`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language

from ..errors import BioclinError
from .component import DEFAULT_CONFIG, LANGS, Deidentifier
from .policy import Policy, load_policy, make_policy


def make_pipeline(
    source: Language | str,
    *,
    policy: Policy | Mapping[str, Any] | Path | None = None,
    key: bytes | None = None,
) -> Language:
    """Make a pipeline that finds PHI and writes the safe note to `doc._.deid`.

    source (Language | str): A pipeline that finds PHI, to which the rules and `bioclin_deid` are
        added if it has none; or a language, "es" or "en", for a pipeline of rules alone.
    policy (Policy | Mapping | Path | None): What to do with each kind of PHI: settings, or a YAML
        file of them. None keeps the policy of the pipeline; without one, everything is masked.
    key (bytes | None): The secret key; None for that of the environment.
    RETURNS (Language): The pipeline; it is `source` if that is one.
    RAISES (BioclinError): There is no such language, a mistake in the policy, or a component finds
        PHI that would not be removed: it is disabled, or runs after `bioclin_deid`.
    """
    if isinstance(source, Language):
        nlp = source
    elif source in LANGS:
        tokenizer = {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}
        nlp = spacy.blank(source, config={"nlp": {"tokenizer": tokenizer}})
    else:
        raise BioclinError(f"language {source!r}: want one of {', '.join(LANGS)}, or a pipeline")
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

    RAISES (BioclinError): A detector or `bioclin_deid` is disabled, or a detector runs after it.
    """
    detectors = _find_detectors(nlp)
    disabled = [name for name in detectors if name in nlp.disabled]
    if disabled:
        raise BioclinError(
            f"{', '.join(disabled)}: a disabled component leaves PHI in the notes. Enable it with "
            "nlp.enable_pipe, or remove it"
        )
    deid = find_deid(nlp).name
    late = detectors[detectors.index(deid) + 1 :]
    if late:
        raise BioclinError(
            f"{', '.join(late)}: what it finds after {deid} stays in the notes. Add {deid} at the "
            "end of the pipeline"
        )


def finds_phi(nlp: Language) -> bool:
    """Check whether a component of a pipeline finds PHI: the rules, or one that writes the spans of
    `bioclin_deid`."""
    return bool(_find_detectors(nlp))


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
