"""Surrogates of e-mail addresses, URLs, user names and addresses in networks.

Letters become letters (vowels vowels), digits digits; hosts become example.org and its like, which
are kept for examples (RFC 2606), addresses those of the ranges for documentation (RFC 5737, 3849).
"""

import re
from collections.abc import Collection

from ...text import compose, fold_alnum
from ..secret import Secret
from .identifiers import DIGITS, draw, fill, make_identifier
from .wording import choose, is_forbidden

VOWELS, CONSONANTS = "AEIOU", "BCDFGLMNPRSTV"
HOSTS = ("example.com", "example.net", "example.org")
NETWORKS = ("192.0.2", "198.51.100", "203.0.113")
_EMAIL = re.compile(r"([^\s@<>()\[\]:;,]+)(\s*@\s*)([^\s@<>()\[\]:;,]+)")
_HARMLESS = re.compile(
    r"(?:e-?mail|correo|mail(?:to)?|autora?|author|contacto?|[\W_])*", re.IGNORECASE
)
_URL = re.compile(r"(\s*(?:[a-z][a-z0-9+.-]*://)?(?:www\.)?)([^\s/:?#]+)(.*)", re.I | re.DOTALL)
_IPV4 = re.compile(r"(?<![\d.])(\d{1,3})((?:\.\d{1,3}){3})(?![\d.])")
_HEX_PAIRS = re.compile(r"[0-9A-F]{2}(?:[:-][0-9A-F]{2}){5}", re.IGNORECASE)
_IPV6 = re.compile(r"[0-9A-F:]*:[0-9A-F:]*:[0-9A-F:.]*", re.IGNORECASE)
_EXTENSION = re.compile(r"\.(?:html?|php|pdf|jpe?g|png|aspx?|jsp)$", re.IGNORECASE)


def make_user_name(
    value: str, secret: Secret, forbidden: Collection[str] = (), purpose: str = "user name"
) -> str | None:
    """RETURNS (str | None): Of the same shape, and such that it can be spoken where the original
    can; None if there is no letter and no digit."""
    value = compose(value)
    plain = "".join(fold_alnum(char)[:1] or "x" for char in value if char.isalnum())
    alphabets = [
        DIGITS if char.isdigit() else VOWELS if char.upper() in VOWELS else CONSONANTS
        for char in plain
    ]
    if not plain:
        return None
    for new in draw(alphabets, secret, purpose, plain):
        filled = fill(value, new)
        if not is_forbidden(filled, value, forbidden):
            return filled
    return None


def make_email(value: str, secret: Secret, forbidden: Collection[str] = ()) -> str | None:
    """RETURNS (str | None): Another name at example.org, .com or .net, for each address of the
    value; None if there is none, or there are words besides."""
    value = compose(value)
    new, place = [], 0
    for found in _EMAIL.finditer(value):
        name = make_user_name(found[1], secret, forbidden, "e-mail")
        host = choose(HOSTS, secret, "host", found[3], ())
        if name is None or host is None:
            return None
        new += [value[place : found.start()], name, found[2], host]
        place = found.end()
    between = [*new[::4], value[place:]]
    if not new or not all(_HARMLESS.fullmatch(text) for text in between):
        return None
    return "".join(new) + value[place:]


def make_url(value: str, secret: Secret, forbidden: Collection[str] = ()) -> str | None:
    """RETURNS (str | None): The same scheme, another host, a path of the same shape; None if it is
    empty."""
    found = _URL.fullmatch(compose(value))
    if found is None or not any(map(str.isalnum, found[2])):
        return None
    host = choose(HOSTS, secret, "host", found[2], ())
    if host is None:
        return None
    extension = _EXTENSION.search(found[3])
    path = found[3][: extension.start()] if extension else found[3]
    other = make_user_name(path, secret, forbidden, "path")
    return (
        found[1]
        + host
        + (path if other is None else other)
        + (extension.group() if extension else "")
    )


def make_ip_address(value: str, secret: Secret, forbidden: Collection[str] = ()) -> str | None:
    """RETURNS (str | None): An address for documentation, or another of a network card; None if
    there is no digit."""
    value = compose(value)
    if _HEX_PAIRS.search(value):
        return make_identifier(value, "network card", secret, forbidden)
    found = _IPV4.search(value)
    if found is not None:
        old = found.group()
        network = NETWORKS[secret.number("network", old, len(NETWORKS))]
        last = secret.number("host number", old, 254)
        new = next(x for i in range(2) if (x := f"{network}.{(last + i) % 254 + 1}") != old)
    else:
        found = _IPV6.search(value)
        if found is None:
            return make_identifier(value, "network", secret, forbidden)
        old = found.group()
        digest = secret.derive("network", old.lower()).hex()
        new = "2001:db8::" + ":".join(digest[i : i + 4].lstrip("0") or "0" for i in (0, 4, 8))
    return value[: found.start()] + new + value[found.end() :]
