"""Sections of a note, by their headings: where family history, allergies or plans are told.

MTSamples, discharge letters and visit notes name the same sections in many ways; what is no known heading does not
end a section of the patient's own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from leeward.notes import field_labels as labels

Topic = Literal["own", "past", "family", "social", "allergies", "plan", "header"]
"""Whose health a section tells of: `family` is somebody else's, `allergies` lists what is not taken, `plan` holds
what is yet to come; `own` and `past` are the patient's."""

HEADINGS: dict[str, str] = {
    heading.strip(): topic
    for topic, headings in {
        "own": """objective data,subjective data,data of the day,ancillary studies,ancillary data,diagnostic data,
            history of present illness,hpi,present illness,history,hx,chief complaint,cc,complaint,
            reason for visit,
            reason for admission,reason for consultation,reason for referral,presenting complaint,subjective,s,o,
            objective,interval history,hospital course,course in hospital,brief hospital course,course,
            physical examination,physical exam,examination,exam,pe,vital signs,vitals,review of systems,ros,
            laboratory data,laboratory,labs,lab results,laboratory results,results,imaging,diagnostic studies,
            studies,data,tests,investigations,radiology,impression,assessment,assessment and plan,
            assessment & plan,a/p,
            a,a&p,ap,diagnosis,diagnoses,admission diagnosis,admitting diagnosis,admission diagnoses,
            discharge diagnosis,
            discharge diagnoses,final diagnosis,primary diagnosis,secondary diagnosis,secondary diagnoses,
            preoperative diagnosis,postoperative diagnosis,pre-operative diagnosis,post-operative diagnosis,
            principal diagnosis,clinical history,clinical information,clinical data,indication,indications,
            indication for procedure,findings,gross description,gross,microscopic description,microscopic,comment,
            comments,summary,conclusion,conclusions,procedure,procedures,procedures performed,operation,
            medications,current medications,home medications,meds,medication list,discharge medications,
            medications on admission,admission medications,medications on discharge,outpatient medications,
            problem list,problems,active problems,general,general appearance,heent,neck,chest,lungs,heart,
            cardiovascular,respiratory,abdomen,gastrointestinal,genitourinary,musculoskeletal,extremities,skin,
            neurologic,neurological,neuro,psychiatric,psych,constitutional,eyes,ears,nose,throat,endocrine,
            hematologic,condition,condition at discharge,disposition,nursing note,progress note,shift summary,
            shift note,events,events overnight,overnight events,narrative,note,focused assessment,action,response,
            pain,diet,activity,social work,specimen,specimens,specimen submitted,final pathologic diagnosis,
            pathologic diagnosis,addendum,evaluation,interventions,opening,situation,background,presentation,
            technique,complications,history of the present illness,present history,interim history""",
        "past": """past medical history,pmh,pmhx,medical history,past history,past surgical history,psh,
            surgical history,
            past medical and surgical history,previous medical history,significant past medical history,
            past psychiatric history,obstetric history,gynecologic history,birth history,hospitalizations""",
        "family": """family history,fh,fhx,family hx,family medical history,fam hx,famhx,family/social history,
            family and social history,family psychiatric history,maternal history""",
        "social": """social history,sh,shx,social hx,soc hx,habits,occupation,occupational history,
            substance use,lifestyle""",
        "allergies": """allergies,allergy,drug allergies,medication allergies,allergies to medications,
            known allergies,
            food allergies,adverse reactions,allergies/intolerances,intolerances,nkda""",
        "plan": """plan,p,recommendations,recommendation,discharge instructions,instructions,follow-up,
            follow up,followup,
            discharge plan,treatment plan,patient instructions,plan of care,return precautions,discharge planning,
            precautions,education,patient education,follow-up instructions,goals""",
    }.items()
    for heading in headings.replace("\n", " ").split(",")
}
"""Heading, lower case, to topic."""

TABLE = labels.Labels(HEADINGS)


_BLANK = re.compile(r"(?<=\S)[^\S\n]*\n[^\S\n]*\n")


@dataclass(frozen=True)
class Section:
    """Characters `start` to `end` (exclusive) of a note tell of `topic`; the heading is not among them."""

    start: int
    end: int
    topic: str


def find(text: str, low: str) -> list[Section]:
    """The sections of a text, ascending; before the first heading nothing is said to be anybody's."""
    found = labels.find(text, low, TABLE, alone=True)
    return [Section(label.value, _end(text, label), label.meaning) for label in found]


def _end(text: str, label: labels.Label) -> int:
    """Where a section ends: family history and allergies with their paragraph, since what follows may stand under a
    heading that the table does not know."""
    if label.meaning not in ("family", "allergies"):
        return label.end
    blank = _BLANK.search(text, label.value, label.end)
    return blank.end() if blank else label.end


def topic_at(sections: Sequence[Section], starts: Sequence[int], place: int) -> str:
    """The topic of the section that a place lies in; `own` outside of all. `starts` are the sections' starts."""
    from bisect import bisect_right

    i = bisect_right(starts, place) - 1
    return sections[i].topic if i >= 0 and place < sections[i].end else "own"
