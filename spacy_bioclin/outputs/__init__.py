"""Where outputs may go, and how they are written: whole or not at all, by one process at a time.

Every file and folder that the package makes is made here, or inside a folder that was made here; a
test of the code says where it is not.
"""

from .atomic import (
    OLD,
    hidden_path,
    make_private_folder,
    naming,
    open_atomic,
    open_folder,
    remove,
    replace,
    temporary_folder,
    write_atomic,
    write_new,
)
from .output import Output, grow_folder, lock_output
from .places import check_inputs, check_output, check_place

__all__ = [
    "OLD",
    "Output",
    "check_inputs",
    "check_output",
    "check_place",
    "grow_folder",
    "hidden_path",
    "lock_output",
    "make_private_folder",
    "naming",
    "open_atomic",
    "open_folder",
    "remove",
    "replace",
    "temporary_folder",
    "write_atomic",
    "write_new",
]
