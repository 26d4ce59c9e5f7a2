"""Put a pretrained encoder into assets/encoders: weights in fp16, tokenizer, model card.

    python scripts/ship_encoder.py encoders/rebuild assets/encoders/bioclin-compact

The first folder is what scripts/build_encoder.sh made.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from transformers import AutoModelForMaskedLM, AutoTokenizer

CARD = Path(__file__).with_name("encoder_card.md")
# Attribution, by the name of the file of raw text.
SOURCES = {
    "spaccc": ("SPACCC clinical cases (E3C-Corpus)", "CC BY 4.0"),
    "cantemist_train_dev": ("CANTEMIST, train and dev", "CC BY 4.0"),
    "cantemist_background": ("CANTEMIST, background set", "CC BY 4.0"),
    "meddocan_train_dev": ("MEDDOCAN, train and dev", "CC BY 4.0"),
    "nubes_samples_001-009": ("NUBes, samples 001 to 009", "CC BY-SA 3.0 ES"),
    "ehealthkd": ("eHealth-KD 2020 and 2021", "MIT"),
    "casimedicos": ("CasiMedicos exam questions (antidote), Spanish and English", "CC BY 4.0"),
    "abstracts_from_train_dev": (
        "abstracts of BC5CDR, NCBI-disease, ChemProt (train and dev), JNLPBA (train)",
        "public domain; JNLPBA: GENIA, CC BY 3.0",
    ),
    "clinical_notes_and_dialogues": ("MTS-Dialog, aci-bench, primock57", "CC BY 4.0"),
    "e3c_case_reports": ("case reports of E3C-Corpus", "CC BY, 138 CC BY-SA"),
}


def main() -> None:
    built, out = (Path(argument) for argument in sys.argv[1:])
    record = json.loads((built / "pretraining" / "pretraining.json").read_text())
    report = json.loads((built / "clean" / "report.json").read_text())
    folder = built / "pretraining" / "encoder"
    model = AutoModelForMaskedLM.from_pretrained(folder, trust_remote_code=False).half()
    model.save_pretrained(out)
    AutoTokenizer.from_pretrained(folder, trust_remote_code=False).save_pretrained(out)
    (out / "pretraining.json").write_text(json.dumps(record, indent=1) + "\n")
    (out / "README.md").write_text(make_card(model.config, record, report), encoding="utf-8")
    size = sum(path.stat().st_size for path in out.iterdir())
    print(f"{out}: {record['weights'] / 1e6:.1f} million weights, {size / 2**20:.1f} MB")


def make_card(config: Any, record: dict[str, Any], report: dict[str, Any]) -> str:
    """RETURNS (str): README.md of the encoder.
    RAISES (KeyError): For text whose licence is not known here."""
    settings, kept = record["settings"], report["kept"]
    first, last = record["perplexity"][0], record["perplexity"][-1]
    words: Counter[str] = Counter()
    for name, counts in report["files"].items():
        words[Path(name).name.removesuffix(".txt.xz")] += counts["read"]["words"]
    rows = [
        f"| {SOURCES[name][0]} | {n_words:,} | {SOURCES[name][1]} |"
        for name, n_words in words.items()
    ]
    return CARD.read_text(encoding="utf-8").format(
        layers=config.num_hidden_layers,
        width=config.hidden_size,
        heads=config.num_attention_heads,
        weights=record["weights"] / 1e6,
        vocabulary=config.vocab_size,
        positions=config.max_position_embeddings,
        held_out=sum(kept[name]["documents"] for name in kept if name.endswith("held-out")),
        mask_rate=settings["mask_rate"],
        n_pieces=settings["steps"] * settings["batch_pieces"] / 1e6,
        share_es=settings["shares"]["es"],
        first_es=first["es"],
        last_es=last["es"],
        first_en=first["en"],
        last_en=last["en"],
        sources="\n".join(rows),
        kept=sum(part["words"] for part in kept.values()),
    )


if __name__ == "__main__":
    main()
