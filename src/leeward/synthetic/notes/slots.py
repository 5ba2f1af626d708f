"""What a template's slots write: identities, quasi-identifiers, health terms and numbers that are neither."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass

from leeward.synthetic.notes.draft import Dice, Draft
from leeward.synthetic.notes.people import (
    DATE_STYLES,
    OLD,
    SHORT_DATE_STYLES,
    Case,
    Person,
    Pool,
    person,
    phone,
)
from leeward.synthetic.notes.terms import Terms
from leeward.texts import list_words, read_parts

WORDS = {name: list_words(text) for name, text in read_parts("leeward.synthetic.notes", "words.txt").items()}
"""`ordinary` words begin a sentence or a heading and name nobody; `eponyms` are people of medicine's past in names of
signs, scores and devices: not identities; `jobs`, `verbs`."""


@dataclass(frozen=True)
class Scene:
    """What slots write from."""

    case: Case
    pool: Pool
    terms: Terms


Slot = Callable[[Draft, Scene, Dice], None]
CONTEXTS = {"-": "negated", "?": "uncertain", "~": "family", "<": "historical"}
"""Signs before a health slot."""


def health_slot(name: str) -> Slot | None:
    """The slot of `symptom`, `-symptoms`, `?disease`, `~diseases/or` …; None if the name is no health slot.

    A plural writes two to four terms, joined by commas and the word after the slash (`and`).
    """
    context = CONTEXTS.get(name[:1], "")
    bare, _, joint = name[1 if context else 0 :].partition("/")
    category = bare.removesuffix("s")
    if category not in ("symptom", "disease", "test", "drug"):
        return None
    many = bare.endswith("s")

    def one(draft: Draft, scene: Scene, dice: Dice) -> None:
        concept, text = scene.terms.draw(category, dice)
        draft.term(text, category, concept, context)

    def several(draft: Draft, scene: Scene, dice: Dice) -> None:
        n = dice.between(2, 4)
        last = f" {joint or 'and'} "
        comma = dice.chance(0.4)
        for i in range(n):
            if i:
                draft.put(", " if i < n - 1 else ("," + last if comma and n > 2 else last))
            one(draft, scene, dice)

    return several if many else one


def literal_slot(name: str) -> Slot | None:
    """The slot of `=pulse`: a health term that belongs to the template, where the lexicon has it."""
    if not name.startswith("="):
        return None
    text = name[1:]

    def slot(draft: Draft, scene: Scene, dice: Dice) -> None:
        found = scene.terms.named(text)
        if found is None:
            draft.put(text)
        else:
            draft.mark(text, "HMI", found[1], found[0])

    return slot


def _name_forms(who: Person) -> tuple[str, ...]:
    return (
        f"{who.first} {who.last}",
        f"{who.first} {who.last}",
        f"{who.first} {who.middle}. {who.last}",
        f"{who.last}, {who.first}",
        f"{who.last}, {who.first} {who.middle}",
        f"{who.last.upper()}, {who.first.upper()}",
        f"{who.first.upper()} {who.last.upper()}",
        f"{who.first} {who.middle} {who.last}",
    )


def _full(who: Callable[[Case], Person], forms: int = 8) -> Slot:
    def slot(draft: Draft, scene: Scene, dice: Dice) -> None:
        draft.mark(_name_forms(who(scene.case))[dice.below(forms)], "EID", "name")

    return slot


def _text(category: str, text: Callable[[Scene, Dice], str]) -> Slot:
    def slot(draft: Draft, scene: Scene, dice: Dice) -> None:
        draft.mark(text(scene, dice), "EID", category)

    return slot


def _quasi(category: str, text: Callable[[Scene, Dice], str]) -> Slot:
    def slot(draft: Draft, scene: Scene, dice: Dice) -> None:
        draft.mark(text(scene, dice), "QID", category)

    return slot


def _plain(text: Callable[[Scene, Dice], str]) -> Slot:
    def slot(draft: Draft, scene: Scene, dice: Dice) -> None:
        draft.put(text(scene, dice))

    return slot


def _age(draft: Draft, scene: Scene, dice: Dice) -> None:
    age = scene.case.age
    text = dice.pick(
        (f"{age}-year-old", f"{age} year old", f"{age} y/o", f"{age}yo", f"{age} yo", f"{age}-year old")
    )
    draft.mark(text, "EID" if age > OLD else "QID", "age")


def _years(draft: Draft, scene: Scene, dice: Dice) -> None:
    age = scene.case.age
    draft.mark(str(age), "EID" if age > OLD else "QID", "age")


def _sex(draft: Draft, scene: Scene, dice: Dice) -> None:
    age, female = scene.case.age, scene.case.patient.person.female
    adult = ("woman", "female", "lady") if female else ("man", "male", "gentleman")
    child = ("girl", "female") if female else ("boy", "male")
    draft.mark(dice.pick(child if age < 16 else adult), "QID", "sex")


def _pronoun(female: str, male: str) -> Slot:
    return _plain(lambda scene, dice: female if scene.case.patient.person.female else male)


def _mister(draft: Draft, scene: Scene, dice: Dice) -> None:
    who = scene.case.patient.person
    draft.put(
        dice.pick(("Ms. ", "Mrs. ", "Ms ", "Miss ")) if who.female else dice.pick(("Mr. ", "Mr. ", "Mr "))
    )
    draft.mark(who.last, "EID", "name")


def _doctor(who: Callable[[Case], Person]) -> Slot:
    def slot(draft: Draft, scene: Scene, dice: Dice) -> None:
        doctor = who(scene.case)
        form = dice.below(6)
        name = (
            doctor.last,
            f"{doctor.first} {doctor.last}",
            f"{doctor.first[0]}. {doctor.last}",
            doctor.last,
            f"{doctor.first} {doctor.middle}. {doctor.last}",
            doctor.last,
        )[form]
        draft.put(dice.pick(("Dr. ", "Dr. ", "Dr ", "DR. ")))
        draft.mark(name, "EID", "name")

    return slot


def _degree(who: Callable[[Case], Person]) -> Slot:
    def slot(draft: Draft, scene: Scene, dice: Dice) -> None:
        doctor = who(scene.case)
        name = dice.pick(
            (
                f"{doctor.first} {doctor.last}",
                f"{doctor.first} {doctor.middle}. {doctor.last}",
                f"{doctor.first[0]}. {doctor.last}",
            )
        )
        draft.mark(name, "EID", "name")
        draft.put(dice.pick((", MD", ", M.D.", " MD", ", NP", ", DO", ", PA-C")))

    return slot


def _nurse(draft: Draft, scene: Scene, dice: Dice) -> None:
    who = scene.case.nurse
    draft.mark(
        dice.pick((f"{who.first} {who.last}", f"{who.first[0]}. {who.last}", f"{who.last}")), "EID", "name"
    )
    draft.put(dice.pick((", RN", " RN", ", LPN", ", R.N.")))


def _stranger(draft: Draft, scene: Scene, dice: Dice) -> None:
    who = person(scene.pool, dice)
    draft.mark(dice.pick((f"{who.first} {who.last}", who.last, f"{who.first} {who.last}")), "EID", "name")


def _short_name(draft: Draft, scene: Scene, dice: Dice) -> None:
    who = scene.case.patient.person
    draft.mark(f"{who.first} {who.last[0]}.", "EID", "name")


def _visit(draft: Draft, scene: Scene, dice: Dice) -> None:
    draft.mark(DATE_STYLES[scene.case.date_style](scene.case.visit), "QID", "date")


def _signing(draft: Draft, scene: Scene, dice: Dice) -> None:
    """The visit's day, but as the date of another act: signing, receiving a specimen."""
    draft.mark(DATE_STYLES[scene.case.date_style](scene.case.visit), "EID", "date")


