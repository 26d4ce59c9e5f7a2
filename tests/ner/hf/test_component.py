"""Imported checkpoints beside transformers' own pipeline: labels, offsets, scores."""

import functools
import shutil
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import spacy
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from transformers import (
    AutoConfig,
    AutoModelForTokenClassification,
    AutoTokenizer,
    TokenClassificationPipeline,
)

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.ner.hf.aggregation import (
    AGGREGATIONS,
    Aggregator,
    CharEntity,
    cover_tokens,
    trim_entities,
)
from spacy_bioclin.ner.hf.checkpoint import make_pipeline, normalize_labels, open_checkpoint
from spacy_bioclin.ner.hf.component import make_hf_ner
from spacy_bioclin.ner.hf.parity import compare_with_transformers
from spacy_bioclin.ner.inference import Entity
from tests.trained import blank
from tests.util import TEXTS, make_encoder, tiny_tokenizer

# "O" is neither first nor last: its id must not matter.
LABELS = ["B-DRUG", "I-DRUG", "O", "I-PROBLEM", "B-PROBLEM"]
KINDS = {
    "bert": "wordpiece",
    "roberta": "bytes",
    "xlm-roberta": "unigram",
    "electra": "wordpiece",
    "modernbert": "bytes",
}
LONG = " ".join([*TEXTS, "Sin fiebre; niega alergias.\n\n", *TEXTS[::-1], "TAC: neumonía."] * 3)


def make_checkpoint(folder, model_type="bert", labels=LABELS, *, context=True):
    """Write a tiny checkpoint whose random weights are large, so that it finds entities.

    context (bool): False makes pieces independent of each other and of their position.
    """
    make_encoder(folder, model_type, KINDS[model_type])
    config = AutoConfig.from_pretrained(folder, id2label=dict(enumerate(labels)))
    torch.manual_seed(1)
    model = AutoModelForTokenClassification.from_config(config)
    for name, weight in model.named_parameters():
        if weight.ndim > 1 and "position_embeddings" not in name:
            torch.nn.init.normal_(weight, std=1 if "embed" in name or "classif" in name else 0.15)
        if not context and ("position_embeddings" in name or "attention.output.dense" in name):
            weight.data.zero_()
    model.save_pretrained(folder)
    if model_type == "modernbert":  # as its own tokenizers say
        names = ["input_ids", "attention_mask"]
        AutoTokenizer.from_pretrained(folder, model_input_names=names).save_pretrained(folder)
    return folder


def with_more_positions(folder, out, positions):
    """Copy a checkpoint whose positions do not matter; the copy reads more at once."""
    shutil.copytree(folder, out)
    config = AutoConfig.from_pretrained(folder, max_position_embeddings=positions)
    model = AutoModelForTokenClassification.from_config(config)
    weights = AutoModelForTokenClassification.from_pretrained(folder).state_dict()
    weights = {k: w for k, w in weights.items() if "position_embeddings" not in k}
    model.load_state_dict(weights, strict=False)
    for name, weight in model.named_parameters():
        if "position_embeddings" in name:
            weight.data.zero_()
    model.save_pretrained(out)
    return out


def open_pipeline(folder, aggregation="simple", spans_key=None, names=None):
    return make_pipeline(
        open_checkpoint(folder, names),
        lang="es",
        aggregation=aggregation,
        spans_key=spans_key,
        precision="fp32",
    )


def theirs(folder, aggregation="simple", labels=None):
    """What transformers finds: a function of a text."""
    model = AutoModelForTokenClassification.from_pretrained(folder).eval()
    if labels:
        model.config.id2label = dict(enumerate(labels))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    pipeline = TokenClassificationPipeline(
        model=model, tokenizer=tokenizer, aggregation_strategy=aggregation, device="cpu"
    )

    def find(text):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return trim_entities(text, pipeline(text))

    find.tokenizer = tokenizer
    return find


def ours(nlp, ner, text):
    """Character offsets, before they are widened to tokens."""
    doc = nlp.get_pipe("transformer")(nlp.get_pipe("sentences")(nlp.make_doc(text)))
    return ner.find([doc])[0]


