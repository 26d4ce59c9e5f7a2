"""PHI that stayed in notes although the command ended with exit code 0."""

import json

from benchmarks.defects.case import Seen, Tree, case


@case(16, "A note in square brackets is masked like any other, known values too.")
def text_in_brackets_is_masked(tree: Tree) -> Seen:
    text = "Derivado a [Marta García Gil, NHC 1234567, tarjeta 4539578763621486]."
    row = {"text": text, "name": "Marta García Gil"}
    notes = tree.write("notes.jsonl", json.dumps(row) + "\n")
    options = ("--lang", "es", "--known", "name=name")
    done = tree.bioclin("deid", notes, "out.jsonl", *options, BIOCLIN_DEID_KEY="0" * 64)
    out = tree.folder / "out.jsonl"
    shown = json.loads(out.read_text("utf-8"))["text"] if out.exists() else done.text[-200:]
    left = [value for value in ("Marta", "1234567", "4539578763621486") if value in shown]
    return Seen(done.code == 0 and not left, left or shown)


@case(16, "What only looks like a mask is masked: labels of another scheme, ids and ages.")
def what_looks_like_a_mask_is_masked(tree: Tree) -> Seen:
    notes = tree.write("note.txt", "Seen by [MRN 123456] [ZIP 02139] [AGE 93].")
    done = tree.bioclin("deid", notes, "out.txt", "--lang", "en")
    out = tree.folder / "out.txt"
    shown = out.read_text("utf-8") if out.exists() else done.text[-200:]
    left = [value for value in ("123456", "02139", "93") if value in shown]
    return Seen(done.code == 0 and not left, left or shown)


@case(16, "A name beside a mask is masked.")
def a_name_beside_a_mask_is_masked(tree: Tree) -> Seen:
    notes = tree.write("note.txt", "Acude Marta García [FECHAS] con dolor.")
    code = (
        "from pathlib import Path\nfrom spacy import blank\n"
        "from spacy_bioclin.deid import make_pipeline\n"
        "nlp = make_pipeline(blank('es'))\n"
        f"doc = nlp.make_doc(Path({str(notes)!r}).read_text('utf-8'))\n"
        "label = 'NOMBRE_SUJETO_ASISTENCIA'\n"
        "doc.spans['phi'] = [doc.char_span(6, 27, label=label, alignment_mode='expand')]\n"
        "print(nlp(doc)._.deid.text)\n"
    )
    done = tree.python("-c", code)
    left = [value for value in ("Marta", "García") if value in done.out]
    return Seen(done.code == 0 and not left, left or done.out.strip())


@case(16, "What a policy hides wins over what it keeps, however certain a detector is.")
def hidden_wins_over_kept(tree: Tree) -> Seen:
    code = (
        "from spacy import blank; from spacy_bioclin.deid import make_pipeline\n"
        "policy = {'operators': {'SEXO_SUJETO_ASISTENCIA': 'keep'}}\n"
        "nlp = make_pipeline(blank('es'), policy=policy)\n"
        "doc = nlp.make_doc('Acude Marta Prado hoy')\n"
        "names = ['SEXO_SUJETO_ASISTENCIA', 'NOMBRE_SUJETO_ASISTENCIA']\n"
        "doc.spans['phi'] = [doc.char_span(6, 17, label=name) for name in names]\n"
        "doc.spans['phi'].attrs['scores'] = [0.9, 0.6]\n"
        "print(nlp(doc)._.deid.text)\n"
    )
    done = tree.python("-c", code)
    return Seen(done.code == 0 and "Marta" not in done.out, done.out.strip() or done.err[-200:])


