"""Leaving documents out of training corpora, and refusing the text of test splits."""

import functools
import random
import warnings
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
import spacy
import srsly
from spacy.language import Language
from spacy.tokens import DocBin
from spacy.util import load_config
from thinc.api import Config

from spacy_bioclin.corpora.docbin import read_docs, read_texts, write_docs
from spacy_bioclin.corpora.docs import make_gold_doc
from spacy_bioclin.corpora.overlap.docs import CorpusOverlap, find_overlaps
from spacy_bioclin.corpora.overlap.lists import format_id_list, read_id_list, show_ids
from spacy_bioclin.corpora.readers import make_corpus
from spacy_bioclin.corpora.task_corpora import make_task_corpora
from spacy_bioclin.errors import BioclinError, BioclinWarning
from spacy_bioclin.training.loop import describe_run
from spacy_bioclin.types import GOLD_KEY, AnnotatedText
from tests.corpora.errors import is_wrong
from tests.hostile.inputs.files import mutated, truncated

SECRET = "Pérez"


@functools.cache
def get_nlp() -> Language:
    return spacy.blank("es")


def case(number: int, n_words: int = 40) -> str:
    """Make the text of a case, another one for each number."""
    words = (f"palabra{number}x{i}" for i in range(n_words))
    return f"{SECRET}, ingresa.\n{' '.join(words)}."


def write(path: Path, texts: Mapping[str, str]) -> Path:
    """Write Docs with ids."""
    write_docs(
        (make_gold_doc(get_nlp(), AnnotatedText(id, text)) for id, text in texts.items()), path
    )
    return path


def write_cases(path: Path, numbers: Iterable[int]) -> Path:
    return write(path, {f"case-{number}": case(number) for number in numbers})


def ids(examples: Iterable[spacy.training.Example]) -> list[str]:
    return [eg.reference.user_data[GOLD_KEY]["id"] for eg in examples]


@pytest.fixture
def train(tmp_path: Path) -> Path:
    return write_cases(tmp_path / "train.spacy", range(6))


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    path = tmp_path / "leave-out.txt"
    path.write_text("# of another corpus\n\n case-1 \r\ncase-4\ncase-77\n")
    return path


# -- reading -------------------------------------------------------------------------------------


def test_texts_are_those_of_the_docs(tmp_path: Path) -> None:
    texts = {"a": "Uno  dos\r\n\ttres. ", "b": "", "ñ": "x\u0301 😀\ufeff " * 30, "c": " "}
    docs = [make_gold_doc(get_nlp(), AnnotatedText(id, text)) for id, text in texts.items()]
    expected = [*texts.items(), ("", "sin id")]
    for shard_tokens in (50, 10**6):
        path = tmp_path / f"{shard_tokens}.spacy"
        write_docs([*docs, get_nlp()("sin id")], path, shard_tokens=shard_tokens)
        assert list(read_texts(path)) == expected
        assert [doc.text for doc in read_docs(path, get_nlp().vocab)] == [
            text for _, text in expected
        ]
    DocBin(docs=docs).to_disk(tmp_path / "plain.spacy")  # without user data
    assert list(read_texts(tmp_path / "plain.spacy")) == [("", text) for text in texts.values()]


def test_a_list_of_ids(tmp_path: Path, listed: Path) -> None:
    assert read_id_list(listed) == {"case-1", "case-4", "case-77"}
    listed.write_bytes("\ufeffcaso-ñ\n".encode())
    assert read_id_list(listed) == {"caso-ñ"}
    listed.write_text(format_id_list(["b", "a", "b"], "two"))
    assert listed.read_text() == "# two\na\nb\n"
    listed.write_text(format_id_list([], "none"))
    assert read_id_list(listed) == frozenset()


def test_what_is_no_list(train: Path, listed: Path) -> None:
    rows = [
        (b"", "leave-out.txt: is empty; want the id"),
        (b"\n  \n", "is empty"),
        (bytes(range(256)) * 20, "line 1 is not an id"),
        (b"case-1\n\xff\xfeP\xe9rez", "is not an id"),
        (b"case-1\nP\xc3\xa9rez\x00\n", "line 2 is not an id; want the id of a document on each"),
        (b"case-1\n\n" + f"{SECRET} ingresa ".encode() * 50, "line 3 is not an id"),
        (f"{SECRET}\nfiebre".encode(), "none of its 2 ids is a document of .*train.spacy"),
    ]
    wrong: list[object] = []
    for content, message in rows:
        listed.write_bytes(content)
        with pytest.raises(BioclinError) as error:
            list(make_corpus(train, leave_out=listed)(get_nlp()))
        behind = str(error.value.__context__)
        if is_wrong(str(error.value), message, SECRET) or SECRET in behind:
            wrong.append((content, error.value, behind))
    assert not wrong


