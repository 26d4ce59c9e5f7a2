"""Opening a pipeline for a command."""

from typing import TYPE_CHECKING

from ..errors import BioclinError
from ..machine import choose_device

if TYPE_CHECKING:
    from spacy.language import Language


def load_pipeline(name: str, *, gpu_id: int = -1, precision: str | None = None) -> "Language":
    """Load a pipeline, on a GPU if one is asked for.

    name (str): Folder of a trained pipeline, or name of an installed package.
    gpu_id (int): Which GPU; -1 for the CPU.
    precision (str | None): Number format of the encoder instead of that in the pipeline's config.
    RAISES (BioclinError): There is no such GPU, format or pipeline.
    """
    import spacy

    device = choose_device(gpu_id)
    try:
        nlp = spacy.load(name)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BioclinError(
            f"cannot load the pipeline {name!r}: {reason} Give the folder of a trained pipeline "
            "(it holds config.cfg), or the name of an installed package"
        ) from None
    if precision is not None:
        from ..encoders.encoder import EncoderModel
        from ..encoders.precision import choose_precision

        choose_precision(precision, device)
        models = [getattr(component, "model", None) for _, component in nlp.components]
        encoders = [model for model in models if isinstance(model, EncoderModel)]
        if not encoders:
            raise BioclinError(
                f"--precision {precision}: {name} has no spacy-bioclin.Encoder.v1 to set it for; "
                "leave --precision out"
            )
        for model in encoders:
            model.shim.precision = precision
    nlp.max_length = 2**31  # spaCy's limit is for its parser; notes are cut into windows instead
    return nlp
