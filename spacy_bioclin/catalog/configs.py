"""The configs of `configs/`, which the wheel carries as `spacy_bioclin/configs`."""

from pathlib import Path

from ..errors import BioclinError

PACKAGE = Path(__file__).parents[1]


def find_configs() -> dict[str, Path]:
    """Find the configs that are shipped.

    RETURNS (dict[str, Path]): Name, such as "ner", -> file.
    RAISES (BioclinError): The installation has none.
    """
    # The build copies the folder of the repository into the package; in a checkout it is beside it.
    for folder in (PACKAGE / "configs", PACKAGE.parent / "configs"):
        if found := {path.stem: path for path in sorted(folder.glob("*.cfg"))}:
            return found
    raise BioclinError(f"{PACKAGE}: the configs are missing; install spacy-bioclin again")


def describe_config(path: Path) -> str:
    """Read what a config is for: the comment at its head, up to how it is trained."""
    lines = []
    for line in path.read_text("utf-8").splitlines():
        if not line.startswith("#") or "Train it with" in line:
            break
        lines.append(line.lstrip("# "))
    return " ".join(lines)


def write_config(name: str, shown_as: str) -> str:
    """Write a config for a file of the user.

    name (str): Name of a shipped config.
    shown_as (str): Path of the user's file, for the commands in its comments.
    RETURNS (str): Its text.
    RAISES (BioclinError): There is no such config; the message lists those there are.
    """
    configs = find_configs()
    if name not in configs:
        raise BioclinError(f"no config {name!r}: want one of {', '.join(configs)}")
    text = configs[name].read_text("utf-8")
    return text.replace(f"train configs/{name}.cfg", f"train {shown_as}")
