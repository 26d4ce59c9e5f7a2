"""Corpora that a user could not prepare, codes that were lost on the way, published checkpoints."""

import re

from benchmarks.defects.case import Done, Seen, Tree, case

TEMIST = (
    "Progresión ósea y hepática.",
    "T1\tENFERMEDAD 0 26\tProgresión ósea y hepática\n"
    "#1\tAnnotatorNotes T1\t94222008+94381002 COMPOSITE\n",
)
DEV_CASE = "S0004-06142007000900014-1"  # of all three TEMIST corpora
READ = """
import spacy, sys
from pathlib import Path
from spacy_bioclin.corpora.docbin import read_docs
for doc in read_docs(Path(sys.argv[1]), spacy.blank("es").vocab):
    print(*[f"{span.label_}={span.kb_id_}" for span in doc.ents])
"""


def write_brat(tree: Tree, folder: str, names: tuple[str, ...], note: tuple[str, str]) -> None:
    for name in names:
        for suffix, content in zip((".txt", ".ann"), note, strict=True):
            tree.write(f"data/{folder}/{name}{suffix}", content)


def prepare(tree: Tree, task: str, lang: str) -> Done:
    """Run the project's command `prepare` on the notes in data/."""
    data = str(tree.folder / "data")
    return tree.python(tree.path / "scripts/prepare.py", task, lang, "out", BIOCLIN_DATA=data)


def last_words(done: Done) -> str:
    """Shorten what a command printed to its end, without paths."""
    return re.sub(r"\S*/\S*", "…", done.text)[-120:]


@case(5, "JNLPBA has a dev split, so that the project can train on it.")
def jnlpba_can_be_prepared(tree: Tree) -> Seen:
    note = ("IL-2 gene expression", "T1\tDNA 0 9\tIL-2 gene\n")
    write_brat(tree, "jnlpba/standoff/train", ("90110496", "99428687"), note)
    write_brat(tree, "jnlpba/standoff/test", ("1",), note)
    done = prepare(tree, "jnlpba", "en")
    made = sorted(path.name for path in (tree.folder / "out").glob("*.spacy"))
    return Seen(len(made) == 3, made if done.code == 0 else last_words(done))


@case(5, "DisTEMIST can be prepared, with a dev split and its SNOMED CT codes.")
def distemist_can_be_prepared(tree: Tree) -> Seen:
    dev = DEV_CASE
    lists = tree.path / "spacy_bioclin/catalog/splits.yml"
    if lists.exists():  # any case of the list
        dev = re.findall(r"S\d{4}-\S+", lists.read_text("utf-8"))[0]
    write_brat(tree, "distemist/train/brat", (dev, "S0000-1"), TEMIST)
    write_brat(tree, "distemist/test/brat", ("S0000-2",), TEMIST)
    done = prepare(tree, "distemist", "es")
    if done.code:
        return Seen(False, last_words(done))
    ids = tree.python("-c", READ, "out/dev.spacy").out.strip()
    return Seen(ids == "ENFERMEDAD=94222008|94381002", ids)


@case(5, "Codes in the notes of the TEMIST corpora become ids of the spans.")
def snomed_codes_become_ids(tree: Tree) -> Seen:
    write_brat(tree, "notes", ("a",), TEMIST)
    tree.bioclin("convert", "brat", "data/notes", "x.spacy", "--lang", "es")
    ids = tree.python("-c", READ, "x.spacy").out.strip()
    return Seen(ids == "ENFERMEDAD=94222008|94381002", ids)


@case(5, "NUBes, whose scopes contain events, is trained with nested = true.")
def nubes_is_nested(tree: Tree) -> Seen:
    note = ("Sin fiebre.", "T1\tNegMarker 0 3\tSin\nT2\tNegSco 0 10\tSin fiebre\n")
    for number in range(1, 11):
        write_brat(tree, f"nubes/NUBes/SAMPLE-{number:03}", ("a",), note)
    done = prepare(tree, "nubes", "es")
    config = tree.folder / "out/config.cfg"
    found = re.findall("^nested = .*", config.read_text("utf-8") if config.exists() else "", re.M)
    return Seen(found == ["nested = true"], found or last_words(done))


@case(5, "BC5CDR chemicals are a task of their own; diseases are left out and counted.")
def bc5cdr_chemical_is_a_task(tree: Tree) -> Seen:
    abstract = (
        "1|t|Aspirin\n1|a|Aspirin and fever.\n"
        "1\t0\t7\tAspirin\tChemical\tD001241\n1\t20\t25\tfever\tDisease\tD005334\n\n"
    )
    for split in ("Training", "Development", "Test"):
        tree.write(f"data/bc5cdr/pubtator/CDR_{split}Set.PubTator.txt", abstract)
    done = prepare(tree, "bc5cdr-chemical", "en")
    if done.code:
        return Seen(False, last_words(done))
    found = tree.python("-c", READ, "out/test.spacy").out.strip()
    return Seen(found == "Chemical=D001241" and "left_out" in done.text, found)


@case(5, "Benchmarks and catalogue have the same dev split of CANTEMIST.")
def cantemist_has_one_dev_split(tree: Tree) -> Seen:
    code = (
        "from benchmarks.corpora import SPLITS\n"
        "from spacy_bioclin.catalog.tasks import load_tasks\n"
        "print(SPLITS['cantemist'] == load_tasks()['cantemist'].splits)\n"
    )
    done = tree.python("-c", code)
    return Seen(done.out.strip() == "True", done.out.strip())


@case(25, "The last example of docs/corpora.md reads the annotations that it writes about.")
def docs_example_finds_spans(tree: Tree) -> Seen:
    page = (tree.path / "docs/corpora.md").read_text("utf-8")
    example = re.findall("^```python\n(.*?)^```", page, re.M | re.S)[-1]
    tree.write("corrected/es-train-001.txt", "Tos.")
    tree.write("corrected/es-train-001.ann", "T1\tPROBLEM 0 3\tTos\n")
    setup = "from pathlib import Path\nimport spacy\nnlp = spacy.blank('es')\n"
    done = tree.python("-c", setup + example)
    return Seen("1 spans" in done.out, done.out.strip() or last_words(done))


@case(6, "`bioclin fetch` knows published fine-tuned checkpoints.")
def fetch_knows_checkpoints(tree: Tree) -> Seen:
    done = tree.bioclin("fetch", "bsc-bio-ehr-es-pharmaconer", HF_HUB_OFFLINE="1")
    # Offline, an encoder or checkpoint that is known ends with advice on the network.
    return Seen("not in the catalogue" not in done.text, last_words(done))
