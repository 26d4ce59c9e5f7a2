"""Damaged knowledge bases and hostile terminologies."""

import os

from benchmarks.defects.case import Done, Seen, Tree, case

LIST = "code,name\n" + "".join(f"A{i},asthma of kind {i}\n" for i in range(3000))
TTL = (
    "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n"
    '<urn:a> a skos:Concept ; skos:prefLabel "asthma"@en .\n<urn:b> a'
)
CHANGE = (
    "import numpy, sys\n"
    "path, value = sys.argv[1], int(sys.argv[2])\n"
    "array = numpy.load(path); array[len(array) // 2] = value; numpy.save(path, array)\n"
)


def build(tree: Tree) -> None:
    source = tree.write("list.csv", LIST)
    tree.bioclin("kb", "build", source, "-o", "kb")


def one_line(done: Done, word: str) -> Seen:
    lines = (done.out + done.err).strip().splitlines()
    held = done.code == 1 and len(lines) == 1 and word in lines[0] and "unexpected" not in lines[0]
    return Seen(held, f"exit code {done.code}: {lines[-1][-120:] if lines else 'nothing said'}")


def search_damaged(tree: Tree, array: str, value: int) -> Seen:
    build(tree)
    tree.python("-c", CHANGE, f"kb/{array}.npy", value)
    return one_line(tree.bioclin("kb", "search", "kb", "asthma kind seven"), array)


@case(5, "A wrong row in the index of names is an error, not a segmentation fault.")
def a_wrong_row_of_names_is_an_error(tree: Tree) -> Seen:
    return search_damaged(tree, "ngram.word_names", 2**30)


@case(5, "A wrong row in the index of trigrams is an error, not a segmentation fault.")
def a_wrong_row_of_words_is_an_error(tree: Tree) -> Seen:
    return search_damaged(tree, "ngram.gram_words", 2**30)


@case(5, "A negative row does not link to the last concept.")
def a_negative_row_is_an_error(tree: Tree) -> Seen:
    return search_damaged(tree, "name_concept", -1)


@case(5, "A file whose end was lost in a crash is an error.")
def zeros_at_the_end_are_an_error(tree: Tree) -> Seen:
    source = tree.write("list.csv", LIST.replace("kind", "this kind which has a long name"))
    tree.bioclin("kb", "build", source, "-o", "kb")
    file = tree.folder / "kb" / "names.npy"
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2] + bytes(len(content) - len(content) // 2))
    return one_line(tree.bioclin("kb", "search", "kb", "asthma kind seven"), "names.npy")


@case(5, "A command says everything that is wrong with a knowledge base, one line for each.")
def kb_check_finds_changes(tree: Tree) -> Seen:
    build(tree)
    good = tree.bioclin("kb", "check", "kb")
    for array, value in (("name_lang", 9), ("name_concept", 7), ("ngram.word_names", 5)):
        tree.python("-c", CHANGE, f"kb/{array}.npy", value)
    done = tree.bioclin("kb", "check", "kb")
    found = [a for a in ("name_lang", "name_concept", "ngram.word_names") if a in done.text]
    return Seen(good.code == 0 and done.code == 1 and len(found) == 3, found)


@case(5, "An id with | is left out and counted with its line.")
def ids_with_bars_are_counted(tree: Tree) -> Seen:
    source = tree.write("list.tsv", "code\tname\nA|B\tasthma\nC\tflu\n")
    done = tree.bioclin("kb", "build", source, "-o", "kb")
    info = tree.bioclin("kb", "search", "kb", "asthma")
    return Seen("line 2" in done.text and "A|B" not in info.out, done.text[-160:].split(": /")[0])


@case(6, "A Turtle file that is cut off is one line of error.")
def turtle_that_is_cut_off(tree: Tree) -> Seen:
    tree.write("list.ttl", TTL)
    return one_line(tree.bioclin("kb", "build", "list.ttl", "-o", "kb"), "list.ttl")


@case(6, "Nested entities of RDF/XML end in an error, not in hours of work.")
def nested_entities_are_refused(tree: Tree) -> Seen:
    nested = "".join(
        f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    spaces = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
    text = f'<!DOCTYPE x [<!ENTITY a "lol">{nested}]><rdf:RDF {spaces}>&i;</rdf:RDF>'
    tree.write("list.rdf", text)
    return one_line(tree.bioclin("kb", "build", "list.rdf", "-o", "kb", timeout=20), "list.rdf")


@case(8, "A pipe or device given as a terminology is an error.")
def pipes_are_no_terminologies(tree: Tree) -> Seen:
    os.mkfifo(tree.folder / "list.obo")
    return one_line(tree.bioclin("kb", "build", "list.obo", "-o", "kb", timeout=20), "list.obo")


@case(8, "A knowledge base does not replace a spaCy pipeline, which has a meta.json too.")
def a_pipeline_is_not_replaced(tree: Tree) -> Seen:
    tree.python("-c", "import spacy; spacy.blank('es').to_disk('pipeline')")
    source = tree.write("list.csv", LIST)
    tree.bioclin("kb", "build", source, "-o", "pipeline", "--overwrite")
    kept = (tree.folder / "pipeline" / "config.cfg").exists()
    return Seen(kept, "kept" if kept else "deleted")


@case(8, "Names of a file whose lines end in CR are not joined.")
def lines_that_end_in_cr(tree: Tree) -> Seen:
    tree.write("list.txt", "A||asthma|wheeze\rB||flu\r")
    done = tree.bioclin("kb", "build", "names:list.txt", "-o", "kb")
    return one_line(done, "list.txt")


@case(8, "A model with a count of mentions that nobody has is an error, not a run without end.")
def counts_without_end(tree: Tree) -> Seen:
    build(tree)
    code = (
        "import json, pathlib, spacy\n"
        "from spacy_bioclin.linking.bundle import TrainedModel\n"
        "path = pathlib.Path('model'); TrainedModel.untrained().write(path)\n"
        "(path / 'learned.json').write_text(json.dumps([['asthma', 'A1', 0, 10**12]]))\n"
        "nlp = spacy.blank('en')\n"
        "nlp.add_pipe('bioclin_linker', config={'kb': 'kb', 'model': 'model'}).linker\n"
    )
    done = tree.python("-c", code, timeout=90)
    held = "BioclinError" in done.err and "learned.json" in done.err
    return Seen(held, done.err.strip().splitlines()[-1][-100:])
