"""A cleaned corpus of invented sentences and a small vocabulary for it."""

from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerFast

from spacy_bioclin.pretraining.vocabulary import learn_vocabulary

SENTENCES = {
    "es": [
        "Paciente de 54 años con neumonía adquirida en la comunidad.",
        "Se inicia amoxicilina 500 mg cada 8 horas.",
        "Exploración física sin hallazgos relevantes.",
        "Fue dado de alta con tratamiento domiciliario.",
    ],
    "en": [
        "The patient was given metformin 850 mg twice a day.",
        "No acute distress was noted on examination.",
        "She was discharged home in stable condition.",
        "Chest radiograph showed a left lower lobe opacity.",
    ],
}


def write_corpus(folder: Path) -> Path:
    """Documents of one to four sentences, one a line, with a blank line after each document."""
    folder.mkdir(parents=True)
    for lang, sentences in SENTENCES.items():
        for split, n_documents in (("train", 40), ("held-out", 8)):
            with (folder / f"{lang}.{split}.txt").open("w", encoding="utf-8") as file:
                for i in range(n_documents):
                    chosen = [sentences[(i + k) % 4] for k in range(1 + i % 4)]
                    file.write("".join(f"{sentence}\n" for sentence in chosen) + "\n")
    return folder


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("cleaned") / "corpus")


@pytest.fixture(scope="session")
def vocabulary() -> PreTrainedTokenizerFast:
    texts = [sentence for sentences in SENTENCES.values() for sentence in sentences]
    return learn_vocabulary(texts * 3, size=320, kind="bpe")
