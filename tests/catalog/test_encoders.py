"""The catalogue of encoders, `bioclin encoders`, and what is found in a local copy."""

import json
import re
import shutil
from pathlib import Path

import pytest
import srsly
import torch
from typer.testing import CliRunner

from spacy_bioclin.catalog.encoders import find_encoder, load_encoders
from spacy_bioclin.catalog.recipes import load_recipes
from spacy_bioclin.cli import app
from spacy_bioclin.encoders.hub.inspection import inspect_encoder
from spacy_bioclin.errors import BioclinError
from tests.util import make_encoder

ROOT = Path(__file__).parents[2]
INCLUDED = ROOT / "assets" / "encoders"
COMPACT = INCLUDED / "bioclin-compact"
# What the papers and the tables of the project name.
NAMED = """bsc-bio-es, bsc-bio-ehr-es, roberta-base-biomedical-clinical-es, MrBERT, MrBERT-es,
    MrBERT-biomed, longformer-base-4096-biomedical-clinical-es, roberta-base-bne, BETO, mBERT,
    mBERT-Galén, BETO-Galén, XLM-R-Galén, BioBERT, dmis-lab/biobert-base-cased-v1.2, SciBERT,
    Bio+Clinical BERT, Bio+Discharge Summary BERT, BlueBERT P, BlueBERT P+M, BlueBERT large P,
    BlueBERT large P+M, BioMed-RoBERTa, ouBioBERT, ouBioBERT demo, RoBERTa-base-PM,
    RoBERTa-base-PM-Voc, RoBERTa-base-PM-M3, RoBERTa-base-PM-M3-Voc,
    RoBERTa-base-PM-M3-Voc-train-longer, RoBERTa-base-PM-M3-Voc-distill,
    RoBERTa-base-PM-M3-Voc-distill-align, RoBERTa-large-PM-M3, RoBERTa-large-PM-M3-Voc,
    roberta-base, roberta-large, PubMedBERT, PubMedBERT large, PubMedELECTRA, XLM-R, SapBERT,
    microsoft/BiomedNLP-PubMedBERT-base-uncased-abstract-fulltext, ICB-UMA/ClinLinker,
    ICB-UMA/ClinLinker-KB-GP, cambridgeltl/SapBERT-UMLS-2020AB-all-lang-from-XLMR,
    bioclin-compact, bioclin-sm"""


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def flat(text: str) -> str:
    """The text of a table, its lines joined."""
    return re.sub(r"\s+", " ", text)


# The catalogue


def test_every_encoder_of_the_papers_is_found():
    for name in NAMED.split(","):
        key, encoder = find_encoder(name.strip())
        assert find_encoder(key.upper()) == (key, encoder)
        assert encoder.paper or key in ("bioclin-compact", "bioclin-sm")


def test_recipes_exist():
    recipes = load_recipes()
    assert {one.recipe for one in load_encoders().values()} <= recipes.keys()


def test_no_default_is_non_commercial():
    encoders = load_encoders()
    assert [name for name in encoders if name.startswith("bio-lm")] == [
        name for name, one in encoders.items() if one.non_commercial
    ]
    variables = srsly.read_yaml(ROOT / "project.yml")["vars"]
    defaults = {lang: name for name, one in encoders.items() for lang in one.default_for}
    assert defaults == {"es": "bsc-bio-ehr-es", "en": "biobert-v1.1"}
    used = {find_encoder(Path(variables["encoder"]).name)[0], *defaults.values()}
    assert "bioclin-sm" in used
    assert not any(encoders[name].licence_warning for name in used)


def test_what_ships_is_as_the_catalogue_says():
    for name in ("bioclin-sm", "bioclin-compact"):
        found = inspect_encoder(INCLUDED / name)
        assert found.name == name
        assert {finding.level for finding in found.findings} == {"ok"}


def test_unknown_names_list_the_nearest():
    with pytest.raises(BioclinError, match="the nearest are bsc-bio-ehr-es"):
        find_encoder("bsc-bio-er-es")
    with pytest.raises(BioclinError, match="'somebody/roberta-base' is not in the catalogue"):
        find_encoder("somebody/roberta-base")


MISTAKES = [
    ({"tokeniser": "wordpiece"}, "one: unknown key 'tokeniser'; did you mean tokenizer?"),
    ({"layers": None}, "one: layers is missing"),
    ({"layers": "12"}, "one: layers = '12': want a valid integer"),
    ({"cased": "yes"}, "one: cased = 'yes': want a valid boolean"),
    ({"vocabulary": {"many": "card"}}, "one: vocabulary.many = 'card': want a valid integer"),
    (
        {"tokenizer": "pieces"},
        "tokenizer = 'pieces': did you mean wordpiece? want one of wordpiece, bytes",
    ),
    ({"revision": "main"}, "revision = 'main': want 40 hexadecimal digits"),
    ({"archive": "https://example.org/x.tar.gz"}, "want one of hub, archive and folder"),
    ({"unconfirmed": ["size"]}, "unconfirmed = ['size']: unknown; "),
    ({"default_for": ["en"], "non_commercial": True}, "must be free for everybody to use"),
    ({"default_for": ["en"], "licence": ""}, "must be free for everybody to use"),
    (
        {"default_for": ["en"], "unconfirmed": ["licence"]},
        "no source confirms that it is MIT: read its model card",
    ),
    ({"names": ["two"]}, "'two' is both one and two"),
]


