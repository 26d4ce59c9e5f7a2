"""Commands and methods of spaCy that failed on the shipped configs or on what they train."""

import json
import re

from benchmarks.defects.case import Done, Seen, Tree, case

# Writes a tiny encoder (`enc`), a corpus (train.spacy, dev.spacy) and, if a config is named, the
# pipeline that `spacy train` makes of them (`nlp/model-last`).
PREPARE = """
import json, sys
from pathlib import Path
import spacy
from spacy.cli.train import train
from spacy.tokens import DocBin, Span
from tests.util import make_encoder

make_encoder(Path("enc"))
ours = {"nlp": {"tokenizer": {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}}}
nlp = spacy.blank("es", config=ours)
for split, numbers in (("train", range(100)), ("dev", range(100, 104))):
    docs = DocBin(store_user_data=True)
    for i in numbers:
        doc = nlp(f"Paciente con neumonía en la Planta Norte. Tos y fiebre desde hace {i} días.")
        doc.set_ents([Span(doc, 2, 3, "DISEASE")], default="outside")
        doc.spans["phi"] = [Span(doc, 5, 7, "HOSPITAL")]
        docs.add(doc)
    docs.to_disk(f"{split}.spacy")
if sys.argv[1]:
    train(sys.argv[1], "nlp", overrides=json.loads(sys.argv[2]))
"""
TEXT = "Paciente con neumonía en la Planta Norte. Tos y fiebre."
OPTIONS = {
    "paths.train": "train.spacy",
    "paths.dev": "dev.spacy",
    "paths.encoder": "enc",
    "components.transformer.model.window": 32,
    "components.transformer.model.stride": 32,
    "components.transformer.model.precision": "fp32",
    "training.max_steps": 20,
    "training.eval_frequency": 10,
    "training.optimizer.learn_rate.initial_rate": 5e-3,
    "training.optimizer.learn_rate.warmup_steps": 2,
}
USE = [str(part) for key, value in OPTIONS.items() for part in (f"--{key}", value)]


def prepare(tree: Tree, config: str = "") -> str:
    """Write encoder and corpus, and train a pipeline.

    config (str): Name of a shipped config; "" to train nothing.
    RETURNS (str): Folder of the pipeline.
    """
    path = tree.path / f"configs/{config}.cfg" if config else ""
    done = tree.python("-c", PREPARE, path, json.dumps(OPTIONS))
    assert not done.code, done.text[-500:]
    return "nlp/model-last"


def run(tree: Tree, code: str) -> Done:
    """Run code with the trained pipeline as `nlp`."""
    load = f"import spacy\nnlp = spacy.load('nlp/model-last')\ntext = {TEXT!r}\n"
    return tree.python("-c", load + code)


def last_line(done: Done) -> str:
    """Return the end of what was printed, without paths."""
    return re.sub(r"/\S+", "…", (done.out + done.err).strip().splitlines()[-1])[-120:]


def accepts(tree: Tree, *command: str, options: list[str] | None = None) -> Seen:
    """Run a command on every shipped config and list those that it refuses."""
    configs = sorted((tree.path / "configs").glob("*.cfg"))
    refused = [
        config.stem for config in configs if tree.spacy(*command, config, *(options or [])).code
    ]
    return Seen(bool(configs) and not refused, {"refused": refused, "configs": len(configs)})


@case(21, "`spacy debug config` accepts every shipped config as it is.")
def debug_config(tree: Tree) -> Seen:
    return accepts(tree, "debug", "config")


@case(21, "`spacy init fill-config` fills every shipped config.")
def fill_config(tree: Tree) -> Seen:
    return accepts(tree, "init", "fill-config")


@case(21, "`spacy debug data` works on every shipped config.")
def debug_data(tree: Tree) -> Seen:
    prepare(tree)
    return accepts(tree, "debug", "data", options=USE)


@case(21, "`spacy debug model` works on a shipped config.")
def debug_model(tree: Tree) -> Seen:
    prepare(tree)
    done = tree.spacy("debug", "model", tree.path / "configs/ner.cfg", "ner", "-P0", *USE)
    return Seen(done.code == 0, last_line(done))


@case(21, "A trained pipeline makes an optimizer and goes on learning.")
def resume_training(tree: Tree) -> Seen:
    prepare(tree, "ner")
    done = run(
        tree,
        "from spacy.training import Corpus\n"
        "optimizer = nlp.resume_training()\n"
        "losses = nlp.update(list(Corpus('dev.spacy')(nlp)), sgd=optimizer)\n"
        "print(optimizer.learn_rate > 0 and losses['ner'] > 0)",
    )
    return Seen(done.code == 0 and last_line(done) == "True", last_line(done))


