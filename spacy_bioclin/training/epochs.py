"""How many updates some passes over the training corpus are."""

from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.util import registry, resolve_dot_names

from ..errors import BioclinError


def count_updates(nlp: Language) -> int:
    """RETURNS (int): Updates of one pass over the training corpus, by reading it once. Batches that
    are cut by length may differ a little from pass to pass."""
    config = nlp.config.interpolate()
    # The schedule of the learning rate may need the number that is to be found.
    known = {**config["training"], "optimizer": {"@optimizers": "Adam.v1"}}
    settings = registry.resolve(known, schema=ConfigSchemaTraining)
    [corpus] = resolve_dot_names(config, [settings["train_corpus"]])
    return sum(1 for _ in settings["batcher"](list(corpus(nlp))))


def set_updates(nlp: Language) -> int | None:
    """Where the config says `max_epochs` but no `max_steps`, set the latter, so that schedules know
    where training ends; and evaluate after every epoch, or once at the end if that comes first,
    where `eval_frequency` is 0.

    RETURNS (int | None): Updates of an epoch; None if nothing had to be set.
    RAISES (BioclinError): The config says neither, or the corpus is empty.
    """
    training = nlp.config["training"]
    if training["max_epochs"] == -1 or (training["max_steps"] and training["eval_frequency"]):
        return None
    if not training["max_steps"] and not training["max_epochs"]:
        raise BioclinError(
            "[training] max_steps = 0 and max_epochs = 0: training would never end; set one of them"
        )
    per_epoch = count_updates(nlp)
    if not per_epoch:
        raise BioclinError("the training corpus is empty: check --paths.train")
    if not training["max_steps"]:
        training["max_steps"] = per_epoch * training["max_epochs"]
        training["max_epochs"] = 0  # else training ends one update before the last evaluation
    every = min(per_epoch, training["max_steps"])
    training["eval_frequency"] = training["eval_frequency"] or every
    return per_epoch
