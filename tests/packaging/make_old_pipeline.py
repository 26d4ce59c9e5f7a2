"""Make what test_old_wheel.py loads: a pipeline as the code of 0.1.0 wrote it, and its annotation.

    python tests/packaging/make_old_pipeline.py OLD_TREE OUT

Run it with the Python of OLD_TREE, a checkout of commit 852f9d0 (the last one before the package
was rearranged), never with newer code: what newer code writes says nothing about old files. Needs
two minutes. OUT gets

- es_bioclin_old-0.1.0-py3-none-any.whl: every component that writes something to disk, very small
- old_pipeline.json: what the old code annotated on a few invented notes
- old_gold.spacy: two notes of the demonstration corpus as the old `bioclin convert` wrote them
- old_gold.json: what the old code read from them
"""

import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import spacy
import torch
from spacy import registry
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.util import fix_random_seed, load_config

KEY = b"a key for tests, which protects nothing"
OURS = {"nlp": {"tokenizer": {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}}}
POLICY = {
    "scheme": "meddocan",
    "default": "mask",
    "operators": {
        "NOMBRE_SUJETO_ASISTENCIA": "surrogate",
        "NOMBRE_PERSONAL_SANITARIO": "surrogate",
        "FECHAS": "surrogate",
        "CALLE": "surrogate",
        "TERRITORIO": "mask_number",
        "EDAD_SUJETO_ASISTENCIA": "generalize",
        "PROFESION": "keep",
        "ID_SUJETO_ASISTENCIA": "hash",
        "NUMERO_TELEFONO": "redact",
    },
    "keep_weekdays": True,
}
# What the demonstration corpus calls them -> MEDDOCAN's labels, which the rules write.
PHI_LABELS = {
    "NAME": "NOMBRE_SUJETO_ASISTENCIA",
    "DATE": "FECHAS",
    "AGE": "EDAD_SUJETO_ASISTENCIA",
    "ID": "ID_SUJETO_ASISTENCIA",
    "PHONE": "NUMERO_TELEFONO",
    "EMAIL": "CORREO_ELECTRONICO",
    "ADDRESS": "CALLE",
    "HOSPITAL": "HOSPITAL",
    "PROFESSION": "PROFESION",
}
NOTES = (
    "Paciente: Marta Olmedo Ruiz, 47 años, profesora. NHC 5512034, DNI 12345678-Z.\r\n"
    "Ingresa el 12/03/2018 por neumonía (NAC) e hipertensión arterial (HTA).\r\n"
    "HTA en tratamiento con enalapril. Alta el 19 de marzo de 2018.\r\n",
    "Dra. Inés Villafría, col. 28/28/54321.\tTel. 600 000 412, correo ines@example.org\n\n"
    "Varón de 92 años con EPOC, FA y diabetes mellitus tipo 2. Niega fiebre. Se pauta metformina "
    "850 mg y salbutamol. Avisar a la Sra. Villafría en C/ Olmos 14, 2º A, 47999 Villanueva.\n",
    "TC craneal: ictus isque\u0301mico. Ecocardiograma: insuficiencia cardiaca. \u00a0 "
    "Hb 9.1 g/dL.\nFdo. Dr. Gil (03-05-21). IBAN ES91 2100 0418 4502 0005 1332.",
    "Sin incidencias.",
)
UPDATES = 300


def encoder_of(folder: Path) -> dict[str, Any]:
    return {
        "@architectures": "spacy-bioclin.Encoder.v1",
        "name": str(folder),
        "window": 32,
        "stride": 24,
        "precision": "fp32",
    }


def listener(pooling: str) -> dict[str, Any]:
    return {
        "@architectures": "spacy-transformers.TransformerListener.v1",
        "grad_factor": 1.0,
        "upstream": "*",
        "pooling": {"@layers": pooling},
    }


