"""Check what a user writes in YAML, in a config block or in Python, with pydantic.

A room describes its settings as a subclass of `Settings`; `read_settings` turns every mistake into
one `BioclinError` that names the source, the key, the value, what is wanted and the nearest
spelling.
"""

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeVar

import srsly
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from .errors import BioclinError, without_context
from .files import check_regular

MAX_VALUES, MAX_DEPTH = 1_000_000, 100
MAX_SHOWN = 200  # characters of a value in a message
EXTRA = "extra_forbidden"  # what pydantic calls an unknown key


class Settings(BaseModel):
    """A group of settings: unknown keys are errors, types are not coerced, nothing is changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


S = TypeVar("S", bound=Settings)


@without_context()
def read_settings(model: type[S], values: Any, *, where: str, private: bool = False) -> S:
    """Check settings and fill in their defaults.

    model (type[Settings]): What the settings must be. A validator of its own raises ValueError
        with a message that says what is wanted.
    values (Any): A mapping of keys to values; None counts as empty.
    where (str): The file, component or section, which begins every message.
    private (bool): The values are patient data: no message shows one.
    RETURNS (Settings): The checked settings.
    RAISES (BioclinError): For the first mistake: "WHERE: KEY = VALUE: want …".
    """
    values = {} if values is None else values
    if not isinstance(values, Mapping):
        keys = ", ".join(model.model_fields)
        raise BioclinError(f"{where}: want a table with some of the keys {keys}")
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        # A misspelt key is also missing: the unknown key says more.
        errors = sorted(error.errors(include_url=False), key=lambda e: e["type"] != EXTRA)
        raise BioclinError(f"{where}: {_explain(errors[0], model, values, private)}") from None


def load_settings(model: type[S], path: Path) -> S:
    """Read a YAML file of settings. See `read_settings`.

    RAISES (BioclinError): The file cannot be read, is not YAML, or has a mistake in it.
    """
    return read_settings(model, read_yaml(path), where=str(path))


@without_context()
def read_yaml(path: Path) -> Any:
    """Read a YAML file.

    RAISES (BioclinError): The file cannot be read, is not YAML, or grows when its aliases are
        replaced by what they stand for.
    """
    if path.exists():
        check_regular(path)  # a pipe would wait for ever
    try:
        content = srsly.yaml_loads(path.read_text("utf-8"))
    except OSError as error:
        raise BioclinError(f"{path}: cannot be read ({error.strerror})") from None
    except Exception as error:  # RecursionError; the library has others than ValueError too
        if found := re.search(r"found duplicate key[^\n]*\n.* line (\d+)", str(error)):
            raise BioclinError(
                f"{path}, line {found[1]}: this key is given twice; keep one of them"
            ) from None
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        at = "" if line is None else f", line {line + 1}"
        raise BioclinError(f"{path}{at}: not YAML; check indents, colons and quotes") from None
    check_size(content, str(path))
    return content


@without_context()
def get_entry_text(path: Path, name: str) -> str:
    """Extract the text of a top-level key of a YAML file, with its comments.

    path (Path): The file, in which nothing but such keys and comments is unindented.
    name (str): The key.
    """
    _, _, after = f"\n{path.read_text('utf-8')}".partition(f"\n{name}:\n")
    lines = takewhile(lambda line: line[:1] in ("", " "), after.splitlines())
    return "\n".join([f"{name}:", *lines]).rstrip()


def read_json(path: Path) -> dict[str, Any]:
    """Read the JSON object of a file.

    RAISES (BioclinError): The file cannot be read, or is not a JSON object.
    """
    if path.exists():
        check_regular(path)  # a pipe would wait for ever
    try:
        content = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise BioclinError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        line = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise BioclinError(f"{path}{line}: not JSON; get or make the file again") from None
    check_size(content, str(path))
    if not isinstance(content, dict):
        raise BioclinError(f"{path}: not a JSON object; get or make the file again")
    return content


def check_size(content: Any, where: str) -> None:
    """Refuse what would take all memory as soon as it is copied or shown.

    content (Any): What a library made of YAML or JSON. Aliases make it share values: a few lines
        stand for a billion of them, or hold themselves.
    where (str): The file, which begins the message.
    RAISES (BioclinError): It has too many values, or is nested too deep.
    """
    level, n_values = [content], 1
    for _ in range(MAX_DEPTH):
        inner = (each for each in level if isinstance(each, dict | list | set | tuple))
        level = []
        for each in inner:
            n_values += len(each)
            if n_values > MAX_VALUES:
                raise BioclinError(
                    f"{where}: has more than {MAX_VALUES:,} values once its aliases (*name) are "
                    "replaced; write them out, or leave some out"
                )
            level += [*each.keys(), *each.values()] if isinstance(each, dict) else each
        if not level:
            return
    raise BioclinError(f"{where}: nested deeper than {MAX_DEPTH}, or holds itself by an alias")


def check_choice(value: Any, known: Sequence[str]) -> str:
    """Check that a value is one of some names, for use in a validator.

    RETURNS (str): The value.
    RAISES (ValueError): It is not. The message has the nearest name and all names.
    """
    if value not in known:
        raise ValueError(
            f"unknown; {find_nearest(str(value), known)}want one of {', '.join(known)}"
        )
    return value


def _explain(
    error: ErrorDetails, model: type[BaseModel], values: Mapping[str, Any], private: bool
) -> str:
    # pydantic adds the names of union members and validators to the place: leave them out.
    place = ""
    found: Any = values
    for part in error["loc"]:
        if isinstance(found, Mapping) and (part in found or error["type"] == "missing"):
            place, found = f"{place}.{part}" if place else str(part), found.get(part)
        elif isinstance(found, Sequence) and isinstance(part, int) and part < len(found):
            place, found = f"{place}[{part}]", found[part]
    if error["type"] == "missing":
        return f"{place} is missing"
    if error["type"] == EXTRA:
        known = _keys_beside(error["loc"], model)
        key = str(error["loc"][-1])
        return f"unknown key {place!r}; {find_nearest(key, known)}want some of {', '.join(known)}"
    message = error["msg"].removeprefix("Value error, ").replace("Input should be", "want", 1)
    if error["type"] == "literal_error" and not private:
        choices = [choice.strip("' ") for choice in message[5:].replace(" or ", ", ").split(",")]
        message = f"{find_nearest(str(found), choices)}want one of {', '.join(choices)}"
    if not place:
        return message
    shown = repr(found)
    if len(shown) > MAX_SHOWN:
        shown = f"{shown[:MAX_SHOWN]}…"
    return f"{place}: {message}" if private else f"{place} = {shown}: {message}"


def _keys_beside(place: Sequence[Any], model: type[BaseModel]) -> list[str]:
    """List the keys of the model in which an unknown key was found."""
    for part in place[:-1]:
        field = model.model_fields.get(part) if isinstance(part, str) else None
        inner = _inner_model(field.annotation) if field else None
        model = inner or model
    return list(model.model_fields)


def _inner_model(annotation: Any) -> type[BaseModel] | None:
    """Find the model in an annotation such as `Part`, `Part | None` or `dict[str, Part]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    arguments = getattr(annotation, "__args__", ())
    return next((found for one in arguments if (found := _inner_model(one))), None)


def find_nearest(value: str, known: Sequence[str]) -> str:
    """Ask for a message whether the nearest of some names was meant; "" if none is near."""
    near = difflib.get_close_matches(value, list(known), n=1)
    return f"did you mean {near[0]}? " if near else ""
