"""Make the pipelines that ship, es_bioclin_sm and en_bioclin_sm.

    python -m scripts.flagship corpora es corpus/flagship-es
    python -m scripts.flagship train corpus/flagship-es training/flagship-es --encoder ENCODER
    python -m scripts.flagship assemble TRAINED corpus/flagship-es OUT --kb KB

`python -m spacy project run flagship . --vars.lang es` runs these and the steps between them.
configs/flagship/recipes.yml names the corpora. No document that shares text with a test document is
in a training corpus, under any label. PharmaCoNER, MEDDOCAN and the TEMIST corpora annotate the
same 1,000 cases and split them in three ways, so that only 419 cases are in no test split.
Pipelines that ship are therefore held to the test cases of `quoted` corpora alone, and tested with
what the other corpora annotate in these cases. --quoted names others, such as MEDDOCAN and
PharmaCoNER, whose official test splits have published figures.
"""

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import spacy
import typer
from rich.console import Console
from spacy.tokens import Doc, Span
from spacy.util import load_config
from spacy.vocab import Vocab
from thinc.api import Config

from benchmarks.context.kinds import SETS, read_pieces
from benchmarks.deid import hard_notes
from scripts import notes
from scripts.terminology import linker_settings
from spacy_bioclin.catalog.tasks import COMMON_LAYER, Task, find_data, find_task
from spacy_bioclin.cli.faults import report_faults
from spacy_bioclin.corpora.convert import convert_to_docs, make_nlp
from spacy_bioclin.corpora.docbin import read_docs, write_docs
from spacy_bioclin.corpora.docs import make_gold_doc
from spacy_bioclin.corpora.overlap.docs import find_overlaps
from spacy_bioclin.corpora.overlap.lists import format_id_list
from spacy_bioclin.corpora.overlap.merge import merge_docs
from spacy_bioclin.deid.calibration import BALANCED
from spacy_bioclin.deid.fit import TARGET_RECALL, calibrate
from spacy_bioclin.deid.labels import label_of, scheme_labels
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.outputs import Output, write_atomic
from spacy_bioclin.settings import Settings, read_json, read_settings, read_yaml
from spacy_bioclin.torch_bridge.shim import store_in_half
from spacy_bioclin.training.state import STATE
from spacy_bioclin.types import GOLD_KEY, AnnotatedText, SpanAnnotation
from spacy_bioclin.vocab import save_pipeline

ROOT = Path(__file__).resolve().parents[1]
RECIPES = ROOT / "configs" / "flagship" / "recipes.yml"
CONFIG = ROOT / "configs" / "flagship" / "config.cfg"
CARDS = ROOT / "assets" / "cards"
MERGED, INVENTED, NOTES, KINDS = "merged", "invented", "notes", "kinds"
ASSERTIONS = "assertions"  # the tagger of assertions, and its span group
NAME = "sm"  # of the package, after its language
KINDS_WORDS = 128  # words of a batch of the few pieces by kind
DEV_SHARE = 10  # one document of so many is dev

app = typer.Typer(add_completion=False, no_args_is_help=True)


class Recipe(Settings):
    """What the pipeline of a language learns from; recipes.yml describes the keys."""

    labels: list[str]
    corpora: dict[str, list[str]]
    merged: list[str]
    quoted: list[str]
    phi: list[str]
    scheme: str
    notes: int
    texts: list[str]
    not_drugs: list[str]
    copies: int
    updates: int
    turns: dict[str, int]
    tagged: dict[str, str]


def read_recipe(lang: str) -> Recipe:
    """Read the recipe of a language.

    RAISES (BioclinError): There is none, or it has a mistake.
    """
    recipes = read_yaml(RECIPES)
    if lang not in recipes:
        raise BioclinError(f"language {lang!r}: {RECIPES.name} has {', '.join(recipes)}")
    return read_settings(Recipe, recipes[lang], where=f"{RECIPES.name}, {lang}")


