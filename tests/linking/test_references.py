"""Codes of concepts in other terminologies: which are found, and what is stored in a Doc."""

import spacy
from spacy.tokens import DocBin

from spacy_bioclin.linking.kb.build import build_kb
from spacy_bioclin.linking.kb.combine import merge_kbs, read_code_map
from spacy_bioclin.linking.kb.concepts import Concept, SkipReport
from spacy_bioclin.linking.kb.knowledge_base import KnowledgeBase
from spacy_bioclin.linking.references import Code, Codes, find_codes, group_codes

CONCEPTS = (
    Concept(
        "D:1", "flumpitis", xrefs=("<ICD:F1", "ICD:F1.2", "<OLD:7", "S:4", "S:5", "http://x/1")
    ),
    Concept("D:2", "glorbitis", xrefs=("S:9",), alternative_ids=("M:2",)),
    Concept("77", "a concept without a system"),
)


def make_kb(path) -> KnowledgeBase:
    return build_kb(CONCEPTS, path / "kb")


def test_broader_codes_are_left_out_where_there_are_others(tmp_path):
    kb = make_kb(tmp_path)
    assert group_codes(find_codes(kb, "D:1")) == {
        "D": Codes("exact", ("1",)),
        "ICD": Codes("exact", ("F1.2",)),
        "OLD": Codes("broader", ("7",)),
        "S": Codes("several", ("4", "5")),
    }
    assert find_codes(kb, "77") == find_codes(kb, "") == ()
    # Of a composite mention, each part has its own.
    assert group_codes(find_codes(kb, "D:1|D:2"))["S"] == Codes("several", ("4", "5", "9"))


def test_a_hospital_maps_to_its_own_codes(tmp_path):
    table = tmp_path / "map.csv"
    table.write_text("code,maps_to\nOLD:7,WARD:old\nICD:F1.2,WARD:a|X:1\nM:2,X:2\n", "utf-8")
    codes = read_code_map(table, SkipReport())
    kb, _ = merge_kbs([make_kb(tmp_path)], tmp_path / "own", codes=codes)
    assert Code("D:1", "WARD", "a", "exact") in find_codes(kb, "D:1")  # and not the broader one
    assert Code("D:2", "X", "2", "exact") in find_codes(kb, "D:2")


def test_the_linker_stores_them(tmp_path):
    make_kb(tmp_path)
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "A", "pattern": name} for name in ("flumpitis", "nothing")])
    nlp.add_pipe("bioclin_linker", config={"kb": str(tmp_path / "kb")})
    doc = nlp("flumpitis, nothing")
    [doc] = DocBin(docs=[doc], store_user_data=True).get_docs(nlp.vocab)
    assert doc.ents[0]._.codes["ICD"] == Codes("exact", ("F1.2",))
    assert doc.ents[1]._.codes == {}
