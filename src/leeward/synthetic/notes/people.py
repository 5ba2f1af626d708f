"""Synthetic identities and encounters of patients.

Identities are split into two pools, training and held out, that share no name, street, place or facility. Names come
from Faker's lists for several languages. Each name belongs to one pool, by its hash or by its language: languages found
only in the held-out pool ensure that evaluation does not measure the memory of a list.
"""

from __future__ import annotations

import datetime
import hashlib
import importlib
import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from leeward.errors import require_extra
from leeward.synthetic.notes.draft import Dice
from leeward.texts import list_words

Split = Literal["training", "held-out", "sealed"]

SHARED_LOCALES = ("en_US", "en_US", "en_GB", "es_MX", "en_IN")
"""Split by hash; the first counts twice, as American names are the commonest."""
TRAINING_LOCALES = ("de_DE", "en_KE", "tr_TR")
HELD_OUT_LOCALES = ("it_IT", "nl_NL", "sv_SE", "fi_FI", "pt_BR", "en_NZ")
TRAINING_SHARE = 0.65


_PLACES = (
    "Springfield IL;Boston MA;Worcester MA;Lowell MA;Hartford CT;Providence RI;Albany NY;Buffalo NY;Rochester NY;"
    "Newark NJ;Trenton NJ;Camden NJ;Pittsburgh PA;Erie PA;Scranton PA;Baltimore MD;Richmond VA;Norfolk VA;Raleigh NC;"
    "Durham NC;Charlotte NC;Columbia SC;Savannah GA;Atlanta GA;Macon GA;Miami FL;Tampa FL;Orlando FL;Mobile AL;"
    "Memphis TN;Nashville TN;Knoxville TN;Louisville KY;Lexington KY;Cleveland OH;Toledo OH;Dayton OH;Akron OH;"
    "Detroit MI;Flint MI;Lansing MI;Chicago IL;Peoria IL;Rockford IL;Milwaukee WI;Madison WI;Green Bay WI;"
    "Minneapolis MN;Duluth MN;Des Moines IA;Omaha NE;Wichita KS;Topeka KS;Kansas City MO;St. Louis MO;Tulsa OK;"
    "Dallas TX;Houston TX;El Paso TX;San Antonio TX;Austin TX;Laredo TX;Denver CO;Boulder CO;Pueblo CO;Boise ID;"
    "Salt Lake City UT;Provo UT;Reno NV;Las Vegas NV;Phoenix AZ;Tucson AZ;Santa Fe NM;Albuquerque NM;Portland OR;"
    "Salem OR;Eugene OR;Seattle WA;Spokane WA;Tacoma WA;San Diego CA;Fresno CA;Oakland CA;San Jose CA;Sacramento CA;"
    "Los Angeles CA;San Francisco CA;Bakersfield CA;Honolulu HI;Anchorage AK;Portland ME;Bangor ME;Burlington VT;"
    "Concord NH;Manchester NH;New York NY;Brooklyn NY;Philadelphia PA;New Orleans LA;Baton Rouge LA;Jackson MS;"
    "Little Rock AR;Fargo ND;Sioux Falls SD;Billings MT;Cheyenne WY;Charleston WV;Wilmington DE;Washington DC"
)

