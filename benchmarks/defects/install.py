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
