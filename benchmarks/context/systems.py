"""The systems that assertions.py and speed.py measure, each in a process of its own:

    python -m benchmarks.context.systems assertions SYSTEM LANG      # a sentence per line on stdin
    python -m benchmarks.context.systems speed SYSTEM LANG FILE      # a round per line on stdin

Every system splits tokens and sentences by itself, and is told the mentions, which are in
`doc.spans["mentions"]`. medspaCy and negspacy have their own settings and rules but for that;
negspacy has no sentence splitter, so it gets spaCy's sentencizer, which also splits at line ends.
medspaCy imports QuickUMLS, which is not used here: where it is not installed, an empty module takes
its place. This module imports nothing of spacy_bioclin but through spaCy, so that it runs in an
environment of the other systems.
"""

import json
import sys
import types
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import spacy
from spacy.language import Language
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc, Span

from benchmarks.harness import (
    ROOT,
    WORK,
    Worker,
    make_parser,
    read_json,
    serve,
    thread_environment,
    time_call,
)

MENTIONS = "mentions"
ATTRIBUTES = ("negated", "uncertain", "historical", "hypothetical", "family")
TOKENIZER = {"nlp": {"tokenizer": {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}}}
Place = tuple[int, int]


class System(NamedTuple):
    """A system.

    nlp (Language): Its tokenizer and sentence splitter.
    parts (dict): Name -> component that takes a Doc with mentions, in order.
    attributes (dict): Attribute of the result -> extension of a span.
    versions (dict[str, str]): What ran.
    """

    nlp: Language
    parts: dict[str, Callable[[Doc], Doc]]
    attributes: dict[str, str]
    versions: dict[str, str]

    def prepare(self, text: str, mentions: list[Place]) -> Doc:
        """Make a Doc with tokens, sentences and mentions."""
        doc = self.nlp(text)
        spans = [doc.char_span(*place, alignment_mode="expand") for place in mentions]
        doc.spans[MENTIONS] = [span for span in spans if span is not None]
        return doc

    def read(self, span: Span) -> list[str]:
        """Read the attributes of a mention."""
        return [name for name, own in self.attributes.items() if span._.get(own)]


def start_worker(task: str, system: str, lang: str, peers: str, *arguments: object) -> Worker:
    """Start the process of a system.

    peers (str): Python that runs all systems but ours. It sees the folder of the benchmarks and not
        the root of the checkout, where spaCy would find the entry points of spacy_bioclin.
    """
    folder, logs = WORK / "context" / "peers", WORK / "context" / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    logs.mkdir(parents=True, exist_ok=True)
    link = folder / "benchmarks"
    if not link.is_symlink():
        link.symlink_to(ROOT / "benchmarks", target_is_directory=True)
    ours = system == "bioclin"
    return Worker(
        ("-m", "benchmarks.context.systems", task, system, lang, *arguments),
        logs / f"{task}-{system.replace(' ', '-')}-{lang}.log",
        python=sys.executable if ours else peers,
        cwd=ROOT if ours else folder,
        env={**thread_environment(1), "LOGURU_LEVEL": "ERROR"},  # PyRuSH logs every token
    )


def make_ours(lang: str) -> System:
    nlp = spacy.blank(lang, config=TOKENIZER)
    nlp.add_pipe("bioclin_sentences")
    names = ("sections", "context", "measurements")
    parts = {name: nlp.create_pipe(f"bioclin_{name}") for name in names}
    return System(
        nlp,
        parts,
        {name: name for name in ATTRIBUTES},
        {"spacy-bioclin": version("spacy-bioclin"), "spacy": version("spacy")},
    )