def test_a_list_that_is_not_there(train: Path, tmp_path: Path) -> None:
    for path, message in ((tmp_path / "no", "no such file"), (tmp_path, "is a folder")):
        reader = make_corpus(train, leave_out=path)  # `spacy debug config` accepts it
        with pytest.raises(BioclinError, match=message):
            list(reader(get_nlp()))


def test_ids_that_cannot_be_listed() -> None:
    for id in ("", " a", "#a", "a\nb", "a\x1b[31m", "a" * 501):
        with pytest.raises(BioclinError, match="cannot be") as error:
            format_id_list(["b", id], "x")
        assert "\x1b" not in str(error.value) and len(str(error.value)) < 300
    assert show_ids(["d", "b", "c", "a", "e"]) == "a, b, c and 2 more"


# -- leaving out ---------------------------------------------------------------------------------


def test_listed_documents_are_left_out_with_all_their_parts(train: Path, listed: Path) -> None:
    whole = list(make_corpus(train, max_tokens=10)(get_nlp()))
    reader = make_corpus(train, max_tokens=10, leave_out=listed)
    with pytest.warns(BioclinWarning) as shown:
        parts = list(reader(get_nlp()))
    assert [str(warning.message) for warning in shown] == [
        f"left out, as {listed} says: 2 of 6 documents of {train}; 1 of its 3 ids match no document"
    ]
    left = [id for id in ids(whole) if id not in ("case-1", "case-4")]
    assert ids(parts) == left and len(left) > 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is said once
        assert ids(reader(get_nlp())) == ids(
            make_corpus(train, max_tokens=10, leave_out=listed)(get_nlp())
        )


def test_a_list_without_ids_leaves_nothing_out(train: Path, listed: Path) -> None:
    listed.write_text("# nothing\n")
    assert len(ids(make_corpus(train, leave_out=listed)(get_nlp()))) == 6


def test_docs_without_ids_are_read(tmp_path: Path, listed: Path) -> None:
    docs = [make_gold_doc(get_nlp(), AnnotatedText("case-1", "Uno.")), get_nlp()("Sin id.")]
    write_docs(docs, tmp_path / "x.spacy")
    with pytest.warns(BioclinWarning):
        read = list(make_corpus(tmp_path / "x.spacy", leave_out=listed)(get_nlp()))
    assert [eg.reference.text for eg in read] == ["Sin id."]


def test_a_list_of_everything(train: Path, listed: Path) -> None:
    listed.write_text("".join(f"case-{i}\n" for i in range(6)))
    with pytest.raises(BioclinError, match=r"train.spacy: all of its documents are in .*leave-out"):
        list(make_corpus(train, leave_out=listed)(get_nlp()))


def test_every_task_leaves_them_out(train: Path, listed: Path, tmp_path: Path) -> None:
    """An id is unknown only if no task has it."""
    other = write_cases(tmp_path / "other.spacy", (4, 8, 77))
    tasks = {"a": {"path": str(train)}, "b": {"path": str(other)}}
    corpora = make_task_corpora(tasks, leave_out=listed)
    with pytest.warns(BioclinWarning, match=r"2 of 6 documents of .*, 2 of 3 .*other.spacy$"):
        assert ids(corpora.read(get_nlp())) == [f"case-{i}" for i in (0, 2, 3, 5, 8)]


# -- test splits ---------------------------------------------------------------------------------


def test_overlaps_are_counted_by_corpus_and_split(train: Path, tmp_path: Path) -> None:
    """A part of a case, with another heading and other tokens, is the same case."""
    first = write(tmp_path / "one.spacy", {"x": f"Servicio 4.\n{case(2).replace('.', ' .')}"})
    second = write(
        tmp_path / "two.spacy",
        {"y": case(2)[:200], "z": case(5), "w": "Otro.", "v": case(11)},
    )
    few = write(tmp_path / "few.spacy", {"short": case(5, 9)})
    found = find_overlaps([train, few], [first, second])
    assert found == {
        train: CorpusOverlap(6, [], {first: ["case-2"], second: ["case-2", "case-5"]}),
        few: CorpusOverlap(1, [], {first: [], second: []}),
    }


