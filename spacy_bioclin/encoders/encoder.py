"""`spacy-bioclin.Encoder.v1`: the model inside spacy-transformers' `transformer` component."""

import copy
import itertools
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
from spacy.attrs import IDX, LENGTH, SENT_START
from spacy.tokens import Doc
from spacy_transformers.data_classes import FullTransformerBatch, TransformerData, WordpieceBatch
from spacy_transformers.layers.trfs2arrays import trfs2arrays
from thinc.api import Model, chain, get_array_module, torch2xp, xp2torch
from thinc.types import Floats2d, Floats3d, Ragged
from transformers.modeling_outputs import BaseModelOutput

from ..annotations.pairs import get_boundary
from ..catalog.choices import choose_settings
from ..errors import BioclinError
from ..tokenization import capitals
from ..types import FIND_WINDOWS, IntArray
from . import loading
from .network import WindowedEncoder
from .own_encoder import own_encoder, own_encoder_cfg
from .pairs.pieces import NO_CUTS, find_cuts, lay_out_doc, split_docs
from .pairs.windows import PlacedPair
from .pieces import (
    Alignment,
    Pieces,
    align_tokens,
    ragged_indices,
    split_into_pieces,
    token_boundaries,
)
from .shim import EncoderShim
from .strategy.apply import check_strategy
from .strategy.levels import find_levels, reinit
from .strategy.settings import read_strategy
from .windows import Windows, concat_windows, cut_windows

# Of a pair of texts, which is read in windows of another kind.
NO_WINDOWS = Windows(*NO_CUTS, *NO_CUTS)


class EncoderBatch(FullTransformerBatch):
    """The vectors of a batch of Docs, in the form of spacy-transformers.

    `model_output.last_hidden_state` is (1, n_pieces, width): all pieces of all Docs, each once,
    without padding and special pieces. `spans` has, per Doc, the tokens of each window's core.
    """

    def unsplit_by_doc(self, arrays: list[list[Floats3d]]) -> FullTransformerBatch:
        """Join the gradients of the Docs, each [(1, n_pieces, width)]."""
        gradients = [array[0][0] for array in arrays]
        joined = xp2torch(get_array_module(gradients[0]).concatenate(gradients))
        return FullTransformerBatch(
            spans=self.spans,
            wordpieces=self.wordpieces,
            model_output=BaseModelOutput(last_hidden_state=joined[None]),
            align=self.align,
        )


class EncoderModel(Model[list[Doc], FullTransformerBatch]):
    """A thinc Model that is stored as the bytes of its shim."""

    @property
    def shim(self) -> EncoderShim:
        """The bridge to torch."""
        return self.shims[0]

    @property
    def tokenizer(self) -> Any:
        """The fast tokenizer of the encoder."""
        return self.attrs["tokenizer"]

    @property
    def transformer(self) -> Any:
        """The encoder of the `transformers` library."""
        return self.shim.module.transformer

    def prepare(self) -> None:
        """Make a model ready that was loaded as a part of another one."""
        if self.attrs["tokenizer"] is None and self.shim.cfg:
            _set_up(self)

    def to_bytes(self) -> bytes:
        """Write weights and tokenizer."""
        return self.shim.to_bytes()

    def from_bytes(self, bytes_data: bytes) -> "EncoderModel":
        """Load what `to_bytes` wrote.

        RAISES (BioclinError): The bytes are damaged or of another version.
        """
        try:
            self.shim.from_bytes(bytes_data)
            _set_up(self)
        except BioclinError as error:
            raise BioclinError(f"spacy-bioclin.Encoder.v1, file 'model': {error}") from None
        return self

    def _copy(self, seen: dict[int, Any] | None = None) -> "EncoderModel":
        """Copy the model, as thinc's `copy` does, which would make it a plain Model."""
        return EncoderModel(
            self.name,
            forward,
            init=init,
            shims=[self.shim.copy()],
            dims=dict(self._dims),
            attrs=copy.copy(self.attrs),
        )


