"""How often gold mentions are linked to the right concept, and mentions that our NER finds.

    python -m benchmarks.linking.accuracy full --start sm --ner sm   # align, then test: hours
    python -m benchmarks.linking.accuracy align --start sm           # self-alignment alone
    python -m benchmarks.linking.accuracy dev  [--encoder FOLDER]
    python -m benchmarks.linking.accuracy test [--encoder FOLDER] [--ner sm]

"full" aligns the encoder that --start names (X of assets/encoders/bioclin-X, or a folder) on the
synonyms of all terminologies, embeds the names of each with it, trains the rankers and links the
test split. What is finished is kept in .work/benchmarks/linking_accuracy and not done again; the
alignment is resumed.

Corpora, terminologies and gold rules: linking/data.py. For dev the rankers learn from train, for
test from train and dev, whose mentions BioSyn too adds to its dictionary. Concepts of these
mentions that the terminology lacks are added to it, as a hospital would.

NER pipelines for the end-to-end figures are those of benchmarks/accuracy/ner.py with seed 0, where
they are: of trials with several settings, the best on dev. For test, mentions are also those of the
same training with dev, and of its seeds that benchmarks/accuracy/seeds.py joined.
"""

import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import spacy

from benchmarks import harness
from benchmarks.accuracy.ner import find_pipeline, trials_folder
from benchmarks.corpora import encoder_folder
from benchmarks.harness import (
    RESULTS,
    data_dir,
    keep,
    make_parser,
    read_json,
    run_python,
    write_result,
)
from benchmarks.linking.data import (
    CORPORA,
    TERMINOLOGIES,
    GoldMention,
    Split,
    alternative_ids,
    load_split,
    named_ids,
    to_linked,
)
from spacy_bioclin.encoders.names import NameEncoder
from spacy_bioclin.evaluation.linking import (
    LinkedMention,
    covered,
    end_to_end,
    score_linking,
    split_seen,
)
from spacy_bioclin.evaluation.official import ScoredDoc, cantemist_coding, cantemist_norm
from spacy_bioclin.linking.candidates import CandidateGenerator
from spacy_bioclin.linking.component import DEFAULT_CONFIG
from spacy_bioclin.linking.dense.embed import embed_names
from spacy_bioclin.linking.dense.index import DenseIndex
from spacy_bioclin.linking.kb.build import build_kb
from spacy_bioclin.linking.kb.concepts import Alias, Concept, SkipReport
from spacy_bioclin.linking.kb.knowledge_base import KnowledgeBase
from spacy_bioclin.linking.linker import Linker, Mention
from spacy_bioclin.linking.ranking import Ranker
from spacy_bioclin.linking.readers import read_concepts
from spacy_bioclin.linking.train.docs import find_unknown_concepts, pair_parts, train_linker
from spacy_bioclin.linking.train.ranker import RankerSettings, TrainMention
from spacy_bioclin.tokenization.defined_abbreviations import (
    expand_abbreviations,
    find_abbreviations,
)

WORK = harness.WORK / "linking_accuracy"
# Task of benchmarks/accuracy/ner.py for each corpus, and the label of its mentions.
NER = {
    "ncbi-disease": ("ncbi-disease", None),
    "bc5cdr-disease": ("bc5cdr", "Disease"),
    "bc5cdr-chemical": ("bc5cdr", "Chemical"),
    "cantemist": ("cantemist", None),
}
# Of the self-alignment; a core does 0.6 updates a second.
ALIGN = ["--steps", "2600", "--batch-pairs", "128", "--learn-rate", "2e-4"]
# More terminologies for it, with what is written before their ids.
MORE = ("hpo/hp-2017-04-13.obo.xz", "hpo/hp-es.babelon.tsv", "doid/HumanDO-2015-11-11.obo.xz")
MORE += ("doid/doid-es-translated.tsv",)
N_CANDIDATES = DEFAULT_CONFIG["component"]["n_candidates"]


def open_kb(terminology: str) -> KnowledgeBase:
    """Build a knowledge base, or open the one that was built before."""
    path = WORK / "kb" / terminology
    if not path.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        build_kb(TERMINOLOGIES[terminology](), path, meta={"name": terminology})
    return KnowledgeBase.open(path)


