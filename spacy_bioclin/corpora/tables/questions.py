"""The pairs of questions of RQE: does every answer to the second one answer the first one, too?

A file is XML: `<pair pid="1" value="true"><chq>…</chq><faq>…</faq></pair>`. Line breaks in a
question are those of the file, so white space is that of one line.

Ben Abacha and Demner-Fushman (2016), Recognizing Question Entailment for Medical Question
Answering.
"""

from pathlib import Path

from lxml import etree

from ...errors import BioclinError
from ..files import BOM, check_no_entities, read_text
from ..texts import LabeledText

VALUES = ("false", "true")


def read_questions(path: Path) -> list[LabeledText]:
    """Read a file of pairs.

    path (Path): A file such as RQE_Train_8588_AMIA2016.xml, whose second part ("train") begins the
        ids.
    RETURNS (list[LabeledText]): The pairs with the label "true" or "false". One question of the
        training file is empty.
    RAISES (BioclinError): The file is malformed; it names file and line.
    """
    content = read_text(path).removeprefix(BOM)
    check_no_entities(content, str(path))
    parser = etree.XMLParser(encoding="utf-8", resolve_entities=False, no_network=True)
    try:
        root = etree.fromstring(content.encode("utf-8"), parser)
    except etree.XMLSyntaxError as error:
        raise BioclinError(f"{path}, line {error.lineno}: malformed XML") from None
    split = path.stem.lower().removeprefix("rqe_").partition("_")[0]
    rows = []
    for pair in root.iter("pair"):
        where = f"{path}, line {pair.sourceline}"
        id, value = pair.get("pid", "").strip(), pair.get("value", "").strip()
        if not id or value not in VALUES:
            raise BioclinError(f'{where}: want a pair with a pid and the value "true" or "false"')
        chq, faq = (" ".join((pair.findtext(name) or "").split()) for name in ("chq", "faq"))
        rows.append(LabeledText(f"{split}-{id}", (chq, faq), (value,), None))
    return rows
