"""Find documents and sentences that repeat what was kept before.

Only hashes stay in memory: about 6 KB per document and 70 bytes per sentence.
"""

import numpy
from datasketch import MinHash, MinHashLSH

from ...corpora.overlap.ngrams import bytes_hash
from .documents import N_PERMUTATIONS, CleanDocument, Counts, count

MIN_JACCARD = 0.8  # of the word 5-grams of near duplicates
# Bands and rows of the index (their product is N_PERMUTATIONS). With these it proposes 95 % of the
# pairs with a Jaccard index of 0.8; with 9 and 13, the library's choice, it proposes 40 %.
BANDS = (16, 8)
LONG_SENTENCE = 10  # words; such a sentence is kept only once
MAX_DOCUMENTS = 20  # documents in which a shorter sentence is kept


class Repeats:
    """Hashes of the documents and sentences that were kept, to find repeats of them."""

    def __init__(self) -> None:
        self.documents: set[int] = set()
        self.sentences: dict[int, int] = {}  # hash -> number of documents
        self.signatures: list[numpy.ndarray] = []
        self.near = MinHashLSH(num_perm=N_PERMUTATIONS, params=BANDS)
        self.minhash = MinHash(num_perm=N_PERMUTATIONS)  # the form in which the index takes hashes

    def drop(self, document: CleanDocument, dropped: dict[str, Counts]) -> list[str]:
        """Add a document, and drop what repeats earlier documents.

        dropped (dict[str, Counts]): Counts by reason, to which is added: "duplicate_document",
            "near_duplicate", "duplicate_sentence" for a long sentence that was there before,
            "boilerplate" for a shorter one that `MAX_DOCUMENTS` documents have, and "nothing_new"
            for a document of which no sentence is left.
        RETURNS (list[str]): The sentences that are kept.
        """
        if document.reason:
            return []
        sentences = document.sentences
        reason = self._find_reason(document)
        if not reason:
            sentences = self._drop_sentences(sentences, dropped)
            reason = "" if sentences else "nothing_new"
        if reason:
            dropped[reason] += count(sentences)
            sentences = []
        return sentences

    def _find_reason(self, document: CleanDocument) -> str:
        """Add a document, and find out whether it repeats another ("" if it does not)."""
        if document.key in self.documents:
            return "duplicate_document"
        self.documents.add(document.key)
        if not len(document.signature):
            return ""
        self.minhash.hashvalues = document.signature
        for number in self.near.query(self.minhash):
            # The index proposes candidates; the share of equal hashes estimates the Jaccard index.
            if (self.signatures[number] == document.signature).mean() >= MIN_JACCARD:
                return "near_duplicate"
        self.near.insert(len(self.signatures), self.minhash)
        self.signatures.append(document.signature)
        return ""

    def _drop_sentences(self, sentences: list[str], dropped: dict[str, Counts]) -> list[str]:
        kept = []
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
            dropped[reason] += Counts(0, 1, n_words)
        return kept
