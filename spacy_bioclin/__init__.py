"""Clinical text in Spanish and English: spaCy components, training, packaging."""

from .about import __version__

__all__ = ["__version__"]
