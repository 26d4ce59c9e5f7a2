"""Pieces, windows and characters outside of them, counted for each Doc."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc
from spacy_transformers.data_classes import TransformerData
from thinc.api import Ragged

from spacy_bioclin.encoders.pieces import split_into_pieces
from spacy_bioclin.runner.notes.coverage import (
    Coverage,
    count_coverage,
    take_coverage,
    watch_coverage,
)
from tests.util import make_encoder


@pytest.fixture(scope="module")
def nlp(tmp_path_factory):
    encoder = make_encoder(tmp_path_factory.mktemp("encoder"))
    nlp = spacy.blank("es")
    model = {"@architectures": "spacy-bioclin.Encoder.v1", "name": str(encoder), "window": 32}
    nlp.add_pipe("transformer", config={"model": model})
    nlp.initialize()
    watch_coverage(nlp)
    return nlp


def test_all_of_a_long_note_is_read(nlp):
    texts = ["Paciente con tos. " * 40, "tos", "", "  \n "]
    tokenizer = nlp.get_pipe("transformer").model.tokenizer
    pieces = [len(each.ids) for each in split_into_pieces(tokenizer, texts)]
    assert pieces[0] > 5 * 30 and pieces[1] < 30
    long, short, empty, blank = [take_coverage(doc) for doc in nlp.pipe(texts)]
    assert (long.pieces, long.outside, long.without_pieces) == (pieces[0], 0, 0)
    assert -(-pieces[0] // 30) <= long.windows <= pieces[0] // 15  # 30 pieces, or half as many
    assert short == Coverage(pieces[1], 1)
    assert long.truncated == short.truncated == 0
    for each in (empty, blank):
        assert (each.outside, each.without_pieces) == (0, 0)


def test_it_is_taken_once_and_is_none_without_an_encoder(nlp):
    doc = nlp("tos")
    assert take_coverage(doc) and take_coverage(doc) is None
    assert take_coverage(spacy.blank("es")("tos")) is None


def test_what_is_outside_is_counted():
    doc = Doc(spacy.blank("es").vocab, words=["uno", "dos", "\u200b", "tres", "cuatro"])
    # Pieces of "uno" and "dos"; of the third token none, as where a tokenizer removes it.
    lengths = np.array([1, 2, 0, 1, 0], dtype="int32")
    data = TransformerData.empty()
    data.wordpieces.lengths[:] = []
    data = TransformerData(
        wordpieces=data.wordpieces,
        model_output=data.model_output,
        align=Ragged(np.arange(4, dtype="int32"), lengths),
    )
    data.wordpieces.lengths.extend([3, 1])
    if not Doc.has_extension("trf_data"):
        Doc.set_extension("trf_data", default=None)
    doc._.trf_data = data
    wanted = Coverage(4, 2, outside=len("cuatro"), without_pieces=1, truncated=len("cuatro"))
    assert count_coverage(doc, [doc[:2], doc[2:4]]) == wanted
    # A gap before the last window is outside, but not truncated.
    wanted = Coverage(4, 2, outside=len("\u200btres"), without_pieces=1)
    assert count_coverage(doc, [doc[:2], doc[4:]])._replace(without_pieces=1) == wanted
    wanted = Coverage(4, 0, outside=len("unodos\u200btrescuatro"), truncated=17)
    assert count_coverage(doc, []) == wanted