def build_encoder(
    name: str | None,
    window: int | Literal["auto"] | None = None,
    stride: int | None = None,
    precision: str = "auto",
    max_batch_pieces: int | None = None,
    transformer_config: dict[str, Any] | None = None,
    strategy: dict[str, Any] | None = None,
    lower_capitals: bool = False,
) -> Model[list[Doc], FullTransformerBatch]:
    """Build the model for the `transformer` factory.

    Weights are read by `nlp.initialize()`, or come with the pipeline; a trained pipeline does not
    use `name` any more.

    name (str | None): Folder or hub name of a `transformers` encoder with a fast tokenizer; None to
        check or fill a config that does not name one yet.
    window (int | str | None): Pieces per window, special pieces included; "auto" for what suits
        the encoder, see `choose_settings`; None for the most that it can read.
    stride (int | None): Pieces from one window's start to the next; the rest is the overlap, which
        is encoded twice. None for the size of the window: no overlap.
    precision (str): "auto", "fp32", "bf16", "fp16" or "int8"; see `choose_precision`.
    max_batch_pieces (int | None): Largest batch that the encoder sees at once, padding included;
        None for a default that suits the device (see `WindowedEncoder`). Halved if memory runs out.
    transformer_config (dict | None): Settings that replace those of the encoder's config.json.
    strategy (dict | None): Which weights learn, and how fast: the keys of `Strategy`. None: all at
        the optimizer's rate.
    lower_capitals (bool): Read what is all in capitals in lower case (`tokenization.capitals`).
    RAISES (BioclinError): The strategy has unknown keys or wrong values.
    """
    rebuild = partial(_rebuild, max_batch_pieces=max_batch_pieces)
    return EncoderModel(
        "transformer",
        forward,
        init=init,
        shims=[EncoderShim(rebuild, precision=precision, strategy=read_strategy(strategy))],
        dims={"nO": None},
        attrs={
            "name": name,
            "window": window,
            "stride": stride,
            "max_batch_pieces": max_batch_pieces,
            "transformer_config": dict(transformer_config or {}),
            "lower_capitals": lower_capitals,
            "tokenizer": None,
            "replace_listener": own_encoder,
            "replace_listener_cfg": own_encoder_cfg,
            FIND_WINDOWS: find_window_starts,
        },
    )


def _rebuild(
    config: dict[str, Any],
    tokenizer: dict[str, str],
    window: int | None = None,  # read by `_set_up`
    *,
    max_batch_pieces: int | None,
) -> WindowedEncoder:
    transformer = loading.build_empty(config)
    pieces = loading.unpack_tokenizer(tokenizer)
    loading.check_pieces(pieces, transformer, "the stored tokenizer")
    return WindowedEncoder(transformer, pieces, max_batch_pieces=max_batch_pieces)


def init(model: EncoderModel, X: Any = None, Y: Any = None) -> None:
    """Read the pretrained weights, unless the model has weights, and reinitialise layers if the
    strategy says so."""
    if model.attrs["tokenizer"] is not None:
        return
    if model.attrs["name"] is None:
        raise BioclinError(
            "[components.transformer.model] name is null: give the folder or hub name of an "
            "encoder (--paths.encoder FOLDER)"
        )
    tokenizer, transformer = loading.load_pretrained(
        model.attrs["name"], model.attrs["transformer_config"]
    )
    strategy = model.shim.strategy
    check_strategy(strategy, transformer)
    layers = find_levels(transformer).layers
    reinit(transformer, layers[len(layers) - strategy.reinit_layers :])
    network = WindowedEncoder(
        transformer, tokenizer, max_batch_pieces=model.attrs["max_batch_pieces"]
    )
    cfg = {
        "config": transformer.config.to_dict(),
        "tokenizer": loading.pack_tokenizer(tokenizer),
    }
    model.shim.set_module(network, cfg)
    _set_up(model)


