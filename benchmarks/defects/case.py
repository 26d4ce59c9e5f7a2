"""What a case of the defects is: an action of a user in one tree, and what must hold after it."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness import rules_only, thread_environment

TIMEOUT = 600


class Seen(NamedTuple):
    """What a case saw in one tree.

    holds (bool): Whether the tree does what its users expect.
    value (Any): What was seen, as short JSON: a count, a rate, a line of output. No paths.
    """

    holds: bool
    value: Any


class Done(NamedTuple):
    """A command that has ended.

    code (int): Exit code; 124 if it did not end in time.
    out (str): Standard output.
    err (str): Standard error.
    """

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """Both streams as one text on one line, as the terminal's borders allow."""
        return " ".join((self.out + self.err).replace("│", " ").split())

    @property
    def crashed(self) -> bool:
        """Whether a traceback was printed, or the command hung."""
        return "Traceback (most recent call last)" in self.text or self.code == 124


class Tree:
    """A checkout with an environment in .venv, and a folder for one case.

    path (Path): Root of the checkout.
    folder (Path): Empty folder in which commands run.
    """

    def __init__(self, path: Path, folder: Path) -> None:
        self.path, self.folder = path.resolve(), folder

    def python(
        self, *arguments: object, stdin: str = "", timeout: float = TIMEOUT, **env: str
    ) -> Done:
        """Run the tree's Python in the case's folder.

        arguments (object): Command line, such as `"-c", code`.
        stdin (str): Standard input.
        timeout (float): Seconds after which the command is ended.
        env (str): More environment variables.
        RETURNS (Done): Exit code and output.
        """
        environment = {**thread_environment(), "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1"}
        environment |= {"COLUMNS": "200", "PYTHONPATH": str(self.path), **env}
        try:
            done = subprocess.run(
                [str(self.path / ".venv/bin/python"), "-W", "ignore", *map(str, arguments)],
                cwd=self.folder,
                env=os.environ | environment,
                input=stdin,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Done(124, "", f"ended after {timeout:g} s")
        return Done(done.returncode, done.stdout, done.stderr)

    def bioclin(self, *arguments: object, **options: Any) -> Done:
        """Run `bioclin` of this tree, see `python`; `deid` without a pipeline has rules alone."""
        if arguments[0] == "deid" and not {"--pipeline", "--help"} & set(arguments):
            arguments = (*arguments, *rules_only(self.path))
        return self.python("-m", "spacy_bioclin", *arguments, **options)

    def spacy(self, *arguments: object, **options: Any) -> Done:
        """Run `spacy` of this tree, see `python`."""
        return self.python("-m", "spacy", *arguments, **options)

    def write(self, name: str, text: str | bytes) -> Path:
        """Write a file into the case's folder.

        RETURNS (Path): Its path.
        """
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        return path


class Case(NamedTuple):
    """A defect as its users meet it.

    item (int): Number of the item in the list of defects.
    name (str): Name of the function.
    says (str): What must hold, one sentence.
    see (Callable): Does it in a tree.
    """

    item: int
    name: str
    says: str
    see: Callable[[Tree], Seen]


CASES: list[Case] = []


def case(item: int, says: str) -> Callable[[Callable[[Tree], Seen]], Callable[[Tree], Seen]]:
    """Register a case.

    item (int): Number of the item in the list of defects.
    says (str): What must hold, one sentence.
    RETURNS (Callable): Decorator of a function that does it in a tree.
    """

    def add(see: Callable[[Tree], Seen]) -> Callable[[Tree], Seen]:
        CASES.append(Case(item, see.__name__, says, see))
        return see

    return add
