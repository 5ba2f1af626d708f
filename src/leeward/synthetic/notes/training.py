"""Templates that the shipped models are trained with. `held_out.py` has others, which training never sees.

A bank is a list of lines; `{slot}` is filled by `slots.py`. Signs before a health slot say whose the term is:
`-` denied, `?` doubted, `~` of the family, `<` over long ago.
"""

from __future__ import annotations

from leeward.synthetic.notes import ordinary

BANKS: dict[str, str] = {
    **ordinary.BANKS,
    "identity": """
Patient Name: {patient}
Name: {patient}
PATIENT: {patient}
Patient: {patient}    MRN: {mrn}
Pt Name: {patient_plain}  DOB: {dob}
MRN: {mrn}
Medical Record Number: {mrn}
MR#: {mrn}
Unit No: {mrn}
Account #: {account}
Acct No. {account}
Date of Birth: {dob}
DOB: {dob}    Sex: {sex_letter}
Age: {years}   Sex: {sex_word}
Gender: {sex_word}
Age/Gender: {years}/{sex_letter}
Age and sex: {years} {sex_letter}
{years} y.o. {sex_letter}
Pt: {last}, {first} ({sex_letter}, {years})
Sex: {sex_letter}
Race: {race}
Ethnicity: {race}
Address: {home}
Street: {street}
City: {city}
Home address: {street}, {place} {zip}
ZIP: {zip}
Phone: {phone}
Home Phone: {phone}  Fax: {fax}
Tel. {phone}
Cell: {phone}
E-mail: {email}
SSN: {ssn}
Social Security Number: {ssn}
Insurance ID: {plan}
Health plan beneficiary number: {plan}
Medicare #: {plan}
Driver's license: {licence}
Facility: {facility}
Hospital: {facility}
Location: {facility}, {place}
PCP: {doctor}
Attending: {signed}
Attending physician: {provider}
Referring Physician: {other_doctor}
Emergency contact: {relative} {other_phone}
Next of kin: {relative} ({other_phone})
Employer: {employer}
""",
    "dates_stay": """
Admission Date: {visit}   Discharge Date: {discharge}
Admitted: {visit}  Discharged: {discharge}
Date of admission: {visit}
DATE OF ADMISSION: {visit}
Admit date {visit}
""",
    "date_visit": """
Date of visit: {visit}
Date: {visit}
Visit date: {visit}
Date of service: {visit}
DOS: {visit}
Seen on {visit}
Encounter date: {visit}
""",
    "opening": """
{mister} is a {age} {race} {sex} who presents with {symptoms}.
{patient_plain} is a {age} {sex} with a history of {diseases} who was admitted to {facility} on {visit} with {symptoms}.
This is a {age} {sex} complaining of {symptoms} for the past {days} days.
The patient is a {age} {race} {sex} with {disease} presenting with {symptom} and {symptom}.
Patient is a {age} {sex} seen for {symptom}. {He} lives in {place}.
{mister} was seen at {facility} on {visit} for evaluation of {symptom}.
{age} {sex} with PMH of {diseases} c/o {symptoms} x {days} days.
{He} is a {age} {sex} transferred from {other_facility} for management of {disease}.
Pt is a {age} {sex} w/ {symptoms}.
{years}{sex_letter} with {symptom}. {years} {sex_letter}, {disease}.
This {age} {sex} was referred by {other_doctor} for {symptom}.
{first} is a {age} {sex} brought in by {his} mother for {symptoms}.
Feeling {symptoms}. Visited on {visit}.
{patient_plain}, a {age} {race} {sex}, came to clinic today with {symptom}.
The {age} {sex} is complaining of {symptoms}.
{mister}'s daughter is {age}. Having {symptoms}.
Mrs. {last}'s {symptom} began {days} days ago.
""",
    "story": """
{mister} reports {symptom} since {short_date}.
{mister} denies {-symptoms/or}.
{He} has had {symptom} for {days} weeks and now also {symptom}.
{He} was treated with {drug} {dose} {often} with some relief.
The patient was last seen by {other_doctor} on {date}.
No {-symptom} or {-symptom}.
Since {short_date} {he} has noticed {symptom}.
{He} went to {other_facility} on {date}, where {test} was done.
{mister}'s wife, {relative}, called {doctor} at {other_phone}.
Symptoms started after a trip to {other_city} and include {symptoms}.
{He} was found to have {disease} on {test}.
Denies {-symptom}, {-symptom} or {-symptom}.
There is concern for {?disease}.
{He} works at {employer} and missed {n} days because of {symptom}.
{first} states that the {symptom} is worse at night.
{first}'s {symptom} is unchanged.
{last}'s {symptom} has not come back.
{first} feels better, says {relative}.
{stranger} saw {first} for {symptom}.
{first} {verb}. {last} {verb} and {verb}.
{Word} {verb} again; {first} {verb} since.
{mister} {verb} on the ward. {first} {verb} at {time}.
We {verb} {first}. They {verb} {relative} and {stranger}.
{first}'s {Word} is fine. {last}'s {test} is back.
{symptom} persisted. {disease} {verb}. {first} {verb}.
The note of {stranger} says that {first} {verb}.
Called {first} at {phone}; {relative} {verb}.
{test} may be needed. {drug} may be tried. {first} may go home.
We asked {first} about {symptom}; {first} recalls {symptom}.
Message for {patient_plain}: take {drug}.
Please tell {first} that {test} is normal.
Spoke to {last} about {drug}.
{last} agrees. {first} is aware of the risks.
{relative} helps {first} at home.
According to {relative}, {first} had {symptom}.
A friend, {stranger}, brought {first} in.
I spoke with {his} daughter {relative} at {other_phone}.
{mister} was evaluated by {other_doctor} in {short_date} for {disease}.
{He} has not had {-symptom}.
The patient's {symptom} improved with {drug}.
{mister} moved here from {place} in {short_date}.
Patient without {-symptoms/or}.
{last} has been taking {drug} and {drug}.
{other_doctor} from {other_facility} was consulted.
Possible {?disease} was discussed.
""",
    "past": """
{disease}
{diseases}.
1. {disease}  2. {disease}  3. {disease}
Significant for {diseases}.
{disease}, diagnosed {short_date}.
{disease} diagnosed in {year}.
{disease} ({year}), {disease} since {year}.
History of {disease} and {disease}.
No history of {-disease} or {-disease}.
Childhood {<disease}, resolved.
{disease} since {date}, followed by {other_doctor}.
{disease} treated at {other_facility}.
Remote history of {<disease} in childhood, now resolved.
""",
    "family": """
Mother had {~disease}. Father had {~disease}.
Mother with {~disease}, father with {~diseases}.
Family history of {~disease} and {~disease}.
Father died of {~disease} at age 62.
Brother has {~disease}; sister is healthy.
No family history of {-disease}.
Positive for {~disease} in {his} grandmother.
{His} sister {relative} has {~disease}.
Maternal aunt with {~disease}.
""",
    "social": """
Lives with {his} wife {relative} in {place}.
Works at {employer}. No pets.
Retired teacher. Two children.
{Job}. Married.
{Job}. No travel.
Retired {Job}.
Married, lives at {street}.
Denies tobacco, alcohol or drugs.
Former employee of {employer}, retired {n} years ago.
{He} lives in {city} with {his} son {relative}.
Contact: {relative}, {other_phone}.
{He} drives a truck, plate {plate}.
Student at {other_facility}.
""",
    "drugs": """
{drug} {dose} {often}
{drug} {dose} PO {often}, {drug} {dose} {often}.
1. {drug} {dose} {often} 2. {drug} {dose} {often} 3. {drug}
{drugs}.
Continue {drug} {dose} {often}.
{drug} {dose} by mouth {often}
""",
    "allergies": """
{-drug}.
NKDA.
{-drug} (reaction unknown).
Intolerant of {-drug}.
""",
    "exam": """
{=BP} {pressure}, {=HR} {pulse}, {=temp} {temperature}.
Blood flow good, {=BP} {pressure}, {=HR}: {pulse}.
{=Vitals}: T {temperature} P {pulse} {=BP} {pressure} {=RR} 16.
Lungs clear. Heart regular. Abdomen soft.
General: {age} {sex} in no acute distress.
No {-symptom}. No {-symptom}.
He shows {symptom}.
Neuro: alert and oriented. {=Glasgow Coma Scale} 15.
Both ears clean. Height {pulse} inches.
Extremities without {-symptom}.
Neck supple. Babinski downgoing.
""",
    "results": """
{test} was unremarkable.
{test} on {date} showed {disease}.
{test} {value}, {test} {value}.
{test}: {value} ({n})
{test} was negative for {-disease}.
{test} performed at {other_facility} on {short_date}.
{test} pending. Accession {accession}.
{=WBC} {value}, {=Hgb} {value}.
Results of {test} faxed to {fax}.
""",
    "plan": """
Start {drug} {dose} {often}.
1. {disease}: continue {drug}. 2. {disease}: check {test}.
{disease}. Will order {test}.
Rule out {?disease}. Obtain {test}.
Likely {?disease}. Follow up with {other_doctor} on {next}.
Follow up at {facility} on {next}.
Return to clinic on {next} or call {other_phone}.
Suspected {?disease}; {test} ordered.
{disease}, stable on {drug}.
Refer to {other_doctor} at {other_facility}.
{mister} will call {doctor} at {other_phone} if {?symptom} develops.
The plan was discussed with {mister} and {his} wife.
Instructions were e-mailed to {email}.
See {url} for the record. Portal login from {ip}.
Cannot exclude {?disease}.
Discussed with {stranger} by phone.
""",
    "course": """
{mister} was started on {drug} and {his} {symptom} resolved.
The {symptom} improved on hospital day {days}.
{other_doctor} of cardiology saw the patient and advised {test}.
On {short_date} {he} developed {symptom}; {test} showed {disease}.
{He} remained free of {-symptom}.
{mister} received {drug} {dose} for {disease}.
A monitor, serial number {device}, was given.
{test} ruled out {-disease}.
{He} was transferred to {other_facility}.
Course was complicated by {disease}.
No evidence of {-disease}.
""",
    "sign": """
{signed}
Dictated by: {signed}
Electronically signed by {signed} on {signing}
Seen by {doctor} on {visit}.
cc: {other_doctor}, {other_facility}
{signed}  Pager {pager}
Signed: {doctor}
D: {signing} T: {next}
{doctor}, {facility}
Dictated {signing}, transcribed {next} by {stranger}
License {licence}
""",
    "specimen": """
Specimen: {side} breast, {=biopsy}. Received {signing}.
Accession No: {accession}
Specimen #: {accession}  Collected: {signing}
Case number {accession}, submitted by {doctor}.
Specimen received from {facility} labelled "{patient_plain}".
""",
    "gross": """
Received in formalin labelled with the patient's name, {patient_plain}, is a tissue fragment of {size}.
The specimen, labelled {last}, measures {size}.
Labelled "{last}, {first}", {side} {Word}, {size}.
{Word} with {Word} attached, {size}, marked {last}.
Container labelled {mrn} holds three cores.
The margin is inked. Sections are submitted in cassettes A1 to A{days}.
""",
    "micro": """
Sections show {disease}. No {-disease} is seen.
Consistent with {disease}.
Features suggest {?disease}.
Margins free of {-disease}.
Compared with prior {accession} of {date}.
Slides reviewed with {other_doctor}, who concurs.
""",
    "shift": """
{time} Pt resting, c/o {symptom}. {drug} {dose} given.
{time} Pt denies {-symptom}. {doctor} notified.
{time} {mister} ambulated in hall. No {-symptom}.
Received pt from {nurse} at {time}.
{time} Family at bedside: wife {relative}, tel {other_phone}.
{=Vitals} {pressure}, {pulse}, {temperature} F at {time}.
IV pump {device} alarmed at {time}.
Report given to {nurse} at {time}.
Pt reports {symptom}, medicated with {drug}.
{first} slept well. Call light in reach.
{last} up in chair. {Word} tolerated.
{first} ate half of lunch. {Word} given.
Pt. {last} asleep, {Word} at bedside.
{first} asks for {drug}.
{time} {first} c/o {symptom}, {last} repositioned.
{time} {test} drawn and sent.
Linen changed by {nurse}. No {-symptom}.
""",
    "question": """
What dose of {drug} is right for a {age} {sex} with {disease}?
Pt {short_name} seen at {facility} on {visit}, MRN {mrn}: can {drug} be given with {drug}?
Is {test} needed for {patient_plain} (DOB {dob}), {age} {sex} with {symptom}?
Treatment of {disease} in a {age} {race} {sex}, {short_name}, from {city}?
Guidance for {patient_plain}, ID {mrn}, who has {disease} and takes {drug}?
Can I prescribe {drug} to a {age} {sex} with {disease} diagnosed in {year}?
{drug} vs. {drug} in {disease}, {short_name}, seen by {doctor} at {facility} on {date}?
""",
}

