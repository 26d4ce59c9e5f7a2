"""Files of every corpus format, whole and damaged, and what must hold of whatever reads them."""

import random
import re
import traceback
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from spacy.language import Language

from spacy_bioclin.corpora.agreement.i2b2_xml import format_i2b2
from spacy_bioclin.corpora.bioc_format import format_bioc
from spacy_bioclin.corpora.brat import format_brat
from spacy_bioclin.corpora.columns import format_columns
from spacy_bioclin.corpora.convert import make_nlp
from spacy_bioclin.corpora.docbin import write_docs
from spacy_bioclin.corpora.docs import ALL_ENTS, make_gold_doc
from spacy_bioclin.corpora.formats import FORMATS
from spacy_bioclin.corpora.pubtator import format_pubtator
from spacy_bioclin.corpora.tools.doccano import format_doccano
from spacy_bioclin.corpora.tools.inception import format_inception
from spacy_bioclin.corpora.tools.label_studio import format_label_studio
from spacy_bioclin.corpora.tools.prodigy import format_prodigy
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.types import AnnotatedText, RelationAnnotation, SpanAnnotation

# What no message, log or exception may hold: it stands for the text of a note.
CANARY = "Zkanarienvogel"
TEXT = f"{CANARY} Pérez tiene fiebre alta\nIngresa {CANARY} por neumonía en el {CANARY}"
SPANS = (
    SpanAnnotation("T1", "PER", ((0, 20),), f"{CANARY} Pérez", ("C1",)),
    SpanAnnotation("T2", "DIS", ((27, 33),), "fiebre"),
)
RELATION = RelationAnnotation("R1", "rel", (("Arg1", "T1"), ("Arg2", "T2")))
DOCUMENT = AnnotatedText("d1", TEXT, (*SPANS, RELATION))
# What is put into files in place of bytes and of numbers.
PIECES = [b"\x00", b"\xff", b"-1", b"99999999999", b"1e999", b"NaN", b"\xc2\xb2", b"\xed\xa0\x80"]
PIECES += [b"9" * 5000, b"null", b"[]", b"{}", b'"', b"\t", b"\r", b"\n\n", b"<!--", b"&x;", b"]]>"]
PIECES += [b"|", b";", b" ", "٣".encode(), b"1.5", b"true", b"\\ud800"]
NUMBER = re.compile(rb"\d+")


def make_files(folder: Path) -> dict[str, bytes]:
    """Make a whole file of every format.

    RETURNS (dict[str, bytes]): "FORMAT.SUFFIX" -> content.
    """
    flat = DOCUMENT._replace(annotations=SPANS)
    doc = make_gold_doc(make_nlp("es"), DOCUMENT, layers=ALL_ENTS, task="t")
    write_docs([doc], folder / "whole.spacy")
    return {
        "brat.ann": format_brat(DOCUMENT)[".ann"].encode(),
        "pubtator.txt": format_pubtator([DOCUMENT]).encode(),
        "i2b2.xml": format_i2b2(flat).encode(),
        "bioc.xml": format_bioc([DOCUMENT]).encode(),
        "bioc.json": format_bioc([DOCUMENT], as_json=True).encode(),
        "columns.conll": format_columns([flat]).encode(),
        "i2b2-2010.con": make_i2b2_2010().encode(),
        "i2b2-2012.xml": make_i2b2_2012().encode(),
        "share-clef.pipe": make_share_clef().encode(),
        "label-studio.json": format_label_studio([DOCUMENT])
        .replace("predictions", "annotations")
        .encode(),
        "doccano.jsonl": format_doccano([DOCUMENT]).encode(),
        "prodigy.jsonl": format_prodigy([DOCUMENT])
        .replace('"tokens":', '"answer": "accept", "tokens":')
        .encode(),
        "inception.xmi": format_inception(DOCUMENT)[".xmi"].encode(),
        "spacy.spacy": (folder / "whole.spacy").read_bytes(),
    }


def make_i2b2_2010() -> str:
    """Make the concepts of TEXT, which is beside them."""
    return (
        f'c="{CANARY.lower()} pérez" 1:0 1:1||t="PER"\n'
        'c="fiebre" 1:3 1:3||t="DIS"\n'
        f'c="{CANARY}" 2:1 2:1||t="PER"\n'
    )


def make_i2b2_2012() -> str:
    """Make a file of TEXT whose tags are on lines of their own."""
    tags = "\n".join(
        f'<EVENT id="{span.id}" start="{span.fragments[0][0] + 1}" '
        f'end="{span.fragments[0][1] + 1}" text="{span.surface}" type="{span.label}" />'
        for span in SPANS
    )
    link = '<TLINK id="L1" fromID="T1" toID="T2" type="BEFORE" />'
    text = f"<TEXT><![CDATA[{TEXT}]]></TEXT>"
    return f'<?xml version="1.0"?>\n<X>\n{text}\n<TAGS>\n{tags}\n{link}\n</TAGS>\n</X>\n'


def make_share_clef() -> str:
    """Make the disorders of TEXT, which is beside them as x.txt.

    The first line is empty, since an "x" is taken for the begin of compressed data.
    """
    return "\nx.txt||DIS||C1||27||33\nx.txt||PER||CUI-less||0||14||15||20\n"


def truncated(data: bytes, n: int) -> Iterator[bytes]:
    """Cut a file at about n places."""
    for end in range(0, len(data), max(1, len(data) // n)):
        yield data[:end]


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Change a few bytes or numbers of a file, or take some out; of a DocBin, inside too."""
    packed = data[:1] == b"\x78" and rng.random() < 0.8
    content = bytearray(zlib.decompress(data) if packed else data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(content))
        kind = rng.randrange(4)
        if kind == 0 or packed:
            content[at] = rng.randrange(256)
        elif kind == 1:
            content[at:at] = rng.choice(PIECES)
        elif kind == 2:
            del content[at : at + rng.randrange(1, 20)]
        elif numbers := [found.span() for found in NUMBER.finditer(content)]:
            start, end = rng.choice(numbers)
            content[start:end] = rng.choice(PIECES)
        content = content or bytearray(b"x")
    return zlib.compress(content) if packed else bytes(content)


def recoded(data: bytes) -> Iterator[bytes]:
    """Write a text file in other encodings."""
    for encoding in ("utf-16", "utf-32", "latin-1", "utf-8-sig"):
        yield data.decode().encode(encoding, "replace")


def check_message(error: BaseException, *names: str) -> None:
    """Check the error of a reader: one line that names the file, and nothing of what is in it.

    names (str): What the message must name.
    """
    assert isinstance(error, BioclinError), type(error)
    message = str(error)
    assert "\n" not in message and len(message) < 1000
    for name in names:
        assert name in message
    chain: list[BaseException] = [error]
    for each in chain:
        assert CANARY not in "".join(traceback.format_exception_only(each))
        assert CANARY not in repr(each.args)
        chain += [e for e in (each.__cause__, each.__context__) if e is not None]


def read_as_users_do(format: str, path: Path) -> list[AnnotatedText]:
    """Read a corpus file, and make Docs of it.

    RAISES (BioclinError): The file or a document cannot be read.
    """
    documents = FORMATS[format].read(path)  # type: ignore[call-arg]
    for document in documents:
        doc = make_gold_doc(_nlp(), document, layers=ALL_ENTS, task="t")
        assert doc.text == document.text
    return documents


@cache
def _nlp() -> Language:
    return make_nlp("es")
