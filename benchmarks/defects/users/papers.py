"""The papers' road: recipes on every config, settings that suit the encoder, misspelled ones."""

import itertools
import re

from benchmarks.defects.case import Seen, Tree, case

RECIPES = ("carrino-2022", "mulyar-2020")
ENCODER = "assets/encoders/bioclin-compact"
NOTE = "Paciente con neumonía. Se inicia amoxicilina.\n"
SHORT = ("--training.max_steps", "1", "--training.eval_frequency", "1")
SHORT += ("--training.logger.progress_bar", "null")
# A base-size encoder in everything but the number of layers.
BASE = """
from pathlib import Path
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast
from tokenizers import Tokenizer, models, pre_tokenizers
words = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefghij"])}
inside = Tokenizer(models.WordPiece(words, unk_token="[UNK]"))
inside.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
names = {f"{name.lower()}_token": f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP")}
tokenizer = PreTrainedTokenizerFast(tokenizer_object=inside, model_max_length=512, **names)
tokenizer.save_pretrained("base")
BertModel(BertConfig(vocab_size=len(words), num_hidden_layers=1)).save_pretrained("base")
"""

# Compare the training parts of a long note with the windows in which it is predicted.
PARTS = f"""
import sys
from pathlib import Path
import spacy
from spacy.tokens import Span
from spacy.training.initialize import init_nlp
from spacy.util import load_config, resolve_dot_names
from spacy_bioclin.catalog.recipes import apply_recipe, load_recipes
from spacy_bioclin.corpora.docbin import write_docs
nlp = spacy.blank("es")
nlp.add_pipe("bioclin_sentences")
doc = nlp({NOTE!r} * 120)
doc.set_ents([Span(doc, 2, 3, "PROBLEM")])
write_docs([doc], Path("long.spacy"))
apart = []
for name, recipe in load_recipes().items():
    config = load_config(sys.argv[1], interpolate=False)
    apply_recipe(config, recipe)
    config["paths"].update(train="long.spacy", dev="long.spacy", encoder=sys.argv[2])
    config["components"]["transformer"]["model"]["strategy"] = {{}}
    config["nlp"]["pipeline"] = ["sentences", "transformer", "ner"]
    del config["components"]["cleaner"]
    config["training"]["max_steps"] = 1
    nlp = init_nlp(config)
    [corpus] = resolve_dot_names(nlp.config.interpolate(), ["corpora.train"])
    parts = [len(eg.reference) for eg in corpus(nlp)]
    note = nlp.get_pipe("sentences")(nlp.make_doc(doc.text))
    windows = [len(span) for span in nlp.get_pipe("transformer").predict([note]).spans[0]]
    if parts != windows:
        apart.append(f"{{name}}: parts of {{max(parts)}} tokens, windows of {{max(windows)}}")
print("; ".join(apart) or "all the same")
"""


def write_corpus(tree: Tree) -> None:
    """Write a corpus of eight short notes, with entities and PHI, to notes.spacy."""
    for number in range(8):
        tree.write(f"brat/{number}.txt", NOTE)
        rows = "T1\tPROBLEM 13 21\tneumonía\nT2\tNAME 0 8\tPaciente\n"
        tree.write(f"brat/{number}.ann", rows)
    layers = ("--layer", "PROBLEM=ents", "--layer", "NAME=phi")
    done = tree.bioclin("convert", "brat", "brat", "notes.spacy", "--lang", "es", *layers)
    assert done.code == 0, done.text[-300:]


def train(tree: Tree, config: str, *options: str, encoder: str = "") -> tuple[int, str]:
    """Train a config of the tree for one update.

    RETURNS (tuple[int, str]): Exit code and output.
    """
    paths = ("--paths.train", "notes.spacy", "--paths.dev", "notes.spacy", "--paths.encoder")
    folder = encoder or str(tree.path / ENCODER)
    command = ("train", tree.path / "configs" / config, "-o", "training", "--overwrite")
    done = tree.bioclin(*command, *paths, folder, *SHORT, *options)
    return done.code, done.text


@case(1, "Every recipe trains on every shipped config.")
def recipes_train_on_every_config(tree: Tree) -> Seen:
    write_corpus(tree)
    configs = ("ner.cfg", "ner-lexical.cfg", "deid.cfg", "demo.cfg")
    failed = [
        f"{recipe} on {config}"
        for recipe, config in itertools.product(RECIPES, configs)
        if train(tree, config, "--recipe", recipe)[0]
    ]
    return Seen(not failed, failed or f"{len(RECIPES) * len(configs)} combinations train")


@case(1, "A recipe changes every head of a config.")
def a_recipe_changes_both_heads_of_the_demo(tree: Tree) -> Seen:
    config = tree.path / "configs" / "demo.cfg"
    done = tree.bioclin("recipes", "write", "carrino-2022", config, "-o", "new.cfg")
    made = tree.folder / "new.cfg"
    text = made.read_text("utf-8") if made.exists() else done.text
    heads = dict(
        re.findall(r'^\[components\.(\w+)\.model\]\n@architectures = "(\S*Tagger\S*)"', text, re.M)
    )
    return Seen(set(heads.values()) == {"spacy-bioclin.LinearTagger.v1"}, heads)


