"""Policies: schemes of labels, operators of labels, and errors that name what is wrong."""

from itertools import product
from pathlib import Path

import pytest
import srsly

from spacy_bioclin.deid.labels import (
    ALIASES,
    SCHEMES,
    label_of,
    load_types,
    map_label,
    scheme_labels,
    type_of,
)
from spacy_bioclin.deid.policy import OPERATORS, load_policy, make_policy
from spacy_bioclin.errors import BioclinError


def test_schemes_have_their_labels() -> None:
    assert len(scheme_labels("meddocan")) == 29
    assert len(set(scheme_labels("hipaa")) - {"AGE", "SEX", "OTHER"}) == 18
    for phi_type, labels in load_types().items():
        assert set(labels) == set(SCHEMES), phi_type


def test_every_label_has_one_in_every_scheme() -> None:
    for source, target in product(SCHEMES, SCHEMES):
        for label in scheme_labels(source):
            mapped = map_label(label, target)
            assert mapped in scheme_labels(target), label
            assert map_label(mapped, target) == mapped


def test_mapping_says_the_same() -> None:
    assert map_label("NOMBRE_PERSONAL_SANITARIO", "i2b2") == "DOCTOR"
    assert map_label("DOCTOR", "hipaa") == "NAME"
    assert map_label("FECHAS", "hipaa") == "DATE"
    assert map_label("patient_name", "i2b2") == "PATIENT"
    assert type_of("TERRITORIO") == "city"
    with pytest.raises(BioclinError, match="patient_nam"):
        label_of("patient_nam", "i2b2")


def test_every_label_of_any_pipeline_becomes_one_of_the_scheme() -> None:
    for scheme in SCHEMES:
        labels = scheme_labels(scheme)
        for label in ("ID", "ADDRESS", "Phone-Number", "DIAGNOSIS", "x", *load_types()):
            assert map_label(label, scheme) in labels, label
        for label, phi_type in srsly.read_yaml(ALIASES).items():
            assert label_of(phi_type, scheme) in labels
            if label not in labels:
                assert map_label(label.lower(), scheme) == label_of(phi_type, scheme), label
        assert map_label("DIAGNOSIS", scheme) == label_of("other", scheme)


def test_a_type_goes_before_a_label_and_any_scheme_counts() -> None:
    settings = {"operators": {"DATE": "generalize", "staff_name": "keep", "NAME": "surrogate"}}
    policy = make_policy(settings, lang="es", source="test")
    assert policy.scheme == "meddocan"
    assert policy.operator_for("FECHAS", "date") == "generalize"
    assert policy.operator_for("NOMBRE_PERSONAL_SANITARIO", "staff_name") == "keep"
    assert policy.operator_for("NOMBRE_SUJETO_ASISTENCIA", "patient_name") == "surrogate"
    assert policy.operator_for("PAIS", "country") == "mask"
    assert policy.needs_key


def test_the_hash_tells_policies_apart() -> None:
    policies = [make_policy({"default": name}, lang="en", source="test") for name in OPERATORS]
    assert len({policy.hash for policy in policies}) == len(OPERATORS)
    assert policies[0].hash == make_policy({"default": "keep"}, lang="en", source="x").hash


def test_a_bad_policy_is_named(tmp_path: Path) -> None:
    path = tmp_path / "policy.yml"
    for yaml, says in (
        ("scheme: meddocn", "did you mean meddocan"),
        ("operators: {FECHA: mask}", "did you mean FECHAS"),
        ("operators: {FECHAS: masc}", "did you mean mask"),
        ("default: nothing", "default = 'nothing': want one of keep"),
        ("operator: {}", "did you mean operators"),
        ("operators: [FECHAS]", "operators = .*: want a valid dictionary"),
        ("keep_weekdays: 3", "keep_weekdays = 3: want a valid boolean"),
        ("- a list", "want a table with some of the keys scheme"),
        ("a: [", "not YAML"),
    ):
        path.write_text(yaml)
        with pytest.raises(BioclinError, match=says) as error:
            load_policy(path, lang="es")
        assert "policy.yml" in str(error.value)


def test_no_file_and_an_empty_file(tmp_path: Path) -> None:
    with pytest.raises(BioclinError, match="cannot be read"):
        load_policy(tmp_path / "no.yml", lang="es")
    (tmp_path / "empty.yml").write_text("")
    assert load_policy(tmp_path / "empty.yml", lang="en").scheme == "i2b2"