def test_mistakes_in_the_file_are_named(tmp_path):
    good = {**load_encoders()["roberta-base"].model_dump(), "names": []}
    path = tmp_path / "encoders.yml"
    wrong = []
    for change, message in MISTAKES:
        one = {**good, **change}
        if one["layers"] is None:
            del one["layers"]
        srsly.write_yaml(path, {".shared": {}, "one": one, "two": good})
        try:
            load_encoders(path)
            wrong.append((change, "no error"))
        except BioclinError as error:
            wrong += [] if message in str(error) else [(change, str(error))]
    assert not wrong


# bioclin encoders list, show


def test_list():
    done = run("encoders", "list", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout).keys() == load_encoders().keys()
    free = json.loads(run("encoders", "list", "--json", "--commercial", "--lang", "en").stdout)
    assert "roberta-large" in free and "xlm-r" in free and "scibert" not in free
    assert not any(name.startswith("bio-lm") or name == "bsc-bio-es" for name in free)
    shown = run("encoders", "list", "--lang", "es").stdout
    assert "bsc-bio-ehr-es *" in flat(shown)


def test_show_says_what_nobody_confirms_and_warns_of_licences():
    done = run("encoders", "show", "BSC-LT/MrBERT-biomed")
    assert done.exit_code == 0, done.output
    assert "bpe (unconfirmed)" in flat(done.stdout)
    assert "modernbert (unconfirmed)" not in flat(done.stdout)
    assert "bioclin fetch mrbert-biomed" in done.stdout
    assert "no source confirms that it is" in flat(done.stderr)
    assert run("encoders", "show", "bsc-bio-ehr-es").stderr == ""
    done = run("encoders", "show", "RoBERTa-base-PM-M3-Voc")
    assert "CC BY-NC 4.0: no commercial use" in flat(done.stderr)
    done = run("encoders", "show", "nothing-like-it")
    assert (done.exit_code, "is not in the catalogue" in flat(done.stderr)) == (1, True)


# bioclin encoders check


def levels(folder, name=None):
    return {one.subject: (one.level, one.text) for one in inspect_encoder(folder, name).findings}


def test_check_compares_with_the_catalogue(tmp_path):
    folder = make_encoder(tmp_path / "bsc-bio-es", "roberta", "bytes")
    found = levels(folder)  # recognised by the folder's name
    assert found["vocabulary"] == (
        "differs",
        "300 pieces; the catalogue has 50,262: Carrino 2022 section 3; 52,000: its model card",
    )
    assert found["layers"] == ("differs", "2; the catalogue has 12")
    assert found["window"] == ("differs", "64 pieces at most; the catalogue has 512")
    assert {found[s][0] for s in ("architecture", "tokenizer", "letters", "weights")} == {"ok"}
    done = run("encoders", "check", folder)
    assert done.exit_code == 0, done.output
    assert "differs: 300 pieces" in flat(done.stdout)


def test_sizes_that_sources_disagree_on(tmp_path, monkeypatch):
    """The size found is shown beside the number of each source."""
    folder = make_encoder(tmp_path / "encoder", "roberta", "bytes")
    one = load_encoders()["bsc-bio-es"].model_copy(
        update={"vocabulary": {300: "paper", 301: "card"}}
    )
    monkeypatch.setattr("spacy_bioclin.encoders.hub.inspection.load_encoders", lambda: {"x": one})
    assert levels(folder, "x")["vocabulary"] == (
        "ok",
        "300 pieces; sources differ (300: paper; 301: card)",
    )
    doubted = one.model_copy(update={"vocabulary": {9: "card"}, "unconfirmed": ["vocabulary"]})
    monkeypatch.setattr(
        "spacy_bioclin.encoders.hub.inspection.load_encoders", lambda: {"x": doubted}
    )
    assert levels(folder, "x")["vocabulary"][1].endswith("9: card, which no source confirms")


