"""The pipeline, policy and key with which `bioclin deid` runs."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import BioclinError

if TYPE_CHECKING:
    from spacy.language import Language

    from ...deid.policy import Policy
    from ...deid.secret import SecretKey


def choose_pipeline(
    lang: str, pipeline: str | None, *, rules_only: bool, point: str | None
) -> str | None:
    """Choose the pipeline that the user named, or the installed one for the language.

    point (str | None): The operating point that the user named, which rules do not have.
    RETURNS (str | None): Folder or package name; None for rules alone.
    RAISES (BioclinError): The language is unknown, both a pipeline and rules alone are wanted, or
        nothing is and no pipeline is installed.
    """
    from ...deid.component import LANGS
    from ...deid.pipeline import find_installed

    if lang not in LANGS:
        raise BioclinError(f"--lang {lang}: want one of {', '.join(LANGS)}")
    if pipeline is not None and rules_only:
        raise BioclinError(f"--pipeline {pipeline} and --rules-only: give one of them")
    if rules_only and point is not None:
        raise BioclinError(
            f"--operating-point {point}: rules alone have no thresholds; leave out --rules-only"
        )
    if pipeline is not None or rules_only:
        return pipeline
    remedy = "give --pipeline, or give --rules-only for rules alone, which miss"
    return find_installed(lang, or_else=remedy)


class Setup(NamedTuple):
    """What every process needs to make the pipeline.

    policy (Policy | None): Instead of the pipeline's.
    key (SecretKey): The secret key.
    operating_point (str | None): Instead of the pipeline's.
    """

    lang: str
    pipeline: str | None
    policy: "Policy | None"
    key: "SecretKey"
    gpu_id: int
    operating_point: str | None = None

    def check(self, for_key: str) -> None:
        """Check that there is a key if one is needed.

        for_key (str): Option beside the policy that needs a key, or "".
        RAISES (BioclinError): A key is needed and there is none.
        """
        needed = for_key or (self.policy is not None and self.policy.needs_key)
        if self.key.reveal() is None and needed:
            what = for_key or "the policy (hash, encrypt or surrogate)"
            raise BioclinError(
                f"{what} needs a secret key: make one with bioclin deid-key FILE and give "
                "--key-file FILE, or set BIOCLIN_DEID_KEY"
            )

    def load(self) -> "Language":
        """Load what is needed of the trained pipeline, or make one of rules alone.

        RAISES (BioclinError): There is no such pipeline, or it is for another language.
        """
        from ...deid import make_pipeline
        from ...deid.pipeline import find_deid, finds_phi
        from ..loading import load_pipeline

        key = self.key.reveal()
        if self.pipeline is None:
            return make_pipeline(self.lang, rules_only=True, policy=self.policy, key=key)
        nlp = load_pipeline(self.pipeline, gpu_id=self.gpu_id, for_deid=True)
        if nlp.lang != self.lang:
            raise BioclinError(
                f"--lang {self.lang}: the pipeline {self.pipeline} is for {nlp.lang}; give a "
                f"pipeline for {self.lang}, or --lang {nlp.lang} if the notes are"
            )
        if not finds_phi(nlp):
            raise BioclinError(
                f"--pipeline {self.pipeline}: no component finds PHI in doc.spans['phi'], and "
                "entities in doc.ents are not removed. Train one with configs/deid.cfg, or give "
                "--rules-only in its place"
            )
        nlp = make_pipeline(nlp, policy=self.policy, key=key)
        if self.operating_point is not None:
            find_deid(nlp).operating_point = self.operating_point
        return nlp

    def fingerprints(self) -> dict[str, str]:
        """Compute strings that change with the pipeline, policy, key and versions.

        That of the key tells one key from another, and reveals nothing else.
        """
        import spacy

        from ...deid.component import VERSIONS
        from ...deid.secret import fingerprint_key
        from ...runner.records import fingerprint_files
        from ...vocab import find_folder

        folder = None if self.pipeline is None else find_folder(self.pipeline)
        paths = [] if folder is None else sorted(folder.rglob("*"))
        files = fingerprint_files(path for path in paths if path.is_file())
        return {
            "language": self.lang,
            "pipeline": files,
            "operating_point": self.operating_point or "",
            "policy": self.policy.hash if self.policy else "",
            "key": fingerprint_key(self.key.reveal()),
            "versions": json.dumps({**VERSIONS, "spacy": spacy.__version__}, sort_keys=True),
        }

    def name(self) -> tuple[str, str] | None:
        """Read the name and the version of the pipeline; None for rules alone."""
        from ..loading import find_name

        return None if self.pipeline is None else find_name(self.pipeline)


def describe_setup(found: dict[str, str], name: tuple[str, str] | None) -> dict[str, Any]:
    """Describe the pipeline in the audit by its name, version and fingerprints."""
    pipeline, version = name or (None, None)
    return {
        "language": found["language"],
        "pipeline": {"name": pipeline, "version": version, "fingerprint": found["pipeline"]},
        "operating_point": found["operating_point"] or "of the pipeline",
        "policy": found["policy"] or "of the pipeline",
        "key": found["key"][:8],
        "versions": json.loads(found["versions"]),
    }


def read_policy(path: Path | None, lang: str, pipeline: str | None) -> "Policy | None":
    """Read the policy; without a file, a pipeline keeps its own, and rules mask everything."""
    from ...deid.policy import load_policy, make_policy

    if path is not None:
        return load_policy(path, lang=lang)
    return make_policy(None, lang=lang, source="--policy") if pipeline is None else None
