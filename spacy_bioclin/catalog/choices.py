"""Which settings suit an encoder: what "auto" means in a config."""

from pathlib import Path
from typing import NamedTuple

from .encoders import find_encoder, load_encoders, match_encoder, read_json, recognize_encoder

WINDOW = 256


class Choice(NamedTuple):
    """Settings that suit an encoder.

    learn_rate (float): Peak of the learning rate.
    warmup (float): Share of the updates before the peak.
    window (int): Pieces per window, special pieces included, where the encoder can read as many.
    reason (str): What they were chosen by.
    """

    learn_rate: float
    warmup: float
    window: int
    reason: str


class Size(NamedTuple):
    """What suits encoders of a size whose own best settings are not known.

    name (str): Name of the size.
    max_width (float): Largest width of such encoders.
    learn_rate (float), warmup (float): See `Choice`.
    """

    name: str
    max_width: float
    learn_rate: float
    warmup: float


SIZES = (
    # Our sweeps of a width of 384 (docs/sweeps.md): 2e-4 and 3e-4 were best.
    Size("small", 512, 2e-4, 0.05),
    # 5e-5 was best in 18 of the 24 rows of Table 2 of Carrino et al. (2022); the warm-up is that of
    # Devlin et al. (2019).
    Size("base-size", 1023, 5e-5, 0.1),
    # Lewis et al. (2020), section 5.2
    Size("large", float("inf"), 1e-5, 0.1),
)
# Names of the width and the number of layers in config.json.
WIDTHS, LAYERS = ("hidden_size", "dim", "d_model"), ("num_hidden_layers", "n_layers")


def choose_settings(name: str | None) -> Choice:
    """Choose rate, warm-up and window for an encoder, by the catalogue or by its size.

    name (str | None): Folder or hub name. None counts as an encoder of unknown size, and so does
        the reference `${paths.encoder}`, which spaCy passes itself outside of training runs.
    """
    folder = Path(name or "")
    entries = load_encoders()
    known = match_encoder(folder.name, entries) if name else None
    if name and folder.is_dir():
        known = recognize_encoder(folder)
    if known:
        _, entry = find_encoder(known)
        size = _find_size(entry.width)
        rate = entry.learn_rates[0] if entry.learn_rates else size.learn_rate
        reason = f"{known} in the catalogue"
        if not entry.learn_rates:
            reason += f", a {size.name} encoder"
        return Choice(rate, size.warmup, entry.window or WINDOW, reason)
    config = read_json(folder / "config.json")
    width = next((config[key] for key in WIDTHS if key in config), None)
    layers = next((config[key] for key in LAYERS if key in config), None)
    if not isinstance(width, int):
        size, reason = SIZES[1], "an encoder of unknown size, as for base-size ones"
    else:
        size = _find_size(width)
        reason = f"a {size.name} encoder: {layers} layers of width {width}"
    return Choice(size.learn_rate, size.warmup, WINDOW, reason)


def _find_size(width: int) -> Size:
    return next(size for size in SIZES if width <= size.max_width)
