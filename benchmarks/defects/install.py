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
