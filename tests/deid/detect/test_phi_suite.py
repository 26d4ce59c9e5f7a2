"""The suite that measures the rules is what it says: places, kinds, variants, check digits."""

import random
from collections import Counter, defaultdict

import pytest
import stdnum.es.dni
import stdnum.iban
import stdnum.luhn

from benchmarks.deid import false_alarms, identifiers
from benchmarks.deid.phi_suite import generate, values
from benchmarks.deid.phi_suite.templates import expand
from spacy_bioclin.deid.labels import load_types
from spacy_bioclin.deid.spans import PhiSpan


@pytest.fixture(scope="module", params=["dev", "test"])
def split(request):
    return request.param


def test_same_seed_same_suite():
    split = "dev"
    items, look_alikes = generate.make_items(split), generate.make_look_alikes(split)
    assert generate.make_items.__wrapped__(split) == items
    assert generate.make_look_alikes.__wrapped__(split) == look_alikes


def test_splits_share_no_text():
    items, look_alikes = (
        {split: {item.text for item in make(split)} for split in ("dev", "test")}
        for make in (generate.make_items, generate.make_look_alikes)
    )
    assert not look_alikes["dev"] & look_alikes["test"]
    assert len(items["dev"] & items["test"]) < 0.01 * len(items["dev"])  # "Desde 2004 …"


def test_sizes(split):
    items, look_alikes = generate.make_items(split), generate.make_look_alikes(split)
    assert len({item.kind for item in items}) >= 60
    assert len({item.kind for item in look_alikes}) >= 20 and len(look_alikes) >= 400
    assert {item.lang for item in items} == {item.lang for item in look_alikes} == {"es", "en"}


def test_every_kind_is_written_in_twenty_ways(split):
    variants = defaultdict(set)
    for item in generate.make_items(split):
        variants[item.kind].add(item.variant)
    few = {kind: len(written) for kind, written in variants.items() if len(written) < 20}
    assert set(variants) == set(generate.load_kinds()) and not few


def test_gold_lies_where_it_says(split):
    for item in generate.make_items(split):
        assert "[[" not in item.text and "{" not in item.text, item.kind
        counted = [gold for gold in item.gold if gold.counted]
        assert len(counted) == 1, item.kind
        assert counted[0].phi_type == generate.load_kinds()[item.kind]["type"]
        for gold in item.gold:
            value = item.text[gold.start : gold.end]
            assert value and value == value.strip(), item
            assert gold.phi_type in load_types()


def test_look_alikes_hold_no_gold(split):
    for item in generate.make_look_alikes(split):
        assert item.gold == () and item.kind not in generate.load_kinds()
        assert not any(mark in item.text for mark in ("<1", "§", "|1", "[[")), item.kind