_HILLS = list_words(
    "Cedar Oak Maple Elm Willow Pine Birch Lake River Valley Hill Harbor Summit Meadow Prairie "
    "Canyon Bay Forest Brook Glen Ridge Stone Rose Sunset Lincoln Jefferson Franklin Monroe Madison "
    "Grant Mercer Fairview Highland Riverside Lakeside Northside Eastgate Westbrook Southport "
    "Greenwood Oakwood Elmhurst Kenwood Glenwood"
)
_SAINTS = list_words(
    "Luke Mary Joseph Vincent Jude Francis Anne Elizabeth Michael John Thomas Clare Agnes Raphael Anthony"
)
_FACILITY_FORMS = list_words(
    "{hill} Hospital;{hill} Medical Center;{hill} Clinic;{hill} General Hospital;"
    "St. {saint} Hospital;St. {saint}'s Medical Center;{city} General Hospital;"
    "{city} Memorial Hospital;{city} Community Hospital;Mount {hill} Hospital;{last} Clinic;"
    "{last} Memorial Hospital;University of {city} Medical Center;{hill} Family Practice;"
    "{hill} Nursing Home;{hill} Rehabilitation Center;{city} VA Medical Center;"
    "{last} and {last} Associates;Our Lady of Mercy Hospital {city};{hill} Urgent Care;"
    "Saint {saint}'s;{last} Cancer Institute;{hill} Hospice;{city} Heart Institute;"
    "{hill} Assisted Living;{last} Elementary School;{city} Children's Hospital;{hill} Pediatrics;"
    "{city} Presbyterian;{last} Pharmacy",
    ";",
)
_STREET_WORDS = list_words(
    "Street Avenue Road Drive Lane Boulevard Court Place Way Circle Terrace St Ave Rd Dr Ln Blvd Ct"
)
_TRADES = list_words(
    "Logistics Foods Steel Motors Insurance Textiles Electric Plumbing Bakery Trucking Farms Textiles Paper"
)


@dataclass(frozen=True)
class Pool:
    """Source of the identities of one split."""

    male: tuple[str, ...]
    female: tuple[str, ...]
    last: tuple[str, ...]
    cities: tuple[tuple[str, str], ...]
    streets: tuple[str, ...]
    facilities: tuple[str, ...]
    employers: tuple[str, ...]


def split_of(text: str) -> Split:
    """Assign a text to a split by its hash, the same on every machine."""
    number = hashlib.blake2b(text.encode(), digest_size=4).digest()
    return "training" if int.from_bytes(number, "big") < TRAINING_SHARE * 2**32 else "held-out"


@cache
def pool(split: Split) -> Pool:
    """Return the pool of a split; sealed notes use the held-out one. Raises BadInput when Faker is not installed."""
    if split == "sealed":
        return pool("held-out")
    male = _names(split, LISTS[0])
    female = _names(split, LISTS[1])
    last = _names(split, LISTS[2])
    cities = tuple(
        (name, state)
        for name, _, state in (place.rpartition(" ") for place in _PLACES.split(";"))
        if split_of(name) == split
    )
    hills = [name for name in _HILLS if split_of(name) == split]
    saints = [name for name in _SAINTS if split_of(name) == split]
    streets = tuple(
        f"{name} {word}"
        for name in (*hills, *last[:120])
        for word in _STREET_WORDS
        if split_of(name + word) == split
    )
    facilities = _facilities(hills, saints, [city for city, _ in cities], last)
    employers = tuple(f"{name} {_TRADES[number % len(_TRADES)]}" for number, name in enumerate(last[:150]))
    return Pool(male, female, last, cities, streets, facilities, employers)


def _facilities(
    hills: list[str], saints: list[str], cities: list[str], last: tuple[str, ...]
) -> tuple[str, ...]:
    made = []
    for number in range(700):
        form = _FACILITY_FORMS[number % len(_FACILITY_FORMS)]
        made.append(
            form.format(
                hill=hills[number * 7 % len(hills)],
                saint=saints[number * 5 % len(saints)],
                city=cities[number * 3 % len(cities)],
                last=last[number * 11 % len(last)],
            )
        )
    return tuple(dict.fromkeys(made))


LISTS = ("first_names_male", "first_names_female", "last_names")


@cache
def _training_names() -> frozenset[str]:
    """All first and last names of the training pool: a first name may also be a last name."""
    shared = {name for locale in SHARED_LOCALES for each in LISTS for name in _load_names(locale, each)}
    own = {name for locale in TRAINING_LOCALES for each in LISTS for name in _load_names(locale, each)}
    return frozenset(own | {name for name in shared if split_of(name) == "training"})


