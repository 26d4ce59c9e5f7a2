"""Settle what a config leaves to the encoder ("auto"), and say what was chosen and why."""

from collections.abc import Mapping
from typing import Any

from spacy.language import Language

from ..catalog.choices import choose_settings
from ..catalog.recipes import RATES, SCHEDULE
from ..types import FIND_WINDOWS

AUTO = "auto"
FAR = 3.0  # a rate that differs by more is worth a word


def settle_settings(nlp: Language, sources: Mapping[str, str]) -> list[str]:
    """Replace "auto" in the config of a pipeline by what was chosen for its encoder, so that the
    trained pipeline states it. Other values stay.

    nlp (Language): The initialized pipeline.
    sources (Mapping[str, str]): Path of a setting, or of a section -> who set it ("command line");
        the others were set by the config.
    RETURNS (list[str]): Learning rate, warm-up, window and training parts, with who set them; a
        line each. Empty without a `spacy-bioclin.Encoder.v1`.
    """
    name = next((name for name, pipe in nlp.components if _is_encoder(pipe)), None)
    if name is None:
        return []
    component: Any = nlp.get_pipe(name)
    model = component.model
    choice = choose_settings(model.attrs["name"])
    lines = [f"Settings for {choice.reason}:"]

    def settle(section: dict[str, Any], path: str, chosen: Any, text: str, hint: str = "") -> None:
        key = path.rpartition(".")[2]
        why = f"set by the {_find_source(sources, path)}{hint}"
        if section[key] == AUTO:
            section[key], why = chosen, "chosen for this encoder"
        lines.append(f"  {text.format(section[key])} ({why})")

    schedule = nlp.config["training"]["optimizer"]["learn_rate"]
    rate = next((key for key in RATES if isinstance(schedule, dict) and key in schedule), None)
    if rate:
        near = schedule[rate] == AUTO or 1 / FAR < schedule[rate] / choice.learn_rate < FAR
        hint = "" if near else f"; {choice.learn_rate:g} suits this encoder"
        settle(schedule, f"{SCHEDULE}.{rate}", choice.learn_rate, "learning rate {:g}", hint)
        if schedule.get("warmup_steps"):
            schedule["warmup"] = 0.0
            settle(schedule, f"{SCHEDULE}.warmup_steps", None, "warm-up over {} updates")
        elif "warmup" in schedule:
            text = "warm-up over {:.0%} of the updates"
            settle(schedule, f"{SCHEDULE}.warmup", choice.warmup, text)
    window = model.attrs["size"] + model.shim.module.special.n
    settings = nlp.get_pipe_config(name)["model"]
    if settings.get("window"):
        settle(settings, f"components.{name}.model.window", window, "windows of {} pieces")
    reader = nlp.config["corpora"].get("train", {})
    if "max_tokens" in reader:
        length = {AUTO: "training parts as long as windows", 0: "notes as a whole"}
        shown = length.get(reader["max_tokens"], "training parts of at most {} tokens")
        settle(reader, "corpora.train.max_tokens", AUTO, shown)
    return lines


def _is_encoder(pipe: Any) -> bool:
    return FIND_WINDOWS in getattr(getattr(pipe, "model", None), "attrs", {})


def _find_source(sources: Mapping[str, str], path: str) -> str:
    """Find who set a setting or a section that contains it."""
    found = [who for one, who in sources.items() if f"{path}.".startswith(f"{one}.")]
    return found[-1] if found else "config"