def test_a_third_of_test_is_unseen():
    items = generate.make_items("test")
    assert not any(item.unseen for item in generate.make_items("dev"))
    unseen = Counter(item.kind for item in items if item.unseen)
    assert set(unseen.values()) == {generate.ITEMS // 3}
    seen = defaultdict(set)
    for item in items:
        if not item.unseen:
            seen[item.kind].update(item.variant.split(" ‖ ")[:3])
    for item in generate.make_items("dev"):
        seen[item.kind].update(item.variant.split(" ‖ ")[:3])
    for item in items:
        if item.unseen:
            assert not set(item.variant.split(" ‖ ")[:3]) <= seen[item.kind], item.variant


def test_kinds_name_types_that_exist():
    for kind, spec in generate.load_kinds().items():
        assert {spec["type"], *spec.get("accept", ())} <= set(load_types()), kind
    assert set(generate.load_kinds()) >= identifiers.PRESIDIO_KINDS
    assert set(load_types()) >= set(identifiers.PRESIDIO_TYPES.values())


def test_both_check_digits_occur(split):
    seen = defaultdict(set)
    for item in generate.make_items(split):
        if item.valid is not None:
            seen[item.kind].add(item.valid)
    assert len(seen) >= 20 and all(both == {True, False} for both in seen.values())


@pytest.mark.parametrize("kind", sorted(values.CHECKED))
def test_checked_values(kind):
    rng = random.Random(0)
    is_valid = values.CHECKED[kind][2]
    for valid in (True, False) * 10:
        assert bool(is_valid(values.make_checked(kind, rng, valid))) == valid


def test_known_numbers():
    """Examples published by the issuers: NASS (TGSS), VIN (49 CFR 565), DEA and NPI (CMS)."""
    assert values.nass_is_valid("281234567840") and not values.nass_is_valid("281234567841")
    assert values.vin_is_valid("1M8GDM9AXKP042788") and not values.vin_is_valid("1M8GDM9A1KP042788")
    assert values.npi_is_valid("1234567893") and not values.npi_is_valid("1234567890")
    assert values.dea_is_valid("AB1234563") and not values.dea_is_valid("AB1234564")
    rng = random.Random(1)
    assert stdnum.iban.is_valid(values.make_iban_es(rng, True))
    assert not stdnum.iban.is_valid(values.make_iban_es(rng, False))
    assert stdnum.luhn.is_valid(values.make_checked("card", rng, True))
    assert stdnum.es.dni.is_valid(values.make_checked("dni", rng, True))


def test_templates():
    rng = random.Random(0)
    assert all(2 <= int(expand("<2-5>", rng)) <= 5 for _ in range(50))
    assert all(len(expand("<01-12>", rng)) == 2 for _ in range(50))
    assert all(0.5 <= float(expand("<0.5-2.9>", rng)) <= 2.9 for _ in range(50))
    assert expand("\\#", rng) == "#" and expand("#", rng).isdigit() and expand("§", rng).isupper()
    assert {expand("<a|b-1>", rng) for _ in range(50)} == {"a", "b-1"}


def test_scores_by_hand():
    """DNI found in two pieces (covered, not strict), a phone found too short, a false alarm."""
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
    spans = [PhiSpan(0, 4, "date", 0.9, "a"), PhiSpan(2, 8, "date", 0.9, "b")]
    assert identifiers.join_spans([*spans, PhiSpan(8, 9, "date", 0.9, "c")]) == [(0, 8), (8, 9)]


def test_look_alike_that_fires_is_counted():
    item = generate.Item("5 mg", (), "es", "es_dose", "", None, False)
    assert identifiers.score_item(item, [])["fired"] == 0
    counts = identifiers.score_item(item, [PhiSpan(0, 1, "date", 0.9, "a")])
    assert (counts["look_alikes"], counts["fired"], counts["found"], counts["right"]) == (
        1,
        1,
        1,
        0,
    )


def test_lines_or_sentences_in_common():
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
    text = "Ingresa el 3 de mayo con 7/10 de dolor."
    other = "Nombre: Ana.\n" + text
    at = other.index("3 de mayo")
    found = [PhiSpan(11, 20, "date", 0.9, "a"), PhiSpan(25, 29, "date", 0.9, "b")]
    counts = false_alarms.compare(text, found, other, [(8, 11), (at, at + 9)])
    assert counts == {
        "words": 9,
        "gold": 1,
        ("true", "date", "a"): 1,
        ("false", "date", "b"): 1,
    }
    notes = {"case": text}
    result = false_alarms.count_corpus(notes, lambda _: found, {"case": (other, [(at, at + 9)])})
    assert result["found"] == 2 and result["found_by_type"] == {"date": {"a": 1, "b": 1}}
    assert result["with_gold"]["false_by_type"] == {"date": {"b": 1}}
    assert result["with_gold"]["false_per_1000_words"] == round(1000 / 9, 3)


@pytest.mark.corpora
def test_gold_of_meddocan_is_read(monkeypatch, data_dir):
    monkeypatch.setenv("BIOCLIN_DATA", str(data_dir))
    monkeypatch.setattr(false_alarms, "MEDDOCAN_SPLITS", ("dev",))
    gold = false_alarms.read_gold()
    assert len(gold) == 250 and sum(len(spans) for _, spans in gold.values()) == 5801
