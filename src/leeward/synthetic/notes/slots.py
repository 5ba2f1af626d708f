"""Template slots: writers of identities, quasi-identifiers, health terms and other numbers."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass

from leeward.notes.spans import Kind
from leeward.synthetic.notes.draft import Dice, Draft
from leeward.synthetic.notes.people import (
    DATE_STYLES,
    OLD,
    SHORT_DATE_STYLES,
    Case,
    Person,
    Pool,
    format_date,
    numbers,
    person,
    phone,
)
from leeward.synthetic.notes.terms import Terms
from leeward.texts import list_words, read_parts

WORDS = {name: list_words(text) for name, text in read_parts("leeward.synthetic.notes", "words.txt").items()}
"""`ordinary`: words that begin a sentence or heading, no names; `eponyms`: people in the names of medical signs, scores
and devices, no identities; `jobs`, `verbs`."""


@dataclass(frozen=True)
class Scene:
    """Input of the slots."""

    case: Case
    pool: Pool
    terms: Terms


Slot = Callable[[Draft, Scene, Dice], None]
CONTEXTS = {"-": "negated", "?": "uncertain", "~": "family", "<": "historical"}
"""Prefix of a health slot -> context of its term."""


def health_slot(name: str) -> Slot | None:
    """Return the slot of `symptom`, `-symptoms`, `?disease`, `~diseases/or` …, or None if the name is no health slot. A
    plural writes two to four terms, joined by commas and the word after the slash (`and`)."""
    context = CONTEXTS.get(name[:1], "")
    bare, _, joint = name[1 if context else 0 :].partition("/")
    category = bare.removesuffix("s")
    if category not in ("symptom", "disease", "test", "drug"):
        return None
    many = bare.endswith("s")

    def one(draft: Draft, scene: Scene, dice: Dice) -> None:
        concept, text = scene.terms.draw(category, scene.case.visit.month, dice)
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
    """Return the slot of `=pulse`: a health term fixed by the template, if the lexicon has it."""
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


Piece = str | tuple[str, Kind, str]
"""Plain text, or an identity with its kind and category."""


def _eid(text: str, category: str = "name") -> Piece:
    return text, "EID", category


def _qid(text: str, category: str) -> Piece:
    return text, "QID", category


FULL = list_words(
    "{first} {last};{first} {last};{first} {middle}. {last};{last}, {first};{last}, {first} {middle};{LAST}, {FIRST};"
    "{FIRST} {LAST};{first} {middle} {last}",
    ";",
)
DOCTOR = list_words("{last};{first} {last};{initial}. {last};{last};{first} {middle}. {last};{last}", ";")
SIGNED = list_words("{first} {last};{first} {middle}. {last};{initial}. {last}", ";")


def _spell(who: Person, form: str) -> Piece:
    names = {"first": who.first, "last": who.last, "middle": who.middle, "initial": who.first[0]}
    return _eid(form.format(**names, FIRST=who.first.upper(), LAST=who.last.upper()))


def _mister(scene: Scene, dice: Dice) -> list[Piece]:
    who = scene.case.patient.person
    titles = ("Ms. ", "Mrs. ", "Ms ", "Miss ") if who.female else ("Mr. ", "Mr. ", "Mr ")
    return [dice.pick(titles), _eid(who.last)]


def _doctor(who: Person, dice: Dice) -> list[Piece]:
    name = _spell(who, dice.pick(DOCTOR))
    return [dice.pick(("Dr. ", "Dr. ", "Dr ", "DR. ")), name]


def _sign(who: Person, dice: Dice) -> list[Piece]:
    return [_spell(who, dice.pick(SIGNED)), dice.pick((", MD", ", M.D.", " MD", ", NP", ", DO", ", PA-C"))]


def _nurse(scene: Scene, dice: Dice) -> list[Piece]:
    forms = ("{first} {last}", "{initial}. {last}", "{last}")
    return [_spell(scene.case.nurse, dice.pick(forms)), dice.pick((", RN", " RN", ", LPN", ", R.N."))]


def _age(scene: Scene, text: str) -> Piece:
    age = scene.case.age
    return text.format(age), "EID" if age > OLD else "QID", "age"


def _sex(scene: Scene, dice: Dice) -> Piece:
    female = scene.case.patient.person.female
    if scene.case.age < 16:
        return _qid(dice.pick(("girl", "female") if female else ("boy", "male")), "sex")
    return _qid(dice.pick(("woman", "female", "lady") if female else ("man", "male", "gentleman")), "sex")


def _by_sex(scene: Scene, female: str, male: str) -> str:
    return female if scene.case.patient.person.female else male


def _day(scene: Scene, later: int = 0) -> str:
    return format_date(DATE_STYLES[scene.case.date_style], scene.case.visit + datetime.timedelta(days=later))


def _short_date(scene: Scene, dice: Dice) -> Piece:
    day = scene.case.visit - datetime.timedelta(days=1 + dice.below(900))
    return _eid(format_date(dice.pick(SHORT_DATE_STYLES), day), "date")


def _place(scene: Scene, dice: Dice) -> list[Piece]:
    who = scene.case.patient
    city = _qid(who.city, "place")
    return [city, ", ", _qid(who.state, "place")] if dice.chance(0.4) else [city]


def _home(scene: Scene, dice: Dice) -> list[Piece]:
    who = scene.case.patient
    apartment = dice.pick(
        (" ", f" Apt {dice.between(1, 40)}", f", Apt. {dice.between(1, 9)}{dice.letters(1)}", "")
    )
    return [
        _eid((who.street + apartment).rstrip(), "address"),
        dice.pick((", ", ", ", " ", "\n")),
        _qid(who.city, "place"),
        dice.pick((", ", " ")),
        _qid(who.state, "place"),
        " ",
        _qid(who.zip, "zip"),
    ]


def _url(scene: Scene, dice: Dice) -> Piece:
    last = scene.case.patient.person.last.lower()
    site = "".join(sign for sign in last if "a" <= sign <= "z") or "family"
    sites = ("https://www.{}-family.example.com/blog", "http://{}.example.org", "www.{}.example.net/photos")
    return _eid(dice.pick(sites).format(site), "url")


def _accession(scene: Scene, dice: Dice) -> Piece:
    year = f"{scene.case.visit.year % 100:02}"
    return _eid(dice.pick(numbers(dice, f"S{year}-#####;@@{year}-####;##-@-#####")), "other_id")


AGES = list_words("{}-year-old;{} year old;{} y/o;{}yo;{} yo;{}-year old", ";")
DOSES = list_words(
    "5 mg;10 mg;20 mg;25 mg;40 mg;81 mg;500 mg;1 g;100 mcg;1000 mg;1500 mg;2000 units;0.5 mL;12.5 mg;2 puffs",
    ";",
)
OFTEN = list_words("daily;BID;TID;every 8 hours;qhs;twice a day;once daily;PRN", ";")


def _slot(write: Callable[[Scene, Dice], Piece | list[Piece]]) -> Slot:
    def slot(draft: Draft, scene: Scene, dice: Dice) -> None:
        made = write(scene, dice)
        for piece in made if isinstance(made, list) else [made]:
            if isinstance(piece, str):
                draft.put(piece)
            else:
                draft.mark(*piece)

    return slot


_WRITERS: dict[str, Callable[[Scene, Dice], Piece | list[Piece]]] = {
    "Word": lambda s, d: d.pick(s.terms.without(WORDS["ordinary"])),
    "Job": lambda s, d: d.pick(WORDS["jobs"]),
    "verb": lambda s, d: d.pick(WORDS["verbs"]),
    "Eponym": lambda s, d: d.pick(s.terms.without(WORDS["eponyms"])),
    "year": lambda s, d: str(s.case.visit.year - d.below(25)),
    "patient": lambda s, d: _spell(s.case.patient.person, d.pick(FULL)),
    "patient_plain": lambda s, d: _spell(s.case.patient.person, d.pick(FULL[:3])),
    "relative": lambda s, d: _spell(s.case.patient.relative, d.pick(FULL[:2])),
    "provider": lambda s, d: _spell(s.case.doctor, d.pick(FULL[:3])),
    "mister": _mister,
    "last": lambda s, d: _eid(s.case.patient.person.last),
    "first": lambda s, d: _eid(s.case.patient.person.first),
    "short_name": lambda s, d: _eid(f"{s.case.patient.person.first} {s.case.patient.person.last[0]}."),
    "doctor": lambda s, d: _doctor(s.case.doctor, d),
    "other_doctor": lambda s, d: _doctor(s.case.other_doctor, d),
    "signed": lambda s, d: _sign(s.case.doctor, d),
    "other_signed": lambda s, d: _sign(s.case.other_doctor, d),
    "nurse": _nurse,
    "stranger": lambda s, d: _spell(
        person(s.pool, d), d.pick(("{first} {last}", "{last}", "{first} {last}"))
    ),
    "facility": lambda s, d: _eid(s.case.facility, "facility"),
    "other_facility": lambda s, d: _eid(s.case.other_facility, "facility"),
    "employer": lambda s, d: _eid(s.case.patient.employer, "facility"),
    "street": lambda s, d: _eid(s.case.patient.street, "address"),
    "home": _home,
    "place": _place,
    "city": lambda s, d: _qid(s.case.patient.city, "place"),
    "other_city": lambda s, d: _qid(d.pick(s.pool.cities)[0], "place"),
    "zip": lambda s, d: _qid(s.case.patient.zip, "zip"),
    "visit": lambda s, d: _qid(_day(s), "date"),
    # The visit's day, used as the date of another act: signing, receiving a specimen.
    "signing": lambda s, d: _eid(_day(s), "date"),
    "discharge": lambda s, d: _qid(_day(s, 1 + d.below(20)), "date"),
    "date": lambda s, d: _eid(_day(s, -1 - d.below(2000)), "date"),
    "next": lambda s, d: _eid(_day(s, 3 + d.below(120)), "date"),
    "short_date": _short_date,
    "dob": lambda s, d: _eid(format_date(DATE_STYLES[s.case.date_style], s.case.patient.born), "date"),
    "age": lambda s, d: _age(s, d.pick(AGES)),
    "years": lambda s, d: _age(s, "{}"),
    "sex": _sex,
    "sex_letter": lambda s, d: _qid(_by_sex(s, "F", "M"), "sex"),
    "sex_word": lambda s, d: _qid(_by_sex(s, "Female", "Male"), "sex"),
    "race": lambda s, d: _qid(s.case.patient.race, "race"),
    "phone": lambda s, d: _eid(s.case.patient.phone, "phone"),
    "other_phone": lambda s, d: _eid(phone(d), "phone"),
    "fax": lambda s, d: _eid(phone(d), "fax"),
    "pager": lambda s, d: _eid(d.digits(d.between(4, 5)), "phone"),
    "email": lambda s, d: _eid(s.case.patient.email, "email"),
    "url": _url,
    "ip": lambda s, d: _eid(".".join(str(d.between(1, 254)) for _ in range(4)), "ip"),
    "ssn": lambda s, d: _eid(s.case.patient.ssn, "ssn"),
    "mrn": lambda s, d: _eid(s.case.patient.record, "record_number"),
    "accession": _accession,
    "plan": lambda s, d: _eid(s.case.patient.plan, "plan_number"),
    "account": lambda s, d: _eid(d.pick(numbers(d, "#########;####-#####;AC#######")), "account_number"),
    "licence": lambda s, d: _eid(d.pick(numbers(d, "@#######;@@######;@###-####")), "licence_number"),
    "plate": lambda s, d: _eid(d.pick(numbers(d, "@@@-####;#@@@###")), "vehicle"),
    "device": lambda s, d: _eid(d.pick(numbers(d, "SN########;@@-####-####;@@@######")), "device"),
    "he": lambda s, d: _by_sex(s, "she", "he"),
    "He": lambda s, d: _by_sex(s, "She", "He"),
    "his": lambda s, d: _by_sex(s, "her", "his"),
    "His": lambda s, d: _by_sex(s, "Her", "His"),
    "him": lambda s, d: _by_sex(s, "her", "him"),
    "days": lambda s, d: str(d.between(2, 9)),
    "n": lambda s, d: str(d.between(2, 60)),
    "dose": lambda s, d: d.pick(DOSES),
    "often": lambda s, d: d.pick(OFTEN),
    "value": lambda s, d: f"{d.between(1, 19)}.{d.below(10)}",
    "pressure": lambda s, d: f"{d.between(98, 178)}/{d.between(55, 102)}",
    "pulse": lambda s, d: str(d.between(52, 128)),
    "temperature": lambda s, d: f"{d.between(97, 103)}.{d.below(10)}",
    "time": lambda s, d: f"{d.between(0, 23):02}:{d.between(0, 59):02}",
    "size": lambda s, d: f"{d.between(1, 9)}.{d.below(10)} x {d.between(1, 9)}.{d.below(10)} cm",
    "side": lambda s, d: d.pick(("left", "right")),
}
SLOTS: dict[str, Slot] = {name: _slot(write) for name, write in _WRITERS.items()}
"""All slots other than health terms."""
