"""Replace a PHI span: one function for each operator of a policy.

presidio-anonymizer has operators of these names, but its hash is not keyed by patient data alone
(a random salt makes two runs differ), its encryption is AES-CBC, which does not detect a changed
text, and it has neither surrogates nor date shifts; so these few lines use `hmac` and
`cryptography` directly.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Callable
from datetime import date
from typing import NamedTuple

from ..errors import BioclinError
from ..text import fold_by_char
from .policy import KEYED
from .secret import Secret
from .surrogates.by_label import make_surrogate
from .surrogates.context import SurrogateContext
from .surrogates.dates import parse_date
from .surrogates.places import province_of
from .surrogates.wording import word_set

_ENCRYPTED = re.compile(r"\[([^\[\]\n]{1,80}) ([A-Za-z0-9_-]{39,}=*)\]")
_NUMBER = re.compile(r"\d+")
_LETTERS = re.compile(r"[^\W\d_]+")
# Words of an age that stay beside its decade, without accents; other words may be PHI.
AGE_WORDS = word_set("a ano anos de edad year years yr yrs y o yo old of age aged")
MAX_AGE = 130
# Ages from here on are one group.
TOP_AGE = 90
# The first three digits of US postcodes of at most 20,000 people, by the census of 2000 (guidance
# of the Department of Health and Human Services on de-identification, 2012) or of 2010.
SMALL_AREAS = word_set(
    "036 059 063 102 203 205 369 556 692 753 772 790 821 823 830 831 878 879 884 890 893"
)
YEAR = re.compile(r"(?<!\d)(?:1[89]|20)\d\d(?!\d)")
N_HASH_BYTES = 8
# The end of a hash shows that it is ours, and says nothing about the value.
N_CHECK_BYTES = 4
N_NONCE = 12


class NoteContext(NamedTuple):
    """What operators know about the note beside the span.

    lang (str): Its language.
    surrogates (SurrogateContext | None): Secret, date shift and forbidden words (those of the
        note's PHI); None without a key.
    numbers (dict[str, dict[str, int]]): Label -> folded value -> its number in this note.
    """

    lang: str
    surrogates: SurrogateContext | None
    numbers: dict[str, dict[str, int]]

    @property
    def secret(self) -> Secret:
        """The secret; `apply_operator` has checked that there is one."""
        assert self.surrogates is not None
        return self.surrogates.secret


class Target(NamedTuple):
    """The span that an operator replaces.

    value (str): Its text.
    folded (str): Its letters and digits, without case and accents: equal for one value written in
        two ways.
    label (str): In the policy's scheme.
    phi_type (str | None): Meaning of the label (labels.yml).
    """

    value: str
    folded: str
    label: str
    phi_type: str | None


def keep(target: Target, note: NoteContext) -> str:
    """Leave the text as it is."""
    return target.value


def redact(target: Target, note: NoteContext) -> str:
    """Remove the text."""
    return ""


def mask(target: Target, note: NoteContext) -> str:
    """Write the label."""
    return f"[{target.label}]"


def mask_number(target: Target, note: NoteContext) -> str:
    """Write the label and a number, which is equal for equal values of a note."""
    numbers = note.numbers.setdefault(target.label, {})
    return f"[{target.label} {numbers.setdefault(target.folded, len(numbers) + 1)}]"


def generalize(target: Target, note: NoteContext) -> str | None:
    """Write an age's decade (90 and over: one group), a date's year, or a postcode's province.

    Nothing else of the value is written, except for the words of an age ("años").

    In English a postcode keeps its first three digits, or none where at most 20,000 people live
    (45 CFR 164.514(b)(2)(i)(B)). A year more than 89 years ago may tell an age over 89: its date is
    masked, as (C) asks.
    RETURNS (str | None): None for other types, and values that cannot be read.
    """
    if target.phi_type == "age":
        return _age_group(target.value)
    if target.phi_type == "date":
        year = YEAR.search(target.value)
        if year is not None:
            return _recent(int(year.group()))
        parsed = parse_date(target.value, note.lang)
        return None if parsed is None or parsed.year is None else _recent(parsed.year)
    if target.phi_type == "postcode":
        digits = re.sub(r"\D", "", target.value)
        if note.lang == "es":
            return province_of(digits)
        if len(digits) < 5:
            return None
        return "000**" if digits[:3] in SMALL_AREAS else f"{digits[:3]}**"
    return None


def _recent(year: int) -> str | None:
    """Write a year; None if who was born in it may be over 89."""
    return None if year < date.today().year - TOP_AGE + 1 else str(year)


def _age_group(value: str) -> str | None:
    """Write the decade of an age in years; None if the value has anything else in it."""
    numbers = list(_NUMBER.finditer(value))
    if len(numbers) != 1 or not {*_LETTERS.findall(fold_by_char(value))} <= AGE_WORDS:
        return None
    found = numbers[0]
    age = int(found.group())
    if age > MAX_AGE or value[found.end() :].startswith("/"):
        return None
    group = f"{TOP_AGE}+" if age >= TOP_AGE else f"{age // 10 * 10}-{age // 10 * 10 + 9}"
    return value[: found.start()] + group + value[found.end() :]


def keyed_hash(target: Target, note: NoteContext) -> str:
    """Write the label and a keyed hash (HMAC-SHA256, cut to 64 bits), and 32 bits that check it.

    A value has the same hash in all notes of all patients, so that records can still be joined.
    """
    secret = Secret(note.secret.key, "")
    digest = secret.derive("hash", target.folded)[:N_HASH_BYTES].hex()
    return f"[{target.label} {digest}{_check_digits(target.label, digest, note.secret.key)}]"


def _check_digits(label: str, digest: str, key: bytes) -> str:
    return Secret(key, "").derive("hash check", f"{label}\0{digest}")[:N_CHECK_BYTES].hex()


def is_authentic_hash(label: str, written: str, key: bytes) -> bool:
    """Check whether the operator "hash" wrote a hash, with this key and label.

    written (str): The hash with its check digits.
    """
    digest, check = written[: 2 * N_HASH_BYTES], written[2 * N_HASH_BYTES :]
    return hmac.compare_digest(check, _check_digits(label, digest, key))


def encrypt(target: Target, note: NoteContext) -> str:
    """Write the label and the encrypted value (AES-256-GCM).

    The nonce is derived from key, patient and value (as in SIV modes, RFC 5297), so that another
    run gives the same. This reveals which values of a patient are equal.
    """
    nonce = note.secret.derive("nonce", f"{target.label}\0{target.value}")[:N_NONCE]
    return f"[{target.label} {seal(target.value, note.secret.key, nonce, target.label)}]"


def surrogate(target: Target, note: NoteContext) -> str | None:
    """Write an invented value of the same form."""
    if target.phi_type is None or note.surrogates is None:
        return None
    return make_surrogate(target.value, target.phi_type, note.surrogates)


FUNCTIONS: dict[str, Callable[[Target, NoteContext], str | None]] = {
    "keep": keep,
    "redact": redact,
    "mask": mask,
    "mask_number": mask_number,
    "generalize": generalize,
    "hash": keyed_hash,
    "encrypt": encrypt,
    "surrogate": surrogate,
}


def apply_operator(name: str, target: Target, note: NoteContext) -> tuple[str, str]:
    """Make the replacement of a span.

    name (str): One of policy.OPERATORS.
    RETURNS (tuple[str, str]): The replacement, and the operator that made it: "mask" if the given
        one has no answer (an age without a number, an unknown place).
    RAISES (BioclinError): The operator derives from a key and there is none.
    """
    if name in KEYED and note.surrogates is None:
        raise BioclinError(
            f"operator {name!r} needs the secret key: set BIOCLIN_DEID_KEY or give --key-file "
            "(bioclin deid-key FILE makes one), or choose mask for these labels"
        )
    new = FUNCTIONS[name](target, note)
    return (mask(target, note), "mask") if new is None else (new, name)


def cipher_key(key: bytes) -> bytes:
    """Derive the 256 bits of an AES key from the secret key."""
    return hmac.new(key, b"aes-256-gcm", hashlib.sha256).digest()


def seal(plain: str, key: bytes, nonce: bytes, about: str) -> str:
    """Encrypt a text with AES-256-GCM.

    about (str): Authenticated with the text, but not hidden.
    RETURNS (str): Nonce, ciphertext and tag in URL-safe base64.
    """
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    sealed = AESGCM(cipher_key(key)).encrypt(nonce, plain.encode("utf-8"), about.encode("utf-8"))
    return base64.urlsafe_b64encode(nonce + sealed).decode("ascii")


def unseal(token: str, key: bytes, about: str) -> str:
    """Decrypt what `seal` wrote.

    RAISES (BioclinError): Another key, or a token that was changed.
    """
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        data = base64.urlsafe_b64decode(token)
        plain = AESGCM(cipher_key(key)).decrypt(
            data[:N_NONCE], data[N_NONCE:], about.encode("utf-8")
        )
    except (InvalidTag, ValueError):
        raise BioclinError(
            "an encrypted value cannot be decrypted: it was made with another key, or changed since"
        ) from None
    return plain.decode("utf-8")


def decrypt_text(text: str, key: bytes) -> str:
    """Restore the values that the operator "encrypt" took out of a note.

    RAISES (BioclinError): Another key, or a value that was changed.
    """
    return _ENCRYPTED.sub(lambda found: unseal(found[2], key, found[1]), text)