def _discharge(draft: Draft, scene: Scene, dice: Dice) -> None:
    day = scene.case.visit + datetime.timedelta(days=1 + dice.below(20))
    draft.mark(DATE_STYLES[scene.case.date_style](day), "QID", "date")


def _other_date(draft: Draft, scene: Scene, dice: Dice) -> None:
    day = scene.case.visit - datetime.timedelta(days=1 + dice.below(2000))
    draft.mark(DATE_STYLES[scene.case.date_style](day), "EID", "date")


def _next_date(draft: Draft, scene: Scene, dice: Dice) -> None:
    day = scene.case.visit + datetime.timedelta(days=3 + dice.below(120))
    draft.mark(DATE_STYLES[scene.case.date_style](day), "EID", "date")


def _short_date(draft: Draft, scene: Scene, dice: Dice) -> None:
    day = scene.case.visit - datetime.timedelta(days=1 + dice.below(900))
    draft.mark(dice.pick(SHORT_DATE_STYLES)(day), "EID", "date")


def _born(draft: Draft, scene: Scene, dice: Dice) -> None:
    draft.mark(DATE_STYLES[scene.case.date_style](scene.case.patient.born), "EID", "date")


def _place(draft: Draft, scene: Scene, dice: Dice) -> None:
    who = scene.case.patient
    draft.mark(who.city, "QID", "place")
    if dice.chance(0.4):
        draft.put(", ")
        draft.mark(who.state, "QID", "place")


