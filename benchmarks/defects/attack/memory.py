"""Memory that grows with the notes that were read."""

import json
import random
import string

from benchmarks.defects.case import Seen, Tree, case

N_NOTES = 600


def write_note(number: int) -> str:
    """Write a note of words that no other note has."""
    rng = random.Random(number)
    words = ["".join(rng.choices(string.ascii_lowercase, k=8)) for _ in range(10)]
    return f"Acude por {' '.join(words)}, lote {rng.randrange(10**9):09}."


def judge(strings: list[int]) -> Seen:
    """Tell whether fewer strings were kept than the notes have."""
    most = max(strings, default=0)
    return Seen(0 < most < 10 * N_NOTES, f"{most:,} strings")


def count_strings(tree: Tree, command: str, arguments: list[str]) -> list[int]:
    """Run a command in a process that counts the strings of spaCy when it loads a pipeline and at
    the end, those of the first notes left out."""
    code = (
        "import sys, spacy.language\n"
        "made = []\n"
        "start = spacy.language.Language.__init__\n"
        "def init(self, *args, **more):\n"
        "    start(self, *args, **more)\n"
        "    made.append(self)\n"
        "spacy.language.Language.__init__ = init\n"
        "try:\n"
        "    from spacy_bioclin.runner import memory\n"
        "    memory.MAX_KEPT = 1_000\n"
        "except ImportError:\n"
        "    pass\n"
        "from spacy_bioclin.cli import app\n"
        "try:\n"
        f"    app({[command, *arguments]!r}, standalone_mode=False)\n"
        "except SystemExit:\n"
        "    pass\n"
        "print([sum(1 for s in nlp.vocab.strings) for nlp in made])\n"
    )
    done = tree.python("-c", code)
    lines = done.out.strip().splitlines()
    return json.loads(lines[-1]) if lines and lines[-1].startswith("[") else []


@case(8, "What `bioclin deid` keeps of the notes that it has read does not grow with them.")
def words_of_deidentified_notes_are_freed(tree: Tree) -> Seen:
    rows = [json.dumps({"text": write_note(number)}) for number in range(N_NOTES)]
    tree.write("notes.jsonl", "\n".join(rows) + "\n")
    arguments = ["notes.jsonl", "out.jsonl", "--lang", "es", "--skip-bad"]
    strings = count_strings(tree, "deid", arguments)
    return judge(strings)


@case(8, "What `bioclin annotate` keeps of the notes that it has read does not grow with them.")
def words_of_annotated_notes_are_freed(tree: Tree) -> Seen:
    for number in range(N_NOTES):
        tree.write(f"notes/{number}.txt", write_note(number))
    code = (
        "import spacy\nnlp = spacy.blank('es')\nnlp.batch_size = 100\n"
        "nlp.add_pipe('bioclin_sentences')\nnlp.to_disk('pipeline')\n"
    )
    tree.python("-c", code)
    strings = count_strings(tree, "annotate", ["pipeline", "notes", "-o", "out.jsonl"])
    return judge(strings)


@case(8, "A pipeline saved after reading notes in a memory zone does not contain their words.")
def saved_pipelines_have_no_words_of_notes(tree: Tree) -> Seen:
    code = (
        "from spacy import blank; from spacy_bioclin.deid import make_pipeline\n"
        "nlp = make_pipeline(blank('es'))\n"
        "try:\n"
        "    from spacy_bioclin.runner.memory import memory_zone\n"
        "except ImportError:\n"
        "    from contextlib import nullcontext as memory_zone\n"
        "with memory_zone(nlp):\n"
        "    nlp('Acude Zutanez Qwertyson.')\n"
        "nlp.to_disk('pipeline')\n"
    )
    done = tree.python("-c", code)
    path = tree.folder / "pipeline" / "vocab" / "strings.json"
    found = path.exists() and "Qwertyson" in path.read_text("utf-8")
    return Seen(done.code == 0 and path.exists() and not found, "kept" if found else "not there")
