"""ConText: what is the patient's own, now."""

from __future__ import annotations

import re

import pytest

from leeward.notes.context import assertion as context
from leeward.notes.spans import Span

SHORT = {"negated": "n", "uncertain": "u", "family": "f", "past": "p", "heading": "h"}


def marked(text: str, category: str = "disease") -> tuple[str, list[Span]]:
    """A text and the spans of its [bracketed] terms."""
    plain, spans = "", []
    for part in re.split(r"(\[[^]]*\])", text):
        if part.startswith("["):
            spans.append(Span(len(plain), len(plain) + len(part) - 2, "HMI", category))
            part = part[1:-1]
        plain += part
    return plain, spans


def said(text: str, category: str = "disease") -> str:
    plain, spans = marked(text, category)
    found = context.statuses_of(plain, plain.lower(), spans)
    return " ".join("".join(sorted(SHORT[s] for s in statuses)) or "-" for statuses in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # negation, its scope and what ends it
        ("The patient denies [fever], [chills] or [cough].", "n n n"),
        ("No [fever] but has [cough].", "n -"),
        ("no [chest pain], has [nausea]", "n -"),
        ("Denies [chest pain]. Reports [nausea].", "n -"),
        ("[Pneumonia] was ruled out.", "n"),
        ("Chest x-ray negative for [pneumonia]; [cough] persists", "n -"),
        ("Urine was negative for [infection].", "n"),
        ("[Fever] is absent and [rash] present", "n -"),
        ("Lungs: clear, no [wheezing]\nAbdomen: mild [tenderness]", "n -"),
        # pseudo-negations
        ("Gram negative [sepsis].", "-"),
        ("No increase in [dyspnea].", "-"),
        ("Not only [fever] but [rash]", "- -"),
        # a trigger inside a term is the term's
        ("Known [migraine without aura] and [lack of energy].", "- -"),
        # uncertainty, and what is yet to come
        ("Possible [pneumonia].", "u"),
        ("Rule out [pulmonary embolism].", "u"),
        ("Return if [fever] develops.", "u"),
        ("[Lupus] cannot be excluded.", "u"),
        # family
        ("Mother had [diabetes].", "f"),
        ("There is [diabetes] in her mother.", "f"),
        ("His father died of [myocardial infarction] at 52.", "f"),
        ("Mother with [breast cancer], patient has [asthma].", "f -"),
        ("No family history of [cancer].", "fn"),
        ("[Asthma] (mother), [gout] (father and uncle).", "f f"),
        ("ROS: [fever] (-), [cough] (negative), [rash] (possible).", "n n u"),
        ("We are thinking of [gout] vs [pseudogout].", "u u"),
        ("No improvement of [cough].", "-"),
        ("[Croup] as a toddler, outgrew [eczema].", "p p"),
        # who brings or speaks is not ill by that
        ("Brought in by his wife for [fever].", "-"),
        ("Mother reports [fever] and [cough].", "- -"),
        ("She was seen with her mother. Has [cough].", "-"),
        ("Seen at Children's Hospital for [mole].", "-"),
        # the past; a history of something is not past by that
        ("History of [hypertension].", "-"),
        ("[Diabetes] diagnosed 3 years ago.", "-"),
        ("Remote history of [asthma] in childhood, now resolved.", "p"),
        ("Had [measles] as a child, which resolved.", "p"),
        ("Stopped [warfarin] years ago.", "p"),
        # sections
        ("FAMILY HISTORY: [diabetes], [stroke].\nSOCIAL HISTORY: none\nASSESSMENT: [asthma]", "f f -"),
        ("Family History\n[Stroke]\n\nSomething else\n[Asthma]", "f -"),
        ("FHx - [Stroke].\nHPI - [Asthma].", "f -"),
        ("FAMILY HISTORY:, [Stroke].,[CANCER]: mother.,DATA AT PRESENTATION:, [Anemia].", "f f -"),
        # fields without a value, lists of what is denied
        ("[Chest pain]: no. [Fever]: denied. [Cough]: yes", "n n -"),
        ("[Chest pain]: no radiation", "-"),
        ("Denies:\n- [fever]\n- [chills]\n\nReports:\n- [cough]", "n n -"),
        # childhood frames its clause, wherever it is
        ("As a child, she had [measles] and was in hospital for [pneumonia].", "p p"),
        ("He had [asthma] when he was six.", "p"),
        ("In grade school she suffered from [eczema]; later, [depression].", "p -"),
        ("As a boy he had [croup] but now has [asthma].", "p -"),
        ("[Appendectomy] as a child and [cholecystectomy] in 2003.", "p -"),
        ("[Type 1 diabetes] was diagnosed at age 7.", "-"),
        ("He has had [asthma] since childhood.", "-"),
        ("Childhood: [bronchitis].\nHPI: [cough].", "p -"),
        # doubt governs what it is about, over verbs, causes and clauses
        ("Her weakness may be due to [anemia].", "u"),
        ("We suspect that she has [lupus].", "u"),
        ("It is likely that he has [pancreatitis].", "u"),
        ("[Gout], [lupus] and [sepsis] cannot be excluded.", "u u u"),
        ("[Sepsis], in our view, seems possible.", "u"),
        ("[Pneumonia], which has not yet been excluded", "u"),
        ("Any [chest pain]?", "u"),
        ("The risks and benefits, including [bleeding], were explained.", "u"),
        ("Axis III: [hypertension], [hip fracture], possible [diabetes].", "- - u"),
        ("The [wound] is open.", "-"),
    ],
)
def test_what_the_words_around_a_term_say(text: str, expected: str) -> None:
    assert said(text) == expected


