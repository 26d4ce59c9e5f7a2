"""Ids, names and language codes as terminologies write them, brought to one form."""

import re

# http://purl.obolibrary.org/obo/HP_0002648, in the brackets of SPARQL results or without
OBO_PURL = re.compile(r"<?https?://purl\.obolibrary\.org/obo/([A-Za-z]+(?:_[A-Za-z]+)*)_(\d+)>?")
# ISO 639-2, which UMLS, library and statistics tables use
THREE_LETTERS = {"eng": "en", "spa": "es", "esp": "es"}


def clean(text: str) -> str:
    """RETURNS (str): The text without blanks at its ends, and any run of blanks as one."""
    return " ".join(text.split())


def language_code(text: str) -> str:
    """RETURNS (str): Two-letter code of "es", "ES", "es-ES", "es_MX" or "SPA"; "" of ""."""
    code = re.split("[-_]", text.strip().lower())[0]
    return THREE_LETTERS.get(code, code)


def compact_id(text: str) -> str:
    """RETURNS (str): "HP:0002648" for an OBO address of that term, any other id without blanks at
    its ends."""
    match = OBO_PURL.fullmatch(text.strip())
    return f"{match[1]}:{match[2]}" if match else text.strip()
