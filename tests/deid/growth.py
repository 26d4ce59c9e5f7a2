"""Tell linear from quadratic growth by a ratio of processor times that a busy machine keeps."""

import time
from collections.abc import Callable


def is_linear(work: Callable[[str], object], piece: str, size: int) -> bool:
    """Whether eight times as much text takes about eight times the work; quadratic takes 64 times.

    A try is wrong only if one of its two times is three times too long or too short, and it takes
    three such tries in a row to call linear work quadratic.

    size (int): Characters of the longer text, an eighth of it is that of the shorter one.
    """

    def measure(n_chars: int) -> float:
        text = piece * max(1, n_chars // len(piece))
        began = time.process_time()
        work(text)
        return time.process_time() - began

    measure(len(piece))  # what is made once
    return any(measure(size) < 24 * max(measure(size // 8), 1e-3) for _ in range(3))
