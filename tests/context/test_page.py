"""The page of sections, context and measurements."""

import html
import re

import pytest
import spacy
from spacy.tokens import Doc

from spacy_bioclin.context.page import render_context

NOTE = """AF: madre con diabetes.
EA: niega fiebre. Posible TEP. Hb < 8,5 g/dL & <b>anemia</b>, TA 120/80, masa de 3 x 4 cm.
"""
MENTIONS = ("diabetes", "fiebre", "TEP", "anemia")


@pytest.fixture(scope="module")
def doc() -> Doc:
    tokenizer = {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}
    nlp = spacy.blank("es", config={"nlp": {"tokenizer": tokenizer}})
    for name in ("sentences", "sections", "context", "measurements"):
        nlp.add_pipe(f"bioclin_{name}")
    doc = nlp(NOTE)
    starts = {word: NOTE.index(word) for word in MENTIONS}
    doc.set_ents([doc.char_span(at, at + len(word), label="X") for word, at in starts.items()])
    return doc


def find_classes(page: str, text: str) -> set[str]:
    [classes] = re.findall(rf'<span class="([^"]*)"[^>]*>{re.escape(html.escape(text))}<', page)
    return set(classes.split())


def test_page(doc: Doc) -> None:
    page = render_context({"a <note>": doc})
    article = page[page.index("<article>") :]
    assert find_classes(article, "diabetes") >= {"mention", "family"}
    assert find_classes(article, "fiebre") == {"mention", "negated"}
    assert find_classes(article, "TEP") == {"mention", "uncertain"}
    assert find_classes(article, "anemia") == {"mention"}
    assert find_classes(article, "< 8,5 g/dL") == {"measurement"}
    for title in ("quantity: &lt;8.5 g/dL", "blood pressure: 120/80 mm[Hg]", "size: 3 × 4 cm"):
        assert f'title="{title}"' in article
    assert "a &lt;note&gt;" in page and "<b>" not in page and "<script" not in page
    assert re.findall('class="category">([^<]*)<', page) == ["family history", "present illness"]


def test_the_text_is_all_there(doc: Doc) -> None:
    page = render_context({"note": doc})
    texts = re.findall('<div class="text">(.*?)</div>', page, re.DOTALL)
    shown = html.unescape(re.sub("<[^>]*>", "", "\n".join(texts)))
    assert shown.split() == NOTE.split()


def test_any_layer_and_none() -> None:
    nlp = spacy.blank("es")
    doc = nlp("Fiebre alta.")
    assert "Fiebre alta." in render_context({"plain": doc, "empty": nlp("")})
    doc.spans["found"] = [doc[0:2], doc[1:2]]  # nested
    assert "Fiebre alta" in re.sub("<[^>]*>", "", render_context({"a": doc}, spans_key="found"))
