"""The suite that measures the rules is what it says, and its scores are right.

The benchmarks are imported in the tests, which few runs need.
"""

import random
from collections import defaultdict

import pytest

from spacy_bioclin.deid.labels import load_types
from spacy_bioclin.deid.spans import PhiSpan


@pytest.mark.slow
def test_items_and_look_alikes_are_what_they_say():
    from benchmarks.deid.phi_suite import generate

    texts = {}
    for split in ("dev", "test"):
        items, look_alikes = generate.make_items(split), generate.make_look_alikes(split)
        assert {item.lang for item in items} == {item.lang for item in look_alikes} == {"es", "en"}
        variants = defaultdict(set)
        for item in items:
            variants[item.kind].add(item.variant)
            assert "[[" not in item.text and "{" not in item.text, item.kind
            [counted] = [gold for gold in item.gold if gold.counted]
            assert counted.phi_type == generate.load_kinds()[item.kind]["type"]
            for gold in item.gold:
                value = item.text[gold.start : gold.end]
                assert value and value == value.strip() and gold.phi_type in load_types(), item
        few = {kind: len(written) for kind, written in variants.items() if len(written) < 20}
        assert set(variants) == set(generate.load_kinds()) and not few
        for item in look_alikes:
            assert item.gold == () and item.kind not in generate.load_kinds()
            assert not any(mark in item.text for mark in ("<1", "§", "|1", "[[")), item.kind
        texts[split] = [{item.text for item in part} for part in (items, look_alikes)]
    assert generate.make_items.__wrapped__("dev") == generate.make_items("dev")
    assert not texts["dev"][1] & texts["test"][1]
    assert len(texts["dev"][0] & texts["test"][0]) < 0.01 * len(texts["dev"][0])  # "Desde 2004 …"


@pytest.mark.slow
def test_a_third_of_test_is_unseen():
    from benchmarks.deid.phi_suite import generate

    items, dev = generate.make_items("test"), generate.make_items("dev")
    unseen = [item for item in items if item.unseen]
    assert not any(item.unseen for item in dev)
    assert len(unseen) == generate.ITEMS // 3 * len(generate.load_kinds())
    seen = defaultdict(set)
    for item in (*dev, *items):
        if not item.unseen:
            seen[item.kind].update(item.variant.split(" ‖ ")[:3])
    for item in unseen:
        assert not set(item.variant.split(" ‖ ")[:3]) <= seen[item.kind], item.variant


def test_values_of_the_suite_pass_their_checks():
    """Examples published by the issuers: NASS (TGSS), VIN (49 CFR 565), DEA and NPI (CMS)."""
    from benchmarks.deid.phi_suite import values

    for kind, (*_, is_valid) in values.CHECKED.items():
        rng = random.Random(0)
        for valid in (True, False) * 5:
            assert bool(is_valid(values.make_checked(kind, rng, valid))) == valid, kind
    assert values.nass_is_valid("281234567840") and not values.nass_is_valid("281234567841")
    assert values.vin_is_valid("1M8GDM9AXKP042788") and not values.vin_is_valid("1M8GDM9A1KP042788")
    assert values.npi_is_valid("1234567893") and not values.npi_is_valid("1234567890")
    assert values.dea_is_valid("AB1234563") and not values.dea_is_valid("AB1234564")


def test_scores_by_hand():
    """DNI found in two pieces (covered, not strict), a phone found too short, a false alarm."""
    from benchmarks.deid import identifiers
    from benchmarks.deid.phi_suite import generate

    text = "DNI 12 345 678 Z, tel. 600 111 222, 5 mg"
    gold = generate.Gold(4, 16, "national_id", True)
    item = generate.Item(text, (gold,), "es", "es_dni", "", True, False)
    spans = [
        PhiSpan(4, 14, "national_id", 0.9, "a"),
        PhiSpan(15, 16, "national_id", 0.9, "b"),
        PhiSpan(36, 40, "date", 0.9, "c"),
    ]
    counts = identifiers.score_item(item, spans)
    assert (counts["gold"], counts["covered"], counts["strict"], counts["typed"]) == (1, 1, 0, 1)
    assert (counts["found"], counts["right"]) == (3, 2)
    assert (counts["found_chars"], counts["right_chars"]) == (15, 11)
    counts = identifiers.score_item(item, [PhiSpan(4, 14, "phone", 0.9, "a")])
    assert (counts["covered"], counts["typed"], counts["right"]) == (0, 0, 1)
    counts = identifiers.score_item(item, [PhiSpan(0, 16, "phone", 0.9, "a")])
    assert (counts["covered"], counts["strict"], counts["typed"]) == (1, 0, 0)


def test_spans_that_overlap_are_one():
    from benchmarks.deid import identifiers

    spans = [PhiSpan(0, 4, "date", 0.9, "a"), PhiSpan(2, 8, "date", 0.9, "b")]
    assert identifiers.join_spans([*spans, PhiSpan(8, 9, "date", 0.9, "c")]) == [(0, 8), (8, 9)]


def test_look_alike_that_fires_is_counted():
    from benchmarks.deid import identifiers
    from benchmarks.deid.phi_suite import generate

    item = generate.Item("5 mg", (), "es", "es_dose", "", None, False)
    assert identifiers.score_item(item, [])["fired"] == 0
    counts = identifiers.score_item(item, [PhiSpan(0, 1, "date", 0.9, "a")])
    names = ("look_alikes", "fired", "found", "right")
    assert [counts[name] for name in names] == [1, 1, 1, 0]


def test_lines_or_sentences_in_common():
    from benchmarks.deid import false_alarms

    text = "Una línea igual.\n\nOtra frase. Se cambió esta. Ingresa el 3 de mayo."
    other = "Nombre: Ana.\nUna línea igual.\nOtra frase. Esta es nueva. Ingresa el 3 de mayo."
    shared = list(false_alarms.find_shared(text, other))
    assert [text[start:end] for start, end, _ in shared] == [
        "Una línea igual.",
        "Otra frase.",
        "Ingresa el 3 de mayo.",
    ]
    assert all(other[at:].startswith(text[start:end]) for start, end, at in shared)


def test_true_and_false_alarms_by_hand():
    from benchmarks.deid import false_alarms

    text = "Ingresa el 3 de mayo con 7/10 de dolor."
    other = "Nombre: Ana.\n" + text
    at = other.index("3 de mayo")
    found = [PhiSpan(11, 20, "date", 0.9, "a"), PhiSpan(25, 29, "date", 0.9, "b")]
    counts = false_alarms.compare(text, found, other, [(8, 11), (at, at + 9)])
    alarms = {("true", "date", "a"): 1, ("false", "date", "b"): 1}
    assert counts == {"words": 9, "gold": 1, **alarms}
    notes = {"case": text}
    result = false_alarms.count_corpus(notes, lambda _: found, {"case": (other, [(at, at + 9)])})
    assert result["found"] == 2 and result["found_by_type"] == {"date": {"a": 1, "b": 1}}
    assert result["with_gold"]["false_by_type"] == {"date": {"b": 1}}
    assert result["with_gold"]["false_per_1000_words"] == round(1000 / 9, 3)


@pytest.mark.corpora
def test_gold_of_meddocan_is_read(monkeypatch, data_dir):
    from benchmarks.deid import false_alarms

    monkeypatch.setenv("BIOCLIN_DATA", str(data_dir))
    monkeypatch.setattr(false_alarms, "MEDDOCAN_SPLITS", ("dev",))
    gold = false_alarms.read_gold()
    assert len(gold) == 250 and sum(len(spans) for _, spans in gold.values()) == 5801
