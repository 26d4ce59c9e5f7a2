"""Load a pipeline for a command."""

from typing import TYPE_CHECKING, Any

from ..errors import BioclinError, first_line
from ..machine import choose_device

if TYPE_CHECKING:
    from spacy.language import Language


def load_pipeline(name: str, *, gpu_id: int = -1, precision: str | None = None) -> "Language":
    """Load a pipeline.

    name (str): Folder of a trained pipeline, or name of an installed package.
    gpu_id (int): GPU; -1 for the CPU.
    precision (str | None): Number format of the encoder; None for that of the pipeline's config.
    RAISES (BioclinError): There is no such GPU, number format or pipeline.
    """
    import spacy

    device = choose_device(gpu_id)
    try:
        nlp = spacy.load(name)
    except (OSError, ValueError) as error:
        reason = first_line(error)
        raise BioclinError(
            f"cannot load the pipeline {name!r}: {reason} Give the folder of a trained pipeline "
            "(it holds config.cfg), or the name of an installed package"
        ) from None
    if precision is not None:
        from ..encoders.precision import choose_precision

        choose_precision(precision, device)
        encoders = find_encoders(nlp)
        if not encoders:
            raise BioclinError(
                f"--precision {precision}: {name} has no spacy-bioclin.Encoder.v1 to set it for; "
                "leave --precision out"
            )
        for model in encoders.values():
            model.shim.precision = precision
    nlp.max_length = 2**31  # spaCy's limit is for its parser; notes are cut into windows instead
    return nlp


def find_encoders(nlp: "Language") -> dict[str, Any]:
    """Find the `EncoderModel` of each component of a pipeline that has one."""
    from ..encoders.encoder import EncoderModel

    models = {name: getattr(component, "model", None) for name, component in nlp.components}
    return {name: model for name, model in models.items() if isinstance(model, EncoderModel)}
