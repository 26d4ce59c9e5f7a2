"""A teacher annotates, a student learns from it, and no teacher is needed after that."""

import lzma
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.tokens import DocBin
from spacy.training import Example
from thinc.api import Adam, fix_random_seed
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.cli.train.distill_ner import follow_teacher, read_settings
from spacy_bioclin.corpora.docbin import read_docs
from spacy_bioclin.corpora.readers import TEACHER_KEY, make_corpus
from spacy_bioclin.errors import BioclinError
from spacy_bioclin.ner.distill.teacher import (
    Teacher,
    check_student,
    has_same_tokens,
    hash_files,
    read_texts,
    write_corpus,
)
from tests.trained import blank, train_on

ROOT = Path(__file__).parents[3]
DRUGS = ["amoxicilina", "metformina", "omeprazol", "paracetamol"]
SIGNS = ["neumonía", "tos", "fiebre", "disnea"]
GOLD = [f"Paciente con {sign} tratado con {DRUGS[i]} ." for i, sign in enumerate(SIGNS)]
EXTRA = [f"Refiere {a} y {b} ; toma {drug} ." for a, b in pairwise(SIGNS) for drug in DRUGS]
TOKENIZER = {"nlp": {"tokenizer": {"@tokenizers": "spacy-bioclin.Tokenizer.v1"}}}


def make_nlp(encoder, **settings):
    nlp = blank("es")
    model = {"@architectures": "spacy-bioclin.Encoder.v1", "name": str(encoder), "window": 32}
    nlp.add_pipe("bioclin_sentences", name="sentences")
    nlp.add_pipe("transformer", config={"model": {**model, "stride": 32, "precision": "fp32"}})
    nlp.add_pipe("bioclin_ner", name="ner", config=settings)
    nlp.add_pipe("doc_cleaner", name="cleaner")
    return nlp


def gold_doc(nlp, text):
    doc = nlp.make_doc(text)
    kinds = {**dict.fromkeys(DRUGS, "DRUG"), **dict.fromkeys(SIGNS, "SIGN")}
    ents = [
        spacy.tokens.Span(doc, token.i, token.i + 1, kinds[token.text])
        for token in doc
        if token.text in kinds
    ]
    doc.set_ents(ents, default="outside")
    return doc


def train(nlp, get_examples, steps):
    optimizer = Adam(5e-3)
    fix_random_seed(0)
    nlp.initialize(get_examples)
    for _ in range(steps):
        nlp.update(list(get_examples()), sgd=optimizer)


@pytest.fixture(scope="module")
def teacher_folder(tiny_encoder, tmp_path_factory):
    nlp = make_nlp(tiny_encoder)
    docs = [gold_doc(nlp, text) for text in GOLD + EXTRA]
    examples = [Example(nlp.make_doc(doc.text), doc) for doc in docs]
    train(nlp, lambda: examples, 12)
    train_on(nlp, examples, lambda: nlp.evaluate(examples)["ents_f"] > 0.95)
    folder = tmp_path_factory.mktemp("teacher") / "model-best"
    nlp.to_disk(folder)
    return folder


@pytest.fixture(scope="module")
def files(tmp_path_factory, teacher_folder):
    """(gold.spacy, extra.txt)"""
    nlp = spacy.load(teacher_folder)
    folder = tmp_path_factory.mktemp("files")
    docs = [gold_doc(nlp, text) for text in GOLD]
    DocBin(docs=docs, store_user_data=True).to_disk(folder / "gold.spacy")
    (folder / "extra.txt").write_text("\n".join(EXTRA) + "\n\n", "utf-8")
    return folder / "gold.spacy", folder / "extra.txt"


def load_teacher(folder, temperature=1.0):
    return Teacher(spacy.load(folder), temperature=temperature)


def no_watch(name, n_docs, docs):
    yield from docs


def spans(doc):
    return [(ent.start_char, ent.end_char, ent.label_) for ent in doc.ents]


def test_annotated_texts_are_those_of_the_pipeline_with_its_probabilities(teacher_folder):
    teacher = load_teacher(teacher_folder)
    texts = [*EXTRA, "", "   "]
    docs = list(teacher.annotate_texts(texts))
    assert [doc.text for doc in docs] == texts
    tags = teacher.heads["ents"].tag_sets[0].tags
    units = {label: tags.index(f"U-{label}") for label in ("DRUG", "SIGN")}
    for doc, alone in zip(docs, teacher.nlp.pipe(texts), strict=True):
        assert spans(doc) == spans(alone)
        stored = doc.user_data.pop(TEACHER_KEY)
        assert not doc.user_data  # no vectors of the encoder
        marginals = stored["layers"]["ents"]["marginals"]
        assert marginals.shape == (len(doc), 1, len(tags))
        for ent, same in zip(doc.ents, alone.ents, strict=True):
            if len(ent) == 1:
                p = float(marginals[ent.start, 0, units[ent.label_]])
                assert p == pytest.approx(same._.probability, abs=2e-3)
    assert sum(len(doc.ents) for doc in docs) >= 2 * len(EXTRA)


