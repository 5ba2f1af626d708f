"""Draw health terms of a lexicon with the skewed frequencies of hospital notes: a few common, many rare."""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import accumulate
from math import cos, pi

from leeward.errors import BadInput
from leeward.notes.lexicon import Lexicon
from leeward.synthetic.notes.draft import Dice
from leeward.synthetic.notes.people import MONTH_WEIGHTS

CATEGORIES = ("symptom", "disease", "test", "drug")

COMMON = {
    "symptom": "fever;cough;headache;fatigue;nausea;sore throat;chest pain;shortness of breath;vomiting;abdominal pain;"
    "dizziness;diarrhea;chills;back pain;runny nose;joint pain;rash;weakness;constipation;palpitations",
    "disease": "hypertension;type 2 diabetes mellitus;asthma;pneumonia;hyperlipidemia;coronary artery disease;"
    "congestive heart failure;COPD;depression;urinary tract infection;hypothyroidism;GERD;osteoarthritis;anemia;"
    "atrial fibrillation;migraine;influenza;obesity;stroke;chronic kidney disease",
    "test": "complete blood count;chest x-ray;electrocardiogram;urinalysis;creatinine;hemoglobin A1c;MRI;CT scan;"
    "echocardiogram;glucose;lipid panel;TSH;blood culture;biopsy;colonoscopy",
    "drug": "aspirin;lisinopril;metformin;atorvastatin;acetaminophen;ibuprofen;amoxicillin;omeprazole;albuterol;"
    "metoprolol;furosemide;insulin;prednisone;levothyroxine;warfarin;hydrochlorothiazide;gabapentin;azithromycin",
}
COMMON_WEIGHT = 0.55
"""Share of mentions drawn from the common terms, by Zipf's law; the others are uniform over all terms."""
FIRST_TERM = 0.6
"""Share of mentions by a concept's preferred name; the others use a synonym or abbreviation."""

SEASONS = {
    "influenza": (1, 50.0), "acute bronchitis": (1, 5.0), "gastroenteritis": (1, 10.0), "pneumonia": (1, 2.2),
    "upper respiratory infection": (1, 1.7), "COPD": (1, 1.7), "cough": (1, 1.7), "sore throat": (1, 1.7),
    "runny nose": (1, 1.7), "shortness of breath": (1, 1.7), "congestive heart failure": (2, 1.2),
    "allergic rhinitis": (6, 300.0), "kidney stones": (8, 1.5),
}  # fmt: skip
"""Condition -> month of its peak, and how many times as many cases are at the peak as half a year later.

Influenza peaks from December to February, nearly all of it from October to April (FluSurv-NET). Bronchitis: 171.4
against 34.5 (Ayres 1986, United Kingdom). Gastroenteritis: 52.7 % of norovirus in winter, 78.9 % in the cool half
(Ahmed and others 2013). Pneumonia: 34 % in winter (Cilloniz and others 2017, Barcelona). Respiratory emergencies:
odds of .579 in summer (Guimaraes and Dawson 2016). Heart failure: 27 % in winter, 23 % in summer (Akintoye and others
2017). Rhinitis: two thirds in the weeks 18 to 27 (Pedersen and Weeke 1984, Denmark). Stones: 43.8 in August against
28.8 in February (New York, 2007 to 2012)."""


@dataclass(frozen=True)
class Terms:
    """Concepts `(id, spellings)` per category, common ones first, with cumulated weights for each month."""

    concepts: dict[str, tuple[tuple[str, tuple[str, ...]], ...]]
    cumulated: dict[str, tuple[tuple[float, ...], ...]]
    lexicon: Lexicon

    @classmethod
    def of(cls, lexicon: Lexicon, seasons: float = 0.0) -> Terms:
        """Collect the lexicon's concepts with an unambiguous term; `seasons` is the strength of `season`. Raises
        BadInput when a category has none."""
        found_seasons = [(lexicon.find(name), season(*each, seasons)) for name, each in SEASONS.items()]
        rises = {concept.id: each for concept, each in found_seasons if concept is not None}
        listed: dict[str, list[tuple[str, tuple[str, ...]]]] = {category: [] for category in CATEGORIES}
        for concept in lexicon.concepts:
            plain = tuple(term.text for term in concept.terms if not term.ambiguous)
            if concept.kind in listed and plain:
                listed[concept.kind].append((concept.id, plain))
        ordered, cumulated = {}, {}
        for category, concepts in listed.items():
            if not concepts:
                raise BadInput(f"lexicon {lexicon.name!r}: no {category} to write notes with.")
            found = [lexicon.find(name) for name in COMMON[category].split(";")]
            common = list(dict.fromkeys(concept.id for concept in found if concept is not None))
            rank = {concept: place for place, concept in enumerate(common)}
            hashes = {concept: blake2b(concept.encode(), digest_size=8).digest() for concept, _ in concepts}
            ordered[category] = tuple(
                sorted(concepts, key=lambda one: (rank.get(one[0], len(rank)), hashes[one[0]]))
            )
            weights = _weigh(sum(one[0] in rank for one in concepts), len(concepts))
            here = [rises.get(one[0], (1.0,) * 12) for one in ordered[category]]
            cumulated[category] = tuple(
                _cumulate([w * rise[month] for w, rise in zip(weights, here, strict=True)])
                for month in range(12)
            )
        return cls(ordered, cumulated, lexicon)

    def named(self, text: str) -> tuple[str, str] | None:
        """Return the id and category of a term's concept, or None."""
        if text not in self._named:
            found = self.lexicon.find(text)
            self._named[text] = (
                (found.id, found.kind) if found is not None and found.kind in CATEGORIES else None
            )
        return self._named[text]

    def without(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """Drop the words that are health terms in the lexicon."""
        if words not in self._plain:
            self._plain[words] = tuple(word for word in words if self.lexicon.find(word) is None)
        return self._plain[words]

    @cached_property
    def _plain(self) -> dict[tuple[str, ...], tuple[str, ...]]:
        return {}

    @cached_property
    def _named(self) -> dict[str, tuple[str, str] | None]:
        return {}

    def draw(self, category: str, month: int, dice: Dice) -> tuple[str, str]:
        """Draw a concept of a visit in a month (1 to 12): its id and one spelling."""
        concept, ways = self.concepts[category][bisect(self.cumulated[category][month - 1], dice.number())]
        if len(ways) == 1 or dice.chance(FIRST_TERM):
            return concept, ways[0]
        return concept, ways[1 + dice.below(len(ways) - 1)]


def season(peak: int, ratio: float, strength: float) -> tuple[float, ...]:
    """How much more often than in all visits a condition is met in each month's: `ratio ** strength` times as often in
    its peak as half a year later, in between by a cosine of the logarithm, on average 1."""
    rise = [ratio ** (strength * cos(2 * pi * (month - peak) / 12) / 2) for month in range(1, 13)]
    visits = zip(MONTH_WEIGHTS, rise, strict=True)
    mean = sum(weight * each for weight, each in visits) / sum(MONTH_WEIGHTS)
    return tuple(each / mean for each in rise)


def _weigh(common: int, total: int) -> list[float]:
    zipf = [1 / place for place in range(1, common + 1)]
    share = COMMON_WEIGHT if common else 0.0
    weights = [share * w / sum(zipf) for w in zipf] + [0.0] * (total - common)
    return [weight + (1 - share) / total for weight in weights]


def _cumulate(weights: list[float]) -> tuple[float, ...]:
    sums = list(accumulate(weights))
    return (*(value / sums[-1] for value in sums[:-1]), 1.0)