@case(21, "Vectors of Docs, spans and tokens, similarity and sentences as Docs do not fail.")
def vectors(tree: Tree) -> Seen:
    prepare(tree, "ner")
    tries = ["doc.vector", "doc[1:3].vector", "doc[2].vector", "doc.similarity(doc)"]
    tries += ["doc[2].tensor", "[s.as_doc() for s in doc.sents]", "doc.has_vector"]
    code = (
        "import json, warnings\nwarnings.simplefilter('ignore')\ndoc = nlp(text)\nfailed = []\n"
        f"for call in {tries!r}:\n"
        "    try:\n        eval(call)\n    except Exception:\n        failed.append(call)\n"
        "kept = doc._.trf_data is not None\nprint(json.dumps([failed, kept]))"
    )
    failed, kept = json.loads(run(tree, code).out.splitlines()[-1])
    return Seen(not failed and not kept, {"failed": failed, "vectors kept": kept})


@case(21, "`nlp.replace_listeners` gives a head an encoder of its own, with the same result.")
def replace_listeners(tree: Tree) -> Seen:
    prepare(tree, "ner")
    done = run(
        tree,
        "before = [str(ent) for ent in nlp(text).ents]\n"
        "nlp.replace_listeners('transformer', 'ner', ['model.tok2vec'])\n"
        "nlp.remove_pipe('transformer')\n"
        "print(before == [str(ent) for ent in nlp(text).ents] != [])",
    )
    return Seen(done.code == 0 and last_line(done) == "True", last_line(done))


@case(21, "`nlp.rehearse` says that a component does not rehearse.")
def rehearse(tree: Tree) -> Seen:
    prepare(tree, "ner")
    done = run(
        tree,
        "import warnings\nfrom spacy.training import Corpus\nfrom thinc.api import Adam\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    nlp.rehearse(list(Corpus('dev.spacy')(nlp)), sgd=Adam(1e-3))\n"
        "print(any('rehearse' in str(one.message) for one in seen))",
    )
    return Seen(last_line(done) == "True", last_line(done))


@case(21, "`nlp.initialize` makes a head for the labels of the new examples.")
def initialize_again(tree: Tree) -> Seen:
    prepare(tree, "ner")
    done = run(
        tree,
        "from spacy.training import Corpus\nfrom thinc.api import Adam\n"
        "examples = list(Corpus('dev.spacy')(nlp))\n"
        "for eg in examples:\n"
        "    doc = eg.reference\n"
        "    spans = [spacy.tokens.Span(doc, 0, 1, 'A'), spacy.tokens.Span(doc, 2, 3, 'B')]\n"
        "    doc.set_ents(spans, default='outside')\n"
        "optimizer = nlp.initialize(lambda: examples, sgd=Adam(5e-3))\n"
        "for _ in range(40):\n    nlp.update(examples, sgd=optimizer)\n"
        "print(sorted({ent.label_ for ent in nlp(examples[0].text).ents}))",
    )
    return Seen(last_line(done) == "['A', 'B']", last_line(done))


@case(21, "`spacy find-threshold` tries thresholds of bioclin_ner.")
def find_threshold(tree: Tree) -> Seen:
    folder = prepare(tree, "ner")
    done = tree.spacy("find-threshold", folder, "dev.spacy", "ner", "threshold", "ents_r", "-n", 2)
    found = re.search(r"Best threshold: ([\d.]+)", done.text)
    return Seen(done.code == 0 and found is not None, found[0] if found else last_line(done))


@case(21, "A setting of bioclin_ner that is given to spacy.load has an effect.")
def settings_given_when_loading(tree: Tree) -> Seen:
    folder = prepare(tree, "deid")
    code = (
        "import spacy\n"
        "config = {'components': {'ner': {'doubtful_from': 0.25}}}\n"
        f"print(spacy.load('{folder}', config=config).get_pipe('ner').cfg['doubtful_from'])"
    )
    done = tree.python("-c", code)
    return Seen(last_line(done) == "0.25", last_line(done))