@case(
    2, "Without a recipe, a base-size encoder is trained at a rate for its size, and that is said."
)
def a_base_size_encoder_has_its_rate(tree: Tree) -> Seen:
    write_corpus(tree)
    made = tree.python("-c", BASE)
    assert made.code == 0, made.text[-300:]
    code, said = train(tree, "ner.cfg", encoder="base")
    found = re.search(r"^initial_rate = (\S+)", read_trained(tree), re.M)
    rate = float(found[1]) if found else 0.0
    return Seen(code == 0 and 3e-5 <= rate <= 5e-5 and "learning rate" in said, rate)


@case(2, "A rate on the command line is not replaced by the one that suits the encoder.")
def a_rate_of_the_user_stays(tree: Tree) -> Seen:
    write_corpus(tree)
    key = "--training.optimizer.learn_rate.initial_rate"
    code, said = train(tree, "ner.cfg", key, "0.0007")
    found = re.search(r"^initial_rate = (\S+)", read_trained(tree), re.M)
    rate = round(float(found[1]), 6) if found else 0.0
    return Seen(code == 0 and rate == 0.0007 and "command line" in said, rate)


def read_trained(tree: Tree) -> str:
    """Read the config of the trained pipeline; "" if there is none."""
    path = tree.folder / "training" / "model-last" / "config.cfg"
    return path.read_text("utf-8") if path.exists() else ""


@case(2, "The encoder that ships has one learning rate in the catalogue, the configs and the docs.")
def the_compact_encoder_has_one_rate(tree: Tree) -> Seen:
    code = """
from spacy_bioclin.catalog.encoders import load_encoders
print(load_encoders()["bioclin-compact"].learn_rates[0])
"""
    rates = {float(tree.python("-c", code).out or 0)}
    for path in (tree.path / "configs").glob("*.cfg"):
        found = re.findall(r"^initial_rate = (\S+)", path.read_text("utf-8"), re.M)
        rates |= {float(rate) for rate in found if rate != '"auto"'}
    page = (tree.path / "docs" / "training.md").read_text("utf-8")
    told = re.search(r"`bioclin-compact`(?: \| | has )(\de-\d)", page)
    rates |= {float(told[1])} if told else {0.0}
    return Seen(len(rates) == 1, sorted(rates))


@case(2, "The default rate of carrino-2022 is the one that was best most often in its paper.")
def the_default_rate_follows_the_evidence(tree: Tree) -> Seen:
    done = tree.bioclin(
        "recipes", "write", "carrino-2022", tree.path / "configs/ner.cfg", "-o", "c.cfg"
    )
    made = tree.folder / "c.cfg"
    found = (
        re.search(r"^initial_rate = (\S+)", made.read_text("utf-8"), re.M)
        if made.exists()
        else None
    )
    return Seen(
        found is not None and float(found[1]) == 5e-5, found[1] if found else done.text[-100:]
    )


@case(3, "With a recipe, parts of training notes are the windows of prediction.")
def parts_are_windows(tree: Tree) -> Seen:
    done = tree.python("-c", PARTS, tree.path / "configs/ner.cfg", tree.path / ENCODER)
    shown = done.out.strip().splitlines()[-1:] or [done.text[-200:]]
    return Seen(shown == ["all the same"], shown[0])


@case(24, "A misspelled setting on the command line is an error that names the right one.")
def a_misspelled_setting_is_refused(tree: Tree) -> Seen:
    write_corpus(tree)
    code, said = train(tree, "ner.cfg", "--training.maxsteps", "4")
    named = "--training.max_steps?" in said
    return Seen(
        code == 1 and named, "refused, with the right one" if named else f"exit code {code}"
    )


@case(24, "A misspelled setting of a sweep is an error that names the right one.")
def a_misspelled_setting_of_a_sweep_is_refused(tree: Tree) -> Seen:
    write_corpus(tree)
    for split in ("train", "dev", "test"):
        tree.write(f"mine/{split}.spacy", (tree.folder / "notes.spacy").read_bytes())
    plan = f"""
tasks: {{mine: {{path: mine, lang: es}}}}
encoders: {{compact: {tree.path / ENCODER}}}
learn_rates: [5.0e-4]
seeds: [0]
config: {tree.path / "configs/ner.cfg"}
settings: {{training.max_steps: 1, training.eval_frequency: 1, training.optimizer.l2: 0.5}}
"""
    done = tree.bioclin("sweep", tree.write("plan.yml", plan), "-o", "sweep")
    named = "training.optimizer.L2?" in done.text
    return Seen(done.code == 1 and named, "refused" if named else f"exit code {done.code}")


@case(24, "A misspelled variable of `spacy project run` is an error that names the right one.")
def a_misspelled_variable_is_refused(tree: Tree) -> Seen:
    for name in ("assets", "configs", "scripts"):
        (tree.folder / name).symlink_to(tree.path / name, target_is_directory=True)
    tree.write("project.yml", (tree.path / "project.yml").read_bytes())
    done = tree.spacy("project", "run", "prepare", ".", "--vars.recpie", "carrino-2022")
    named = "--vars.recipe?" in done.text
    return Seen(done.code != 0 and named, "refused" if named else f"exit code {done.code}")
