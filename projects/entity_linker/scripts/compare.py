"""Link the gold mentions of a corpus twice, with the trained `entity_linker` and with an untrained
`bioclin_linker`, and score both as spaCy does (nel_micro_f)."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import spacy
import typer
from spacy.language import Language
from spacy.scorer import Scorer
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.linking.kb.knowledge_base import KnowledgeBase


def main(kb_path: Path, pipeline: Path, corpus: Path, out: Path) -> None:
    """
    kb_path (Path): Folder of the knowledge base.
    pipeline (Path): The trained pipeline.
    corpus (Path): Gold Docs.
    out (Path): Where to write the scores, without text of a note.
    """
    trained = spacy.load(pipeline)
    untrained = spacy.blank(trained.lang)
    untrained.add_pipe("bioclin_linker", config={"kb": str(kb_path)})
    gold = list(read_docs(corpus, trained.vocab))
    ambiguous = ambiguous_texts(KnowledgeBase.open(kb_path), gold)
    pipelines = {"entity_linker": trained, "bioclin_linker, untrained": untrained}
    linked = {name: list(nlp.pipe(without_ids(nlp, gold))) for name, nlp in pipelines.items()}
    scores = {}
    for name, docs in linked.items():
        scores[name] = {
            "nel_micro_f": micro_f(docs, gold),
            "nel_micro_f of ambiguous names": micro_f(docs, [only(doc, ambiguous) for doc in gold]),
        }
    ents = [ent for doc in gold for ent in doc.ents if ent.kb_id_]
    n_ambiguous = sum(ent.text in ambiguous for ent in ents)
    result = {"mentions": len(ents), "ambiguous": n_ambiguous, "scores": scores}
    text = json.dumps(result, indent=2, ensure_ascii=False)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text + "\n", "utf-8")
    print(text)


def ambiguous_texts(kb: KnowledgeBase, docs: Sequence[Doc]) -> set[str]:
    """RETURNS (set[str]): Mentions that are the name of several concepts."""
    texts = sorted({ent.text for doc in docs for ent in doc.ents})
    found = kb.exact(texts)
    return {
        text
        for text, names in zip(texts, found, strict=True)
        if len(set(kb.name_concept[names].tolist())) > 1
    }


def without_ids(nlp: Language, docs: Iterable[Doc]) -> Iterable[Doc]:
    """YIELDS (Doc): The tokens and mentions of each, and nothing else of it."""
    for doc in docs:
        words, spaces = [t.text for t in doc], [bool(t.whitespace_) for t in doc]
        new = Doc(nlp.vocab, words=words, spaces=spaces)
        new.ents = [Span(new, ent.start, ent.end, ent.label_) for ent in doc.ents]
        yield new


def only(doc: Doc, texts: set[str]) -> Doc:
    """RETURNS (Doc): A copy that has mentions with these texts only."""
    new = doc.copy()
    new.ents = [
        Span(new, ent.start, ent.end, ent.label_, kb_id=ent.kb_id_)
        for ent in doc.ents
        if ent.text in texts
    ]
    return new


def micro_f(docs: Sequence[Doc], gold: Sequence[Doc]) -> float:
    """RETURNS (float): spaCy's F of the links of mentions that are in both."""
    examples = [Example(doc, reference) for doc, reference in zip(docs, gold, strict=True)]
    score: float = Scorer.score_links(examples, negative_labels=["NIL", ""])["nel_micro_f"]
    return round(score, 4)


if __name__ == "__main__":
    typer.run(main)
