"""A synthetic population of visits in the shape of Heatherly et al. (2013): nested cohorts, SNPs with planted effects.

Numbers of visits are gamma-Poisson, as in claims; codes of a visit come from the patient's lasting conditions or from
all codes, with Zipf frequencies (`codes`). Two nested cohorts prefer patients with many visits, as
biobanks do. Six SNPs are in Hardy–Weinberg proportions; each raises the odds of one or more traits per copy.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from leeward.arrays import Int16s, Int32s, offsets_of
from leeward.engine import available_threads, pool
from leeward.errors import BadInput
from leeward.paths import require_new
from leeward.randomness import Randomness
from leeward.synthetic.codes import (
    ONE,
    code_catalogue,
    code_weights,
    conditions_of,
    draw_in_order,
    tables_of,
)

CHUNK_PATIENTS = 50_000
CODES, FALL = 14_280, 4.6
"""Codes, and the fall of their tail: as in the paper, 10.5 % of those of 1,366,786 patients are of fewer than five."""
VISITS = 6.6
"""Mean number of visits of a patient."""
FURTHER_CODE = 0.62
"""Chance that a visit has a further code."""
CONDITION_SHARE = 0.7
POPULATION, BIOBANK, STUDY = 1_366_786, 104_904, 5_944
"""Sizes of the paper's population and of its nested cohorts; other populations get cohorts in proportion."""


@dataclass(frozen=True)
class Trait:
    """A disease with its ICD-9-CM codes, its prevalence without the allele, and the odds ratio a copy of each SNP."""

    name: str
    codes: tuple[str, ...]
    prevalence: float
    effects: tuple[tuple[str, float], ...]


SNPS = {
    "rs1333049": 0.47,
    "rs2200733": 0.12,
    "rs2476601": 0.10,
    "rs3135388": 0.14,
    "rs6457620": 0.50,
    "rs17234657": 0.13,
}
"""The six SNPs of the paper with a frequency of the counted allele."""

TRAITS = (
    Trait("coronary atherosclerosis", ("414.00", "414.01", "411.1", "413.9"), 0.05, (("rs1333049", 1.35),)),
    Trait("carotid stenosis", ("433.10", "433.11"), 0.015, (("rs1333049", 1.3),)),
    Trait("atrial fibrillation", ("427.31", "427.32"), 0.03, (("rs2200733", 1.7),)),
    Trait(
        "rheumatoid arthritis", ("714.0", "714.1", "714.2"), 0.01, (("rs2476601", 1.7), ("rs6457620", 1.6))
    ),
    Trait("type 1 diabetes", ("250.01", "250.03", "250.11", "250.41"), 0.01, (("rs2476601", 1.8),)),
    Trait("multiple sclerosis", ("340",), 0.006, (("rs3135388", 2.6),)),
    Trait("systemic lupus", ("710.0",), 0.006, (("rs3135388", 1.7),)),
    Trait("Crohn's disease", ("555.0", "555.1", "555.9"), 0.008, (("rs17234657", 1.8),)),
)
"""Planted effects, of the sizes that the literature reports for these SNPs or somewhat larger."""


