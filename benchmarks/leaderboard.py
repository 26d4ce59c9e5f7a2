"""Scores, calibration, de-identification and speed of a pipeline that ships, or of any other.

    python -m benchmarks.leaderboard packages/es --corpora corpus/flagship-es --name es_bioclin_sm
    python -m benchmarks.leaderboard imported --corpora corpus/flagship-es --name peer --skip-speed

The pipeline is a folder or a package. Every CORPORA/NAME/test.spacy is scored on the layers that it
is annotated for, on labels that the pipeline knows, with strict scores as `bioclin evaluate` counts
them. A checkpoint gets the layer and the labels of the corpora from `bioclin import-hf --spans-key
clinical --labels FILE`. A corpus for which it has no layer or no label is not scored.

"calibration_error" is the expected calibration error of the probabilities of all spans found.
Corpora with the layer "phi", and the hard notes (benchmarks/deid/hard_notes.py), are also scored
for de-identification at each operating point of `bioclin calibrate`; "default" is the only one of
a pipeline that was not calibrated. "leak" and F1 are those of the MEDDOCAN task, the shares those
of benchmarks/deid/hard_notes.py. Speed is that of
benchmarks/leaderboard_speed.py.

The result has an entry for each --name. What was measured for the same files of the pipeline and
the same data is kept, unless --again. It holds no text of a note.
"""

import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import get_package_path, is_package

from benchmarks import leaderboard_speed
from benchmarks.deid import hard_notes
from benchmarks.deid.phi_suite.generate import Gold
from benchmarks.harness import RESULTS, WORK, describe_machine, make_parser, read_json, write_json
from benchmarks.leaderboard_speed import ENTITIES, PARTS, find_parts
from spacy_bioclin.cli.loading import load_pipeline
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.deid.calibration import expected_calibration_error
from spacy_bioclin.deid.labels import phi_type_of
from spacy_bioclin.deid.pipeline import find_deid
from spacy_bioclin.deid.spans import PhiSpan
from spacy_bioclin.evaluation.confusion import LayerDoc
from spacy_bioclin.evaluation.metrics import ENTS, layer_metrics, run_pipeline
from spacy_bioclin.evaluation.official import ScoredDoc, meddocan
from spacy_bioclin.spans import get_layers
from spacy_bioclin.types import CharSpan

PHI = "phi"
DEFAULT = "default"
# Files of a package that say something about the pipeline and change nothing in it.
ABOUT = ("meta.json", "README.md", "MODEL_CARD.md", "LICENSE", "LICENSES_SOURCES")
# Components that change neither entities nor PHI.
AFTER = ("linker", "context, measurements, sections")
OF_PHI = ("phi", "rules", "deid")


def find_folder(pipeline: str) -> Path:
    """Find the files of a pipeline.

    RAISES (SystemExit): There are none.
    """
    folder = get_package_path(pipeline) if is_package(pipeline) else Path(pipeline)
    configs = sorted(folder.rglob("config.cfg"), key=lambda path: len(path.parts))
    if not configs:
        sys.exit(f"{folder.name}: no pipeline, it has no config.cfg")
    return configs[0].parent


