"""Check, in a new environment, that a pipeline gives the same results however it is stored.

`python -I -m spacy_bioclin.packaging.probe NAME FOLDER [OTHER]` prints one JSON object per line:
the name of a check when it begins, and its outcome when it ends. FOLDER is for its files, OTHER a
pipeline that must give the same results.
"""

import json
import sys
from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from ..spans import get_layers
from ..vocab import check_components

# Invented for these checks.
NOTES = {
    "es": (
        "Paciente de 54 años con neumonía adquirida en la comunidad. Se inicia amoxicilina "
        "500 mg cada 8 horas. No refiere fiebre.",
        "Nombre: Lucía Ferrer Alcázar. NHC: 4471902. Domicilio: C/ del Olmo 14, 2ºB, 46900 "
        "Torrent. Fecha de ingreso: 12/03/2019.",
        "Varón con diabetes mellitus tipo 2 en tratamiento con metformina 850 mg. Se realiza TAC "
        "abdominal en el Hospital de la Ribera.\n\nDiagnóstico: apendicitis aguda.",
        "",
        "Alta el 3 de mayo. Dra. Inés Roca, tel. 961 555 010. Control en 15 días con analítica.",
    ),
    "en": (
        "54-year-old man with community-acquired pneumonia. Started on amoxicillin 500 mg every 8 "
        "hours. Denies fever.",
        "Name: Laura Whitfield. MRN: 4471902. Address: 14 Elm Road, Ashford. Admitted on "
        "03/12/2019.",
        "She has type 2 diabetes mellitus and takes metformin 850 mg. CT of the abdomen at Ashford "
        "General Hospital.\n\nDiagnosis: acute appendicitis.",
        "",
        "Discharged on 3 May. Dr. Ian Rowe, phone 555 0101. Blood tests in 15 days.",
    ),
}
COPIES = 4  # of the notes, so that two processes both get some
BATCH = 3
# Between one note at a time and batches, bf16 rounds differently; so it does, on some processors,
# between several threads and the one that a worker process has. Such a difference can tip an entity
# that is hardly more likely than not.
ROUNDING = 0.05
UNDECIDED = 0.5 + ROUNDING
EXACT = 1e-3


class Found(NamedTuple):
    """A span that a pipeline found: layer ("ents" or a key of doc.spans), offsets, label, kb_id."""

    layer: str
    start: int
    end: int
    label: str
    kb_id: str


Findings = dict[Found, float | None]  # with their probabilities


class Mismatch(Exception):
    """Two ways give different results. The message has counts, no text of notes."""


def find(doc: Any) -> Findings:
    """Read all entities and spans of a Doc."""
    return {
        Found(key or "ents", span.start_char, span.end_char, span.label_, span.kb_id_): p
        for key, spans, probabilities in get_layers(doc)
        for span, p in zip(spans, probabilities, strict=True)
    }


def compare(ours: Sequence[Findings], theirs: Sequence[Findings], tolerance: float) -> None:
    """Compare Doc by Doc.

    tolerance (float): By how much probabilities may differ. From `ROUNDING` on, a span that only
        one side has is excused if it was undecided there.
    RAISES (Mismatch): They are not the same.
    """
    n_spans, n_probabilities, worst = 0, 0, 0.0
    for left, right in zip_longest(ours, theirs, fillvalue=None):
        if left is None or right is None:
            raise Mismatch(f"{len(ours)} documents became {len(theirs)}")
        for span in left.keys() ^ right.keys():
            p = left.get(span, right.get(span))
            n_spans += not (tolerance >= ROUNDING and p is not None and p < UNDECIDED)
        for span in left.keys() & right.keys():
            p, q = left[span], right[span]
            if p is None or q is None:
                n_probabilities += p is not q
            else:
                n_probabilities += abs(p - q) > tolerance
                worst = max(worst, abs(p - q))
    if n_spans:
        raise Mismatch(f"{n_spans} spans are found by one side only")
    if n_probabilities:
        raise Mismatch(f"{n_probabilities} probabilities differ, by {worst:.2g} at most")


