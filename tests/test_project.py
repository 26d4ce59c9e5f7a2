"""The spaCy project: commands fit together, assets land where the catalogue looks for them."""

import zipfile
from pathlib import Path

import pytest
from spacy.util import load_config
from weasel.util import load_project_config

from scripts import prepare
from spacy_bioclin.catalog import tasks
from spacy_bioclin.cli import COMMANDS
from spacy_bioclin.errors import BioclinError

ROOT = Path(__file__).parents[1]
TASKS = tasks.load_tasks()


@pytest.fixture
def project(tmp_path):
    """The project with its variables filled in; `load_project_config` makes its directories."""
    (tmp_path / "project.yml").write_bytes((ROOT / "project.yml").read_bytes())
    return load_project_config(tmp_path)


def test_every_input_is_in_the_repository_or_made_by_an_earlier_command(project):
    made = set()
    for command in project["commands"]:
        for path in command["deps"]:
            assert path in made or (ROOT / path).exists(), f"{command['name']} needs {path}"
        made.update(command.get("outputs", []))


def test_workflows_run_every_command_in_order(project):
    names = [command["name"] for command in project["commands"]]
    flagship = [name for name in names if name.startswith("flagship-")]
    others = [name for name in names if name not in flagship]
    assert project["workflows"] == {"demo": others, "all": others, "flagship": flagship}


def test_scripts_call_commands_that_exist(project):
    called = set()
    for command in project["commands"]:
        for line in command["script"]:
            before, _, after = line.partition(" -m spacy_bioclin ")
            if after:
                called.add(after.split()[0])
                assert Path(before).name == "python"
    assert called == {"train", "evaluate", "package", "check-package", "annotate"}
    assert called <= {path.rpartition(".")[2].replace("_", "-") for path in COMMANDS}


def test_assets_land_where_the_catalogue_looks(project):
    places = [Path(asset["dest"]).relative_to("assets/downloads") for asset in project["assets"]]
    archives = [place.name for place in places if place.suffix == ".zip"]
    places += [Path(target) for name in archives for target in TASKS[name[:-4]].archive.values()]
    for name, task in TASKS.items():
        if name != "demo" and not task.obtain:
            for path in (Path(path) for paths in task.splits.values() for path in paths):
                assert any(place in (path, *path.parents) for place in places), path


def test_assets_state_the_licence_of_the_catalogue(project):
    for asset in project["assets"]:
        if "description" in asset:
            folder = Path(asset["dest"]).relative_to("assets/downloads").parts[0]
            [licence] = {t.licence for t in TASKS.values() if t.folder == folder.split(".zip")[0]}
            assert asset["description"].endswith(f"({licence})"), asset["dest"]


def test_configs_suit_the_tasks():
    for task in TASKS.values():
        (check_table if task.is_table else check_layers)(task)


def check_layers(task):
    config = prepare.make_config(task, task.lang, "")
    factory = "bioclin_relations" if task.relations else "bioclin_ner"
    heads = [c for c in config["components"].values() if c.get("factory") == factory]
    written = {head["spans_key"] or "ents" for head in heads}
    assert written == set(task.layer_names)
    if not task.relations:
        assert {head["nested"] for head in heads} == {task.nested}
    assert config["nlp"]["lang"] == task.lang
    assert sum(weight or 0 for weight in config["training"]["score_weights"].values()) > 0


def check_table(task):
    config = prepare.make_config(task, task.lang, "")
    assert config["nlp"]["lang"] == task.lang
    assert config["training"]["score_weights"][task.metric] == 1.0
    if task.kind == "pairs":
        objective = config["components"]["pairs"]["objective"]
        assert objective == ("regression" if task.graded else "classification")
    else:
        head = config["components"]["textcat"]
        assert head["model"]["exclusive_classes"] == task.exclusive
        assert head["factory"] == ("textcat" if task.exclusive else "textcat_multilabel")


def test_own_config_is_taken_as_it_is():
    own = prepare.make_config(TASKS["meddocan"], "es", str(ROOT / "configs" / "ner.cfg"))
    assert own == load_config(ROOT / "configs" / "ner.cfg", {"nlp.lang": "es"})


@pytest.mark.slow
def test_demo_is_prepared_in_both_languages_and_again_with_the_same_bytes(tmp_path):
    for name, lang in (("es", "es"), ("one", "en"), ("two", "en")):
        prepare.main("demo", lang, tmp_path / name)
        made = {path.name for path in (tmp_path / name).glob("*") if path.suffix != ".json"}
        assert made == {"train.spacy", "dev.spacy", "test.spacy", "config.cfg"}
    for split in tasks.SPLITS:
        es, one, two = (
            (tmp_path / name / f"{split}.spacy").read_bytes() for name in ("es", "one", "two")
        )
        assert one == two != es  # else everything would be trained again


def test_mistakes(tmp_path, monkeypatch):
    with pytest.raises(BioclinError, match=r"want one of .*meddocan"):
        tasks.find_task("medocan", "es")
    with pytest.raises(BioclinError, match="in language en, not es"):
        tasks.find_task("bc5cdr", "es")
    monkeypatch.setenv("BIOCLIN_DATA", str(tmp_path))
    with pytest.raises(BioclinError, match="project assets"):
        tasks.find_data("meddocan")


def test_archives_are_unpacked_into_the_layout_of_the_catalogue(tmp_path, monkeypatch):
    monkeypatch.delenv("BIOCLIN_DATA", raising=False)
    monkeypatch.setattr(tasks, "DOWNLOADS", tmp_path)
    archive = tmp_path / "pharmaconer.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for split in tasks.SPLITS:
            file.writestr(f"pharmaconer/{split}-set_1.1/{split}/subtrack1/a.txt", f"{split} ñ")
            file.writestr(f"pharmaconer/{split}-set_1.1/{split}/subtrack2/a.tsv", "other")
    assert tasks.find_data("pharmaconer") == tmp_path
    for split, [folder] in TASKS["pharmaconer"].splits.items():
        assert [path.name for path in (tmp_path / folder).iterdir()] == ["a.txt"]
        assert (tmp_path / folder / "a.txt").read_text("utf-8") == f"{split} ñ"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("elsewhere/a.txt", "")
    with pytest.raises(BioclinError, match="has no folder"):
        tasks.unpack(archive, TASKS["pharmaconer"].archive)
