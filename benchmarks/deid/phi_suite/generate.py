"""The suite of structured identifiers: clinical sentences with PHI of known place and kind, and
look-alikes without. Made from kinds_*.yml, frames.yml and look_alikes.yml with a seed; the rules
that are measured with it were written by somebody else.
"""

import random
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import srsly

from .templates import expand
from .values import WITH_CHECK, write_value

HERE = Path(__file__).parent
LANGS = ("es", "en")
SEEDS = {"dev": 1, "test": 2}
ITEMS = 24  # of a kind; in test, a third of them in a form, frame or label that dev never sees
LOOK_ALIKES = 14  # of a kind
MARK = re.compile(r"\[\[(.*?)\|([a-z_]+)(\*?)\]\]", re.DOTALL)


class Gold(NamedTuple):
    start: int
    end: int
    phi_type: str
    counted: bool  # False: PHI of the frame, which is no false alarm but no part of recall either


class Item(NamedTuple):
    text: str
    gold: tuple[Gold, ...]
    lang: str
    kind: str
    variant: str  # how it is written: form, frame, label
    valid: bool | None  # the check digit; None if there is none
    unseen: bool  # written as dev never is


@cache
def load_kinds() -> dict[str, dict[str, Any]]:
    """Read how each kind is written, and add its `lang`."""
    return {
        kind: {"lang": lang, **spec}
        for lang in LANGS
        for kind, spec in srsly.read_yaml(HERE / f"kinds_{lang}.yml").items()
    }


@cache
def load_frames() -> dict[str, dict[str, list[str]]]:
    return srsly.read_yaml(HERE / "frames.yml")


def read_marks(marked: str) -> tuple[str, tuple[Gold, ...]]:
    """Remove the marks [[…|type]], and return the text and what they marked."""
    text, gold, end = "", [], 0
    for found in MARK.finditer(marked):
        text += marked[end : found.start()]
        gold.append(Gold(len(text), len(text) + len(found[1]), found[2], bool(found[3])))
        text, end = text + found[1], found.end()
    return text + marked[end:], tuple(gold)


def _frames(spec: dict[str, Any], unseen: bool, with_number: bool = True) -> list[str]:
    """Frames that a kind may stand in: those of dev, or those that only test has."""
    end, frames = "_test" if unseen else "", load_frames()[spec["lang"]]
    found = [*frames["labelled" + end], *spec.get("frames" + end, [])]
    if with_number and not spec.get("plain"):
        found += frames["number" + end]
    return found + (frames["bare" + end] if spec.get("bare") else [])


def _break_blank(value: str, turn: int) -> tuple[str, str]:
    """Now and then the first blank of a value is a no-break space or the end of a line."""
    blank = {3: "\u00a0", 9: "\n", 15: "\u00a0"}.get(turn)
    if blank and " " in value:
        return value.replace(" ", blank, 1), repr(blank)
    return value, ""


