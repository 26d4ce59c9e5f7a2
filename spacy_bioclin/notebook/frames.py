"""Data frames of pandas with what was found in Docs."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from spacy.tokens import Doc

from ..context.rules.rule_data import KINDS
from ..errors import BioclinError
from ..runner.notes.describe import ENTS, describe_entities, describe_relations
from .views import check_key

if TYPE_CHECKING:
    from pandas import DataFrame

Rows = Literal["entities", "relations"]
PLACE = {"start": "int64", "end": "int64", "label": "string"}
ENTITY_TYPES = {
    "doc": "int64",
    **PLACE,
    "layer": "string",
    "text": "string",
    "kb_id": "string",
    "codes": "object",
    "probability": "float64",
    "section": "string",
    **dict.fromkeys(KINDS, "boolean"),
    "medication": "object",
    "value": "object",
    "high": "float64",
    "comparator": "string",
    "unit": "string",
}
ARGUMENT_TYPES = {**PLACE, "text": "string", "kb_id": "string"}
RELATION_TYPES = {
    "doc": "int64",
    "label": "string",
    "probability": "float64",
    **{f"head_{name}": kind for name, kind in ARGUMENT_TYPES.items()},
    **{f"child_{name}": kind for name, kind in ARGUMENT_TYPES.items()},
}


def to_dataframe(
    docs: Doc | Iterable[Doc],
    *,
    layers: Sequence[str] | None = (ENTS,),
    rows: Rows = "entities",
) -> "DataFrame":
    """Make a data frame of what was found in Docs: a row for each entity or relation.

    docs (Doc | Iterable[Doc]): One Doc or several, such as `nlp.pipe(texts)`.
    layers (Sequence[str] | None): The entities of which layers: "ents" for `doc.ents`, keys of
        `doc.spans` such as "phi" and "measurements"; None for all but sections and cues.
    rows (str): "entities" or "relations".
    RETURNS (pandas.DataFrame): `doc` is the position of the Doc, from 0. Offsets are characters of
        its text. The columns and their types are always the same; what is not known is missing. The
        column `text` has text of the notes.
    RAISES (BioclinError): pandas is not installed, no Doc has a layer, or `rows` is neither word.
    """
    pandas = _import_pandas()
    if rows not in get_args(Rows):
        raise BioclinError(f"rows = {rows!r}: want {' or '.join(get_args(Rows))}")
    docs = [docs] if isinstance(docs, Doc) else list(docs)
    if rows == "relations":
        return _make_frame(pandas, _list_relations(docs), RELATION_TYPES)
    for layer in layers or ():
        check_key(docs, None if layer == ENTS else layer)
    return _make_frame(pandas, _list_entities(docs, layers), ENTITY_TYPES)


def _list_entities(docs: Sequence[Doc], layers: Sequence[str] | None) -> Iterator[dict[str, Any]]:
    for number, doc in enumerate(docs):
        for row in describe_entities(doc, doc.text):
            if layers is None or row["layer"] in layers:
                yield {"doc": number, **row}


def _list_relations(docs: Sequence[Doc]) -> Iterator[dict[str, Any]]:
    for number, doc in enumerate(docs):
        for row in describe_relations(doc):
            arguments = {
                f"{role}_{name}": value
                for role in ("head", "child")
                for name, value in row[role].items()
            }
            yield {"doc": number, **row, **arguments}


def _make_frame(pandas: Any, rows: Iterable[dict[str, Any]], types: dict[str, str]) -> "DataFrame":
    return pandas.DataFrame(list(rows), columns=list(types)).astype(types)


def _import_pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise BioclinError(
            'data frames need pandas: pip install "spacy-bioclin[notebook]"'
        ) from error
    return pandas
