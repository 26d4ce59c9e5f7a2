"""Notes with everything that annotation tools stumble over, made by hand."""

from spacy_bioclin.types import (
    AnnotatedText,
    NoteAnnotation,
    OtherAnnotation,
    RelationAnnotation,
    SpanAnnotation,
)

TOOLS = ("label-studio", "doccano", "prodigy", "inception", "brat")

# 😀 is one code point and two UTF-16 units; "e" + U+0301 is one letter and two code points.
TEXT = "😀 Niega disne\u0301a.\r\n\tDolor en  brazo\ry pierna 👩‍⚕️.\r\nAlta \x0bhoy\n"


def span(id: str, label: str, *surfaces: str, concepts: tuple[str, ...] = ()) -> SpanAnnotation:
    fragments = tuple((TEXT.index(each), TEXT.index(each) + len(each)) for each in surfaces)
    surface = " ".join(" ".join(each.split()) for each in surfaces)
    return SpanAnnotation(id, label, fragments, surface, concepts)


SPANS = (
    span("T1", "SINTOMA", "disne\u0301a", concepts=("267036007",)),
    span("T2", "SINTOMA", "Dolor en  brazo", concepts=("22253000", "C0030193")),
    span("T3", "SINTOMA", "Dolor", "pierna"),  # overlaps T2, in two fragments
    span("T4", "FACE", "👩‍⚕️"),
    span("T5", "LINES", "brazo\ry"),
    span("T6", "HOY", "\x0bhoy"),
    span("T7", "E", "e", concepts=()),  # within a word
)
RELATION = RelationAnnotation("R1", "with", (("Arg1", "T2"), ("Arg2", "T1")))
ATTRIBUTES = (
    OtherAnnotation("A1", "A1\tNegated T1"),
    OtherAnnotation("A2", "A2\tCertainty T3 low"),
)
NOTE = NoteAnnotation("#1", "AnnotatorNotes", "T4", "which profession?")
HARD = AnnotatedText("nota/1", TEXT, (*SPANS, RELATION, *ATTRIBUTES, NOTE))
PLAIN = AnnotatedText("nota 2", "Sin hallazgos.\n", ())
