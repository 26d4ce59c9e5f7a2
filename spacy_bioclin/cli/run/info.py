"""`bioclin info`: Show the device and precision in use here, and advise what would be faster."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...machine import CUPY, choose_device, describe_cpu, find_gpus, find_versions
from ..tables import AS_JSON, print_json, print_table

if TYPE_CHECKING:
    import torch
    from spacy.language import Language

BASE_WIDTH = 768  # vector size of base-size encoders


def main(
    pipeline: Annotated[
        str | None, typer.Argument(help="Pipeline to describe too: folder or package name")
    ] = None,
    gpu_id: Annotated[int, typer.Option("--gpu-id", "-g", help="GPU to use; -1 for the CPU")] = -1,
    as_json: AS_JSON = False,
) -> None:
    """Show which device and precision are used and why, and what would be faster."""
    import torch

    from ..loading import load_pipeline

    device = choose_device(gpu_id)
    nlp = load_pipeline(pipeline, gpu_id=gpu_id) if pipeline else None
    info: dict[str, Any] = {
        "device": str(device),
        "precision": describe_precision("auto", device),
        "cpu": describe_cpu(),
        "gpus": find_gpus(),
        "versions": {**find_versions(), "torch's CUDA": torch.version.cuda},
        "pipeline": describe_pipeline(nlp) if nlp else None,
    }
    info["faster"] = find_advice(info)
    if as_json:
        print_json(info)
        return
    print_table(_rows(info))
    typer.echo("What would be faster here:" if info["faster"] else "Nothing to advise.")
    for advice in info["faster"]:
        typer.echo(f"- {advice}")


def describe_precision(setting: str, device: "torch.device") -> dict[str, str]:
    """Describe what a precision setting means on a device.

    RETURNS (dict): "setting", "runs_in" (the number format that is used) and "reason".
    """
    from ...encoders.precision import FORMATS, choose_precision

    chosen = choose_precision(setting, device)
    name = next(name for name, dtype in FORMATS.items() if dtype == chosen.dtype)
    return {"setting": setting, "runs_in": name, "reason": chosen.reason}


def describe_pipeline(nlp: "Language") -> dict[str, Any]:
    """Describe a pipeline: name, version, components and encoder.

    RETURNS (dict): "encoder" is None for a pipeline without `spacy-bioclin.Encoder.v1`; that of an
        ensemble is the first of "members".
    RAISES (BioclinError): The device cannot compute in the precision of the encoder.
    """
    from ..loading import find_encoders

    encoders = [
        {"component": name, "members": len(models), **describe_encoder(models[0])}
        for name, models in find_encoders(nlp).items()
    ]
    return {
        "name": f"{nlp.lang}_{nlp.meta['name']}",
        "version": nlp.meta["version"],
        "components": {name: nlp.get_pipe_meta(name).factory for name in nlp.pipe_names},
        "encoder": encoders[0] if encoders else None,
    }


def describe_encoder(model: Any) -> dict[str, Any]:
    """Describe an `EncoderModel`: size, window and stride in pieces, and precision."""
    network, config = model.shim.module, model.transformer.config
    window = model.attrs["size"] + network.special.n
    return {
        "architecture": config.model_type,
        "layers": getattr(config, "num_hidden_layers", None),
        "width": config.hidden_size,
        "weights": sum(parameter.numel() for parameter in network.parameters()),
        "window": window,
        "stride": window - model.attrs["overlap"],
        "precision": describe_precision(model.shim.precision, model.shim.device),
    }


def find_advice(info: dict[str, Any]) -> list[str]:
    """Find changes that would make annotation faster on this machine."""
    pipeline, auto = info["pipeline"], info["precision"]
    encoder = pipeline and pipeline["encoder"]
    advice = [*_advise_on_gpu(info), *_advise_on_cpu(info)] if info["device"] == "cpu" else []
    if pipeline and not encoder:
        return advice
    setting = encoder["precision"]["setting"] if encoder else "auto"
    component = encoder["component"] if encoder else "transformer"
    section = f"[components.{component}.model] of the pipeline's config.cfg"
    if encoder and encoder["members"] > 1:
        section = f"each encoder in {section}"
    if setting in ("fp32", "bf16") and setting != auto["runs_in"]:
        why = f'precision = "{setting}" is set, but {auto["reason"]}'
        advice.append(f'{why}: set precision = "auto" in {section}')
    small = encoder and encoder["width"] < BASE_WIDTH
    if setting != "int8" and not small and _int8_is_best(info):
        advice.append(
            f'this CPU is fast in int8 (VNNI), but not in bf16: precision = "int8" in {section} '
            "annotates about twice as fast with an encoder of base size; check the scores with "
            "bioclin evaluate --precision int8"
        )
    if encoder and encoder["stride"] < encoder["window"]:
        advice.append(
            f"windows overlap by {encoder['window'] - encoder['stride']} pieces, which are encoded "
            f"twice: set stride = null in {section} and check the scores with bioclin evaluate"
        )
    return advice


def _int8_is_best(info: dict[str, Any]) -> bool:
    """Tell whether the CPU is used, has int8 in hardware, and is not faster in bf16."""
    cpu, runs_in = info["cpu"], info["precision"]["runs_in"]
    on_fp32_cpu = info["device"] == "cpu" and runs_in == "fp32" and not _bf16_is_unseen(cpu)
    return on_fp32_cpu and "AVX512-VNNI" in cpu["features"]


def _bf16_is_unseen(cpu: dict[str, Any]) -> bool:
    """Tell whether the system reports bf16, and torch does not."""
    return cpu["bf16"] and not {"AMX", "AVX512-BF16"} & set(cpu["features"])


def _advise_on_gpu(info: dict[str, Any]) -> list[str]:
    """Advise how to use a GPU that is idle."""
    if not info["gpus"]:
        return []
    gpu, versions = info["gpus"][0], info["versions"]
    cuda = versions["torch's CUDA"]
    extra = "cuda13x" if (cuda or "").startswith("13.") else "cuda12x"
    steps = [] if cuda else ["install a CUDA build of torch"]
    steps += [] if set(versions) & set(CUPY) else [f"install spacy-bioclin[{extra}]"]
    if not steps and "memory_gib" not in gpu:
        steps = ["update its driver, or check whether CUDA_VISIBLE_DEVICES hides it"]
    return [f"{gpu['name']} is not used: {', '.join([*steps, 'add --gpu-id 0'])}"]


def _advise_on_cpu(info: dict[str, Any]) -> list[str]:
    cpu, advice = info["cpu"], []
    if cpu["omp_num_threads"] and cpu["threads"] < cpu["usable_cores"]:
        advice.append(
            f"OMP_NUM_THREADS = {cpu['omp_num_threads']} leaves cores idle (threads: "
            f"{cpu['threads']}, cores: {cpu['usable_cores']}): unset it unless others need them"
        )
    if _bf16_is_unseen(cpu) and info["precision"]["runs_in"] != "bf16":
        torch = info["versions"]["torch"]
        advice.append(f"torch {torch} does not see that this CPU has bf16: update torch")
    return advice


def _rows(info: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Describe the machine and the pipeline as names and values."""
    pipeline, cpu, omp = info["pipeline"], info["cpu"], info["cpu"]["omp_num_threads"]
    encoder = pipeline and pipeline["encoder"]
    precision = encoder["precision"] if encoder else info["precision"]
    yield "Device", info["device"]
    yield "Precision", f"{precision['runs_in']}, because {precision['reason']}"
    if pipeline:
        yield "Pipeline", f"{pipeline['name']} {pipeline['version']}"
        made = pipeline["components"].items()
        yield "Components", ", ".join(n if n == f else f"{n} ({f})" for n, f in made)
        yield "Encoder", _describe_in_words(encoder) if encoder else "not spacy-bioclin's"
    yield "Processor", ", ".join([cpu["name"], *cpu["features"]])
    omp = "not set" if omp is None else f"= {omp}"
    threads = f"{cpu['threads']} of {cpu['usable_cores']} cores"
    yield "Threads", f"{threads} (logical cores: {cpu['cores']}, OMP_NUM_THREADS {omp})"
    for gpu in info["gpus"]:
        shown = "torch cannot use it"
        if "memory_gib" in gpu:
            shown = f"{gpu['memory_gib']} GiB, compute capability {gpu['compute_capability']}"
        yield "GPU", f"{gpu['name']}: {shown}"
    for name, found in info["versions"].items():
        yield name, found or "none"


def _describe_in_words(encoder: dict[str, Any]) -> str:
    several = f"{encoder['members']}, each " if encoder["members"] > 1 else ""
    return (
        f"{several}{encoder['architecture']}, {encoder['weights']:,} weights, "
        f"{encoder['layers']} layers, width {encoder['width']}, window {encoder['window']}, "
        f"stride {encoder['stride']}, "
        f'precision = "{encoder["precision"]["setting"]}"'
    )
