"""Knowledge bases that are joined or compared."""

import pytest

from spacy_bioclin.linking.kb.build import build_kb
from spacy_bioclin.linking.kb.combine import compare_kbs, merge_kbs
from spacy_bioclin.linking.kb.concepts import Alias, Concept, SkipReport

OLD = (
    Concept("a", "one", "en", (Alias("uno", "es"),), parents=("b",)),
    Concept("b", "two", "en"),
    Concept("c", "three", "en"),
    Concept("e", "five", "en"),
)
NEW = (
    Concept("a", "One", "en", (Alias("uno", "es"), Alias("one", "en"))),
    Concept("b", "two", "en", (Alias("deux", "fr"),), alternative_ids=("c",)),
    Concept("d", "four", "en"),
)


@pytest.fixture
def kbs(tmp_path):
    return [
        build_kb(concepts, tmp_path / name, meta={"sources": [{"file": name, "licence": name}]})
        for name, concepts in (("old", OLD), ("new", NEW))
    ]


def test_merge(kbs, tmp_path):
    report = SkipReport()
    merged, joined = merge_kbs(kbs, tmp_path / "both", meta={"name": "both"}, report=report)
    assert list(merged.ids) == ["a", "b", "c", "d", "e"] and joined == 2
    assert merged.concept("a") == Concept(
        "a", "one", "en", (Alias("uno", "es"), Alias("One", "en")), parents=("b",)
    )
    assert [source["licence"] for source in merged.meta["sources"]] == ["old", "new"]
    assert report.counts["second preferred name in a language (kept as alias)"] == 1
    assert report.counts["alternative id that another concept has"] == 1
    merged.verify()


def test_the_preferred_names_of_the_first_count_in_each_language(tmp_path):
    first = Concept(
        *("a", "one", "en", (Alias("uno", "es"), Alias("ein", "de"), Alias("un", "es"))),
        types=("number",),
    )
    second = Concept("a", "un", "es", (Alias("una", "es"), Alias("first", "en")))
    kbs = [build_kb([c], tmp_path / c.name) for c in (first, second)]
    merged, _ = merge_kbs(kbs, tmp_path / "both")
    assert [merged.name_of(0, lang) for lang in ("en", "es", "de")] == ["one", "uno", "ein"]
    assert merged.concept("a") == first._replace(
        aliases=(*first.aliases, Alias("una", "es"), Alias("first", "en"))
    )


def test_compare(kbs):
    changes = compare_kbs(*kbs)
    assert changes._asdict() == {
        "added": ["d"],
        "removed": ["e"],
        "merged": {"c": "b"},
        "renamed": {"a": ("one", "One")},
        "names_added": {"a": ["One"], "b": ["deux"]},
        "names_removed": {},
    }
    assert changes.counts() == {
        **{"added": 1, "removed": 1, "merged": 1, "renamed": 1},
        **{"names_added": 2, "names_removed": 0},
    }


def test_compare_with_itself(kbs):
    assert not any(compare_kbs(kbs[0], kbs[0]))
