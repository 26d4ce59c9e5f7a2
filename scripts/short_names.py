"""Short names of the open terminology: what they mean in notes, and which of them are doubtful.

    python -m scripts.short_names assets/terminology/es

The sources have short names that mean something else in most notes: "FA" of familial atrial
fibrillation, "MDS" of the Miller-Dieker syndrome. The lexicon of short forms decides: it gives a
short form to the concept of its first meaning, and takes it from diseases and symptoms that none of
its meanings is. The command lists what is left: short names of several concepts, and those of a
rare form of a disease that have too few letters for it.
"""

import argparse
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from spacy_bioclin.linking.kb.concepts import Alias, Concept, is_type
from spacy_bioclin.linking.kb.knowledge_base import KnowledgeBase
from spacy_bioclin.linking.names.normalize import name_key, normalize, stem
from spacy_bioclin.tokenization.short_forms import LANGS, fold_short, load_short_forms

MAX_SHORT = 4  # letters of a short form that may end in "s"
CLINICAL = ("doid", "hp", "C*", "F*")
# Kind of a short form -> types of the concepts that it may mean.
TYPES_OF_KIND = {
    **dict.fromkeys(("disease", "symptom"), CLINICAL),
    **dict.fromkeys(("procedure", "test"), ("E*", "D*")),
    **dict.fromkeys(("drug",), ("D*",)),
    **dict.fromkeys(("anatomy",), ("A*",)),
}
STAGE = re.compile("[TNM][0-4X][a-d]?")  # of a tumour, which a leukaemia has for its name
# Words of the rare form of a common disease.
RARE = frozenset(
    stem(word)
    for word in (
        *("familial", "familiar", "hereditary", "hereditario", "congenital", "congenito"),
        *("infantile", "infantil", "juvenile", "juvenil", "neonatal", "autosomal", "autosomico"),
    )
)


class ShortNames(NamedTuple):
    """What the lexicon says of short names.

    first (dict[str, tuple[Alias, ...]]): Id of a concept -> the short forms whose first meaning it
        is, which is right without a cue, and Spanish long forms that no source has.
    allowed (dict[str, frozenset[str]]): Folded short form -> ids of the concepts of its meanings.
    """

    first: dict[str, tuple[Alias, ...]]
    allowed: dict[str, frozenset[str]]

    def allows(self, concept: Concept, name: str) -> bool:
        """Check whether a disease or symptom may have a short name."""
        if len(name) > MAX_SHORT or not is_clinical(concept):
            return True
        if STAGE.fullmatch(name):
            return False
        allowed = self.allowed.get(fold_short(name))
        return not is_too_short(concept, name) if allowed is None else concept.id in allowed


def read_short_names(concepts: Iterable[Concept], lang: str) -> ShortNames:
    """Look up the long forms of the lexicon among the names of concepts.

    A short form that the lexicon of the language does not have is read as in the other one, but no
    concept gets it as a name.
    """
    concepts = list(concepts)
    named = _index_names(concepts)
    spanish = {c.id for c in concepts if any(alias.lang == "es" for alias in c.aliases)}
    first: dict[str, dict[str, Alias]] = defaultdict(dict)
    allowed: dict[str, frozenset[str]] = {}
    for one in sorted(LANGS, key=lambda other: other != lang):
        for short, meanings in load_short_forms(one).items():
            if short in allowed:
                continue
            ids = [_find(named, form.kind, (*form.long, form.english)) for form in meanings]
            allowed[short] = frozenset(ids)
            form = meanings[0]
            if one == lang and ids[0] and len(form.short) > 1:
                # The sources have few Spanish names, so that a long form may be the only one.
                is_known = ids[0] in spanish and _find(named, form.kind, form.long)
                if lang == "es" and not is_known:
                    first[ids[0]][form.long[0]] = Alias(form.long[0], lang)
                first[ids[0]][form.short] = Alias(form.short, lang)
    return ShortNames({id: tuple(names.values()) for id, names in first.items()}, allowed)


def _index_names(concepts: Sequence[Concept]) -> dict[str, dict[str, str]]:
    """Map each kind to its names: the preferred ones of all concepts, then the others."""
    named: dict[str, dict[str, str]] = {kind: {} for kind in TYPES_OF_KIND}
    for wants_preferred in (True, False):
        for concept in concepts:
            labels = preferred_names(concept)
            names = labels if wants_preferred else [alias.text for alias in concept.aliases]
            for kind, types in TYPES_OF_KIND.items():
                if any(is_type(one, types) for one in concept.types):
                    for name in names:
                        named[kind].setdefault(name_key(name), concept.id)
    return named


def preferred_names(concept: Concept) -> list[str]:
    """List the preferred name of a concept, and its first Spanish one if that is HPO's label: the
    Disease Ontology has Spanish synonyms only."""
    spanish = (alias.text for alias in concept.aliases if alias.lang == "es")
    return [concept.name, *(islice(spanish, 1) if "hp" in concept.types else ())]


def _find(named: Mapping[str, Mapping[str, str]], kind: str, names: Iterable[str]) -> str:
    """Find the concept of the first name that has one of this kind; "" if none has."""
    keys = [name_key(name) for name in names if name]
    return next((named[kind][key] for key in keys if key in named.get(kind, ())), "")


def is_clinical(concept: Concept) -> bool:
    """Check whether a concept is a disease or a symptom."""
    return any(is_type(one, CLINICAL) for one in concept.types)


def rare_words(name: str) -> frozenset[str]:
    """List the words of a name that make it a rare form of a disease."""
    return RARE & set(name_key(name).split(" "))


def is_too_short(concept: Concept, name: str) -> bool:
    """Check whether a short name of a rare form has fewer letters than the concept has words."""
    words = name_key(concept.name).split(" ")
    return bool(rare_words(concept.name)) and len(fold_short(name)) < len(words)


def find_doubtful(concepts: Iterable[Concept]) -> Iterator[tuple[str, str]]:
    """Find short names that a note may mean otherwise.

    YIELDS (tuple[str, str]): The name, and why it is doubtful.
    """
    having: dict[str, dict[str, str]] = defaultdict(dict)
    for concept in concepts:
        if not is_clinical(concept):
            continue
        for name in (concept.name, *(alias.text for alias in concept.aliases)):
            if len(normalize(name)) <= MAX_SHORT:
                having[fold_short(name)][concept.id] = concept.name
                if is_too_short(concept, name):
                    yield name, f"too short for {concept.id} {concept.name}"
    for short, owners in having.items():
        if len(owners) > 1:
            yield short, f"of {', '.join(f'{id} {name}' for id, name in owners.items())}"


def main() -> None:
    """List the doubtful short names of a knowledge base."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kb", type=Path, help="folder of scripts/terminology.py")
    for short, why in sorted(find_doubtful(KnowledgeBase.open(parser.parse_args().kb))):
        print(f"{short}\t{why}")


if __name__ == "__main__":
    main()
