"""What the builder keeps, joins, leaves out and counts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_bioclin.errors import BioclinError
from spacy_bioclin.linking.kb.build import KbBuilder, build_kb
from spacy_bioclin.linking.kb.concepts import Alias, Concept, SkipReport, is_type, wrong_id
from spacy_bioclin.linking.names.index import index_names
from spacy_bioclin.linking.names.normalize import name_key, normalize


def make(*records, langs=(), types=()):
    report = SkipReport()
    builder = KbBuilder(report, langs=langs)
    for record in records:
        builder.add(record)
    return builder.build(types=types), report


def test_records_of_one_id_are_joined():
    kb, report = make(
        Concept("a", "one", "en", (Alias("uno", "es"),), ("T1",), "", ("b",), ("X:1",)),
        Concept("b", "two"),
        Concept("a", aliases=(Alias("first", "en"),), types=("T2", "T1"), definition="The first."),
        Concept("a", definition="Not read.", parents=("b",), xrefs=("X:2", "X:1")),
    )
    assert kb.concept("a") == Concept(
        "a",
        "one",
        "en",
        (Alias("uno", "es"), Alias("first", "en")),
        ("T1", "T2"),
        "The first.",
        ("b",),
        ("X:1", "X:2"),
    )
    assert report.counts == {}
    assert (kb.meta["n_concepts"], kb.meta["n_names"], kb.meta["langs"]) == (2, 4, ["", "en", "es"])


# As SNOMED CT comes: a preferred name in each language, fully specified names as aliases.
RF2 = (
    Concept("22298006", aliases=(Alias("Myocardial infarction", "en"),)),
    Concept("22298006", "Heart attack", "en"),
    Concept("22298006", aliases=(Alias("infarto", "es"),)),
    Concept("22298006", "infarto de miocardio", "es"),
)


def test_preferred_name():
    spanish = ["infarto de miocardio", "infarto"]
    both = ["Heart attack", "Myocardial infarction", *spanish]
    for langs, names in (((), both), (("es",), spanish), (("es", "en"), both)):
        kb, report = make(*RF2, langs=langs)
        assert list(kb.names) == names
        wanted = {"name in language en, not asked for": 2} if langs == ("es",) else {}
        assert report.counts == wanted


def test_preferred_names_come_first_in_each_language():
    """All other names, and languages, stay in the order of the records."""
    kb, report = make(
        Concept("a", aliases=(Alias("b", "es"), Alias("c", "en"), Alias("d", "fr"))),
        Concept("a", "e", "en", (Alias("f", "es"), Alias("g"))),
        Concept("a", "h", "es", (Alias("i", "fr"),)),
        Concept("a", "j", "es"),
        Concept("a", "k", "en"),
        Concept("a", "l"),
        Concept("z", aliases=(Alias("m", "es"), Alias("n", "en"))),
    )
    assert list(kb.names) == ["e", "h", "b", "c", "d", "f", "l", "g", "i", "j", "k", "m", "n"]
    names = {lang: kb.name_of(0, lang) for lang in ("", "en", "es", "fr", "de")}
    assert names == {"": "e", "en": "e", "es": "h", "fr": "d", "de": "e"}
    assert kb.name_of(1, "en") == "n" and kb.name_of(1) == "m"
    assert report.counts == {"second preferred name in a language (kept as alias)": 2}
    kb.verify()


def test_preferred_name_that_came_as_alias_before():
    kb, report = make(Concept("a", aliases=(Alias("x y"), Alias("x"))), Concept("a", "x"))
    assert list(kb.names) == ["x", "x y"]
    assert report.counts == {"alias that its concept has already (kept once)": 1}


def test_no_preferred_name_in_the_language():
    kb, _ = make(Concept("a", "one", "en", (Alias("uno", "es"), Alias("un", "es"))), langs=["es"])
    assert kb.concept("a") == Concept("a", "uno", "es", (Alias("un", "es"),))


def test_repeated_and_second_preferred_names():
    kb, report = make(
        Concept("a", "one", "en"),
        Concept("a", "one", "en"),  # as tables that belong together do
        Concept("a", "first", "en"),
        Concept("a", aliases=(Alias("one"), Alias("  one "), Alias("One"))),
    )
    assert list(kb.names) == ["one", "first", "One"]
    assert report.as_dict() == {
        "alias that its concept has already (kept once)": {"n": 2, "first": ["a", "a"]},
        "second preferred name in a language (kept as alias)": {"n": 1, "first": ["a"]},
    }


def test_what_cannot_be_a_name():
    _, report = make(
        Concept("a", "name", aliases=(Alias("???"), Alias("x" * 501), Alias("'s"), Alias(" ")))
    )
    assert report.as_dict() == {
        "name without a letter (Latin or Greek) or digit": {"n": 3, "first": ["a"] * 3},
        "name over 500 characters": {"n": 1, "first": ["a"]},
    }


def test_languages_and_types_are_filters():
    records = (
        Concept("a", "one", "en", types=("C04.1",)),
        Concept("b", "dos", "es", types=("C04.2", "F03")),
        Concept("c", "drei", "de", types=("C04",)),
        Concept("d", "cuatro", "es", types=("F03",)),
        Concept("e", "five", types=("C04",)),
        Concept("f", types=("C04",)),
    )
    kb, report = make(*records, langs=["es", "en"], types=["C04*"])
    assert list(kb.ids) == ["a", "b", "e"] and kb.meta["types"] == ["C04", "C04.1", "C04.2", "F03"]
    assert kb.types_of(1) == ("C04.2", "F03")
    assert report.as_dict() == {
        "name in language de, not asked for": {"n": 1, "first": ["c"]},
        "concept of another type": {"n": 1, "first": ["d"]},
        "concept without a name in en, es": {"n": 2, "first": ["c", "f"]},
    }
    assert [is_type("C04", w) for w in (["C04"], ["C0*"], ["C"], ["C04.*"], [])] == [
        *(True, True, False, False, False)
    ]


def test_an_alias_that_many_concepts_have_is_left_out():
    serum, own = (Alias("Serum"),), (Alias("Azur"),)
    records = [Concept(str(i), f"test {i}", aliases=serum + own * (i < 100)) for i in range(100)]
    kb, report = make(*records, Concept("only", aliases=serum))
    assert report.counts == {"alias that over 100 concepts have": 100}
    assert kb.concept("0").aliases == own and kb.concept("only").name == "Serum"


def test_a_list_of_ids_and_all_below_some_are_kept():
    records = [
        Concept("a", "a", alternative_ids=("old",)),
        Concept("b", "b", parents=("a",)),
        Concept("c", "c", parents=("b",)),
        Concept("d", "d", parents=("e",)),
        Concept("e", "e", parents=("d",)),
    ]
    for ids, below, kept in (
        (["c", "old"], [], "ac"),
        ([], ["a"], "abc"),
        (["d"], ["b"], "bcd"),
        (["x"], ["old", "d"], "abcde"),
    ):
        builder = KbBuilder(SkipReport())
        for record in records:
            builder.add(record)
        assert "".join(builder.build(ids=ids, below=below).ids) == kept, (ids, below)


def test_nothing_left():
    for filters in ({"langs": ["fr"]}, {"types": ["C99*"]}):
        with pytest.raises(BioclinError, match=r"nothing .* of 1 .*found: \['es'\].*\['T1'\]"):
            make(Concept("a", "uno", "es", types=("T1",)), **filters)
    with pytest.raises(BioclinError, match="nothing is left of 0"):
        make()


def test_circles_of_parents_are_cut_and_counted():
    kb, report = make(
        Concept("a", "a", parents=("b",)),
        Concept("b", "b", parents=("c", "root")),
        Concept("c", "c", parents=("a", "nowhere")),
        Concept("root", "root", parents=("root",)),
    )
    assert [concept.parents for concept in kb] == [(), ("root",), (), ()]
    assert report.as_dict() == {
        "parent in a circle": {"n": 4, "first": ["a", "b", "c", "root"]},
        "parent that is no concept here": {"n": 1, "first": ["c"]},
    }


def test_alternative_ids_of_two():
    kb, report = make(
        Concept("a", "a", alternative_ids=("old", "b", "older")),
        Concept("b", "b", alternative_ids=("old",)),
    )
    assert [concept.alternative_ids for concept in kb] == [("old", "older"), ()]
    assert kb.number("old") == 0 and kb.number("b") == 1
    assert report.counts == {"alternative id that another concept has": 2}


def test_many_skipped_ones_are_counted_once_each():
    _, report = make(*(Concept(f"c{i}") for i in range(40)), Concept("x", "x"))
    assert report.as_dict() == {
        "concept without a name": {"n": 40, "first": ["c0", "c1", "c2", "c3", "c4"]}
    }


def test_too_many_languages():
    with pytest.raises(BioclinError, match="language number 257"):
        make(*(Concept("a", f"name {i}", f"l{i}") for i in range(300)))


def test_a_kb_without_anything_but_names(tmp_path):
    kb = build_kb([Concept("a", "one")], tmp_path / "kb")
    kb.verify()
    assert list(kb) == [Concept("a", "one")]


def test_meta(tmp_path):
    meta = {"name": "n", "version": "1", "sources": [{"file": "f"}]}
    report = SkipReport()
    report.skip("obsolete", "/home/somebody/file, line 1")
    kb = build_kb([Concept("a", "one")], tmp_path / "kb", meta=meta, report=report)
    assert {key: kb.meta[key] for key in meta} == meta
    assert kb.meta["skipped"] == {"obsolete": 1}, "no paths"


IDS = st.text(min_size=1, max_size=3).filter(lambda id: not wrong_id(id))
NAMES = st.lists(st.text("abc äα'-,12", min_size=1, max_size=8), max_size=4)


@settings(max_examples=20)
@given(st.dictionaries(IDS, NAMES, min_size=1, max_size=6))
def test_every_name_is_found(named):
    records = [Concept(id, aliases=tuple(map(Alias, names))) for id, names in named.items()]
    builder = KbBuilder(SkipReport())
    for record in records:
        builder.add(record)
    cleaned = {
        id: list(dict.fromkeys(" ".join(n.split()) for n in names if normalize(n)))
        for id, names in named.items()
    }
    wanted = {id: names for id, names in cleaned.items() if names}
    if not wanted:
        with pytest.raises(BioclinError):
            builder.build()
        return
    kb = builder.build()
    assert list(kb.ids) == sorted(wanted)
    for i, id in enumerate(kb.ids):
        rows = range(kb.first_name[i], kb.first_name[i + 1])
        assert [kb.names[row] for row in rows] == wanted[id]
        for row in rows:
            name = kb.names[row]
            assert kb.name_concept[row] == i
            assert row in kb.exact([name])[0]
            assert row in kb.same_key([name_key(name)])[0]
            # Words that are little alike count as different: not always 1.
            assert kb.similar.search([name_key(name)], 1)[1][0, 0] > 0.5


def test_order_of_names_and_keys():
    arrays = index_names(["zeta", "alfa", "Alfa", "zetas", "beta"])
    assert arrays["key_names"].tolist() == [0, 3, 1, 2, 4], "keys as they first occur"
    assert arrays["key_names_start"].tolist() == [0, 2, 4, 5]
    assert np.all(np.diff(arrays["exact_hash"].astype(object)) >= 0)