def _home(draft: Draft, scene: Scene, dice: Dice) -> None:
    who = scene.case.patient
    apartment = dice.pick(
        (" ", f" Apt {dice.between(1, 40)}", f", Apt. {dice.between(1, 9)}{dice.letters(1)}", "")
    )
    draft.mark((who.street + apartment).rstrip(), "EID", "address")
    draft.put(dice.pick((", ", ", ", " ", "\n")))
    draft.mark(who.city, "QID", "place")
    draft.put(dice.pick((", ", " ")))
    draft.mark(who.state, "QID", "place")
    draft.put(" ")
    draft.mark(who.zip, "QID", "zip")


def _ip(scene: Scene, dice: Dice) -> str:
    return ".".join(str(dice.between(1, 254)) for _ in range(4))


def _url(scene: Scene, dice: Dice) -> str:
    site = scene.case.patient.person.last.lower()
    site = "".join(sign for sign in site if "a" <= sign <= "z") or "family"
    return dice.pick(
        (
            f"https://www.{site}-family.example.com/blog",
            f"http://{site}.example.org",
            f"www.{site}.example.net/photos",
        )
    )


def _plate(scene: Scene, dice: Dice) -> str:
    return dice.pick(
        (f"{dice.letters(3)}-{dice.digits(4)}", f"{dice.digits(1)}{dice.letters(3)}{dice.digits(3)}")
    )


def _device(scene: Scene, dice: Dice) -> str:
    return dice.pick(
        (
            f"SN{dice.digits(8)}",
            f"{dice.letters(2)}-{dice.digits(4)}-{dice.digits(4)}",
            f"{dice.letters(3)}{dice.digits(6)}",
        )
    )


def _account(scene: Scene, dice: Dice) -> str:
    return dice.pick((dice.digits(9), f"{dice.digits(4)}-{dice.digits(5)}", f"AC{dice.digits(7)}"))


def _licence(scene: Scene, dice: Dice) -> str:
    return dice.pick(
        (
            f"{dice.letters(1)}{dice.digits(7)}",
            f"{dice.letters(2)}{dice.digits(6)}",
            f"{dice.letters(1)}{dice.digits(3)}-{dice.digits(4)}",
        )
    )


def _case_number(scene: Scene, dice: Dice) -> str:
    year = scene.case.visit.year % 100
    return dice.pick(
        (
            f"S{year:02}-{dice.digits(5)}",
            f"{dice.letters(2)}{year:02}-{dice.digits(4)}",
            f"{dice.digits(2)}-{dice.letters(1)}-{dice.digits(5)}",
        )
    )


def _eponym(draft: Draft, scene: Scene, dice: Dice) -> None:
    draft.put(dice.pick(scene.terms.without(WORDS["eponyms"])))


def _verb(draft: Draft, scene: Scene, dice: Dice) -> None:
    draft.put(dice.pick(WORDS["verbs"]))


def _ordinary(draft: Draft, scene: Scene, dice: Dice) -> None:
    draft.put(dice.pick(scene.terms.without(WORDS["ordinary"])))


