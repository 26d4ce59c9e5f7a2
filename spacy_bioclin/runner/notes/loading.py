"""Load a pipeline to annotate notes."""

from typing import TYPE_CHECKING, Any

from ...errors import BioclinError, first_line
from ...machine import choose_device

if TYPE_CHECKING:
    from spacy.language import Language


def load_pipeline(
    name: str, *, gpu_id: int = -1, precision: str | None = None, for_deid: bool = False
) -> "Language":
    """Load a pipeline.

    name (str): Folder of a trained pipeline, or name of an installed package.
    gpu_id (int): GPU; -1 for the CPU.
    precision (str | None): Number format of the encoder; None for that of the pipeline's config.
    for_deid (bool): Leave out the components that de-identification does not need.
    RAISES (BioclinError): There is no such GPU, number format or pipeline.
    """
    import spacy

    from ...deid.pipeline import list_unneeded_of
    from ...vocab import check_components

    device = choose_device(gpu_id)
    try:
        nlp = spacy.load(name, exclude=list_unneeded_of(name) if for_deid else [])
    except BioclinError as error:
        raise BioclinError(f"cannot load the pipeline {name!r}: {error}") from None
    except Exception as error:  # a package of other people can raise any error
        kind = "" if isinstance(error, OSError | ValueError) else f"{type(error).__name__}: "
        raise BioclinError(
            f"cannot load the pipeline {name!r}: {kind}{first_line(error)} Give the folder of a "
            "trained pipeline (it holds config.cfg), or the name of an installed package"
        ) from None
    if precision is not None:
        from ...encoders.precision import choose_precision

        choose_precision(precision, device)
        encoders = find_encoders(nlp)
        if not encoders:
            raise BioclinError(
                f"--precision {precision}: {name} has no spacy-bioclin.Encoder.v1 to set it for; "
                "leave --precision out"
            )
        for models in encoders.values():
            for model in models:
                model.shim.precision = precision
    check_components(nlp.component_names)
    lift_limit(nlp)
    return nlp


def lift_limit(nlp: "Language") -> None:
    """Let a pipeline read notes of any length: spaCy's limit is for its parser, and notes are cut
    into windows instead."""
    nlp.max_length = 2**31


def find_encoders(nlp: "Language") -> dict[str, list[Any]]:
    """Find the encoders of a pipeline.

    RETURNS (dict[str, list[EncoderModel]]): Component -> its encoder, or those of an ensemble.
    """
    from thinc.api import Model

    from ...encoders.encoder import EncoderModel

    found: dict[str, list[Any]] = {}
    for name, component in nlp.components:
        model = getattr(component, "model", None)
        for node in model.walk() if isinstance(model, Model) else ():
            if isinstance(node, EncoderModel):
                node.prepare()
                found.setdefault(name, []).append(node)
    return found
