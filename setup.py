"""Copies configs/ into the package when it is built. Everything else is in setup.cfg."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithConfigs(build_py):
    """Build the package with the configs of the repository as spacy_bioclin/configs."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:  # the package is in the checkout, beside configs/
            return
        target = Path(self.build_lib, "spacy_bioclin", "configs")
        self.mkpath(str(target))
        for config in sorted(Path("configs").glob("*.cfg")):
            self.copy_file(str(config), str(target / config.name))


setup(cmdclass={"build_py": BuildWithConfigs})
