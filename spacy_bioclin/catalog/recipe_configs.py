"""What of a config a recipe changes: its heads, its encoders, and the batches of its tasks."""

from collections.abc import Iterator, Mapping
from typing import Any

from thinc.api import Config

LISTENER = "spacy-transformers.TransformerListener.v1"
OWN_ENCODER = "spacy-bioclin.Tok2VecEncoder.v1"
OWN_PARTS = 100  # tokens in a training part without a shared encoder, as in relations-markers.cfg
# Settings of the section of a listener that an encoder in its place keeps.
LISTENER_SETTINGS = ("pooling", "grad_factor")
CLEANER = "bioclin_cleaner"  # frees the vectors of a shared encoder
SPANS = "spans"  # the input of a head for relations that reads a shared encoder
# Settings of a head for relations that belong to its input.
INPUT_SETTINGS = ("input", "model.context", "model.feature_width", "model.hidden_width")

Section = dict[str, Any]


def list_factories(config: Config) -> dict[str, str]:
    """List the components of a config: name -> factory; "" for one that is sourced."""
    return {name: one.get("factory", "") for name, one in config["components"].items()}


def find_sections(section: Section, architecture: str, path: str) -> Iterator[tuple[str, Section]]:
    """Find the sections with an architecture, at any depth.

    section (dict): Where to look.
    architecture (str): The value of "@architectures".
    path (str): Path of the section in the config.
    YIELDS (tuple[str, dict]): Path and section.
    """
    if section.get("@architectures") == architecture:
        yield path, section
    for key, value in section.items():
        if isinstance(value, dict):
            yield from find_sections(value, architecture, f"{path}.{key}")


def find_listeners(component: Section) -> Iterator[Section]:
    """Find where a component reads the shared encoder."""
    for _, section in find_sections(component, LISTENER, ""):
        yield section


def list_encoders(config: Config) -> list[str]:
    """List the paths of the encoders of a config: shared ones, and those inside of a head."""
    shared = [
        f"components.{name}.model"
        for name, factory in list_factories(config).items()
        if factory == "transformer"
    ]
    own = [path for path, _ in find_sections(config["components"], OWN_ENCODER, "components")]
    return [*shared, *own]


def fit_relations(config: Config, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Make room for the `input` of a head for relations.

    A head that reads texts of its own ("markers", "masked") needs an encoder of its own. If it is
    the only head that reads the shared encoder, this becomes its own, in place. With several heads
    on one encoder, it goes on reading what they read.

    config (Config): Not interpolated.
    name (str): Name of the head.
    settings (Mapping[str, Any]): Path in the component -> value.
    RETURNS (dict[str, Any]): The settings that the head can have.
    """
    component = config["components"][name]
    if settings.get("input", SPANS) == SPANS or not list(find_listeners(component)):
        return dict(settings)
    factories = list_factories(config)
    readers = [key for key, one in config["components"].items() if list(find_listeners(one))]
    shared = [key for key, factory in factories.items() if factory == "transformer"]
    if readers != [name] or len(shared) != 1:
        return {path: value for path, value in settings.items() if path not in INPUT_SETTINGS}
    move_encoder(config, shared[0], name)
    return dict(settings)


def move_encoder(config: Config, shared: str, name: str) -> None:
    """Move the shared encoder of a config into the one head that reads it, in place.

    config (Config): Not interpolated.
    shared (str): Name of the component with the encoder; it is removed.
    name (str): Name of the head.
    """
    components, factories = config["components"], list_factories(config)
    model = components[name]["model"]
    listener = model["tok2vec"]
    kept = {key: listener[key] for key in LISTENER_SETTINGS if key in listener}
    encoder = {key: value for key, value in components[shared]["model"].items() if key[0] != "@"}
    model["tok2vec"] = {"@architectures": OWN_ENCODER, **encoder, **kept}
    gone = {shared, *(key for key, factory in factories.items() if factory == CLEANER)}
    for key in gone:
        del components[key]
    for section, key in (("nlp", "pipeline"), ("training", "annotating_components")):
        names = config[section].get(key)
        if isinstance(names, list):
            config[section][key] = [one for one in names if one not in gone]


def fit_parts(config: Config, parts: Any) -> dict[str, Any]:
    """Choose how training cuts notes, where a recipe wants parts of the length of a window.

    Without a shared encoder there are no windows to cut by: parts have a number of tokens. Texts
    and pairs that a config leaves whole stay whole, for their classes are those of the whole.

    config (Config): Not interpolated.
    parts (Any): What the recipe sets.
    RETURNS (dict[str, Any]): Path in the config -> value.
    """
    path, present = "corpora.train.max_tokens", config["corpora"]["train"].get("max_tokens")
    factories = set(list_factories(config).values())
    if parts == "auto" and "transformer" not in factories:
        return {path: OWN_PARTS} if present == "auto" else {}
    if parts == "auto" and present == 0 and "bioclin_ner" not in factories:
        return {}
    return {path: parts}


def fit_batches(
    config: Config, batcher: Section, sizes: Mapping[str, int], tasks: Mapping[str, Any]
) -> dict[str, Any]:
    """Choose the batches of a config, by the heads that learn from them.

    config (Config): Not interpolated.
    batcher (dict): Section of the batcher.
    sizes (Mapping[str, int]): Factory of a head -> its size of batches, if not the batcher's.
    tasks (Mapping[str, Any]): Settings of `spacy-bioclin.batch_by_task.v1`, for several tasks.
    RETURNS (dict[str, Any]): Path in the config -> value.
    """
    path, factories = "training.batcher", list_factories(config)

    def resize(heads: list[str] | None) -> Section:
        """Make a batcher for what some heads learn from; None for all. The smallest size fits."""
        known = [sizes[f] for name, f in factories.items() if f in sizes and _is_in(name, heads)]
        others = [f for name, f in factories.items() if _is_head(f) and _is_in(name, heads)]
        wanted = [*known, *(batcher["size"] for f in others if f not in sizes)]
        return {**batcher, "size": min(wanted)} if known else batcher

    if "batcher" not in config["training"]["batcher"]:
        return {path: resize(None)}
    corpora = config["corpora"]["train"].get("tasks", {})
    own = {task: resize(corpus.get("heads")) for task, corpus in corpora.items()}
    changed = {task: section for task, section in own.items() if section != batcher}
    return {
        f"{path}.batcher": batcher,
        **({f"{path}.batchers": changed} if changed else {}),
        **{f"{path}.{key}": value for key, value in tasks.items()},
    }


def _is_in(name: str, heads: list[str] | None) -> bool:
    return heads is None or name in heads


def _is_head(factory: str) -> bool:
    return factory in ("bioclin_ner", "bioclin_relations", "bioclin_pairs") or "textcat" in factory
