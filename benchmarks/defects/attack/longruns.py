"""Runs of hours and downloads: killed, resumed with something else, aimed at what is there."""

import json
import pickle
import shutil
from pathlib import Path

from benchmarks.defects.case import Done, Seen, Tree, case

SENTENCES = (
    "Paciente de 54 años con neumonía adquirida en la comunidad.",
    "Se inicia amoxicilina 500 mg cada 8 horas.",
    "Exploración física sin hallazgos relevantes.",
    "Fue dado de alta con tratamiento domiciliario.",
)
CORPUS = """
import spacy
from spacy.tokens import DocBin, Span
nlp = spacy.blank("es")
for name, notes in (("a", ["Sufre tos.", "Refiere fiebre.", "Sin tos."]), ("b", ["Hay tos."])):
    docs = [nlp(note) for note in notes]
    for doc in docs:
        doc.set_ents([Span(doc, 1, 2, label="SIGN")], default="outside")
    DocBin(docs=docs).to_disk(f"{name}.spacy")
"""


def train(tree: Tree, *options: object, corpus: str = "a.spacy") -> Done:
    """Train a tiny pipeline into the folder out."""
    if not (tree.folder / "a.spacy").exists():
        tree.python("-c", CORPUS)
        size = ("--layers", 1, "--width", 64, "--vocab-size", 300)
        tree.bioclin("init-encoder", "a.spacy", "-o", "encoder", *size)
    config = tree.path / "configs/ner.cfg"
    paths = ("--paths.train", corpus, "--paths.dev", "a.spacy", "--paths.encoder", "encoder")
    steps = ("--training.max_steps", 2, "--training.eval_frequency", 1, "--nlp.lang", "es")
    window = ("--components.transformer.model.window", 32)
    return tree.bioclin("train", config, "-o", "out", *options, *paths, *steps, *window)


def write_text(tree: Tree) -> None:
    """Write a cleaned corpus, and a random encoder for it."""
    for split, n_documents in (("train", 40), ("held-out", 8)):
        lines = [f"{SENTENCES[i % 4]}\n{SENTENCES[(i + 1) % 4]}\n\n" for i in range(n_documents)]
        tree.write(f"clean/es.{split}.txt", "".join(lines))
    tree.python("-c", CORPUS)
    size = ("--layers", 1, "--width", 64, "--vocab-size", 320)
    tree.bioclin("init-encoder", "a.spacy", "-o", "encoder", *size)


def pretrain(tree: Tree, *options: object) -> Done:
    """Pretrain the encoder for four updates into the folder out."""
    size = ("--steps", 4, "--every", 2, "--length", 32, "--batch-pieces", 64, "--precision", "fp32")
    return tree.bioclin(
        "pretrain", "clean", "-o", "out", "--start-from", "encoder", *size, *options
    )


