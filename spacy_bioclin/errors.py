"""The one exception for a user's mistake."""


class BioclinError(ValueError):
    """Bad input or a bad setting. The message names the file and line, the component or the
    setting, its value (never text of a note), and the remedy. The command line prints it without a
    traceback."""
