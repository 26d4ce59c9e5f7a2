"""OBO: tags, scopes, escapes, obsolete terms, and what is wrong in a file."""

from pathlib import Path

import pytest

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.kb.concepts import Alias, Concept, SkipReport
from spacy_bioclin.linking.readers.obo import read_obo

HEADER = "format-version: 1.2\ndefault-namespace: organs\n\n"


def read(tmp_path: Path, text: str) -> tuple[list[Concept], SkipReport]:
    path = tmp_path / "x.obo"
    path.write_text(text, "utf-8")
    report = SkipReport()
    return list(read_obo(path, report)), report


def test_a_term_with_every_tag(tmp_path: Path) -> None:
    concepts, report = read(
        tmp_path,
        HEADER + "[Term]\n"
        "id: T:1 ! a comment\n"
        'name: pain\\, of the  knee {source="A:1"}\n'
        "alt_id: T:8\nalt_id: T:9\n"
        'def: "Pain \\"here\\".\\nAnd there." [url:http\\://x.y/z]\n'
        "subset: core\n"
        'synonym: "gonalgia" EXACT []\n'
        'synonym: "sore {left} ! knee" RELATED layperson [] {comment="x"}\n'
        'synonym: "left knee pain" NARROW []\n'
        'synonym: "pain" BROAD []\n'
        'synonym: "no scope" []\n'
        'exact_synonym: "old tag" [A:1]\n'
        'xref: UMLS:C1 "its name"\nxref: url:http\\://x.y\n'
        'is_a: http://purl.obolibrary.org/obo/T_0 {is_inferred="true"} ! pain\n'
        "relationship: part_of T:5 ! leg\n"
        "\n[Typedef]\nid: part_of\nname: part of\n",
    )
    texts = ["gonalgia", "sore {left} ! knee", "left knee pain", "no scope", "old tag"]
    assert concepts == [
        Concept(
            "T:1",
            "pain, of the knee",
            aliases=tuple(map(Alias, texts)),
            types=("organs", "core"),
            definition='Pain "here". And there.',
            parents=("T:0",),
            xrefs=("UMLS:C1", "url:http://x.y"),
            alternative_ids=("T:8", "T:9"),
        )
    ]
    assert report.as_dict() == {"broad synonym": {"n": 1, "first": ["T:1"]}}


def test_the_own_namespace_comes_before_the_default(tmp_path: Path) -> None:
    concepts, _ = read(tmp_path, HEADER + "[Term]\nid: T:1\nname: a\nnamespace: bones\n")
    assert concepts[0].types == ("bones",)


def test_obsolete_terms_lead_to_the_one_that_replaces_them(tmp_path: Path) -> None:
    concepts, report = read(
        tmp_path,
        HEADER
        + "[Term]\nid: T:1\nname: gone\nis_obsolete: true\n\n"
        + "[Term]\nid: T:2\nname: gone\nalt_id: T:3\nis_obsolete: true\nreplaced_by: T:4\n\n"
        + "[Term]\nid: T:5\nname: gone\nis_obsolete: true\nreplaced_by: T:6\nreplaced_by: T:7\n\n"
        + "[Term]\nid: T:8\nname: here\nis_obsolete: false\n",
    )
    assert [concept.id for concept in concepts[:-1]] == ["T:8"]
    assert concepts[-1] == Concept("T:4", alternative_ids=("T:2", "T:3"))
    assert report.places == {"obsolete": ["T:1", "T:2", "T:5"]}


def test_chains_of_obsolete_terms_are_followed(tmp_path: Path) -> None:
    chains = {"1": ["2"], "2": ["3"], "4": ["5"], "5": ["4"], "6": ["7"], "7": [], "8": ["8"]}
    chains |= {"9": ["A"], "A": ["1", "3"], "B": ["1"]}
    stanzas = (
        f"[Term]\nid: T:{id}\nname: gone\nis_obsolete: true\nalt_id: U:{id}\n"
        + "".join(f"replaced_by: T:{new}\n" for new in successors)
        for id, successors in chains.items()
    )
    concepts, report = read(
        tmp_path, HEADER + "\n".join(stanzas) + "\n[Term]\nid: T:3\nname: here\n"
    )
    assert [concept.id for concept in concepts] == ["T:3"] * 4
    assert [concept.alternative_ids for concept in concepts[1:]] == [
        ("T:1", "U:1"),
        ("T:2", "U:2"),
        ("T:B", "U:B"),
    ]
    assert report.counts == {"obsolete": 10, "obsolete, and replaced by no current term": 5}
    lost = ["T:4", "T:5", "T:6", "T:8", "T:9"]
    assert report.places["obsolete, and replaced by no current term"] == lost


def test_broken_terms_are_counted(tmp_path: Path) -> None:
    concepts, report = read(
        tmp_path,
        "[Term]\nname: no id\n\n[Term]\nid: T:1\n\n[Term]\nid: T:2\nname: b\nsynonym: bare\n"
        'synonym: "" EXACT []\nno tag here\n',
    )
    assert concepts == [Concept("T:2", "b")]
    assert report.counts == {
        "term without an id": 1,
        "term without a name": 1,
        "malformed or empty synonym": 2,
        "line without a tag": 1,
    }
    assert report.places["term without an id"] == [f"{tmp_path / 'x.obo'}, line 1"]


def test_a_file_without_terms_is_an_error(tmp_path: Path) -> None:
    for text in ("", "format-version: 1.2\n", "id\tname\n1\ta\n"):
        with pytest.raises(BioclinError, match=r"x\.obo: no \[Term\]"):
            read(tmp_path, text)