def make_medspacy(lang: str) -> System:
    stub = find_spec("quickumls") is None
    if stub:
        module: Any = types.ModuleType("quickumls")
        module.spacy_component = None
        sys.modules["quickumls"] = module
    import medspacy

    nlp = medspacy.load(
        medspacy_enable=["medspacy_tokenizer", "medspacy_pyrush"], language_code=lang
    )
    config = {"language_code": lang, "input_span_type": "group", "span_group_name": MENTIONS}
    parts = {
        "sections": nlp.create_pipe("medspacy_sectionizer", config=config),
        "context": nlp.create_pipe("medspacy_context", config=config),
    }
    return System(
        nlp,
        parts,
        {name: f"is_{name}" for name in ATTRIBUTES},
        {
            "medspacy": version("medspacy"),
            "PyRuSH": version("PyRuSH"),
            "spacy": version("spacy"),
            "quickumls": "an empty module" if stub else "installed",
        },
    )


def make_negspacy(lang: str, terms: str) -> System:
    import negspacy.negation
    from negspacy.termsets import termset

    nlp = spacy.blank(lang)
    ends = [*Sentencizer.default_punct_chars, "\n", "\n\n", "\r\n", "\n \n"]
    nlp.add_pipe("sentencizer", config={"punct_chars": ends})
    negex = negspacy.negation.Negex(
        nlp, "negex", neg_termset=termset(terms).get_patterns(), span_keys=[MENTIONS]
    )
    return System(
        nlp,
        {"context": negex},
        {"negated": "negex"},
        {"negspacy": version("negspacy"), "spacy": version("spacy"), "terms": terms},
    )


# medspaCy has no rules for Spanish (resources/es/context_rules.json is empty).
MAKERS: dict[str, dict[str, Callable[[], System]]] = {
    "en": {
        "bioclin": partial(make_ours, "en"),
        "medspacy": partial(make_medspacy, "en"),
        "negspacy": partial(make_negspacy, "en", "en_clinical"),
    },
    "es": {
        "bioclin": partial(make_ours, "es"),
        "negspacy": partial(make_negspacy, "es", "es_clinical"),
        "negspacy, default terms": partial(make_negspacy, "es", "en_clinical"),
    },
}


def serve_assertions(system: System) -> tuple[Any, Callable[[str], Any]]:
    """Answer a sentence with the attributes of its mentions."""

    def answer(line: str) -> list[list[str]]:
        question = json.loads(line)
        doc = system.prepare(question["text"], question["mentions"])
        for component in system.parts.values():
            doc = component(doc)
        return [system.read(span) for span in doc.spans[MENTIONS]]

    return system.versions, answer


def serve_speed(system: System, file: Path) -> tuple[Any, Callable[[str], Any]]:
    """Answer a round with the processor seconds of each part.

    file (Path): A list of texts, each with its mentions.
    """
    texts = [(one["text"], one["mentions"]) for one in read_json(file)]

    def answer(_: str) -> dict[str, float]:
        docs: list[Doc] = []
        seconds = {
            "tokens and sentences": time_call(
                lambda: docs.extend(system.prepare(*one) for one in texts)
            ).cpu
        }
        for name, component in system.parts.items():
            seconds[name] = time_call(partial(_run, component, docs)).cpu
            if name == "context":  # some systems work when an attribute is read
                seconds[name] += time_call(partial(_read, system, docs)).cpu
        return seconds

    return system.versions, answer


def _run(component: Callable[[Doc], Doc], docs: list[Doc]) -> None:
    for doc in docs:
        component(doc)


def _read(system: System, docs: list[Doc]) -> None:
    for doc in docs:
        for span in doc.spans[MENTIONS]:
            system.read(span)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("task", choices=("assertions", "speed"))
    parser.add_argument("system")
    parser.add_argument("lang", choices=MAKERS)
    parser.add_argument("file", nargs="?", type=Path)
    args = parser.parse_args()

    def first() -> tuple[Any, Callable[[str], Any]]:
        system = MAKERS[args.lang][args.system]()
        return serve_speed(system, args.file) if args.task == "speed" else serve_assertions(system)

    serve(first)


if __name__ == "__main__":
    main()
