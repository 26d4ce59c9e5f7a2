"""A service around Presidio's analyzer and anonymizer, for benchmarks/serving/load.py.

    python -m benchmarks.serving.peer --tagger FOLDER

FOLDER has a Hugging Face tagger on the encoder of a pipeline, see benchmarks/deid/speed.py. As in
Presidio's own images a request is one note, and the engines read one note at a time. It answers
POST /deidentify as `bioclin serve` does.
"""

import socket
from pathlib import Path
from threading import Lock
from typing import Any

from benchmarks.harness import make_parser


def make_app(tagger: Path) -> Any:
    """Make the service, as FastAPI's and Presidio's documentation show it."""
    from fastapi import FastAPI
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import NoOpNlpEngine
    from presidio_analyzer.predefined_recognizers.ner import HuggingFaceNerRecognizer
    from presidio_anonymizer import AnonymizerEngine
    from pydantic import BaseModel

    class Note(BaseModel):
        """A note."""

        text: str

    engine = NoOpNlpEngine(models=[{"lang_code": "es", "model_name": "no_op"}])
    engine.load()
    registry = RecognizerRegistry(supported_languages=["es"])
    registry.load_predefined_recognizers(languages=["es"], nlp_engine=engine)
    recognizer = HuggingFaceNerRecognizer(model_name=str(tagger), supported_language="es")
    registry.add_recognizer(recognizer)
    analyzer = AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=["es"])
    anonymizer = AnonymizerEngine()
    analyzer.analyze("Paciente", language="es")
    app, lock = FastAPI(), Lock()

    @app.post("/deidentify")
    def deidentify(note: Note) -> dict[str, Any]:
        with lock:  # the tokenizers library fails when two threads use a tokenizer
            found = analyzer.analyze(note.text, language="es")
        safe = anonymizer.anonymize(note.text, found)
        return {"text": safe.text, "spans": [each.to_dict() for each in safe.items]}

    return app


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--tagger", type=Path, required=True)
    arguments = parser.parse_args()
    import uvicorn

    app = make_app(arguments.tagger)
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listening:
        print(f"presidio 0 at http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
        server.run(sockets=[listening])


if __name__ == "__main__":
    main()