def _set_up(model: EncoderModel) -> None:
    """Check the window against the encoder, and store what every batch needs."""
    network = model.shim.module
    tokenizer = network.tokenizer
    limit = loading.max_window(tokenizer, network.transformer)
    window = model.attrs["window"] or limit
    if window == "auto":  # once chosen, it belongs to the trained pipeline
        wanted = choose_settings(model.attrs["name"]).window
        window = model.shim.cfg.setdefault("window", min(wanted, limit))
    size = window - network.special.n
    stride = model.attrs["stride"] or window
    where = "in [components.transformer.model]"
    if window > limit:
        raise BioclinError(
            f"window = {window} {where} is more than the {limit} pieces that encoder "
            f"{model.attrs['name']} can read: set window to {limit} or less"
        )
    if size < 8 or not window // 2 < stride <= window:
        raise BioclinError(
            f"window = {window}, stride = {stride} {where}: window must leave room for 8 pieces "
            "and stride must be more than half the window and at most the window"
        )
    model.attrs["tokenizer"] = tokenizer
    model.attrs["size"], model.attrs["overlap"] = size, window - stride
    model.set_dim("nO", network.transformer.config.hidden_size, force=True)


def forward(
    model: EncoderModel, docs: list[Doc], is_train: bool
) -> tuple[FullTransformerBatch, Callable[[FullTransformerBatch], list[Doc]]]:
    """Encode Docs."""
    model.prepare()
    network = model.shim.module
    size, overlap = model.attrs["size"], model.attrs["overlap"]
    split = split_docs(model.tokenizer, docs, network, read=_find_reader(model))
    all_pieces = [pieces for pieces, _ in split]
    lengths = [len(pieces.ids) for pieces in all_pieces]
    alignments, windows, pairs = [], [], []
    for i, (doc, found) in enumerate(zip(docs, split, strict=True)):
        token_start, token_end, sentence_start = _token_offsets(doc)
        alignment = align_tokens(token_start, token_end, found.pieces)
        alignments.append(alignment)
        if found.boundary is None:
            cuts = find_cuts(alignment, sentence_start) if lengths[i] > size else NO_CUTS
            windows.append(cut_windows(lengths[i], *cuts, size=size, overlap=overlap))
        else:
            windows.append(NO_WINDOWS)
            template = network.pair_template
            pair_size = size + network.special.n - len(template.special)
            layout = lay_out_doc(
                found, alignment, sentence_start, template, size=pair_size, overlap=overlap
            )
            start = sum(lengths[:i])
            pairs.append(PlacedPair(start, start + lengths[i], layout))
    ids = np.concatenate([pieces.ids for pieces in all_pieces])
    joined = concat_windows(windows, lengths)
    inputs = (ids, joined, pairs) if pairs else (ids, joined)
    vectors, backprop = model.shim(inputs, is_train)
    batch = _to_batch(docs, all_pieces, alignments, windows, vectors)

    def backprop_encoder(d_batch: FullTransformerBatch) -> list[Doc]:
        backprop(d_batch.model_output.last_hidden_state[0])
        return docs

    return batch, backprop_encoder


def find_window_starts(
    model: EncoderModel, doc: Doc, edges: list[int], sentences: list[int]
) -> list[int]:
    """Find the tokens with which the windows of a Doc start, all but the first, without overlap.

    doc (Doc): The Doc.
    edges (list[int]): Tokens with which a window may start.
    sentences (list[int]): Those of them that start a sentence.
    RETURNS (list[int]): Indices of tokens; empty before the encoder is initialized, and for a pair
        of texts, which is read as one.
    """
    if model.attrs["tokenizer"] is None or get_boundary(doc) is not None:
        return []
    [pieces] = split_into_pieces(model.tokenizer, [_find_reader(model)(doc)])
    size = model.attrs["size"]
    if len(pieces.ids) <= size:
        return []
    token_start, token_end, _ = _token_offsets(doc)
    alignment = align_tokens(token_start, token_end, pieces)
    first, boundaries = alignment.first, token_boundaries(alignment)
    windows = cut_windows(
        len(pieces.ids),
        np.intersect1d(first[sentences], boundaries),
        np.intersect1d(first[edges], boundaries),
        size=size,
        overlap=0,
    )
    # Of the tokens that begin at a piece, the last one has it; those before it have no pieces.
    starts = np.searchsorted(first, windows.core_start[1:], side="right") - 1
    allowed = set(edges)
    return [start for start in starts.tolist() if start in allowed]