def find_fingerprint(folder: Path) -> str:
    """Hash the files of a pipeline that decide what it finds, with their paths."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.is_file() and inside.name not in ABOUT and path.suffix not in (".py", ".pyc"):
            digest.update(f"{inside.as_posix()}\n{hash_file(path)}\n".encode())
    return digest.hexdigest()


def hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def round_all(value: Any) -> Any:
    """Round all numbers in JSON to four digits."""
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, Mapping):
        return {key: round_all(each) for key, each in value.items()}
    return [round_all(each) for each in value] if isinstance(value, list | tuple) else value


def known_labels(nlp: Language, layer: str) -> set[str] | None:
    """Collect the labels that the pipeline has for a layer.

    RETURNS (set[str] | None): None if that is not known: of PHI, which rules find too, and of a
        pipeline whose components do not say their labels.
    """
    if layer == PHI:
        return None
    return {label for labels in nlp.pipe_labels.values() for label in labels} or None


# -- what a pipeline finds -------------------------------------------------------------------------

# Probability of each span that has one, and what is hidden.
Probabilities = dict[str, list[tuple[CharSpan, float]]]


def read_probabilities(doc: Doc) -> Probabilities:
    """Read the probabilities of all layers."""
    return {
        spans_key or ENTS: [
            ((span.start_char, span.end_char, span.label_), probability)
            for span, probability in zip(spans, probabilities, strict=True)
            if probability is not None
        ]
        for spans_key, spans, probabilities in get_layers(doc)
    }


def read_hidden(doc: Doc) -> list[PhiSpan]:
    """Read what `bioclin_deid` hides, or doc.spans["phi"] without that component."""
    if doc.has_extension("deid") and doc._.deid:
        return list(doc._.deid.spans)
    spans = doc.spans.get(PHI, ())
    return [PhiSpan(s.start_char, s.end_char, s.label_, 1.0, s.id_) for s in spans]


@contextmanager
def operating_point(nlp: Language, point: str) -> Iterator[None]:
    """Set an operating point of de-identification for a while."""
    if point == DEFAULT:
        yield
        return
    deid = find_deid(nlp)
    before, deid.operating_point = deid.operating_point, point
    try:
        yield
    finally:
        deid.operating_point = before


def list_operating_points(nlp: Language) -> list[str]:
    """List the operating points of a calibrated pipeline; of another, the only one."""
    points = find_deid(nlp).operating_points if find_parts(nlp).get("deid") else {}
    return sorted(points) or [DEFAULT]


# -- scores ----------------------------------------------------------------------------------------


def score_corpus(nlp: Language, references: list[Doc]) -> dict[str, Any]:
    """Score what a pipeline finds in a corpus, without the components that do not matter."""
    layers = {layer for doc in references for layer in doc.spans} | {ENTS}
    parts = find_parts(nlp)
    unneeded = [*AFTER, *(OF_PHI if PHI not in layers else ())]
    found: list[Probabilities] = []
    hidden: list[list[PhiSpan]] = []

    def on_doc(doc: Doc) -> None:
        found.append(read_probabilities(doc))
        hidden.append(read_hidden(doc))
        if doc.has_extension("trf_data"):
            doc._.trf_data = None

    with nlp.select_pipes(disable=[name for part in unneeded for name in parts.get(part, ())]):
        run = run_pipeline(nlp, references, on_doc)
        result: dict[str, Any] = {"docs": run.n_docs, "words": run.n_words, "tasks": run.tasks}
        result["layers_not_set"] = run.unpredicted
        result["layers"] = {}
        for layer, docs in run.layers.items():
            if scored := score_layer(docs, known_labels(nlp, layer)):
                scored |= find_calibration_error(layer, docs, found)
                result["layers"][layer] = scored
        if PHI in run.layers:
            result["phi"] = {}
            for point in list_operating_points(nlp):
                hidden.clear()
                with operating_point(nlp, point):
                    docs = run_pipeline(nlp, references, on_doc).layers[PHI]
                result["phi"][point] = score_phi(docs, hidden)
    return round_all(result)


def score_layer(docs: Sequence[LayerDoc], known: set[str] | None) -> dict[str, Any] | None:
    """Compute strict scores on the labels that the pipeline knows.

    RETURNS (dict | None): None if it knows no label of the corpus.
    """
    gold = {label for doc in docs for label in doc.labels or {span[2] for span in doc.reference}}
    labels = gold if known is None else gold & known
    if not labels:
        return None
    if gold - labels:
        docs = [
            doc._replace(reference={span for span in doc.reference if span[2] in labels})
            for doc in docs
        ]
    strict = layer_metrics(docs)["strict"]
    others = {"labels": sorted(labels), "labels_not_known": sorted(gold - labels)}
    return {"docs": len(docs), **others, **strict}


def find_calibration_error(
    layer: str, docs: Sequence[LayerDoc], found: Sequence[Probabilities]
) -> dict[str, Any]:
    """Compute the expected calibration error of the spans that have a probability.

    docs (Sequence[LayerDoc]): Those of the layer; a Doc without annotation of it has none.
    """
    confidence, correct = [], []
    if len(docs) == len(found):
        for doc, layers in zip(docs, found, strict=True):
            for span, probability in layers.get(layer, ()):
                if span in doc.predicted:  # not of a label that was not annotated
                    confidence.append(probability)
                    correct.append(span in doc.reference)
    error = expected_calibration_error(confidence, correct) if confidence else None
    return {"calibration_error": error, "spans_with_probability": len(confidence)}


def score_phi(docs: Sequence[LayerDoc], hidden: Sequence[Sequence[PhiSpan]]) -> dict[str, Any]:
    """Score de-identification: official scores of the spans, and shares that are hidden."""
    scored = [ScoredDoc(doc.text, sorted(doc.reference), sorted(doc.predicted)) for doc in docs]
    notes = [hard_notes.Note("corpus", doc.text, make_gold(doc.reference)) for doc in docs]
    return {"official": meddocan(scored), **hard_notes.score(notes, hidden)["all"]}


def make_gold(spans: set[CharSpan]) -> tuple[Gold, ...]:
    """Give gold spans the types of PHI that their labels mean."""
    types = [(start, end, phi_type_of(label) or "other") for start, end, label in sorted(spans)]
    return tuple(Gold(start, end, phi_type, True) for start, end, phi_type in types)


def score_hard_notes(nlp: Language, notes: Sequence[hard_notes.Note]) -> dict[str, Any]:
    """Score the hard notes at each operating point, by group of PHI."""
    result = {}
    parts = find_parts(nlp)
    unneeded = [name for part in (*AFTER, ENTITIES) for name in parts.get(part, ())]
    with nlp.select_pipes(disable=unneeded):
        for point in list_operating_points(nlp):
            with operating_point(nlp, point):
                texts = [note.text for note in notes]
                scores = hard_notes.score(notes, [read_hidden(doc) for doc in nlp.pipe(texts)])
            result[point] = {"all": scores["all"], "groups": scores["groups"]}
    return {"notes": len(notes), "points": result}


# -- the entry -------------------------------------------------------------------------------------


class Entry:
    """An entry of the leaderboard, which is written after each measurement.

    path (Path): The file of results.
    name (str): Name of the entry.
    fingerprint (str): That of the pipeline. An entry of another pipeline is replaced.
    again (bool): Replace the entry in any case.
    """

    def __init__(self, path: Path, name: str, fingerprint: str, *, again: bool) -> None:
        self.path, self.name = path, name
        old = self._read()["entries"].get(name, {})
        same = old.get("fingerprint") == fingerprint and not again
        self.values: dict[str, Any] = old if same else {"fingerprint": fingerprint}

    def _read(self) -> dict[str, Any]:
        return read_json(self.path) if self.path.exists() else {"entries": {}}

    def write(self) -> None:
        """Write the entry, and leave the others as they are."""
        entries = {**self._read()["entries"], self.name: self.values}
        write_json(self.path, {"entries": dict(sorted(entries.items()))}, indent=2)

    def measure(
        self, section: str, name: str, data: str, function: Callable[[], dict[str, Any]]
    ) -> None:
        """Call a function and write what it returns, unless that was measured on the same data."""
        part = self.values.setdefault(section, {})
        if part.get(name, {}).get("data_sha256") == data:
            print(f"{section}, {name}: measured before", flush=True)
            return
        print(f"{section}, {name}", flush=True)
        machine = describe_machine()
        measured = {key: machine[key] for key in ("date", "cpu", "cores", "commit")}
        part[name] = {"measured": measured, "data_sha256": data, **function()}
        self.write()


def measure_hard_notes(nlp: Language, entry: Entry) -> None:
    """Measure de-identification of the hard notes of the language."""
    parts = find_parts(nlp)
    for split in ("dev", "test"):
        path = hard_notes.FOLDER / f"{nlp.lang}_{split}.txt"
        if not path.exists():
            continue
        notes, data = hard_notes.read_notes(path), hash_file(path)
        if any(part in parts for part in OF_PHI):
            entry.measure("hard_notes", split, data, partial(score_hard_notes, nlp, notes))


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("pipeline", help="folder or package")
    parser.add_argument("--corpora", type=Path, required=True, help="folder of NAME/test.spacy")
    parser.add_argument("--name", required=True, help="name of the entry")
    parser.add_argument("--skip-speed", action="store_true")
    parser.add_argument("--again", action="store_true", help="measure everything again")
    parser.add_argument("--output", type=Path, default=RESULTS / "leaderboard.json")
    arguments = parser.parse_args()
    tests = {path.parent.name: path for path in sorted(arguments.corpora.glob("*/test.spacy"))}
    if not tests:
        parser.error(f"--corpora {arguments.corpora}: has no NAME/test.spacy")
    folder = find_folder(arguments.pipeline)
    nlp = load_pipeline(arguments.pipeline)
    entry = Entry(arguments.output, arguments.name, find_fingerprint(folder), again=arguments.again)
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    entry.values |= {
        "pipeline": {
            "lang": nlp.lang,
            "version": nlp.meta["version"],
            "size_mb": round(sum(sizes) / 1e6, 1),
            "components": dict(nlp.pipe_factories),
            "labels": {name: sorted(labels) for name, labels in nlp.pipe_labels.items() if labels},
        },
        "versions": describe_machine()["versions"],
    }
    for name, path in tests.items():
        entry.measure(
            "corpora",
            name,
            hash_file(path),
            partial(score_corpus, nlp, list(read_docs(path, nlp.vocab))),
        )
    measure_hard_notes(nlp, entry)
    if not arguments.skip_speed:
        texts = leaderboard_speed.choose_texts([*tests.values()], nlp.vocab)
        file = WORK / "leaderboard" / f"{arguments.name}.json"
        write_json(file, texts)
        pipeline = str(Path(arguments.pipeline).resolve()) if folder.exists() else ""
        pipeline = arguments.pipeline if is_package(arguments.pipeline) else pipeline
        parts = [part for part in PARTS if part in find_parts(nlp)]
        del nlp
        entry.measure(
            "speed",
            "all",
            hash_file(file),
            lambda: leaderboard_speed.measure(pipeline, file, parts),
        )
    entry.write()
    print(arguments.output)


if __name__ == "__main__":
    main()
