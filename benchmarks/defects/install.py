"""Installing, the quick start, and the same results on another machine."""

from benchmarks.defects.case import Seen, Tree, case

VECTORS = """
import hashlib
from pathlib import Path
import numpy as np
import spacy
from spacy_bioclin.linking.entity_linker.hooks import make_knowledge_base
from spacy_bioclin.linking.kb.build import build_kb
from spacy_bioclin.linking.kb.concepts import Concept
concepts = [Concept(f"X{i}", f"enfermedad número {i} del brazo", "es") for i in range(400)]
build_kb(concepts, Path("kb"), meta={"name": "kb"})
kb = make_knowledge_base("kb")(spacy.blank("es").vocab)
ids = [*(f"X{i}" for i in range(400)), *(f"X{i}|X{i + 1}" for i in range(399))]
print(hashlib.sha256(np.array(kb.get_vectors(ids), np.float32).tobytes()).hexdigest())
"""


@case(8, "Vectors of concepts are the same on an old and a new processor, to the last bit.")
def vectors_are_the_same_on_every_processor(tree: Tree) -> Seen:
    runs = []
    for kernels in ("Prescott", "SkylakeX"):  # of numpy's linear algebra
        tree.python("-c", "import shutil; shutil.rmtree('kb', ignore_errors=True)")
        runs.append(tree.python("-c", VECTORS, OPENBLAS_CORETYPE=kernels))
    if any(done.code for done in runs):
        return Seen(False, runs[0].text[-200:])
    hashes = {done.out.strip() for done in runs}
    return Seen(len(hashes) == 1, f"{len(hashes)} results on {len(runs)} processors")


@case(25, "`kb build` reads every column of synonyms, and reports the columns that it cannot read.")
def columns_of_a_table_are_read_or_reported(tree: Tree) -> Seen:
    tree.write(
        "hospital.csv",
        "code,name,synonym 1,synonym 2,other names,ward\n"
        "H1,infarto,síncope coronario,IAM,ataque al corazón,cardiología\n",
    )
    built = tree.bioclin("kb", "build", "hospital.csv", "-o", "kb")
    names = ("síncope coronario", "IAM", "ataque al corazón")
    found = [tree.bioclin("kb", "search", "kb", name, "--json") for name in names]
    n_read = sum('"score": 1.0' in done.out for done in found)
    reported = "ward" in built.text
    value = f"{n_read} of 3 synonyms found; unread column reported: {reported}"
    return Seen(built.code == 0 and n_read == 3 and reported, value)


@case(23, "`bioclin init-config` lists the configs and writes one, without a clone.")
def a_config_is_written_by_name(tree: Tree) -> Seen:
    listed = tree.bioclin("init-config")
    written = tree.bioclin("init-config", "ner", "-o", "my.cfg")
    config = tree.folder / "my.cfg"
    holds = written.code == 0 and config.exists() and "deid" in listed.out
    return Seen(holds, "written" if holds else "no such command")


LOAD = """
from spacy_bioclin.encoders.loading import load_pretrained
print(type(load_pretrained("bioclin-compact", {})[1]).__name__)
"""


@case(23, "The encoder of the project is found by its name from any folder.")
def the_encoder_is_found_by_name(tree: Tree) -> Seen:
    done = tree.python("-c", LOAD)
    return Seen(done.code == 0, done.out.strip() or "not found")


@case(23, "An encoder that is not on this machine: the error says where to put it.")
def a_missing_encoder_says_where_it_belongs(tree: Tree) -> Seen:
    code = LOAD.replace("bioclin-compact", "bsc-bio-ehr-es")
    done = tree.python("-c", code, BIOCLIN_HOME=str(tree.folder / "home"))
    named = str(tree.folder / "home" / "encoders" / "bsc-bio-ehr-es") in done.text
    return Seen(named and "bioclin fetch" in done.text, f"folder named: {named}")