def test_training_on_a_test_split_is_refused(train: Path, tmp_path: Path) -> None:
    test = write_cases(tmp_path / "test.spacy", (0, 2, 3, 5, 9))
    tasks = {"a": {"path": str(train)}}
    corpora = make_task_corpora(tasks, held_out=[test])
    with pytest.raises(BioclinError) as error:
        next(corpora.read(get_nlp(), head="ner"))
    assert str(error.value) == (
        "spacy-bioclin.TaskCorpora.v1: training documents hold text of the test splits in "
        f"held_out: 4 of {train} with {test} (case-0, case-2, case-3 and 1 more). Leave them out: "
        f"`bioclin overlap {train} --held-out {test} -o leave-out.txt` and leave_out = "
        '"leave-out.txt"; or set allow_overlap = true'
    )
    allowed = make_task_corpora(tasks, held_out=[test], allow_overlap=True)
    assert len(ids(allowed.read(get_nlp()))) == 6
    (tmp_path / "list").write_text("case-0\ncase-2\ncase-3\ncase-5\n")
    chosen = make_task_corpora(tasks, held_out=[test], leave_out=tmp_path / "list")
    with pytest.warns(BioclinWarning):
        assert ids(chosen.read(get_nlp())) == ["case-1", "case-4"]


def test_a_corpus_that_has_changed_is_checked_again(train: Path, tmp_path: Path) -> None:
    test = write_cases(tmp_path / "test.spacy", (8, 9))
    tasks = {"a": {"path": str(train)}}
    assert len(ids(make_task_corpora(tasks, held_out=[test]).read(get_nlp()))) == 6
    write_cases(train, range(9))
    with pytest.raises(BioclinError, match="1 of "):
        list(make_task_corpora(tasks, held_out=[test]).read(get_nlp()))


def test_test_splits_that_cannot_be_compared(train: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.spacy").write_bytes(case(0).encode())
    (tmp_path / "empty").mkdir()
    short = write(tmp_path / "short.spacy", {"a": "Uno dos tres."})
    for path, message in (
        (tmp_path / "no.spacy", "no.spacy: no such file or folder"),
        (tmp_path / "empty", "empty: no .spacy file in this folder"),
        (tmp_path / "bad.spacy", r"bad.spacy: not a DocBin file of spaCy \(\w+\)"),
        (short, "short.spacy: has no document of 12 words"),
    ):
        corpora = make_task_corpora({"a": {"path": str(train)}}, held_out=[path])
        with pytest.raises(BioclinError, match=message) as error:
            list(corpora.read(get_nlp()))
        assert SECRET not in str(error.value)


def test_settings_from_a_config(train: Path, listed: Path, tmp_path: Path) -> None:
    """Paths are texts there; wrong types are spaCy's errors."""
    text = f"""
    [corpora]
    [corpora.train]
    @readers = "spacy-bioclin.TaskCorpora.v1"
    leave_out = "{listed}"
    held_out = ["{write_cases(tmp_path / "test.spacy", (4, 9))}"]
    [corpora.train.tasks]
    [corpora.train.tasks.a]
    path = "{train}"
    """
    config = Config().from_str("\n".join(line.strip() for line in text.splitlines()))
    resolved = spacy.registry.resolve(config)["corpora"]["train"]
    with pytest.warns(BioclinWarning):
        assert ids(resolved.read(get_nlp())) == ["case-0", "case-2", "case-3", "case-5"]


def test_configs_name_the_setting() -> None:
    for path in (Path(__file__).parents[3] / "configs").glob("*.cfg"):
        for reader in load_config(path, interpolate=False)["corpora"].values():
            assert reader["leave_out"] is None


def test_damaged_files_are_one_error(tmp_path: Path, train: Path) -> None:
    whole, path = train.read_bytes(), tmp_path / "damaged.spacy"
    rng, n_read = random.Random(18), 0
    damaged = [*truncated(whole, 20), *(mutated(whole, rng) for _ in range(40))]
    damaged.append(zlib.compress(srsly.msgpack_dumps({"attrs": [65], "strings": [SECRET]})))
    for data in damaged:
        path.write_bytes(data)
        try:
            n_read += len(list(read_texts(path))) > 0
        except BioclinError as error:
            assert str(path) in str(error) and SECRET not in str(error)
    assert n_read < len(damaged)


def test_a_resumed_run_has_the_same_list(train: Path, listed: Path) -> None:
    """Where the list is does not matter, nor what was checked; what is in it does."""
    nlp = spacy.blank("es")
    reader = {"path": str(train), "leave_out": str(listed), "held_out": [str(train)]}
    nlp.config["corpora"]["train"] = reader
    before = describe_run(nlp)
    moved = listed.rename(listed.with_name("moved.txt"))
    nlp.config["corpora"]["train"] |= {"leave_out": str(moved), "held_out": []}
    assert describe_run(nlp) == before
    moved.write_text("case-2\n")
    assert describe_run(nlp) != before
