"""De-identification of MEDDOCAN: official scores, and the recall that a hospital asks for.

    python -m benchmarks.deid.meddocan --seeds 0
    python -m benchmarks.deid.meddocan --seeds 0 --train-on train dev

Trains configs/deid.cfg on the encoder that ships, on the notes and two copies of each with
surrogates in the place of PHI (bioclin augment-phi). Calibration and thresholds are chosen on dev;
the test split is scored once at the end. Systems:

neural     the tagger alone
rules      `bioclin_phi_rules` alone
together   both merged, thresholds for the best F1 of each label
recall     both merged, thresholds for a recall of 0.99 of each label on dev

"official" are the shared task's own measures (strict NER with the leak score, spans strict and
merged) of doc.spans["phi"]. "covered" is what de-identification needs: the share of gold mentions
all of whose letters and digits are hidden, whatever the label; "over_redaction" is the share of
hidden letters and digits that are no gold PHI.

With --train-on train dev the tagger learns from both, as participants of the task did; what was
chosen on dev (updates, calibration, thresholds) is taken over from the run on train alone.
"""

import statistics
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin

from benchmarks.corpora import LANG, SHIPPED, make_blank
from benchmarks.harness import (
    WORK,
    data_dir,
    make_parser,
    read_json,
    run_python,
    to_options,
    write_json,
    write_result,
)
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.deid.calibration import BALANCED, HIGH_RECALL, expected_calibration_error
from spacy_bioclin.deid.fit import calibrate, judge
from spacy_bioclin.deid.pipeline import add_deid, find_deid
from spacy_bioclin.evaluation.official import ScoredDoc, meddocan
from spacy_bioclin.evaluation.spans import reference_spans
from spacy_bioclin.types import CharSpan

FOLDER = WORK / "deid"
TASK = "meddocan"
TARGET_RECALL = 0.99
IDENTIFIERS = (
    *("ID_SUJETO_ASISTENCIA", "ID_ASEGURAMIENTO", "ID_TITULACION_PERSONAL_SANITARIO"),
    *("ID_CONTACTO_ASISTENCIAL", "NUMERO_TELEFONO", "NUMERO_FAX", "CORREO_ELECTRONICO"),
)


def prepare() -> dict[str, Path]:
    """Convert the corpus, and return its files by name."""
    files = {name: FOLDER / "corpus" / f"{name}.spacy" for name in ("train", "dev", "test")}
    for split, path in files.items():
        if not path.exists():
            source = data_dir() / TASK / split / "brat"
            run_python("-m", "spacy_bioclin", "convert", "brat", source, path, "--task", TASK)
    vocab = spacy.blank("es").vocab
    docs = {split: list(read_docs(files[split], vocab)) for split in ("train", "dev")}
    parts = {"train-dev": docs["train"] + docs["dev"], "dev-sample": docs["dev"][::5]}
    for name, kept in parts.items():
        files[name] = FOLDER / "corpus" / f"{name}.spacy"
        if not files[name].exists():
            DocBin(docs=kept, store_user_data=True).to_disk(files[name])
    return files


def augment(path: Path) -> Path:
    """Write gold Docs and their copies with surrogates to a file, unless it exists."""
    out = path.with_name(f"{path.stem}-augmented.spacy")
    if not out.exists():
        command = ("-m", "spacy_bioclin", "augment-phi", path, "-o", out, "--lang", LANG[TASK])
        run_python(*command)
    return out


def train(files: dict[str, Path], corpus: str, seed: int) -> Path:
    """Train a pipeline, unless it was trained before, and return its folder."""
    out = FOLDER / f"{corpus}-{seed}"
    if not (out / "model-last").exists():
        out.mkdir(parents=True, exist_ok=True)
        settings = {
            "paths.train": augment(files[corpus]),
            "paths.dev": files["dev-sample"],
            "paths.encoder": SHIPPED,
            "nlp.lang": LANG[TASK],
            "system.seed": seed,
            "training.logger.progress_bar": "null",
        }
        command = ("-m", "spacy", "train", "configs/deid.cfg", "-o", out, *to_options(settings))
        run_python(*command, log=out / "training.log")
    return out / "model-last"


def gold_of(doc: Doc) -> list[CharSpan]:
    return sorted(reference_spans(doc, "phi") or ())


