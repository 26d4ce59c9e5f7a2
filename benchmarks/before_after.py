"""Scores and speeds of two source trees: what a refactoring must not change.

    python -m benchmarks.before_after BEFORE [AFTER] [--rounds 3] [--rates rules_words deid_words]

A tree is a checkout with an environment in .venv. Each trains, evaluates and annotates in processes
of its own Python, on one thread of the CPU; this script imports neither. It knows the trees by what
is registered and promised: commands, factories, `doc.ents`, `doc.spans`, `span._.candidates`.

- Scores: a few updates on BC5CDR (configs/ner.cfg, `bioclin train`) and MEDDOCAN (configs/deid.cfg,
  `spacy train`) from assets/encoders/bioclin-compact, evaluated on 60 notes: all digits of F1, and
  SHA-256 of the predicted spans with their probabilities. `repeat` says that BC5CDR trained a
  second time gives the same.
- Speeds: words/s of the trained pipeline, of `bioclin_phi_rules` and of `bioclin_deid`, names/s of
  `bioclin kb build` and mentions/s of `bioclin_linker` over 100,000 names of MeSH, in processor
  time. The trees take
  turns, second by second, in fresh processes each round. What is annotated is hashed here too.
  Other work on the machine costs a few per cent of either tree: repeat what is near a limit.

With --rates, only these rates of de-identification are measured, in a file of their own.

Scores are kept below .work/before_after by commit, and measured again on another processor or with
other libraries only; those of a tree with changes that are not committed are never kept. Corpora:
$BIOCLIN_DATA or ../shared/data.
"""

import json
import lzma
import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.harness import (
    ROOT,
    Result,
    Worker,
    data_dir,
    describe_machine,
    make_parser,
    read_json,
    thread_environment,
    to_options,
    write_json,
    write_result,
)

WORKER = Path(__file__).with_name("before_after_worker.py").resolve()
WORK = ROOT / ".work" / "before_after"
UPDATES, BATCH_WORDS, N_DOCS, N_NAMES, N_MENTIONS = 200, 512, 60, 100_000, 3_000
MODEL = Path("training") / "model-last"
RATES = ("annotate_words", "rules_words", "deid_words", "kb_names", "links_mentions")
WITHOUT_MODEL = ("rules_words", "deid_words")
SLICES = 6
CORPORA = {"bc5cdr": ("pubtator", "ents_f"), "meddocan": ("brat", "spans_phi_f")}
TRAINING = {
    "training.max_steps": UPDATES,
    "training.eval_frequency": UPDATES // 2,
    "training.batcher.size": BATCH_WORDS,
    "system.seed": 0,
}
ENVIRONMENT = {**thread_environment(), "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1"}


# What goes in: the same files for both trees.


