"""De-identification: find protected health information (PHI) and write a safe note."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .pipeline import make_pipeline

__all__ = ["make_pipeline"]


def __getattr__(name: str) -> Any:
    """Import `make_pipeline` when it is first used: spaCy takes a second to load."""
    if name != "make_pipeline":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .pipeline import make_pipeline

    return make_pipeline
