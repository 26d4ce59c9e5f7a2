"""Language codes on the command line."""

import typer


def shorten_language(value: str | None) -> str | None:
    """Shorten the value of --lang to the code of its language: "es" of "es-ES" or "ES"."""
    if not value:
        return value
    from ..linking.readers.values import language_code

    return language_code(value)


LANG = typer.Option(callback=shorten_language, help="Language of the notes")