@case(21, "`spacy evaluate --spans-key phi` prints PHI scores of a pipeline of rules.")
def evaluate_rules(tree: Tree) -> Seen:
    prepare(tree)
    code = (
        "import spacy\nnlp = spacy.blank('es')\nnlp.add_pipe('bioclin_phi_rules')\n"
        "nlp.add_pipe('bioclin_deid')\nnlp.to_disk('rules')"
    )
    assert not tree.python("-c", code).code
    done = tree.spacy("evaluate", "rules", "dev.spacy", "--spans-key", "phi")
    return Seen("SPAN F" in done.text, "SPAN F" in done.text)


@case(21, "The score that is shown while configs/deid.cfg is trained is the F1 of PHI.")
def score_of_training(tree: Tree) -> Seen:
    prepare(tree, "deid")
    meta = json.loads((tree.folder / "nlp/model-best/meta.json").read_text("utf-8"))
    config = (tree.folder / "nlp/model-best/config.cfg").read_text("utf-8")
    weight = re.search(r"^spans_phi_f = (\S+)", config, re.M)
    return Seen(
        weight is not None and float(weight[1]) == 1.0,
        {"weight": weight and weight[1], "spans_phi_f": meta["performance"]["spans_phi_f"]},
    )


@case(21, "A warning of spaCy does not show what de-identification found.")
def no_text_in_warnings(tree: Tree) -> Seen:
    code = (
        "import spacy\nfrom spacy.tokens import Doc\nnlp = spacy.blank('es')\n"
        "nlp.add_pipe('bioclin_phi_rules')\nnlp.add_pipe('bioclin_deid')\n"
        "doc = nlp('Teléfono: 612 345 678.')\nassert '612' not in doc._.deid.text\n"
        "Doc.from_docs([doc, doc])"
    )
    done = tree.python("-W", "always", "-c", code)
    shown = "612 345 678" in done.text
    return Seen(done.code == 0 and not shown, "telephone number shown" if shown else done.code)


LINK = """
import json, spacy
from spacy_bioclin.linking.kb.build import build_kb
from spacy_bioclin.linking.kb.concepts import Alias, Concept
names = {"K1": ("kidney failure", "insuficiencia renal"), "C3": ("breast cancer", "cáncer de mama"),
         "C4": ("ovarian cancer", "cáncer de ovario")}
build_kb([Concept(id, en, "en", (Alias(es, "es"),)) for id, (en, es) in names.items()], "kb")
nlp = spacy.blank("es")
ruler = nlp.add_pipe("entity_ruler")
for pattern in ("insuficiencia renal", "IR", "cáncer de mama y ovario"):
    ruler.add_patterns([{"label": "X", "pattern": pattern}])
nlp.add_pipe("bioclin_linker", config={"kb": "kb"})
doc = nlp("Con insuficiencia renal (IR), IR estable y cáncer de mama y ovario.")
"""


@case(22, "`nlp.analyze_pipes()` reports a linker before the component that finds entities.")
def linker_before_ner(tree: Tree) -> Seen:
    code = (
        "import spacy\nnlp = spacy.blank('es')\nnlp.add_pipe('bioclin_linker')\n"
        "nlp.add_pipe('entity_ruler')\nprint(nlp.analyze_pipes()['problems']['bioclin_linker'])"
    )
    done = tree.python("-c", code)
    return Seen(last_line(done) == "['doc.ents']", last_line(done))


@case(22, "`doc._.abbreviations` gives spans with their long form, as scispaCy does.")
def abbreviations(tree: Tree) -> Seen:
    shown = "print([[s.text, s._.long_form.text] for s in doc._.abbreviations])"
    done = tree.python("-c", LINK + shown)
    wanted = str([["IR", "insuficiencia renal"]] * 2)
    return Seen(last_line(done) == wanted, last_line(done))


@case(22, "Candidates of a composite mention say which part they belong to.")
def composite_parts(tree: Tree) -> Seen:
    code = "print(sorted({(c.kb_id, c.part) for c in doc.ents[-1]._.candidates if c.score > 0.5}))"
    done = tree.python("-c", LINK + code)
    wanted = str([("C3", "cáncer de mama"), ("C4", "cáncer de ovario")])
    return Seen(last_line(done) == wanted, last_line(done))


@case(22, "Names of concepts are shown in the language of the pipeline.")
def names_in_the_language(tree: Tree) -> Seen:
    done = tree.python("-c", LINK + "print(doc.ents[0]._.candidates[0].name)")
    return Seen(last_line(done) == "insuficiencia renal", last_line(done))
