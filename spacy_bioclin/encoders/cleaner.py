"""`bioclin_cleaner`: free the vectors of a Doc that is annotated."""

import numpy
from spacy.language import Language
from spacy.tokens import Doc

from ..torch_bridge.components import TRF_DATA


@Language.component("bioclin_cleaner", requires=["doc._.trf_data"])
def clean_doc(doc: Doc) -> Doc:
    """Remove the piece vectors (`doc._.trf_data`) and empty `doc.tensor`.

    spaCy's `doc_cleaner` sets `doc.tensor` to None, after which `doc.vector`, `token.vector`,
    `span.as_doc()` and others fail.

    doc (Doc): The Doc.
    RETURNS (Doc): The same Doc.
    """
    doc.user_data.pop(TRF_DATA, None)
    doc.tensor = numpy.zeros((len(doc), 0), dtype="float32")  # a row for each token.tensor
    return doc
