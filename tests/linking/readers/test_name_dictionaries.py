"""BioSyn's dictionaries of names."""

from pathlib import Path

from spacy_bioclin.linking.kb.concepts import Alias, Concept, SkipReport
from spacy_bioclin.linking.readers.names import read_names


def test_names(tmp_path: Path) -> None:
    path = tmp_path / "names.txt"
    path.write_text("A||pain, knee|gonalgia\n\nB|1|2||ache| \nC|no bars\n||x\nD||\n", "utf-8")
    report = SkipReport()
    assert list(read_names(path, report)) == [
        Concept("A", "pain, knee", aliases=(Alias("gonalgia"),)),
        Concept("B", "ache", alternative_ids=("1", "2")),
    ]
    assert report.places == {
        "line without ||": [f"{path}, line 4"],
        "no id": [f"{path}, line 5"],
        "no name": [f"{path}, line 6"],
    }
