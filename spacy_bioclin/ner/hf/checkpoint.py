"""Open a token-classification checkpoint of the `transformers` library and make it a pipeline."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import spacy
from spacy.language import Language
from transformers import AutoModelForTokenClassification

from ...encoders.loading import open_model, pack_tokenizer
from ...errors import BioclinError
from .aggregation import OUTSIDE
from .component import PieceHead

# Prefixes of schemes other than BIO.
SCHEMES = {"BILOU": "BILU", "BIOES": "BIES", "BMES": "BMES"}
# Each prefix in BIO, the scheme that `transformers` aggregates.
AS_BIO = {"B": "B", "I": "I", "L": "I", "E": "I", "M": "I", "U": "B", "S": "B"}
NAMELESS = re.compile(r"LABEL_\d+")


class Checkpoint(NamedTuple):
    """A token-classification checkpoint.

    folder (Path): Where it is.
    model (Any): From `AutoModelForTokenClassification`, in fp32.
    labels (list[str]): Label of each output: "O", "B-X", "I-X".
    scheme (str): Scheme of the checkpoint's own labels: "BIO", a key of `SCHEMES`, or "IO" (no
        prefixes).
    """

    folder: Path
    model: Any
    labels: list[str]
    scheme: str


def open_checkpoint(folder: Path, names: list[str] | None = None) -> Checkpoint:
    """Read a checkpoint's weights and labels.

    names (list[str] | None): Its labels in the order of their ids, instead of those in config.json.
    RAISES (BioclinError): There is no checkpoint, weights are missing or of other layers, or the
        labels have no meaning.
    """
    if not (folder / "config.json").is_file():
        raise BioclinError(
            f"{folder} holds no config.json: give the folder of a checkpoint that "
            "transformers wrote with save_pretrained, with its tokenizer"
        )
    try:
        model, loaded = open_model(
            AutoModelForTokenClassification, str(folder), local_files_only=True
        )
    except BioclinError as error:
        reason = str(error).removeprefix(f"The encoder in {folder} cannot be opened: ")
        raise BioclinError(
            f"The checkpoint in {folder} cannot be opened for token classification: {reason}"
        ) from None
    missing, unexpected = sorted(loaded["missing_keys"]), sorted(loaded["unexpected_keys"])
    if missing:
        raise BioclinError(
            f"The weights in {folder} lack {', '.join(missing[:3])}: not a checkpoint that was "
            "trained for token classification; an encoder alone goes into `bioclin train`"
        )
    if unexpected:
        raise BioclinError(
            f"The weights in {folder} hold {', '.join(unexpected[:3])}, which "
            f"{type(model).__name__} of transformers has no place for: predictions would not be "
            "those of the program that trained it"
        )
    config = model.config
    if config.is_encoder_decoder:
        raise BioclinError(f"{folder}: {config.model_type} has a decoder; want an encoder")
    labels, scheme = normalize_labels(names or _stated_labels(folder, config.id2label))
    if len(labels) != config.num_labels:
        raise BioclinError(f"--labels has {len(labels)} labels, {folder} {config.num_labels}")
    model.config.id2label = dict(enumerate(labels))
    model.config.label2id = {label: i for i, label in enumerate(labels)}
    return Checkpoint(folder, model.eval(), labels, scheme)


def _stated_labels(folder: Path, id2label: dict[int, str]) -> list[str]:
    """Read the labels in config.json, in the order of their ids."""
    if sorted(id2label) != list(range(len(id2label))):
        raise BioclinError(
            f"{folder}: id2label in config.json has the ids {sorted(id2label)}, want 0 to "
            f"{len(id2label) - 1}; give --labels FILE"
        )
    names = [id2label[i] for i in range(len(id2label))]
    if any(NAMELESS.fullmatch(name) for name in names):
        raise BioclinError(
            f"{folder}: config.json does not say what its {len(names)} labels mean (LABEL_0, …): "
            "give --labels FILE, one label a line in the order of the ids, as the training data "
            "had them"
        )
    return names


def normalize_labels(names: list[str]) -> tuple[list[str], str]:
    """Translate labels of any scheme to BIO, which `transformers` aggregates.

    names (list[str]): "O" and labels with or without prefix.
    RETURNS (tuple): "O", "B-X" and "I-X", and the scheme of the names (see `Checkpoint`).
    RAISES (BioclinError): No label is "O".
    """
    if OUTSIDE not in names:
        raise BioclinError(
            f"The labels {', '.join(names[:5])}{', …' if len(names) > 5 else ''} have no 'O' for "
            "text outside of entities: give --labels FILE, one label a line in the order of the "
            "ids, including O"
        )
    prefixed = {name for name in names if re.match(r"[BILUESM]-.", name)}
    prefixes = {name[0] for name in prefixed}
    all_prefixed = len(prefixed) == len(names) - 1
    scheme = "BIO" if "B" in prefixes else "IO"
    if all_prefixed and "B" in prefixes and not prefixes <= set("BI"):
        scheme = next((s for s, own in SCHEMES.items() if prefixes <= set(own)), scheme)
    known = SCHEMES.get(scheme, "BI")
    labels = []
    for name in names:
        if name == OUTSIDE:
            labels.append(name)
        elif name in prefixed and name[0] in known:
            labels.append(f"{AS_BIO[name[0]]}-{name[2:]}")
        else:
            labels.append(f"I-{name}")
    return labels, scheme


def make_pipeline(
    checkpoint: Checkpoint, *, lang: str, aggregation: str, spans_key: str | None, precision: str
) -> Language:
    """Make a spaCy pipeline that finds what the checkpoint finds.

    The pipeline uses the model's head, so the checkpoint cannot be used afterwards.

    aggregation, spans_key: See `make_hf_ner`.
    precision (str): See `choose_precision`; scores equal those of `transformers` in "fp32".
    RAISES (BioclinError): Encoder.v1 cannot use the encoder, or a setting is unknown.
    """
    nlp = spacy.blank(
        lang, config={"nlp": {"tokenizer": {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}}}
    )
    nlp.add_pipe("bioclin_sentences", name="sentences")
    encoder = {
        "@architectures": "spacy-bioclin.Encoder.v1",
        "name": str(checkpoint.folder),
        "precision": precision,
    }
    nlp.add_pipe("transformer", config={"max_batch_items": 16384, "model": encoder})
    scorer = {"@scorers": "spacy-bioclin.span_scorer.v1", "spans_key": spans_key}
    settings = {"aggregation": aggregation, "spans_key": spans_key, "scorer": scorer}
    ner: Any = nlp.add_pipe("bioclin_hf_ner", name="ner", config=settings)
    nlp.add_pipe("bioclin_cleaner", name="cleaner")
    transformer: Any = nlp.get_pipe("transformer")
    transformer.initialize(lambda: [], nlp=nlp)
    files = pack_tokenizer(transformer.model.tokenizer)
    ner.set_head(PieceHead(checkpoint.model), files, checkpoint.labels)
    return nlp
