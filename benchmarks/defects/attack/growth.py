"""Notes that took minutes, and pipelines that two threads could not share."""

import json

from benchmarks.defects.case import Seen, Tree, case

# Processor time of 4 n beside that of n: 4 if it is linear, 16 if it is quadratic.
MAX_RATIO = 9
RATIO = """
import gc, time, warnings
warnings.filterwarnings("ignore")
def spent(run, made):
    began = time.process_time()
    run(made)
    return time.process_time() - began
def ratio(run, make, n):
    run(make(20))
    small, large = make(n), make(4 * n)
    gc.disable()
    print(round(min(spent(run, large) / max(spent(run, small), 1e-3) for _ in range(2)), 1))
"""
DEID = """
from spacy import blank; from spacy_bioclin.deid import make_pipeline
tokenizer = {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}
nlp = blank("es", config={"nlp": {"tokenizer": tokenizer}})
nlp = make_pipeline(nlp, policy={"default": %r}, key=b"k" * 32)
"""


def see_ratio(tree: Tree, code: str) -> Seen:
    done = tree.python("-c", RATIO + code, timeout=120)
    if done.code:
        return Seen(False, "did not end" if done.code == 124 else done.text[-200:])
    ratio = float(done.out.split()[-1])
    return Seen(ratio < MAX_RATIO, ratio)


@case(4, "A text of e-mail addresses is de-identified in seconds, by the command.")
def many_addresses_are_masked_in_seconds(tree: Tree) -> Seen:
    row = {"text": "ab@cd.es " * 22_000}
    notes = tree.write("notes.jsonl", json.dumps(row) + "\n")
    done = tree.bioclin("deid", notes, "out.jsonl", "--lang", "es", timeout=20)
    return Seen(done.code == 0, "did not end in 20 s" if done.code == 124 else done.code)


@case(4, "The time to mask a repeated e-mail address grows as the note does.")
def repeated_values_are_linear(tree: Tree) -> Seen:
    return see_ratio(tree, DEID % "mask" + "ratio(nlp, lambda n: 'ab@cd.es ' * n, 2000)")


@case(4, "The time to mask distinct dates grows as the note does.")
def distinct_dates_are_linear(tree: Tree) -> Seen:
    make = (
        "import datetime\n"
        "day = lambda i: datetime.date(1901, 1, 1) + datetime.timedelta(i)\n"
        "make = lambda n: ' '.join(f'{day(i):%d/%m/%Y}' for i in range(n))\n"
    )
    return see_ratio(tree, DEID % "mask" + make + "ratio(nlp, make, 800)")


@case(4, "The time to merge overlapping spans grows as their number does.")
def merging_is_linear(tree: Tree) -> Seen:
    code = (
        "from spacy_bioclin.deid.merge import merge_spans\n"
        "from spacy_bioclin.deid.spans import PhiSpan\n"
        "make = lambda n: [PhiSpan(i * 4, i * 4 + 9, 'A', i % 7 / 7, 'x') for i in range(n)]\n"
        "run = lambda spans: merge_spans(spans, 'abc ' * (len(spans) + 9), overlaps='confident', "
        "keeps=lambda span: False)\n"
        "ratio(run, make, 500)\n"
    )
    return see_ratio(tree, code)


@case(4, "A pipeline with an encoder annotates in four threads what it annotates in one.")
def threads_share_a_pipeline(tree: Tree) -> Seen:
    code = (
        "import spacy, warnings\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "warnings.filterwarnings('ignore')\n"
        f"encoder = {str(tree.path / 'assets/encoders/bioclin-compact')!r}\n"
        "nlp = spacy.blank('es')\n"
        "model = {'@architectures': 'spacy-bioclin.Encoder.v1', 'name': encoder}\n"
        "nlp.add_pipe('transformer', config={'model': model})\n"
        "nlp.initialize()\n"
        "texts = ['Paciente con tos. ' * (i % 9 + 1) for i in range(200)]\n"
        "pieces = lambda text: nlp(text)._.trf_data.wordpieces.strings\n"
        "with ThreadPoolExecutor(4) as pool:\n"
        "    found = list(pool.map(pieces, texts))\n"
        "print('same' if found == [pieces(text) for text in texts] else 'other')\n"
    )
    done = tree.python("-c", code)
    return Seen(done.out.strip() == "same", done.out.strip() or done.text[-60:])


@case(8, "The time to make surrogates of a note without a patient's id grows as the note does.")
def surrogates_are_linear(tree: Tree) -> Seen:
    make = "make = lambda n: ' '.join(f'NHC: {100000 + 7 * i}' for i in range(n))\n"
    return see_ratio(tree, DEID % "surrogate" + make + "ratio(nlp, make, 1000)")


@case(8, "The time to read masks beside dates grows as the note does.")
def masks_are_linear(tree: Tree) -> Seen:
    return see_ratio(tree, DEID % "mask" + "ratio(nlp, lambda n: '[FECHAS] 12/03/2020 ' * n, 1500)")


@case(8, "A note in which all short surrogates are used up is de-identified in seconds.")
def used_up_surrogates_end(tree: Tree) -> Seen:
    code = (
        DEID % "surrogate"
        + "import time\n"
        + "text = ' '.join(f'NHC: {100 + i % 900}' for i in range(1800))\n"
        + "began = time.process_time(); doc = nlp(text)\n"
        + "print(round(time.process_time() - began, 1), doc._.deid.text.count('[') > 0)\n"
    )
    done = tree.python("-c", code, timeout=60)
    seconds = float(done.out.split()[0]) if done.code == 0 else None
    return Seen(seconds is not None and seconds < 10, seconds or "did not end in 60 s")


@case(8, "The time to read and write probabilities of entities grows as their number does.")
def probabilities_are_linear(tree: Tree) -> Seen:
    code = (
        "import spacy\n"
        "from spacy.tokens import Doc, Span\n"
        "from spacy_bioclin.spans import get_probabilities, set_spans\n"
        "vocab = spacy.blank('es').vocab\n"
        "make = lambda n: Doc(vocab, words=['uno', 'dos'] * n)\n"
        "def run(doc):\n"
        "    ents = [Span(doc, i, i + 1, 'A') for i in range(0, len(doc), 2)]\n"
        "    set_spans(doc, None, ents, [0.5] * len(ents))\n"
        "    set_spans(doc, 'phi', ents, [0.5] * len(ents))\n"
        "    get_probabilities(doc, None)\n"
        "ratio(run, make, 400)\n"
    )
    return see_ratio(tree, code)


@case(8, "The time to find the abbreviations of a note grows as their number does.")
def abbreviations_are_linear(tree: Tree) -> Seen:
    code = (
        "from spacy_bioclin.tokenization.defined_abbreviations import find_short_forms\n"
        "make = lambda n: [f'AB{i:06d}C' for i in range(n)]\n"
        "ratio(lambda shorts: find_short_forms(' '.join(shorts), shorts), make, 500)\n"
    )
    return see_ratio(tree, code)


@case(8, "The time of relaxed scores grows as the number of spans does.")
def relaxed_scores_are_linear(tree: Tree) -> Seen:
    code = (
        "from spacy_bioclin.evaluation.spans import relaxed_match\n"
        "make = lambda n: [{(i, 2 * n - i + k, 'A') for i in range(n)} for k in (0, 1)]\n"
        "ratio(lambda sides: relaxed_match(*map(set, sides)), make, 15000)\n"
    )
    return see_ratio(tree, code)
