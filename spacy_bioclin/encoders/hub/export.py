"""Write the encoder of a pipeline as files of the transformers library."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...catalog.encoders import load_encoders, match_encoder, read_json
from ..strategy.linear import copy_merged

if TYPE_CHECKING:
    from ..encoder import EncoderModel


def export_encoder(model: "EncoderModel", folder: Path) -> None:
    """Write weights, config.json and tokenizer, which `transformers` and `--paths.encoder` read.

    What LoRA learned is added to the weights. If training began with an encoder of the catalogue,
    config.json has its name, so that the settings that suit it are found.

    model (EncoderModel): Encoder with weights. It is not changed.
    folder (Path): A folder, which is empty.
    """
    transformer: Any = copy_merged(model.transformer)
    transformer.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    name = match_encoder(Path(transformer.config.name_or_path).name, load_encoders())
    if name:
        path = folder / "config.json"
        config = {**read_json(path), "_name_or_path": name}
        path.write_text(f"{json.dumps(config, indent=2, sort_keys=True)}\n", encoding="utf-8")
