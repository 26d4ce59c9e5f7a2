"""Interruptions of a command: Ctrl-C, SIGTERM, a terminal that closes."""

from .message import note_output, say, start_command, tell
from .watch import (
    CTRL_C,
    TEMPORARY,
    Interrupted,
    caught,
    deferred,
    end_if_caught,
    exit_code,
    handled,
    hidden_from_children,
    watched,
)

__all__ = [
    "CTRL_C",
    "TEMPORARY",
    "Interrupted",
    "caught",
    "deferred",
    "end_if_caught",
    "exit_code",
    "handled",
    "hidden_from_children",
    "note_output",
    "say",
    "start_command",
    "tell",
    "watched",
]