def make_inputs(data: Path) -> Path:
    """Cut the corpora and MeSH to size, once.

    RETURNS (Path): Folder of what both trees read.
    """
    folder = WORK / "inputs"
    if folder.exists():
        return folder
    partial = WORK / "inputs.partial"
    shutil.rmtree(partial, ignore_errors=True)
    for split, name in (("train", "Training"), ("dev", "Development"), ("test", "Test")):
        text = (data / f"bc5cdr/pubtator/CDR_{name}Set.PubTator.txt").read_text("utf-8")
        docs = text.strip().split("\n\n")
        target = partial / "bc5cdr" / split / "notes.txt"
        target.parent.mkdir(parents=True)
        target.write_text("\n\n".join(docs[: None if split == "train" else N_DOCS]) + "\n", "utf-8")
        notes = sorted((data / f"meddocan/{split}/brat").glob("*.txt"))
        (partial / "meddocan" / split).mkdir(parents=True)
        for note in notes[: None if split == "train" else N_DOCS]:
            for path in (note, note.with_suffix(".ann")):
                shutil.copy(path, partial / "meddocan" / split)
    with lzma.open(data / "mesh/mesh2024_descriptor_terms.tsv.xz", "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]
    names = [(row[0], row[4]) for row in rows if row[6] == "N"][:N_NAMES]
    write_table(partial / "mesh.tsv", names)
    write_table(partial / "few.tsv", names[:100])
    mentions = read_mentions(data / "bc5cdr/pubtator")
    (partial / "mentions.json").write_text(json.dumps(mentions), "utf-8")
    partial.rename(folder)
    return folder


def write_table(path: Path, names: Iterable[tuple[str, str]]) -> None:
    concepts: dict[str, list[str]] = {}
    for concept, name in names:
        concepts.setdefault(concept, []).append(name)
    rows = (f"{concept}\ten\t{'|'.join(known)}\n" for concept, known in concepts.items())
    path.write_text("id\tlang\tname\n" + "".join(rows), "utf-8")


def read_mentions(folder: Path) -> list[str]:
    """Collect the different gold mentions of BC5CDR, in order."""
    found: dict[str, None] = {}
    for path in sorted(folder.glob("*.txt")):
        rows = (line.split("\t") for line in path.read_text("utf-8").splitlines())
        found.update((row[3], None) for row in rows if len(row) >= 6)
    return list(found)[:N_MENTIONS]


# Scores.


class Tree:
    """A checkout and the processes of its own Python."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path.resolve(), name
        self.python = self.path / ".venv" / "bin" / "python"
        if not self.python.exists():
            raise SystemExit(f"{path}: no .venv/bin/python; make an environment for this checkout")
        self.commit = self._git("rev-parse", "--short=12", "HEAD")
        self.changed = bool(self._git("status", "--porcelain", "--untracked-files=no"))

    def _git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.path), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def run(self, *arguments: object, log: Path) -> str:
        """Run this tree's Python.

        RETURNS (str): The last line that it prints.
        """
        with log.open("a", encoding="utf-8") as file:
            done = subprocess.run(
                [str(self.python), "-W", "ignore", *map(str, arguments)],
                cwd=self.path,
                env=ENVIRONMENT,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                check=False,
            )
            file.write(done.stdout)
        if done.returncode:
            raise SystemExit(f"{self.name}: {arguments[0]} {arguments[1]} failed, see {log}")
        return done.stdout.strip().rpartition("\n")[2]

    def scores(self, corpus: str, inputs: Path, *, again: bool = False) -> Result:
        """Train on a corpus and evaluate, unless the scores are kept from an earlier run.

        again (bool): Train a second time, in a folder of its own.
        RETURNS (dict): Scores, and hashes of the predictions.
        """
        folder = self.folder(corpus, again=again)
        kept = folder / "scores.json"
        machine = describe_machine()
        measured_on = {key: machine[key] for key in ("cpu", "python", "versions")}
        if kept.exists() and not self.changed:
            result = read_json(kept)
            if result.pop("measured_on") == measured_on:
                return result
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        began = os.times()
        log, bioclin = folder / "log.txt", ("-m", "spacy_bioclin")
        form, metric = CORPORA[corpus]
        for split in ("train", "dev", "test"):
            out = folder / f"{split}.spacy"
            convert = ("convert", form, inputs / corpus / split, out, "--task", corpus)
            self.run(*bioclin, *convert, log=log)
        settings = {
            "paths.train": folder / "train.spacy",
            "paths.dev": folder / "dev.spacy",
            "paths.encoder": self.path / "assets/encoders/bioclin-compact",
            "output": folder / "training",
            **TRAINING,
        }
        options = to_options(settings)
        if corpus == "meddocan":
            self.run("-m", "spacy", "train", "configs/deid.cfg", *options, log=log)
        else:
            config = ("configs/ner.cfg", "--nlp.lang", "en")
            self.run(*bioclin, "train", *config, *options, log=log)
        out = ("-o", folder / "metrics.json", "--save-predictions", folder / "predicted.spacy")
        model = folder / MODEL
        self.run(*bioclin, "evaluate", model, folder / "test.spacy", *out, log=log)
        ended = os.times()
        scores = read_json(folder / "metrics.json")["scores"]
        result = {
            "metric": metric,
            "f": scores[metric],
            "scores": scores,
            "predicted": json.loads(
                self.run(WORKER, "describe", folder / "predicted.spacy", log=log)
            ),
            "processor_seconds": round(sum(ended[2:4]) - sum(began[2:4])),
        }
        write_json(kept, {"measured_on": measured_on, **result})
        return result

    def folder(self, corpus: str, *, again: bool = False) -> Path:
        """Find the folder of a training."""
        state = "changed" if self.changed else self.commit
        return WORK / f"{self.name}-{state}" / (f"{corpus}-again" if again else corpus)

    def serve_speeds(self, inputs: Path) -> Worker:
        """Start a fresh process that measures a rate each time that it is asked for it."""
        command = [WORKER, "serve", self.folder("bc5cdr") / MODEL, inputs]
        log = WORK / f"speeds-{self.name}.log"
        return Worker(command, log, python=self.python, cwd=self.path, env=ENVIRONMENT)


# Together.


def compare_speeds(
    trees: list[Tree], inputs: Path, rounds: int, rates: Sequence[str] = RATES
) -> Result:
    """Let the trees take turns: a round has fresh processes, and some slices of every rate.

    RETURNS (dict): Medians of each rate over all slices, their ratio and that of the best slices;
        whether all annotated the same.
    """
    found: dict[str, dict[str, list[Result]]] = {
        rate: {tree.name: [] for tree in trees} for rate in rates
    }
    for n in range(rounds):
        with ExitStack() as stack:
            servers = {tree.name: stack.enter_context(tree.serve_speeds(inputs)) for tree in trees}
            for rate in rates:
                for i in range(SLICES):
                    for name in list(servers)[:: -1 if (n + i) % 2 else 1]:
                        found[rate][name].append(servers[name].ask(rate))
        print(f"round {n + 1} of {rounds}", flush=True)
    result: Result = {"rounds": rounds, "slices": SLICES, "unit": "per processor second"}
    for rate, answers in found.items():
        seen = {name: [one["rate"] for one in answers[name]] for name in answers}
        result[rate] = {name: round(statistics.median(values)) for name, values in seen.items()}
        if len(trees) == 2:
            medians, best = (
                [function(seen[name]) for name in ("before", "after")]
                for function in (statistics.median, max)
            )
            result[rate]["ratio"] = round(medians[1] / medians[0], 4)
            result[rate]["ratio_of_best"] = round(best[1] / best[0], 4)
        hashes = sorted({one["hash"] for values in answers.values() for one in values})
        result[rate]["equal"] = len(hashes) == 1
        result[rate]["sha256"] = hashes
    return result


def compare_scores(trees: list[Tree], inputs: Path) -> Result:
    result: Result = {}
    for corpus in CORPORA:
        found = {tree.name: tree.scores(corpus, inputs) for tree in trees}
        result[corpus] = found
        same = [(one["scores"], one["predicted"]) for one in found.values()]
        result[corpus]["equal"] = all(one == same[0] for one in same)
        print(corpus, {name: found[name]["f"] for name in ("before", "after") if name in found})
    first, again = (trees[0].scores("bc5cdr", inputs, again=again) for again in (False, True))
    result["repeat"] = {"f": again["f"], "equal": again["predicted"] == first["predicted"]}
    print("bc5cdr again:", result["repeat"])
    return result


def main() -> None:
    """Compare the trees, and write the result if there are two."""
    parser = make_parser(__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path, nargs="?")
    parser.add_argument("--rounds", type=int, default=3, help="of speeds; 0 for scores alone")
    parser.add_argument("--rates", choices=WITHOUT_MODEL, nargs="+", default=())
    arguments = parser.parse_args()
    began = time.time()
    trees = [Tree(arguments.before, "before")]
    if arguments.after:
        trees.append(Tree(arguments.after, "after"))
    inputs = make_inputs(data_dir())
    if arguments.rates:
        speeds = compare_speeds(trees, inputs, arguments.rounds, arguments.rates)
        commits = {tree.name: tree.commit + "-changed" * tree.changed for tree in trees}
        print(write_result("before_after_deid", {"commits": commits, "speeds": speeds}))
        return
    result: Result = {
        "commits": {tree.name: tree.commit + "-changed" * tree.changed for tree in trees},
        "updates": UPDATES,
        "batch_words": BATCH_WORDS,
        "docs": N_DOCS,
        "scores": compare_scores(trees, inputs),
    }
    if arguments.rounds:
        result["speeds"] = compare_speeds(trees, inputs, arguments.rounds)
        print(json.dumps(result["speeds"], indent=1))
    if arguments.after:
        print(write_result("before_after", result))
    print(f"{time.time() - began:.0f} s")


if __name__ == "__main__":
    main()