def test_check_recognises_a_copy_or_takes_a_name(tmp_path):
    folder = make_encoder(tmp_path / "my-copy")
    assert inspect_encoder(folder).name is None
    assert "not recognised: give --name" in flat(run("encoders", "check", folder).stdout)
    done = run("encoders", "check", folder, "--name", "SciBERT", "--json")
    assert json.loads(done.stdout)["name"] == "scibert"
    config = json.loads((folder / "config.json").read_text())
    config["_name_or_path"] = "dmis-lab/biobert-v1.1"
    (folder / "config.json").write_text(json.dumps(config))
    assert inspect_encoder(folder).name == "biobert-v1.1"
    assert run("encoders", "check", tmp_path / "none").exit_code == 1


def test_letters_that_a_cased_encoder_loses(tmp_path):
    """A repository with vocab.txt only: transformers lower-cases unless told otherwise."""
    folder = make_encoder(tmp_path / "Bio_ClinicalBERT")
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    (folder / "vocab.txt").write_text("\n".join(sorted(vocabulary, key=vocabulary.get)), "utf-8")
    for file in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        (folder / file).unlink()
    level, text = levels(folder)["letters"]
    assert level == "differs"
    assert text.startswith("case and accents lost") and '{"do_lower_case": false}' in text
    assert levels(folder, "scibert")["letters"][0] == "note"
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert levels(folder)["letters"] == ("ok", "case and accents kept")
    assert levels(folder)["tokenizer"][1] == "wordpiece (fast, made from its vocabulary files)"
    assert levels(folder, "scibert")["letters"][0] == "differs"


def change_config(folder, **settings):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))


def remove(*files):
    return lambda folder: [(folder / file).unlink() for file in files]


def cut(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


DAMAGES = [
    (remove("config.json"), "architecture", "no config.json"),
    (lambda f: (f / "config.json").write_text("{"), "architecture", "config.json: "),
    (lambda f: change_config(f, model_type="t5"), "architecture", "t5: not an encoder"),
    (lambda f: change_config(f, model_type="gpt2"), "architecture", "gpt2: not an encoder"),
    (lambda f: change_config(f, model_type="new"), "architecture", "config.json: "),
    (lambda f: change_config(f, vocab_size=7), "vocabulary", "vectors for 7 only"),
    (lambda f: change_config(f, num_hidden_layers=3), "weights", "lacks 16 of 53 weights"),
    (lambda f: change_config(f, intermediate_size=8), "weights", "config.json wants (8, 16)"),
    (remove("model.safetensors"), "weights", "no model.safetensors"),
    (cut, "weights", "damaged or cut short"),
    (remove("tokenizer.json"), "tokenizer", "cannot be opened"),
]


def test_what_cannot_be_used(tmp_path):
    whole = make_encoder(tmp_path / "whole")
    wrong = []
    for number, (damage, subject, message) in enumerate(DAMAGES):
        folder = tmp_path / str(number)
        shutil.copytree(whole, folder)
        damage(folder)
        level, text = levels(folder)[subject]
        wrong += [] if level == "unfit" and message in text else [(subject, message, level, text)]
    assert not wrong
    done = run("encoders", "check", tmp_path / "0")
    assert done.exit_code == 1
    assert "cannot read it" in done.stdout


@pytest.mark.slow
def test_a_tokenizer_without_a_fast_version_cannot_be_used(tmp_path):
    folder = make_encoder(tmp_path / "encoder")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "CanineTokenizer"}')
    level, text = levels(folder)["tokenizer"]
    assert level == "unfit" and "no fast version" in text


def test_weights_of_old_and_of_sharded_files(tmp_path):
    from safetensors.torch import load_file, save_file

    folder = make_encoder(tmp_path / "encoder")
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    old = {
        "bert." + name.replace("LayerNorm.weight", "LayerNorm.gamma"): weight
        for name, weight in weights.items()
    }
    path = folder / "pytorch_model.bin"
    torch.save(old, path, _use_new_zipfile_serialization=False)  # as all did until 2020
    assert levels(folder)["weights"][0] == "note"
    torch.save(old, path)
    assert levels(folder)["weights"][0] == "note"
    path.unlink()
    half = len(weights) // 2
    names = sorted(weights)
    shards = {"a.safetensors": names[:half], "b.safetensors": names[half:]}
    for file, inside in shards.items():
        save_file({name: weights[name] for name in inside}, folder / file)
    index = {name: file for file, inside in shards.items() for name in inside}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    assert levels(folder)["weights"][0] == "ok"
    (folder / "b.safetensors").unlink()
    assert levels(folder)["weights"] == ("unfit", "1 of 2 files are missing")


def test_the_page_counts_right():
    page = (ROOT / "docs" / "encoders.md").read_text("utf-8")
    encoders = load_encoders()
    assert f"The catalogue lists {len(encoders)} encoders" in page
    numbers = {3: "Three", 4: "Four"}
    assert f"{numbers[sum(not one.licence for one in encoders.values())]} encoders state" in page
    assert f"{numbers[sum(not one.source for one in encoders.values())]} entries have" in page
    assert all(name in encoders for name in re.findall(r"\| `([^`]+)`", page))