def test_gold_docs_keep_their_spans(teacher_folder, files):
    teacher = load_teacher(teacher_folder, temperature=2.0)
    before = list(read_docs(files[0], teacher.nlp.vocab))
    for doc, gold in zip(teacher.annotate_gold(before), before, strict=True):
        assert spans(doc) == spans(gold) == spans(gold_doc(teacher.nlp, doc.text))
        assert doc.user_data[TEACHER_KEY]["silver"] is False
        assert doc.user_data[TEACHER_KEY]["temperature"] == 2.0


def test_files_are_made_once_and_stale_ones_go(teacher_folder, files, tmp_path):
    gold, extra = files
    seen = []

    def watch(name, n_docs, docs):
        seen.append((name, n_docs))
        yield from docs

    def write(temperature=1.0, gold=gold):
        seen.clear()
        write_corpus(load_teacher(teacher_folder, temperature), gold, [extra], tmp_path, watch)
        return sorted(path.name for path in tmp_path.iterdir())

    first = write()
    assert seen == [("gold.spacy", len(GOLD)), ("extra.txt", len(EXTRA))]
    assert [name[:5] for name in first] == ["gold-", "silve"]
    (tmp_path / ".silver.spacy.partial").mkdir()  # of a run that was killed
    assert write() == first
    assert seen == []
    second = write(temperature=2.0)
    assert len(second) == len(seen) == 2
    assert not {*first} & {*second}
    assert len(write(temperature=2.0, gold=None)) == 1


def test_a_killed_annotation_leaves_no_file(teacher_folder, files, tmp_path):
    def kill(name, n_docs, docs):
        yield next(docs)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_corpus(load_teacher(teacher_folder), None, [files[1]], tmp_path, kill)
    assert list(tmp_path.iterdir()) == []


def test_the_hash_is_of_names_and_contents(tmp_path):
    (tmp_path / "a").write_text("1")
    one = hash_files(tmp_path)
    (tmp_path / "a").write_text("2")
    two = hash_files(tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")
    assert len({one, two, hash_files(tmp_path), hash_files(tmp_path / "b")}) == 4


@pytest.mark.slow
def test_student_of_silver_alone_comes_near_its_teacher(teacher_folder, tiny_encoder, tmp_path):
    teacher = load_teacher(teacher_folder)
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(GOLD + EXTRA), "utf-8")
    write_corpus(teacher, None, [texts], tmp_path / "corpus", no_watch)
    student = make_nlp(tiny_encoder)
    check_student(student, tmp_path / "corpus")
    corpus = make_corpus(tmp_path / "corpus", max_tokens=8)
    train(student, lambda: corpus(student), 20)
    gold = [gold_doc(student, text) for text in GOLD]
    examples = [Example(student.make_doc(doc.text), doc) for doc in gold]
    theirs = teacher.nlp.evaluate(examples)["ents_f"]
    assert theirs > 0.9
    silver = list(corpus(student))
    train_on(student, silver, lambda: student.evaluate(examples)["ents_f"] > theirs - 0.1)
    student.to_disk(tmp_path / "student")
    again = spacy.load(tmp_path / "student")  # the corpus and the teacher are not asked for
    assert spans(again(GOLD[0])) == spans(student(GOLD[0]))


def test_silver_teaches_the_probabilities_and_not_the_spans(teacher_folder, tiny_encoder):
    nlp = make_nlp(tiny_encoder)
    docs = list(load_teacher(teacher_folder).annotate_texts(EXTRA[:2]))
    examples = [Example(nlp.make_doc(doc.text), doc) for doc in docs]
    nlp.initialize(lambda: [Example(nlp.make_doc(t), gold_doc(nlp, t)) for t in GOLD])
    ner = nlp.get_pipe("ner")
    with nlp.select_pipes(disable="cleaner"):
        scores = ner.model.predict([nlp(eg.predicted) for eg in examples])
    loss, gradient = ner.get_loss(examples, scores)
    for eg in examples:
        eg.reference.set_ents([], default="outside")
    same, same_gradient = ner.get_loss(examples, scores)
    assert same == loss > 0.1
    assert np.array_equal(same_gradient.emissions, gradient.emissions)
    for eg in examples:
        eg.reference.user_data[TEACHER_KEY]["silver"] = False
    assert ner.get_loss(examples, scores)[0] != loss
    other = make_nlp(tiny_encoder, scheme="BIO")
    other.initialize(lambda: [Example(nlp.make_doc(t), gold_doc(nlp, t)) for t in GOLD])
    with pytest.raises(BioclinError, match="BILUO tags for DRUG, SIGN"):
        other.get_pipe("ner").get_loss(examples, scores)