def score(nlp: Language, docs: list[Doc]) -> dict[str, Any]:
    """Compute official scores and coverage of what `bioclin_deid` found.

    Without that component, doc.spans["phi"] is scored.
    """
    scored, covered, hidden, wasted = [], {}, 0, 0
    for doc, reference in nlp.pipe(((doc.text, doc) for doc in docs), as_tuples=True):
        text, gold = doc.text, gold_of(reference)
        found = [(s.start_char, s.end_char, s.label_) for s in doc.spans["phi"]]
        scored.append(ScoredDoc(text, gold, found))
        safe = (
            [(s.start, s.end) for s in doc._.deid.spans] if doc._.deid else [f[:2] for f in found]
        )
        dark = {i for start, end in safe for i in range(start, end) if text[i].isalnum()}
        phi = {i for start, end, _ in gold for i in range(start, end) if text[i].isalnum()}
        hidden += len(dark)
        wasted += len(dark - phi)
        for start, end, label in gold:
            letters = {i for i in range(start, end) if text[i].isalnum()}
            covered.setdefault(label, []).append(letters <= dark)
    every = [hit for hits in covered.values() for hit in hits]
    return {
        "official": round_all(meddocan(scored)),
        "covered": round(statistics.mean(every), 4),
        "covered_by_label": {
            label: {"recall": round(statistics.mean(hits), 4), "n": len(hits)}
            for label, hits in sorted(covered.items())
        },
        "over_redaction": round(wasted / max(hidden, 1), 4),
    }


def round_all(scores: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    return {name: {k: round(v, 4) for k, v in row.items()} for name, row in scores.items()}


def calibration_error(nlp: Language, docs: list[Doc]) -> dict[str, float]:
    """Compute the expected calibration error on docs, with and without the calibration."""
    deid = find_deid(nlp)
    platt, deid.calibration = deid.calibration, {}
    raw = [candidate for _, found in judge(nlp, docs) for candidate in found]
    deid.calibration = platt
    right = [candidate.correct for candidate in raw]
    before = [candidate.span.confidence for candidate in raw]
    after = [deid.calibrate_span(candidate.span).confidence for candidate in raw]
    return {
        "before": round(expected_calibration_error(before, right), 4),
        "after": round(expected_calibration_error(after, right), 4),
        "n_spans": len(raw),
    }


def run_seed(seed: int, train_on: list[str]) -> dict[str, Any]:
    files = prepare()
    chooser = train(files, "train", seed)
    scored = chooser if train_on == ["train"] else train(files, "-".join(train_on), seed)
    vocab = spacy.blank("es").vocab
    dev, test = (list(read_docs(files[split], vocab)) for split in ("dev", "test"))
    systems: dict[str, Any] = {}
    chosen = {}
    for name, point in (("together", BALANCED), ("recall", HIGH_RECALL)):
        nlp = spacy.load(chooser)
        add_deid(nlp)
        chosen[name] = calibrate(nlp, dev, TARGET_RECALL, operating_point=point)
        systems[name] = {"dev": score(nlp, dev)}
        if scored != chooser:
            settings = find_deid(nlp).to_bytes()
            doubtful = nlp.get_pipe("ner").cfg["doubtful_from"]
            nlp = spacy.load(scored)
            add_deid(nlp)
            find_deid(nlp).from_bytes(settings)
            nlp.get_pipe("ner").cfg["doubtful_from"] = doubtful
        systems[name]["test"] = score(nlp, test)
        if name == "together":
            chosen["calibration_error_on_test"] = calibration_error(nlp, test)
    for name in ("neural", "rules"):
        alone = (
            make_blank("es", "bioclin_phi_rules")
            if name == "rules"
            else spacy.load(scored, exclude=["rules", "deid"])
        )
        systems[name] = {"dev": score(alone, dev), "test": score(alone, test)}
    rules = systems["rules"]["test"]["covered_by_label"]
    found = sum(rules[label]["recall"] * rules[label]["n"] for label in IDENTIFIERS)
    return {
        "seed": seed,
        "train_on": train_on,
        "chosen_on_dev": chosen,
        "rules_recall_of_identifier_labels": round(
            found / sum(rules[label]["n"] for label in IDENTIFIERS), 4
        ),
        "systems": systems,
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--train-on", nargs="+", default=["train"], choices=["train", "dev"])
    arguments = parser.parse_args()
    for seed in arguments.seeds:
        name = f"{'-'.join(arguments.train_on)}-{seed}"
        result = run_seed(seed, arguments.train_on)
        write_json(FOLDER / f"result-{name}.json", result)
        for system, scores in result["systems"].items():
            ner = scores["test"]["official"]["ner"]
            print(name, system, ner, "covered", scores["test"]["covered"])
    runs = [read_json(path) for path in sorted(FOLDER.glob("result-*.json"))]
    print(write_result("deid_meddocan", {"runs": runs}))


if __name__ == "__main__":
    main()
