"""A package with a component that ends its process, as a user's own package would bring it."""

import sys
from pathlib import Path

MODULE = "bioclin_test_deadly"
CODE = '''
import os
import signal
from pathlib import Path

from spacy.language import Language


@Language.component("test_deadly_note")
def end_on_deadly(doc):
    """End the process at "mortal"; at "una vez" only the first time; raise an error at "veneno"."""
    if "mortal" in doc.text:
        os._exit(9)
    once = Path(__file__).with_name("once")
    if "una vez" in doc.text and not once.exists():
        once.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if "veneno" in doc.text:
        raise ValueError(doc.text)
    return doc
'''
ENTRY_POINTS = f"[spacy_factories]\ntest_deadly_note = {MODULE}:end_on_deadly\n"


def install(folder: Path) -> None:
    """Make the package where Python looks for packages in a folder of PYTHONPATH."""
    (folder / f"{MODULE}.py").write_text(CODE)
    info = folder / f"{MODULE}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {MODULE}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    sys.path.insert(0, str(folder))
    __import__(MODULE)