def add_seen_concepts(corpus: str, split: str, train: Split, kb: KnowledgeBase) -> KnowledgeBase:
    """Add the concepts of training mentions that a terminology lacks, as a hospital would.

    RETURNS (KnowledgeBase): Another knowledge base; the same one if it lacks none.
    """
    info = CORPORA[corpus]
    mentions = Texts(train).train(train.mentions, make_linker(kb, info.lang))
    found = find_unknown_concepts(mentions, kb, info.lang)
    path = WORK / "kb" / f"{info.terminology}-{corpus}-{split}"
    if found and not path.is_dir():
        build_kb([*TERMINOLOGIES[info.terminology](), *found], path, meta={"name": path.name})
    return KnowledgeBase.open(path) if found else kb


def make_linker(kb: KnowledgeBase, lang: str, meanings: DenseIndex | None = None) -> Linker:
    """Make an untrained linker."""
    generator = CandidateGenerator(kb, n_candidates=N_CANDIDATES, lang=lang, meanings=meanings)
    return Linker(generator, Ranker.untrained(), lang=lang, types={}, n_shown=10, threshold=0.0)


def open_vectors(kb: KnowledgeBase, encoder: Path | None) -> DenseIndex | None:
    """Embed the names of a knowledge base, or open the vectors that were made before.

    encoder (Path | None): Folder of `bioclin align-encoder`; None for no vectors.
    """
    if encoder is None or kb.path is None:
        return None
    started = time.process_time()
    path = WORK / "vectors" / encoder.parent.name / kb.path.name
    path.parent.mkdir(parents=True, exist_ok=True)
    names = NameEncoder(str(encoder))
    found = DenseIndex.open(path, kb, names) if path.is_dir() else embed_names(kb, names, path)
    print(kb.path.name, "vectors", f"{time.process_time() - started:.0f} s", flush=True)
    return found


def all_concepts() -> Iterator[Concept]:
    """What the encoder is aligned on: all names, concepts of different sources kept apart."""
    for terminology in ("diseases", "mesh", "icd-o"):
        for concept in TERMINOLOGIES[terminology]():
            yield concept._replace(id=f"{terminology}:{concept.id}", alternative_ids=(), parents=())
    for name in MORE:
        for concept in read_concepts(data_dir() / name, SkipReport()):
            aliases = tuple(Alias(*alias) for alias in concept.aliases)
            yield concept._replace(aliases=aliases, alternative_ids=(), parents=())


def align(start: str) -> Path:
    """Align an encoder on the names of all terminologies, or finish that.

    start (str): X of assets/encoders/bioclin-X, or a folder.
    RETURNS (Path): Folder of the aligned encoder.
    """
    kb = WORK / "kb" / "all"
    if not kb.is_dir():
        kb.parent.mkdir(parents=True, exist_ok=True)
        build_kb(all_concepts(), kb, meta={"name": "all"})
    folder = Path(start) if Path(start).is_dir() else encoder_folder(start, "", WORK)
    out = WORK / f"aligned-{folder.name}"
    if not (out / "encoder").is_dir():
        run_python(
            *("-m", "spacy_bioclin", "align-encoder", kb, folder, "-o", out),
            *(["--resume"] if out.is_dir() else []),
            *ALIGN,
        )
    return out / "encoder"


class Texts:
    """Mentions of a split in the form in which a linker looks them up."""

    def __init__(self, split: Split) -> None:
        self.definitions = {}
        for id, text in split.texts.items():
            found = self.definitions.setdefault(id, {})
            for short, long in find_abbreviations(text):
                found.setdefault(text[slice(*short)], text[slice(*long)])
        self.note = {id: i for i, id in enumerate(split.texts)}

    def expand(self, doc: str, text: str) -> str:
        return expand_abbreviations(text, self.definitions[doc])

    def train(self, mentions: Sequence[GoldMention], linker: Linker) -> Iterator[TrainMention]:
        """Make training mentions as `gather_mentions` makes them from Docs."""
        texts = [self.expand(m.doc, m.text) for m in mentions]
        for mention, text, split in zip(mentions, texts, linker.parts(texts), strict=True):
            stated = mention.parts if len(mention.parts) == len(mention.ids) else ()
            note = self.note[mention.doc]
            yield from pair_parts(text, stated or split, mention.ids, note, mention.text)


