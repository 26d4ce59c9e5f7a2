"""Find a pretrained encoder on this machine by its name in the catalogue."""

import os
from pathlib import Path

from ...catalog.encoders import load_encoders, match_encoder

CHECKOUT = Path(__file__).parents[3]


def home() -> Path:
    """Get the folder of this user: $BIOCLIN_HOME, or bioclin in the cache folder of the user."""
    if folder := os.environ.get("BIOCLIN_HOME"):
        return Path(folder).expanduser()
    cache = os.environ.get("LOCALAPPDATA") or os.environ.get("XDG_CACHE_HOME")
    return Path(cache or "~/.cache").expanduser() / "bioclin"


def encoder_folders() -> list[Path]:
    """List the folders in which encoders are searched for, each in a folder of its name.

    RETURNS (list[Path]): Those of the working directory, of the user, and of a checkout from which
        the package is imported.
    """
    return [
        Path("encoders"),
        Path("assets", "encoders"),
        home() / "encoders",
        CHECKOUT / "assets" / "encoders",
    ]


def locate_encoder(name: str) -> str:
    """Find the folder of an encoder.

    name (str): Folder, name in the catalogue, or hub name.
    RETURNS (str): The folder, or the name unchanged if this machine has no such encoder.
    """
    known = None if Path(name).is_dir() else match_encoder(name, load_encoders())
    folders = [folder / known for folder in encoder_folders()] if known else []
    return next((str(f) for f in folders if (f / "config.json").is_file()), name)


def explain_missing(name: str) -> str:
    """Say how to get an encoder of the catalogue that is not on this machine."""
    encoder = load_encoders()[name]
    target = home() / "encoders" / name
    places = ", ".join(str(folder / name) for folder in encoder_folders()[:3])
    if encoder.folder:
        get = f"copy {encoder.folder} from a clone of the spacy-bioclin repository"
    elif encoder.source:
        get = (
            f"run `bioclin fetch {name} -o {name}` on a machine with a network, and copy the folder"
        )
    else:
        get = "get its folder from its authors, and copy it"
    return (
        f"Encoder {name!r} is not on this machine (looked for {places}): {get} to {target}, or "
        "give its path"
    )