def checks(
    nlp: Any, package: str, folder: Path, other: str | None
) -> dict[str, Callable[[], str | None]]:
    """Make the checks.

    RETURNS (dict): Name of a check -> function that raises `Mismatch`, or returns details.
    """
    import spacy
    from spacy.tokens import DocBin

    texts = [*NOTES["es"], *NOTES["en"]] * COPIES
    found: dict[str, list[Findings]] = {}

    def pipe(pipeline: Any, n_process: int = 1) -> list[Findings]:
        return [find(d) for d in pipeline.pipe(texts, batch_size=BATCH, n_process=n_process)]

    def one_by_one() -> str:
        own = [find(nlp(text)) for text in texts]
        found["single"] = own
        n_found = sum(map(len, own)) // COPIES
        labels = {span.label for findings in own for span in findings}
        if not n_found:
            raise Mismatch("the pipeline finds nothing in any of the built-in notes")
        return f"{n_found} spans of {len(labels)} labels in {len(texts) // COPIES} notes"

    def in_batches() -> None:
        found["pipe"] = pipe(nlp)
        compare(found["single"], found["pipe"], ROUNDING)

    def through_bytes() -> None:
        # An empty pipeline of the same config; its weights come from the bytes alone.
        copy = spacy.util.load_model_from_config(nlp.config, meta=nlp.meta)
        copy.from_bytes(nlp.to_bytes())
        compare(found["pipe"], pipe(copy), EXACT)

    def through_disk() -> None:
        check_components(nlp.component_names)
        nlp.to_disk(folder / "pipeline")
        compare(found["pipe"], pipe(spacy.load(folder / "pipeline")), EXACT)

    def through_docbin() -> None:
        docs = []
        for doc in nlp.pipe(texts, batch_size=BATCH):
            if doc.has_extension("trf_data"):
                doc._.trf_data = None  # vectors: of no use later, and not to be serialised
            docs.append(doc)
        data = DocBin(docs=docs, store_user_data=True).to_bytes()
        back = DocBin(store_user_data=True).from_bytes(data).get_docs(nlp.vocab)
        compare(found["pipe"], [find(doc) for doc in back], EXACT)

    every: dict[str, Callable[[], str | None]] = {
        "requirements": lambda: check_requirements(package),
        "nlp(text)": one_by_one,
        "nlp.pipe(texts)": in_batches,
        "nlp.pipe(texts, n_process=2)": lambda: compare(found["pipe"], pipe(nlp, 2), ROUNDING),
        "to_bytes, from_bytes": through_bytes,
        "to_disk, load": through_disk,
        "DocBin": through_docbin,
    }
    if other is not None:
        every["same as --against"] = lambda: compare(found["pipe"], pipe(spacy.load(other)), EXACT)
    return every


def check_requirements(package: str) -> str:
    """Check that what the package requires is installed, in the versions it wants.

    RAISES (Mismatch): Something is missing or has another version.
    """
    from importlib.metadata import PackageNotFoundError, requires, version

    from packaging.requirements import Requirement

    every = [Requirement(line) for line in requires(package) or []]
    wanted = [r for r in every if r.marker is None or r.marker.evaluate({"extra": ""})]
    for requirement in wanted:
        try:
            present = version(requirement.name)
        except PackageNotFoundError:
            raise Mismatch(f"{requirement} is not installed") from None
        if not requirement.specifier.contains(present, prereleases=True):
            raise Mismatch(f"wants {requirement}, but {present} is installed")
    return ", ".join(map(str, wanted))


def refuse_network(event: str, args: tuple[Any, ...]) -> None:
    """Raise at any attempt to reach another machine: an audit hook, which forked workers keep."""
    if event == "socket.getaddrinfo":
        raise Mismatch(f"the pipeline looks up the network address {args[0]!r}")
    if event == "socket.connect" and isinstance(args[1], tuple):  # a local socket has a str
        raise Mismatch(f"the pipeline connects to {args[1][0]!r}")


def main(package: str, folder: str, other: str | None = None) -> int:
    """Run all checks, up to the first that fails.

    RETURNS (int): Exit status.
    """
    sys.addaudithook(refuse_network)
    running = "load"
    _say(begin=running)
    try:
        import spacy

        nlp = spacy.load(package)
        version = f"{nlp.meta['lang']}_{nlp.meta['name']} {nlp.meta['version']}"
        _say(name=running, passed=True, note=version)
        for running, check in checks(nlp, package, Path(folder), other).items():
            _say(begin=running)
            _say(name=running, passed=True, note=check() or "")
    except Mismatch as error:
        _say(name=running, passed=False, note=str(error))
        return 1
    except Exception as error:
        # The notes are invented, so the message holds no text of a real one.
        _say(name=running, passed=False, note=f"{type(error).__name__}: {error}")
        return 1
    return 0


def _say(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
