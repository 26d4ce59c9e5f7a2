"""`python -m spacy_bioclin` is `bioclin`."""

from .cli import app

if __name__ == "__main__":
    app()
