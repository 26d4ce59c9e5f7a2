"""Convert epochs, passes over the training corpus, into updates."""

from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.util import registry, resolve_dot_names

from ..corpora.task_corpora import TaskCorpora
from ..errors import BioclinError


def count_updates(nlp: Language) -> int:
    """Count the updates of one epoch by reading the training corpus once.

    Batches that are cut by length may differ a little between epochs.
    """
    config = nlp.config.interpolate()
    # The schedule of the learning rate may need the number that is counted here.
    known = {**config["training"], "optimizer": {"@optimizers": "Adam.v1"}}
    settings = registry.resolve(known, schema=ConfigSchemaTraining)
    [corpus] = resolve_dot_names(config, [settings["train_corpus"]])
    read = corpus.read if isinstance(corpus, TaskCorpora) else corpus
    return sum(1 for _ in settings["batcher"](list(read(nlp))))


def set_updates(nlp: Language) -> int | None:
    """Set `max_steps` and `eval_frequency` in [training] where they are 0.

    `max_steps` becomes the updates of `max_epochs`, so that schedules know where training ends.
    `eval_frequency` becomes an epoch, or the whole training if that is shorter.

    RETURNS (int | None): Updates of an epoch; None if nothing had to be set.
    RAISES (BioclinError): Both `max_steps` and `max_epochs` are 0, or the corpus is empty.
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
    if not training["eval_frequency"]:
        training["eval_frequency"] = min(per_epoch, training["max_steps"])
    return per_epoch
