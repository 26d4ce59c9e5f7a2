"""Build a wheel from a pipeline folder, through `spacy package`."""

import contextlib
import io
import re
import tempfile
from pathlib import Path
from typing import Any

import srsly
from build import BuildException, ProjectBuilder
from packaging.version import InvalidVersion, Version
from pyproject_hooks import quiet_subprocess_runner
from spacy.cli.package import package as spacy_package

from ..about import __version__
from ..errors import BioclinError
from ..files import check_output
from .card import Provenance, find_linkers, make_meta, render_card

CARD = "MODEL_CARD.md"
PREFIX = "bioclin_"


def build_wheel(
    pipeline: Path,
    out: Path,
    *,
    name: str,
    version: str,
    provenance: Provenance,
    metrics: dict[str, Any] | None = None,
    overwrite: bool = False,
) -> Path:
    """Make a wheel that holds a pipeline, its model card, scores and licences.

    The package is called LANG_bioclin_NAME. Nothing is downloaded: spaCy lays out the package, and
    setuptools of this environment builds it. (`spacy package --build wheel` would run `python -m
    build`, which makes an environment of its own and fetches setuptools into it.)

    pipeline (Path): Folder of a trained pipeline, such as training/model-best. Not changed.
    out (Path): Folder for the wheel.
    name (str): Letters, digits and underscores.
    version (str): By PEP 440.
    provenance (Provenance): What the pipeline was made from.
    metrics (dict | None): What `bioclin evaluate` wrote.
    overwrite (bool): Replace an older wheel of the same name and version.
    RETURNS (Path): The wheel.
    RAISES (BioclinError): No pipeline in the folder, a bad name or version, or an older wheel.
    """
    meta_path = pipeline / "meta.json"
    if not meta_path.is_file() or not (pipeline / "config.cfg").is_file():
        raise BioclinError(
            f"{pipeline}: not a pipeline, it has no meta.json and config.cfg; give the folder that "
            "`spacy train` wrote, e.g. training/model-best"
        )
    name, version = check_name(name), check_version(version)
    linkers = find_linkers(pipeline)
    meta = make_meta(
        srsly.read_json(meta_path),
        name=name,
        version=version,
        requirement=requirement(__version__),
        provenance=provenance,
        metrics=metrics,
        linkers=linkers,
    )
    package = f"{meta['lang']}_{name}"
    target = out / f"{package}-{version}-py3-none-any.whl"
    check_output(target, overwrite=overwrite)
    card = render_card(meta, pipeline, linkers)
    out.mkdir(parents=True, exist_ok=True)
    # In `out`, so that the finished wheel is moved into its place at once.
    with tempfile.TemporaryDirectory(prefix=".package-", dir=out) as folder:
        source = _lay_out(pipeline, Path(folder), meta, card)
        try:
            builder = ProjectBuilder(source, runner=quiet_subprocess_runner)
            wheel = Path(builder.build("wheel", folder))
        except BuildException as error:
            raise BioclinError(
                f"setuptools could not build the wheel ({error}); check that setuptools and wheel "
                "are installed in this environment"
            ) from error
        return wheel.replace(target)


def check_name(name: str) -> str:
    """Check the name of a package, and add our prefix.

    RETURNS (str): The name with the prefix, without language.
    RAISES (BioclinError): It has other characters than a package name may have.
    """
    if not re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)*", name):
        raise BioclinError(
            f"--name is {name!r}: use lower-case letters, digits and single underscores (demo_v2)"
        )
    return name if name.startswith(PREFIX) else PREFIX + name


def check_version(version: str) -> str:
    """Bring a version into its normal form, which the name of the wheel has.

    RAISES (BioclinError): It is not a version by PEP 440.
    """
    try:
        return str(Version(version))
    except InvalidVersion:
        raise BioclinError(f"--version is {version!r}: write it like 0.1.0 (PEP 440)") from None


def requirement(version: str) -> str:
    """Require spacy-bioclin from this version on, below the next minor one."""
    parsed = Version(version)
    return f"spacy-bioclin>={version},<{parsed.major}.{parsed.minor + 1}"


def _lay_out(pipeline: Path, folder: Path, meta: dict[str, Any], card: str) -> Path:
    """Make the source folder of the package, ready to be built."""
    meta_path = folder / "meta.json"
    srsly.write_json(meta_path, meta)
    messages = io.StringIO()
    try:
        with contextlib.redirect_stdout(messages):
            spacy_package(pipeline, folder, meta_path=meta_path, create_sdist=False)
    except SystemExit:
        reason = " ".join(messages.getvalue().split())
        raise BioclinError(f"spacy package refuses {pipeline}: {reason}") from None
    package = f"{meta['lang']}_{meta['name']}"
    source = folder / f"{package}-{meta['version']}"
    data = source / package / source.name
    for path in (source / "README.md", data / "README.md", data / CARD):
        path.write_text(card, encoding="utf-8")
    return source
