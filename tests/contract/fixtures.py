"""A tiny corpus, and the shipped configs trained on it for a few updates by `spacy train`."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import spacy
from spacy.cli._util import app
from spacy.tokens import DocBin, Span
from typer.testing import CliRunner

CONFIGS = Path(__file__).parents[2] / "configs"
# The corpora of `several` are for `bioclin train`: spaCy's commands, which would let every
# component learn from every corpus, are refused. The others learn from annotations that this corpus
# lacks; the tests of their rooms train, store and load them.
OTHERS = ("several", "relations", "relations-markers", "pairs", "textcat")
CONFIG_NAMES = [path.stem for path in sorted(CONFIGS.glob("*.cfg")) if path.stem not in OTHERS]
# Those that are trained: these have every kind of component and `tok2vec`. The trained pipeline of
# ner.cfg is a part of demo.cfg's.
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("demo", "ner-lexical")]
NAMES = ["deid", *SLOW]
OURS = {"nlp": {"tokenizer": {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}}}
N_TRAIN, N_DEV = 8, 4
N_ENOUGH = 100  # `spacy debug data` calls less an error


def spacy_cli(*arguments: object) -> str:
    """Run a command of `spacy` and return what it prints."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exit_code:
        raise AssertionError(result.output) from result.exception
    return result.output


def write_corpus(folder: Path) -> None:
    """Write train.spacy, dev.spacy and enough.spacy, with diseases and PHI."""
    folder.mkdir()
    nlp = spacy.blank("es", config=OURS)
    splits = {"train": range(N_TRAIN), "dev": range(N_ENOUGH, N_ENOUGH + N_DEV)}
    for split, numbers in {**splits, "enough": range(N_ENOUGH)}.items():
        docs = DocBin(store_user_data=True)
        for i in numbers:
            doc = nlp(
                f"Paciente con neumonía en la Fuente Clara. Tos y fiebre desde hace {i} días."
            )
            doc.set_ents([Span(doc, 2, 3, "DISEASE")], default="outside")
            doc.spans["phi"] = [Span(doc, 5, 7, "HOSPITAL")]
            docs.add(doc)
        docs.to_disk(folder / f"{split}.spacy")


@pytest.fixture(scope="session")
def contract_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of train.spacy, dev.spacy and enough.spacy."""
    folder = tmp_path_factory.mktemp("contract") / "corpus"
    write_corpus(folder)
    return folder


@pytest.fixture(scope="session")
def contract_options(tiny_encoder: Path, contract_corpus: Path) -> list[object]:
    """Options by which a command uses a shipped config with the tiny corpus and encoder."""
    values = {
        "paths.train": contract_corpus / "train.spacy",
        "paths.dev": contract_corpus / "dev.spacy",
        "paths.encoder": tiny_encoder,
        "components.transformer.model.window": 32,
        "components.transformer.model.stride": 32,
        "components.transformer.model.precision": "fp32",
        "training.max_steps": 20,
        "training.eval_frequency": 10,
        "training.optimizer.learn_rate.initial_rate": 5e-3,
        "training.optimizer.learn_rate.warmup_steps": 2,
    }
    return [part for key, value in values.items() for part in (f"--{key}", value)]


@pytest.fixture(scope="session")
def trained(
    contract_options: list[object], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Function from the name of a shipped config to the folder of a pipeline trained by it."""

    @cache
    def train(name: str) -> Path:
        folder = tmp_path_factory.mktemp("trained") / name
        spacy_cli("train", CONFIGS / f"{name}.cfg", "-o", folder, *contract_options)
        return folder / "model-last"

    return train
