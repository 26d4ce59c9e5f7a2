"""Load a pipeline for a command."""

from pathlib import Path

from ..runner.notes.loading import find_encoders, load_pipeline

__all__ = ["find_encoders", "find_name", "list_pipeline", "load_pipeline"]


def find_name(pipeline: str) -> tuple[str, str]:
    """Find the name and the version of a pipeline, "" if that cannot be read."""
    from spacy.util import load_meta

    from ..vocab import find_folder

    try:
        meta = load_meta(find_folder(pipeline) / "meta.json")
    except (OSError, ValueError):
        return Path(pipeline).name, ""  # loading it says what is wrong
    return Path(pipeline).name, str(meta["version"])


def list_pipeline(name: str) -> list[Path]:
    """List the folder of a pipeline and the files that belong to it: a command never replaces them.

    name (str): Folder of a trained pipeline, or name of an installed package, which has none.
    """
    folder = Path(name)
    try:
        inside = sorted(folder.iterdir())
    except OSError:
        return [folder]
    own = [path for path in inside if path.name in ("config.cfg", "meta.json", "tokenizer")]
    parts = [path for path in inside if path.is_dir()]
    return [folder, *own, *parts, *(file for part in parts for file in part.rglob("*"))]