def with_form() -> dict[str, Any]:
    """The encoder's vectors beside a small convolution over prefix, suffix and shape."""
    form = {
        "@architectures": "spacy.Tok2Vec.v2",
        "embed": {
            "@architectures": "spacy.MultiHashEmbed.v2",
            "width": 16,
            "attrs": ["NORM", "PREFIX", "SUFFIX", "SHAPE"],
            "rows": [500, 100, 200, 200],
            "include_static_vectors": False,
        },
        "encode": {
            "@architectures": "spacy.MaxoutWindowEncoder.v2",
            "width": 16,
            "window_size": 1,
            "maxout_pieces": 2,
            "depth": 1,
        },
    }
    both = {"encoder": listener("reduce_mean.v1"), "form": form}
    return {"@layers": "concatenate.v1", "*": both}


def head(architecture: str, tok2vec: dict[str, Any]) -> dict[str, Any]:
    return {
        "@architectures": architecture,
        "dropout": 0.0,
        "learn_rate_scale": 1.0,
        "tok2vec": tok2vec,
    }


def train_tagger(nlp: Language, encoder: Path, gold: list[Doc]) -> None:
    """Add sentences, transformer and three heads, and train them on the gold Docs."""
    fix_random_seed(0)
    nlp.add_pipe("bioclin_sentences", name="sentences")
    nlp.add_pipe("transformer", config={"model": encoder_of(encoder)})
    crf, linear = "spacy-bioclin.CrfTagger.v1", "spacy-bioclin.LinearTagger.v1"
    ner = head(crf, listener("reduce_mean.v1"))
    nlp.add_pipe("bioclin_ner", name="ner", config={"model": ner})
    nested = {
        "model": head(linear, listener("spacy-bioclin.first_piece.v1")),
        "spans_key": "findings",
        "nested": True,
        "scheme": "BIO",
    }
    nlp.add_pipe("bioclin_ner", name="findings", config=nested)
    # The last one: thinc's `concatenate` needs a gradient from every part, and of several listeners
    # only the last returns one.
    phi = {"model": head(crf, with_form()), "spans_key": "phi", "doubtful_from": 0.2}
    nlp.add_pipe("bioclin_ner", name="phi", config=phi)
    examples = [Example(nlp.make_doc(doc.text), doc) for doc in gold]
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 1e-2
    for update in range(UPDATES):
        batch = examples[8 * update % len(examples) :][:8]
        losses = nlp.update(batch, sgd=optimizer, annotates=["sentences"])
        if update % 50 == 49:
            print(update + 1, {name: round(loss, 2) for name, loss in losses.items()})


def relabel(docs: list[Doc]) -> list[Doc]:
    """Give PHI the labels of the rules, and add a layer of overlapping spans."""
    for doc in docs:
        doc.spans["phi"] = [
            Span(doc, span.start, span.end, PHI_LABELS[span.label_]) for span in doc.spans["phi"]
        ]
        doc.spans["findings"] = [
            *(Span(doc, ent.start, ent.end, "PROBLEM") for ent in doc.ents),
            *(Span(doc, ent.end - 1, ent.end, "LAST") for ent in doc.ents),
        ]
    return docs


def link_gold(docs: list[Doc], names: dict[str, str]) -> list[Doc]:
    """Copies of the Docs whose entities have the concept of that name, if there is one."""
    linked = []
    for doc in docs:
        made = doc.copy()
        ents = [
            Span(made, ent.start, ent.end, ent.label_, kb_id=names.get(ent.text.lower(), ""))
            for ent in doc.ents
        ]
        made.set_ents(ents, default="outside")
        linked.append(made)
    return linked


def read_names(terminology: Path) -> dict[str, str]:
    rows = [line.split("\t") for line in terminology.read_text("utf-8").splitlines()[1:]]
    return {name.lower(): row[0] for row in rows if row[1] == "es" for name in row[2].split("|")}


def run(*arguments: object) -> None:
    subprocess.run([sys.executable, "-m", "spacy_bioclin", *map(str, arguments)], check=True)


