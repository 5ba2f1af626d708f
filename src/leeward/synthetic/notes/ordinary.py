"""Ordinary text of notes that holds no identity and no health term, for training: words and whole lines.

Models that have seen nothing but templates full of names and terms find both in any capitalized word.
"""

from __future__ import annotations

_ORDINARY = (
    "Access Activity Advance Airway Ambulation Arrival Assist Attention Awake Balance Bath Bed Belongings "
    "Benefits Bilateral Body Bowel Breakfast Breast Capacity Cardiac Care Catheter Cause Central Change Check "
    "Chest Choice Clear Clinical Coarse Code Color Comfort Compliance Compression Consent Consider Contrast "
    "Cooperation Count Course Daily Decision Deep Definite Degree Delivery Dental Depth Diet Difficulty Dinner "
    "Direct Discussion Disposition Distal Dose Drainage Dressing Duration Early Education Effort Elective "
    "Elevation Energy Enough Entire Episode Equal Every Except Exercise Expect Extension External Eye Face Few "
    "Final Finger First Flat Flexion Floor Fluid Focal Food Foot Four Frequent Full Function Gait Given "
    "Glasses Goal Good Gradual Grip Growth Habits Hand Head Hearing Heart Heat Heavy High Hold Home Hopes Ice "
    "Immediate Improvement Incision Increase Initial Injection Inner Inspection Intact Intake Intensity "
    "Interval Isolated Joint Knee Large Late Lateral Left Length Level Light Limb Limited Line Little Liver "
    "Local Long Loss Low Lower Lunch Lung Main Many Meals Medial Medication Memory Mental Mild Minimal Minor "
    "Mobility Moderate Mood Most Motion Motor Mouth Mucosa Muscle Nails Narrow Neck Nerve Nevertheless New "
    "Next Night Noise Normal Nose Note Numerous Nutrition Occasional Office Oral Other Outcome Outer Overall "
    "Oxygen Pace Partial Peak Pedal Pelvis Perfusion Peripheral Physical Pillow Plain Poor Position Positive "
    "Posture Power Prescription Pressure Prevention Previous Primary Prior Privacy Procedure Profile Prognosis "
    "Progress Proximal Pupils Quality Quiet Range Rate Reaction Recent Recommend Recovery Red Reduced Reflexes "
    "Regular Relief Repeat Reports Rest Rhythm Right Risk Room Routine Safety Same Scalp Second Secretions "
    "Sensation Serum Several Severe Shoulder Simple Single Site Sitting Skin Slight Small Soft Some Sounds "
    "Speech Spine Stable Standing Steady Strength Strong Subjective Sudden Superior Supine Support Surface "
    "Symmetric Systolic Teaching Therapy Thickness Third Three Throat Time Tolerating Tone Tongue Topical "
    "Total Touch Transfer Transport Treatment Trial Two Typical Unable Underlying Unremarkable Until Upper "
    "Urgent Usual Valve Vascular Vein Vision Vital Voice Volume Walking Warm Water Weight While Wide Within "
    "Work Worse Wrist Yearly Yellow Younger Zero"
)
ORDINARY = tuple(_ORDINARY.split())
"""Words that begin a sentence or a heading and name nobody."""

_EPONYMS = (
    "Babinski Kernig Brudzinski Murphy McBurney Rovsing Homan Hoffmann Trendelenburg Glasgow Braden Norton "
    "Karnofsky Gleason Hickman Broca Wells Ranson Mallampati Snellen Ishihara Gram Coombs Papanicolaou "
    "Valsalva Heimlich Epley Kegel Trousseau Kussmaul Wernicke"
)
EPONYMS = tuple(_EPONYMS.split())
"""People of medicine's past in names of signs, scores and devices: not identities."""

_JOBS = (
    "Engineer Accountant Farmer Lawyer Cook Secretary Janitor Musician Plumber Salesman Waitress Carpenter "
    "Programmer Librarian Cashier Journalist Photographer Pilot Soldier Barber Baker Tailor Welder Miner "
    "Realtor Bookkeeper"
)
JOBS = tuple(_JOBS.split())

_VERBS = (
    "asked walked slept vomited fell cried returned arrived agreed declined tolerated needed wanted smiled "
    "used missed coughed drank ate stopped started improved worsened remained felt took tried moved turned "
    "waited joined changed accepted finished signed understood continued complained explained followed kept "
    "liked made met opened went"
)
VERBS = tuple(_VERBS.split())

