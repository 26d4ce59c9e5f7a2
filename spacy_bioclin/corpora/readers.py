"""Corpora of Examples for training and evaluation."""

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

from spacy.attrs import SENT_START
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import filter_spans

from ..annotations.pairs import get_boundary, make_pair, split_pair
from ..errors import BioclinError
from ..types import FIND_WINDOWS, GIVEN_KEY, GOLD_KEY
from .docbin import read_docs
from .overlap.docs import DocumentChoice
from .relations.cut import ByStart, cut_gold_relations, index_gold_relations

NAME = "spacy-bioclin.Corpus.v1"
# Key in `doc.user_data` under which a Doc keeps the predictions of a teacher for its tokens, see
# `ner.distillation`: {…, "layers": {layer: {…, "marginals": array with a row per token}}}.
TEACHER_KEY = "bioclin_teacher"
# Makes examples of an example, such as noisy copies.
Augmenter = Callable[[Language, Example], Iterable[Example]]
# From a Doc, the tokens before which it may be cut, and those of them that start a sentence, to the
# tokens before which it is cut.
FindStarts = Callable[[Doc, list[int], list[int]], list[int]]


def make_corpus(
    path: Path | None,
    *,
    max_tokens: int | Literal["auto"] = 0,
    leave_out: Path | None = None,
    use_gold_ents: bool = False,
    augmenter: Augmenter | None = None,
) -> Callable[[Language], Iterable[Example]]:
    """Make a corpus reader (registered as `spacy-bioclin.Corpus.v1`).

    path (Path | None): A .spacy file or a folder of them, as `bioclin convert` writes them.
    max_tokens (int | str): For training: cut Docs at sentence ends into parts. "auto": the parts
        are the windows in which the encoder of the pipeline will read notes, so that training sees
        what prediction sees. A number: parts have at most so many tokens. 0, for evaluation:
        leave Docs whole. Pairs of texts and Docs with doc.cats are always left whole, for what is
        annotated is about all of their text.
    leave_out (Path | None): List of documents to leave out, see `read_id_list`.
    use_gold_ents (bool): Give the Docs to predict the annotated spans, with their concept ids: for
        components that read spans, in a pipeline without a component that finds them.
    augmenter (Callable | None): For training: makes the examples that are read of each, such as
        `spacy-bioclin.noise.v1`.
    RETURNS (Callable[[Language], Iterable[Example]]): The reader.
    RAISES (BioclinError): max_tokens is no such value; or, when the corpus is read, no path is set
        (`spacy debug config` and `spacy init fill-config` accept a config without paths), or the
        list is none, or has no document of the corpus.
    """
    if path is None:
        return _refuse
    check_max_tokens(max_tokens, NAME)
    choice = DocumentChoice(NAME, leave_out=leave_out)
    settings: dict[str, Any] = {"max_tokens": max_tokens, "use_gold_ents": use_gold_ents}
    settings["augmenter"] = augmenter
    return partial(read_examples, path=Path(path), choice=choice, **settings)


def check_max_tokens(max_tokens: int | str, reader: str) -> None:
    """Check the setting of a reader.

    reader (str): Its registered name, for the error.
    RAISES (BioclinError): It is neither "auto" nor a number that is not negative.
    """
    if max_tokens != "auto" and (isinstance(max_tokens, str) or max_tokens < 0):
        raise BioclinError(f'{reader}: max_tokens is {max_tokens}, want "auto", or 0 or more')


def _refuse(nlp: Language) -> Iterable[Example]:
    raise BioclinError(
        "spacy-bioclin.Corpus.v1: no path is set; give --paths.train and --paths.dev, or write "
        "them in [paths] of the config"
    )


