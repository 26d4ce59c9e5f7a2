"""The pipelines of all systems around the same encoder, and the texts that they annotate."""

import itertools
import shutil
from pathlib import Path

import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from transformers import AutoTokenizer, RobertaConfig, RobertaModel

from benchmarks.accuracy.ner import trained
from benchmarks.corpora import prepare
from benchmarks.harness import ROOT
from benchmarks.speed.systems import PEER_OVERLAP, WINDOW
from spacy_bioclin.corpora.docbin import read_docs

# Those of accuracy/ner.py, and "base", which is random too.
ENCODERS = ("compact", "sm", "random", "base")
TRIAGE_WORDS = 40
# Share of tokens that a random head takes for entities, as in MEDDOCAN.
ENTITY_SHARE = 0.05
# Untrained heads of peers would take half of the tokens for entities, and spend time on that.
OUTSIDE_BIAS = 20.0


def texts_of(notes: str, n_docs: int) -> list[str]:
    """Read the first notes of MEDDOCAN test, or cut them into short parts ("triage")."""
    corpus = read_docs(prepare("meddocan") / "test.spacy", spacy.blank("es").vocab)
    docs = list(itertools.islice(corpus, n_docs))
    if notes == "meddocan":
        return [doc.text for doc in docs]
    texts = []
    for doc in docs:
        words = [token for token in doc if not token.is_space]
        parts = [words[i : i + TRIAGE_WORDS] for i in range(0, len(words), TRIAGE_WORDS)]
        texts += [doc[part[0].i : part[-1].i + 1].text for part in parts]
    return texts


def base_pipeline(folder: Path, small: Language, texts: list[str]) -> Language:
    """Make our pipeline around a random base-size encoder with the small one's tokenizer."""
    torch.manual_seed(0)
    config = RobertaConfig(
        vocab_size=52_000,
        max_position_embeddings=514,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        attention_probs_dropout_prob=0.0,
    )
    source = folder / "random"
    RobertaModel(config, add_pooling_layer=False).save_pretrained(source)
    small.get_pipe("transformer").model.tokenizer.save_pretrained(source)
    return untrained_pipeline(source, list(small.get_pipe("ner").labels), texts)


def untrained_pipeline(source: Path, labels: list[str], texts: list[str]) -> Language:
    """Make our pipeline around an encoder, with a random head.

    The head has a bias that makes entities about as frequent as in MEDDOCAN.
    """
    settings = spacy.util.load_config(
        ROOT / "configs" / "ner.cfg", overrides={"paths.encoder": str(source)}, interpolate=True
    )
    settings["initialize"]["components"] = {"ner": {"labels": labels}}
    nlp = spacy.util.load_model_from_config(settings, auto_fill=True)
    nlp.initialize()
    ner = nlp.get_pipe("ner")
    head = ner.model.get_ref("head").shims[0].module
    nlp.disable_pipe("cleaner")
    nlp.disable_pipe("ner")
    scores = ner.model.predict(list(nlp.pipe(texts[:4]))).emissions[:, 0]
    nlp.enable_pipe("ner")
    nlp.enable_pipe("cleaner")
    others = scores[:, 1:].amax(dim=1) - scores[:, 0]
    with torch.no_grad():
        head.output.bias[0] += torch.quantile(others, 1 - ENTITY_SHARE)
    return nlp


def make_systems(encoder: str, folder: Path, texts: list[str]) -> None:
    """Write the encoder, and each system's pipeline around it, unless it was written before."""
    if (folder / "done").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    nlp = spacy.load(trained("random" if encoder == "base" else encoder, "meddocan"))
    if encoder == "base":
        nlp = base_pipeline(folder, nlp, texts)
    nlp.to_disk(folder / "bioclin")
    model = nlp.get_pipe("transformer").model
    model.transformer.save_pretrained(folder / "encoder")
    model.tokenizer.model_max_length = WINDOW
    model.tokenizer.save_pretrained(folder / "encoder")
    head = nlp.get_pipe("ner").model.get_ref("head").shims[0].module.output
    labels = list(nlp.get_pipe("ner").labels)
    tags = [nlp.get_pipe("ner").tag_sets[0].tags[i] for i in range(head.out_features)]
    make_tagger(folder, tags, head)
    make_onnx(folder)
    make_edsnlp(folder, labels)
    make_spacy(folder, labels)
    (folder / "done").touch()