def describe(doc: Doc) -> dict[str, Any]:
    """What the pipeline wrote to a Doc, as JSON."""
    safe = doc._.deid
    groups = {
        key: [
            [span.start_char, span.end_char, span.label_, span.id_, round(float(score), 4)]
            for span, score in zip(group, group.attrs["scores"], strict=True)
        ]
        for key, group in doc.spans.items()
    }
    audit = {key: value for key, value in safe.audit.items() if key != "versions"}
    offsets = "abbreviation_offsets"  # what `abbreviations` gave in 0.1
    return {
        "text": doc.text,
        "tokens": [token.text for token in doc],
        "sentence_starts": [sent.start for sent in doc.sents],
        "ents": [
            {
                "span": [ent.start_char, ent.end_char, ent.label_],
                "probability": round(ent._.probability, 4),
                "kb_id": ent.kb_id_,
                "candidates": [candidate.kb_id for candidate in ent._.candidates],
            }
            for ent in doc.ents
        ],
        "abbreviations": doc._.get(offsets if doc.has_extension(offsets) else "abbreviations"),
        "spans": groups,
        "deid": {
            "text": safe.text,
            "spans": [[*span[:3], round(span[3], 4), *span[4:]] for span in safe.spans],
            "safe_offsets": [list(safe.offsets.to_safe(span[0], span[1])) for span in safe.spans],
            "ents": [[ent.text, ent.label_, ent.kb_id_] for ent in safe.doc.ents],
            "tokens": [token.text for token in safe.doc],
            "phi_values": [list(pair) for pair in safe.phi_values],
            "audit": audit,
        },
    }


def describe_gold(path: Path) -> dict[str, Any]:
    """What the corpus reader makes of a file of gold Docs, whole and cut into parts."""
    found: dict[str, Any] = {}
    for max_tokens in (0, 40):
        read = registry.readers.get("spacy-bioclin.Corpus.v1")(path, max_tokens=max_tokens)
        found[str(max_tokens)] = [
            {
                "reference": describe_reference(eg.reference),
                "predicted": [token.text_with_ws for token in eg.predicted],
            }
            for eg in read(spacy.blank("es", config=OURS))
        ]
    return found


def describe_reference(doc: Doc) -> dict[str, Any]:
    return {
        "tokens": [token.text_with_ws for token in doc],
        "sentence_starts": [token.i for token in doc if token.is_sent_start],
        "ents": [[ent.start_char, ent.end_char, ent.label_, ent.kb_id_] for ent in doc.ents],
        "spans": {
            key: [[span.start_char, span.end_char, span.label_] for span in group]
            for key, group in doc.spans.items()
        },
        "user_data": {key: value for key, value in doc.user_data.items() if key != "_"},
    }


def without_bf16() -> None:
    """Make precision = "auto" mean fp32, as test_old_wheel.py does: rounding is no difference."""
    for probe in ("_is_amx_tile_supported", "_is_avx512_bf16_supported"):
        setattr(torch.cpu, probe, lambda: False)


