"""Templates that nobody looks at: neither models nor rules are changed after their errors here.

`held_out.py` is unknown to training, but its errors were read and their causes mended. What is measured on these, in
other kinds of documents again, is what to expect on notes that nobody has seen. Identities are those held out.
"""

from __future__ import annotations

from leeward.synthetic.notes.training import Step

BANKS: dict[str, str] = {
    "top": """
To whom it may concern, about {patient_plain}, date of birth {dob}.
Client: {patient}
Our ref: {mrn}. Your patient {patient_plain}.
File {mrn} - {patient}
Regarding {mister}, insured under {plan}
Person transported: {patient_plain}, {age} {sex}
Call from {street}, {city}
Pick-up address {home}
Beneficiary {patient_plain}, policy {plan}, claim account {account}
Patient identification: {patient} * {dob} * {sex_letter}
Reachable under {phone} or {email}
National number {ssn}
Permit {licence}, vehicle {plate}
Practice: {facility}, {place}, {zip}
Legal guardian: {relative}, {other_phone}
""",
    "day": """
Session of {visit}
{visit}: seen at {facility}
Attended our clinic on {visit}.
Treatment on {visit}
Report for visit {visit}
Examined by {doctor} on {visit}
""",
    "tell": """
I met {mister}, who is a {age} {sex}, because of {symptom}.
The crew found a {age} {race} {sex} with {symptoms}.
{first} came with {his} aunt {relative} and told us about {symptom}.
{mister} reports {symptom}, {symptom} and little wish for company.
Since the accident in {short_date} there is {symptom}.
{patient_plain} has had {disease} for many years.
{relative} worries that {first} is alone too much.
{doctor} asked us to look after {mister}.
There has been neither {-symptom} nor {-symptom}.
{He} said no to questions about {-symptom} and {-symptom}.
The work at {employer} was given up in {short_date}.
{last} takes {drug} {dose} {often}.
{He} was given {drug} by the crew at {time}.
Before that, {other_doctor} had seen {him} at {other_facility} on {date}.
Some {symptom} remains, the {symptom} is gone.
The journey from {other_city} took two hours.
Neighbour {stranger} opened the door.
A sample was sent for {test} and {test}.
""",
    "line": """
In the family: {~disease} (mother), {~disease} (father).
{His} late father had {~disease}.
Siblings: one sister with {~disease}.
Already known: {disease}, {disease}.
As a small child {he} went through {<disease}.
Not known to have {-disease}.
Medicines: {drugs}
{drug}, {drug}
""",
    "view": """
We think of {?disease}.
{?disease} has to be considered.
It is unclear whether {?disease} is present.
There is nothing to suggest {-disease}.
{test} of {date} had shown {disease}.
{test} excluded {-disease}.
We agreed on {drug} {dose} {often} for {disease}.
We meet again on {next}.
Next session {next}, {time}, with {other_doctor}.
Questions go to {other_doctor}, telephone {other_phone}, fax {fax}.
The bill goes to {relative}, {street}, {city} {zip}.
More about the course under {url}.
The device bears the number {device}.
""",
    "end": """
Yours faithfully, {signed}
{signed}, {facility}
{provider}, physiotherapist
written by {stranger}, {signing}
Crew: {stranger}, {stranger}
c.c. {other_signed}
""",
}

KINDS: dict[str, tuple[Step, ...]] = {
    "ambulance report": (
        ("top", (), 2, 4, 1.0, "\n"),
        ("day", (), 1, 1, 0.8, "\n"),
        ("tell", ("Situation", "WHAT HAPPENED"), 3, 6, 1.0, " "),
        ("line", ("Known before",), 1, 3, 0.8, "\n"),
        ("end", (), 1, 1, 1.0, "\n"),
    ),
    "therapy note": (
        ("top", (), 1, 2, 1.0, "\n"),
        ("day", (), 1, 1, 1.0, "\n"),
        ("tell", ("Talk", "Course of the session"), 3, 7, 1.0, " "),
        ("view", ("What next",), 1, 3, 1.0, " "),
        ("end", (), 1, 1, 0.9, "\n"),
    ),
    "expert letter": (
        ("top", (), 2, 5, 1.0, "\n"),
        ("day", (), 1, 1, 0.7, "\n"),
        ("tell", (), 3, 6, 1.0, " "),
        ("line", (), 2, 4, 1.0, " "),
        ("view", (), 3, 5, 1.0, " "),
        ("end", (), 1, 2, 1.0, "\n"),
    ),
}

WEIGHTS: dict[str, int] = {"ambulance report": 30, "therapy note": 30, "expert letter": 40}