def _names(split: Split, which: str) -> tuple[str, ...]:
    of_training = _training_names()
    found: list[str] = []
    for locale in (*SHARED_LOCALES, *(TRAINING_LOCALES if split == "training" else HELD_OUT_LOCALES)):
        names = [
            name for name in _load_names(locale, which) if (name in of_training) == (split == "training")
        ]
        found += names[:400]
    return tuple(found)


@cache
def _load_names(locale: str, which: str) -> tuple[str, ...]:
    require_extra("`synth notes`", "notes", "faker")
    provider: Any = importlib.import_module(f"faker.providers.person.{locale}").Provider
    names = dict.fromkeys(getattr(provider, which))
    # Hash order, not alphabetical, so that a truncated list is not one corner of the alphabet.
    kept = [name for name in names if len(name) > 1 and name[0].isupper()]
    return tuple(sorted(kept, key=lambda name: hashlib.blake2b(name.encode(), digest_size=8).digest()))


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
    """A name with the sex of its pronouns."""

    first: str
    last: str
    middle: str
    female: bool


@dataclass(frozen=True)
class Patient:
    """Attributes shared by all notes of a patient."""

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
        born = self.patient.born
        return self.visit.year - born.year - ((self.visit.month, self.visit.day) < (born.month, born.day))


def person(pool: Pool, dice: Dice, *, last: str | None = None) -> Person:
    female = dice.chance(0.52)
    first = dice.pick(pool.female if female else pool.male)
    return Person(first, last or dice.pick(pool.last), dice.letters(1), female)


def patient(pool: Pool, dice: Dice, code: str) -> Patient:
    """Draw a patient; `code` identifies it in the files, never in a text."""
    who = person(pool, dice)
    city, state = dice.pick(pool.cities)
    year = dice.between(1915, 2003) if dice.chance(0.9) else dice.between(1908, 1920)
    born = datetime.date(year, dice.between(1, 12), dice.between(1, 28))
    form = dice.below(6)
    record = numbers(dice, "#######;######;###-##-###;@@######;@-######;########")[form]
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
        numbers(dice, "###-##-####")[0],
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


def numbers(dice: Dice, forms: str) -> list[str]:
    """Fill forms separated by semicolons: digits for each run of `#`, capital letters for each run of `@`."""
    filled = re.sub(
        "#+|@+", lambda run: (dice.digits if run[0][0] == "#" else dice.letters)(len(run[0])), forms
    )
    return filled.split(";")


PHONES = list_words(
    "{0}-{1}-{2};({0}) {1}-{2};{0}.{1}.{2};{1}-{2};1-{0}-{1}-{2};+1 {0} {1} {2};{0} {1} {2};({0}){1}-{2}", ";"
)


def phone(dice: Dice) -> str:
    parts = dice.digits(3), dice.digits(3), dice.digits(4)
    return dice.pick(PHONES).format(*parts)


def ordinal(day: int) -> str:
    ending = "th" if 10 < day < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{ending}"


DATE_STYLES = list_words(
    "{d.month}/{d.day}/{d.year};{d.month:02}/{d.day:02}/{d.year};{d.month}/{d.day}/{short};{name} {d.day}, {d.year};"
    "{name} {th}, {d.year};{name:.3} {d.day}, {d.year};{d.day} {name} {d.year};{d.year}-{d.month:02}-{d.day:02};"
    "{d.month:02}-{d.day:02}-{d.year};{d.day:02}-{name:.3}-{d.year};{d.month}-{d.day}-{short};"
    "{d.month:02}.{d.day:02}.{d.year};{name:.3}. {th}, {d.year};{upper} {d.day}, {d.year};the {th} of {name} {d.year}",
    ";",
)
SHORT_DATE_STYLES = list_words(
    "{d.month}/{d.day};{name} {th};{name} {d.day};{name} {d.year};{d.month}/{d.year};{name:.3} {d.year}", ";"
)


def format_date(style: str, day: datetime.date) -> str:
    name = NAMES[day.month - 1]
    short = f"{day.year % 100:02}"
    return style.format(d=day, name=name, upper=name.upper(), th=ordinal(day.day), short=short)