def assert_same(found, wanted):
    assert [e[:3] for e in found] == [e[:3] for e in wanted]
    for a, b in zip(found, wanted, strict=True):
        assert abs(a.score - b.score) < 1e-4


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    return functools.cache(lambda kind: make_checkpoint(folder / kind, kind))


def in_every_aggregation(folder, aggregations=AGGREGATIONS):
    """YIELDS (tuple): A pipeline, and what transformers finds."""
    nlp = open_pipeline(folder)
    for aggregation in aggregations:
        copy = make_hf_ner(nlp, "ner", nlp.get_pipe("ner").model, None, aggregation, None)
        yield nlp, copy, theirs(folder, aggregation)


@pytest.mark.parametrize(
    ("model_type", "aggregations"),
    [
        ("bert", ["simple", "first"]),
        ("roberta", ["average"]),
        ("xlm-roberta", ["max"]),
        pytest.param("electra", ["simple"], marks=pytest.mark.slow),
        ("modernbert", ["first"]),
    ],
)
def test_finds_what_transformers_finds(checkpoints, model_type, aggregations):
    for nlp, ner, find in in_every_aggregation(checkpoints(model_type), aggregations):
        n_found = 0
        for text in [*TEXTS, "", " \n ", "Tos.\r\n\tFiebre   alta  ", "ﬁebre Å ¿1\u0301,5?"]:
            wanted = find(text)
            assert_same(ours(nlp, ner, text), wanted)
            n_found += len(wanted)
        assert n_found > 5


LETTERS = st.characters(codec="utf-8", exclude_categories=("Cs",))
CLINICAL = st.sampled_from([*"abcñé12 .,;-/()\n\t", "mg", "Dr. ", "neumonía ", "[SEP]", "<s>", " "])


@pytest.mark.slow
@pytest.mark.parametrize("model_type", ["bert", "roberta", "xlm-roberta"])
def test_any_text(checkpoints, model_type):
    pipelines = dict(zip(AGGREGATIONS, in_every_aggregation(checkpoints(model_type)), strict=True))

    @settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(CLINICAL | LETTERS, max_size=30).map("".join), st.sampled_from([*pipelines]))
    def check(text, aggregation):
        nlp, ner, find = pipelines[aggregation]
        assume(len(find.tokenizer(text, verbose=False)["input_ids"]) <= 64)
        assert_same(ours(nlp, ner, text), find(text))

    check()


@pytest.mark.parametrize(
    ("model_type", "aggregation"),
    [
        ("bert", "average"),
        pytest.param("roberta", "simple", marks=pytest.mark.slow),
        pytest.param("xlm-roberta", "average", marks=pytest.mark.slow),
    ],
)
def test_long_texts_are_read_to_the_end(tmp_path, model_type, aggregation):
    """A checkpoint that looks at one piece at a time finds the same in one window and in many."""
    folder = make_checkpoint(tmp_path / "short", model_type, context=False)
    whole = with_more_positions(folder, tmp_path / "whole", 3000)
    find = theirs(whole, aggregation)
    find.tokenizer.model_max_length = 2900
    assert len(find.tokenizer(LONG)["input_ids"]) > 5 * 64
    wanted = find(LONG)
    assert max(e.end for e in wanted) > len(LONG) - 60
    nlp = open_pipeline(folder, aggregation)
    assert_same(ours(nlp, nlp.get_pipe("ner"), LONG), wanted)