def _write(kind: str, turn: int, rng: random.Random, picked: tuple[str, str, str]) -> Item:
    """Write one item: a form in a frame beside a label."""
    spec, (form, frame, label) = load_kinds()[kind], picked
    lang_frames = load_frames()[spec["lang"]]
    bare = "{L}" not in frame and "{l}" not in frame and "{U}" not in frame
    checked = spec.get("maker") in WITH_CHECK
    valid = turn % 2 == 0 or (bare and spec.get("bare") == "valid")
    value, blank = _break_blank(write_value(spec, form, rng, valid), turn)
    lower = bool(spec.get("lower")) and turn % 8 == 5
    value = value.lower() if lower else value
    marked = frame.replace("{v}", f"[[{value}|{spec['type']}*]]")
    marked = marked.replace("{L}", label).replace("{l}", label.lower())
    marked = marked.replace("{U}", label.upper()).replace("{m}", rng.choice(lang_frames["reasons"]))
    sentences = lang_frames["sentences"] + lang_frames["sentences_test"] * (turn >= ITEMS * 2 // 3)
    while "{s}" in marked:
        marked = marked.replace("{s}", rng.choice(sentences), 1)
    text, gold = read_marks(marked)
    variant = " ‖ ".join([form, frame, "" if bare else label, blank, "lower" if lower else ""])
    return Item(text, gold, spec["lang"], kind, variant, valid if checked else None, False)


def _pick(
    spec: dict[str, Any], turn: int, rng: random.Random, unseen: bool
) -> tuple[str, str, str]:
    """Choose form, frame and label; if unseen, one of the three is one that dev never has."""
    forms, labels, frames = spec["forms"], spec["labels"], _frames(spec, False)
    form, frame, label = forms[turn % len(forms)], rng.choice(frames), rng.choice(labels)
    if not unseen:
        return form, frame, label
    new = {"form": spec.get("forms_test", []), "frame": _frames(spec, True)}
    new["label"] = spec.get("labels_test", [])
    part = ("form", "frame", "label")[turn % 3]
    if part == "form" and new["form"]:
        return rng.choice(new["form"]), frame, label
    if part == "label" and new["label"]:
        labelled = [frame for frame in frames if re.search("{[LlU]}", frame)]
        return form, rng.choice(labelled), rng.choice(new["label"])
    return form, rng.choice(new["frame"]), label


def _twice_number(form: str, frame: str, label: str) -> bool:
    """Whether frame and label would both say "number"."""
    lang_frames = load_frames().values()
    numbers = [one for frames in lang_frames for one in frames["number"] + frames["number_test"]]
    return (
        frame in numbers and re.search(r"nº|núm|no\.|number|#|\bno\b|nr", label.lower()) is not None
    )


@cache
def make_items(split: str) -> tuple[Item, ...]:
    """Write the items of a split, ITEMS of every kind, no two of a kind in the same way.

    split (str): "dev", or "test": the last third in forms, frames and labels that dev never sees,
        and some of its sentences as well.
    RETURNS (tuple[Item, ...]): The same in every run.
    """
    items = []
    for kind, spec in load_kinds().items():
        rng, seen = random.Random(f"{kind} {SEEDS[split]}"), set()
        while len(seen) < ITEMS:
            turn = len(seen)
            unseen = split == "test" and turn >= ITEMS * 2 // 3
            picked = _pick(spec, turn, rng, unseen)
            if picked in seen or _twice_number(*picked):
                continue
            seen.add(picked)
            local = turn if split == "test" else turn % (ITEMS * 2 // 3)
            items.append(_write(kind, local, rng, picked)._replace(unseen=unseen))
    return tuple(items)


def _look_alikes(kind: str, templates: list[str], split: str, taken: set[str]) -> dict[str, str]:
    """Make LOOK_ALIKES texts that are not taken; return text -> template."""
    rng = random.Random(f"{kind} {SEEDS[split]}")
    texts: dict[str, str] = {}
    while len(texts) < LOOK_ALIKES:
        template = templates[len(texts) % len(templates)]
        text = expand(template, rng)
        if text in texts or text in taken:  # few numbers to choose from: another sentence beside it
            text += " " + rng.choice(load_frames()[kind[:2]]["sentences"])
        if text not in taken:
            texts.setdefault(text, template)
    return texts


@cache
def make_look_alikes(split: str) -> tuple[Item, ...]:
    """Write what must not be found, LOOK_ALIKES of every kind.

    RETURNS (tuple[Item, ...]): Without gold; no text of test stands in dev.
    """
    forms = srsly.read_yaml(HERE / "look_alikes.yml")
    taken = {item.text for item in make_look_alikes("dev")} if split == "test" else set()
    items = []
    for lang in LANGS:
        for name, templates in forms[lang].items():
            new = forms[f"{lang}_test"].get(name, []) if split == "test" else []
            kind = f"{lang}_{name}"
            items += [
                Item(text, (), lang, kind, template, None, template in new)
                for text, template in _look_alikes(kind, templates + new, split, taken).items()
            ]
    return tuple(items)