def make_tagger(folder: Path, tags: list[str], head: torch.nn.Linear) -> None:
    """Write a Hugging Face tagger with our head's linear layer.

    L- and U- tags become I- and B-, which are the ones that its aggregation knows.
    """
    from transformers import AutoConfig, AutoModel, AutoModelForTokenClassification

    config = AutoConfig.from_pretrained(folder / "encoder", trust_remote_code=False)
    names = [tag.replace("L-", "I-", 1).replace("U-", "B-", 1) for tag in tags]
    config.id2label = dict(enumerate(names))
    config.label2id = {name: i for i, name in enumerate(names)}
    config.num_labels = len(tags)
    tagger = AutoModelForTokenClassification.from_config(config)
    encoder = AutoModel.from_pretrained(
        folder / "encoder", add_pooling_layer=False, trust_remote_code=False
    )
    tagger.base_model.load_state_dict(encoder.state_dict())
    tagger.classifier.load_state_dict(head.state_dict())
    with torch.no_grad():  # it has none of the transitions that the head was trained with
        tagger.classifier.bias[tags.index("O")] += OUTSIDE_BIAS / 4
    tagger.save_pretrained(folder / "tagger")
    AutoTokenizer.from_pretrained(folder / "encoder", trust_remote_code=False).save_pretrained(
        folder / "tagger"
    )


def make_onnx(folder: Path) -> None:
    """Export the tagger, let onnxruntime fuse its graph, and quantise a second copy to int8."""
    import onnx
    from onnxruntime.quantization import quantize_dynamic
    from onnxruntime.transformers import optimizer
    from transformers import AutoModelForTokenClassification

    out = folder / "onnx"
    out.mkdir(parents=True)
    tagger = AutoModelForTokenClassification.from_pretrained(
        folder / "tagger", attn_implementation="eager", trust_remote_code=False
    ).eval()
    tagger.config.return_dict = False
    ids = torch.full((2, 16), 5)
    axes = {name: {0: "batch", 1: "pieces"} for name in ("input_ids", "attention_mask", "logits")}
    torch.onnx.export(
        tagger,
        (ids, torch.ones_like(ids)),
        str(out / "plain.onnx"),
        input_names=["input_ids", "attention_mask"],
        output_names=["logits"],
        dynamic_axes=axes,
        opset_version=17,
        dynamo=False,
    )
    config = tagger.config
    fused = optimizer.optimize_model(
        str(out / "plain.onnx"),
        model_type="bert",
        num_heads=config.num_attention_heads,
        hidden_size=config.hidden_size,
    )
    fused.save_model_to_file(str(out / "model.onnx"))
    options = {"DefaultTensorType": onnx.TensorProto.FLOAT}
    quantize_dynamic(out / "model.onnx", out / "model-int8.onnx", extra_options=options)
    (out / "plain.onnx").unlink()


def make_edsnlp(folder: Path, labels: list[str]) -> None:
    import edsnlp
    import edsnlp.pipes as eds

    nlp = edsnlp.blank("eds")
    embedding = eds.transformer(
        model=str(folder / "encoder"), window=WINDOW, stride=WINDOW - PEER_OVERLAP
    )
    nlp.add_pipe(
        eds.ner_crf(
            embedding=embedding,
            mode="joint",
            target_span_getter={"ents": labels},
            labels=labels,
            span_setter={"ents": True},
            window=20,
        ),
        name="ner",
    )
    gold = nlp.make_doc("x " * len(labels))
    gold.ents = [Span(gold, i, i + 1, label) for i, label in enumerate(labels)]
    torch.manual_seed(0)
    nlp.post_init([gold])
    with torch.no_grad():  # random scores would make every other token an entity
        bias = nlp.pipes.ner.linear.bias.view(len(labels), -1)
        bias[:, 0] += OUTSIDE_BIAS
    nlp.to_disk(folder / "edsnlp")


def make_spacy(folder: Path, labels: list[str]) -> None:
    settings = spacy.util.load_config(
        ROOT / "benchmarks" / "speed" / "vanilla.cfg",
        overrides={"paths.encoder": str(folder / "encoder")},
        interpolate=True,
    )
    settings["nlp"]["pipeline"].append("cleaner")
    settings["components"]["cleaner"] = {"factory": "doc_cleaner", "silent": True}
    nlp = spacy.util.load_model_from_config(settings, auto_fill=True)
    doc = Doc(nlp.vocab, words=labels)
    ents = [(token.idx, token.idx + len(token), token.text) for token in doc]
    nlp.initialize(lambda: [Example.from_dict(doc, {"entities": ents})])
    for node in nlp.get_pipe("ner").model.walk():
        if node.name == "precomputable_affine":  # the last move is O
            bias = node.get_param("b").copy()
            bias[-1] += OUTSIDE_BIAS
            node.set_param("b", bias)
    nlp.to_disk(folder / "spacy")
