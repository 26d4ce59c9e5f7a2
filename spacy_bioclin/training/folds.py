"""Train a pipeline for each fold of the training documents: the members of an ensemble."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

from spacy.tokens import Doc
from spacy.util import walk_dict
from spacy.vocab import Vocab
from thinc.api import Config

from ..corpora.docbin import read_docs, write_docs
from ..corpora.overlap.docs import DocumentChoice
from ..corpora.overlap.folds import make_folds
from ..corpora.readers import NAME
from ..errors import BioclinError
from ..files import hash_files
from ..outputs import make_private_folder, remove, write_atomic
from ..runs import read_object
from ..types import GOLD_KEY
from .auto import settle_settings
from .epochs import set_updates
from .initialize import init_pipeline
from .loop import BEST, LAST, train
from .state import STATE, find_state
from .task_report import JSON, PICTURE

RESULT = "result.json"
CORPUS = "corpus"  # the documents of the member that is being trained
READERS = ("train", "dev")
# What is written beside the result, and removed once there is one.
PASSING = (STATE, f".{STATE}.old", LAST, CORPUS, JSON, PICTURE)
# Settings that make no difference to a member, or of which the content is compared.
ELSEWHERE = re.compile(
    r"paths\..*|corpora\..*\.(path|leave_out)|components\..*\.model\.name|.*\.encoder"
    r"|training\.logger(\..*)?|system\.gpu_allocator"
)


def find_corpora(config: Config, *, with_dev: bool) -> dict[str, DocumentChoice]:
    """Find the documents that are divided into folds.

    with_dev (bool): Use those of dev, too.
    RETURNS (dict[str, DocumentChoice]): Path -> which of its documents are used.
    RAISES (BioclinError): A corpus is read in another way than by `spacy-bioclin.Corpus.v1`, or has
        no path.
    """
    corpora = config.interpolate().get("corpora", {})
    found = {}
    for split in READERS:
        reader = corpora.get(split, {})
        if reader.get("@readers") != NAME:
            raise BioclinError(f"[corpora.{split}] must be a {NAME}, to be replaced by folds")
        if split == "train" or with_dev:
            if not reader.get("path"):
                raise BioclinError(f"[corpora.{split}] has no path: give --paths.{split}")
            found[str(reader["path"])] = DocumentChoice(NAME, leave_out=reader.get("leave_out"))
    return found


def describe_folds(config: Config, *, n_folds: int, with_dev: bool) -> dict[str, Any]:
    """Describe what all members are made from: settings, and hashes of corpora and encoder.

    RETURNS (dict[str, Any]): As JSON.
    """
    filled = config.interpolate()
    encoder = str(filled.get("paths", {}).get("encoder"))
    corpora = find_corpora(config, with_dev=with_dev)
    lists = [choice.leave_out for choice in corpora.values() if choice.leave_out]
    settings = {".".join(path): value for path, value in walk_dict(filled)}
    made_from = {
        "folds": n_folds,
        "corpora": [hash_files(Path(path)) for path in corpora],
        "leave_out": [hash_files(path) for path in lists],
        "encoder": hash_files(Path(encoder)) if Path(encoder).exists() else encoder,
        **{path: value for path, value in settings.items() if not ELSEWHERE.fullmatch(path)},
    }
    return json.loads(json.dumps(made_from, default=str))


def train_folds(
    config: Config,
    output: Path,
    *,
    n_folds: int,
    with_dev: bool,
    use_gpu: int,
    stdout: IO[str],
    stderr: IO[str],
    tell: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Train a pipeline for each fold: on all other folds, and with the fold as dev, which decides
    on the best step (Lange et al. 2022, "CLIN-X").

    Finished members are kept; a member whose training was interrupted is resumed at its last
    evaluation. The pipelines are output/0/model-best, output/1/model-best, …

    config (Config): Of a training, not interpolated. Its corpora are replaced.
    output (Path): Folder of the members; nobody else writes there.
    n_folds (int): Number of folds.
    with_dev (bool): Divide the documents of dev, too.
    use_gpu (int): GPU; -1 for the CPU.
    stdout, stderr (IO[str]): Where the loggers of the trainings write.
    tell (Callable): Takes a line for the user.
    RETURNS (list[dict[str, Any]]): Result of each member.
    """
    read = partial(_read_folds, config, n_folds=n_folds, with_dev=with_dev)
    folds: list[list[Doc]] = []
    for number in range(n_folds):
        folder = output / str(number)
        if not (folder / RESULT).exists():
            folds = folds or read()
            sizes = sum(map(len, folds)) - len(folds[number]), len(folds[number])
            tell(
                f"Member {number + 1} of {n_folds}: {sizes[0]:,} documents for training, "
                f"{sizes[1]:,} to choose the best step"
            )
            settings = _write_corpora(config, folder / CORPUS, folds, number)
            result = _train_member(settings, folder, use_gpu, stdout, stderr, tell)
            result = {"fold": number, "documents": sizes[0], "left_out": sizes[1], **result}
            write_atomic(folder / RESULT, json.dumps(result, indent=2) + "\n")
        for name in PASSING:
            remove(folder / name)
    return [read_object(output / str(number) / RESULT) for number in range(n_folds)]


def _read_folds(config: Config, *, n_folds: int, with_dev: bool) -> list[list[Doc]]:
    """Read all documents, divided into folds."""
    vocab, docs = Vocab(), []
    for path, choice in find_corpora(config, with_dev=with_dev).items():
        choice.check([Path(path)])
        docs += list(filter(choice.keeps, read_docs(Path(path), vocab)))
    ids = [doc.user_data[GOLD_KEY]["id"] if GOLD_KEY in doc.user_data else "" for doc in docs]
    pairs = zip(ids, (doc.text for doc in docs), strict=True)
    numbers = make_folds(pairs, n_folds)
    folds: list[list[Doc]] = [[] for _ in range(n_folds)]
    for doc, number in zip(docs, numbers, strict=True):
        folds[number].append(doc)
    return folds


def _write_corpora(
    config: Config, folder: Path, folds: Sequence[Sequence[Doc]], left_out: int
) -> Config:
    """Write the corpora of a member.

    RETURNS (Config): The config with these corpora.
    """
    others = [doc for number, docs in enumerate(folds) if number != left_out for doc in docs]
    settings = config.copy()
    make_private_folder(folder)
    for split, docs in zip(READERS, (others, folds[left_out]), strict=True):
        path = folder / f"{split}.spacy"
        if not path.exists():
            write_docs(docs, path)
        settings["corpora"][split]["path"] = str(path)
        settings["corpora"][split]["leave_out"] = None
    return settings


def _train_member(
    config: Config,
    folder: Path,
    use_gpu: int,
    stdout: IO[str],
    stderr: IO[str],
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """Train a member, or go on with it.

    RETURNS (dict[str, Any]): Best step, and the scores of that step on the fold that was left out.
    """
    nlp = init_pipeline(config, use_gpu=use_gpu)
    for line in settle_settings(nlp, {}):
        tell(line)
    set_updates(nlp)
    resume = find_state(folder) is not None
    curve = train(nlp, folder, resume=resume, use_gpu=use_gpu, stdout=stdout, stderr=stderr)
    best, score = max(curve, key=lambda point: point[1])
    meta: Mapping[str, Any] = read_object(folder / BEST / "meta.json")
    return {"best_step": best, "score": score, "scores": meta["performance"]}
