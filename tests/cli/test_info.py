"""`bioclin info`: the choice and why, what is described, advice only where it applies."""

import copy
import json
import subprocess
from importlib.metadata import version
from types import SimpleNamespace

import pytest
import spacy
import torch
from typer.testing import CliRunner

from spacy_bioclin import machine
from spacy_bioclin.cli import app
from spacy_bioclin.cli.loading import load_pipeline
from spacy_bioclin.cli.run.info import find_advice
from spacy_bioclin.errors import BioclinError

# A CPU with everything that this package uses, and all of it used.
INFO = {
    "device": "cpu",
    "precision": {"setting": "auto", "runs_in": "bf16", "reason": "the hardware has it"},
    "cpu": {
        "name": "Processor",
        "features": ["AVX2", "AVX512", "AVX512-VNNI", "AMX"],
        "bf16": True,
        "cores": 8,
        "usable_cores": 4,
        "threads": 4,
        "omp_num_threads": None,
    },
    "gpus": [],
    "versions": {"torch": "2.13.0", "torch's CUDA": None},
    "pipeline": None,
}
ENCODER = {
    "component": "transformer",
    "members": 1,
    "width": 768,
    "window": 128,
    "stride": 128,
    "precision": {"setting": "auto", "runs_in": "bf16", "reason": "the hardware has it"},
}
FP32 = {"runs_in": "fp32"}
NO_BF16 = {"precision": FP32, "cpu": {"bf16": False, "features": ["AVX2", "AVX512-VNNI"]}}
UNSEEN = {"precision": FP32, "cpu": {"bf16": True, "features": ["AVX2", "AVX512-VNNI"]}}
SLOW_BF16 = {"precision": FP32, "cpu": {"features": ["AVX512-VNNI", "AVX512-BF16"]}}
USABLE = {"name": "H100", "memory_gib": 80.0, "compute_capability": "9.0"}


def run(*arguments):
    return CliRunner().invoke(app, ["info", *map(str, arguments)], env={"COLUMNS": "200"})


def changed(record, changes):
    """A copy in which the settings of `changes` replace those of the record, at any depth."""
    record = copy.deepcopy(record)
    for key, value in changes.items():
        inner = isinstance(value, dict) and isinstance(record.get(key), dict)
        record[key] = changed(record[key], value) if inner else value
    return record


def with_encoder(**changes):
    return {"pipeline": {"encoder": changed(ENCODER, changes)}}


@pytest.fixture(scope="module")
def pipeline(tiny_encoder, tmp_path_factory):
    nlp = spacy.blank("es")
    nlp.add_pipe("bioclin_sentences", name="sentences")
    model = {
        "@architectures": "spacy-bioclin.Encoder.v1",
        "name": str(tiny_encoder),
        "window": 32,
        "stride": 24,
        "precision": "fp32",
    }
    nlp.add_pipe("transformer", config={"model": model})
    nlp.initialize()
    folder = tmp_path_factory.mktemp("info") / "pipeline"
    nlp.to_disk(folder)
    return folder


def test_table_on_cpu():
    done = run()
    assert done.exit_code == 0, done.output
    for word in ("Device", "cpu", "because", "spacy-transformers", version("torch"), "Threads"):
        assert word in done.stdout


def test_json_holds_the_choice_and_its_reason(monkeypatch):
    for probe in machine.FEATURES.values():
        monkeypatch.setattr(torch.cpu, probe, lambda: False, raising=False)
    info = json.loads(run("--json").stdout)
    assert info["device"] == "cpu"
    reason = "this cpu has no matrix units for bf16 or fp16"
    assert info["precision"] == {"setting": "auto", "runs_in": "fp32", "reason": reason}
    assert info["cpu"]["features"] == []
    assert info["pipeline"] is None
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: True, raising=False)
    info = json.loads(run("--json").stdout)
    assert info["precision"]["runs_in"] == "bf16"
    assert info["cpu"]["features"] == ["AMX"]
    assert info["cpu"]["threads"] == torch.get_num_threads()
    assert info["versions"]["spacy"] == spacy.__version__


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_absent_is_an_error(pipeline, tmp_path):
    (tmp_path / "note.txt").write_text("")
    for arguments in (
        ["info"],
        ["info", pipeline],
        ["annotate", pipeline, tmp_path / "note.txt"],
        ["evaluate", pipeline, tmp_path / "x.spacy", "-o", tmp_path / "m.json"],
    ):
        done = CliRunner().invoke(app, [*map(str, arguments), "--gpu-id", "0"])
        message = " ".join(done.stderr.split())
        assert (done.exit_code, done.stdout) == (1, ""), arguments
        assert "--gpu-id 0" in message and "spacy-bioclin[cuda12x]" in message, arguments


def test_a_pipeline_is_described(pipeline):
    info = json.loads(run(pipeline, "--json").stdout)["pipeline"]
    assert info["name"] == "es_pipeline"
    assert info["components"] == {"sentences": "bioclin_sentences", "transformer": "transformer"}
    nlp = spacy.load(pipeline)
    weights = nlp.get_pipe("transformer").model.transformer.num_parameters()
    reason = 'precision = "fp32" is set'
    assert info["encoder"] == {
        "component": "transformer",
        "members": 1,
        "architecture": "bert",
        "layers": 2,
        "width": 16,
        "weights": weights,
        "window": 32,
        "stride": 24,
        "precision": {"setting": "fp32", "runs_in": "fp32", "reason": reason},
    }
    table = " ".join(run(pipeline).stdout.split())
    assert "fp32, because precision" in table
    assert f"bert, {weights:,} weights, 2 layers" in table
    assert "windows overlap by 8 pieces" in table


