"""A saved pipeline from which a file is missing is refused on load, or annotates as before."""

import shutil

import pytest
import spacy

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.kb.build import build_kb
from spacy_bioclin.linking.kb.concepts import Concept

NOTE = "Paciente con neumonía en el Hospital General . DNI 12345678Z"


@pytest.fixture(scope="module")
def whole(pipeline, tmp_path_factory):
    """Folder of a pipeline with all kinds of our components."""
    folder = tmp_path_factory.mktemp("whole")
    build_kb([Concept("K1", "neumonía", "es")], folder / "kb")
    nlp = spacy.load(pipeline)
    nlp.add_pipe("bioclin_linker", name="linker", config={"kb": str(folder / "kb"), "carry": True})
    nlp.add_pipe("bioclin_phi_rules", name="rules")
    nlp.add_pipe("bioclin_deid", name="deid").thresholds = {"PLACE": 0.01}
    nlp.to_disk(folder / "pipeline")
    return folder / "pipeline"


def annotate(folder):
    doc = spacy.load(folder)(NOTE)
    ents = [(ent.text, ent.label_, ent.kb_id_, ent._.probability) for ent in doc.ents]
    return ents, [(span.text, span.label_) for span in doc.spans["phi"]], doc._.deid.text


@pytest.mark.slow
def test_every_missing_file_is_named_on_load(whole, tmp_path):
    wanted = annotate(whole)
    assert wanted[0][0][:3] == ("neumonía", "DISEASE", "K1") and len(wanted[1]) > 1
    silent = []
    copy = tmp_path / "copy"
    shutil.copytree(whole, copy)
    files = [path.relative_to(whole) for path in sorted(whole.rglob("*")) if path.is_file()]
    folders = [path.relative_to(whole) for path in sorted(whole.iterdir()) if path.is_dir()]
    assert len(files) > 15
    for name in [*files, *folders]:
        (copy / name).rename(tmp_path / "away")
        try:
            if annotate(copy) != wanted:
                silent.append(f"{name}: other annotations")
        except (OSError, ValueError) as error:
            if name.name not in str(error):
                silent.append(f"{name}: {type(error).__name__} {error}")
        (tmp_path / "away").rename(copy / name)
    assert silent == []


def test_the_error_says_what_is_missing(whole, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(whole, folder)
    (folder / "phi" / "cfg").unlink()
    with pytest.raises(
        BioclinError, match=r"\[components\.phi\] cannot be loaded: .* no file 'cfg'"
    ):
        spacy.load(folder)
    assert spacy.load(folder, exclude=["phi"]).pipe_names
