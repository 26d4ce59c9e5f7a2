"""Read layouts: notes in which slots, such as `{patient}`, take the place of values.

In a file, layouts are separated by lines `=====`. `{slot.form}` is a value, `[a|b]` one of several
texts, and `{SYMPTOM: dry cough}` a clinical entity. A backslash before a bracket, brace or bar
makes it a plain character.
"""

import random
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ...errors import BioclinError
from ...files import find_files
from ...settings import find_nearest

FOLDER = Path(__file__).with_name("layouts")
LANGS = ("es", "en")
SEPARATOR = re.compile(r"^=====[ \t]*$", re.MULTILINE)
MAX_DEPTH = 20  # of brackets within brackets

PERSON = ("first", "last", "full", "formal", "initials", "nick", "first_initial")
DATE = tuple(
    [
        "numeric",
        "short",
        "long",
        "weekday",
        "month",
        "year",
        "roman",
        "words",
        "feast",
        "iso",
        "compact",
        "month_name",
    ]
)
# Slot -> its forms.
FORMS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("patient", "doctor", "doctor2", "nurse", "relative_name", "relative_name2"), PERSON
    ),
    "relative": (),
    "sex": ("word", "letter"),
    "age": ("bare", "unit", "months", "words", "baby"),
    **dict.fromkeys(("date", "birth_date"), DATE),
    "phone": ("ext", "pager"),
    "text": ("1", "2", "3", "4"),
    **dict.fromkeys(
        [
            "profession",
            "hospital",
            "clinic",
            "ward",
            "care_home",
            "health_centre",
            "organization",
            "employer",
            "street",
            "city",
            "state",
            "postcode",
            "country",
            "other_place",
            "fax",
            "email",
            "url",
            "user_name",
            "record_id",
            "national_id",
            "contact_id",
            "insurance_id",
            "health_plan_id",
            "licence_id",
            "staff_id",
            "account",
            "vehicle",
            "device",
            "other_id",
            "number",
            "drug",
            "dose",
            "lab",
            "problem",
            "disease",
            "symptom",
        ],
        (),
    ),
}
# Slots that are not PHI, and those whose PHI type has another name.
FILLERS = ("text", "number", "drug", "dose", "lab", "problem", "disease", "symptom")
TYPES = {
    "patient": "patient_name",
    "doctor": "staff_name",
    "doctor2": "staff_name",
    "nurse": "staff_name",
    "birth_date": "date",
    "clinic": "hospital",
    "ward": "hospital",
    "care_home": "hospital",
    "employer": "organization",
}
RELATIVES = ("relative_name", "relative_name2")
ONLY_ES = ("relative", "sex")  # i2b2 does not annotate them

_SLOT = re.compile(r"\{([^{}\n]*)\}")
_NAME = re.compile(r"(\w+)(?:\.(\w+))?\Z")
_PLAIN = re.compile(r"[^\\\[\]|{}]+")


class Slot(NamedTuple):
    """A place for a value: `{name}` or `{name.form}`; the form may be empty."""

    name: str
    form: str


class Choice(NamedTuple):
    """Alternatives, of which one is taken."""

    options: tuple["Nodes", ...]


Node = str | Slot | Choice
Nodes = tuple[Node, ...]


class Layout(NamedTuple):
    """A parsed layout.

    where (str): Its file and number, for messages.
    """

    where: str
    nodes: Nodes


def find_type(slot: str, lang: str) -> str | None:
    """Find the PHI type of a slot; None for a filler."""
    if slot in FILLERS:
        return None
    if slot in RELATIVES:
        return "relative" if lang == "es" else "patient_name"
    return TYPES.get(slot, slot)


def list_slots(lang: str) -> dict[str, tuple[str, ...]]:
    """List the slots that layouts of a language may have, with their forms."""
    return {slot: forms for slot, forms in FORMS.items() if lang == "es" or slot not in ONLY_ES}


def check_lang(lang: str) -> None:
    """Check that there are values for a language.

    RAISES (BioclinError): There are none.
    """
    if lang not in LANGS:
        raise BioclinError(f"lang = {lang!r}: want one of {', '.join(LANGS)}")


def read_layouts(paths: Iterable[Path], lang: str) -> list[Layout]:
    """Read the layouts of files, and of the .txt files in folders.

    paths (Iterable[Path]): None are the included layouts of the language.
    lang (str): Language, "es" or "en".
    RAISES (BioclinError): A file cannot be read, or a layout has a mistake: the message names
        file, number of the layout, line and slot.
    """
    check_lang(lang)
    slots = list_slots(lang)
    layouts: list[Layout] = []
    for _, path in find_files(list(paths) or [FOLDER / lang], (".txt",)):
        try:
            content = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
        except OSError as error:
            raise BioclinError(f"{path}: cannot be read ({error.strerror})") from None
        except UnicodeDecodeError:
            raise BioclinError(f"{path}: not UTF-8; save it in this encoding") from None
        n_before = len(layouts)
        line = 1
        parts = SEPARATOR.split(content)
        for number, part in enumerate(parts, start=1):
            text = part.strip("\n")
            first = line + len(part) - len(part.lstrip("\n"))
            if text.strip():
                where = f"{path}, layout {number}"
                layouts.append(Layout(where, parse(text, slots, where, first)))
            line += part.count("\n")
        if len(layouts) == n_before:
            raise BioclinError(f"{path}: has no layout; write one, see docs/deidentification.md")
    return layouts


