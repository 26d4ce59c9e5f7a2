"""Put a pretrained encoder into assets/encoders: weights in fp16, tokenizer, model card.

    python scripts/ship_encoder.py encoders/rebuild assets/encoders/bioclin-sm

The first folder is what scripts/build_encoder.sh made. If its training has not finished, its last
checkpoint is taken, so that another machine can go on from there. The records of the trainings
before it are kept, if it went on from what is in the second folder or from `first` in the first.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from spacy_bioclin.files import hash_files
from spacy_bioclin.pretraining.blocks import prepare_blocks
from spacy_bioclin.pretraining.masked_lm import MaskedLM, open_model
from spacy_bioclin.pretraining.output_scale import scale_output
from spacy_bioclin.pretraining.record import summarize_log
from spacy_bioclin.pretraining.trainer import WHOLE

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
    "medquad_answers": ("MedQuAD, answers of the NIH to questions of patients", "CC BY 4.0"),
    "drug_labels": (
        "sections of US drug labels (TAC 2017 ADR)",
        "public domain (FDA, DailyMed); the repository with the copy states no licence",
    ),
}


def main() -> None:
    built, out = (Path(argument) for argument in sys.argv[1:])
    run = read_json(built / "pretraining" / "run.json")
    # Folder of the encoder that the training went on from -> record of how that was trained.
    starts = {
        out: out / "pretraining.json",
        built / "first" / "encoder": built / "first" / "pretraining.json",
        built / "start": None,
    }
    folders = [path for path in starts if path.is_dir() and hash_files(path) == run["start_from"]]
    if not folders:
        sys.exit(f"{built} went on from none of {', '.join(map(str, starts))}")
    model, tokenizer, record = open_training(built, run, folders[0])
    if earlier := starts[folders[0]]:
        before = read_json(earlier)
        record["earlier"] = [*before.pop("earlier", []), before]
    card = make_card(model.config, record, read_json(built / "clean" / "report.json"))
    blocks = prepare_blocks(
        built / "clean", tokenizer, built / "pretraining" / "blocks", length=run["length"]
    )
    scale_output(model, (ids for (_, split), ids in blocks.items() if split == "held-out"))
    model.half().save_pretrained(out)
    tokenizer.save_pretrained(out)
    (out / "pretraining.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    (out / "README.md").write_text(card, encoding="utf-8")
    size = sum(path.stat().st_size for path in out.iterdir())
    print(f"{out}: {record['weights'] / 1e6:.1f} million weights, {size / 2**20:.1f} MB")


def read_json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def open_training(built: Path, run: dict[str, Any], start: Path) -> tuple[Any, Any, dict[str, Any]]:
    """Open the result of a training, or its last checkpoint.

    run (dict): Its run.json.
    start (Path): The encoder that it started from.
    RETURNS (tuple): Encoder with its head, tokenizer, and record.
    """
    folder = built / "pretraining"
    if (folder / "encoder").is_dir():
        model = AutoModelForMaskedLM.from_pretrained(folder / "encoder", trust_remote_code=False)
        tokenizer = AutoTokenizer.from_pretrained(folder / "encoder", trust_remote_code=False)
        return model, tokenizer, read_json(folder / "pretraining.json")
    # The mark of a checkpoint is written last.
    checkpoints = [path.parent for path in folder.glob(f"checkpoint-*/{WHOLE}")]
    if not checkpoints:
        sys.exit(f"{folder} has neither an encoder nor a checkpoint")
    last = max(checkpoints, key=lambda path: int(path.name.rpartition("-")[2]))
    vocabulary = built / "vocabulary" if run["tokenizer"] else start
    tokenizer = AutoTokenizer.from_pretrained(vocabulary, trust_remote_code=False)
    new = tokenizer if run["tokenizer"] else None
    model = MaskedLM(open_model(str(start), new, run["layers"], run["dropout"]))
    model.load_state_dict(torch.load(last / "pytorch_model.bin", weights_only=True))
    state = read_json(last / "trainer_state.json")
    log = state["log_history"]
    curve = summarize_log(log, 0.0)
    del curve["matrix_gflops"]  # not in the log
    record = {
        "start_from": start.name,
        "weights": model.pretrained.num_parameters(),
        "vocabulary": len(tokenizer),
        "finished": False,
        "step": state["global_step"],
        "settings": run,
        "loss": [[entry["step"], round(entry["loss"], 4)] for entry in log if "loss" in entry],
        **curve,
    }
    return model.pretrained, tokenizer, record


def make_card(config: Any, record: dict[str, Any], report: dict[str, Any]) -> str:
    """RETURNS (str): README.md of the encoder.
    RAISES (KeyError): For text whose licence is not known here."""
    trainings = [*record.get("earlier", []), record]
    kept = report["kept"]
    curve = [row for each in trainings for row in each["perplexity"]]
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
        overlapping=report["dropped"]["test_overlap"]["documents"],
        steps="; then ".join(describe_training(each) for each in trainings),
        mask_rate=record["settings"]["mask_rate"],
        first_es=curve[0]["es"],
        last_es=curve[-1]["es"],
        first_en=curve[0]["en"],
        last_en=curve[-1]["en"],
        sources="\n".join(rows),
        kept=sum(part["words"] for part in kept.values()),
    )


def describe_training(record: dict[str, Any]) -> str:
    """RETURNS (str): Updates, pieces, shares and rate of one training."""
    settings = record["settings"]
    steps = record.get("step", settings["steps"])
    stopped = "" if record["finished"] else f" of {settings['steps']:,}, stopped there"
    share = settings["shares"].get("es", 0.5)
    return (
        f"{steps:,} updates{stopped} ({steps * settings['batch_pieces'] / 1e6:.1f} million pieces, "
        f"{share:.0%} of them Spanish, peak rate {settings['learn_rate']:g})"
    )


if __name__ == "__main__":
    main()
