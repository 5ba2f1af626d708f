"""Templates that no shipped model was trained with: other phrasings of the four kinds, and four kinds of their own.

Same signs as in `training.py`; no line stands in both (a test compares them).
"""

from __future__ import annotations

from leeward.synthetic.notes.training import Step

BANKS: dict[str, str] = {
    "header": """
RE: {patient}
Re: {patient_plain} (DOB {dob})
Patient {patient}, {sex_word}, born {dob}
Name/MRN: {patient} / {mrn}
Hosp No. {mrn}
Chart number {mrn}
Record no. {mrn}
Visit account {account}
Birthdate {dob}
Born: {dob}
Patient's phone: {phone}
Mobile {phone}
Telephone number: {phone}
Residence: {home}
Mailing address: {home}
Residing at {street}, {place}, {zip}
Soc. Sec. No. {ssn}
Member ID {plan}
Policy number: {plan}
Subscriber no. {plan}
Email: {email}
Contact e-mail {email}
Family physician: {doctor}
Consultant: {signed}
Admitting physician - {provider}
Contact person: {relative}, phone {other_phone}
Site: {facility}
Age/Sex: {years} / {sex_letter}
Sex/Age: {sex_letter} / {years}
Race/Ethnicity: {race}
Driver license no. {licence}
Postal code {zip}
""",
    "when": """
Admit: {visit}
Seen in the emergency department on {visit}
Seen and examined {visit}
Date of consultation: {visit}
Visit on {visit}
Service date {visit}
Today is {visit}.
ADMITTED ON {visit}
""",
    "begin": """
Thank you for asking me to see {mister}, a {age} {sex} with {symptom} and {symptom}.
I had the pleasure of seeing {patient_plain} on {visit}. As you know, {he} is a {age} {race} {sex} with {disease}.
{age} {race} {sex} presents to the ED with {symptoms}.
{patient_plain} arrived by ambulance from {place} with {symptom}.
{mister}, {years} years old, has been troubled by {symptom} for {days} months.
The pt, a {age} {sex} known to have {diseases}, reports new {symptom}.
Admitted on {visit}, patient is a {age} {sex}. Having {symptoms}.
{first} {last} is our {age} {sex} patient followed for {disease}.
Evaluation of {mister}, {age} {sex}, because of {symptom}.
In short, a {age} {sex} in whom {symptoms} developed over {days} days.
Indication: {symptom} in a {age} {sex}.
Caller is {relative} about {his} father {patient_plain}, who has {symptom}.
""",
    "narrative": """
{He} first noted {symptom} around {short_date}, and then {symptom}.
{He} does not have {-symptom}, nor any {-symptom}.
There was no complaint of {-symptoms/or}.
{mister} tells me that {drug} helps with {his} {symptom}.
On {date}, {other_doctor} performed {test} at {other_facility}.
{He} has been on {drug} since {short_date} for {disease}.
We reviewed {test} obtained at {other_facility} on {date}.
{first}'s {symptom} has been getting worse.
The husband, {relative} (cell {other_phone}), adds that {symptom} comes at night.
Negative for {-symptom}, {-symptom}.
{mister} resides in {place} and is employed by {employer}.
Questionable {?disease} was raised by {other_doctor}.
Dr. {stranger} had treated {him} for {disease} while {he} lived in {other_city}.
At {time} {he} complained of {symptom} and got {drug}.
{He} is also bothered by {symptoms}.
{last}'s chart from {other_facility} mentions {disease}.
Absence of {-symptom} was confirmed.
""",
    "background": """
Known {disease}, {disease}.
PMHx: {diseases}.
{He} carries diagnoses of {disease} and {disease}.
Also {disease} (followed at {other_facility} by {other_doctor}).
Never had {-disease}.
{disease} diagnosed on {date}.
Had {<disease} as a child, which resolved.
""",
    "kin": """
{His} father suffered from {~disease} and {his} mother from {~disease}.
FHx: mother - {~disease}; brother - {~disease}.
{~disease} in {his} paternal grandfather.
{His} brother {relative} was diagnosed with {~disease}.
Family members have no {-disease}.
Sister and aunt: {~disease}.
""",
    "living": """
{He} shares a home with {relative} at {street}.
Occupation: clerk at {employer}. Does not smoke.
Widowed; daughter {relative} lives in {other_city}.
Never smoked, rarely drinks.
Transport: own car, license plate {plate}.
Resident of {other_facility} since {short_date}.
""",
    "regimen": """
Takes {drug} {dose} {often} and {drug}.
On {drug}, {drug} and {drug}.
{drug} {dose}, {often}
Home meds include {drugs}.
Stopped {<drug} years ago.
""",
    "signs": """
Pressure {pressure}, {=pulse} {pulse}, {=temperature} {temperature}.
{He} looked well. Chest clear, abdomen benign.
There is no {-symptom}.
Today there was {symptom}.
Cranial nerves intact. Gait steady.
""",
    "studies": """
{test} came back at {value}.
{test} on {date}: {disease}.
{test}, {test} and {test} were normal.
{test} did not show {-disease}.
Order {accession}: {test}.
We will send {test} to {other_facility}, fax {fax}.
{=Troponin} {value}, {=lactate} {value}.
""",
    "opinion": """
In summary {mister} has {disease}; I suggest {drug} {dose} {often}.
My impression is {disease}. {test} may help.
This may represent {?disease}.
Differential includes {?disease} and {?disease}.
We stopped {<drug} and began {drug}.
I will see {him} again on {next}.
Please call {other_doctor} at {other_phone} with questions.
{mister} was asked to return on {next} if {?symptom} occurs.
{disease} is under control with {drug}.
Results will be mailed to {email}.
Appointment with {other_doctor}, {other_facility}, {next}.
I doubt {?disease}.
Images are at {url} (viewed from {ip}).
""",
    "close": """
Sincerely, {signed}
Reported by {signed}, {signing}
Attending: {doctor}
Authenticated by {provider} {signing}
Copy to: {other_signed}
Beeper {pager}. {doctor}
{nurse} {time}
With kind regards, {doctor}, {facility}
Physician licence no. {licence}
""",
    "tissue": """
Lab no. {accession}. Tissue from the {side} colon, taken {signing} by {doctor}.
{accession} received {signing} from {facility}.
Part A, designated {last}: a piece of tan tissue, {size}.
A jar marked {patient_plain} with number {mrn} contains tissue measuring {size}.
Under the microscope {disease} without {-disease}.
The findings fit {disease}.
Previous {=biopsy} {accession} ({date}) was reviewed with {other_doctor}.
Suspicious for {?disease}.
""",
    "ward": """
{time}: {mister} complaining of {symptom}, {drug} {dose} administered.
{time}: no {-symptom}; {doctor} informed.
Handover from {nurse} {time}. Patient {last} calm.
{relative} (son) visited, call back on {other_phone}.
{time}: {test} collected by {nurse}.
{first} refused breakfast, says {he} has {symptom}.
Pump no. {device} replaced at {time}.
{time}: comfortable, free of {-symptom}.
""",
    "images": """
Comparison: {test} of {date}.
Findings: {disease}. No {-disease}.
Technique: axial images, {size}.
No evidence for {-disease} or {-disease}.
Impression: {disease}, possible {?disease}.
Findings were phoned to {other_doctor} at {time}.
""",
    "call": """
{relative} phoned from {other_phone} at {time}.
Wants refill of {drug} {dose} sent to {other_facility}.
{mister} says {symptom} is back, denies {-symptom}.
Left message for {first} at {phone}.
Told to come in on {next}.
Message taken by {nurse}.
""",
}

