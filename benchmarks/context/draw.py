"""Draw the sentences of the context sets from the raw text for pretraining.

    python -m benchmarks.context.draw assertions        # corpora: $BIOCLIN_DATA or ../shared/data
    python -m benchmarks.context.draw measurements-es
    python -m benchmarks.context.draw measurements-en

Writes `.work/benchmarks/context/NAME.tsv` (file, line, start, end, drawn, sentence) for annotation.
The sentences stay there: only their places are in sets/. Lines are those between line feeds,
counted from 0. "cue" sentences have a word that such rules use, "random" ones were drawn without
regard to one: for assertions among sentences that have none, for measurements among all with a
digit. Assertions are drawn from notes only: in a dialogue, the question and its answer are two
sentences, and neither says by itself what the patient has. More are drawn than needed, because a
sentence that mentions nothing is left out.
"""

import lzma
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.corpora import make_blank
from benchmarks.harness import WORK, data_dir, make_parser

SEED = 20
N_LINES = 150  # of each source, to split into sentences
NOTES = "en/clinical_notes_and_dialogues.txt.xz"
DIALOGUE = re.compile(r"\b(?:Doctor|Patient|Guest_\w+)\s?:|\[(?:doctor|patient)\w*\]", re.I)

# Words of each attribute, and how many sentences are drawn by them. A few words for each are
# enough: the sentences have many others.
ASSERTION_CUES = {
    "negated": (
        r"no|not|denie[sd]|denying|without|negative|never|none|nor|free of|absence|absent"
        r"|unremarkable|non\w+",
        60,
    ),
    "uncertain": (
        r"possibl[ey]|probabl[ey]|likely|suspect\w*|suspicious|suspicion|r/o|rule[ds]? out"
        r"|may|might|could|questionable|consistent with|versus|vs|\?|concern\w*|suggest\w*"
        r"|appears?|evaluate",
        42,
    ),
    "historical": (
        r"history of|h/o|hx|past|previous\w*|prior|status post|s/p|years ago|resolved|PMH",
        32,
    ),
    "hypothetical": (
        r"if|should|risks?|prevent\w*|prophyla\w*|return|in case|unless|plan|will|would"
        r"|monitor|watch",
        30,
    ),
    "family": (
        r"mother|father|brothers?|sisters?|family|aunts?|uncles?|grand\w+|maternal|paternal"
        r"|son|daughter|parents|siblings?|husband|wife|FMH|FH",
        26,
    ),
    # Drawn last: few of those above turned out to be uncertain.
    "uncertain, by stronger words": (
        r"possibl[ey]|possibility|probabl[ey]|likely|suspect\w*|suspicious|suspicion|r/o"
        r"|rule out|versus|vs|question\w*|think|thought",
        40,
    ),
}
N_RANDOM = {"assertions": 260, "measurements-es": 150, "measurements-en": 150}
N_CUE = 150  # of a set of measurements

_NUMBER_WORDS = {
    "es": r"un|una|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|once|doce|quince|veinte|media",
    "en": r"an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|several|half",
}
_UNITS = {
    "es": (
        r"%|mm|cm|m|µm|[mµ]?g|mcg|kg|[mdµ]?l|cc|[mµ]?mol|UI|U|mEq|mmHg|lpm|rpm|°C|º ?C|ºC|°"
        r"|grados|Gy|cGy|mSv|años?|meses|mes|semanas?|días?|horas?|h|minutos?|min|segundos?"
        r"|veces|comprimidos?|kcal|latidos|unidades|litros?|gramos?|miligramos?|centímetros?"
        r"|milímetros?|Hz|MHz|kDa|pg|ng|fl"
    ),
    "en": (
        r"%|mm|cm|m|µm|[mµ]?g|mcg|kg|[mdµ]?l|cc|[mµ]?mol|mM|nM|IU|units?|U|mEq|mmHg|bpm|°C|° ?F"
        r"|°|degrees|Gy|years?|months?|weeks?|days?|hours?|hrs?|h|minutes?|min|seconds?|times"
        r"|tablets?|kcal|inch(?:es)?|pounds?|lbs?|feet|beats|liters?|milligrams?|grams?"
        r"|centimeters?|millimeters?|Hz|kDa|pg|ng|fl"
    ),
}


class Sentence(NamedTuple):
    """A sentence and its place."""

    file: str
    line: int
    start: int
    end: int
    drawn: str
    text: str


def make_pattern(words: str) -> re.Pattern[str]:
    """Compile alternatives that match as whole words."""
    return re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE)