def read_examples(
    nlp: Language,
    *,
    path: Path,
    max_tokens: int | Literal["auto"],
    choice: DocumentChoice,
    use_gold_ents: bool = False,
    augmenter: Augmenter | None = None,
) -> Iterator[Example]:
    """Pair the chosen Docs of a corpus, cut into parts, with Docs without annotation.

    path, max_tokens, use_gold_ents, augmenter: See `make_corpus`.
    choice (DocumentChoice): Which documents are read.
    YIELDS (Example): The examples, in the order of the corpus.
    """
    choice.check([path])
    if max_tokens == "auto":
        cut = partial(_cut, find_starts=_find_windows(nlp))
    else:
        cut = partial(cut_doc, max_tokens=max_tokens)
    for doc in filter(choice.keeps, read_docs(path, nlp.vocab)):
        for reference in cut(doc):
            predicted = _make_predicted(nlp, reference)
            if use_gold_ents:
                _give_spans(predicted, reference)
            eg = Example(predicted, reference)
            yield from augmenter(nlp, eg) if augmenter else (eg,)


def _find_windows(nlp: Language) -> FindStarts:
    """Find what cuts a Doc into the windows of the pipeline's encoder."""
    for _, component in nlp.components:
        model = getattr(component, "model", None)
        if find := getattr(model, "attrs", {}).get(FIND_WINDOWS):
            return partial(find, model)
    raise BioclinError(
        'spacy-bioclin.Corpus.v1: max_tokens = "auto" cuts notes into the windows of the encoder, '
        "but the pipeline has no spacy-bioclin.Encoder.v1: set a number of tokens"
    )


def _make_predicted(nlp: Language, reference: Doc) -> Doc:
    """Tokenize the text again; sentence starts, which are not to be predicted, are copied."""
    if get_boundary(reference) is None:
        predicted = nlp.make_doc(reference.text)
    else:
        first, second = (part.text_with_ws for part in split_pair(reference))
        predicted = make_pair(nlp, first, second)
    has_starts = len(reference) and reference.has_annotation("SENT_START")
    if has_starts and _has_same_tokens(predicted, reference):
        starts: Any = reference.to_array([SENT_START]).reshape(-1, 1)
        predicted.from_array([SENT_START], starts)
    return predicted


def _has_same_tokens(doc: Doc, other: Doc) -> bool:
    return len(doc) == len(other) and all(
        ours.idx == theirs.idx for ours, theirs in zip(doc, other, strict=True)
    )


def _give_spans(predicted: Doc, reference: Doc) -> None:
    """Give a Doc the annotated spans; where its tokens differ, the tokens that they touch."""
    same = _has_same_tokens(predicted, reference)
    predicted.user_data[GIVEN_KEY] = True
    for key, group in reference.spans.items():
        predicted.spans[key] = [_copy_span(span, predicted, same) for span in group]
    if reference.has_annotation("ENT_IOB"):
        ents = filter_spans([_copy_span(ent, predicted, same) for ent in reference.ents])
        predicted.set_ents(ents, default="outside")


def _copy_span(span: Span, doc: Doc, has_same_tokens: bool) -> Span:
    names = {"label": span.label, "kb_id": span.kb_id, "span_id": span.id}
    if has_same_tokens:
        return Span(doc, span.start, span.end, **names)
    found = doc.char_span(span.start_char, span.end_char, alignment_mode="expand", **names)
    assert found is not None  # both have the same text
    return found


def cut_doc(doc: Doc, max_tokens: int) -> list[Doc]:
    """Cut a gold Doc into parts, at sentence ends where possible, and never within a span.

    doc (Doc): The gold Doc.
    max_tokens (int): Greatest length of a part; only a longer annotated span makes a longer part.
        0 leaves the Doc whole.
    RETURNS (list[Doc]): The parts; their texts together are the text of the Doc. A pair of texts
        and a Doc with doc.cats are one part: their annotation is about the whole text.
    """
    if not max_tokens or len(doc) <= max_tokens:
        return [doc]
    find = partial(cut_points, max_tokens=max_tokens)
    return _cut(doc, lambda doc, edges, sentences: find(len(doc), edges, sentences))