def link(linker: Linker, split: Split) -> list[LinkedMention]:
    texts = Texts(split)
    mentions = [
        Mention(texts.expand(m.doc, m.text), note=texts.note[m.doc]) for m in split.mentions
    ]
    found = linker.rankings(mentions)
    return [
        to_linked(mention, *rankings, nil=nil)
        for mention, (rankings, nil) in zip(split.mentions, found, strict=True)
    ]


def figures(linked: list[LinkedMention], train: Split, ids: set[str]) -> dict[str, Any]:
    seen_ids = {id for mention in train.mentions for id in mention.ids}
    parts = split_seen(linked, seen_ids, [mention.text for mention in train.mentions])
    ranked = [mention._replace(nil=False) for mention in linked]
    return {
        "all": score_linking(linked).as_dict(),
        "without_nil": {"acc": score_linking(ranked).accuracy},
        "in_terminology": score_linking(covered(ranked, ids)).as_dict(),
        "strict": {"acc": score_linking(ranked, rule="strict").accuracy},
        **{name: score_linking(some).as_dict() for name, some in parts.items()},
    }


@cache
def find_entities(pipeline: Path, texts: tuple[str, ...]) -> list[list[tuple[int, int, str, str]]]:
    """Find entities with a pipeline: start, end, text and label."""
    nlp = spacy.load(pipeline)
    return [
        [(ent.start_char, ent.end_char, ent.text, ent.label_) for ent in doc.ents]
        for doc in nlp.pipe(texts)
    ]


def run_ner(corpus: str, pipeline: Path, split: Split, linker: Linker) -> dict[str, Any]:
    """Score mentions that our NER finds."""
    _, label = NER[corpus]
    entities = find_entities(pipeline, tuple(split.texts.values()))
    texts = Texts(split)
    gold: dict[str, list[GoldMention]] = {id: [] for id in split.texts}
    for mention in split.mentions:
        gold[mention.doc].append(mention)
    pairs, scored = [], []
    codes: tuple[dict[str, set[str]], dict[str, set[str]]] = ({}, {})
    for id, ents in zip(split.texts, entities, strict=True):
        spans = [ent for ent in ents if label is None or ent[3] == label]
        links = linker([Mention(texts.expand(id, text)) for _, _, text, _ in spans])
        found = [
            (start, end, one)
            for (start, end, *_), link in zip(spans, links, strict=True)
            for one in link.kb_id.split("|")
            if one
        ]
        wanted = [(m.start, m.end, one) for m in gold[id] for one in m.ids]
        pairs.append((wanted, found))
        scored.append(ScoredDoc(split.texts[id], wanted, found))
        for side, spans_and_ids in zip(codes, (wanted, found), strict=True):
            side[id] = {one for *_, one in spans_and_ids}
    result = end_to_end(pairs).as_dict()
    if corpus == "cantemist":
        result["official_norm"] = cantemist_norm(scored).prf()
        valid = {concept.id for concept in TERMINOLOGIES["icd-o"]()}
        result["official_coding_map"] = cantemist_coding(*codes, valid)
    return result


def find_pipelines(encoder: str, corpus: str, split: str) -> dict[str, Path]:
    """Find the pipelines for the end-to-end figures: what they learned from -> folder."""
    if not (pipeline := find_pipeline(encoder, NER[corpus][0])):
        return {}
    found = {"train": pipeline}
    trial = pipeline.parent.parent
    choice = read_json(trial / "result.json")["choice"]
    same = f"{encoder}-{NER[corpus][0]}-bioclin-0-{choice}-*"
    for folder in sorted(trials_folder(with_dev=True).glob(same)) if split == "test" else ():
        joined = folder.name.endswith("-joined")
        path = folder if joined else folder / "training" / "model-last"
        if path.is_dir() and "-after-" not in folder.name:
            found["train_dev_joined" if joined else "train_dev"] = path
    return found


