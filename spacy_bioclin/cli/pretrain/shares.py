"""`--share LANG=NUMBER`, an option of several commands."""

from collections.abc import Iterable

from ...errors import BioclinError


def parse_shares(options: Iterable[str]) -> dict[str, float]:
    """RETURNS (dict[str, float]): {"es": 0.6} of "es=0.6".
    RAISES (BioclinError): For anything else."""
    shares = {}
    for option in options:
        lang, _, number = option.partition("=")
        try:
            shares[lang] = float(number)
        except ValueError:
            raise BioclinError(f"--share is {option!r}, want LANG=SHARE such as es=0.6") from None
    return shares