def test_bad_teachers_students_and_gold(teacher_folder, tmp_path):
    with pytest.raises(BioclinError, match=r"temperature = 0\.0"):
        load_teacher(teacher_folder, 0.0)
    with pytest.raises(BioclinError, match="has no bioclin_ner, but sentencizer"):
        nlp = blank("es")
        nlp.add_pipe("sentencizer")
        Teacher(nlp, temperature=1.0)
    teacher = load_teacher(teacher_folder)
    doc = teacher.nlp.make_doc("Sin dolor .")
    doc.set_ents([spacy.tokens.Span(doc, 1, 2, "PAIN")], default="outside")
    with pytest.raises(BioclinError, match="have PAIN in the layer ents") as error:
        list(teacher.annotate_gold([doc]))
    assert "dolor" not in str(error.value)
    words = spacy.tokens.Doc(teacher.nlp.vocab, words=["Sin dolor", "."])
    with pytest.raises(BioclinError, match="document 1 of the training notes has 2 tokens"):
        list(teacher.annotate_gold([words]))
    assert not has_same_tokens(words, doc)
    DocBin(docs=[words]).to_disk(tmp_path / "x.spacy")
    with pytest.raises(BioclinError, match=r"document 1 .* has 2 tokens, by the student's"):
        check_student(teacher.nlp, tmp_path / "x.spacy")


def test_texts_are_read_line_by_line(tmp_path):
    lines = "uno \t dos\r\n\n  \ntres\x0bcuatro\u2028cinco"
    (tmp_path / "a.txt").write_bytes(lines.encode())
    with lzma.open(tmp_path / "a.txt.xz", "wb") as file:
        file.write(lines.encode())
    expected = ["uno \t dos", "tres\x0bcuatro\u2028cinco"]
    assert list(read_texts(tmp_path / "a.txt")) == expected
    assert list(read_texts(tmp_path / "a.txt.xz")) == expected
    nlp = blank("es")
    DocBin(docs=[nlp("dos\n líneas")]).to_disk(tmp_path / "a.spacy")
    assert list(read_texts(tmp_path / "a.spacy")) == ["dos\n líneas"]
    (tmp_path / "latin.txt").write_bytes("señora".encode("latin-1"))
    (tmp_path / "broken.xz").write_bytes(b"no xz")
    for name, message in (
        ("latin.txt", "not UTF-8"),
        ("broken.xz", "cannot be read"),
        ("a.json", "want .txt or .xz"),
        ("none.txt", "cannot be read"),
    ):
        with pytest.raises(BioclinError, match=message):
            list(read_texts(tmp_path / name))


@pytest.fixture
def command(teacher_folder, files, tiny_encoder, tmp_path):
    """Runs `bioclin distill-ner` with 2 steps."""
    overrides = {
        "--paths.train": files[0],
        "--paths.dev": files[0],
        "--paths.encoder": tiny_encoder,
        "--nlp.lang": "es",
        "--components.transformer.model.window": 32,
        "--components.transformer.model.stride": 32,
        "--training.max_steps": 2,
        "--training.eval_frequency": 1,
        "--training.logger.progress_bar": "null",
    }

    def run(*options, **changes):
        settings = {**overrides, **changes}
        words = [word for pair in settings.items() if pair[1] is not None for word in pair]
        config = ROOT / "configs" / "ner.cfg"
        arguments = ["distill-ner", teacher_folder, config, "-o", tmp_path / "out", *words]
        return CliRunner().invoke(app, [str(word) for word in (*arguments, *options)])

    return run


def test_command(command, files, tmp_path):
    done = command("--texts", files[1])
    assert done.exit_code == 0, done.output
    assert "documents of extra.txt annotated" in done.stderr
    assert not any(word in done.stderr for word in (*SIGNS, *DRUGS))
    student = spacy.load(tmp_path / "out" / "model-last")
    assert student.get_pipe("ner").labels == ("DRUG", "SIGN")
    assert len(list((tmp_path / "out" / "corpus").iterdir())) == 2


@pytest.mark.slow
def test_command_resumes_without_gold(command, files, tmp_path):
    only_texts = {"--paths.train": None}
    done = command("--texts", files[1], **only_texts)
    assert done.exit_code == 0, done.output
    [before] = (tmp_path / "out" / "corpus").iterdir()
    changed_at = before.stat().st_mtime_ns
    done = command("--texts", files[1], "--resume", **only_texts, **{"--training.max_steps": 3})
    assert done.exit_code == 0, done.output
    assert "annotated" not in done.stderr
    [after] = (tmp_path / "out" / "corpus").iterdir()
    assert (after, after.stat().st_mtime_ns) == (before, changed_at)


def test_errors_of_the_command(command, teacher_folder, tiny_encoder, tmp_path):
    for options, changes, message in (
        ([], {"--paths.train": None}, "nothing to learn from"),
        (["--texts", tmp_path / "no.txt"], {}, "no.txt: no such file"),
    ):
        done = command(*options, **changes)
        assert done.exit_code == 1, done.output
        assert message in done.stderr.replace("\n", " ")
    teacher, config = load_teacher(teacher_folder), ROOT / "configs" / "ner.cfg"
    for override, message in (
        ("scheme=BIO", "scheme = 'BIO', its teacher 'BILUO'"),
        ("spans_key=phi", "no bioclin_ner writes a layer of the teacher"),
    ):
        settings = read_settings(config, [f"--components.ner.{override}"])
        with pytest.raises(BioclinError, match=message):
            follow_teacher(settings, teacher, config)
    with pytest.raises(BioclinError, match="teacher_weight = 2: want less than or"):
        make_nlp(tiny_encoder, teacher_weight=2)