def test_a_test_that_was_negative_was_done() -> None:
    assert said("[Biopsy] was negative.", "test") == "-"
    assert said("[Biopsy] was declined.", "test") == "n"


def test_drugs_that_are_talked_about_are_not_taken_and_a_disease_is_there() -> None:
    assert said("We discussed [sertraline].", "drug") == "u"
    assert said("We discussed her [arthritis] at length.") == "-"
    assert said("An [MRI] can be obtained.", "test") == "u"


def test_drugs_of_the_section_allergies_are_not_taken() -> None:
    assert said("Allergies: [penicillin]\nMedications: [aspirin]", "drug") == "n -"


def test_a_known_heading_asserts_nothing() -> None:
    assert said("[ALLERGIES]: None.") == "hn"
    assert said("[ALLERGIES]:, NKDA.,") == said("[Allergies]\npenicillin") == "h"
    assert said("[PHYSICAL EXAMINATION]: normal. [X-ray]: normal.", "test") == "h -"
    assert said("[Pain]: 7/10. [Hypertension]: treated.") == "- -"


def test_only_health_terms_are_judged() -> None:
    text = "Denies fever. Mr. Brown denies pain."
    spans = [Span(7, 12, "HMI", "symptom", "c1"), Span(18, 23, "EID", "name")]
    judged = context.judge(text, text.lower(), spans)
    assert [span.asserted for span in judged] == [False, True]


def test_every_trigger_is_found_in_a_text_of_its_own() -> None:
    from leeward.notes.context.assertion import ACTIONS

    for action, phrases in ACTIONS.items():
        for phrase in phrases:
            found = {
                (t.says, t.side) for t in context.find(f"x {phrase} x") if t.end - t.start == len(phrase)
            }
            assert action in found or (action[0] == "pseudo" and not found), phrase


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The mass may represent [lymphoma].", "u"),
        ("[Glaucoma] in his paternal grandfather.", "f"),
        ("We stopped [aspirin] and began [metformin].", "p -"),
        ("[Asthma]; I suggest [albuterol].", "- -"),
        ("The findings suggest [pneumonia].", "u"),
        ("Complications of the drug can include [nausea], [rash] and [jaundice].", "u u u"),
        ("Treatment options include [lithium] or [valproate].", "u u"),
        ("Trials show that [statins] help people with [angina].", "u u"),
        ("Codeine p.r.n. [migraine], naproxen for [gout].", "u -"),
        ("If the swab is positive for [influenza], she will get [oseltamivir].", "u u"),
        ("Two of her brothers are ill, but she is positive for [influenza].", "-"),
        ("She has had [eczema] since early childhood.", "-"),
        ("[Measles] as a six-year-old, [croup] in the first year of life.", "p p"),
        ("She had [otitis] when she was younger.", "p"),
        ("Her cough is most likely due to [asthma]; there is a possibility of [bronchitis].", "u u"),
        ("Should you develop [jaundice], call us.", "u"),
        ("She would like to proceed with the [infusion].", "-"),
    ],
)
def test_what_notes_of_other_kinds_taught(text: str, expected: str) -> None:
    assert said(text) == expected
