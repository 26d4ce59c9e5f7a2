"""Build a wheel from a pipeline folder, through `spacy package`."""

import contextlib
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import srsly
from build import BuildException, ProjectBuilder
from packaging.version import InvalidVersion, Version
from pyproject_hooks import quiet_subprocess_runner
from spacy.cli.package import package as spacy_package
from spacy.util import load_config

from ..about import __version__
from ..errors import BioclinError, first_line
from ..linking.bundle import ENCODER, KB, MEANINGS, STATE
from ..outputs import Output
from ..vocab import check_components, make_requirement
from .card import LINKER, Provenance, find_linkers, make_meta, render_card
from .heads import list_kinds

CARD = "MODEL_CARD.md"
PREFIX = "bioclin_"
TEXTS = ("description", "author", "email", "url", "license")  # of meta.json: one line each


def build_wheel(
    pipeline: Path,
    out: Path,
    *,
    name: str,
    version: str,
    provenance: Provenance,
    metrics: Sequence[dict[str, Any]] = (),
    note: str = "",
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
    metrics (Sequence[dict]): What `bioclin evaluate` wrote, for each corpus.
    note (str): Markdown for the model card.
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
    stored = read_meta(meta_path)
    check_links(pipeline)
    check_config(pipeline / "config.cfg")
    linkers = find_linkers(pipeline)
    meta = make_meta(
        stored,
        name=name,
        version=version,
        requirement=make_requirement(__version__),
        provenance=provenance,
        metrics=metrics,
        linkers=linkers,
        kinds=list_kinds(load_config(pipeline / "config.cfg", interpolate=True)),
    )
    package = f"{meta['lang']}_{name}"
    target = out / f"{package}-{version}-py3-none-any.whl"
    output = Output(target, inputs=[pipeline], overwrite=overwrite)
    card = render_card(meta, pipeline, linkers, note)
    with output.make() as made:
        folder = made.parent / "package"
        folder.mkdir()
        source = _lay_out(pipeline, folder, meta, card)
        _remove_paths(source / f"{meta['lang']}_{meta['name']}" / source.name)
        try:
            builder = ProjectBuilder(source, runner=quiet_subprocess_runner)
            wheel = Path(builder.build("wheel", folder))
        except BuildException as error:
            raise BioclinError(
                f"setuptools could not build the wheel ({error}); check that setuptools and wheel "
                "are installed in this environment"
            ) from error
        wheel.rename(made)
    return target


def read_meta(path: Path) -> dict[str, Any]:
    """Read meta.json, and leave out what would decide more than a description.

    Its language becomes part of paths, its texts are lines of the wheel's metadata, and pip would
    install what `setup_requires` names.

    RAISES (BioclinError): The file is not the meta.json of a pipeline.
    """
    try:
        meta = srsly.read_json(path)
    except (OSError, ValueError, RecursionError) as error:
        raise BioclinError(f"{path}: cannot be read as JSON ({type(error).__name__})") from None
    if not isinstance(meta, dict) or not re.fullmatch("[a-z]{2,3}", str(meta.get("lang"))):
        raise BioclinError(f"{path}: not the meta.json of a pipeline: lang is not a language")
    lines = {key: " ".join(str(meta[key]).split()) for key in TEXTS if meta.get(key) is not None}
    return {**meta, **lines, "setup_requires": []}


def check_config(path: Path) -> None:
    """Check that the components in config.cfg have names that are no paths.

    RAISES (BioclinError): One has not, or the file cannot be read.
    """
    try:
        config = load_config(path)
        names = {*config["nlp"]["pipeline"], *config.get("components", {})}
    except Exception as error:  # files of other people can raise any error
        raise BioclinError(f"{path}: cannot be read ({first_line(error)})") from None
    check_components(sorted(names))


def check_links(pipeline: Path) -> None:
    """Check that nothing outside of a pipeline's folder would get into its package.

    RAISES (BioclinError): A symbolic link leads out of the folder, or is broken.
    """
    inside = pipeline.resolve()
    for path in sorted(pipeline.rglob("*")):
        target = path.resolve()
        if path.is_symlink() and not (target.is_relative_to(inside) and target.exists()):
            raise BioclinError(
                f"{path}: a link to something outside of the pipeline, which would be packaged; "
                "put a copy in its place"
            )


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


def _remove_paths(data: Path) -> None:
    """Remove the paths of linker parts that the package contains, since they name local folders."""
    config = load_config(data / "config.cfg")
    for name, component in config["components"].items():
        state = data / name / STATE
        if component.get("factory") != LINKER or not state.is_file():
            continue
        described = srsly.read_json(state)
        carried = set(described["carried"])
        if KB in carried:
            # As in config.cfg: where they differ, the user gave another folder when loading.
            described["kb_setting"] = None
        if MEANINGS in carried:
            carried.add(ENCODER)  # config.cfg has both or none; linker.json keeps a hub name
        component.update(dict.fromkeys(carried))
        srsly.write_json(state, described)
    config.to_disk(data / "config.cfg")
