"""The error of a call, for tests of many bad inputs."""

import re
from collections.abc import Callable
from typing import Any

from spacy_bioclin.errors import BioclinError


def error_of(call: Callable[..., object], *args: Any, **settings: Any) -> str:
    """RETURNS: The message of the BioclinError that the call raises, "" where it raises none."""
    try:
        call(*args, **settings)
    except BioclinError as error:
        return str(error)
    return ""


def is_wrong(found: str, message: str, *secrets: str) -> bool:
    """RETURNS: Whether an error lacks the message, a regular expression, or quotes the text."""
    return not re.search(message, found) or any(secret in found for secret in secrets)
