"""What workers on other machines check before they begin."""

import gc
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from ...errors import BioclinError
from ...notices import hide_texts
from ..parts import Part
from ..work import Done

Start = Callable[[], Callable[[Part], Done]]


@dataclass(frozen=True)
class CheckedStart:
    """Start the work in a worker that has the pipeline and the libraries of the command.

    start (Callable): Loads the pipeline; gives the function that makes a part.
    pipeline (str): Folder or package name of the pipeline.
    sha256 (str): Hash of its files.
    versions (dict[str, str]): Library -> version.
    """

    start: Start
    pipeline: str
    sha256: str
    versions: dict[str, str]

    def __call__(self) -> Callable[[Part], Done]:
        """Check, and start.

        RAISES (BioclinError): The worker has another pipeline or other versions: its output would
            not have the same bytes.
        """
        from importlib.metadata import PackageNotFoundError, version

        from ...files import hash_files
        from ...machine import find_versions
        from ...vocab import find_folder

        hide_texts()
        found = find_versions()
        for name in set(self.versions) - set(found):
            with suppress(PackageNotFoundError):
                found[name] = version(name)
        if differ := sorted(n for n in self.versions if found.get(n) != self.versions[n]):
            raise BioclinError(
                f"a worker has other versions than this machine of {', '.join(differ)}; install "
                "the same on all nodes"
            )
        if hash_files(find_folder(self.pipeline)) != self.sha256:
            raise BioclinError(
                f"a worker has another pipeline {self.pipeline!r} than this machine; install the "
                "same on all nodes"
            )
        make_part = self.start()
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)  # there is a worker for each core
        gc.collect()
        gc.freeze()  # as in processes of this machine
        return make_part
