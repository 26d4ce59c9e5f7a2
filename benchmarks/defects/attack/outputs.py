"""Outputs that replaced what a user wanted to keep, or could be read by others."""

import json

from benchmarks.defects.case import Done, Seen, Tree, case

NOTE = "Paciente de Prado con tos ."
PIPELINE = (
    "import spacy; nlp = spacy.blank('es'); r = nlp.add_pipe('entity_ruler')\n"
    "r.add_patterns([{'label': 'SIGN', 'pattern': 'tos'}]); nlp.to_disk('model')\n"
)


def make_corpus(tree: Tree) -> None:
    """Make a pipeline, a corpus in brat and as Docs, and a note."""
    tree.write("brat/a.txt", NOTE)
    tree.write("brat/a.ann", "T1\tSIGN 22 25\ttos\n")
    tree.write("n.txt", NOTE)
    tree.python("-c", PIPELINE)
    done = tree.bioclin("convert", "brat", "brat", "c.spacy", "--lang", "es")
    assert done.code == 0, done.text


def refused(done: Done, kept: bool) -> Seen:
    """Judge a command that has to refuse, and to leave what was there."""
    lines = [x for x in done.err.splitlines() if x.startswith("bioclin: ") and "warning" not in x]
    held = kept and done.code in (1, 2) and not done.crashed and len(lines) == 1
    return Seen(held, f"exit {done.code}, {'kept' if kept else 'lost'}, {len(lines)} lines")


@case(3, "`bioclin evaluate M c.spacy -o c.spacy --overwrite` leaves the corpus.")
def metrics_do_not_replace_the_corpus(tree: Tree) -> Seen:
    make_corpus(tree)
    before = (tree.folder / "c.spacy").read_bytes()
    done = tree.bioclin("evaluate", "model", "c.spacy", "-o", "c.spacy", "--overwrite")
    return refused(done, (tree.folder / "c.spacy").read_bytes() == before)


@case(3, "Two outputs of one name are refused before the work is done.")
def two_outputs_of_one_name(tree: Tree) -> Seen:
    make_corpus(tree)
    done = tree.bioclin("evaluate", "model", "c.spacy", "-o", "x.json", "--html", "x.json")
    return refused(done, not (tree.folder / "x.json").exists())


@case(3, "`bioclin convert` does not replace a file that is not a loss report.")
def a_report_that_was_not_asked_for(tree: Tree) -> Seen:
    make_corpus(tree)
    tree.write("d.report.json", '{"mine": 1}')
    done = tree.bioclin("convert", "brat", "brat", "d.spacy", "--lang", "es")
    return refused(done, "mine" in (tree.folder / "d.report.json").read_text("utf-8"))


@case(3, "A file of an input folder is an input: `convert brat IN IN/a.txt --overwrite`.")
def a_file_of_the_input_folder(tree: Tree) -> Seen:
    make_corpus(tree)
    options = ("--to", "pubtator", "--overwrite")
    done = tree.bioclin("convert", "brat", "brat", "brat/a.txt", *options)
    return refused(done, (tree.folder / "brat/a.txt").read_text("utf-8") == NOTE)


@case(3, "A pipeline's own files are inputs: `annotate M n.txt -o M/meta.json --overwrite`.")
def a_file_of_the_pipeline(tree: Tree) -> Seen:
    make_corpus(tree)
    before = (tree.folder / "model/meta.json").read_bytes()
    done = tree.bioclin("annotate", "model", "n.txt", "-o", "model/meta.json", "--overwrite")
    return refused(done, (tree.folder / "model/meta.json").read_bytes() == before)


@case(3, "A pipe is not replaced by a file, nor waited for.")
def a_pipe_stays(tree: Tree) -> Seen:
    make_corpus(tree)
    tree.python("-c", "import os; os.mkfifo('pipe')")
    done = tree.bioclin("annotate", "model", "n.txt", "-o", "pipe", "--overwrite", timeout=60)
    return refused(done, (tree.folder / "pipe").is_fifo())


FULL = (
    "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (8, -1))\n"
    "import sys; from spacy_bioclin.cli import app; app(sys.argv[1:])\n"
)