BANKS: dict[str, str] = {
    "prose": """
We talked for a long time about what to expect over the next few weeks.
He was asked to bring all of his bottles and papers to the next appointment.
She enjoys reading, gardening and long walks with her dog.
The patient was counselled about diet, exercise and safe lifting at home.
All questions were answered, and the patient agrees with this plan.
He was advised to drink plenty of water and to rest for a few days.
I reviewed the records from the last admission with the patient today.
The risks and benefits of the procedure were explained in plain words.
He will keep a diary of his meals and bring it along.
The edges are even, and everything is dry and intact.
She lives alone in a house with stairs and uses the bus for shopping.
There was good {=range of motion} of both arms and legs.
Instructions were given for the use of ice, heat and rest.
The patient understands the need for further follow up as needed.
He plays cards with his friends on most evenings.
Left side is equal to the right side in size and strength.
The image quality was limited by motion of the patient.
The {=scan} was performed with a standard protocol and compared with the prior study.
Sections through the upper portion show normal tissue of both sides.
She was seen by the team in the morning and again before lunch.
The patient was prepared and draped in the usual sterile fashion.
A small opening was made over the middle portion of the area.
He tolerated this well and returned to the recovery area in stable condition.
The patient prefers to wait and see how things go with the new routine.
For the time being we will go on as before.
It was a pleasure to take part in the care of this patient.
The family would like to proceed with the home visit next month.
Results of the last visit were reviewed in detail with him.
The {=examination} of the skin, the head and the neck was within normal limits.
He denies any changes in his work, his habits or his home life.
The patient has had no change in routine since the last visit.
She will call the office with any new questions or problems.
Both knees are equal in shape; strength is five out of five.
The lungs are resonant, and the heart has a regular rate and rhythm.
He drinks two cups of coffee a day and eats out once a week.
The procedure was done with the help of an interpreter.
She would like to try a more conservative approach to begin with.
Plan of care was discussed at length with the team and the patient.
The chart was reviewed for any previous evaluation of this area.
He is to return for further evaluation and treatment as planned.
Vision with correction is good in both eyes.
Time spent face to face was thirty minutes, more than half of it for teaching.
The patient is a reliable historian and comes with a list of his medications.
We recommend regular sleep, a balanced diet and daily exercise.
Use of the new device was shown and practiced today.
He has one dog and two cats and likes to fish.
The tissue is soft and pink, with a smooth and shiny surface.
No further treatment of this area is needed for now.
The patient was encouraged to be active and to go on with her lessons.
She asked about the cost of the test and about her insurance coverage.
Overall the patient is doing well on the present dose.
Nothing new: continue as before without changes.
Head: even and round. Neck: supple, midline. Skin: warm and dry.
General: pleasant, well dressed, in good spirits. Speech: clear.
""",
    "filler": """
{Word} unchanged.
{Word} and {Word} reviewed with the patient.
{Word} as before, {Word} improved.
{Word} {Word} within limits.
{Word}: none. {Word}: good.
{Word} is planned, and {Word} was explained in detail.
{Word} on the {side} is noted.
{Word} for {days} days, then as needed.
We talked about {Word} and about the next steps.
Normal {Word} and {Word}, without changes since last time.
{Word}, {Word} and {Word} were considered.
Please see the {Word} {Word} form.
Grade {days} of 10 today. {Word} at baseline.
{Word} by phone was offered; {Word} declined.
The {Word} Scale was {n}, {Word} Index {value}.
{Word} #{days} closed. {Word} No. {days} open.
{Word} level {value}, {Word} {n}%.
A {Word} test will follow in {days} weeks.
{Word} score {n} of 100; {Word} ratio {value}.
{Word} {days}/10, {Word} {days}+ on the {side}.
Positive {Eponym} sign. {Eponym} negative.
{Eponym} score {n}, {Eponym} scale {days}.
{Eponym}'s sign was absent on the {side}; {Eponym} maneuver done.
{Word} improved since {year}. {Word} last done in {year}.
In {year} and {year} {Word} was normal; none since.
{=temp} {temperature}, max {temperature} overnight. Level {n}%.
Post-op {Word} on day {days}; follow-up {Word}, re-check {n}-hour {Word}.
Our {Word} team and the community clinic were informed by email.
""",
}
"""Lines in the form of `training.BANKS`."""
