"""Placeholder, replaced in the next commits."""


def main() -> None:
    raise SystemExit("not written yet")