def write_visits(
    folder: str | Path,
    patients: int,
    seed: int | None = None,
    *,
    fall: float = FALL,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Write `events.parquet` and `patients.parquet` into a new folder and return the number of events.

    events : `patient`, `visit` (from 1 for each patient), `code`. patients : `patient`, `sex` (0, 1), `age` (years),
    `biobank` and `study` (0, 1: the nested cohorts), and the copies (0, 1, 2) of each SNP's counted allele.

    `fall`: 0 and more; the larger, the more codes are rare. The same seed gives the same files, whatever `threads`;
    None draws anew. Raises BadInput if the folder exists, or its parent does not.
    """
    target = Path(folder)
    require_new(target, "folder")
    if not target.absolute().parent.is_dir():
        raise BadInput(f"{target}: the folder to write into does not exist.")
    if patients < 1:
        raise BadInput(f"`patients` must be at least 1; got {patients}.")
    aside = target.with_name(f".{target.name}.part")
    aside.mkdir()
    try:
        rows = _write(aside, patients, Randomness.of(seed), fall, threads or available_threads(), progress)
        aside.rename(target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return rows


def _write(
    folder: Path,
    patients: int,
    randomness: Randomness,
    fall: float,
    threads: int,
    progress: Callable[[int], None] | None,
) -> int:
    from leeward.synthetic.kernels import draw_visits

    people = People.draw(patients, randomness)
    pq.write_table(people.table(), folder / "patients.parquet", compression="zstd")
    catalogue = code_catalogue(CODES)
    of_traits = [code for trait in TRAITS for code in trait.codes]
    codes = [*catalogue, *sorted({*of_traits} - {*catalogue})]
    place = {code: number for number, code in enumerate(codes)}
    key = np.uint64(randomness.number("synthetic visits"))
    model = (
        offsets_of([len(trait.codes) for trait in TRAITS]),
        np.array([place[code] for code in of_traits], np.int32),
        np.uint64(CONDITION_SHARE * ONE),
        np.uint64(FURTHER_CODE * ONE),
        tables_of(code_weights(CODES, fall), conditions_of(CODES)),
    )

    def draw(first: int) -> tuple[Int32s, Int32s, Int32s]:
        chunk = slice(first, first + CHUNK_PATIENTS)
        person, visit, code = draw_visits(key, first, people.visits[chunk], people.traits[chunk], *model)
        return person, visit, code

    names = pa.array(codes, pa.string())
    schema = pa.schema(
        [("patient", pa.int64()), ("visit", pa.int32()), ("code", pa.dictionary(pa.int32(), pa.string()))]
    )
    rows = 0
    with (
        pq.ParquetWriter(folder / "events.parquet", schema, compression="zstd") as writer,
        pool(threads) as workers,
    ):
        starts = range(0, patients, CHUNK_PATIENTS)
        for first, (person, visit, code) in draw_in_order(workers, draw, starts, threads):
            columns = [
                pa.array(person.astype(np.int64) + first + 1),
                pa.array(visit),
                pa.DictionaryArray.from_arrays(pa.array(code), names),
            ]
            writer.write_table(pa.table(columns, schema=schema), row_group_size=max(1, len(person)))
            rows += len(person)
            if progress:
                progress(min(patients, first + CHUNK_PATIENTS))
    return rows


@dataclass(frozen=True)
class People:
    """Patient attributes, drawn for all patients at once."""

    visits: Int32s
    sex: NDArray[np.int8]
    age: Int16s
    biobank: NDArray[np.int8]
    study: NDArray[np.int8]
    copies: NDArray[np.int8]
    traits: NDArray[np.uint8]

    @staticmethod
    def draw(patients: int, randomness: Randomness) -> People:
        def stream(name: str) -> np.random.Generator:
            return randomness.stream("synthetic visits", name)

        rate = stream("rate").gamma(1.1, (VISITS - 1) / 1.1, patients)
        visits = 1 + stream("visits").poisson(rate)
        age = np.clip(stream("age").normal(52, 19, patients), 1, 99).astype(np.int16)
        # Members of the biobank and, inside it, of the study: without replacement, weights exp(appeal).
        sizes = [max(1, round(patients * size / POPULATION)) for size in (BIOBANK, STUDY)]
        appeal, draws = np.log(visits), stream("cohorts")
        order = np.argsort(-(appeal + draws.gumbel(size=patients)), kind="stable")[: sizes[0]]
        inside = appeal[order] + draws.gumbel(size=len(order))
        biobank, study = np.zeros((2, patients), np.int8)
        biobank[order] = 1
        study[order[np.argsort(-inside, kind="stable")[: sizes[1]]]] = 1
        share = np.array(list(SNPS.values()))
        copies = stream("snps").binomial(2, share, (patients, len(share))).astype(np.int8)
        return People(
            visits.astype(np.int32),
            stream("sex").integers(0, 2, patients).astype(np.int8),
            age,
            biobank,
            study,
            copies,
            _traits(copies, stream("traits")),
        )

    def table(self) -> pa.Table:
        columns = {
            "patient": np.arange(1, len(self.visits) + 1, dtype=np.int64),
            "sex": self.sex,
            "age": self.age,
            "biobank": self.biobank,
            "study": self.study,
        }
        return pa.table({**columns, **{name: self.copies[:, place] for place, name in enumerate(SNPS)}})


def _traits(copies: NDArray[np.int8], draws: np.random.Generator) -> NDArray[np.uint8]:
    place = {name: number for number, name in enumerate(SNPS)}
    found = np.empty((len(copies), len(TRAITS)), np.uint8)
    for number, trait in enumerate(TRAITS):
        logit = np.full(len(copies), np.log(trait.prevalence / (1 - trait.prevalence)))
        for name, ratio in trait.effects:
            logit += np.log(ratio) * copies[:, place[name]]
        found[:, number] = draws.random(len(copies)) < 1 / (1 + np.exp(-logit))
    return found
