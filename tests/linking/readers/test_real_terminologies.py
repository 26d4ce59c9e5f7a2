"""The real terminologies, with the counts of their data sheet."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from spacy_bioclin.linking.kb.concepts import SkipReport
from spacy_bioclin.linking.readers import detect_format, read_concepts

pytestmark = pytest.mark.corpora

LAY = {"id": "?term", "name": "?term_label", "alias": "?layperson"}
SMALL = (
    "doid/DO_cancer_slim.obo",
    "doid/doid-es-translated.tsv",
    "cantemist/terminology/icdo3_morphology_es_6chars.tsv",
    "cantemist/terminology/icdo3_morphology_en.txt",
)
Row = tuple[str, str, Mapping[str, str] | None, int, int, int]
NUMBERS = {"id": "1", "name": "2", "alias": "3"}


# file, format, columns, records, aliases, what is skipped
COUNTS: list[Row] = [
    # 12,358 terms, 132 of them obsolete, 56 with the term that replaces them
    ("hpo/hp-2017-04-13.obo.xz", "obo", None, 12226 + 56, 15487, 132 + 456),
    ("hpo/hp-es.babelon.tsv", "babelon", None, 2 * 19676, 0, 256),  # 19,932 rows, all labels
    ("hpo/layperson-synonyms.tsv", "table", LAY, 7186, 7186, 0),
    ("doid/HumanDO-2015-11-11.obo.xz", "obo", None, 9183 - 2371, 13029, 2371),
    ("doid/DO_cancer_slim.obo", "obo", None, 730, 1263, 2),
    ("doid/DO_rare_slim.obo", "obo", None, 3460, 8635, 22),
    ("doid/HumanDO_hierarchy.tsv", "table", None, 12296, 0, 0),
    ("doid/MESHinDO.tsv", "table", None, 4023, 0, 0),
    # two names a synonym (3,809 exact, 100 related, 6 narrow; 7 broad left out), two records a
    # label
    ("doid/doid-es-translated.tsv", "babelon", None, 5974 + 13, 2 * 3915, 7),
    ("medic/medic_06Jul2012.txt", "names", None, 11915, 76237 - 11915, 0),
    # 6,482 ids, one of them in rows that are apart
    ("mesh/mesh_disease_scr.tsv", "mesh-tsv", None, 6483, 0, 0),
    ("cantemist/terminology/icdo3_morphology_es_6chars.tsv", "table", None, 1522, 1522, 0),
    ("cantemist/terminology/icdo3_morphology_es_7chars.tsv", "table", None, 4205, 4205, 0),
    ("cantemist/terminology/icdo3_morphology_en.txt", "table", None, 2270, 0, 2),
    ("cantemist/terminology/valid-codes.tsv", "table", NUMBERS, 4205, 4205, 53857),
]


def check(data_dir: Path, *rows: Row) -> None:
    found = []
    for file, format, columns, *_ in rows:
        report = SkipReport()
        if not columns:
            assert detect_format(data_dir / file) == format
        concepts = list(read_concepts(data_dir / file, report, columns=columns))
        reasons = report.counts.items()
        kept = ("value in column", "line with broken characters", "commas in column")
        skipped = sum(n for reason, n in reasons if not reason.startswith(kept))
        aliases = sum(len(concept.aliases) for concept in concepts)
        found.append((file, format, columns, len(concepts), aliases, skipped))
        assert all(concept.id and not concept.id.startswith("<") for concept in concepts)
    assert found == list(rows)


def test_counts_of_small_files(data_dir: Path) -> None:
    check(data_dir, *(row for row in COUNTS if row[0] in SMALL))


@pytest.mark.slow
def test_counts(data_dir: Path) -> None:
    check(data_dir, *(row for row in COUNTS if row[0] not in SMALL))


@pytest.mark.slow
def test_hpo_has_its_hierarchy_and_cross_references(data_dir: Path) -> None:
    concepts = list(read_concepts(data_dir / "hpo/hp-2017-04-13.obo.xz", SkipReport()))
    assert sum(len(concept.parents) for concept in concepts) == 16044
    prefixes = [xref.split(":")[0] for concept in concepts for xref in concept.xrefs]
    counts = {prefix: prefixes.count(prefix) for prefix in ("UMLS", "SNOMEDCT_US", "MSH")}
    # 13,171 of UMLS in the file, 8 of them of obsolete terms
    assert counts == {"UMLS": 13163, "SNOMEDCT_US": 4706, "MSH": 2187}
    ids = {concept.id for concept in concepts}
    assert {parent for concept in concepts for parent in concept.parents} <= ids
