"""Split names of several concepts: "breast and ovarian cancer", "cáncer de mama y ovario".

Words that the parts share occur once. Which words these are follows from the word order of the
language and from the lists in composites.yml:

- codes: "type 1 and 2 diabetes", "hepatitis B y C";
- beginnings of words: "hypo- and hyperglycemia", "supra e infratentorial" (in coordination.py);
- words around a preposition: "cancer of the breast and ovary", "dolor y rigidez de rodilla";
- English, the words at the end: "Duchenne or Becker muscular dystrophy"; or those before the last
  word of the first part: "ventricular tachycardia and fibrillation";
- Spanish, the words before the adjectives: "metástasis hepáticas y pulmonares".

The caller looks for names that are known as a whole ("hereditary breast and ovarian cancer").
"""

import re

from ...text import fold_by_char
from .coordination import WordRules, Words, load_word_rules, matches, show, split_conjuncts

# Longer mentions, and mentions of more parts, are not split.
MAX_CHARACTERS, MAX_PARTS = 150, 12

_CODE = re.compile(r"[A-Z]?\d{1,4}[A-Za-z]?|[IVX]{1,4}[ABCabc]?|[A-Zα-ω]")
_STEM_AND_CODE = re.compile(r"([^\W\d_]{2,}-?)(\d{1,3}[A-Za-z]?)")
_GREEK = re.compile("alpha|alfa|beta|gamma|delta|kappa")


def split_composite(mention: str, lang: str) -> tuple[str, ...]:
    """Split a coordinated name.

    mention (str): A name of one or several concepts.
    lang (str): "en" or "es".
    RETURNS (tuple[str, ...]): The name of each part, or only the mention if it has no parts.
    RAISES (BioclinError): If there are no rules for the language.
    """
    rules = load_word_rules(lang)
    if len(mention) > MAX_CHARACTERS or not rules.mark.search(mention):
        return (mention,)
    conjuncts = split_conjuncts(mention, rules)
    names = tuple(dict.fromkeys(map(show, _parts(conjuncts, rules)))) if conjuncts else ()
    return names if 1 < len(names) <= MAX_PARTS else (mention,)


def _parts(conjuncts: list[Words], rules: WordRules) -> list[Words]:
    """List the words of each part; fewer than two if the name is not a composite."""
    coded = _codes(conjuncts)
    if coded:
        return coded
    n_fillers = [rules.n_leading(words, "fillers") for words in conjuncts]
    conjuncts = [words[n:] for words, n in zip(conjuncts, n_fillers, strict=True)]
    if not all(conjuncts):
        return []
    last = conjuncts[-1]
    if rules.lang == "en" and n_fillers[-1] and len(last) == 1:  # "colon and other cancers"
        return [w if rules.matches("heads", w[-1]) else w + last for w in conjuncts[:-1]] + [last]
    if _has_apposition(conjuncts, rules):
        return []
    found = _preposition(conjuncts, rules)
    if found:
        return _around_preposition(conjuncts, *found, rules)
    return _without_preposition(conjuncts, rules)


def _codes(conjuncts: list[Words]) -> list[Words]:
    """Split names with codes: "type 1 and (type) 2 diabetes", "MEN1 and 2", "FOXC1 and FOXC2"."""
    *prefix, code = conjuncts[0]
    stem = _STEM_AND_CODE.fullmatch(code)
    if not stem and not _CODE.fullmatch(code):
        return []
    leader = fold_by_char(prefix[-1]) if prefix else None
    others = [
        words[1:] if words[1:] and fold_by_char(words[0]) == leader else words
        for words in conjuncts[1:]
    ]
    if any(len(words) > 1 for words in others[:-1]):
        return []
    codes, tail = [words[0] for words in others], others[-1][1:]
    if stem:
        codes = [word.removeprefix(stem[1]) for word in codes]
    if not all(map(_CODE.fullmatch, codes)) or not (prefix or tail or stem):
        return []
    if stem:
        codes = [stem[1] + word if word[0].isdigit() else word for word in codes]
    own = tail[:1] if tail and matches(_GREEK, tail[0]) else []  # "D2 or F2 alpha"
    tail = tail[len(own) :]
    parts = [[*prefix, word, *tail] for word in (code, *codes[:-1])]
    return [*parts, [*prefix, codes[-1], *own, *tail]]