@case(3, "A disk that is full is one line that names the output, and nothing is left of it.")
def a_full_disk_is_one_line(tree: Tree) -> Seen:
    make_corpus(tree)
    commands = {
        "annotate": ("annotate", "model", "n.txt", "-o", "out.jsonl"),
        "evaluate": ("evaluate", "model", "c.spacy", "-o", "out.json"),
        "convert to brat": ("convert", "spacy", "c.spacy", "out"),
        "deid-key": ("deid-key", "out.key"),
    }
    bad = []
    for name, arguments in commands.items():
        done = tree.python("-c", FULL, *arguments)
        named = f"bioclin: {arguments[-1]}: " in done.text or "bioclin: out: " in done.text
        left = [path.name for path in tree.folder.glob("*out*")]
        left += [path.name for path in tree.folder.glob(".*partial")]
        if done.code != 1 or done.crashed or not named or left:
            bad.append(name)
    return Seen(not bad, bad or "one line each")


@case(2, "Ids of 300 characters, of Windows devices and with blanks at their end come back.")
def hostile_ids_come_back(tree: Tree) -> Seen:
    ids = ["/etc/x", "../up", "x" * 300, "CON", "a.", "a ", "Doc", "doc", "10.1000/x"]
    documents = [
        {"id": id, "infons": {}, "passages": [passage(f"Nota {i}.")], "relations": []}
        for i, id in enumerate(ids)
    ]
    collection = {"source": "", "date": "", "key": "", "infons": {}, "documents": documents}
    tree.write("in.json", json.dumps(collection))
    done = tree.bioclin("convert", "bioc", "in.json", "out")
    back = tree.bioclin("convert", "brat", "out", "back.json", "--to", "bioc")
    if done.code or back.code:
        return Seen(False, (done.text + back.text)[-160:])
    made = json.loads((tree.folder / "back.json").read_text("utf-8"))["documents"]
    names = [str(path.relative_to(tree.folder / "out")) for path in tree.folder.rglob("*.txt")]
    lost = sorted(set(ids) - {document["id"] for document in made})
    apart = len({name.casefold() for name in names}) == len(ids)
    return Seen(not lost and apart, {"lost": [id[:20] for id in lost], "apart": apart})


def passage(text: str) -> dict[str, object]:
    """Make a passage of BioC."""
    return {
        "offset": 0,
        "infons": {},
        "text": text,
        "sentences": [],
        "annotations": [],
        "relations": [],
    }


KILLED = (
    "import os, sys; from pathlib import Path\n"
    "try:\n    from spacy_bioclin.outputs import Output\n"
    "except ImportError:\n    from spacy_bioclin.files import Output\n"
    "with Output(Path('out.jsonl'), overwrite=True, private=True).open() as file:\n"
    "    file.write('Paciente de Prado'); file.flush(); os.kill(os.getpid(), 9)\n"
)


@case(8, "What a killed run left half made is removed by the next run of the same output.")
def what_a_killed_run_left_is_removed(tree: Tree) -> Seen:
    make_corpus(tree)
    tree.python("-c", KILLED)
    left = len(list(tree.folder.glob(".*.partial")))
    done = tree.bioclin("annotate", "model", "n.txt", "-o", "out.jsonl")
    still = len(list(tree.folder.glob(".*.partial")))
    return Seen(done.code == 0 and left == 1 and still == 0, {"left": left, "still": still})


@case(8, "What `bioclin deid` and `clean-text` write is for the user alone.")
def notes_are_private(tree: Tree) -> Seen:
    tree.write("n.jsonl", json.dumps({"text": NOTE}) + "\n")
    tree.write("raw.txt", "El paciente tiene tos y fiebre desde hace tres días.\n")
    tree.bioclin("deid", "n.jsonl", "out.jsonl", "--lang", "es")
    tree.bioclin("clean-text", "raw.txt", "--lang", "es", "-o", "clean", "--workers", "1")
    files = [tree.folder / "out.jsonl", tree.folder / "clean/es.train.txt"]
    modes = [f"{path.stat().st_mode & 0o777:o}" if path.exists() else "none" for path in files]
    return Seen(modes == ["600", "600"], modes)


@case(8, "A crash of a command leaves no core dump, which would hold notes and the key.")
def no_core_dumps(tree: Tree) -> Seen:
    code = (
        "import resource as r; h = r.getrlimit(r.RLIMIT_CORE)[1]\n"
        "r.setrlimit(r.RLIMIT_CORE, (h, h))\n"
        "from typer.testing import CliRunner; from spacy_bioclin.cli import app\n"
        "CliRunner().invoke(app, ['info', 'nothing-here']); print(r.getrlimit(r.RLIMIT_CORE)[0])\n"
    )
    done = tree.python("-c", code)
    return Seen(done.out.strip().endswith("0"), done.out.strip())
