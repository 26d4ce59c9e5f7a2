"""Pipelines as folders and packages.

A pipeline is saved in its folder alone, and without the words of the notes that it has read. A
package says with which versions of this one it works.
"""

import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import Version
from spacy.language import Language
from spacy.strings import StringStore
from spacy.util import get_model_meta, get_package_path, is_package

from .about import __version__
from .errors import BioclinError, BioclinWarning

US = "spacy-bioclin"

# Attributes of a lexeme that spaCy stores as strings, each with an underscore at its end.
FORMS = ("orth_", "lower_", "norm_", "shape_", "prefix_", "suffix_")
# What else spaCy writes into the folder of a pipeline.
OTHERS = ("vocab", "tokenizer", "meta.json", "config.cfg")


def save_pipeline(nlp: Language, folder: Path) -> None:
    """Write a pipeline as `nlp.to_disk` does, but with no words of notes in it.

    spaCy remembers every word that it has seen and writes all of them to `vocab/strings.json`: a
    pipeline that was trained on notes would hand on the names in them. No component needs these
    words, since models know a word by its hash. Words of the language, of labels and of vectors
    stay.

    nlp (Language): The pipeline.
    folder (Path): Folder to write it to.
    RAISES (BioclinError): The name of a component would lead out of the folder.
    """
    check_components(nlp.component_names)
    nlp.to_disk(folder, exclude=["strings"])
    find_strings(nlp).to_disk(folder / "vocab" / "strings.json")


def check_components(names: Iterable[object]) -> None:
    """Check that each component of a pipeline has a folder of its own: spaCy writes to its name.

    names (Iterable[object]): Names of the components.
    RAISES (BioclinError): A name leads to another folder, or to what else is in that of a pipeline.
    """
    for name in names:
        if (
            not isinstance(name, str)
            or not name.isprintable()
            or name in ("", ".", "..", *OTHERS)
            or Path(name).name != name
            or "\\" in name
        ):
            raise BioclinError(
                f"the component {repr(name)[:100]} would be written to another place than a folder "
                "of its own: rename it in config.cfg"
            )


def find_strings(nlp: Language) -> StringStore:
    """Find the strings of a pipeline that are not words of texts it has read.

    RETURNS (StringStore): The strings.
    """
    words = {getattr(lexeme, form) for lexeme in nlp.vocab for form in FORMS}
    kept = set(type(nlp)().vocab.strings)
    for _, component in nlp.components:
        for label in map(str, getattr(component, "labels", ())):
            kept.update((label, *label.replace("=", "|").split("|")))
    vectors = getattr(nlp.vocab.vectors, "key2row", {})
    strings = nlp.vocab.strings
    return StringStore(
        string
        for string in strings
        if string not in words or string in kept or strings[string] in vectors
    )


def find_folder(pipeline: str) -> Path:
    """Find the folder with the files of a pipeline.

    pipeline (str): Name of an installed package, or a folder.
    RETURNS (Path): The folder that has config.cfg.
    """
    if not is_package(pipeline):
        return Path(pipeline)
    folder = get_package_path(pipeline)
    meta = get_model_meta(folder)
    return folder / f"{meta['lang']}_{meta['name']}-{meta['version']}"


def make_requirement(version: str) -> str:
    """Require spacy-bioclin from a version on, below the next minor one."""
    parsed = Version(version)
    return f"{US}>={version},<{parsed.major}.{parsed.minor + 1}"


def check_requirement(meta: Mapping[str, Any], installed: str = __version__) -> None:
    """Check that a package of a pipeline works with the installed version of spacy-bioclin.

    A pipeline that was not packaged requires nothing.

    meta (Mapping): The meta.json of the pipeline.
    installed (str): Version of spacy-bioclin.
    RAISES (BioclinError): The package is for a newer version: this one may lack what it needs.
    WARNS (BioclinWarning): The package is for an older version.
    """
    wanted = _find_requirement(meta)
    if wanted is None or wanted.specifier.contains(installed, prereleases=True):
        return
    package = f"{meta.get('lang')}_{meta.get('name')}"
    needs = f"{package} {meta.get('version')} works with {wanted}, but {installed} is installed"
    if any(
        s.operator == ">=" and Version(installed) < Version(s.version) for s in wanted.specifier
    ):
        raise BioclinError(f'{needs}: pip install "{wanted}"')
    warnings.warn(
        f"{needs}, so what it finds may differ: install a newer {package}, build it again with "
        f'bioclin package, or pip install "{wanted}"',
        BioclinWarning,
        stacklevel=2,
    )


def _find_requirement(meta: Mapping[str, Any]) -> Requirement | None:
    """Find what a meta.json, which may be of other people, requires of spacy-bioclin."""
    lines = meta.get("requirements")
    for line in lines if isinstance(lines, list) else ():
        try:
            wanted = Requirement(str(line))
        except InvalidRequirement:
            continue
        if wanted.name.lower().replace("_", "-") == US:
            return wanted
    return None
