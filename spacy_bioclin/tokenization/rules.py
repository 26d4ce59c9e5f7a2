"""What differs between the languages, as data. Words are in lower case, without a final point."""

from typing import NamedTuple


class LanguageRules(NamedTuple):
    """The rules of one language.

    titles (frozenset[str]): Abbreviations that another word always follows: their point never ends
        a sentence, and the tokenizer keeps it with the word. None may be an entity ("Ac.", "Ca.").
    abbreviations (frozenset[str]): Abbreviations that may end a sentence: they do so only before
        a capital. Words without a vowel ("cm", "mg", "lpm") need not be listed.
    openers (frozenset[str]): Words that open sentences. After a single capital ("E. coli",
        "J. Pérez", "vitamina C. Se inicia") only they show that a sentence ended.
    unfinished (frozenset[str]): Words that a line or a sentence cannot end with.
    tokens (tuple[str, ...]): Patterns of tokens that the shared rules would cut elsewhere.
    """

    titles: frozenset[str]
    abbreviations: frozenset[str]
    openers: frozenset[str]
    unfinished: frozenset[str]
    tokens: tuple[str, ...] = ()


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SPANISH = LanguageRules(
    titles=_words(
        "dr dra drs dras sr sra sres srta prof lic fdo p.ej aprox núm vs av avda ctra hosp sta sto"
        " tel tfno fig figs pág dpto ee"
    ),
    abbreviations=_words(
        "etc dcha dcho izq izda izdo der drcha derec comp comps cols col al sp spp subsp var min"
        " seg meq art cap vol ed ref exp expl abd resp neg pos rel cit op loc máx mín ext int sup"
        " inf ant post lat med hosp hab sat hcto leuc hemat plaq tto trat ttos antec enf fam"
        " ac ag uu"
    ),
    openers=_words(
        "el la los las lo un una unos unas se en al a ante bajo con de del desde dada dado debido"
        " durante entre hasta mediante para por pese sin sobre tras no ni su sus es era fue ha han"
        " este esta estos estas ese esa estando como cuando cuatro dos tres cinco seis aunque pero"
        " además actualmente asimismo así posteriormente finalmente inicialmente previamente"
        " después luego entonces ambas ambos otra otro otros todo todos toda todas presenta"
        " presentaba refiere niega ingresa ingresó acude acudió paciente mujer varón exploración"
        " excepto desaparece desaparecieron y que si tiene realizamos dicha dicho"
    ),
    unfinished=_words(
        "a al ante con contra de del desde durante e el en entre hacia hasta la las los mediante ni"
        " o para pero por que se según sin sobre su sus tras u un una y"
    ),
    tokens=(
        # con|metaplasia, un|carcinoma: typed together often enough to cost entities
        r"(?:con|una?|del?|el|las?|los|en|por|sin)(?=(?:adeno)?carcinoma|linfoma|melanoma|sarcoma"
        r"|metaplasia|metástasis|neoplasia|tumor)",
    ),
)

ENGLISH = LanguageRules(
    titles=_words("dr drs mr mrs ms prof vs cf approx fig figs dept st eq ref refs e.g i.e"),
    abbreviations=_words(
        "etc al jr sr resp sp spp subsp var min sec meq art vol ed exp neg pos max abd hosp hx inc"
        " ave approx est temp resp post ext int sup inf ant lat med no nos"
    ),
    openers=_words(
        "the a an in on at by for from of to with after before during following since although"
        " however therefore thus this that these those there it its he she his her they their we"
        " our all both each no not one two three four is was were when while if as because despite"
        " patient patients he's she's denies reports and but or results methods conclusions"
    ),
    unfinished=_words(
        "a an and as at because before but by during for from if in into nor of on or than that the"
        " their to until upon via when which while with within without"
    ),
    tokens=(
        r"(?<=[^\W\d_])['’](?:s|re|ve|ll|d|m)(?![^\W_])",  # patient|'s
        r"[A-Za-z]{2,8}(?=n['’]t(?![^\W_]))|n['’]t(?![^\W_])",  # does|n't, as spaCy has it
    ),
)

RULES = {"es": SPANISH, "en": ENGLISH}