def _find_reader(model: EncoderModel) -> Callable[[Doc], str]:
    """Find what makes the text to read, which is as long as that of the Doc."""
    lower = model.attrs["lower_capitals"]
    return lambda doc: capitals.lower_capitals(doc.text, doc.lang_) if lower else doc.text


def _token_offsets(doc: Doc) -> tuple[IntArray, IntArray, np.ndarray]:
    """Find the first and last character of each token, and whether it starts a sentence; each array
    is (n_tokens,)."""
    columns = doc.to_array([IDX, LENGTH, SENT_START]).astype(np.int64).reshape(-1, 3)
    return columns[:, 0], columns[:, 0] + columns[:, 1], columns[:, 2] == 1


def _to_batch(
    docs: list[Doc],
    all_pieces: list[Pieces],
    alignments: list[Alignment],
    windows: list[Windows],
    vectors: Any,
) -> EncoderBatch:
    xp_vectors = torch2xp(vectors.detach())
    doc_data, spans, start = [], [], 0
    indices = [ragged_indices(alignment) for alignment in alignments]
    for i, (doc, pieces, alignment) in enumerate(zip(docs, all_pieces, alignments, strict=True)):
        end = start + len(pieces.ids)
        spans.append(_core_spans(doc, alignment, windows[i]))
        doc_data.append(
            TransformerData(
                wordpieces=_wordpieces(pieces),
                model_output=BaseModelOutput(last_hidden_state=xp_vectors[None, start:end]),
                align=Ragged(indices[i], alignment.length.astype(np.int32)),
            )
        )
        start = end
    shifts = np.cumsum([0] + [len(pieces.ids) for pieces in all_pieces[:-1]])
    joined = [index + shift for index, shift in zip(indices, shifts, strict=True)]
    return EncoderBatch(
        spans=spans,
        wordpieces=_wordpieces(*all_pieces),
        model_output=BaseModelOutput(last_hidden_state=vectors[None]),
        align=Ragged(
            np.concatenate(joined).astype(np.int32),
            np.concatenate([a.length for a in alignments]).astype(np.int32),
        ),
        cached_doc_data=doc_data,
    )


def _core_spans(doc: Doc, alignment: Alignment, windows: Windows) -> list[Any]:
    """Find the tokens of each window's core."""
    starts = np.searchsorted(alignment.first, windows.core_start[1:]).tolist()
    bounds = [0, *starts, len(doc)]
    return [doc[i:j] for i, j in itertools.pairwise(bounds) if i < j]


def _wordpieces(*pieces: Pieces) -> WordpieceBatch:
    """Make one row of all pieces."""
    ids = np.concatenate([p.ids for p in pieces])[None]
    return WordpieceBatch(
        strings=[[string for p in pieces for string in p.strings]],
        input_ids=ids,
        attention_mask=np.ones(ids.shape, dtype="f"),
        lengths=[ids.shape[1]],
        token_type_ids=None,
    )


def build_tok2vec_encoder(
    pooling: Model[Ragged, Floats2d],
    name: str | None,
    grad_factor: float = 1.0,
    window: int | Literal["auto"] | None = None,
    stride: int | None = None,
    precision: str = "auto",
    max_batch_pieces: int | None = None,
    transformer_config: dict[str, Any] | None = None,
    strategy: dict[str, Any] | None = None,
    lower_capitals: bool = False,
) -> Model[list[Doc], list[Floats2d]]:
    """Build an encoder for one component alone: `nlp.replace_listeners` writes it into the config.

    pooling (Model): From the vectors of a token's pieces to one vector.
    grad_factor (float): Factor on the gradients of the encoder.
    See `build_encoder` for the other arguments.
    """
    encoder = build_encoder(
        *(name, window, stride, precision, max_batch_pieces, transformer_config, strategy),
        lower_capitals,
    )
    return chain(own_encoder(encoder), trfs2arrays(pooling, grad_factor))