@case(16, "The rest of a generalized age is masked, not copied.")
def a_generalized_age_is_an_age_alone(tree: Tree) -> Seen:
    code = (
        "from spacy import blank; from spacy_bioclin.deid import make_pipeline\n"
        "nlp = make_pipeline(blank('es'), policy={'default': 'generalize'})\n"
        "doc = nlp.make_doc('Paciente de 63 a 65 años')\n"
        "doc.spans['phi'] = [doc.char_span(12, 24, label='EDAD_SUJETO_ASISTENCIA')]\n"
        "print(nlp(doc)._.deid.text)\n"
    )
    done = tree.python("-c", code)
    return Seen(done.code == 0 and "65" not in done.out, done.out.strip() or done.err[-200:])


POLICY = """
operators:
  EDAD_SUJETO_ASISTENCIA: generalize
  TERRITORIO: generalize
"""


@case(20, "A policy that generalizes ages and places does not end the run.")
def generalized_values_are_no_leak(tree: Tree) -> Seen:
    text = "Edad: 29 años. Vive en Madrid, C.P.: 28013 Madrid. Su hija, de 20 años. CP 28013."
    notes = tree.write("note.txt", text)
    policy = tree.write("policy.yml", POLICY)
    done = tree.bioclin("deid", notes, "out.txt", "--lang", "es", "--policy", policy)
    out = tree.folder / "out.txt"
    shown = out.read_text("utf-8") if out.exists() else done.text[-160:]
    return Seen(done.code == 0 and "28013" not in shown, shown)


@case(20, "A date of the note in another column is a leak, also if a shifted date is equal to it.")
def a_date_in_another_column_is_a_leak(tree: Tree) -> Seen:
    key = {"BIOCLIN_DEID_KEY": "0" * 64}
    tree.write("policy.yml", "operators: {FECHAS: surrogate}\n")
    options = ("--lang", "es", "--policy", "policy.yml", "--patient-column", "patient")
    row = {"patient": "p-1", "text": "Visita el 12/03/2018."}
    tree.write("first.jsonl", json.dumps(row) + "\n")
    tree.bioclin("deid", "first.jsonl", "moved.jsonl", *options, **key)
    moved = json.loads((tree.folder / "moved.jsonl").read_text("utf-8"))["text"][10:20]
    row |= {"text": f"Visita el 12/03/2018, antes el {moved}.", "note": f"Visita del {moved}"}
    tree.write("second.jsonl", json.dumps(row) + "\n")
    done = tree.bioclin("deid", "second.jsonl", "out.jsonl", *options, "--keep", "note", **key)
    if "No such option" in done.text:
        done = tree.bioclin("deid", "second.jsonl", "out.jsonl", *options, **key)
    out = tree.folder / "out.jsonl"
    leaked = out.exists() and moved in json.loads(out.read_text("utf-8")).get("note", "")
    return Seen(not leaked, "leaked" if leaked else "refused")


@case(14, "Only labels of the policy's scheme are written, whatever the pipeline's labels are.")
def labels_are_those_of_the_scheme(tree: Tree) -> Seen:
    code = (
        "from spacy import blank; from spacy_bioclin.deid import make_pipeline\n"
        "nlp = make_pipeline(blank('es'))\n"
        "doc = nlp.make_doc('NHC 77 de Prado')\n"
        "doc.spans['phi'] = [doc.char_span(4, 6, label='ID'), doc.char_span(10, 15, 'ADDRESS')]\n"
        "print(nlp(doc)._.deid.text)\n"
    )
    done = tree.python("-c", code)
    held = "[ID_SUJETO_ASISTENCIA]" in done.out and "[CALLE]" in done.out
    return Seen(held, done.out.strip() or done.err[-200:])


@case(22, "The probability of a PHI span is in span._.probability.")
def phi_spans_have_a_probability(tree: Tree) -> Seen:
    code = (
        "from spacy import blank; from spacy_bioclin.deid import make_pipeline\n"
        "from spacy_bioclin.spans import install_extensions\n"
        "install_extensions()\n"
        "doc = make_pipeline(blank('es'))('DNI 12345678Z')\n"
        "print([span._.probability for span in doc.spans['phi']])\n"
    )
    done = tree.python("-c", code)
    return Seen(done.code == 0 and "None" not in done.out, done.out.strip() or done.err[-200:])
