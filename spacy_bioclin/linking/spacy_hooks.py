"""Deprecated: these functions are in `linking.entity_linker.hooks`."""

from warnings import warn

from .entity_linker.hooks import make_get_candidates, make_get_candidates_batch, make_knowledge_base

__all__ = ["make_get_candidates", "make_get_candidates_batch", "make_knowledge_base"]

warn(
    "spacy_bioclin.linking.spacy_hooks goes in 0.3: import from linking.entity_linker.hooks",
    DeprecationWarning,
    stacklevel=2,
)
