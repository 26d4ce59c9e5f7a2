"""The exception for mistakes of users, and the warning."""

from contextlib import ContextDecorator
from types import TracebackType


class BioclinError(ValueError):
    """Invalid input or an invalid setting.

    The message names the file and line, the component or the setting, its value (never text of a
    note), and the remedy. The command line prints it without a traceback.
    """


class BioclinWarning(UserWarning):
    """Something that a user should know of. The message never holds text of a note."""


class without_context(ContextDecorator):
    """Remove from a `BioclinError` the errors that it was raised from.

    A decoder's or validator's own error holds what it was given, which may be a note, and whoever
    logs an exception also logs its `__cause__` and `__context__`. `raise … from None` hides them
    from a traceback, but keeps them.
    """

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Forget where the error came from."""
        if isinstance(error, BioclinError):
            error.__cause__ = error.__context__ = None


def first_line(error: BaseException) -> str:
    """Get the first line of an error of another library, or its type if it has no message."""
    return (str(error).splitlines() or [type(error).__name__])[0][:300]
