"""Opening a pipeline for a command."""

from typing import TYPE_CHECKING

from ..errors import BioclinError

if TYPE_CHECKING:
    from spacy.language import Language


def load_pipeline(name: str, *, gpu_id: int = -1) -> "Language":
    """Load a pipeline, on a GPU if one is asked for.

    name (str): Folder of a trained pipeline, or name of an installed package.
    gpu_id (int): Which GPU; -1 for the CPU.
    RAISES (BioclinError): There is no such GPU or no such pipeline.
    """
    import spacy

    if gpu_id >= 0:
        try:
            spacy.require_gpu(gpu_id)
        except Exception as error:  # ValueError without cupy, CUDARuntimeError for a wrong id
            raise BioclinError(
                f"--gpu-id {gpu_id}: this GPU cannot be used ({type(error).__name__}); install "
                "spacy-bioclin[cuda12x] and check the id with nvidia-smi, or leave --gpu-id out"
            ) from None
    try:
        nlp = spacy.load(name)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BioclinError(
            f"cannot load the pipeline {name!r}: {reason} Give the folder of a trained pipeline "
            "(it holds config.cfg), or the name of an installed package"
        ) from None
    nlp.max_length = 2**31  # spaCy's limit is for its parser; notes are cut into windows instead
    return nlp