def parse(
    text: str,
    slots: Mapping[str, Collection[str]] | None,
    where: str = "layout",
    line: int = 1,
) -> Nodes:
    """Parse a layout.

    slots (Mapping[str, Collection[str]] | None): The slots that there are, and their forms; None
        for any.
    where (str): Beginning of messages.
    line (int): Number of the first line in the file.
    RAISES (BioclinError): A bracket or brace has no partner, or there is no such slot or form.
    """
    return _Parser(text, slots, where, line).parse()


class _Parser:
    def __init__(
        self,
        text: str,
        slots: Mapping[str, Collection[str]] | None,
        where: str,
        line: int,
    ) -> None:
        self.text, self.slots, self.where, self.line = text, slots, where, line
        self.at = 0

    def parse(self) -> Nodes:
        nodes = self.sequence(0)
        if self.at < len(self.text):
            raise self.error("']' without a '['; write \\] for a plain bracket")
        return nodes

    def error(self, what: str, at: int | None = None) -> BioclinError:
        line = self.line + self.text.count("\n", 0, self.at if at is None else at)
        return BioclinError(f"{self.where}, line {line}: {what}")

    def sequence(self, depth: int) -> Nodes:
        """Parse up to a bar or closing bracket of the same depth, or the end."""
        nodes: list[Node] = []
        plain: list[str] = []

        def flush() -> None:
            if plain:
                nodes.append("".join(plain))
                plain.clear()

        while self.at < len(self.text):
            char = self.text[self.at]
            if found := _PLAIN.match(self.text, self.at):
                plain.append(found[0])
                self.at = found.end()
            elif char == "\\":
                escaped = self.text[self.at + 1 : self.at + 2]
                is_escape = bool(escaped) and escaped in "[]|{}\\"
                plain.append(escaped if is_escape else char)
                self.at += 1 + is_escape
            elif char == "{":
                flush()
                nodes.append(self.slot())
            elif char == "[":
                flush()
                nodes.append(self.choice(depth + 1))
            elif char == "}":
                raise self.error("'}' without a '{'; write \\} for a plain brace")
            elif char == "|" and not depth:
                plain.append(char)
                self.at += 1
            else:
                break
        flush()
        return tuple(nodes)

    def choice(self, depth: int) -> Choice:
        start = self.at
        if depth > MAX_DEPTH:
            raise self.error(f"brackets are nested deeper than {MAX_DEPTH}")
        options: list[Nodes] = []
        while self.text[self.at : self.at + 1] not in ("", "]"):
            self.at += 1
            options.append(self.sequence(depth))
        if self.at == len(self.text):
            raise self.error("'[' without a ']'; write \\[ for a plain bracket", start)
        self.at += 1
        return Choice(tuple(options))

    def slot(self) -> Slot:
        found = _SLOT.match(self.text, self.at)
        if not found:
            raise self.error("'{' without a '}' on its line; write \\{ for a plain brace")
        parts = _NAME.match(found[1])
        if not parts:  # it may be text of a note, so it is not shown
            raise self.error("'{' without the name of a slot; write \\{ for a plain brace")
        name, form = parts[1], parts[2] or ""
        if self.slots is not None:
            self.check(found[0], name, form, self.slots)
        self.at = found.end()
        return Slot(name, form)

    def check(self, shown: str, name: str, form: str, slots: Mapping[str, Collection[str]]) -> None:
        if name not in slots:
            near = find_nearest(name, list(slots))
            raise self.error(f"{shown}: no such slot; {near}want one of {', '.join(slots)}")
        forms = list(slots[name])
        if form and form not in forms:
            near = find_nearest(form, forms)
            wanted = f"want one of .{', .'.join(forms)}" if forms else f"write {{{name}}}"
            raise self.error(f"{shown}: no such form of {{{name}}}; {near}{wanted}")


def split_lines(nodes: Nodes) -> list[Nodes]:
    """Split a layout at its line breaks, those in brackets aside, and leave out empty lines."""
    lines: list[list[Node]] = [[]]
    for node in nodes:
        if not isinstance(node, str):
            lines[-1].append(node)
            continue
        first, *others = node.split("\n")
        lines[-1] += [first] * bool(first)
        lines += [[other] if other else [] for other in others]
    return [tuple(line) for line in lines if any(not isinstance(n, str) or n.strip() for n in line)]


def choose(nodes: Nodes, rng: random.Random) -> Iterator[str | Slot]:
    """Choose among the alternatives, at random, and yield what is left."""
    for node in nodes:
        if isinstance(node, Choice):
            yield from choose(rng.choice(node.options), rng)
        else:
            yield node