def _cut(doc: Doc, find_starts: FindStarts) -> list[Doc]:
    if doc.cats or get_boundary(doc) is not None:
        return [doc]
    inside = _inside_spans(doc)
    edges = [i for i in range(1, len(doc)) if i not in inside]
    starts = _sentence_starts(doc)
    cuts = find_starts(doc, edges, [i for i in edges if i in starts])
    if not cuts:
        return [doc]
    slices = [doc[a:b] for a, b in itertools.pairwise([0, *cuts, len(doc)])]
    spans = {key: ByStart((span.start, span) for span in g) for key, g in doc.spans.items()}
    gold = doc.user_data.get(GOLD_KEY, {"layers": {}})
    items = {key: ByStart((item[0], item) for item in own) for key, own in gold["layers"].items()}
    relations = index_gold_relations(gold)
    return [_slice_to_doc(doc, part, spans, items, relations) for part in slices]


def cut_points(n_tokens: int, edges: list[int], sentences: list[int], max_tokens: int) -> list[int]:
    """Choose where to cut: each part ends at the last sentence end within reach, else at the last
    token edge within reach, else at the next edge.

    n_tokens (int): Length of the text.
    edges (list[int]): Tokens before which a cut is allowed, sorted.
    sentences (list[int]): Those of them that start a sentence.
    max_tokens (int): Greatest length of a part.
    RETURNS (list[int]): The first token of each part but the first.
    """
    cuts: list[int] = []
    start = 0
    while n_tokens - start > max_tokens:
        for candidates in (sentences, edges):
            i = bisect_right(candidates, start + max_tokens)
            if i and candidates[i - 1] > start:
                start = candidates[i - 1]
                break
        else:
            i = bisect_right(edges, start + max_tokens)
            if i == len(edges):
                break
            start = edges[i]
        cuts.append(start)
    return cuts


def _inside_spans(doc: Doc) -> set[int]:
    """Find the tokens before which a cut would divide a span, or its offsets in the file."""
    groups = (doc.ents, *doc.spans.values())
    inside = {i for group in groups for span in group for i in range(span.start + 1, span.end)}
    starts = [token.idx for token in doc]
    for items in doc.user_data.get(GOLD_KEY, {"layers": {}})["layers"].values():
        for start, end, *_ in items:
            inside.update(range(bisect_right(starts, start), bisect_left(starts, end)))
    return inside


def _sentence_starts(doc: Doc) -> set[int]:
    if doc.has_annotation("SENT_START"):
        return {token.i for token in doc if token.is_sent_start}
    return {token.i + 1 for token in doc if "\n" in token.text}


def _slice_to_doc(
    doc: Doc,
    part: Span,
    spans: Mapping[str, ByStart],
    items: Mapping[str, ByStart],
    relations: Mapping[str, Any],
) -> Doc:
    """Copy a part of a Doc, with what `Span.as_doc` loses: doc.spans, gold offsets, sentences.

    spans, items (Mapping[str, ByStart]): All spans by key, and all gold spans by layer.
    relations (Mapping[str, Any]): See `index_gold_relations`.
    """
    result = part.as_doc()
    for key, group in spans.items():
        result.spans[key] = [
            Span(
                result,
                span.start - part.start,
                span.end - part.start,
                label=span.label,
                kb_id=span.kb_id,
                span_id=span.id,
            )
            for span in group.within(part.start, part.end)
        ]
    if doc.has_annotation("SENT_START"):
        result[0].is_sent_start = True
    if gold := doc.user_data.get(GOLD_KEY):
        begin = part.start_char if part.start else 0
        end = doc[part.end].idx if part.end < len(doc) else len(doc.text) + 1
        layers = {
            layer: [[s - begin, e - begin, *rest] for s, e, *rest in own.within(begin, end)]
            for layer, own in items.items()
        }
        within = cut_gold_relations(relations, layers, begin, end)
        result.user_data[GOLD_KEY] = {**gold, "layers": layers, **within}
    if taught := doc.user_data.get(TEACHER_KEY):
        tokens = slice(part.start, part.end)
        targets = {
            layer: {**entry, "marginals": entry["marginals"][tokens]}
            for layer, entry in taught["layers"].items()
        }
        result.user_data[TEACHER_KEY] = {**taught, "layers": targets}
    return result
