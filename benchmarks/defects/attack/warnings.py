"""What other libraries say of a note: warnings, logs and errors of a component on the terminal."""

from benchmarks.defects.case import Done, Seen, Tree, case

NAME = "Zkanarienvogel"
NOTE = f"{NAME} Pérez tiene fiebre."
# A component of another package, found by its entry point.
LOUD = """
import logging, threading, warnings
from spacy.language import Language
from spacy.training import offsets_to_biluo_tags

class Panic(BaseException):
    pass

def fail(text):
    raise ValueError(text)

@Language.factory("loud", default_config={"how": ""})
def make_loud(nlp, name, how):
    def loud(doc):
        if how == "misaligned":
            offsets_to_biluo_tags(doc, [(1, 3, "SIGN")])
        if how == "warning":
            warnings.warn(doc.text)
        if how == "log":
            logging.getLogger("loud").warning("note %s", doc.text)
        if how == "thread":
            thread = threading.Thread(target=fail, args=(doc.text,))
            thread.start()
            thread.join()
        if how == "panic":
            raise Panic(doc.text)
        return doc
    return loud
"""
MAKE = """
import sys, spacy
from spacy.tokens import DocBin, Span
how, text = sys.argv[1:]
nlp = spacy.blank("es")
doc = nlp(text)
doc.set_ents([Span(doc, 3, 4, label="SIGN")])
DocBin(docs=[doc]).to_disk("notes.spacy")
nlp.add_pipe("loud", config={"how": how})
nlp.add_pipe("bioclin_phi_rules")
nlp.to_disk("pipeline")
nlp = spacy.blank("es")
nlp.add_pipe("loud", config={"how": how})
nlp.add_pipe("ner", config={"model": {"hidden_width": 8}})
config = nlp.config
config["paths"] = {"train": None, "dev": None, "vectors": None, "init_tok2vec": None}
config["training"] |= {
    "max_steps": 1, "eval_frequency": 1, "frozen_components": ["loud"],
    "annotating_components": ["loud"],
}
for split in ("train", "dev"):
    config["corpora"][split]["path"] = "notes.spacy"
config.to_disk("train.cfg")
"""
SHOW_WARNINGS = """
import runpy, sys, warnings
warnings.simplefilter("default")
sys.argv[0] = "bioclin"
runpy.run_module("spacy_bioclin", run_name="__main__")
"""


def run(tree: Tree, how: str, *command: str) -> Done:
    """Run a command on a pipeline with the component, and a folder or a file of notes."""
    tree.write("loud.py", LOUD)
    tree.write("loud-0.dist-info/METADATA", "Metadata-Version: 2.1\nName: loud\nVersion: 0\n")
    points = "[spacy_factories]\nloud = loud:make_loud\n"
    tree.write("loud-0.dist-info/entry_points.txt", points)
    for i in range(4):
        tree.write(f"notes/{i}.txt", NOTE)
    tree.write("notes.jsonl", "".join(f'{{"text": "{NOTE}"}}\n' for _ in range(4)))
    paths = f"{tree.folder}:{tree.path}"
    made = tree.python("-c", MAKE, how, NOTE, PYTHONPATH=paths)
    if made.code:
        raise RuntimeError(made.err)
    # A case's Python ignores warnings, a user's does not.
    return tree.python("-c", SHOW_WARNINGS, *command, PYTHONPATH=paths)


def silent(done: Done, *, code: int) -> Seen:
    """Check that a command ended with this exit status and showed no text, and no traceback."""
    shown = NAME in done.text
    holds = not shown and not done.crashed and done.code == code
    return Seen(holds, {"exit": done.code, "note shown": shown, "crashed": done.crashed})


ANNOTATE = ("annotate", "pipeline", "notes", "-o", "out.jsonl")
DEID = ("deid", "notes.jsonl", "out.jsonl", "--lang", "es", "--pipeline", "pipeline")


@case(8, "annotate: spaCy's warning of entities that are not aligned shows no note.")
def misaligned_in_annotate(tree: Tree) -> Seen:
    return silent(run(tree, "misaligned", *ANNOTATE), code=0)


@case(8, "train: spaCy's warning of entities that are not aligned shows no note.")
def misaligned_in_train(tree: Tree) -> Seen:
    return silent(run(tree, "misaligned", "train", "train.cfg", "-o", "out"), code=0)


@case(8, "evaluate: spaCy's warning of entities that are not aligned shows no note.")
def misaligned_in_evaluate(tree: Tree) -> Seen:
    out = run(tree, "misaligned", "evaluate", "pipeline", "notes.spacy", "-o", "metrics.json")
    shown = NAME in out.text
    return Seen(not shown and "[W030]" in out.text, {"note shown": shown})


@case(8, "annotate: a component's warning of a note shows no note.")
def warned_note(tree: Tree) -> Seen:
    return silent(run(tree, "warning", *ANNOTATE), code=0)


@case(8, "deid: a component's log record of a note shows no note.")
def logged_note(tree: Tree) -> Seen:
    return silent(run(tree, "log", *DEID), code=0)


@case(8, "deid: an error in a thread of a component shows no note, with two processes.")
def note_in_a_thread(tree: Tree) -> Seen:
    return silent(run(tree, "thread", *DEID, "--processes", "2"), code=0)


@case(8, "annotate: a panic of a library in Rust, which is no Exception, is one line.")
def panic(tree: Tree) -> Seen:
    return silent(run(tree, "panic", *ANNOTATE), code=1)