# --- prepositions ---


def _preposition(conjuncts: list[Words], rules: WordRules) -> tuple[int, int] | None:
    """Find conjunct and position of the preposition that parts share: the last one of the first
    conjunct, else the first one of all. It has words on both sides."""
    for index, words in enumerate(conjuncts):
        found = [i for i in range(1, len(words) - 1) if rules.matches("prepositions", words[i])]
        if found:
            return index, found[0 if index else -1]
    return None


def _has_apposition(conjuncts: list[Words], rules: WordRules) -> bool:
    """Check whether a preposition that the last part does not repeat follows a comma:
    "adenocarcinoma, de patrón sólido y tubular"."""
    *middle, last = [words[0] for words in conjuncts[1:]]
    return any(
        rules.matches("prepositions", word) and fold_by_char(word)[:2] != fold_by_char(last)[:2]
        for word in middle
    )


def _around_preposition(
    conjuncts: list[Words], index: int, position: int, rules: WordRules
) -> list[Words]:
    """Split parts that share the words before a preposition, after it, or both."""
    words = conjuncts[index]
    heads = [*conjuncts[:index], words[:position]]
    if index:
        heads = _without_preposition(heads, rules)
    begin = position + 1 + rules.n_leading(words[position + 1 :], "fillers")
    end = begin + rules.n_leading(words[begin:], "articles")
    link, right = [words[position], *words[begin:end]], [words[end:], *conjuncts[index + 1 :]]
    if not right[0]:
        return []
    names: list[Words] = []  # "cancer of the breast and leukemia"
    while len(right) > 1 and _is_name(right[-1], rules) and not _is_name(right[0], rules):
        names.insert(0, right.pop())
    tails = _tails(link, right, rules)
    if not tails:
        return []
    alone = [head for head in heads[:-1] if rules.matches("alone", head[-1])]
    return [
        *alone,
        *([*head, *tail] for head in heads if head not in alone for tail in tails),
        *names,
    ]


def _is_name(words: Words, rules: WordRules) -> bool:
    """Check whether words are a complete name, by their first word in Spanish, their last in
    English."""
    return rules.matches("heads", words[0] if rules.lang == "es" else words[-1])


def _tails(link: Words, right: list[Words], rules: WordRules) -> list[Words]:
    """List what follows a head in each part: preposition, article and words."""
    if len(right) > 1:
        right = _spanish_tails(right, rules) if rules.lang == "es" else _english_tails(right, rules)
    tails = [[*link, *words] for words in right[:1]]
    for words in right[1:]:
        own = rules.matches("prepositions", words[0])
        if rules.lang == "es" and not rules.is_adjective(right[0][0]):
            own = own or rules.is_adjective(words[0])  # "dolor de cabeza y abdominal"
        has_article = rules.matches("articles", words[0])
        tails.append(words if own else [*link[: 1 if has_article else None], *words])
    return tails


def _english_tails(right: list[Words], rules: WordRules) -> list[Words]:
    """Complete "of the small and large bowel" and "of cleft lip and palate"; most need nothing."""
    first, last = right[0], right[-1]
    shares_end = len(first) == 1 < len(last) and rules.is_adjective(first[0])
    shares_start = len(first) > 1 == len(last) and rules.matches("shared", first[0])
    return _english(right, rules) if shares_end or shares_start else right


def _spanish_tails(right: list[Words], rules: WordRules) -> list[Words]:
    """Complete adjectives of the noun after the preposition ("de células grandes y pequeñas"), and
    repeat one at the end that belongs to all ("de mama y ovario hereditario")."""
    if all(rules.is_adjective(words[0]) for words in right[1:]):
        return _spanish(right, rules) if rules.is_adjective(right[0][-1]) else right
    *others, last = right
    is_shared = [rules.matches("shared", words[-1]) for words in right]
    if len(last) > 1 and is_shared[-1] and not any(is_shared[:-1]):
        return [*([*words, last[-1]] for words in others), last]
    return right


