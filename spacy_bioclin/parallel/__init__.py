"""Run the same work on many parts in one process or several, and show how far it has come."""

from .children import ChildProcess, WorkerDied, answer, end_with_parent
from .pool import Workers, map_in_order, map_parts
from .progress import show_progress

__all__ = [
    "ChildProcess",
    "WorkerDied",
    "Workers",
    "answer",
    "end_with_parent",
    "map_in_order",
    "map_parts",
    "show_progress",
]
