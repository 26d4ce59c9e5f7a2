"""English cues on sentences of our own: one sign for each mention in brackets."""

import pytest

from .cases import check

NEGATED = [
    ("Lungs with no [rales], [rhonchi], or [wheezes] and [heart] was regular.", "+++-"),
    ("No [rales] and [rhonchi] were heard.", "++"),
    ("No [fever], [chills], or [cough].", "+++"),
    ("Denies [chest pain], [shortness of breath] on exertion, [nausea] or [vomiting].", "++++"),
    ("Patient denies [fever] but reports [cough].", "+-"),
    ("Without [edema] or [cyanosis].", "++"),
    ("There is no evidence of [pneumonia].", "+"),
    ("Negative for [DVT].", "+"),
    ("[Blood cultures] were negative.", "+"),
    ("[Fever]: none.", "+"),
    ("[Myocardial infarction] was ruled out.", "+"),
    ("She was ruled out for [MI].", "+"),
    ("He ruled out for [myocardial infarction].", "+"),
    ("Lungs are free of [rales].", "+"),
    ("Unremarkable for [masses].", "+"),
    ("The patient is [afebrile].", "+"),
    ("Abdomen is soft and [nontender].", "+"),
    ("He does not have [diabetes].", "+"),
    ("She didn’t have any [headache].", "+"),
    ("Neither [rash] nor [fever].", "++"),
    ("No [murmurs], regular [rhythm].", "+-"),
    ("No [fever], and the [cough] persists.", "+-"),
    ("No [fever]; [cough] persists.", "+-"),
    ("No [pain] due to [fracture].", "+-"),
    ("[Chest pain], no [palpitations], [cough].", "-++"),
    ("[Edema] is absent.", "+"),
    ("No [focal deficits] were seen.", "+"),
    ("No [masses] were seen on [CT].", "+-"),
    ("[Pneumothorax] is not seen.", "+"),
    ("[Pulmonary embolism] is unlikely.", "+"),
    ("No increase in [pain].", "-"),
    ("No change in the [nodule].", "-"),
    ("No further [bleeding].", "-"),
    ("Gram negative [rods].", "-"),
    ("Not only [fever] but also [cough].", "--"),
    ("[Pneumonia] cannot be ruled out.", "-"),
    ("Cannot exclude [pneumonia].", "-"),
    ("Rule out [MI].", "-"),
    ("R/o [sepsis].", "-"),
    ("[Pain] not controlled with [ibuprofen].", "--"),
    ("[Chest pain] resolved.", "-"),
    ("History of [stroke].", "-"),
    ("No prior history of [stroke].", "+"),
    ("[Tumor] margins negative.", "-"),
    ("The pain is not relieved by [rest].", "-"),
    ("She did not have any further [bleeding].", "-"),
    ("No [angina] on exertion, and continued to have [dyspnea].", "+-"),
    ("His family history is negative for [colon cancer].", "+"),
    ("Chest x-ray revealed no [effusion], but mild [cardiomegaly].", "+-"),
    ("No evidence that the patient has [pneumonia].", "+"),
    ("[Pain] free.", "+"),
    ("[Allergies]: no known [drug allergies].", "-+"),
]
UNCERTAIN = [
    ("Possible [pneumonia].", "+"),
    ("Rule out [MI].", "+"),
    ("R/o [sepsis].", "+"),
    ("Cannot exclude [pneumonia].", "+"),
    ("[Pneumonia] cannot be ruled out.", "+"),
    ("Concern for [abscess].", "+"),
    ("This may represent [infection].", "+"),
    ("[Asthma] vs [COPD].", "++"),
    ("No signs suggestive of [DVT].", "-"),
    ("He was ruled out for [MI].", "-"),
    ("[Pneumonia] is likely.", "+"),
    ("Follow up as soon as possible for [wound].", "-"),
    ("Probable [UTI], [hypertension].", "+-"),
]
HISTORICAL = [
    ("History of [stroke].", "+"),
    ("Past medical history significant for [diabetes], [hypertension] and [asthma].", "+++"),
    ("Status post [appendectomy].", "+"),
    ("[Pneumonia] in the past.", "+"),
    ("History of present illness: [cough].", "-"),
    ("[Fever] for the past three days.", "-"),
    ("PMH: [CHF].", "+"),
]
HYPOTHETICAL = [
    ("Return if [fever] develops.", "+"),
    ("Should he develop [chest pain], call 911.", "+"),
    ("[Tylenol] as needed for [pain].", "-+"),
    ("At risk for [falls].", "+"),
    ("[DVT] prophylaxis.", "+"),
    ("Looks as if in [pain].", "-"),
]
FAMILY = [
    ("Mother with [breast cancer].", "+"),
    ("Family history of [diabetes] and [stroke].", "++"),
    ("Her father had [lung cancer], patient has [asthma].", "+-"),
    ("[Colon cancer] in his father.", "+"),
    ("Mother reports [fever].", "-"),
    ("Mother's [diabetes].", "+"),
]


@pytest.mark.parametrize(
    ("kind", "marked", "expected"),
    [
        (kind, *case)
        for kind, cases in {
            "negated": NEGATED,
            "uncertain": UNCERTAIN,
            "historical": HISTORICAL,
            "hypothetical": HYPOTHETICAL,
            "family": FAMILY,
        }.items()
        for case in cases
    ],
)
def test_attribute(kind: str, marked: str, expected: str) -> None:
    check("en", kind, marked, expected)
