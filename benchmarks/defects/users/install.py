"""Installing, the quick start, and the same results on another machine."""

import os
import re

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


DEMO = """
import spacy
nlp = spacy.blank("es")
nlp.add_pipe("entity_ruler").add_patterns([{"label": "PROBLEM", "pattern": "neumonía"}])
nlp.add_pipe("bioclin_phi_rules")
nlp.to_disk("demo")
"""


@case(25, "README's snippet after the demo runs in the environment that the reader is in.")
def snippet_after_the_demo_runs(tree: Tree) -> Seen:
    page = (tree.path / "README.md").read_text("utf-8")
    tree.python("-c", DEMO)
    tree.bioclin("package", "demo", "packages", "--name", "demo", "--version", "0.1.0")
    for wheel in re.findall(r"^pip install (packages/\S+)", page, re.MULTILINE):
        pip = ("-m", "pip", "install", "--no-deps", "--no-index", "--target", "site")
        tree.python(*pip, wheel)
    snippet = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[0]
    paths = os.pathsep.join((str(tree.path), str(tree.folder / "site")))
    # A pipeline of rules takes the place of the demo's, and its entities have no probability.
    extension = "from spacy.tokens import Span; Span.set_extension('probability', default=None)\n"
    done = tree.python("-c", extension + snippet, PYTHONPATH=paths)
    return Seen(done.code == 0 and "neumonía" in done.out, done.text[-120:])


DRUGS = """
import spacy
from spacy.tokens import DocBin
nlp = spacy.blank("es")
nlp.add_pipe("entity_ruler").add_patterns([{"label": "DRUG", "pattern": "levodopa"}])
nlp.to_disk("drugs")
doc = nlp("Toma levodopa desde el 12/03/2018.")
doc.user_data["bioclin_gold"] = {"id": "1", "task": "", "layers": {"phi": [[23, 33, "FECHAS", ""]]}}
DocBin(docs=[doc], store_user_data=True).to_disk("dev.spacy")
"""


@case(25, "`calibrate` does not turn a drug tagger into a de-identifier.")
def calibrate_refuses_a_drug_tagger(tree: Tree) -> Seen:
    made = tree.python("-c", DRUGS)
    done = tree.bioclin("calibrate", "drugs", "dev.spacy", "-o", "out")
    written = (tree.folder / "out").exists()
    holds = made.code == 0 and done.code == 1 and not written and "finds PHI" in done.text
    return Seen(holds, f"exit code {done.code}, pipeline written: {written}")