@app.command("corpora")
@report_faults
def make_corpora(
    lang: Annotated[str, typer.Argument(help="Language: es or en")],
    out: Annotated[Path, typer.Argument(help="Folder for the corpora and config.cfg")],
    quoted: Annotated[
        list[str] | None,
        typer.Option(
            help="Corpus whose test split is held out; repeat it. Default: of recipes.yml"
        ),
    ] = None,
) -> None:
    """Write train, dev and test of the corpora of a language, and config.cfg."""
    recipe = read_recipe(lang)
    names = [*recipe.corpora, *recipe.phi]
    quoted = choose_quoted(quoted, names) or recipe.quoted
    for name in names:
        sources = ("train", "dev") if name in quoted else ("train", "dev", "test")
        for split in ("train", "dev"):
            convert(name, recipe, sources, split, find_file(out, name, split))
        if name in quoted:
            convert(name, recipe, ("test",), "test", find_file(out, name, "test"))
    if recipe.merged:
        merge(recipe, out)
    invent(lang, recipe, out)
    for split in ("train", "dev"):
        write_docs(make_note_docs(lang, recipe, split), find_file(out, NOTES, split))
        write_docs(make_kind_docs(lang, split), find_file(out, KINDS, split))
    tests = [find_file(out, name, "test") for name in quoted]
    for name in names:
        if name not in quoted:
            write_unseen(out, name, tests)
    tasks = find_tasks(recipe)
    for split in ("train", "dev"):
        # Invented notes of train and dev share layouts, and differ in names.
        others = [name for name in tasks["dev"] if name != INVENTED] if split == "train" else []
        dev = [find_file(out, name, "dev") for name in others]
        paths = [find_file(out, name, split) for name in tasks[split]]
        leave_out(paths, [*tests, *dev], out / f"{split}-leave-out.txt")
    make_config(lang, recipe, out, tests).to_disk(out / "config.cfg")


def choose_quoted(wanted: list[str] | None, names: Collection[str]) -> list[str]:
    """Check the corpora whose test splits are to be held out.

    RAISES (BioclinError): One is not a corpus of the language.
    """
    for name in wanted or []:
        if name not in names:
            raise BioclinError(f"--quoted {name}: choose from {', '.join(names)}")
    return wanted or []


def find_file(out: Path, name: str, split: str) -> Path:
    """Find the file of a split of a corpus."""
    return out / name / f"{split}.spacy"


def find_tasks(recipe: Recipe) -> dict[str, dict[str, list[str]]]:
    """List the corpora of train and dev, and the components that learn from each.

    RETURNS (dict[str, dict[str, list[str]]]): Split -> name of the corpus -> components.
    """
    alone = [name for name in recipe.corpora if name not in recipe.merged]
    merged = [MERGED] if recipe.merged else []
    others = {**{name: ["phi"] for name in recipe.phi}, INVENTED: ["phi"]}
    others |= {NOTES: ["ner", "phi", ASSERTIONS], KINDS: [ASSERTIONS]}
    return {
        "train": {**{name: ["ner"] for name in [*merged, *alone]}, **others},
        "dev": {**{name: ["ner"] for name in recipe.corpora}, **others},
    }


def convert(name: str, recipe: Recipe, sources: Collection[str], split: str, out: Path) -> None:
    """Convert what official splits of a task have for a split of ours.

    Dev is the tenth of the documents whose ids have the smallest hashes, so that a case that
    several corpora annotate is in the dev of all.

    sources (Collection[str]): The official splits.
    split (str): Ours; "test" for all documents.
    """
    task = find_task(name)
    data = find_data(name)
    paths = dict.fromkeys(data / path for source in sources for path in task.splits[source])

    def keep(id: str) -> bool:
        belongs = any(task.has_document(source, id) for source in sources)
        return belongs and (split == "test" or is_dev(id) == (split == "dev"))

    Console(stderr=True, highlight=False).print(f"{name}, {split}", markup=False)
    options: dict[str, Any] = {"layers": task.layers, "labels": task.labels}
    if name in recipe.corpora:
        options = choose_labels(task, recipe.corpora[name])
    convert_to_docs(task.format, [*paths], out, lang=task.lang, keep=keep, task=name, **options)
    if recipe.not_drugs and "DRUG" in recipe.corpora.get(name, ()):
        mend_drugs(out, recipe.not_drugs)


def is_dev(id: str) -> bool:
    """Tell whether a document that is not in a test split is dev."""
    return int(hashlib.sha256(id.encode()).hexdigest(), 16) % DEV_SHARE == 0


