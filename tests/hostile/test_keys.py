"""Keys that are short, recoded, changed in the middle of a run, or open to everybody."""

import json

import pytest
from typer.testing import CliRunner

from spacy_bioclin.cli import app
from spacy_bioclin.deid.secret import SecretKey, make_key, patient_secret, read_key
from spacy_bioclin.deid.vault import restore, seal_originals
from spacy_bioclin.errors import BioclinError

KEY = "MzI1NjM0NTYzNDU2MzQ1NjM0NTYzNDU2MzQ1NjM0NTY="


def test_blanks_around_a_key_do_not_count(tmp_path, monkeypatch):
    path = tmp_path / "key"
    for around in ("{}", "{}\n", "{}\r\n", " {}\t\n\n", "\n{}"):
        path.write_bytes(around.format(KEY).encode())
        monkeypatch.setenv("BIOCLIN_DEID_KEY", around.format(KEY))
        assert read_key(path) == read_key() == KEY.encode(), around


def test_a_key_in_another_encoding_is_not_another_key(tmp_path):
    path = tmp_path / "key"
    for encoding in ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"):
        for end in ("", "\n", "\r\n"):
            path.write_bytes((KEY + end).encode(encoding))
            with pytest.raises(BioclinError, match=r"key: the key was saved as UTF-16.*plain text"):
                read_key(path)


def test_random_bytes_are_a_key(tmp_path):
    path = tmp_path / "key"
    for content in (bytes(range(32)), b"\xff\xfe" + bytes(range(1, 31)), b"a" * 16):
        path.write_bytes(content)
        assert read_key(path) == content.strip(), content


def test_what_is_no_key(tmp_path):
    rows = [
        (b"", "a key of 0 bytes can be guessed"),
        (b" \n", "a key of 0 bytes can be guessed"),
        (b"secreto\n", "a key of 7 bytes can be guessed"),
        (b"x" * 70_000, "more than 65,536 bytes"),
        (None, r"cannot be read \(Is a directory\)"),
    ]
    path = tmp_path / "key"
    for content, message in rows:
        path.unlink(missing_ok=True)
        path.mkdir() if content is None else path.write_bytes(content)
        with pytest.raises(BioclinError, match=message) as raised:
            read_key(path)
        assert "secreto" not in str(raised.value).removeprefix(str(path))


def test_a_variable_that_is_not_utf_8(monkeypatch):
    monkeypatch.setenv("BIOCLIN_DEID_KEY", "\udcff" * 32)
    assert read_key() == b"\xff" * 32


def test_a_key_is_never_overwritten(tmp_path):
    path = tmp_path / "key"
    for status in (0, 1):
        done = CliRunner().invoke(app, ["deid-key", str(path)])
        assert done.exit_code == status
        content = path.read_bytes()
    assert "a key that is overwritten is lost" in done.output
    assert path.read_bytes() == content and path.stat().st_mode & 0o777 == 0o600


def test_the_key_changes(tmp_path):
    """Surrogates, hashes and shifts are others; a run that was begun with the old one stops."""
    rows = [{"text": "Marta García Gil, NHC 1234567, 3/4/2020", "p": "7", "d": "2020-04-03"}]
    (tmp_path / "in.jsonl").write_text(json.dumps(rows[0]) + "\n")
    policy = tmp_path / "policy.yml"
    policy.write_text("default: mask\noperators:\n  FECHAS: surrogate\n")
    outputs, audits = [], []
    for name in ("old", "new", "old"):
        key = tmp_path / name
        if not key.exists():
            key.write_text(make_key())
            key.chmod(0o644 if name == "old" else 0o600)
        out = tmp_path / f"out{len(outputs)}.jsonl"
        command = [
            "deid",
            tmp_path / "in.jsonl",
            out,
            "--lang",
            "es",
            "--rules-only",
            "--policy",
            policy,
        ]
        options = ["--patient-column", "p", "--date-column", "d", "--key-file", key]
        done = CliRunner().invoke(app, [str(each) for each in (*command, *options)])
        assert done.exit_code == 0, done.output
        assert ("can read" in done.output) == (name == "old")
        outputs.append(json.loads(out.read_text()))
        audits.append(json.loads(out.with_name(f"{out.name}.audit.json").read_text())["key"])
    first, other, again = outputs
    assert first == again and audits[0] == audits[2] != audits[1]
    assert all(first[name] != other[name] for name in ("text", "p", "d"))


def test_sealed_originals_open_with_their_key_alone():
    from spacy_bioclin.deid import make_pipeline

    old, new = make_key().encode(), make_key().encode()
    doc = make_pipeline("es", rules_only=True)("Visto el 3/4/2020.")
    sealed = seal_originals(doc._.deid, doc.text, old)
    assert restore(doc._.deid.text, sealed, old) == doc.text
    with pytest.raises(BioclinError, match="another key"):
        restore(doc._.deid.text, sealed, new)


def test_a_key_is_not_shown_by_what_holds_it(tmp_path):
    """Not by the objects of a run either: errors, logs and debuggers print such objects."""
    from spacy_bioclin.cli.deid.setup import Setup
    from spacy_bioclin.deid import make_pipeline
    from spacy_bioclin.deid.operators import NoteContext
    from spacy_bioclin.deid.surrogates.context import SurrogateContext
    from spacy_bioclin.runner.columns import make_columns
    from spacy_bioclin.runner.deid import DeidJob
    from spacy_bioclin.runner.forms import open_form

    (tmp_path / "in.jsonl").write_text('{"text": "tos", "id": "1"}\n')
    key, secret = SecretKey(KEY.encode()), patient_secret(KEY.encode(), "7", "tos")
    setup = Setup("es", None, None, key, -1)
    form = open_form(tmp_path / "in.jsonl", make_columns("text", "id", None, (), (), (), ()))
    job = DeidJob.for_form(form, setup.load, key, out=tmp_path / "o", rename=True, lang="es")
    surrogates = SurrogateContext(secret, "es")
    nlp = make_pipeline("es", rules_only=True, policy={"default": "hash"}, key=KEY.encode())
    holders = [key, secret, setup, job, surrogates, NoteContext("es", surrogates, {})]
    holders += [nlp, nlp.get_pipe("bioclin_deid"), setup.load, job.load, job._asdict()]
    assert job.key.reveal() == KEY.encode() and setup.load()("tos")
    for each in holders:
        for shown in (repr(each), str(each), f"{each}", repr([each])):
            assert KEY not in shown and KEY[5:25] not in shown, type(each)
