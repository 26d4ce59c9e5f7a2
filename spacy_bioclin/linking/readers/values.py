"""Bring ids, names and language codes, as terminologies write them, to one form."""

import re
from functools import lru_cache
from pathlib import Path

import srsly

# http://purl.obolibrary.org/obo/HP_0002648, in the brackets of SPARQL results or without them.
OBO_PURL = re.compile(r"<?https?://purl\.obolibrary\.org/obo/([A-Za-z]+(?:_[A-Za-z]+)*)_(\d+)>?")
THREE_LETTERS: dict[str, str] = srsly.read_yaml(Path(__file__).with_name("languages.yml"))


def clean(text: str) -> str:
    """Strip a text, and write every run of white space as one blank."""
    return " ".join(text.split())


@lru_cache(maxsize=1024)
def language_code(text: str) -> str:
    """Shorten a language code to two letters: "es" of "ES", "es-ES", "es_MX" or "SPA"; "" of ""."""
    code = re.split("[-_]", text.strip().lower())[0]
    return THREE_LETTERS.get(code, code)


def compact_id(text: str) -> str:
    """Write the OBO address of a term as its short id ("HP:0002648"), and strip any other id."""
    match = OBO_PURL.fullmatch(text.strip())
    return f"{match[1]}:{match[2]}" if match else text.strip()