@pytest.fixture(scope="module")
def tokenizers():
    return {kind: tiny_tokenizer(kind, TEXTS * 3) for kind in ("wordpiece", "bytes", "unigram")}


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.integers(0, 4), min_size=40, max_size=40),
    st.integers(0, 10_000),
    st.sampled_from(AGGREGATIONS),
)
@pytest.mark.parametrize("kind", ["wordpiece", "bytes", "unigram"])
def test_leaving_out_what_is_outside_changes_nothing(tokenizers, kind, tags, seed, aggregation):
    aggregator = Aggregator(tokenizers[kind], LABELS, aggregation)
    text = TEXTS[seed % len(TEXTS)]
    encoding = aggregator.tokenizer.backend_tokenizer.encode(text, add_special_tokens=False)
    n = len(encoding)
    scores = np.random.default_rng(seed).random((n, 5), dtype=np.float32)
    scores[:, 2] += np.where(np.arange(n) % 7 < 4, 0.5, 0)
    scores[np.arange(n), np.resize(tags, n)] += 0.3
    scores /= scores.sum(axis=1, keepdims=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pieces = aggregator.gather_pre_entities(
            text,
            encoding.ids,
            scores,
            encoding.offsets,
            encoding.special_tokens_mask,
            aggregator.strategy,
        )
    wanted = trim_entities(text, aggregator.aggregate(pieces, aggregator.strategy))
    assert aggregator.find(text, encoding, scores) == wanted


def test_widening_by_hand():
    nlp = blank("es")
    doc = nlp.make_doc("Juan García López toma aspirina")
    found = [
        CharEntity(0, 8, "PER", 0.9),  # Juan Gar
        CharEntity(8, 17, "PER", 0.7),  # cía López: its first token is also the other's
        CharEntity(25, 28, "DRUG", 0.4),  # pir
        CharEntity(28, 31, "DOSE", 0.8),  # ina
    ]
    person = Entity(0, 3, "PER", 0.9)
    drug, dose = Entity(4, 5, "DRUG", 0.4), Entity(4, 5, "DOSE", 0.8)
    assert cover_tokens(doc, found, overlap=True) == [person, dose, drug]
    assert cover_tokens(doc, found, overlap=False) == [person, drug]
    whole = [CharEntity(5, 11, "PER", 0.5), CharEntity(12, 17, "PER", 0.6)]
    assert cover_tokens(doc, whole, overlap=False) == [
        Entity(1, 2, "PER", 0.5),
        Entity(2, 3, "PER", 0.6),
    ]


def test_edges_of_blanks_are_taken_off():
    found = [
        {"entity_group": "X", "score": 0.5, "start": 0, "end": 4},
        {"entity_group": "O", "score": 0.5, "start": 4, "end": 5},
        {"entity_group": "X", "score": 0.5, "start": 5, "end": 7},
    ]
    assert trim_entities(" ab c \n", found) == [CharEntity(1, 3, "X", 0.5)]


SCHEMES = [
    (["O", "B-X", "I-X"], ["O", "B-X", "I-X"], "BIO"),
    (["I-X", "O"], ["I-X", "O"], "IO"),
    (["O", "X", "Y"], ["O", "I-X", "I-Y"], "IO"),
    (["O", "B-X", "I-X", "L-X", "U-X"], ["O", "B-X", "I-X", "I-X", "B-X"], "BILOU"),
    (["O", "B-X", "I-X", "E-X", "S-X"], ["O", "B-X", "I-X", "I-X", "B-X"], "BIOES"),
    (["O", "B-X", "M-X", "E-X", "S-X"], ["O", "B-X", "I-X", "I-X", "B-X"], "BMES"),
    # no schemes: a label that has a hyphen, and letters that no scheme has together
    (["O", "E-MAIL", "ID-NUM"], ["O", "I-E-MAIL", "I-ID-NUM"], "IO"),
    (["O", "B-X", "E-X", "U-X"], ["O", "B-X", "I-E-X", "I-U-X"], "BIO"),
]


def test_labels_of_any_scheme():
    assert [names for names, *right in SCHEMES if normalize_labels(names) != tuple(right)] == []


def test_labels_without_outside():
    with pytest.raises(BioclinError, match=r"no 'O' for text outside.*--labels FILE"):
        normalize_labels(["B-X", "I-X"])


def test_bilou_is_read_whole(tmp_path):
    names = ["U-X", "O", "L-X", "B-X", "I-X"]
    folder = make_checkpoint(tmp_path / "bilou", labels=names)
    nlp = open_pipeline(folder)
    find = theirs(folder, labels=["B-X", "O", "I-X", "B-X", "I-X"])
    for text in TEXTS:
        assert_same(ours(nlp, nlp.get_pipe("ner"), text), find(text))
        # What comes out of the pipeline is that, widened to tokens.
        doc = nlp(text)
        wanted = cover_tokens(doc, find(text), overlap=False)
        assert [(e.start, e.end, e.label_) for e in doc.ents] == [e[:3] for e in wanted]
        assert [e._.probability for e in doc.ents] == pytest.approx(
            [e[3] for e in wanted], abs=1e-4
        )
    assert nlp.pipe_labels["ner"] == ["X"]


def test_a_copy_on_disk_and_in_bytes_finds_the_same(checkpoints, tmp_path):
    for model_type in ("modernbert", "xlm-roberta"):
        nlp = open_pipeline(checkpoints(model_type), spans_key="phi")
        nlp.to_disk(tmp_path / model_type)
        copy = spacy.load(tmp_path / model_type)
        other = blank("es").from_config(nlp.config).from_bytes(nlp.to_bytes())
        for text in TEXTS:
            doc = nlp(text)
            spans = doc.spans["phi"]
            batch = list(copy.pipe([*TEXTS, text]))
            for again in (copy(text), other(text), batch[-1]):
                found = again.spans["phi"]
                assert list(map(str, found)) == list(map(str, spans)) and len(found)
                assert found.attrs["scores"] == pytest.approx(spans.attrs["scores"], abs=1e-4)
                assert not again.ents


def test_the_head_alone_is_stored(checkpoints):
    nlp = open_pipeline(checkpoints("bert"))
    weights = nlp.get_pipe("ner").model.get_ref("head").shims[0].module.state_dict()
    assert {name.rpartition(".")[2]: tuple(w.shape) for name, w in weights.items()} == {
        "weight": (5, 16),
        "bias": (5,),
    }


def test_parity_counts(checkpoints):
    nlp = open_pipeline(checkpoints("bert"))
    again = open_checkpoint(checkpoints("bert"))
    counts = compare_with_transformers(nlp, again, [*TEXTS, "", LONG])
    assert (counts.texts, counts.long_texts, counts.different) == (4, 1, 0)
    assert counts.entities > 0 and counts.worst < 1e-4
    assert 0 < counts.long_same <= min(counts.long_entities, counts.long_ours)
    head = nlp.get_pipe("ner").model.get_ref("head").shims[0].module.model.classifier
    head.bias.data[0] += 3
    assert compare_with_transformers(nlp, again, TEXTS).different > 0


def test_refusals(checkpoints, tmp_path):
    with pytest.raises(BioclinError, match=r"holds no config\.json"):
        open_checkpoint(tmp_path)
    encoder = make_encoder(tmp_path / "encoder")
    with pytest.raises(BioclinError, match=r"lack classifier\.bias, classifier\.weight"):
        open_checkpoint(encoder, ["O", "X"])
    nameless = make_checkpoint(tmp_path / "nameless", labels=[f"LABEL_{i}" for i in range(5)])
    with pytest.raises(BioclinError, match=r"LABEL_0.*--labels FILE"):
        open_checkpoint(nameless)
    assert open_checkpoint(nameless, LABELS).labels == LABELS
    with pytest.raises(BioclinError, match=r"--labels has 4 labels, .* 5"):
        open_checkpoint(nameless, LABELS[:4])
    crf = make_checkpoint(tmp_path / "crf")
    from safetensors.torch import load_file, save_file

    weights = load_file(crf / "model.safetensors")
    weights["crf.transitions"] = torch.zeros(5, 5)
    save_file(weights, crf / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(BioclinError, match=r"hold crf\.transitions"):
        open_checkpoint(crf)
    with pytest.raises(BioclinError, match="aggregation = 'none': want one of simple"):
        open_pipeline(checkpoints("bert"), "none")


def test_component_without_weights_and_with_a_wrong_encoder(checkpoints):
    nlp = blank("es")
    ner = nlp.add_pipe("bioclin_hf_ner")
    with pytest.raises(BioclinError, match=r"has no weights.*import-hf"):
        nlp("Tos.")
    assert ner.labels == ()
    nlp = open_pipeline(checkpoints("bert"))
    other = open_pipeline(checkpoints("roberta"))
    doc = other.get_pipe("transformer")(nlp.make_doc(TEXTS[0]))
    with pytest.raises(BioclinError, match="another encoder: its tokenizer makes"):
        nlp.get_pipe("ner").predict([doc])


def test_does_not_learn(checkpoints):
    nlp = open_pipeline(checkpoints("bert"))
    with pytest.raises(BioclinError, match="frozen_components, or train bioclin_ner"):
        nlp.get_pipe("ner").update([SimpleNamespace()])
