"""Pairs of texts: the encoder reads them as `transformers` does, and drops nothing of long ones."""

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from spacy_bioclin.annotations.pairs import PAIR_KEY, make_pair
from spacy_bioclin.encoders.pairs.template import PairTemplate, find_pair_template
from spacy_bioclin.encoders.pairs.windows import (
    PlacedPair,
    TextPieces,
    join_pairs,
    lay_out_pair,
)
from spacy_bioclin.encoders.vectors import VectorMemory
from spacy_bioclin.errors import BioclinError
from tests.trained import blank
from tests.util import TEXTS, make_encoder

FIRST = "The patient had type 2 diabetes mellitus."
SECOND = "Metformin was given, twice a day"
BERT = PairTemplate((101,), (102,), (102,), ((0,), 0, (0,), 1, (1,)), 0, True)
KINDS = [
    ("bert", "wordpiece"),
    ("roberta", "bytes"),
    ("modernbert", "bytes"),
    ("deberta-v2", "unigram"),
]


def write_encoder(folder, model_type, kind):
    """Write an encoder whose tokenizer writes pairs as the original does."""
    make_encoder(folder, model_type, kind)
    if model_type != "roberta":
        return folder
    import tokenizers

    path = str(folder / "tokenizer.json")
    backend = tokenizers.Tokenizer.from_file(path)
    names = [(name, backend.token_to_id(name)) for name in ("</s>", "<s>")]
    backend.post_processor = tokenizers.processors.RobertaProcessing(*names, add_prefix_space=False)
    backend.save(path)
    return folder


def make_nlp(folder, **settings):
    nlp = blank("en")
    model = {
        "@architectures": "spacy-bioclin.Encoder.v1",
        "name": str(folder),
        "precision": "fp32",
        **settings,
    }
    nlp.add_pipe("transformer", config={"model": model})
    nlp.initialize()
    return nlp


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("pairs") / "bert", "bert", "wordpiece")


@pytest.fixture(scope="module", params=KINDS, ids=[kind for kind, _ in KINDS])
def encoder(request, tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("pairs") / "encoder", *request.param)


def read_with_transformers(folder, first, second):
    """Vectors of the pair's own pieces, and that of the first special piece."""
    tokenizer, transformer = (
        AutoTokenizer.from_pretrained(folder),
        AutoModel.from_pretrained(folder),
    )
    encoded = tokenizer(first, second, return_tensors="pt", return_special_tokens_mask=True)
    special = encoded.pop("special_tokens_mask")[0].bool()
    if transformer.config.model_type == "modernbert":
        encoded.pop("token_type_ids")
    with torch.no_grad():
        hidden = transformer.eval()(**encoded).last_hidden_state[0]
    return hidden[~special], hidden[0]


def get_vectors(doc):
    return torch.from_numpy(np.array(doc._.trf_data.model_output.last_hidden_state[0]))


def close(got, expected):
    torch.testing.assert_close(got, expected, atol=1e-5, rtol=0)


