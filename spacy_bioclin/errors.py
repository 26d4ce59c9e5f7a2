"""The exception for mistakes of users."""


class BioclinError(ValueError):
    """Invalid input or an invalid setting.

    The message names the file and line, the component or the setting, its value (never text of a
    note), and the remedy. The command line prints it without a traceback.
    """


def first_line(error: Exception) -> str:
    """Get the first line of an error of another library, or its type if it has no message."""
    return (str(error).splitlines() or [type(error).__name__])[0]
