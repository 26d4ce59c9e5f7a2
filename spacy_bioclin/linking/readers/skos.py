"""SKOS in Turtle, RDF/XML or N-Triples, with rdflib (extra `skos`).

Vocabulary: https://www.w3.org/TR/skos-reference/ and, for labels that are resources, its appendix B
(SKOS-XL). JSON-LD is not read, because its contexts would be fetched from the network.
"""

import logging
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from lzma import LZMAError
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, cast
from xml.parsers import expat
from xml.sax import SAXException

from ...errors import BioclinError
from ..kb.concepts import BROADER, Alias, Concept, SkipReport
from .lines import open_bytes, suffix
from .values import clean, compact_id, language_code

if TYPE_CHECKING:
    from rdflib import Graph
    from rdflib.term import Node

# Suffix -> rdflib's name of the syntax; N-Triples and N3 without rules are Turtle too.
SYNTAXES = {".ttl": "turtle", ".n3": "turtle", ".nt": "nt", ".rdf": "xml", ".xml": "xml"}
# A larger file needs over 30 GB of memory, or is a small one that was compressed to deceive.
MAX_BYTES = 2 * 2**30
MAX_ENTITY = 1000


def read_skos(path: Path, report: SkipReport) -> Iterator[Concept]:
    """Read the concepts of a SKOS vocabulary. The whole graph is held in memory, about 2 kB a
    triple.

    The id of a concept is its notation, if it has one that is unique, and otherwise its address;
    its types are the addresses of its schemes. Of preferred labels in several languages the English
    one is the name, and the others are the first aliases.

    path (Path): The file, compressed or not.
    report (SkipReport): Counts deprecated concepts and those without a preferred label.
    YIELDS (Concept): The concepts, sorted by address.
    RAISES (BioclinError): rdflib is not installed; the file cannot be read, is not RDF, or holds no
        skos:Concept.
    """
    graph = _parse(path)
    from rdflib import OWL, RDF, SKOS, URIRef

    concepts = sorted({s for s in graph.subjects(RDF.type, SKOS.Concept) if isinstance(s, URIRef)})
    if not concepts:
        raise BioclinError(f"{path}: no skos:Concept in it; other RDF, such as OWL, is not read")
    notations = {node: list(graph.objects(node, SKOS.notation)) for node in concepts}
    counts = Counter(str(found[0]) for found in notations.values() if len(found) == 1)

    def id_of(node: "Node") -> str:
        found = notations.get(node, ())  # type: ignore[call-overload]
        own = len(found) == 1 and counts[str(found[0])] == 1
        return str(found[0]).strip() if own else compact_id(str(node))

    for node in concepts:
        # Some files state it as plain text, "true".
        deprecated = {str(value).strip().lower() for value in graph.objects(node, OWL.deprecated)}
        if deprecated & {"true", "1"}:
            report.skip("obsolete", str(node))
            continue
        preferred = _labels(graph, node, "prefLabel")
        if not preferred:
            report.skip("no preferred label", str(node))
            continue
        more = [*_labels(graph, node, "altLabel"), *_labels(graph, node, "hiddenLabel")]
        definitions = _literals(graph, node, SKOS.definition)
        broader = {*graph.objects(node, SKOS.broader), *graph.subjects(SKOS.narrower, node)}
        matches = [*graph.objects(node, SKOS.exactMatch), *graph.objects(node, SKOS.closeMatch)]
        yield Concept(
            id_of(node),
            preferred[0].text,
            preferred[0].lang,
            aliases=(*preferred[1:], *more),
            types=tuple(sorted(compact_id(str(x)) for x in graph.objects(node, SKOS.inScheme))),
            definition=definitions[0].text if definitions else "",
            parents=tuple(sorted(map(id_of, broader))),
            xrefs=(
                *sorted(compact_id(str(match)) for match in matches),
                *sorted(
                    BROADER + compact_id(str(match))
                    for match in graph.objects(node, SKOS.broadMatch)
                ),
            ),
        )


