"""How each config differs from ner.cfg, key by key. Any other difference is a mistake."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from spacy.util import load_config

CONFIGS = Path(__file__).parents[1] / "configs"
ABSENT = "absent"


def flatten(section: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path and value of every key; an empty section is a value."""
    for key, value in section.items():
        if isinstance(value, dict) and value:
            yield from flatten(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


# The tagger reads the encoder beside a small convolution over prefix, suffix and shape of words.
LEXICAL = {
    "components.ner.model.tok2vec.@architectures": ABSENT,
    "components.ner.model.tok2vec.grad_factor": ABSENT,
    "components.ner.model.tok2vec.upstream": ABSENT,
    "components.ner.model.tok2vec.pooling.@layers": ABSENT,
    "components.ner.model.tok2vec.@layers": "spacy-bioclin.concatenate.v1",
    "components.ner.model.tok2vec.*.encoder.@architectures": (
        "spacy-transformers.TransformerListener.v1"
    ),
    "components.ner.model.tok2vec.*.encoder.grad_factor": 1.0,
    "components.ner.model.tok2vec.*.encoder.upstream": "*",
    "components.ner.model.tok2vec.*.encoder.pooling.@layers": "reduce_mean.v1",
    "components.ner.model.tok2vec.*.form.@architectures": "spacy.Tok2Vec.v2",
    "components.ner.model.tok2vec.*.form.embed.@architectures": "spacy.MultiHashEmbed.v2",
    "components.ner.model.tok2vec.*.form.embed.width": 96,
    "components.ner.model.tok2vec.*.form.embed.attrs": ["NORM", "PREFIX", "SUFFIX", "SHAPE"],
    "components.ner.model.tok2vec.*.form.embed.rows": [5000, 1000, 2500, 2500],
    "components.ner.model.tok2vec.*.form.embed.include_static_vectors": False,
    "components.ner.model.tok2vec.*.form.encode.@architectures": "spacy.MaxoutWindowEncoder.v2",
    "components.ner.model.tok2vec.*.form.encode.width": 96,
    "components.ner.model.tok2vec.*.form.encode.window_size": 1,
    "components.ner.model.tok2vec.*.form.encode.maxout_pieces": 2,
    "components.ner.model.tok2vec.*.form.encode.depth": 2,
}
DEID = {
    **LEXICAL,
    "nlp.pipeline": ["sentences", "transformer", "ner", "rules", "deid", "cleaner"],
    "components.ner.spans_key": "phi",
    "components.ner.word_smoothing": 0.0,
    "components.rules.factory": "bioclin_phi_rules",
    "components.rules.spans_key": "phi",
    "components.rules.scheme": None,
    "components.rules.threshold": 0.5,
    "components.rules.langs": None,
    "components.rules.scorer.@scorers": "spacy-bioclin.span_scorer.v1",
    "components.deid.factory": "bioclin_deid",
    "components.deid.spans_key": "phi",
    "components.deid.policy": None,
    "components.deid.operating_point": None,
    "components.deid.allow_missing": False,
    "components.deid.scorer.@scorers": "spacy-bioclin.span_scorer.v1",
    "training.max_steps": 2800,
    "training.eval_frequency": 400,
    "training.score_weights.ents_f": None,
    "training.score_weights.ents_p": None,
    "training.score_weights.ents_r": None,
    "training.score_weights.spans_phi_f": 1.0,
    "training.score_weights.spans_phi_p": 0.0,
    "training.score_weights.spans_phi_r": 0.0,
    "training.score_weights.spans_phi_per_type": None,
}
# A second head, and a short training: the demo's corpus is small.
DEMO = {
    "nlp.pipeline": ["sentences", "transformer", "ner", "phi", "cleaner"],
    "components.phi.factory": "bioclin_ner",
    "components.phi.spans_key": "phi",
    "components.phi.nested": False,
    "components.phi.scheme": "BILUO",
    "components.phi.threshold": 0.0,
    "components.phi.doubtful_from": None,
    "components.phi.word_smoothing": 0.0,
    "components.phi.teacher_weight": 0.5,
    "components.phi.rdrop": 0.0,
    "components.phi.scorer.@scorers": "spacy-bioclin.span_scorer.v1",
    "components.phi.model.@architectures": "spacy-bioclin.CrfTagger.v1",
    "components.phi.model.dropout": 0.1,
    "components.phi.model.learn_rate_scale": 10.0,
    "components.phi.model.tok2vec.@architectures": "spacy-transformers.TransformerListener.v1",
    "components.phi.model.tok2vec.grad_factor": 1.0,
    "components.phi.model.tok2vec.upstream": "*",
    "components.phi.model.tok2vec.pooling.@layers": "reduce_mean.v1",
    "training.max_steps": 250,
    "training.eval_frequency": 125,
    "training.batcher.size": 600,
    "training.score_weights.ents_f": 0.5,
    "training.score_weights.spans_phi_f": 0.5,
    "training.score_weights.spans_phi_p": 0.0,
    "training.score_weights.spans_phi_r": 0.0,
    "training.score_weights.spans_phi_per_type": None,
}
TASKS = ("distemist", "symptemist", "medprocner", "pharmaconer", "cantemist")
# Five corpora teach one nested head; doc.ents is filled from what it finds.
SEVERAL = {
    "paths.train": ABSENT,
    "paths.dev": ABSENT,
    "paths.corpora": "corpus",
    "nlp.pipeline": ["sentences", "transformer", "ner", "ents", "cleaner"],
    "components.ner.spans_key": "clinical",
    "components.ner.nested": True,
    "components.ents.factory": "bioclin_ents",
    "components.ents.spans_keys": ["clinical"],
    "components.ents.prefer": [],
    "components.ents.parts": [],
    **{
        f"corpora.{split}.{key}": value
        for split in ("train", "dev")
        for key, value in (
            ("@readers", "spacy-bioclin.TaskCorpora.v1"),
            ("path", ABSENT),
            ("use_gold_ents", ABSENT),
            ("balance", "none"),
            ("held_out", []),
            ("allow_overlap", False),
        )
    },
    **{
        f"corpora.{split}.tasks.{task}.{key}": value
        for split in ("train", "dev")
        for task in TASKS
        for key, value in (
            ("path", f"${{paths.corpora}}/{task}/{split}.spacy"),
            ("heads", ["ner"]),
            ("weight", 1.0),
            ("metric", None),
        )
    },
    "training.max_steps": 10000,
    "training.eval_frequency": 1000,
    "training.batcher.@batchers": "spacy-bioclin.batch_by_task.v1",
    "training.batcher.draw": "round_robin",
    "training.batcher.temperature": 2.0,
    "training.batcher.step": "batch",
    "training.batcher.turns": {},
    "training.batcher.batchers": {},
    "training.batcher.batcher.@batchers": "spacy.batch_by_words.v1",
    "training.score_weights.tasks_mean": 1.0,
    "training.score_weights.tasks_min": 0.0,
    "training.score_weights.ents_f": None,
    "training.score_weights.ents_p": None,
    "training.score_weights.ents_r": None,
}
# The settings of the batcher of ner.cfg are those of the batcher inside.
for _key, _value in (
    ("size", 1024),
    ("tolerance", 0.2),
    ("discard_oversize", False),
    ("get_length", None),
):
    SEVERAL[f"training.batcher.{_key}"] = ABSENT
    SEVERAL[f"training.batcher.batcher.{_key}"] = _value
# A second head, for PHI; scripts/flagship.py adds the tasks of a language.
NER = dict(flatten(load_config(CONFIGS / "ner.cfg", interpolate=False)))
FLAGSHIP = {
    **{key: value for key, value in SEVERAL.items() if ".tasks." not in key},
    **LEXICAL,
    **{
        key: value
        for key, value in DEMO.items()
        if re.match(r"components\.phi\.(?!.*tok2vec)", key)
    },
    **{
        key.replace("components.ner.", "components.phi."): value
        for key, value in LEXICAL.items()
        if value != ABSENT
    },
    # A tagger of assertions, which is the tagger of ner.cfg with other labels.
    **{
        key.replace("components.ner.", "components.assertions."): value
        for key, value in NER.items()
        if key.startswith("components.ner.")
    },
    "components.assertions.spans_key": "assertions",
    "components.assertions.nested": True,
    "components.assertions.threshold": 0.4,
    "components.assertions.word_smoothing": 0.0,
    "nlp.pipeline": ["sentences", "transformer", "ner", "phi", "assertions", "ents", "cleaner"],
    "components.transformer.model.lower_capitals": True,
    "components.ents.prefer": ["TEST"],
    "components.ents.parts": ["ANATOMY", "SPECIES", "TUMOR_MORPHOLOGY", "GENE", "PROTEIN"],
    "components.ner.threshold": 0.3,
    "corpora.train.tasks": {},
    "corpora.dev.tasks": {},
    "training.max_steps": 3600,
    "training.eval_frequency": 900,
}
del FLAGSHIP["paths.corpora"]
# spaCy's classifier of whole texts takes the place of the tagger.
TEXTCAT = {
    "nlp.pipeline": ["sentences", "transformer", "textcat", "cleaner"],
    **{
        f"components.ner.{key}": ABSENT
        for key in (
            "factory",
            "spans_key",
            "nested",
            "scheme",
            "threshold",
            "doubtful_from",
            "word_smoothing",
            "teacher_weight",
            "rdrop",
            "scorer.@scorers",
            "model.@architectures",
            "model.dropout",
            "model.learn_rate_scale",
            "model.tok2vec.@architectures",
            "model.tok2vec.grad_factor",
            "model.tok2vec.upstream",
            "model.tok2vec.pooling.@layers",
        )
    },
    "components.textcat.factory": "textcat_multilabel",
    "components.textcat.threshold": 0.5,
    "components.textcat.scorer.@scorers": "spacy.textcat_multilabel_scorer.v2",
    "components.textcat.model.@architectures": "spacy.TextCatReduce.v1",
    "components.textcat.model.exclusive_classes": False,
    "components.textcat.model.use_reduce_first": False,
    "components.textcat.model.use_reduce_last": False,
    "components.textcat.model.use_reduce_max": False,
    "components.textcat.model.use_reduce_mean": True,
    "components.textcat.model.nO": None,
    "components.textcat.model.tok2vec.@architectures": "spacy-transformers.TransformerListener.v1",
    "components.textcat.model.tok2vec.grad_factor": 1.0,
    "components.textcat.model.tok2vec.upstream": "*",
    "components.textcat.model.tok2vec.pooling.@layers": "reduce_mean.v1",
    "corpora.train.max_tokens": 0,
    "training.score_weights.ents_f": ABSENT,
    "training.score_weights.ents_p": ABSENT,
    "training.score_weights.ents_r": ABSENT,
    "training.score_weights.ents_per_type": ABSENT,
    "training.score_weights.cats_score": None,
    "training.score_weights.cats_score_desc": None,
    "training.score_weights.cats_micro_f": 1.0,
    "training.score_weights.cats_micro_p": 0.0,
    "training.score_weights.cats_micro_r": 0.0,
    "training.score_weights.cats_macro_f": 0.0,
    "training.score_weights.cats_macro_p": None,
    "training.score_weights.cats_macro_r": None,
    "training.score_weights.cats_macro_auc": 0.0,
    "training.score_weights.cats_f_per_type": None,
    "training.score_weights.cats_auc_per_type": None,
}
# The classifier of pairs of texts takes the place of the tagger.
PAIRS = {
    "nlp.pipeline": ["sentences", "transformer", "pairs", "cleaner"],
    **{
        key: value
        for key, value in TEXTCAT.items()
        if key.startswith(("components.ner.", "corpora.")) or "score_weights.ents" in key
    },
    "components.pairs.factory": "bioclin_pairs",
    "components.pairs.objective": "classification",
    "components.pairs.require_pairs": True,
    "components.pairs.scorer.@scorers": "spacy-bioclin.pair_scorer.v1",
    "components.pairs.model.@architectures": "spacy-bioclin.PairClassifier.v1",
    "components.pairs.model.dropout": 0.1,
    "components.pairs.model.learn_rate_scale": 10.0,
    "components.pairs.model.hidden": True,
    "components.pairs.model.compare_texts": True,
    "components.pairs.model.tok2vec.@architectures": "spacy-transformers.TransformerListener.v1",
    "components.pairs.model.tok2vec.grad_factor": 1.0,
    "components.pairs.model.tok2vec.upstream": "*",
    "components.pairs.model.tok2vec.pooling.@layers": "reduce_mean.v1",
    "training.score_weights.pairs_acc": 1.0,
    "training.score_weights.pairs_micro_f": 0.0,
    "training.score_weights.pairs_macro_f": 0.0,
    "training.score_weights.pairs_per_type": None,
    "training.score_weights.pairs_pearson": 0.0,
    "training.score_weights.pairs_spearman": 0.0,
}
# The classifier of pairs of entities takes the place of the tagger; the entities are given.
RELATIONS = {
    "nlp.pipeline": ["sentences", "transformer", "relations", "cleaner"],
    **{
        key: value
        for key, value in TEXTCAT.items()
        if key.startswith("components.ner.") or "score_weights.ents" in key
    },
    "components.relations.factory": "bioclin_relations",
    "components.relations.spans_key": "ents",
    "components.relations.relations_key": "relations",
    "components.relations.level": "mention",
    "components.relations.input": "spans",
    "components.relations.scope": "sentence",
    "components.relations.window": 50,
    "components.relations.types": {},
    "components.relations.symmetric": [],
    "components.relations.thresholds": {},
    "components.relations.scorer.@scorers": "spacy-bioclin.relation_scorer.v1",
    "components.relations.scorer.relations_key": "${components.relations.relations_key}",
    "components.relations.model.@architectures": "spacy-bioclin.RelationClassifier.v1",
    "components.relations.model.context": True,
    "components.relations.model.feature_width": 32,
    "components.relations.model.hidden_width": 256,
    "components.relations.model.dropout": 0.1,
    "components.relations.model.learn_rate_scale": 10.0,
    "components.relations.model.tok2vec.@architectures": (
        "spacy-transformers.TransformerListener.v1"
    ),
    "components.relations.model.tok2vec.grad_factor": 1.0,
    "components.relations.model.tok2vec.upstream": "*",
    "components.relations.model.tok2vec.pooling.@layers": "reduce_mean.v1",
    "corpora.train.use_gold_ents": True,
    "corpora.dev.use_gold_ents": True,
    "training.score_weights.rels_f": 1.0,
    "training.score_weights.rels_p": 0.0,
    "training.score_weights.rels_r": 0.0,
    "training.score_weights.rels_macro_f": 0.0,
    "training.score_weights.rels_per_type": None,
}
ENCODER_SETTINGS = (
    "name",
    "window",
    "stride",
    "precision",
    "max_batch_pieces",
    "transformer_config.attention_probs_dropout_prob",
    "lower_capitals",
    "strategy.freeze_embeddings",
    "strategy.freeze_layers",
    "strategy.layer_decay",
    "strategy.reinit_layers",
    "strategy.no_decay",
    "strategy.bias_correction",
    "strategy.unfreeze_steps",
    "strategy.mixout",
    "strategy.pretrained_decay",
    "strategy.adversarial",
    "strategy.lora_rank",
    "strategy.lora_alpha",
    "strategy.lora_targets",
)
# The encoder belongs to the component, and reads texts of single candidates.
MARKERS = {
    **{k: v for k, v in RELATIONS.items() if k != "components.relations.model.tok2vec.upstream"},
    "nlp.pipeline": ["sentences", "relations"],
    "components.transformer.factory": ABSENT,
    "components.transformer.max_batch_items": ABSENT,
    "components.transformer.set_extra_annotations.@annotation_setters": ABSENT,
    "components.transformer.model.@architectures": ABSENT,
    "components.cleaner.factory": ABSENT,
    **{f"components.transformer.model.{key}": ABSENT for key in ENCODER_SETTINGS},
    **{
        f"components.relations.model.tok2vec.{key}": NER[f"components.transformer.model.{key}"]
        for key in ENCODER_SETTINGS
    },
    "components.relations.model.tok2vec.@architectures": "spacy-bioclin.Tok2VecEncoder.v1",
    "components.relations.input": "markers",
    "components.relations.model.context": False,
    "components.relations.model.feature_width": 0,
    "components.relations.model.hidden_width": 0,
    "corpora.train.max_tokens": 100,
    "training.batcher.size": 512,
}
DIFFERENCES = {
    "ner.cfg": {},
    "ner-lexical.cfg": LEXICAL,
    "deid.cfg": DEID,
    "demo.cfg": DEMO,
    "several.cfg": SEVERAL,
    "textcat.cfg": TEXTCAT,
    "pairs.cfg": PAIRS,
    "relations.cfg": RELATIONS,
    "relations-markers.cfg": MARKERS,
    "flagship/config.cfg": FLAGSHIP,
}


def read_config(name: str) -> dict[str, Any]:
    return dict(flatten(load_config(CONFIGS / name, interpolate=False)))


def test_every_config_is_compared() -> None:
    assert {
        path.relative_to(CONFIGS).as_posix() for path in CONFIGS.rglob("*.cfg")
    } == DIFFERENCES.keys()


@pytest.mark.parametrize("name", DIFFERENCES)
def test_differences_from_ner_cfg(name: str) -> None:
    ner, other = read_config("ner.cfg"), read_config(name)
    found = {
        key: other.get(key, ABSENT)
        for key in {**ner, **other}
        if ner.get(key, ABSENT) != other.get(key, ABSENT)
    }
    assert found == DIFFERENCES[name]
