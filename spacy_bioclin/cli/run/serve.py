"""`bioclin serve`: answer requests with the annotated note."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...errors import BioclinError

if TYPE_CHECKING:
    from spacy.language import Language

    from ...serving.service import Service

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def main(
    pipeline: Annotated[str, typer.Argument(help="Folder or package name of the pipeline")],
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 for all of this machine")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for a free one")] = 8000,
    keys: Annotated[
        Path | None,
        typer.Option(help="API keys, one a line; without it, those of BIOCLIN_SERVE_KEYS"),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Name by which clients reach the service; repeatable"),
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(help="YAML: what /deidentify does with which PHI")
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option(help="Secret key of the policy; else BIOCLIN_DEID_KEY")
    ] = None,
    max_bytes: Annotated[int, typer.Option(min=1, help="Largest body of a request")] = 2_000_000,
    max_notes: Annotated[int, typer.Option(min=1, help="Notes in a request")] = 100,
    max_queue: Annotated[
        int, typer.Option(min=1, help="Notes that wait; more are refused with status 429")
    ] = 1_000,
    batch_words: Annotated[
        int, typer.Option(min=0, help="Words that the pipeline reads together; 0: note by note")
    ] = 2_000,
    wait_ms: Annotated[
        int, typer.Option(min=0, help="Milliseconds that a note waits for others of its batch")
    ] = 5,
    timeout: Annotated[
        float, typer.Option(min=0.001, help="Seconds after which a request is given up")
    ] = 120.0,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes with a pipeline; one reads short notes only")
    ] = 1,
    gpu_id: Annotated[int, typer.Option("--gpu-id", "-g", help="GPU to use; -1 for the CPU")] = -1,
    precision: Annotated[
        str | None, typer.Option("--precision", help="auto, fp32, bf16, fp16 (GPU) or int8 (CPU)")
    ] = None,
) -> None:
    """Serve a pipeline over HTTP, with a page to try it. It listens on this machine only unless
    --host says otherwise."""
    from ...serving.keys import read_keys
    from ...serving.settings import Limits, check_installed

    check_installed()
    limits = Limits(
        max_bytes=max_bytes,
        max_notes=max_notes,
        max_queue=max_queue,
        batch_words=batch_words,
        wait=wait_ms / 1000,
        timeout=timeout,
        workers=workers,
    ).check()
    known = read_keys(keys)
    from ...serving.server import bind, serve
    from ...serving.service import Service

    listening = bind(host, port)
    again = partial(load, pipeline, policy, key_file, gpu_id=gpu_id, precision=precision)
    service = Service(again(), limits=limits, keys=known, hosts=allowed_host or (), load=again)
    warn(service, keys, host)
    name = f"{service.pipeline['name']} {service.pipeline['version']}"
    serve(service, listening, lambda address: typer.echo(f"{name} at {address} (Ctrl-C ends it)"))


def load(
    pipeline: str, policy: Path | None, key_file: Path | None, *, gpu_id: int, precision: str | None
) -> "Language":
    """Load the pipeline, and give its `bioclin_deid` the policy and the key.

    RAISES (BioclinError): There is no such pipeline, it does not de-identify and there is a policy
        or a key for it, or the policy needs a key and there is none.
    """
    from ...deid import make_pipeline
    from ...deid.pipeline import find_deid
    from ...deid.policy import load_policy
    from ...deid.secret import read_key
    from ...serving.notes import has_deid
    from ..loading import load_pipeline

    nlp = load_pipeline(pipeline, gpu_id=gpu_id, precision=precision)
    if not has_deid(nlp):
        if policy is not None or key_file is not None:
            option = "--key-file" if policy is None else "--policy"
            raise BioclinError(
                f"{option}: {pipeline} has no bioclin_deid, which would need it; leave it out"
            )
        return nlp
    key = read_key(key_file) if key_file is not None else None
    nlp = make_pipeline(nlp, policy=policy and load_policy(policy, lang=str(nlp.lang)), key=key)
    deid = find_deid(nlp)
    if deid.policy.needs_key and deid.key is None:
        raise BioclinError(
            "the policy (hash, encrypt or surrogate) needs a secret key: make one with bioclin "
            "deid-key FILE and give --key-file FILE, or set BIOCLIN_DEID_KEY"
        )
    return nlp


def warn(service: "Service", keys: Path | None, host: str) -> None:
    """Warn of a service that others can reach, or whose keys others can read."""
    from ...deid.secret import can_others_read

    if not service.keys and host not in LOOPBACK:
        service.log.write(
            "warning",
            message=f"whoever reaches {host} can send notes; give --keys, and let a proxy add TLS",
        )
    if keys is not None and can_others_read(keys):
        service.log.write(
            "warning", message=f"every user of this machine can read {keys}: chmod 600 {keys}"
        )
