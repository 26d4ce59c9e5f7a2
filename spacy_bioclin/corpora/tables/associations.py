"""Sentences that say, or do not say, that a gene and a disease are associated.

Both names are masked, as in the distribution of BioBERT: "@GENE$ is not involved in @DISEASE$."

Bravo et al. (2015), Extraction of relations between genes and diseases (GAD); van Mulligen et al.
(2012), The EU-ADR corpus; Lee et al. (2020), BioBERT.
"""

import csv
import io
from collections.abc import Mapping
from pathlib import Path

from ...errors import BioclinError
from ..files import BOM, check_offsets, read_text
from ..texts import LabeledText

YES, NO = "yes", "no"
GAD_LABELS = {"0": NO, "1": YES}
GAD_HEADER = "index\t"
MASKS = {
    "Genes & Molecular Sequences": "@GENE$",
    "SNP & Sequence variations": "@GENE$",
    "Diseases & Disorders": "@DISEASE$",
    "Chemicals & Drugs": "@CHEMICAL$",
}
# EU-ADR: positive, negative and speculative associations, and entities without any ("false").
EUADR_LABELS = {"PA": YES, "NA": YES, "SA": YES, "FA": NO}
EUADR_COLUMNS = (
    *("ASSOCIATION_TYPE", "PMID", "SENTENCE"),
    *(f"ENTITY{n}_{field}" for n in (1, 2) for field in ("INI", "END", "TYPE")),
)


def read_gad(path: Path) -> list[LabeledText]:
    """Read a file of one fold of GAD, as BioBERT distributes it.

    path (Path): train.tsv (sentence and label), or test.tsv (with a header and an index, too). The
        name begins the ids.
    RETURNS (list[LabeledText]): The sentences with "yes" or "no".
    RAISES (BioclinError): A line cannot be read; it names file and line.
    """
    rows: list[LabeledText] = []
    content = read_text(path).removeprefix(BOM)
    for line, cells in enumerate((line.split("\t") for line in content.splitlines()), start=1):
        if line == 1 and cells[0] == GAD_HEADER.strip():
            continue
        if len(cells) not in (2, 3) or cells[-1] not in GAD_LABELS:
            raise BioclinError(f"{path}, line {line}: want a sentence and the label 0 or 1")
        label = GAD_LABELS[cells[-1]]
        rows.append(LabeledText(f"{path.stem}-{len(rows)}", (cells[-2],), (label,), None))
    return rows


def read_euadr(path: Path) -> list[LabeledText]:
    """Read a file of EU-ADR: sentences with two entities, which are masked here.

    path (Path): A .csv file, with tabs between quoted cells, in Latin-1.
    RETURNS (list[LabeledText]): The sentences with "yes" for positive, negative and speculative
        associations, and "no" for false ones. An id is that of the abstract and a number.
    RAISES (BioclinError): A row cannot be read; it names file and line.
    """
    file = io.StringIO(read_text(path, "latin-1"), newline="")
    reader = csv.DictReader(file, delimiter="\t", strict=True)
    missing = [name for name in EUADR_COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise BioclinError(f"{path}, line 1: no column {missing[0]!r}; is it a file of EU-ADR?")
    rows = []
    try:
        for number, values in enumerate(reader):
            where = f"{path}, line {reader.line_num}"
            if None in values or None in values.values():
                raise BioclinError(f"{where}: the number of cells is not that of the header")
            if values["ASSOCIATION_TYPE"] not in EUADR_LABELS:
                raise BioclinError(f"{where}: ASSOCIATION_TYPE is not PA, NA, SA or FA")
            label = EUADR_LABELS[values["ASSOCIATION_TYPE"]]
            text = _mask_entities(values, where)
            rows.append(LabeledText(f"{values['PMID']}-{number}", (text,), (label,), None))
    except csv.Error:
        raise BioclinError(f"{path}: a quotation mark is not closed, or not doubled") from None
    return rows


def _mask_entities(values: Mapping[str, str], where: str) -> str:
    """Replace the two entities of a sentence by their masks.

    RAISES (BioclinError): The entities overlap, are not in the sentence, or have an unknown type.
    """
    text = values["SENTENCE"]
    found = []
    for entity in ("ENTITY1", "ENTITY2"):
        ends = values[f"{entity}_INI"], values[f"{entity}_END"]
        start, end = check_offsets(*ends, len(text), where)
        mask = MASKS.get(values[f"{entity}_TYPE"])
        if mask is None:
            raise BioclinError(f"{where}: {entity}_TYPE is not one of {', '.join(MASKS)}")
        found.append((start, end, mask))
    (start, end, mask), (next_start, next_end, next_mask) = sorted(found)
    if end > next_start:
        raise BioclinError(f"{where}: the two entities overlap")
    return f"{text[:start]}{mask}{text[end:next_start]}{next_mask}{text[next_end:]}"
