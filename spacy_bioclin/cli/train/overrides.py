"""Read the config of a training and what the command line changes in it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import BioclinError

if TYPE_CHECKING:
    from thinc.api import Config

    from ...catalog.recipes import Recipe


def read_config(
    path: Path, arguments: list[str], recipe: "Recipe | None" = None
) -> tuple["Config", dict[str, Any]]:
    """Load a config, apply a recipe, and then the overrides of the command line.

    arguments (list[str]): Overrides as for `spacy train`.
    RETURNS (tuple[Config, dict[str, Any]]): The config, not interpolated, and the overrides: path
        -> value.
    RAISES (BioclinError): There is no such file, or nothing reads a setting that is overridden.
    """
    from configparser import Error

    from spacy.cli._util import parse_config_overrides, show_validation_error
    from spacy.util import load_config
    from thinc.api import Config

    from ...catalog.overrides import apply_settings
    from ...catalog.recipes import apply_recipe

    if not path.is_file():
        raise BioclinError(f"{path}: no such file; give a config like configs/ner.cfg")
    overrides = parse_config_overrides(arguments)
    try:
        config = load_config(path, interpolate=False)
    except (OSError, ValueError, Error) as error:  # not text, no sections, values that are no JSON
        raise BioclinError(
            f"{path}: not a config of spaCy ({type(error).__name__}); compare it with one of "
            "`bioclin init-config`"
        ) from None
    with show_validation_error(path):
        if recipe:
            apply_recipe(config, recipe)
        apply_settings(config.copy(), overrides, prefix="--")
        text = config.to_str(interpolate=False)
        return Config().from_str(text, overrides=overrides, interpolate=False), overrides
