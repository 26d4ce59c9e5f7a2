"""Write a surrogate in the case of the original, and read lists of words."""

_ORDINALS = str.maketrans("", "", "ºª")


def word_set(text: str) -> frozenset[str]:
    """Split a list of words that is written as one text."""
    return frozenset(text.split())


def is_upper(text: str) -> bool:
    """Check whether a text is in capitals; "º" and "ª" have no case and do not count."""
    return text.translate(_ORDINALS).isupper()


def match_case(model: str, text: str) -> str:
    """Write a text in the case of another.

    model (str): "GARCÍA", "García" or "garcía". A single capital counts as "García".
    RETURNS (str): The text in capitals, with a first capital (the rest stays), or in lower case.
    """
    letters = [char for char in model if char.isalpha()]
    if not letters or letters[0].islower():
        return text.lower()
    if len(letters) > 1 and is_upper(model):
        return text.upper()
    return text[:1].upper() + text[1:]