def make_measurement_pattern(lang: str) -> re.Pattern[str]:
    """Compile a number, in digits or words, beside a word like a unit."""
    return make_pattern(rf"(?:\d|\b(?:{_NUMBER_WORDS[lang]})\b)[\s-]?(?:{_UNITS[lang]})")


def read_sentences(
    folder: Path, lang: str, files: Sequence[str], *, notes: bool, seed: int
) -> Iterator[list[Sentence]]:
    """Read the sentences of some lines of each file.

    folder (Path): Folder of the raw text.
    lang (str): Language of the files.
    files (Sequence[str]): Paths below the folder.
    notes (bool): Whether all notes are read, and no dialogue, in place of a few lines.
    seed (int): Random seed for the choice of lines.
    YIELDS (list[Sentence]): Sentences of 25 to 250 characters of one file, in random order.
    """
    nlp = make_blank(lang, "bioclin_sentences")
    nlp.max_length = 10_000_000
    for file in files:
        choice = random.Random(f"{seed} {file}")
        lines = lzma.decompress((folder / file).read_bytes()).decode("utf-8").split("\n")
        numbers = [n for n, line in enumerate(lines) if not (notes and DIALOGUE.search(line))]
        if not notes:
            wanted = N_LINES * (20 if "ehealth" in file else 1)  # its lines are sentences
            numbers = choice.sample(numbers, min(wanted, len(numbers)))
        found = []
        for number in numbers:
            for sent in nlp(lines[number]).sents:
                text = sent.text.strip()
                start = sent.start_char + sent.text.index(text) if text else 0
                if 25 <= len(text) <= 250 and re.search(r"[^\W\d]{3}", text):
                    place = (file, number, start, start + len(text))
                    found.append(Sentence(*place, "", text))
        choice.shuffle(found)
        yield found


def drop_repeats(sentences: list[Sentence]) -> list[Sentence]:
    """Keep the first of sentences that differ only in case, digits and white space."""
    kept = {re.sub(r"[\d\W]+", " ", sent.text).lower(): sent for sent in reversed(sentences)}
    return list(reversed(kept.values()))


def draw_assertions(folder: Path) -> list[Sentence]:
    """Draw by the words of each attribute, then at random among sentences without any."""
    [found] = read_sentences(folder, "en", [NOTES], notes=True, seed=SEED)
    found = drop_repeats(found)
    drawn: dict[tuple[int, int], Sentence] = {}
    for words, count in ASSERTION_CUES.values():
        pattern = make_pattern(words)
        new = (s for s in found if (s.line, s.start) not in drawn and pattern.search(s.text))
        for _, sent in zip(range(count), new, strict=False):
            drawn[sent.line, sent.start] = sent._replace(drawn="cue")
    cue = make_pattern("|".join(words for words, _ in ASSERTION_CUES.values()))
    plain = [s._replace(drawn="random") for s in found if not cue.search(s.text)]
    return [*drawn.values(), *plain[: N_RANDOM["assertions"]]]


def draw_measurements(folder: Path, lang: str) -> list[Sentence]:
    """Draw as many sentences of each source, half by cue, half of those with a digit."""
    files = sorted(f"{lang}/{path.name}" for path in (folder / lang).glob("*.txt.xz"))
    pools = [drop_repeats(s) for s in read_sentences(folder, lang, files, notes=False, seed=SEED)]
    drawn: dict[tuple[str, int, int], Sentence] = {}
    ways = {
        "cue": (make_measurement_pattern(lang), N_CUE),
        "random": (re.compile(r"\d"), N_RANDOM[f"measurements-{lang}"]),
    }
    for kind, (pattern, goal) in ways.items():
        turns = [iter([sent for sent in pool if pattern.search(sent.text)]) for pool in pools]
        count = 0
        while count < goal:  # one of each source in turns
            for turn in turns:
                sent = next((sent for sent in turn if sent[:3] not in drawn), None)
                if sent is not None and count < goal:
                    drawn[sent[:3]] = sent._replace(drawn=kind)
                    count += 1
    return list(drawn.values())


def main() -> None:
    """Draw a set and write it for annotation."""
    parser = make_parser(__doc__)
    parser.add_argument("name", choices=sorted(N_RANDOM))
    name = parser.parse_args().name
    folder = data_dir() / "pretraining"
    if name == "assertions":
        drawn = draw_assertions(folder)
    else:
        drawn = draw_measurements(folder, name[-2:])
    random.Random(SEED).shuffle(drawn)
    path = WORK / "context" / f"{name}.tsv"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [(*Sentence._fields[:5], "sentence"), *drawn]
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
    print(f"{len(drawn)} sentences in {path}")


if __name__ == "__main__":
    main()