def name_trial(pipeline: Path) -> str:
    """Name the trial that a pipeline is of."""
    return pipeline.parent.parent.name if pipeline.name == "model-last" else pipeline.name


def run(
    corpus: str, split: str, encoder: Path | None, pipelines: dict[str, Path]
) -> dict[str, Any]:
    """Train rankers without and with vectors of an encoder, and score the links.

    pipelines (dict[str, Path]): Find mentions for the end-to-end figures, see `find_pipelines`.
    """
    info = CORPORA[corpus]
    concepts = list(TERMINOLOGIES[info.terminology]())
    alternatives, ids = alternative_ids(concepts), named_ids(concepts)
    train, dev = (load_split(corpus, name, alternatives) for name in ("train", "dev"))
    if split == "test":
        train = Split({**train.texts, **dev.texts}, [*train.mentions, *dev.mentions])
    test = load_split(corpus, split, alternatives)
    terminology = open_kb(info.terminology)
    kb = add_seen_concepts(corpus, split, train, terminology)
    result: dict[str, Any] = {
        "concepts": len(kb),
        "concepts_of_training_mentions_alone": len(kb) - len(terminology),
        "names": kb.meta["n_names"],
        "encoder": encoder.parent.name if encoder else None,
        "ner": {name: name_trial(path) for name, path in pipelines.items()},
    }
    for name in ("lexical", "meaning") if encoder else ("lexical",):
        used = encoder if name == "meaning" else None
        # Names of training mentions are not for this one.
        linker = make_linker(terminology, info.lang, open_vectors(terminology, used))
        untrained = figures(link(linker, test), train, ids)
        linker = make_linker(kb, info.lang, open_vectors(kb, used))
        mentions = list(Texts(train).train(train.mentions, linker))
        _, report = train_linker(linker, mentions, RankerSettings())
        trained = figures(link(linker, test), train, ids)
        result[name] = {
            "untrained": untrained,
            "trained": trained,
            "training": report,
            "end_to_end": {
                name: run_ner(corpus, path, test, linker) for name, path in pipelines.items()
            },
        }
        for how in ("untrained", "trained"):
            figure = result[name][how]
            print(
                f"{corpus} {split} {name} {how}: acc {figure['all']['acc']:.4f} (ranking alone "
                f"{figure['without_nil']['acc']:.4f}, in terminology "
                f"{figure['in_terminology']['acc']:.4f}) r64 {figure['all']['r64']:.4f}",
                flush=True,
            )
    return result


def kept(
    corpus: str, split: str, encoder: Path | None, pipelines: dict[str, Path]
) -> dict[str, Any]:
    """Run a corpus, or read what was measured before with the same encoder and pipelines."""
    parts = [split, corpus, encoder.parent.name if encoder else "lexical"]
    parts += [name_trial(pipelines["train"]), str(len(pipelines))] if pipelines else []
    path = WORK / "results" / f"{'-'.join(parts)}.json"
    return keep(path, lambda: run(corpus, split, encoder, pipelines))


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("what", choices=["full", "align", "dev", "test"])
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA), choices=list(CORPORA))
    parser.add_argument("--start", default="compact", help="encoder to align, name or folder")
    parser.add_argument("--encoder", type=Path, help="encoder folder of bioclin align-encoder")
    parser.add_argument("--ner", default="compact", help="encoder of the NER pipelines")
    args = parser.parse_args()
    encoder = align(args.start) if args.what in ("full", "align") else args.encoder
    if args.what == "align":
        return
    split = "dev" if args.what == "dev" else "test"
    path = RESULTS / f"linking_accuracy_{split}.json"
    old = read_json(path)["corpora"] if path.exists() else {}
    for corpus in args.corpora:
        pipelines = find_pipelines(args.ner, corpus, split)
        old[corpus] = kept(corpus, split, encoder, pipelines)
        write_result(path.stem, {"corpora": {name: old[name] for name in CORPORA if name in old}})


if __name__ == "__main__":
    main()
