"""Save a pipeline in its folder alone, and without the words of the notes that it has read."""

from collections.abc import Iterable
from pathlib import Path

from spacy.language import Language
from spacy.strings import StringStore

from .errors import BioclinError

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
