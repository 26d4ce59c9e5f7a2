"""Version of the package, read by setup.cfg."""

__version__ = "0.3.0"
