"""`bioclin_deid`: merge the spans of the detectors, and write a note that is safe to share."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib.metadata import version
from typing import Any

from spacy.attrs import LENGTH, SPACY
from spacy.language import Language
from spacy.tokens import Doc

from ..dates import LEAP_YEAR, find_day_first
from ..errors import BioclinError
from ..rewrite import rewrite
from ..spans import set_spans
from ..text import fold_alnum
from .calibration import BALANCED, Calibrated
from .detect.allow_list import load_allow_list
from .detect.known_patient import find_known
from .detect.masks import find_brackets, find_masks
from .detect.repeats import NAMES, REPEAT, find_repeats, values_to_hide
from .labels import find_phi_type, label_of, map_label, phi_type_of, possible_labels
from .merge import Places, choose_labels, merge_spans
from .operators import YEAR, NoteContext, Target, apply_operator
from .policy import Policy, make_policy
from .result import DEID_KEY, get_deid
from .secret import SecretKey, patient_secret, read_key
from .spans import DOUBTFUL, NEURAL, PhiSpan, get_phi, make_span
from .surrogates.by_label import MAX_CHARS
from .surrogates.context import DateShift, SurrogateContext
from .surrogates.dates import shift_days
from .surrogates.persons import find_first_names

_WORD = re.compile(r"[^\W_]+")
LANGS = ("es", "en")
# Types with which an eponym or a drug may be confused.
NAME_LIKE = frozenset({"patient_name", "staff_name", "relative", "organization", "hospital"})
# The surrogates of a key depend on these.
VERSIONS = {name: version(name) for name in ("spacy-bioclin", "Faker", "python-stdnum")}
DEFAULT_CONFIG = {
    "spans_key": "phi",
    "policy": None,
    "operating_point": None,
    "allow_missing": False,
    "scorer": {"@scorers": "spacy-bioclin.span_scorer.v1"},
}


def install_extensions() -> None:
    """Register `doc._.patient` (known patient data, see known_patient.py) and `doc._.deid`."""
    if not Doc.has_extension("patient"):
        Doc.set_extension("patient", default=None)
    if not Doc.has_extension("deid"):
        Doc.set_extension("deid", getter=get_deid)


@Language.factory(
    "bioclin_deid",
    assigns=["doc._.deid", "doc.spans"],
    requires=["doc.spans"],
    default_config=DEFAULT_CONFIG,
)
def make_deid(
    nlp: Language,
    name: str,
    spans_key: str,
    policy: dict[str, Any] | None,
    operating_point: str | None,
    allow_missing: bool,
    scorer: Callable[..., dict[str, Any]] | None,
) -> "Deidentifier":
    """Make the component. Add it after the detectors: `bioclin_ner`, then `bioclin_phi_rules`.

    spans_key (str): Group of the detectors' spans, which the merged ones replace. Other places in
        the note with the same strings are in `doc._.deid.spans` only.
    policy (dict | None): See policy.py; null masks everything with its label.
    operating_point (str | None): Which thresholds of `bioclin calibrate` apply: "balanced" (best
        F1) or "high_recall" (the recall of --target-recall, with the less certain spans that this
        takes). Null for those that the pipeline was saved with.
    allow_missing (bool): Continue where a detector with which the pipeline was calibrated, or every
        detector, is missing. By default that is an error, since PHI would stay in the notes.
    scorer (Callable | None): See `spacy-bioclin.span_scorer.v1`.
    """
    deid = Deidentifier(
        nlp,
        name=name,
        spans_key=spans_key,
        policy=policy,
        operating_point=operating_point,
        allow_missing=allow_missing,
    )
    deid.scorer, deid.cfg = scorer, {"spans_key": spans_key}  # spaCy passes cfg to the scorer
    return deid


class Deidentifier(Calibrated):
    """Merge PHI spans, and write the safe note to `doc._.deid`. See `Calibrated`, too.

    allow_missing (bool): Whether to continue where a detector is missing, see `make_deid`.
    key (bytes | None): The secret key from which hashes, surrogates and shifted dates are derived;
        by default the environment's BIOCLIN_DEID_KEY. It is never saved, nor pickled (`SecretKey`).
    """

    scorer: Callable[..., dict[str, Any]] | None = None
    cfg: Mapping[str, Any] = {}

    def __init__(
        self,
        nlp: Language,
        *,
        name: str,
        spans_key: str,
        policy: Mapping[str, Any] | None,
        operating_point: str | None,
        allow_missing: bool,
    ) -> None:
        if nlp.lang not in LANGS:
            raise BioclinError(
                f"[components.{name}] works on {' and '.join(LANGS)}, not on lang = {nlp.lang!r}"
            )
        self.name = name
        self.lang: str = nlp.lang
        self.spans_key = spans_key
        self.allow_missing = allow_missing
        self.policy: Policy = make_policy(policy, lang=nlp.lang, source=f"[components.{name}]")
        self.key = read_key()
        self.set_up(scheme=self.policy.scheme, operating_point=operating_point)
        self._nlp = nlp
        self._tokenize = nlp.tokenizer
        self._allow_list = load_allow_list(nlp.lang)
        self._stop_words = nlp.Defaults.stop_words
        install_extensions()

    @property
    def key(self) -> bytes | None:
        """The secret key, see `SecretKey`."""
        return self._key.reveal()

    @key.setter
    def key(self, key: bytes | None) -> None:
        """Set the secret key; None for none."""
        self._key = SecretKey(key)

    def __call__(self, doc: Doc) -> Doc:
        """Merge `doc.spans[spans_key]` and write the safe note.

        RAISES (BioclinError): The policy needs a key and there is none, there is a mistake in
            `doc._.patient`, or a detector is missing.
        """
        install_extensions()  # lost when a worker process is started
        text, patient = doc.text, doc._.patient or {}
        self.check_detectors()
        if self.spans_key not in doc.spans and set(patient) <= {"id"} and text.strip():
            self._refuse_unread()
        keeps = partial(self._keeps, text)
        found, n_allowed = self.find_candidates(doc)
        found += self._find_known(text, patient)
        spans = merge_spans(found, text, overlaps=self.policy.overlaps, keeps=keeps)
        confidences = [span.confidence for span in spans]
        set_spans(doc, self.spans_key, [make_span(doc, span) for span in spans], confidences)
        masks = find_masks(text, self.policy.scheme, self.key)
        spans = find_repeats(spans, text, keeps=keeps, masks=masks)
        edits, written, operators = self._replace(spans, text, patient)
        safe, offsets = rewrite(text, edits)
        # Masks of an earlier run count as written, unless something in them was replaced.
        replaced = Places(edits)
        left = [mask for mask in masks if not replaced.touch(*mask)]
        ours = [offsets.to_safe(start, end) for start, end in sorted([*written, *left])]
        tokens = self._tokenize(safe)
        doc.user_data[DEID_KEY] = {
            "text": safe,
            "tokens": tokens.to_array([LENGTH, SPACY]).tolist(),
            "spans": [list(span) for span in spans],
            "edits": [list(edit) for edit in offsets.edits],
            "written": [list(place) for place in ours],
            "phi_values": [list(pair) for pair in values_to_hide(spans, text, keeps=keeps)],
            "spans_key": self.spans_key,
            "audit": {
                "policy": self.policy.hash,
                "scheme": self.policy.scheme,
                "n_spans": len(spans),
                "labels": dict(Counter(span.label for span in spans)),
                "detectors": dict(Counter(span.detector for span in spans)),
                "operators": dict(operators),
                "n_allowed": n_allowed,
                "patient_known": bool(patient),
                "other_language": is_other_language(text, self._stop_words),
                "versions": VERSIONS,
            },
        }
        return doc

    def check_detectors(self) -> None:
        """Check that the detectors with which the pipeline was calibrated are in it and enabled.

        RAISES (BioclinError): One is not, and `allow_missing` is false.
        """
        if not self.detectors or self.allow_missing:
            return
        active = self._nlp.pipe_names
        missing = ", ".join(name for name in self.detectors if name not in active)
        if missing:
            raise BioclinError(
                f"[components.{self.name}] {missing}: the pipeline was calibrated with this "
                "detector, which is now excluded, disabled, removed or renamed, so that PHI would "
                "stay in the notes. Load the pipeline without excluding or disabling it. To "
                f"continue without it on purpose, set allow_missing = true in "
                f"[components.{self.name}], or use rules alone: make_pipeline({self.lang!r}, "
                "rules_only=True)"
            )

    def _refuse_unread(self) -> None:
        """Refuse a note in which nothing has looked for PHI, unless `allow_missing` is true."""
        if not self.allow_missing:
            raise BioclinError(
                f"[components.{self.name}] cannot hide PHI: no component has written "
                f"doc.spans[{self.spans_key!r}], so that all PHI would stay in the note. Add a "
                f'detector, such as nlp.add_pipe("bioclin_phi_rules", before={self.name!r}), or '
                "enable the one that is disabled. To continue without one on purpose, set "
                f"allow_missing = true in [components.{self.name}]"
            )

    def find_candidates(self, doc: Doc) -> tuple[list[PhiSpan], int]:
        """Collect the detectors' spans at or above the thresholds, with calibrated confidence.

        RETURNS (tuple[list[PhiSpan], int]): Spans with labels of the policy's scheme, which may
            overlap; and how many the allow-list took away.
        """
        text, scheme, thresholds = doc.text, self.policy.scheme, self.thresholds
        masks = Places(find_masks(text, scheme, self.key))
        candidates: list[tuple[PhiSpan, frozenset[str]]] = []
        n_allowed = 0
        for span in get_phi(doc, self.spans_key):
            if span.detector == DOUBTFUL and self._operating_point == BALANCED:
                continue
            if self._is_allowed(span, text):
                n_allowed += 1
                continue
            label = map_label(span.label, self.calibrated_scheme)
            meant = possible_labels(span.label, scheme)
            span = span._replace(label=map_label(span.label, scheme))
            confidence = self._calibrate(span.confidence, label, span.detector)
            if confidence >= thresholds.get(label, 0.0):
                pieces = masks.cut(span._replace(confidence=confidence))
                candidates += [(piece, meant) for piece in pieces]
        return choose_labels(candidates), n_allowed

    def _find_known(self, text: str, patient: Mapping[str, Any]) -> list[PhiSpan]:
        """Find the patient's own data, to which no mask, threshold or allow-list applies."""
        known = find_known(text, patient, lang=self.lang) if patient else []
        return [span._replace(label=label_of(span.label, self.policy.scheme)) for span in known]

    def _is_allowed(self, span: PhiSpan, text: str) -> bool:
        if span.detector != NEURAL:
            return False
        if phi_type_of(span.label, self.policy.scheme) not in NAME_LIKE:
            return False
        return self._allow_list.covers(text, span.start, span.end)

    def _target(self, text: str, span: PhiSpan) -> Target:
        value = text[span.start : span.end]
        phi_type = find_phi_type(span.label, self.policy.scheme, value)
        return Target(value, fold_alnum(value), span.label, phi_type)

    def _keeps(self, text: str, span: PhiSpan) -> bool:
        """Check whether the policy leaves a span as it is."""
        target = self._target(text, span)
        return self.policy.operator_for(target.label, target.phi_type) == "keep"

    def _replace(
        self, spans: list[PhiSpan], text: str, patient: Mapping[str, Any]
    ) -> tuple[list[tuple[int, int, str]], list[tuple[int, int]], Counter[str]]:
        """Make the replacement of every span.

        RETURNS (tuple): Replacements; the places of those that contain no PHI of the note, whatever
            they look like; and how often each operator was used.
        """
        note = self._note_context(patient, text, spans)
        brackets = find_brackets(spans, text)
        edits, written, operators = [], [], Counter[str]()
        for span in spans:
            target = self._target(text, span)
            wanted = self.policy.operator_for(target.label, target.phi_type)
            if wanted == "keep" and span.detector == REPEAT:
                wanted = "mask"  # part of a hidden value, of another type than the whole
            new, used = apply_operator(wanted, target, note)
            operators[used if used == wanted else f"{used} instead of {wanted}"] += 1
            if used == "keep":
                continue
            place = brackets.get(span, (span.start, span.end))
            edits.append((*place, new))
            # A shifted date may be another date of the note; no other surrogate is PHI of it.
            if used != "surrogate" or target.phi_type == "date":
                written.append(place)
        return edits, written, operators

    def _note_context(
        self, patient: Mapping[str, Any], text: str, spans: list[PhiSpan]
    ) -> NoteContext:
        """Collect what operators need; a note without a patient's id has a patient of its own."""
        if self.key is None:
            return NoteContext(self.lang, None, {})
        secret = patient_secret(self.key, patient.get("id"), text)
        values = [text[span.start : span.end] for span in spans]
        years = (YEAR.search(text, span.start, span.end) for span in spans)
        year = next((int(found.group()) for found in years if found), LEAP_YEAR)
        days = shift_days(secret, self.policy.keep_weekdays)
        types = [phi_type_of(span.label, self.policy.scheme) for span in spans]
        own_dates = (value for value, type in zip(values, types, strict=True) if type == "date")
        dates = DateShift(days, year, find_day_first(own_dates))
        words = {word for value in values for word in (*value.split(), *_WORD.findall(value))}
        forbidden = frozenset(map(fold_alnum, words)) - {""}
        names = [
            value
            for value, type in zip(values, types, strict=True)
            if type in NAMES and len(value) <= MAX_CHARS
        ]
        first_names = find_first_names([*names, *(patient.get("names") or ())], self.lang)
        made = SurrogateContext(secret, self.lang, forbidden, dates, first_names)
        return NoteContext(self.lang, made, {})


def is_other_language(text: str, stop_words: Iterable[str]) -> bool:
    """Guess whether a note is in another language than the pipeline.

    RETURNS (bool): Of 40 words or more, fewer than one in eight is a stop word of the language.
    """
    words = [word for word in text.lower().split() if word.isalpha()]
    common = sum(word in stop_words for word in words)
    return len(words) >= 40 and common * 8 < len(words)