def mend_drugs(path: Path, not_drugs: Collection[str]) -> None:
    """Take what is measured and not given out of DRUG, and make insulin one, in a corpus file."""
    docs = list(read_docs(path, Vocab()))
    analyte = re.compile(rf"(?:{'|'.join(not_drugs)})\b", re.IGNORECASE)

    def mend(label: str, text: str) -> str:
        if label == "PROTEIN" and text.lower().startswith("insulin"):
            return "DRUG"
        return "" if label == "DRUG" and analyte.match(text) else label

    for doc in docs:
        layers = doc.user_data[GOLD_KEY]["layers"]
        items = [
            [start, end, mend(label, doc.text[start:end]), id]
            for start, end, label, id in layers[COMMON_LAYER]
        ]
        layers[COMMON_LAYER] = [item for item in items if item[2]]
        group = [(span, mend(span.label_, span.text)) for span in doc.spans[COMMON_LAYER]]
        doc.spans[COMMON_LAYER] = [
            Span(doc, span.start, span.end, label=label, kb_id=span.kb_id)
            for span, label in group
            if label
        ]
    write_docs(docs, path)


def make_note_docs(lang: str, recipe: Recipe, split: str) -> Iterator[Doc]:
    """Make gold Docs of our notes: clinical entities, PHI and assertions.

    Other corpora call imaging and cultures procedures, so that such a TEST is a PROCEDURE too.
    """
    nlp = make_nlp(lang)
    annotated = [*notes.LABELS, *scheme_labels(recipe.scheme), *notes.ASSERTIONS]
    layers = {
        **dict.fromkeys(notes.LABELS, COMMON_LAYER),
        **dict.fromkeys(notes.ASSERTIONS, ASSERTIONS),
        "*": "phi",
    }
    for _, of, path in notes.list_files([lang]):
        for note in notes.read_notes(path) if of == split else ():
            spans = [*list_note_spans(note, recipe.scheme), *list_assertions(note.marks)]
            text = annotate(note.name, note.text, spans)
            yield make_gold_doc(nlp, text, layers=layers, annotated_labels=annotated, task=NOTES)


def make_kind_docs(lang: str, split: str) -> Iterator[Doc]:
    """Make gold Docs of the pieces of benchmarks/context/kinds.py: assertions alone."""
    nlp = make_nlp(lang)
    pieces = read_pieces(SETS / f"kinds_{lang}.txt", split)
    for number, piece in enumerate(pieces):
        text = annotate(f"{piece.kind}-{number}", piece.text, list_assertions(piece.marks))
        layers = dict.fromkeys(notes.ASSERTIONS, ASSERTIONS)
        options: dict[str, Any] = {"annotated_labels": notes.ASSERTIONS, "task": KINDS}
        yield make_gold_doc(nlp, text, layers=layers, **options)


def annotate(name: str, text: str, spans: Iterable[tuple[int, int, str]]) -> AnnotatedText:
    """Put spans (start, end, label) into an annotated text."""
    marked = tuple(
        SpanAnnotation(f"T{n}", label, ((start, end),), text[start:end])
        for n, (start, end, label) in enumerate(spans, start=1)
    )
    return AnnotatedText(name, text, marked)


def list_note_spans(note: notes.Note, scheme: str) -> Iterator[tuple[int, int, str]]:
    """List the entities and PHI of a note, with the labels of a scheme of PHI."""
    for mark in note.marks:
        bounds = mark.start, mark.end
        is_phi = mark.label not in notes.LABELS
        yield *bounds, label_of(mark.label, scheme) if is_phi else mark.label
        if mark.label == "TEST" and notes.IS_PROCEDURE.search(note.text[slice(*bounds)]):
            yield *bounds, "PROCEDURE"


def list_assertions(marks: Iterable[notes.Mark]) -> Iterator[tuple[int, int, str]]:
    """List the assertions of marks; of one mark within another with the same, the outer one's."""
    ends = dict.fromkeys(notes.ASSERTIONS, 0)  # of the last span of each kind
    for mark in sorted(marks, key=lambda mark: (mark.start, -mark.end)):
        for kind in mark.assertions:
            if mark.start >= ends[kind]:
                yield mark.start, mark.end, kind
                ends[kind] = mark.end


def choose_labels(task: Task, wanted: Collection[str]) -> dict[str, Any]:
    """Choose how labels are renamed, their layers, and the labels that the task annotates."""
    labels = {label: new for label, new in task.common.items() if new in wanted}
    annotated = sorted({new for new in labels.values() if new})
    layers = {**dict.fromkeys(annotated, COMMON_LAYER), "*": None}
    return {"labels": labels, "layers": layers, "annotated_labels": annotated}


