"""Draw ten invented notes of assets/demo with sections, context and measurements as a page.

    python -m benchmarks.context.picture

Mentions are the gold annotations of the demo corpus; in the notes without annotations, names of the
demo terminology. Writes benchmarks/results/context_notes.html.
"""

import csv
from pathlib import Path

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import filter_spans

from benchmarks.harness import RESULTS, ROOT, make_parser
from spacy_bioclin.context.page import render_context
from spacy_bioclin.corpora.brat import read_brat_file
from spacy_bioclin.types import SpanAnnotation

DEMO = ROOT / "assets" / "demo"
NOTES = {"es": ["notes/es/alta", "notes/es/oncologia"], "en": ["notes/en/discharge"]}
ANNOTATED = {
    "es": ["es/dev/es-dev-004", "es/dev/es-dev-012", "es/dev/es-dev-025", "es/dev/es-dev-029"],
    "en": ["en/dev/en-dev-013", "en/dev/en-dev-016", "en/dev/en-dev-022"],
}
MENTIONS = ("PROBLEM", "DRUG", "PROCEDURE")


def make_pipeline(lang: str) -> Language:
    """Make a pipeline with the names of the demo terminology and the context components."""
    nlp = spacy.blank(
        lang, config={"nlp": {"tokenizer": {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}}}
    )
    nlp.add_pipe("bioclin_sentences")
    ruler = nlp.add_pipe("entity_ruler", config={"phrase_matcher_attr": "LOWER"})
    with (DEMO / "terminology.tsv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["lang"] == lang]
    ruler.add_patterns(  # type: ignore[attr-defined]
        [
            {"label": row["type"].upper(), "pattern": name}
            for row in rows
            for name in row["name"].split("|")
        ]
    )
    for name in ("bioclin_sections", "bioclin_context", "bioclin_measurements"):
        nlp.add_pipe(name)
    return nlp


def annotate(nlp: Language, txt: Path) -> Doc:
    """Annotate a note; its gold mentions, if there are any, replace those of the terminology."""
    note = read_brat_file(txt)
    doc = nlp(note.text)
    if note.annotations:
        spans = [
            doc.char_span(*one.fragments[0], one.label, alignment_mode="expand")
            for one in note.annotations
            if isinstance(one, SpanAnnotation) and one.label in MENTIONS
        ]
        doc.set_ents(filter_spans(span for span in spans if span is not None))
    return doc


def main() -> None:
    """Write the page."""
    make_parser(__doc__).parse_args()
    docs = {}
    for lang, names in NOTES.items():
        nlp = make_pipeline(lang)
        for name in [*names, *ANNOTATED[lang]]:
            docs[name] = annotate(nlp, DEMO / f"{name}.txt")
    path = RESULTS / "context_notes.html"
    page = render_context(docs, title="Sections, context and measurements of invented notes")
    path.write_text(page, "utf-8")
    print(path)


if __name__ == "__main__":
    main()
