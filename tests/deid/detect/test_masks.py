"""Only what this key and scheme wrote is a mask; a note may have anything in brackets."""

from spacy_bioclin.deid.detect.masks import find_brackets, find_masks
from spacy_bioclin.deid.labels import SCHEMES, scheme_labels
from spacy_bioclin.deid.operators import NoteContext, Target, apply_operator
from spacy_bioclin.deid.secret import Secret
from spacy_bioclin.deid.spans import PhiSpan
from spacy_bioclin.deid.surrogates.context import SurrogateContext
from tests.hostile.growth.measure import is_linear

KEY = b"a key for the tests, no more than that"


def write(operator: str, label: str = "FECHAS", key: bytes = KEY) -> str:
    note = NoteContext("es", SurrogateContext(Secret(key, "p1"), "es"), {})
    return apply_operator(operator, Target("Marta", "marta", label, None), note)[0]


def masks(text: str, scheme: str = "meddocan", key: bytes | None = KEY) -> list[str]:
    return [text[start:end] for start, end in find_masks(text, scheme, key)]


def test_masks_with_the_labels_of_the_scheme() -> None:
    pairs = [(scheme, label) for scheme in SCHEMES for label in scheme_labels(scheme)]
    for scheme, label in pairs:
        for operator in ("mask", "hash", "encrypt"):
            mask = write(operator, label)
            assert masks(f"[{mask} y [Marta", scheme) == [mask]
        assert masks(write("mask_number", label), scheme) == [f"[{label} "]


def test_hashes_and_tokens_need_the_key_that_wrote_them() -> None:
    for operator in ("hash", "encrypt"):
        mask = write(operator)
        assert masks(mask) == [mask]
        assert masks(mask, key=None) == masks(mask, key=KEY[::-1]) == []
        assert masks(mask.replace("FECHAS", "Marta García")) == []
        changed = mask[:-3] + ("0" if mask[-3] != "0" else "1") + mask[-2:]
        assert masks(changed) == []


def test_what_only_looks_like_a_mask() -> None:
    texts = [
        "[Marta García Gil, NHC 1234567, tarjeta 4539578763621486]",
        "[Marta García 0123456789abcdef]",
        "[FECHAS 0123456789abcdef01234567]",
        "[NOMBRE_SUJETO_ASISTENCIA MartaGarciaGilMartaGarciaGilMartaGarciaGil]",
        "[DATE]",  # of another scheme
        "[fechas]",
        "[ FECHAS]",
        "[FECHAS ]",
        "[FECHAS\n]",
        "[FECHAS\u200b]",
        "\uff3bFECHAS\uff3d",
        "[\uff26\uff25\uff23\uff28\uff21\uff33]",
        "(FECHAS)",
        "[FECHAS",
        "FECHAS]",
    ]
    wrong = [(text, found) for text in texts if (found := masks(text))]
    assert not wrong, wrong


def test_a_number_is_never_part_of_a_mask() -> None:
    for number in ("1", "93", "123456", "453957876362148645395787"):
        assert masks(f"[ID_SUJETO_ASISTENCIA {number}]") == ["[ID_SUJETO_ASISTENCIA "]
        assert masks(f"[ID_SUJETO_ASISTENCIA{number}]") == masks(f"[Marta {number}]") == []


def test_a_number_is_replaced_with_its_brackets() -> None:
    text = "[AGE 93] y [AGE 7] Ana, [DATE 2], [AGE 4"

    def make_spans(*values: str) -> list[PhiSpan]:
        return [PhiSpan(at := text.index(v), at + len(v), "AGE", 1.0, "x") for v in values]

    number, whole, longer, cut = make_spans("93", "AGE 7]", "7] Ana", "4")
    assert find_brackets([number, whole, cut], text) == {number: (0, 8), whole: (11, 18)}
    # brackets that contain only a part of the span, or two spans
    assert find_brackets([longer], text) == find_brackets(make_spans("3]"), text) == {}
    assert find_brackets(make_spans("AGE", "93"), text) == {}


def test_many_brackets_take_linear_time() -> None:
    assert masks("[" * 2_000 + "FECHAS" + "]" * 2_000) == ["[FECHAS]"]
    for piece in ("[", "]", "[a " + "A" * 90):
        assert is_linear(masks, piece, 160_000), piece
