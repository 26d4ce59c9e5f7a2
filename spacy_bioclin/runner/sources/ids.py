"""The id of a note, as it is written in every form of output."""

from ..columns import FILE, Columns
from ..records import Record
from ..stamps import as_text


def find_id(record: Record, id_column: str | None, columns: Columns) -> str:
    """Find the id of a note.

    id_column (str | None): Column with the id; None if the number of a record is its id.
    columns (Columns): With the id column that the user named.
    RETURNS (str): The id, or "" if the column is empty. That of a file of its own is its name
        without .txt.
    """
    if id_column is None:
        return str(record.number)
    id = as_text(record.row[id_column])
    is_name = id_column == FILE and columns.id is None
    return id.removesuffix(".txt") if is_name else id
