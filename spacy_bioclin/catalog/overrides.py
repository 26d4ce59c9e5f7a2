"""Set values in a config by their path, and refuse paths that nothing reads."""

import difflib
import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from spacy.schemas import (
    ConfigSchemaInit,
    ConfigSchemaNlp,
    ConfigSchemaPretrain,
    ConfigSchemaTraining,
)
from spacy.util import get_lang_class, registry
from thinc.api import Config

from ..errors import BioclinError

# Section of a fine-tuning strategy in a config; all its settings have defaults.
STRATEGY = "components.transformer.model.strategy"
SCHEMAS: dict[str, type[BaseModel]] = {
    "nlp": ConfigSchemaNlp,
    "training": ConfigSchemaTraining,
    "pretraining": ConfigSchemaPretrain,
    "initialize": ConfigSchemaInit,
}
# Sections that a config fills as it likes: a key that is not there is read by nothing.
NAMED = ("", "paths", "system", "components", "corpora")


def apply_settings(config: Config, settings: Mapping[str, Any], *, prefix: str = "") -> None:
    """Set values by their path ("training.optimizer.L2"), in place. A section is replaced as a
    whole, before single values are set.

    config (Config): Not interpolated.
    prefix (str): What a user writes before a path, for errors: "--" on a command line.
    RAISES (BioclinError): Nothing reads such a setting. The message has the nearest one.
    """
    for path in sorted(settings, key=lambda path: ("@" not in path, path.count("."))):
        *sections, key = path.split(".")
        place: Any = config
        for depth, name in enumerate(sections, start=1):
            if name not in place and ".".join(sections[:depth]) == STRATEGY:
                place[name] = {}
            if not isinstance(place.get(name), dict):
                missing = f"the config has no section [{'.'.join(sections[:depth])}]"
                raise _make_error(config, path, missing, sections[: depth - 1], prefix)
            place = place[name]
        known = _list_keys(config, sections, place)
        if known is not None and key not in known:
            raise _make_error(config, path, "nothing reads it", sections, prefix)
        place[key] = settings[path]


def _make_error(
    config: Config, path: str, reason: str, sections: list[str], prefix: str
) -> BioclinError:
    place: Any = config
    for name in sections:
        place = place[name]
    near = difflib.get_close_matches(path, list(_list_paths(config, [], config)), n=1)
    hint = f"did you mean {prefix}{near[0]}? " if near else ""
    where = f"[{'.'.join(sections)}]" if sections else "the config"
    known = ", ".join(sorted(_list_keys(config, sections, place) or place))
    return BioclinError(f"{prefix or 'setting '}{path}: {reason}; {hint}{where} has {known}")


def _list_paths(config: Config, sections: list[str], place: Any) -> Iterator[str]:
    """Yield the path of every setting of a section and of the sections in it."""
    for key in {**place, **dict.fromkeys(_list_keys(config, sections, place) or ())}:
        yield ".".join([*sections, key])
        if isinstance(place.get(key), dict):
            yield from _list_paths(config, [*sections, key], place[key])


def _list_keys(config: Config, sections: list[str], place: Any) -> set[str] | None:
    """List the keys that a section may have; None for a section that takes any."""
    path = ".".join(sections)
    if path in NAMED:
        return set(place)
    if path in SCHEMAS:
        return {*place, *SCHEMAS[path].model_fields}
    if sections[:-1] == ["components"]:
        more = _list_factory_settings(config, place)
    else:
        more = _list_arguments(place)
    return None if more is None else {*place, *more}


def _list_factory_settings(config: Config, component: Any) -> set[str] | None:
    """List the settings of a component's factory; None if it is not known."""
    try:
        registry._entry_point_factories.get_all()  # imports them, as spaCy does for a pipeline
        registry.get("factories", component["factory"])
        language = get_lang_class(config["nlp"]["lang"])
        return set(language.get_factory_meta(component["factory"]).default_config or ())
    except (KeyError, ValueError, ImportError):
        return None


def _list_arguments(block: Any) -> set[str] | None:
    """List the arguments of the registered function of a block ("@schedules"); None if there is no
    such function, or if it takes any."""
    name = next((key for key in block if key.startswith("@")), None)
    if name is None:
        return None
    try:
        function = registry.get(name.removeprefix("@"), block[name])
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, AttributeError):
        return None
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return {
        "*" if parameter.kind is parameter.VAR_POSITIONAL else parameter.name
        for parameter in parameters
    }