def merge(recipe: Recipe, out: Path) -> None:
    """Merge the training documents of the corpora that annotate the same notes."""
    vocab = Vocab()
    paths = {name: find_file(out, name, "train") for name in recipe.merged}
    docs, _ = merge_docs({name: read_docs(path, vocab) for name, path in paths.items()})
    write_docs(docs, find_file(out, MERGED, "train"))


def invent(lang: str, recipe: Recipe, out: Path) -> None:
    """Invent notes with PHI and clinical entities for train and, with other names, for dev."""
    data = find_data(next(iter(recipe.corpora)))
    texts = [word for path in recipe.texts for word in ("--texts", str(data / path))]
    splits = (("train", recipe.notes, "training"), ("dev", recipe.notes // 20, "held-out"))
    for seed, (split, number, names) in enumerate(splits):
        command = ["invent-notes", "-o", str(find_file(out, INVENTED, split)), "--lang", lang]
        command += ["--number", str(number), "--seed", str(seed), "--names", names, *texts]
        command += ["--scheme", recipe.scheme, "--overwrite"]
        run("-m", "spacy_bioclin", *command)


def write_unseen(out: Path, name: str, tests: list[Path]) -> None:
    """Write what a corpus annotates in the held-out cases as its test split."""
    paths = [find_file(out, name, split) for split in ("train", "dev")]
    found = find_overlaps(paths, tests)
    vocab = Vocab()
    docs = [
        doc
        for path in paths
        for doc in read_docs(path, vocab)
        if any(doc.user_data[GOLD_KEY]["id"] in ids for ids in found[path].ids.values())
    ]
    write_docs(docs, find_file(out, name, "test"))


def leave_out(paths: list[Path], held_out: list[Path], out: Path) -> None:
    """List the documents of corpora that share text with held-out ones."""
    found = find_overlaps(paths, held_out)
    ids = {id for overlap in found.values() for listed in overlap.ids.values() for id in listed}
    write_atomic(out, format_id_list(ids, "documents that share text with test or dev"))
    for path, overlap in found.items():
        own = {id for listed in overlap.ids.values() for id in listed}
        typer.echo(f"{path}: {overlap.n_docs:,} documents, {len(own):,} left out")


def make_config(lang: str, recipe: Recipe, out: Path, tests: list[Path]) -> Config:
    """Fill in the corpora and the number of updates."""
    config = load_config(CONFIG, {"nlp.lang": lang})
    tasks = find_tasks(recipe)
    for split in ("train", "dev"):
        corpora = config["corpora"][split]
        corpora["leave_out"] = str(out / f"{split}-leave-out.txt")
        corpora["held_out"] = [str(path) for path in tests]
        corpora["tasks"] = {
            # Invented notes have noise of their own.
            name: {
                "path": str(find_file(out, name, split)),
                "heads": heads,
                "augment": name != INVENTED,
            }
            for name, heads in tasks[split].items()
        }
    if recipe.copies:
        noise = {"@augmenters": "spacy-bioclin.noise.v1", "copies": recipe.copies, "keep": True}
        config["corpora"]["train"]["augmenter"] = {**noise, "seed": 0}
    batcher = config["training"]["batcher"]
    batcher["batchers"] = {KINDS: {**batcher["batcher"], "size": KINDS_WORDS}}
    turns = batcher["turns"] = recipe.turns
    per_round = sum(turns.get(name, 1) for name in tasks["train"])
    config["training"]["max_steps"] = recipe.updates * per_round
    config["training"]["eval_frequency"] = config["training"]["max_steps"]
    return config


@app.command()
@report_faults
def train(
    corpora: Annotated[Path, typer.Argument(help="Folder that `corpora` wrote")],
    out: Annotated[Path, typer.Argument(help="Folder for the trained pipeline")],
    encoder: Annotated[str, typer.Option(help="Folder or hub name of the encoder")],
    seed: Annotated[int, typer.Option(help="Random seed")] = 0,
    gpu_id: Annotated[int, typer.Option(help="GPU to use; -1 for the CPU")] = -1,
) -> None:
    """Train the pipeline with `bioclin train`, or resume a training that was interrupted."""
    command = ["-m", "spacy_bioclin", "train", str(corpora / "config.cfg"), "-o", str(out)]
    command += ["--paths.encoder", encoder, "--system.seed", str(seed), "--gpu-id", str(gpu_id)]
    command += ["--resume" if (out / STATE).exists() else "--overwrite"]
    run(*command)


def run(*command: str) -> None:
    """Run Python in a process of its own; if it fails, end with its status."""
    if status := subprocess.run([sys.executable, *command]).returncode:
        raise typer.Exit(status)


@app.command()
@report_faults
def assemble(
    trained: Annotated[Path, typer.Argument(help="Folder of the trained pipeline")],
    corpora: Annotated[Path, typer.Argument(help="Folder that `corpora` wrote")],
    out: Annotated[Path, typer.Argument(help="Folder for the whole pipeline")],
    kb: Annotated[Path, typer.Option(help="Folder of the knowledge base to link to")],
) -> None:
    """Add the components that do not learn, and calibrate PHI on dev.

    The hard notes of dev count too: invented notes have the layouts of training, so that the tagger
    is surer of them than of notes of other kinds.
    """
    output = Output(out, inputs=[trained, corpora, kb], overwrite=True, marker="config.cfg")
    # Thresholds are chosen on dev, with trained weights.
    chosen = load_config(CONFIG, interpolate=False)["components"]
    settings = {name: {"threshold": chosen[name]["threshold"]} for name in ("ner", ASSERTIONS)}
    nlp = spacy.load(trained, config={"components": {**settings, "ents": chosen["ents"]}})
    for _, component in nlp.components:
        if model := getattr(component, "model", None):
            store_in_half(model)
    recipe = read_recipe(nlp.lang)
    nlp.add_pipe("bioclin_sections", "sections", after="sentences")
    nlp.add_pipe("bioclin_phi_rules", "rules", after="phi")
    nlp.add_pipe("bioclin_context", "context", after="ents", config={"tagged": recipe.tagged})
    nlp.add_pipe("bioclin_measurements", "measurements", after="context")
    linker = {"kb": str(kb), "spans_key": COMMON_LAYER, **linker_settings(nlp.lang)}
    nlp.add_pipe("bioclin_linker", "linker", before="ents", config=linker)
    nlp.add_pipe("bioclin_deid", "deid", before="cleaner")
    phi = [name for name, heads in find_tasks(recipe)["dev"].items() if "phi" in heads]
    docs = [doc for name in phi for doc in read_docs(find_file(corpora, name, "dev"), nlp.vocab)]
    notes = hard_notes.read_notes(hard_notes.FOLDER / f"{nlp.lang}_dev.txt")
    docs += hard_notes.make_phi_docs(notes, nlp.lang)
    report = calibrate(nlp, docs, TARGET_RECALL, operating_point=BALANCED)
    with output.open_folder() as folder:
        save_pipeline(nlp, folder)
        text = json.dumps(report, indent=2) + "\n"
        (folder / "deid_calibration_report.json").write_text(text, "utf-8")


@app.command()
@report_faults
def evaluate(
    pipeline: Annotated[Path, typer.Argument(help="Folder that `assemble` wrote")],
    corpora: Annotated[Path, typer.Argument(help="Folder that `corpora` wrote")],
    out: Annotated[Path, typer.Argument(help="Folder for the scores of each corpus")],
    gpu_id: Annotated[int, typer.Option(help="GPU to use; -1 for the CPU")] = -1,
) -> None:
    """Score the pipeline on the test documents of each corpus with `bioclin evaluate`."""
    for test in sorted(corpora.glob("*/test.spacy")):
        scores = out / f"{test.parent.name}.json"
        command = ["evaluate", str(pipeline), str(test), "-o", str(scores), "--overwrite"]
        run("-m", "spacy_bioclin", *command, "--gpu-id", str(gpu_id))


@app.command()
@report_faults
def package(
    pipeline: Annotated[Path, typer.Argument(help="Folder that `assemble` wrote")],
    metrics: Annotated[Path, typer.Argument(help="Folder that `evaluate` wrote")],
    out: Annotated[Path, typer.Argument(help="Folder for the wheel")],
    version: Annotated[str, typer.Option(help="Version of the package")],
    encoder: Annotated[str, typer.Option(help="Folder or hub name of the encoder")],
) -> None:
    """Build the wheel with `bioclin package`; its card has all corpora."""
    card = CARDS / f"{read_json(pipeline / 'meta.json')['lang']}_bioclin_{NAME}.md"
    command = ["package", str(pipeline), str(out), "--name", NAME, "--version", version]
    command += ["--note", str(card)]
    for path in sorted(metrics.glob("*.json")):
        command += ["--metrics", str(path), "--task", path.stem]
    run("-m", "spacy_bioclin", *command, "--encoder", encoder, "--overwrite")


if __name__ == "__main__":
    app()
