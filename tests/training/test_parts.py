"""Training reads notes in the windows in which prediction reads them."""

import itertools
from pathlib import Path
from typing import Any

import pytest
import spacy
import srsly
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import load_config

from spacy_bioclin.catalog.recipes import load_recipes
from spacy_bioclin.corpora.docbin import write_docs
from spacy_bioclin.corpora.readers import make_corpus
from spacy_bioclin.errors import BioclinError
from tests.util import TEXTS, make_encoder

CONFIGS = Path(__file__).parents[2] / "configs"
NOTE = "\n".join(TEXTS * 3)
RULE = "corpora.train.max_tokens"


def make_pipeline(encoder: Path, **settings: Any) -> Language:
    nlp = spacy.blank("es")
    nlp.add_pipe("bioclin_sentences")
    model = {"@architectures": "spacy-bioclin.Encoder.v1", "name": str(encoder), **settings}
    nlp.add_pipe("transformer", config={"model": model})
    return nlp


def read_parts(nlp: Language, doc: Doc, folder: Path) -> list[str]:
    write_docs([doc], folder / "train.spacy")
    read = make_corpus(folder / "train.spacy", max_tokens="auto")
    return [eg.reference.text for eg in read(nlp)]


@pytest.mark.parametrize(("kind", "window"), [("wordpiece", 16), ("bytes", 33), ("unigram", 64)])
def test_parts_are_windows(kind: str, window: int, tmp_path: Path) -> None:
    nlp = make_pipeline(make_encoder(tmp_path / "encoder", "bert", kind), window=window)
    nlp.initialize()
    doc = nlp(NOTE)
    [spans] = [data.spans for data in [nlp.get_pipe("transformer").predict([doc])]]
    windows = [span.text_with_ws for span in spans[0]]
    assert len(windows) > 1
    parts = read_parts(nlp, nlp(NOTE), tmp_path)
    assert "".join(parts) == NOTE
    # A line break between two windows has no pieces and may end one or begin the other.
    assert [part.strip() for part in parts] == [window.strip() for window in windows]


def test_spans_stay_whole(tiny_encoder: Path, tmp_path: Path) -> None:
    nlp = make_pipeline(tiny_encoder, window=16)
    nlp.initialize()
    doc = nlp(NOTE)
    plain = read_parts(nlp, doc, tmp_path)
    cut = len(plain[0])
    span = doc.char_span(cut - 4, cut + 4, label="X", alignment_mode="expand")
    assert span is not None and span.start_char < cut < span.end_char
    doc.set_ents([span])
    parts = read_parts(nlp, doc, tmp_path)
    assert "".join(parts) == NOTE
    ends = itertools.accumulate(map(len, parts))
    assert not any(span.start_char < end < span.end_char for end in ends)


def test_whole_before_the_encoder_is_read_and_an_error_without_one(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    nlp = make_pipeline(tiny_encoder, window=16)
    blank = spacy.blank("es")
    assert read_parts(nlp, blank(NOTE), tmp_path) == [NOTE]  # labels are collected, nothing encoded
    with pytest.raises(BioclinError, match=r"has no spacy-bioclin\.Encoder\.v1"):
        read_parts(blank, blank(NOTE), tmp_path)
    with pytest.raises(BioclinError, match="max_tokens is many"):
        make_corpus(tmp_path, max_tokens="many")  # type: ignore[arg-type]


def test_a_chosen_window_belongs_to_the_trained_pipeline(tmp_path: Path) -> None:
    """A catalogue that changes, or another name of the encoder's folder, does not change it."""
    folder = make_encoder(tmp_path / "bluebert-pubmed")
    nlp = make_pipeline(folder, window="auto")
    nlp.initialize()
    model: Any = nlp.get_pipe("transformer").model
    special = model.shim.module.special.n
    assert model.attrs["size"] == 64 - special  # the catalogue says 128; this one reads 64
    nlp.to_disk(tmp_path / "pipeline")
    changed = {"components": {"transformer": {"model": {"name": "elsewhere"}}}}
    loaded = spacy.load(tmp_path / "pipeline", config=changed)
    assert loaded.get_pipe("transformer").model.attrs["size"] == 64 - special  # type: ignore[attr-defined]


def test_recipes_configs_and_sweeps_follow_the_rule() -> None:
    for name, recipe in load_recipes().items():
        assert recipe.settings[RULE] == "auto", name
        assert recipe.settings["components.transformer.model.stride"] is None
    for path in CONFIGS.glob("*.cfg"):
        config = load_config(path, interpolate=False)
        # Labels of whole texts; and texts that are not the notes (markers).
        other = {"textcat": 0, "pairs": 0, "relations-markers": 100}.get(path.stem)
        wanted = "auto" if other is None else other
        assert config["corpora"]["train"]["max_tokens"] == wanted, path.name
    for path in (CONFIGS / "sweeps").glob("*.yml"):
        plan = srsly.read_yaml(path)
        strategies = plan.get("strategies", {}).values()
        assert not any(RULE in settings for settings in (plan.get("settings", {}), *strategies)), (
            path.name
        )
