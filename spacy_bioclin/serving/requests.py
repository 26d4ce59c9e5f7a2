"""What a client may send, and the sentence about what is wrong with it."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

NAMES = ("text", "id", "language", "notes")
ONE, MANY = '{"text": "..."}', '{"notes": [{"text": "..."}, {"text": "..."}]}'
A_NOTE = 'want a note as an object, such as {"id": "n1", "text": "..."}'
MESSAGES = {
    "missing": "is missing",
    "string_type": "want a string",
    "list_type": f"want a list of notes, such as {MANY}",
    "model_type": A_NOTE,
    "model_attributes_type": A_NOTE,
    "dict_type": A_NOTE,
    "extra_forbidden": f"has an unknown key; want some of {', '.join(NAMES)}",
}
EXAMPLE = (
    "Paciente de 54 años con diabetes mellitus tipo 2. No fiebre. Tratamiento: metformina 850 mg."
)
EXAMPLES: dict[str, Any] = {
    "one note": {"summary": "One note", "value": {"text": EXAMPLE}},
    "many notes": {
        "summary": "Many notes",
        "value": {"notes": [{"id": "n1", "text": EXAMPLE}, {"id": "n2", "text": "No tos."}]},
    },
}


def check_characters(text: str) -> str:
    """Check that a text has no half of a surrogate pair, which JSON can write and UTF-8 cannot.

    RAISES (ValueError): It has one.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("has half of a surrogate pair, which is no character") from None
    return text


Text = Annotated[str, AfterValidator(check_characters)]


class Given(BaseModel):
    """A group of keys that a client sends."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class NoteGiven(Given):
    """A note.

    id (str | int | None): Comes back in the answer.
    text (str): The note.
    """

    id: Text | int | None = Field(None, description="Comes back in the answer")
    text: Text = Field(description="The note")


class NotesGiven(Given):
    """A request: one note, or several.

    text (str | None): The note.
    id (str | int | None): Of the one note.
    notes (list[NoteGiven] | None): Several notes, in place of `text` and `id`.
    language (str | None): Language of the notes, which must be that of the pipeline.
    """

    text: Text | None = Field(None, description="The note")
    id: Text | int | None = Field(None, description="Comes back in the answer")
    notes: list[NoteGiven] | None = Field(
        None, description="Several notes, in place of text and id"
    )
    language: str | None = Field(
        None,
        description="Language of the notes, such as es or es-ES; another than the pipeline's is "
        "refused",
    )

    @model_validator(mode="after")
    def check_notes(self) -> "NotesGiven":
        """Check that there is one note, or several.

        RAISES (ValueError): There is neither, or both.
        """
        if (self.text is None) == (self.notes is None):
            raise ValueError("want either text, for one note, or notes")
        if self.notes is not None and self.id is not None:
            raise ValueError("id belongs to a note: write it into notes")
        return self

    def list_notes(self) -> list[NoteGiven]:
        """List the notes of the request."""
        if self.notes is not None:
            return self.notes
        return [NoteGiven(id=self.id, text=self.text or "")]


def describe_mistake(errors: Sequence[Any]) -> str:
    """Describe the first mistake of a request, without anything that the client wrote.

    errors (Sequence[dict]): Errors of pydantic.
    """
    error = errors[0]
    kind = error["type"]
    if kind == "json_invalid":
        return f"the body is not JSON: see its character {error['loc'][-1]}"
    place = ""
    # The last part of an unknown key is what the client wrote.
    for part in error["loc"][:-1] if kind == "extra_forbidden" else error["loc"]:
        if isinstance(part, int):
            place += f"[{part}]"
        elif part in NAMES:
            place += f".{part}" if place else str(part)
    if kind == "value_error":
        reason = str(error["ctx"]["error"])
        return f"{place}: {reason}" if place else reason
    if kind in ("model_type", "model_attributes_type", "dict_type") and not place:
        return f"want a JSON object with text or notes: {ONE} or {MANY}"
    if not place and kind == "missing":
        return f"the body is empty; want a JSON object with text or notes: {ONE} or {MANY}"
    return f"{place or 'the request'}: {MESSAGES.get(kind, 'is not what is wanted')}"