_STORY = ("Present complaint", "INTERVAL HISTORY", "Background", "Narrative", "Presentation")
_PAST = ("Prior illnesses", "Problem List", "PAST HISTORY")
_KIN = ("Family Hx", "Familial history", "FAMILY MEDICAL HISTORY")
_LIVING = ("Social Hx", "Personal history", "Lifestyle")
_DRUGS = ("Home Medications", "Drug list", "CURRENT DRUGS")
_SIGNS = ("At the bedside", "O/E", "PHYSICAL FINDINGS")
_STUDIES = ("Investigations", "TESTS", "Work-up")
_OPINION = ("Recommendations", "OPINION", "Summary", "Conclusion")

KINDS: dict[str, tuple[Step, ...]] = {
    "discharge summary": (
        ("header", (), 3, 8, 1.0, "\n"),
        ("when", (), 1, 1, 0.9, "\n"),
        ("begin", _STORY, 1, 1, 1.0, " "),
        ("narrative", (), 2, 5, 1.0, " "),
        ("background", _PAST, 1, 2, 0.7, "\n"),
        ("kin", _KIN, 1, 2, 0.6, " "),
        ("living", _LIVING, 1, 2, 0.5, " "),
        ("studies", _STUDIES, 1, 2, 0.6, " "),
        ("regimen", _DRUGS, 1, 2, 0.7, "\n"),
        ("opinion", _OPINION, 1, 3, 1.0, " "),
        ("close", (), 1, 2, 1.0, "\n"),
    ),
    "visit note": (
        ("header", (), 1, 4, 0.8, "\n"),
        ("when", (), 1, 1, 0.9, "\n"),
        ("begin", _STORY, 1, 1, 1.0, " "),
        ("narrative", (), 2, 5, 1.0, " "),
        ("background", _PAST, 1, 2, 0.6, "\n"),
        ("kin", _KIN, 1, 2, 0.6, " "),
        ("signs", _SIGNS, 1, 3, 0.7, " "),
        ("opinion", _OPINION, 2, 4, 1.0, " "),
        ("close", (), 1, 2, 0.9, "\n"),
    ),
    "pathology report": (
        ("header", (), 2, 5, 1.0, "\n"),
        ("tissue", ("Material", "REPORT", "Slides"), 3, 5, 1.0, " "),
        ("opinion", _OPINION, 1, 1, 0.5, " "),
        ("close", (), 1, 2, 1.0, "\n"),
    ),
    "nursing note": (
        ("when", (), 1, 1, 0.9, "\n"),
        ("ward", (), 3, 7, 1.0, "\n"),
        ("narrative", (), 0, 2, 0.5, " "),
        ("close", (), 0, 1, 0.5, "\n"),
    ),
    "consult letter": (
        ("header", (), 2, 5, 1.0, "\n"),
        ("when", (), 1, 1, 0.7, "\n"),
        ("begin", (), 1, 1, 1.0, " "),
        ("narrative", (), 3, 6, 1.0, " "),
        ("kin", (), 1, 2, 0.7, " "),
        ("living", (), 1, 2, 0.6, " "),
        ("signs", (), 1, 2, 0.6, " "),
        ("opinion", (), 2, 4, 1.0, " "),
        ("close", (), 1, 2, 1.0, "\n"),
    ),
    "emergency note": (
        ("header", (), 1, 4, 1.0, "\n"),
        ("when", (), 1, 1, 1.0, "\n"),
        ("begin", _STORY, 1, 1, 1.0, " "),
        ("narrative", (), 2, 4, 1.0, " "),
        ("background", _PAST, 1, 1, 0.7, "\n"),
        ("regimen", _DRUGS, 1, 1, 0.6, " "),
        ("signs", _SIGNS, 1, 2, 0.9, " "),
        ("studies", _STUDIES, 1, 3, 0.9, " "),
        ("opinion", _OPINION, 1, 2, 1.0, " "),
        ("close", (), 1, 1, 1.0, "\n"),
    ),
    "radiology report": (
        ("header", (), 2, 5, 1.0, "\n"),
        ("when", (), 1, 1, 1.0, "\n"),
        ("begin", ("Indication",), 1, 1, 0.6, " "),
        ("images", (), 2, 5, 1.0, "\n"),
        ("close", (), 1, 2, 1.0, "\n"),
    ),
    "telephone note": (
        ("header", (), 0, 2, 0.7, "\n"),
        ("when", (), 1, 1, 0.8, "\n"),
        ("call", (), 2, 5, 1.0, " "),
        ("close", (), 0, 1, 0.6, "\n"),
    ),
}

WEIGHTS: dict[str, int] = {
    "discharge summary": 20,
    "visit note": 20,
    "pathology report": 10,
    "nursing note": 10,
    "consult letter": 14,
    "emergency note": 12,
    "radiology report": 8,
    "telephone note": 6,
}
