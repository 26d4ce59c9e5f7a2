"""Surrogates of e-mail addresses, URLs, user names and network addresses.

Letters become letters (vowels vowels), digits digits. Hosts become example.org and similar names
reserved for examples (RFC 2606), addresses those of the ranges for documentation (RFC 5737, 3849).
"""

import re

from ...rewrite import rewrite
from ...text import compose, fold_alnum
from .context import DIGITS, SurrogateContext
from .identifiers import fill, make_identifier

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


def make_user_name(value: str, context: SurrogateContext, purpose: str = "user name") -> str | None:
    """Make another user name of the same shape, pronounceable if the original is.

    purpose (str): What it is; equal values of two purposes have two surrogates.
    RETURNS (str | None): None if there is no letter and no digit.
    """
    value = compose(value)
    plain = "".join(fold_alnum(char)[:1] or "x" for char in value if char.isalnum())
    if not plain:
        return None
    alphabets = [
        DIGITS if char.isdigit() else VOWELS if char.upper() in VOWELS else CONSONANTS
        for char in plain
    ]
    made = (fill(value, new) for new in context.draw(alphabets, purpose, plain))
    return next((name for name in made if not context.is_forbidden(name, value)), None)


def make_email(value: str, context: SurrogateContext) -> str | None:
    """Make another name at example.org, .com or .net for each e-mail address of a value.

    RETURNS (str | None): None if there is no address, or there are other words.
    """
    value = compose(value)
    replacements = []
    for found in _EMAIL.finditer(value):
        name = make_user_name(found[1], context, "e-mail")
        if name is None:
            return None
        replacements.append((*found.span(), f"{name}{found[2]}{_make_host(found[3], context)}"))
    if not replacements or not _HARMLESS.fullmatch(_EMAIL.sub(" ", value)):
        return None
    return rewrite(value, replacements)[0]


def make_url(value: str, context: SurrogateContext) -> str | None:
    """Make a URL with the same scheme, another host and a path of the same shape.

    RETURNS (str | None): None if it is empty.
    """
    found = _URL.fullmatch(compose(value))
    if found is None or not any(map(str.isalnum, found[2])):
        return None
    extension = _EXTENSION.search(found[3])
    path = found[3][: extension.start()] if extension else found[3]
    other = make_user_name(path, context, "path")
    return "".join(
        (
            found[1],
            _make_host(found[2], context),
            path if other is None else other,
            extension.group() if extension else "",
        )
    )


def _make_host(old: str, context: SurrogateContext) -> str:
    host = SurrogateContext(context.secret, context.lang).choose(HOSTS, "host", old)
    assert host is not None  # the original is one of the three at most
    return host


def make_ip_address(value: str, context: SurrogateContext) -> str | None:
    """Make an address for documentation, or another of a network card.

    RETURNS (str | None): None if there is no digit.
    """
    value = compose(value)
    if _HEX_PAIRS.search(value):
        return make_identifier(value, context, "network card")
    secret = context.secret
    if found := _IPV4.search(value):
        old = found.group()
        network = NETWORKS[secret.number("network", old, len(NETWORKS))]
        last = secret.number("host number", old, 254)
        new = next(x for i in range(2) if (x := f"{network}.{(last + i) % 254 + 1}") != old)
    elif found := _IPV6.search(value):
        digest = secret.derive("network", found.group().lower()).hex()
        new = "2001:db8::" + ":".join(digest[i : i + 4].lstrip("0") or "0" for i in (0, 4, 8))
    else:
        return make_identifier(value, context, "network")
    return rewrite(value, [(*found.span(), new)])[0]