@pytest.mark.usefixtures("kept_pipelines")
def test_a_pipeline_without_our_encoder_and_none_at_all(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "plain")
    assert json.loads(run(tmp_path / "plain", "--json").stdout)["pipeline"]["encoder"] is None
    assert "not spacy-bioclin's" in run(tmp_path / "plain").stdout
    done = run(tmp_path / "absent")
    assert done.exit_code == 1
    assert "cannot load the pipeline" in done.stderr


# Changes of INFO -> a part of the only advice; None for no advice.
ADVICE = [
    ({}, None),
    ({"cpu": {"threads": 1}}, None),  # torch's own choice
    ({"cpu": {"threads": 1, "omp_num_threads": "1"}}, "OMP_NUM_THREADS = 1 leaves cores idle"),
    ({"cpu": {"omp_num_threads": "4"}}, None),
    (SLOW_BF16, "is fast in int8 (VNNI), but not in bf16"),
    (UNSEEN, "torch 2.13.0 does not see that this CPU has bf16"),
    (NO_BF16, 'precision = "int8" in [components.transformer.model]'),
    ({**NO_BF16, "cpu": {"bf16": False, "features": ["AVX2"]}}, None),
    ({**NO_BF16, "device": "cuda:0"}, None),
    ({**NO_BF16, "pipeline": {"encoder": None}}, None),
    ({**NO_BF16, **with_encoder()}, 'precision = "int8"'),
    ({**NO_BF16, **with_encoder(width=384)}, None),
    ({**NO_BF16, **with_encoder(precision={"setting": "int8"})}, None),
    (with_encoder(), None),
    (with_encoder(precision={"setting": "fp32"}), 'set precision = "auto"'),
    ({**with_encoder(precision={"setting": "fp32"}), "device": "cuda:0"}, '"auto"'),
    (
        {**with_encoder(precision={"setting": "bf16"}), **NO_BF16, "device": "cuda:0"},
        'precision = "bf16" is set',
    ),
    (with_encoder(precision={"setting": "fp16"}), None),
    (with_encoder(stride=96), "overlap by 32 pieces"),
    ({"gpus": [{"name": "H100"}]}, "a CUDA build of torch, install spacy-bioclin[cuda12x]"),
    (
        {"gpus": [USABLE], "versions": {"torch's CUDA": "12.8"}},
        "install spacy-bioclin[cuda12x]",
    ),
    (
        {"gpus": [USABLE], "versions": {"torch's CUDA": "13.0"}},
        "install spacy-bioclin[cuda13x]",
    ),
    (
        {"gpus": [USABLE], "versions": {"torch's CUDA": "12.8", "cupy-cuda12x": "13.6"}},
        "H100 is not used: add --gpu-id 0",
    ),
    (
        {"gpus": [{"name": "H100"}], "versions": {"torch's CUDA": "12.8", "cupy": "13.6"}},
        "update its driver",
    ),
    ({"gpus": [USABLE], "device": "cuda:0"}, None),
]


def test_advice_only_where_it_applies():
    for changes, expected in ADVICE:
        advice = find_advice(changed(INFO, changes))
        if expected is None:
            assert advice == [], changes
        else:
            assert len(advice) == 1 and expected in advice[0], (changes, advice)


def test_probes_reach_the_advice(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "cpuinfo")
    for probe in machine.FEATURES.values():
        monkeypatch.setattr(torch.cpu, probe, lambda: False, raising=False)
    assert "does not see" not in run().stdout  # no such file
    machine.CPUINFO.write_text(
        "model name\t: Some CPU\nflags\t\t: fpu amx_bf16\n\nflags\t: amx_bf16\n"
    )
    done = run()
    assert "Some CPU" in done.stdout
    assert "does not see that this CPU has bf16: update torch" in done.stdout


def test_gpus_that_only_the_driver_sees(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(machine.shutil, "which", lambda name: None)
    assert machine.find_gpus() == []
    monkeypatch.setattr(machine.shutil, "which", lambda name: name)
    done = subprocess.CompletedProcess([], 0, stdout="NVIDIA H100\nNVIDIA L4\n")
    monkeypatch.setattr(machine.subprocess, "run", lambda *_, **__: done)
    assert machine.find_gpus() == [{"name": "NVIDIA H100"}, {"name": "NVIDIA L4"}]
    done.returncode = 9  # no driver
    assert machine.find_gpus() == []


def test_gpus_that_torch_uses(monkeypatch):
    gpu = SimpleNamespace(name="H100", total_memory=80 * 2**30, major=9, minor=0)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: gpu)
    assert machine.find_gpus() == [USABLE]
    assert "GPU H100: 80.0 GiB, compute capability 9.0" in " ".join(run().stdout.split())


def test_precision_for_a_pipeline_without_an_encoder_is_an_error(tmp_path):
    spacy.blank("es").to_disk(tmp_path)
    with pytest.raises(BioclinError, match="--precision fp32"):
        load_pipeline(str(tmp_path), precision="fp32")