SLOTS: dict[str, Slot] = {
    "Word": _ordinary,
    "Job": _plain(lambda scene, dice: dice.pick(WORDS["jobs"])),
    "verb": _verb,
    "Eponym": _eponym,
    "year": _plain(lambda scene, dice: str(scene.case.visit.year - dice.below(25))),
    "patient": _full(lambda case: case.patient.person),
    "patient_plain": _full(lambda case: case.patient.person, 3),
    "relative": _full(lambda case: case.patient.relative, 2),
    "provider": _full(lambda case: case.doctor, 3),
    "mister": _mister,
    "last": _text("name", lambda scene, dice: scene.case.patient.person.last),
    "first": _text("name", lambda scene, dice: scene.case.patient.person.first),
    "short_name": _short_name,
    "doctor": _doctor(lambda case: case.doctor),
    "other_doctor": _doctor(lambda case: case.other_doctor),
    "signed": _degree(lambda case: case.doctor),
    "other_signed": _degree(lambda case: case.other_doctor),
    "nurse": _nurse,
    "stranger": _stranger,
    "facility": _text("facility", lambda scene, dice: scene.case.facility),
    "other_facility": _text("facility", lambda scene, dice: scene.case.other_facility),
    "employer": _text("facility", lambda scene, dice: scene.case.patient.employer),
    "street": _text("address", lambda scene, dice: scene.case.patient.street),
    "home": _home,
    "place": _place,
    "city": _quasi("place", lambda scene, dice: scene.case.patient.city),
    "other_city": _quasi("place", lambda scene, dice: dice.pick(scene.pool.cities)[0]),
    "zip": _quasi("zip", lambda scene, dice: scene.case.patient.zip),
    "visit": _visit,
    "signing": _signing,
    "discharge": _discharge,
    "date": _other_date,
    "next": _next_date,
    "short_date": _short_date,
    "dob": _born,
    "age": _age,
    "years": _years,
    "sex": _sex,
    "sex_letter": _quasi("sex", lambda scene, dice: "F" if scene.case.patient.person.female else "M"),
    "sex_word": _quasi("sex", lambda scene, dice: "Female" if scene.case.patient.person.female else "Male"),
    "race": _quasi("race", lambda scene, dice: scene.case.patient.race),
    "phone": _text("phone", lambda scene, dice: scene.case.patient.phone),
    "other_phone": _text("phone", lambda scene, dice: phone(dice)),
    "fax": _text("fax", lambda scene, dice: phone(dice)),
    "pager": _text("phone", lambda scene, dice: dice.digits(dice.between(4, 5))),
    "email": _text("email", lambda scene, dice: scene.case.patient.email),
    "url": _text("url", _url),
    "ip": _text("ip", _ip),
    "ssn": _text("ssn", lambda scene, dice: scene.case.patient.ssn),
    "mrn": _text("record_number", lambda scene, dice: scene.case.patient.record),
    "accession": _text("other_id", _case_number),
    "plan": _text("plan_number", lambda scene, dice: scene.case.patient.plan),
    "account": _text("account_number", _account),
    "licence": _text("licence_number", _licence),
    "plate": _text("vehicle", _plate),
    "device": _text("device", _device),
    "he": _pronoun("she", "he"),
    "He": _pronoun("She", "He"),
    "his": _pronoun("her", "his"),
    "His": _pronoun("Her", "His"),
    "him": _pronoun("her", "him"),
    "days": _plain(lambda scene, dice: str(dice.between(2, 9))),
    "n": _plain(lambda scene, dice: str(dice.between(2, 60))),
    "dose": _plain(
        lambda scene, dice: dice.pick(
            (
                "5 mg",
                "10 mg",
                "20 mg",
                "25 mg",
                "40 mg",
                "81 mg",
                "500 mg",
                "1 g",
                "100 mcg",
                "1000 mg",
                "1500 mg",
                "2000 units",
                "0.5 mL",
                "12.5 mg",
                "2 puffs",
            )
        )
    ),
    "often": _plain(
        lambda scene, dice: dice.pick(
            ("daily", "BID", "TID", "every 8 hours", "qhs", "twice a day", "once daily", "PRN")
        )
    ),
    "value": _plain(lambda scene, dice: f"{dice.between(1, 19)}.{dice.below(10)}"),
    "pressure": _plain(lambda scene, dice: f"{dice.between(98, 178)}/{dice.between(55, 102)}"),
    "pulse": _plain(lambda scene, dice: str(dice.between(52, 128))),
    "temperature": _plain(lambda scene, dice: f"{dice.between(97, 103)}.{dice.below(10)}"),
    "time": _plain(lambda scene, dice: f"{dice.between(0, 23):02}:{dice.between(0, 59):02}"),
    "size": _plain(
        lambda scene, dice: (
            f"{dice.between(1, 9)}.{dice.below(10)} x {dice.between(1, 9)}.{dice.below(10)} cm"
        )
    ),
    "side": _plain(lambda scene, dice: dice.pick(("left", "right"))),
}
"""Every slot that is no health term."""