def _parse(path: Path) -> "Graph":
    try:
        from rdflib import Graph
        from rdflib.plugins.parsers.notation3 import BadSyntax
    except ImportError:
        raise BioclinError(
            f"{path}: to read SKOS, rdflib is needed: pip install 'spacy-bioclin[skos]'"
        ) from None
    syntax = SYNTAXES.get(suffix(path), "turtle")
    if syntax == "xml":
        _check_entities(path)
    graph = Graph()
    # It prints a traceback for each value that is not of its type; we read texts only.
    logging.getLogger("rdflib.term").setLevel(logging.CRITICAL)
    with open_bytes(path) as file:
        source = cast(BinaryIO, _Bounded(file, path))
        try:
            return graph.parse(source, format=syntax, publicID="urn:bioclin:")
        # A syntax error's own message quotes pages of the file.
        except BadSyntax as error:
            where = f", line {error.lines + 1}"
        except SAXException as error:
            where = f", line {getattr(error, 'getLineNumber', lambda: '?')()}"
        except (BioclinError, OSError, EOFError, LZMAError, zlib.error, MemoryError):
            raise
        except Exception:  # also IndexError, AssertionError and others, on files that are cut off
            where = ""
    raise BioclinError(
        f"{path}{where}: cannot be read as RDF ({syntax}); is it cut off, or the suffix wrong?"
    )


class _Bounded:
    """A file that ends with an error where nobody has the memory for its graph.

    RAISES (BioclinError): When more than `MAX_BYTES` were read, after decompression.
    """

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._file, self._path, self._left = file, path, MAX_BYTES

    def read(self, size: int = -1) -> bytes:
        """Read bytes."""
        content = self._file.read(self._left + 1 if size < 0 else size)
        self._left -= len(content)
        if self._left < 0:
            raise BioclinError(
                f"{self._path}: over {MAX_BYTES:,} bytes, and the whole graph is held in memory; "
                "split it, or give another format"
            )
        return content

    def close(self) -> None:
        """Leave the file open, which `open_bytes` closes."""


def _check_entities(path: Path) -> None:
    """Refuse entities of a document type that hold others, are long, or come from elsewhere.

    Short ones, for the beginnings of addresses, are usual in RDF/XML.

    RAISES (BioclinError): There is one.
    """
    parser = expat.ParserCreate()

    class Root(Exception):
        """The document type ends where the root element begins."""

    def stop(*_: object) -> None:
        raise Root

    def check(name: str, _: object, value: str | None, *__: object) -> None:
        if value is None or "&" in value or "%" in value or len(value) > MAX_ENTITY:
            raise BioclinError(
                f"{path}, line {parser.CurrentLineNumber}: the entity {name[:20]!r} is not a short "
                "text; it is not read, because it could stand for any amount of text"
            )

    parser.StartElementHandler, parser.EntityDeclHandler = stop, check
    with open_bytes(path) as file, suppress(Root, expat.ExpatError):
        parser.ParseFile(file)


def _labels(graph: "Graph", node: "Node", kind: str) -> list[Alias]:
    """List the labels of a kind ("prefLabel") and of SKOS-XL, English first, then by language."""
    from rdflib import SKOS, Namespace

    xl = Namespace("http://www.w3.org/2008/05/skos-xl#")
    found = _literals(graph, node, SKOS[kind])
    for label in graph.objects(node, xl[kind]):
        found += _literals(graph, label, xl.literalForm)
    return sorted(set(found), key=_order)


def _literals(graph: "Graph", node: "Node", predicate: "Node") -> list[Alias]:
    from rdflib import Literal

    values = (value for value in graph.objects(node, predicate) if isinstance(value, Literal))
    found = (Alias(clean(str(value)), language_code(value.language or "")) for value in values)
    return sorted((alias for alias in found if alias.text), key=_order)


def _order(alias: Alias) -> tuple[bool, str, str]:
    return alias.lang != "en", alias.lang, alias.text