class Marker:
    """An object that makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):  # type: ignore[no-untyped-def]
        return (Path.touch, (self.path,))


@case(1, "Resuming a training runs nothing that is packed in its state.")
def a_state_of_training_is_data(tree: Tree) -> Seen:
    first = train(tree)
    marker = tree.folder / "executed"
    (tree.folder / "out/state/values.pt").write_bytes(pickle.dumps(Marker(marker)))
    done = train(tree, "--resume")
    holds = first.code == 0 and done.code == 1 and not done.crashed and not marker.exists()
    return Seen(holds, "executed" if marker.exists() else f"exit {done.code}")


@case(8, "A training is not resumed with another corpus.")
def training_resumes_with_its_own_corpus(tree: Tree) -> Seen:
    first = train(tree)
    done = train(tree, "--resume", corpus="b.spacy")
    holds = first.code == 0 and done.code == 1 and "corpora was" in done.text
    return Seen(holds, "refused" if holds else f"exit {done.code}")


@case(8, "A pipeline that was trained on notes does not hold their words.")
def a_trained_pipeline_holds_no_words_of_notes(tree: Tree) -> Seen:
    done = train(tree)
    path = tree.folder / "out/model-best/vocab/strings.json"
    strings = set(json.loads(path.read_text("utf-8"))) if path.exists() else set()
    found = sorted({"Refiere", "fiebre"} & strings)
    return Seen(done.code == 0 and "SIGN" in strings and not found, found or f"exit {done.code}")


@case(3, "A training does not delete a folder of others that is named model-best.")
def training_keeps_a_folder_of_others(tree: Tree) -> Seen:
    mine = tree.write("out/model-best/thesis.txt", "mine")
    done = train(tree)
    return Seen(mine.exists() and done.code == 1, "kept" if mine.exists() else "deleted")


@case(8, "A checkpoint that a kill has cut short is not resumed from as if it were whole.")
def half_a_checkpoint_does_not_count(tree: Tree) -> Seen:
    write_text(tree)
    first = pretrain(tree)
    out = tree.folder / "out"
    encoder = out / "encoder/model.safetensors"
    whole = encoder.read_bytes()
    shutil.rmtree(out / "encoder")
    shutil.rmtree(out / "checkpoint-4")
    (out / "checkpoint-2/optimizer.pt").unlink()
    done = pretrain(tree, "--resume")
    same = encoder.exists() and encoder.read_bytes() == whole
    holds = first.code == 0 and not done.crashed and same
    return Seen(holds, "equal weights" if same else f"other weights, exit {done.code}")


@case(8, "A pretraining is not resumed with other settings.")
def pretraining_resumes_with_its_own_settings(tree: Tree) -> Seen:
    write_text(tree)
    first = pretrain(tree)
    shutil.rmtree(tree.folder / "out/checkpoint-4")
    done = pretrain(tree, "--resume", "--learn-rate", 0.3)
    holds = first.code == 0 and done.code == 1 and "learn_rate was" in done.text
    return Seen(holds, "refused" if holds else f"exit {done.code}")


@case(3, "Pretraining into the folder of its own corpus is refused.")
def pretraining_into_its_corpus_is_refused(tree: Tree) -> Seen:
    write_text(tree)
    before = sorted(path.name for path in (tree.folder / "clean").iterdir())
    size = ("--steps", 2, "--every", 2, "--length", 32, "--batch-pieces", 64)
    tree.bioclin("pretrain", "clean", "-o", "clean", "--start-from", "encoder", *size)
    after = sorted(path.name for path in (tree.folder / "clean").iterdir())
    return Seen(after == before, len(after) - len(before))


@case(8, "A name of a sweep's plan does not lead a result out of the sweep's folder.")
def names_of_a_sweep_stay_inside(tree: Tree) -> Seen:
    code = (
        "from pathlib import Path; from spacy_bioclin.sweeps.plan import Plan\n"
        "from spacy_bioclin.sweeps.results import make_result, write_result\n"
        "axes = {'learn_rates': [1e-4], 'seeds': [0], 'encoders': {'e/../../../../evil': 'f'}}\n"
        "plan = Plan.model_validate({'tasks': {'t': 'c'}, **axes})\n"
        "write_result(Path('in/out'), make_result(plan, plan.list_trials()[0]))\n"
    )
    tree.write("in/here.txt", "")
    done = tree.python("-c", code)
    outside = sorted(path.name for path in tree.folder.iterdir() if path.name != "in")
    inside = list((tree.folder / "in/out/trials").glob("*/result.json"))
    return Seen(done.code == 0 and not outside and len(inside) == 1, len(outside))


@case(8, "The record of a download deletes no file elsewhere.")
def a_record_of_a_download_deletes_nothing(tree: Tree) -> Seen:
    victim = tree.write("victim.txt", "mine")
    files = {"../victim.txt": {"bytes": 1, "sha256": "0" * 64}}
    record = {"name": "biobert-v1.1", "complete": True, "revision": "0" * 40, "files": files}
    tree.write("encoder/fetched.json", json.dumps(record))
    done = tree.bioclin("fetch", "biobert-v1.1", "-o", "encoder")
    holds = victim.exists() and done.code == 1 and not done.crashed
    return Seen(holds, "kept" if victim.exists() else "deleted")


@case(8, "A text that was cleaned of noise is read by its owner alone.")
def cleaned_text_is_private(tree: Tree) -> Seen:
    tree.write("notes.txt", "".join(f"{sentence}\n" for sentence in SENTENCES))
    done = tree.bioclin("clean-text", "notes.txt", "-o", "clean", "--lang", "es", "--workers", 1)
    modes = {oct(path.stat().st_mode & 0o077) for path in (tree.folder / "clean").glob("*.txt")}
    return Seen(done.code == 0 and modes == {"0o0"}, sorted(modes))