def test_vectors_are_those_of_transformers(encoder):
    nlp = make_nlp(encoder)
    transformer = nlp.get_pipe("transformer")
    pair = make_pair(nlp, FIRST, SECOND)
    other = make_pair(nlp, SECOND, "type 2")
    # In one batch with ordinary Docs.
    docs = list(nlp.pipe([nlp.make_doc(TEXTS[1]), pair, nlp.make_doc(TEXTS[0]), other]))
    for doc, texts in ((docs[1], (FIRST, SECOND)), (docs[3], (SECOND, "type 2"))):
        boundary = doc.user_data[PAIR_KEY]
        align = doc._.trf_data.align
        [place] = align[boundary].dataXd.ravel().tolist()
        vectors = get_vectors(doc)
        pieces, summary = read_with_transformers(encoder, *texts)
        close(vectors[place], summary)
        close(torch.cat([vectors[:place], vectors[place + 1 :]]), pieces)
        assert all(length > 0 for length in align.lengths)
    alone = list(nlp.pipe([TEXTS[1], TEXTS[0]]))
    close(get_vectors(docs[0]), get_vectors(alone[0]))
    close(get_vectors(docs[2]), get_vectors(alone[1]))
    # In training, without dropout.
    transformer.model.transformer.config.hidden_dropout_prob = 0.0
    for module in transformer.model.transformer.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        for name in ("dropout_prob", "attention_dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
    batch, _ = transformer.model([pair], True)
    close(batch.model_output.last_hidden_state[0].detach(), get_vectors(docs[1]))


def test_a_tokenizer_says_how_pairs_are_written(bert, tmp_path):
    roberta = write_encoder(tmp_path / "roberta", "roberta", "bytes")
    modern = write_encoder(tmp_path / "modern", "modernbert", "bytes")
    found = {}
    for name, folder in {"bert": bert, "roberta": roberta, "modern": modern}.items():
        tokenizer = AutoTokenizer.from_pretrained(folder)
        found[name] = find_pair_template(tokenizer, AutoModel.from_pretrained(folder))
        cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
        assert found[name].before == (cls,) and found[name].after == (sep,)
        assert found[name].middle == ((sep, sep) if name == "roberta" else (sep,))
        assert found[name].summary_id == cls
    assert found["bert"].segments == ((0,), 0, (0,), 1, (1,)) and found["bert"].has_segments
    assert found["roberta"].segments == ((0,), 0, (0, 0), 0, (0,))
    assert not found["modern"].has_segments


def text(n, sentences=(), start=0):
    tokens = np.arange(n)
    return TextPieces(np.arange(start, start + n), np.array(sentences, dtype=np.int64), tokens)


def test_a_pair_that_fits_has_one_window():
    layout = lay_out_pair(text(2), text(1, start=50), BERT, size=3, overlap=0)
    assert layout.ids.tolist() == [101, 0, 1, 102, 50, 102]
    assert layout.segments.tolist() == [0, 0, 0, 0, 1, 1]
    assert layout.where.tolist() == [2, 0, 1, -1, 3, -1]
    assert layout.lengths.tolist() == [6]


def test_the_longer_text_is_cut_and_the_other_is_read_with_each_part():
    layout = lay_out_pair(text(2), text(7, [3], start=50), BERT, size=6, overlap=0)
    # The second text has room for 4 pieces, and a sentence starts at its piece 3.
    assert layout.lengths.tolist() == [8, 9]
    assert layout.ids.tolist() == [
        *[101, 0, 1, 102, 50, 51, 52, 102],
        *[101, 0, 1, 102, 53, 54, 55, 56, 102],
    ]
    assert layout.where.tolist() == [
        *[2, 0, 1, -1, 3, 4, 5, -1],
        *[2, 0, 1, -1, 6, 7, 8, 9, -1],
    ]


def test_two_long_texts_are_read_side_by_side():
    layout = lay_out_pair(text(7), text(4, start=50), BERT, size=4, overlap=0)
    # Parts of at most 2 pieces: 4 of the first text, 2 of the second.
    windows = np.split(layout.ids, np.cumsum(layout.lengths)[:-1])
    assert [window.tolist() for window in windows] == [
        [101, 0, 1, 102, 50, 51, 102],
        [101, 2, 3, 102, 50, 51, 102],
        [101, 4, 5, 102, 52, 53, 102],
        [101, 6, 102, 52, 53, 102],
    ]


def test_rows_of_the_same_piece_are_neighbours():
    layout = lay_out_pair(text(2), text(7, [3], start=50), BERT, size=6, overlap=0)
    batch = join_pairs([PlacedPair(4, 14, layout)])
    assert batch.pieces.tolist() == list(range(4, 14))
    assert batch.counts.tolist() == [2, 2, 2, 1, 1, 1, 1, 1, 1, 1]
    assert batch.rows.tolist() == [
        *[4, 0, 2, -1, 6, 7, 8, -1],
        *[5, 1, 3, -1, 9, 10, 11, 12, -1],
    ]


def test_nothing_of_any_pair_is_dropped():
    for seed in range(30):
        random = np.random.default_rng(seed)
        lengths = random.integers(0, 60, 2)
        texts = [
            text(n, np.unique(random.integers(0, n, 5)) if n else (), start)
            for n, start in zip(lengths, (0, 1000), strict=True)
        ]
        size = int(random.integers(6, 40))
        overlap = int(random.integers(0, size // 2))
        layout = lay_out_pair(*texts, BERT, size=size, overlap=overlap)
        assert set(layout.where) - {-1} == set(range(int(lengths.sum()) + 1))
        assert layout.lengths.max() <= size + 3
        for window in np.split(layout.ids, np.cumsum(layout.lengths)[:-1]):
            middle = window.tolist().index(102)
            assert (middle > 1) == bool(lengths[0])
            assert (len(window) - middle > 2) == bool(lengths[1])


def test_vectors_of_a_long_pair_are_means(bert):
    nlp = make_nlp(bert, window=24)
    short, long = "type 2 diabetes", " ".join(TEXTS)
    doc = nlp(make_pair(nlp, short, long))
    tokenizer = nlp.get_pipe("transformer").model.tokenizer
    pieces = tokenizer(short, add_special_tokens=False)["input_ids"]
    n = len(pieces)
    vectors = get_vectors(doc)
    transformer = AutoModel.from_pretrained(bert).eval()
    # What the windows are is tested above; here, their means.
    first = nlp.get_pipe("transformer").model.shim.module
    template = first.pair_template
    ids = tokenizer(long, add_special_tokens=False)["input_ids"]
    starts = np.array([], dtype=np.int64)
    from spacy_bioclin.encoders.pairs.pieces import find_cuts, split_docs
    from spacy_bioclin.encoders.pieces import align_tokens

    [split] = split_docs(tokenizer, [doc], first, lambda doc: doc.text)
    offsets = np.array([[token.idx, token.idx + len(token)] for token in doc])
    alignment = align_tokens(offsets[:, 0], offsets[:, 1], split.pieces)
    _, cuts = find_cuts(alignment, np.zeros(len(doc), dtype=bool))
    texts = (
        TextPieces(np.array(pieces), starts, cuts[cuts < n]),
        TextPieces(np.array(ids), starts, cuts[cuts > n] - n - 1),
    )
    layout = lay_out_pair(*texts, template, size=21, overlap=0)
    assert len(layout.lengths) > 2
    end = 0
    sums, counts = torch.zeros(vectors.shape), torch.zeros(len(vectors), 1)
    for length in layout.lengths:
        here = slice(end, end + length)
        end += length
        with torch.no_grad():
            hidden = transformer(
                input_ids=torch.tensor(layout.ids[here])[None],
                token_type_ids=torch.tensor(layout.segments[here])[None],
            ).last_hidden_state[0]
        for i, place in enumerate(layout.where[here]):
            if place >= 0:
                sums[place] += hidden[i]
                counts[place] += 1
    assert counts[n] == len(layout.lengths)
    close(vectors, sums / counts)


def learn(nlp, docs, *, recompute=False):
    """Gradient of the piece embeddings, if only the vector of [CLS] has one."""
    model = nlp.get_pipe("transformer").model
    model.shim.module.recompute = recompute
    torch.manual_seed(0)
    batch, backprop = model(docs, True)
    gradient = torch.zeros_like(batch.model_output.last_hidden_state)
    place = batch.align[docs[0].user_data[PAIR_KEY]].dataXd.ravel()
    gradient[0, place] = torch.linspace(0, 1, gradient.shape[-1])  # the sum of a norm is constant
    batch.model_output.last_hidden_state = gradient
    backprop(batch)
    weight = model.transformer.get_input_embeddings().weight
    found, weight.grad = weight.grad.clone(), None
    for other in model.transformer.parameters():
        other.grad = None
    return found


@pytest.mark.parametrize("window", [24, 64])
def test_gradients_reach_embeddings_through_cls(bert, window):
    nlp = make_nlp(bert, window=window)
    docs = [make_pair(nlp, "type 2 diabetes", TEXTS[1]), nlp.make_doc(TEXTS[0])]
    plain = learn(nlp, docs)
    ids = nlp.get_pipe("transformer").model.tokenizer("diabetes metformin")["input_ids"]
    assert (plain[ids].abs().sum(1) > 0).all()
    torch.testing.assert_close(learn(nlp, docs, recompute=True), plain)


def test_an_encoder_that_does_not_learn_remembers_pairs_apart(bert):
    nlp = make_nlp(bert, window=24)
    shim = nlp.get_pipe("transformer").model.shim
    docs = [
        nlp.make_doc(f"{FIRST}\n{SECOND}"),
        make_pair(nlp, FIRST, SECOND),
        nlp.make_doc(FIRST),
        make_pair(nlp, SECOND, FIRST),
    ]
    plain = [get_vectors(doc) for doc in nlp.pipe(doc.copy() for doc in docs)]
    shim._memory = VectorMemory()
    for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
        found = list(nlp.pipe([docs[i].copy() for i in order]))
        for i, doc in zip(order, found, strict=True):
            close(get_vectors(doc), plain[i])


def test_bf16_is_close(bert):
    vectors = []
    for precision in ("fp32", "bf16"):
        nlp = make_nlp(bert, precision=precision)
        vectors.append(get_vectors(nlp(make_pair(nlp, FIRST, SECOND))))
    torch.testing.assert_close(vectors[1], vectors[0], atol=0.1, rtol=0.1)
    assert not torch.equal(*vectors)


def test_a_text_without_pieces(bert):
    nlp = make_nlp(bert)
    doc = nlp(make_pair(nlp, "\x07", "type 2"))
    assert doc._.trf_data.align.lengths[doc.user_data[PAIR_KEY]] == 1


def test_a_boundary_that_is_no_line_break(bert):
    nlp = make_nlp(bert)
    doc = make_pair(nlp, FIRST, SECOND)
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[:3])
    with pytest.raises(BioclinError, match="make it anew with make_pair"):
        nlp(doc)
