"""Which documents and sentences repeat what was kept before. Only hashes stay in memory: some 6 KB
a document and 70 bytes a sentence.
"""

import numpy
from datasketch import MinHash, MinHashLSH

from .documents import N_PERMUTATIONS, CleanDocument, Counts
from .overlap import bytes_hash

MIN_JACCARD = 0.8  # of the word 5-grams of near duplicates
# Bands and rows of the index (their product is N_PERMUTATIONS). It proposes 95 % of the pairs of
# Jaccard 0.8, where the library's own choice for that threshold, 9 and 13, proposes 40 %.
BANDS = (16, 8)
LONG_SENTENCE = 10  # words; such a sentence is kept once
MAX_DOCUMENTS = 20  # in which a shorter sentence is kept


class Repeats:
    """Remembers what was kept, as hashes, and finds what repeats it."""

    def __init__(self) -> None:
        self.documents: set[int] = set()
        self.sentences: dict[int, int] = {}  # hash -> documents that have it
        self.signatures: list[numpy.ndarray] = []
        self.near = MinHashLSH(num_perm=N_PERMUTATIONS, params=BANDS)
        self.minhash = MinHash(num_perm=N_PERMUTATIONS)  # the index wants the values in one

    def document_reason(self, document: CleanDocument) -> str:
        """Remember a document. RETURNS (str): Why it is dropped as a repeat, or ""."""
        if document.key in self.documents:
            return "duplicate_document"
        self.documents.add(document.key)
        if not len(document.signature):
            return ""
        self.minhash.hashvalues = document.signature
        for number in self.near.query(self.minhash):
            # The index only proposes; of the hashes that decide, as many agree as Jaccard says.
            if (self.signatures[number] == document.signature).mean() >= MIN_JACCARD:
                return "near_duplicate"
        self.near.insert(len(self.signatures), self.minhash)
        self.signatures.append(document.signature)
        return ""

    def drop_sentences(self, sentences: list[str]) -> tuple[list[str], dict[str, Counts]]:
        """Remember the sentences of a document that is kept.

        sentences (list[str]): Its sentences.
        RETURNS (tuple[list[str], dict[str, Counts]]): Those left, and what was dropped per reason:
            "duplicate_sentence" for a long one that was there before, in this document or another;
            "boilerplate" for a shorter one that `MAX_DOCUMENTS` documents have.
        """
        kept, dropped = [], dict[str, Counts]()
        here: set[int] = set()
        for sentence in sentences:
            n_words = len(sentence.split())
            key = bytes_hash(sentence.casefold().encode())
            is_repeat = key in here
            if not is_repeat:
                here.add(key)
                self.sentences[key] = self.sentences.get(key, 0) + 1
            times = self.sentences[key]
            if n_words >= LONG_SENTENCE and (is_repeat or times > 1):
                reason = "duplicate_sentence"
            elif times > MAX_DOCUMENTS:
                reason = "boilerplate"
            else:
                kept.append(sentence)
                continue
            dropped[reason] = dropped.get(reason, Counts()).plus(Counts(0, 1, n_words))
        return kept, dropped
