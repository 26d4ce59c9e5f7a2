"""From tag scores to spans and F1, for both sides of benchmarks/training/trainer_parity.py."""

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import torch
from spacy.tokens import Doc
from thinc.api import Model

from benchmarks.corpora import LANG, make_blank
from spacy_bioclin.encoders.encoder import find_window_starts
from spacy_bioclin.evaluation.conll import chunks
from spacy_bioclin.evaluation.spans import reference_spans, score_spans
from spacy_bioclin.ner.inference import find_entities, make_grammar
from spacy_bioclin.ner.model import TagScores
from spacy_bioclin.ner.tags import TagSet
from spacy_bioclin.types import CharSpan


def split_into_sentences(task: str, texts: list[str]) -> list[Doc]:
    """Make Docs with our tokens and sentences, without annotation."""
    return list(make_blank(LANG[task], "bioclin_sentences").pipe(texts))


def cut_into_windows(doc: Doc, encoder: Model) -> list[Doc]:
    """Cut a Doc without annotation into the windows of our encoder, each a Doc of its own."""
    sentences = [token.i for token in doc if token.is_sent_start and token.i]
    starts = find_window_starts(encoder, doc, list(range(1, len(doc))), sentences)
    return [doc[i:j].as_doc() for i, j in pairwise([0, *starts, len(doc)])]


def join_parts(
    docs: list[Doc], parts: list[list[Doc]], found: Iterator[Iterable[CharSpan]]
) -> list[set[CharSpan]]:
    """Move the spans found in the parts of each Doc to the Doc's own offsets."""
    joined = []
    for doc, of_doc in zip(docs, parts, strict=True):
        begin, spans = 0, set()
        for part in of_doc:
            spans |= {(begin + s, begin + e, label) for s, e, label in next(found)}
            begin += len(part.text)
        assert begin == len(doc.text), "parts of a text must be the text together"
        joined.append(spans)
    return joined


def best_tags(part: Doc, scores: np.ndarray, tag_set: TagSet) -> list[CharSpan]:
    """Read the best tag of each token as conlleval and seqeval do."""
    tags = [tag_set.tags[i] for i in scores.argmax(1)]
    return [(part[s:e].start_char, part[s:e].end_char, label) for s, e, label in chunks(tags)]


def legal_tags(part: Doc, scores: np.ndarray, tag_sets: list[TagSet]) -> list[CharSpan]:
    """Decode the best legal tags as our component does."""
    emissions = torch.from_numpy(scores)[:, None]
    n_tags = tag_sets[0].n_tags
    edges = torch.zeros(1, n_tags)
    tag_scores = TagScores(emissions, torch.zeros(1, n_tags, n_tags), edges, edges, [len(part)])
    [entities] = find_entities(tag_scores, tag_sets, make_grammar(tag_sets, torch.device("cpu")))
    spans = [(part[e.start : e.end], e.label) for e in entities]
    return [(span.start_char, span.end_char, label) for span, label in spans]


def score(found: list[set[CharSpan]], references: list[Doc]) -> dict[str, float]:
    gold = [reference_spans(doc, None) or set() for doc in references]
    micro = score_spans(zip(gold, found, strict=True)).micro.prf()
    return {key: round(value, 4) for key, value in micro.items()}