Step = tuple[str, tuple[str, ...], int, int, float, str]
"""Bank, headings (empty: none), fewest and most lines, chance to be there, what stands between lines."""

_CC = ("Chief Complaint", "CC", "Reason for Visit", "CHIEF COMPLAINT")
_HPI = ("History of Present Illness", "HPI", "HISTORY OF PRESENT ILLNESS", "History", "Subjective", "HX")
_PMH = ("Past Medical History", "PMH", "PAST MEDICAL HISTORY", "Medical history")
_FH = ("Family History", "FH", "FAMILY HISTORY", "FHX", "FHx")
_SH = ("Social History", "SH", "SOCIAL HISTORY", "SHX")
_MEDS = ("Medications", "MEDICATIONS", "Current Medications", "Meds", "Discharge Medications")
_ALL = ("Allergies", "ALLERGIES", "Drug allergies")
_PE = ("Objective", "PE", "OBJECTIVE DATA", "General")
_LAB = ("RESULTS", "Data of the day", "Diagnostic Studies", "Data")
_AP = ("Assessment and Plan", "A/P", "ASSESSMENT AND PLAN", "Assessment", "Impression", "Plan")

KINDS: dict[str, tuple[Step, ...]] = {
    "discharge summary": (
        ("identity", (), 3, 8, 1.0, "\n"),
        ("dates_stay", (), 1, 1, 0.9, "\n"),
        ("opening", _HPI, 1, 2, 1.0, " "),
        ("story", (), 1, 4, 0.8, " "),
        ("filler", (), 1, 3, 0.6, " "),
        ("prose", (), 1, 5, 0.8, " "),
        ("past", _PMH, 1, 3, 0.8, "\n"),
        ("family", _FH, 1, 2, 0.6, " "),
        ("social", _SH, 1, 2, 0.6, " "),
        ("exam", _PE, 1, 3, 0.6, " "),
        ("results", _LAB, 1, 3, 0.6, " "),
        ("course", ("Hospital Course", "HOSPITAL COURSE", "Course"), 2, 4, 0.9, " "),
        ("drugs", _MEDS, 1, 3, 0.8, "\n"),
        ("plan", ("Disposition", "Follow-up", "Discharge Plan"), 1, 3, 0.8, " "),
        ("sign", (), 1, 2, 0.9, "\n"),
    ),
    "visit note": (
        ("identity", (), 1, 5, 0.8, "\n"),
        ("date_visit", (), 1, 1, 0.8, "\n"),
        ("opening", (*_CC, *_HPI), 1, 1, 1.0, " "),
        ("story", _HPI, 2, 5, 1.0, " "),
        ("filler", (), 1, 3, 0.6, " "),
        ("prose", (), 1, 5, 0.8, " "),
        ("past", _PMH, 1, 2, 0.7, "\n"),
        ("family", _FH, 1, 2, 0.6, " "),
        ("social", _SH, 1, 2, 0.5, " "),
        ("allergies", _ALL, 1, 1, 0.5, " "),
        ("drugs", _MEDS, 1, 2, 0.6, "\n"),
        ("exam", _PE, 1, 3, 0.7, " "),
        ("filler", (), 1, 3, 0.5, "\n"),
        ("plan", _AP, 2, 4, 1.0, " "),
        ("sign", (), 1, 2, 0.8, "\n"),
    ),
    "pathology report": (
        ("identity", (), 2, 6, 1.0, "\n"),
        ("specimen", (), 1, 2, 1.0, "\n"),
        ("opening", ("Clinical History", "CLINICAL INFORMATION", "Clinical Data"), 1, 1, 0.8, " "),
        ("gross", ("Gross Description", "GROSS", "Gross"), 1, 2, 1.0, " "),
        ("micro", ("Microscopic Description", "MICROSCOPIC", "Diagnosis", "FINAL DIAGNOSIS"), 2, 3, 1.0, " "),
        ("filler", (), 1, 3, 0.6, " "),
        ("prose", (), 1, 5, 0.8, " "),
        ("results", ("Ancillary Studies", "Comment"), 1, 2, 0.5, " "),
        ("sign", (), 1, 2, 1.0, "\n"),
    ),
    "nursing note": (
        ("identity", (), 0, 3, 0.6, "\n"),
        ("date_visit", (), 1, 1, 0.9, "\n"),
        ("shift", (), 3, 8, 1.0, "\n"),
        ("filler", (), 1, 3, 0.6, " "),
        ("prose", (), 1, 5, 0.8, " "),
        ("story", (), 0, 2, 0.5, " "),
        ("drugs", _MEDS, 1, 2, 0.3, "\n"),
        ("sign", (), 0, 1, 0.5, "\n"),
    ),
    "clinical question": (("question", (), 1, 1, 1.0, " "),),
}
"""Kinds of notes, as sections in order."""

WEIGHTS: dict[str, int] = {
    "discharge summary": 30,
    "visit note": 35,
    "pathology report": 12,
    "nursing note": 17,
    "clinical question": 6,
}
"""How often each kind is drawn."""
