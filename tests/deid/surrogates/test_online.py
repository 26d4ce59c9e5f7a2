"""E-mail, URL, user name and network addresses."""

import ipaddress
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_bioclin.deid.secret import Secret
from spacy_bioclin.deid.surrogates.context import SurrogateContext
from spacy_bioclin.deid.surrogates.online import (
    make_email,
    make_ip_address,
    make_url,
    make_user_name,
)
from spacy_bioclin.text import fold_alnum

KEY = b"0123456789abcdef"
SECRETS = st.builds(Secret, st.just(KEY), st.text(max_size=5))


def es(secret: Secret) -> SurrogateContext:
    return SurrogateContext(secret, "es")


@settings(max_examples=30)
@given(SECRETS, st.from_regex(r"[a-z]{3,9}[._-]?[a-z]{2,6}[0-9]{0,4}", fullmatch=True))
def test_mail_and_user_name_keep_their_shape(secret: Secret, name: str) -> None:
    for value, new in (
        (name, make_user_name(name, es(secret))),
        (name, (make_email(f"{name}@hospital.es", es(secret)) or "").split("@")[0]),
    ):
        assert new is not None and new != value and len(new) == len(value)
        for old_char, new_char in zip(value, new, strict=True):
            for kind in ("aeiou", "bcdfghjklmnpqrstvwxyz", "0123456789", "._-"):
                assert (old_char in kind) == (new_char in kind)
    assert make_email(f"{name}@hospital.es".upper(), es(secret)) != f"{name}@hospital.es"
    first, host = (make_email(f"{name}@hospital.es", es(secret)) or "").split("@")
    assert host in ("example.org", "example.com", "example.net")
    upper = (make_email(f"{name}@HOSPITAL.ES".upper(), es(secret)) or "").split("@")
    assert upper == [first.upper(), host]
    assert make_user_name(name, SurrogateContext(secret, "es", {fold_alnum(new or "")})) is not None


def test_mail_with_something_around_it() -> None:
    for value, shape in (
        ("autor: ana.p@uam.es", r"autor: [a-z]{3}\.[a-z]@example\.(?:org|com|net)"),
        ("ana@uam.es r.caja@ild.es", r"[a-z]{3}@example\.\w{3} [a-z]\.[a-z]{4}@example\.\w{3}"),
        ("urología @ hsel.es", r"[a-z]{8} @ example\.\w{3}"),
    ):
        surrogate = make_email(value, es(Secret(KEY, "1")))
        assert surrogate is not None and re.fullmatch(shape, surrogate)


def test_what_is_no_mail_has_no_surrogate() -> None:
    for value in ("", "Carmen Blanco", "Ana García <ana@uam.es>", "@"):
        assert make_email(value, es(Secret(KEY, "1"))) is None


def test_urls() -> None:
    for value, shape in (
        ("http://www.hospital.es/pac/garcia.html", r"http://www\.example\.\w{3}/\w{3}/\w{6}\.html"),
        ("www.hospital.es", r"www\.example\.\w{3}"),
        ("hospital.org/a?b=12", r"example\.\w{3}/\w\?\w=\d\d"),
    ):
        surrogate = make_url(value, es(Secret(KEY, "1")))
        assert surrogate is not None and re.fullmatch(shape, surrogate)
        assert "hospital" not in surrogate and "garcia" not in surrogate
    assert make_url("", es(Secret(KEY, "1"))) is None


@settings(max_examples=30)
@given(SECRETS, st.ip_addresses())
def test_ip_addresses_are_for_documentation(
    secret: Secret, address: ipaddress.IPv4Address | ipaddress.IPv6Address
) -> None:
    surrogate = make_ip_address(str(address), es(secret))
    assert surrogate is not None and surrogate != str(address)
    nets = ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32")
    new = ipaddress.ip_address(surrogate)
    assert new.version == address.version
    assert any(new in ipaddress.ip_network(net) for net in nets)


def test_ports_and_network_cards() -> None:
    secret = Secret(KEY, "1")
    assert (make_ip_address("10.0.0.1:8080", es(secret)) or "").endswith(":8080")
    card = make_ip_address("00:1b:44:11:3a:b7", es(secret)) or ""
    assert re.fullmatch(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}", card) and card != "00:1b:44:11:3a:b7"
    assert make_ip_address("localhost", es(secret)) is None