# --- nouns and adjectives ---


def _without_preposition(conjuncts: list[Words], rules: WordRules) -> list[Words]:
    return _spanish(conjuncts, rules) if rules.lang == "es" else _english(conjuncts, rules)


def _english(conjuncts: list[Words], rules: WordRules) -> list[Words]:
    """Complete parts that share words at the end or at the beginning."""
    conjuncts = [words[rules.n_leading(words, "articles") :] or words for words in conjuncts]
    first, *others = conjuncts
    last = conjuncts[-1]
    if len(last) == 1:  # "ventricular tachycardia and fibrillation"
        start = first[:-1] if rules.is_adjective(first[0]) else []
        return [first, *(start + words if len(words) == 1 else words for words in others)]
    head = _english_head(first, last, rules)
    is_name = [rules.matches("heads", words[-1]) for words in conjuncts]
    parts = [w if own else w + head for w, own in zip(conjuncts[:-1], is_name, strict=False)]
    if is_name[0] and fold_by_char(first[-1]) != fold_by_char(last[-1]):
        start = []
    else:
        start = _english_start(first, last[: len(last) - len(head)], rules)
    return [parts[0], *([*start, *words] for words in [*parts[1:], last])]


def _english_head(first: Words, last: Words, rules: WordRules) -> Words:
    """Find the last word, with adjectives before it that belong to it:
    "Duchenne or Becker muscular dystrophy", but "renal and severe cardiac failure"."""
    start = len(last) - 1
    if start > 1 and rules.matches("compounds", " ".join(last[-2:])):
        start -= 1
    if not rules.matches("shared", last[0]) or rules.matches("shared", first[-1]):
        while start > 1 and rules.is_adjective(last[start - 1]):
            start -= 1
    return last[start:]


def _english_start(first: Words, modifiers: Words, rules: WordRules) -> Words:
    """Find words of the first part that belong to all: "hereditary breast and ovarian cancer",
    "left ventricular systolic and diastolic dysfunction"."""
    if not modifiers or rules.matches("shared", modifiers[0]):
        return []
    if len(modifiers) == 1 and all(map(rules.is_adjective, [*first, *modifiers])):
        return first[:-1]
    return first[: rules.n_leading(first[:-1], "shared")]


def _spanish(conjuncts: list[Words], rules: WordRules) -> list[Words]:
    """Repeat the noun of the first part for the adjectives of the others ("metástasis hepáticas y
    pulmonares"); a part that begins with a noun is complete."""
    first, last = conjuncts[0], conjuncts[-1]
    if len(first) == 1 and rules.is_adjective(first[0]):  # "de alto y bajo grado"
        shared = last[1:] if rules.is_adjective(last[0]) else []
        return [*(words + shared for words in conjuncts[:-1]), last] if shared else []
    parts = [first]
    for words in conjuncts[1:]:
        depends = rules.is_adjective(words[0]) or rules.matches("prepositions", words[0])
        parts.append([*_noun_phrase(first, words[0], rules), *words] if depends else words)
    return parts


def _noun_phrase(words: Words, adjective: str, rules: WordRules) -> Words:
    """Remove the adjectives that another one replaces: those of course and degree, and one of place
    or kind before them."""
    end = _before_adverbs(words, len(words), rules)
    while end > 1 and rules.matches("shared", words[end - 1]):
        end = _before_adverbs(words, end - 1, rules)
    if end < len(words) and rules.matches("shared", adjective):
        return words[:end]
    if end > 1 and rules.is_adjective(words[end - 1]):
        end = _before_adverbs(words, end - 1, rules)
    return words[:end]


def _before_adverbs(words: Words, end: int, rules: WordRules) -> int:
    """Find where the adverbs right before `end` begin."""
    while end > 1 and rules.matches("adverbs", words[end - 1]):
        end -= 1
    return end
