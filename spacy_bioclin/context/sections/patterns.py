"""What is around a heading: patterns for a folded text in which tabs are bars.

None of them looks at more than a bounded number of characters at a place, except `WORD` and
`UNKNOWN`, which go through a text once.
"""

import re

# What may be before a heading on its line: bullets, brackets, a number, letter or roman numeral.
_MARKS = r"[ *\-+>#=~_|.\"'\[({<\u25a0-\u25ff\u2700-\u27bf\uf000-\uf0ff]"
PREFIX = re.compile(
    rf"{_MARKS}{{0,12}}(?:(?:\d{{1,2}}(?:\.\d{{1,2}}){{0,3}}|[a-hA-H]|[ivxIVX]{{1,4}})"
    rf"[ ]?(?:[.)\]\-/º]{{1,3}}|(?<=\d)(?=[ ])){_MARKS}{{0,6}})?"
)
LOOK_BACK = 32
SENTENCE_END = re.compile(r"(?:[.;!?:][\"')\]]?|[ ]{2}|[ ][->*]|\|)[ ]*[\[(*_\"]{0,3}\Z")
BLANK_LINE = re.compile(r"(?:\A|[.:]?[ ]*\n[ ]*\n|[.:][ ]*\n)[ ]*\Z")
_CLOSING = r"[\])}*_\"']{0,4}"
COLON = re.compile(rf"[ |]{{0,3}}{_CLOSING}[ .]{{0,2}}:")
# "(02/08/14):", "por parte de Medicina Interna:"
PARENTHESIS = re.compile(r"[ ]{0,2}\([^()\n:]{1,40}\)(?=[ ]{0,2}:)")
QUALIFIER = re.compile(r"[ ](?:[^\W\d_][^\s:.;,()]{0,20}[ ]){0,5}?[^\W_][^\s:.;,()]{0,20}(?=[ ]?:)")
LINE_END = re.compile(rf"[ |]{{0,3}}{_CLOSING}[.=#\-]{{0,12}}[ ]{{0,20}}(?:\n|\Z)")
# " - ", ".-", and the tab or bar between the columns of a table.
DASH = re.compile(r"[ ]{1,3}[-=>|]{1,3}|\.[-=>]{1,3}|[-=>]{1,3}(?=\s)|[ ]{0,3}\|")
# "[EVOLUCIÓN] …", "**Plan** …"
BRACKETS = {"[": "]", "(": ")", "{": "}", "<": ">", "*": "*", "_": "_"}
POINT = re.compile(rf"{_CLOSING}[ ]?\.(?=[ ])")
NEXT = re.compile(r"[ ]{0,4}(?:[-*>][ ]{0,2})?([^\W_]{0,30})")
WORD = re.compile(r"[^\W_]+")
# Between two words of a title.
GAP = re.compile(r"[ ]{1,3}|[ ]?\.[ ]?|[ ]?-[ ]?|_")
JOIN = re.compile(r"[ ]{0,2}[&/+,][ ]{0,2}")
UNKNOWN = re.compile(
    r"^[^\w\n]{0,8}(?:\d{1,2}[.)\-]{1,2}[ ]{0,3})?([A-Z][^\n:a-z]{3,60}):[ ]{0,9}$", re.M
)
_FUNCTION_WORDS = (
    "de del la el las los en a al y e o u por para con sin su sus como segun resto un una unos "
    "este esta the of in on at for with per to and or his her their see no any this that as from "
    "by my your our these its mi lo que se ante bajo tras sobre entre muy mas previa previo nueva "
    "nuevo is are was were be has have had"
)
_CLAUSE_WORDS = (
    "se es son fue era esta estaba presenta presentaba muestra mostraba revela refiere destaca "
    "destacaba evidencia consiste incluye con sin no ni que is was are were shows showed reveals "
    "informa informo informan revealed includes included with has had have without which that who "
    "been"
)
_LINKING_WORDS = "de del la el los las en al con por para y of in on at for with to and or the from"
_MEASURES = "ta tas tad pa fc fr sat sato2 spo2 t tº temp bp hr rr peso talla"
# After these words a title is part of their phrase.
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
# With these a title does not end.
LINKING_WORDS = frozenset(_LINKING_WORDS.split())
# Words of a clause: what has them before its colon is no heading.
CLAUSE_WORDS = frozenset(_CLAUSE_WORDS.split())
# "A la exploración TA: 120/80" is no qualifier but a measurement.
MEASURES = frozenset(_MEASURES.split())
