"""Draw health terms of a lexicon with the skewed frequencies of hospital notes: a few common, many rare."""

from __future__ import annotations

import hashlib
from bisect import bisect
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from leeward.errors import BadInput
from leeward.notes.lexicon import Lexicon
from leeward.synthetic.notes.draft import Dice

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


@dataclass(frozen=True)
class Terms:
    """Concepts `(id, spellings)` per category, common ones first, with cumulated weights."""

    concepts: dict[str, tuple[tuple[str, tuple[str, ...]], ...]]
    cumulated: dict[str, tuple[float, ...]]
    lexicon: Lexicon

    @classmethod
    def of(cls, lexicon: Lexicon) -> Terms:
        """Collect the lexicon's concepts with an unambiguous term. Raises BadInput when a category has none."""
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
            ordered[category] = tuple(
                sorted(concepts, key=lambda one: (rank.get(one[0], len(rank)), _hash(one[0])))
            )
            cumulated[category] = _cumulate(sum(one[0] in rank for one in concepts), len(concepts))
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

    def draw(self, category: str, dice: Dice) -> tuple[str, str]:
        """Draw a concept: its id and one spelling."""
        concept, ways = self.concepts[category][bisect(self.cumulated[category], dice.number())]
        if len(ways) == 1 or dice.chance(FIRST_TERM):
            return concept, ways[0]
        return concept, ways[1 + dice.below(len(ways) - 1)]


def _hash(concept: str) -> bytes:
    return hashlib.blake2b(concept.encode(), digest_size=8).digest()


def _cumulate(common: int, total: int) -> tuple[float, ...]:
    zipf = [1 / place for place in range(1, common + 1)]
    share = COMMON_WEIGHT if common else 0.0
    weights = [share * w / sum(zipf) for w in zipf] + [0.0] * (total - common)
    weights = [weight + (1 - share) / total for weight in weights]
    sums = list(accumulate(weights))
    return (*(value / sums[-1] for value in sums[:-1]), 1.0)
