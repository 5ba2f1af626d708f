"""One patient and one encounter, as a note's template needs them: who, when, where, and how each is written."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass

from leeward.synthetic.notes.dice import Dice
from leeward.synthetic.notes.people import Pool
from leeward.texts import list_words

RACES = list_words(
    "white,White,Caucasian,black,African American,African-American,Hispanic,Latino,Asian,Native American,white,"
    "Caucasian,Pacific Islander",
    ",",
)
MONTH_WEIGHTS = (13, 11, 9, 8, 7, 4, 5, 6, 8, 9, 10, 10)
"""Visits are spread unevenly over the months, between 4 % and 13 % (Li & Qin, section 5)."""
_MONTHS = [month for month, weight in enumerate(MONTH_WEIGHTS, 1) for _ in range(weight)]
FIRST_YEAR, YEARS = 2004, 18
OLD = 89
"""Ages above are explicit identifiers (HIPAA)."""
NAMES = list_words("January February March April May June July August September October November December")


@dataclass(frozen=True)
class Person:
    """A name with the sex that its pronouns have."""

    first: str
    last: str
    middle: str
    female: bool


@dataclass(frozen=True)
class Patient:
    """What stays the same over a patient's notes."""

    code: str
    person: Person
    relative: Person
    born: datetime.date
    race: str
    city: str
    state: str
    zip: str
    street: str
    phone: str
    email: str
    ssn: str
    record: str
    plan: str
    employer: str


@dataclass(frozen=True)
class Case:
    """A patient's encounter."""

    patient: Patient
    visit: datetime.date
    doctor: Person
    other_doctor: Person
    nurse: Person
    facility: str
    other_facility: str
    date_style: int

    @property
    def age(self) -> int:
        """Years at the visit."""
        born = self.patient.born
        return self.visit.year - born.year - ((self.visit.month, self.visit.day) < (born.month, born.day))


def person(pool: Pool, dice: Dice, *, last: str | None = None) -> Person:
    """Draw a name; `last` where it is known."""
    female = dice.chance(0.52)
    first = dice.pick(pool.female if female else pool.male)
    return Person(first, last or dice.pick(pool.last), dice.letters(1), female)


def patient(pool: Pool, dice: Dice, code: str) -> Patient:
    """Draw a patient; `code` names it in the files, never in a text."""
    who = person(pool, dice)
    city, state = dice.pick(pool.cities)
    year = dice.between(1915, 2003) if dice.chance(0.9) else dice.between(1908, 1920)
    born = datetime.date(year, dice.between(1, 12), dice.between(1, 28))
    form = dice.below(6)
    record = (
        dice.digits(7),
        dice.digits(6),
        f"{dice.digits(3)}-{dice.digits(2)}-{dice.digits(3)}",
        f"{dice.letters(2)}{dice.digits(6)}",
        f"{dice.letters(1)}-{dice.digits(6)}",
        dice.digits(8),
    )[form]
    user = (
        f"{who.first}.{who.last}",
        f"{who.first[0]}{who.last}{dice.digits(2)}",
        f"{who.last}_{who.first}",
    )[dice.below(3)]
    user = "".join(sign for sign in user.lower() if sign.isascii() and (sign.isalnum() or sign in "._"))
    mail = f"{user}@{dice.pick(('mail.com', 'webmail.net', 'example.org', 'post.example.com', 'home.net'))}"
    return Patient(
        code,
        who,
        person(pool, dice, last=who.last if dice.chance(0.5) else None),
        born,
        dice.pick(RACES),
        city,
        state,
        dice.digits(5),
        f"{dice.digits(dice.between(1, 4))} {dice.pick(pool.streets)}",
        phone(dice),
        mail,
        f"{dice.digits(3)}-{dice.digits(2)}-{dice.digits(4)}",
        record,
        f"{dice.letters(dice.between(1, 3))}{dice.pick(('-', '', ' '))}{dice.digits(dice.between(6, 10))}",
        dice.pick(pool.employers),
    )


def case(pool: Pool, dice: Dice, who: Patient) -> Case:
    """Draw an encounter of a patient, after its birth."""
    year = max(FIRST_YEAR + dice.below(YEARS), who.born.year + 1)
    visit = datetime.date(year, dice.pick(_MONTHS), dice.between(1, 28))
    return Case(
        who,
        visit,
        person(pool, dice),
        person(pool, dice),
        person(pool, dice),
        dice.pick(pool.facilities),
        dice.pick(pool.facilities),
        dice.below(len(DATE_STYLES)),
    )


def phone(dice: Dice) -> str:
    """A telephone number in one of the usual forms."""
    area, middle, last = dice.digits(3), dice.digits(3), dice.digits(4)
    return dice.pick(
        (
            f"{area}-{middle}-{last}",
            f"({area}) {middle}-{last}",
            f"{area}.{middle}.{last}",
            f"{middle}-{last}",
            f"1-{area}-{middle}-{last}",
            f"+1 {area} {middle} {last}",
            f"{area} {middle} {last}",
            f"({area}){middle}-{last}",
        )
    )


DateStyle = Callable[[datetime.date], str]


def ordinal(day: int) -> str:
    """1st, 2nd, 3rd, 4th …"""
    ending = "th" if 10 < day < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{ending}"


DATE_STYLES: tuple[DateStyle, ...] = (
    lambda d: f"{d.month}/{d.day}/{d.year}",
    lambda d: f"{d.month:02}/{d.day:02}/{d.year}",
    lambda d: f"{d.month}/{d.day}/{d.year % 100:02}",
    lambda d: f"{NAMES[d.month - 1]} {d.day}, {d.year}",
    lambda d: f"{NAMES[d.month - 1]} {ordinal(d.day)}, {d.year}",
    lambda d: f"{NAMES[d.month - 1][:3]} {d.day}, {d.year}",
    lambda d: f"{d.day} {NAMES[d.month - 1]} {d.year}",
    lambda d: f"{d.year}-{d.month:02}-{d.day:02}",
    lambda d: f"{d.month:02}-{d.day:02}-{d.year}",
    lambda d: f"{d.day:02}-{NAMES[d.month - 1][:3]}-{d.year}",
    lambda d: f"{d.month}-{d.day}-{d.year % 100:02}",
    lambda d: f"{d.month:02}.{d.day:02}.{d.year}",
    lambda d: f"{NAMES[d.month - 1][:3]}. {ordinal(d.day)}, {d.year}",
    lambda d: f"{NAMES[d.month - 1].upper()} {d.day}, {d.year}",
    lambda d: f"the {ordinal(d.day)} of {NAMES[d.month - 1]} {d.year}",
)
SHORT_DATE_STYLES: tuple[DateStyle, ...] = (
    lambda d: f"{d.month}/{d.day}",
    lambda d: f"{NAMES[d.month - 1]} {ordinal(d.day)}",
    lambda d: f"{NAMES[d.month - 1]} {d.day}",
    lambda d: f"{NAMES[d.month - 1]} {d.year}",
    lambda d: f"{d.month}/{d.year}",
    lambda d: f"{NAMES[d.month - 1][:3]} {d.year}",
)
