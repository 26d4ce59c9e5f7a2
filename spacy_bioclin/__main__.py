"""`python -m spacy_bioclin` is `bioclin`."""

import os
import signal


def main() -> None:
    """Run the command line. Ctrl-C ends it without a traceback also while it is imported."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    from .interrupts import end_if_caught, watched

    try:
        with watched():
            from .cli import app

            app()
    except KeyboardInterrupt:  # the signal came between two lines of `watched`
        end_if_caught()
        raise


def _end(number: int, frame: object) -> None:
    os.write(2, b"bioclin: interrupted (Ctrl-C): nothing was written; run the same command again\n")
    os._exit(128 + number)


if __name__ == "__main__":
    main()