def main(tree: Path, out: Path) -> None:
    import spacy_bioclin

    assert Path(spacy_bioclin.__file__).parents[1] == tree, "run it with the Python of OLD_TREE"
    sys.path.insert(0, str(tree))
    from tests.conftest import make_encoder  # of the old tree

    without_bf16()
    out.mkdir(parents=True, exist_ok=True)
    demo = tree / "assets" / "demo"
    texts = [
        *(path.read_bytes().decode("utf-8") for path in sorted((demo / "notes/es").glob("*.txt"))),
        *NOTES,
    ]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # what is saved names the paths that it was made from: relative ones
        work = Path()
        notes = [
            path
            for number in (1, 2)
            for path in (demo / "es" / "test").glob(f"es-test-00{number}.*")
        ]
        (work / "two").mkdir()
        for path in notes:
            (work / "two" / path.name).write_bytes(path.read_bytes())
        gold_path = out / "old_gold.spacy"
        report = work / "report.json"
        run("convert", "brat", work / "two", gold_path, "--task", "demo", "--report", report)
        write_json(out / "old_gold.json", describe_gold(gold_path))

        run("convert", "brat", demo / "es" / "train", work / "train.spacy", "--task", "demo")
        run("convert", "brat", demo / "es" / "dev", work / "dev.spacy", "--task", "demo")
        nlp = spacy.blank("es", config=OURS)
        gold = relabel(list(DocBin().from_disk(work / "train.spacy").get_docs(nlp.vocab)))
        dev = relabel(list(DocBin().from_disk(work / "dev.spacy").get_docs(nlp.vocab)))
        encoder = make_encoder(work / "encoder")
        train_tagger(nlp, encoder, gold)

        kb, meanings, model = work / "kb", work / "meanings", work / "linker"
        options = ("--names-in", "es", "--name", "demo", "--version", "1", "--licence", "MIT")
        run("kb", "build", demo / "terminology.tsv", "-o", kb, *options)
        run("embed-kb", kb, "--encoder", encoder, "-o", meanings, "--precision", "fp32")
        linked = link_gold(gold, read_names(demo / "terminology.tsv"))
        DocBin(docs=linked, store_user_data=True).to_disk(work / "linked.spacy")
        dense = ("--meanings", meanings, "--encoder", encoder)
        run("train-linker", kb, work / "linked.spacy", "-o", model, *dense)

        nlp.add_pipe("bioclin_phi_rules", name="rules")
        nlp.add_pipe("bioclin_deid", name="deid", config={"policy": {}})
        settings = {"kb": str(kb), "model": str(model), "labels": ["PROBLEM"], "n_shown": 5}
        settings |= {"meanings": str(meanings), "encoder": str(encoder)}
        nlp.add_pipe("bioclin_linker", name="linker", config=settings, before="deid")
        nlp.to_disk(work / "plain")
        DocBin(docs=dev, store_user_data=True).to_disk(work / "relabelled.spacy")
        calibrated = work / "calibrated"
        recall = ("--target-recall", "0.9")
        run("calibrate", work / "plain", work / "relabelled.spacy", "-o", calibrated, *recall)
        set_policy(calibrated)
        by = ("--corpus", "invented notes", "--corpus-license", "MIT", "--encoder-license", "MIT")
        run("package", calibrated, out, "--name", "old", "--version", "0.1.0", *by)

        nlp = spacy.load(calibrated)
        nlp.get_pipe("deid").key = KEY  # type: ignore[attr-defined]
        alone = spacy.blank("es", config=OURS)
        alone.add_pipe("bioclin_linker", config={"kb": str(kb)})
        found = {
            "versions": {name: version(name) for name in ("spacy-bioclin", "Faker", "torch")},
            "docs": [describe(doc) for doc in nlp.pipe(texts)],
            "kb": describe_links(alone),
        }
    write_json(out / "old_pipeline.json", found)


MENTIONS = ("EPOC", "diabetes", "ictus", "infarto de miocardio", "fracaso renal agdo", "gonalgia")


def describe_links(nlp: Language) -> dict[str, list[Any]]:
    """What mentions mean by the knowledge base alone: without model and vectors."""
    found = {}
    for mention in MENTIONS:
        doc = nlp.make_doc(mention)
        doc.set_ents([Span(doc, 0, len(doc), "PROBLEM")])
        [ent] = nlp.get_pipe("bioclin_linker")(doc).ents
        found[mention] = [ent.kb_id_, [candidate.kb_id for candidate in ent._.candidates]]
    return found


def set_policy(pipeline: Path) -> None:
    """Write the policy into a saved pipeline; `bioclin calibrate` runs without a key."""
    config = load_config(pipeline / "config.cfg")
    config["components"]["deid"]["policy"] = POLICY
    config.to_disk(pipeline / "config.cfg")


def write_json(path: Path, found: dict[str, Any]) -> None:
    path.write_text(json.dumps(found, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
