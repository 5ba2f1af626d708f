"""Heatherly et al. (2013) at the paper's size: Tables 1 to 5, cohorts chosen for traits, effects, volume.

    python benchmarks/study_visits_population.py --data DIR --parts rare
    python benchmarks/study_visits_population.py --data DIR --parts cohorts
    python benchmarks/study_visits_population.py --data DIR --parts volume

DIR holds `vocab/` (the phecode map 1.2 and a list of ICD-9-CM). Writes its sections of docs/studies/visits.md and the
plots beside it. `--keep FOLDER` keeps what was counted, so that a run goes on where it stopped.

Populations are those of `leeward synth visits`. Their codes get the names of real codes in order, first of those in the
phecode map, so that the map covers nearly all of them, as the paper's did. Releases are made by the method's own steps,
in memory (`anonymize`), and neither written nor verified; tests/studies/test_visits_population.py compares them with
written, verified and measured releases, figure by figure.

`rare`: populations with fewer and with more rare codes, and what each policy keeps. `cohorts`: cohorts of the biobank,
some by number of visits, some of which half have a trait, drawn from the population, from the biobank and anonymized
alone. `volume`: what is kept as the population grows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from common import once
from leeward.analysis.phewas import associations as phewas
from leeward.analysis.phewas.phenotypes import phenotypes_of
from leeward.arrays import Int64s, offsets_of, positions_of
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.visits import Visits as Lens
from leeward.cohort.readers import read
from leeward.engine import make
from leeward.methods.visits import Visits
from leeward.methods.visits.bins import groups_of
from leeward.methods.visits.method import enforce
from leeward.methods.visits.sets import VisitSets, unions
from leeward.synthetic.visits import FALL, POPULATION, SNPS, STUDY, TRAITS, write_visits
from leeward.vocabulary import phecode
from study_visits import folder, put, table

K, MIN_CASES = 5, 25
COLUMNS = {"patient": "patient", "code": "code", "visit": "visit"}
SETTINGS: dict[str, dict[str, Any]] = {
    "code, phecode": {"level": "code", "policy": "phecode"},
    "code, hierarchy:1": {"level": "code"},
    "visit": {"level": "visit"},
    "containment": {"level": "containment", "merge_visits": True},
}
SCANNED = ("code, phecode", "visit", "containment")
"""Settings whose cohorts are tested for associations."""
RESCUED = {**SETTINGS["code, phecode"], "rescue": True}
VOLUME: dict[str, dict[str, Any]] = {
    "code": SETTINGS["code, phecode"],
    "code, rescue": RESCUED,
    "visit": SETTINGS["visit"],
    "containment": SETTINGS["containment"],
}
SHARES = (95, 99)
"""Per cent of diagnoses and of codes that a population should be large enough to keep."""
KINDS = ("by visits", "enriched")
DRAWS = ("drawn from the population", "drawn from the biobank", "anonymized alone")
FALLS = (2.0, FALL)


def main() -> None:
    """Run the parts, write their sections."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the public data sets")
    parser.add_argument("--parts", default="rare,cohorts,volume", help="which to run")
    parser.add_argument("--patients", type=int, default=POPULATION)
    parser.add_argument("--draws", type=int, default=5, help="cohorts of each kind")
    parser.add_argument("--sizes", default=f"1000,3000,10000,30000,100000,300000,{POPULATION}")
    parser.add_argument("--keep", type=Path, help="folder for what was counted")
    options = parser.parse_args()
    vocabulary = options.data / "vocab"
    with folder(options.keep) as place:
        for part in options.parts.split(","):
            if part == "rare":
                lines = rare(vocabulary, options.patients, place)
            elif part == "cohorts":
                lines = cohorts(vocabulary, options.patients, options.draws, place)
            else:
                sizes = [int(size) for size in options.sizes.split(",")]
                lines = volume(vocabulary, sizes, place)
            put(part, f"python benchmarks/study_visits_population.py --data DIR --parts {part}", lines)


def map_of(vocabulary: Path) -> Path:
    """The phecode map."""
    return vocabulary / "phecode_map_v1_2_icd9.csv.gz"


def name_codes(codes: Sequence[str], vocabulary: Path) -> dict[str, str]:
    """A real name for each code, in order: codes of the phecode map, then others of ICD-9-CM; traits keep theirs."""
    traits = {code for trait in TRAITS for code in trait.codes}
    known = sorted({*phecode.load(map_of(vocabulary)).codes["icd9"]} - traits)
    listed = pl.read_csv(vocabulary / "icd9cm_hierarchy.csv.gz", infer_schema=False)
    others = sorted({_with_dot(code) for code in listed["code"]} - {*known} - traits)
    free = [code for code in codes if code not in traits]
    pool = sorted([*known, *_spread(others, max(0, len(free) - len(known)))])
    return dict(zip(free, _spread(pool, len(free)), strict=True)) | {code: code for code in traits}


def _with_dot(code: str) -> str:
    width = 4 if code.startswith("E") else 3
    return f"{code[:width]}.{code[width:]}" if len(code) > width else code


def _spread(names: list[str], wanted: int) -> list[str]:
    return [names[place * len(names) // max(1, wanted)] for place in range(wanted)]


@dataclass(frozen=True)
class People:
    """A population: its cohort (vocabulary and codes), its visits, its patients with their SNPs in the same order."""

    cohort: Cohort
    lens: Lens
    attributes: pl.DataFrame

    @staticmethod
    def read(source: Path, vocabulary: Path) -> People:
        events = pl.read_parquet(source / "events.parquet")
        codes = events["code"].unique().cast(pl.String).sort().to_list()
        names = name_codes(codes, vocabulary)
        real = pl.Enum(sorted(names[code] for code in codes))
        code = (
            events["code"]
            .cast(pl.Enum(codes))
            .replace_strict(codes, pl.Series([names[c] for c in codes], dtype=real))
        )
        return People.of(read(events.with_columns(code=code), columns=COLUMNS, vocabulary="icd9"), source)

    @staticmethod
    def of(cohort: Cohort, source: Path) -> People:
        lens = cohort.visits()
        attributes = pl.read_parquet(source / "patients.parquet")
        places = attributes["patient"].cast(lens.patients.dtype).to_frame("patient").with_row_index("row")
        order = lens.patients.alias("patient").to_frame().join(places, on="patient", maintain_order="left")
        return People(cohort, lens, attributes[order["row"]])

    def take(self, patients: Int64s) -> People:
        """Some of the patients, by ascending place."""
        sets = take_sets(self.sets(), patients)
        used, values = np.unique(sets.values, return_inverse=True)
        codes = tuple(self.lens.codes[code] for code in used.tolist())
        people, rows = self.lens.patients.gather(patients), self.lens.rows[: len(sets)]
        lens = Lens(sets.patient_offsets, sets.offsets, values.astype(np.int32), codes, people, rows)
        return People(self.cohort, lens, self.attributes[patients])

    def sets(self) -> VisitSets:
        return VisitSets(self.lens.patient_offsets, self.lens.offsets, self.lens.values)


def take_sets(sets: VisitSets, patients: Int64s) -> VisitSets:
    """The visits of some patients."""
    chosen = positions_of(sets.patient_offsets, patients)
    starts = offsets_of(np.diff(sets.patient_offsets)[patients])
    values = sets.values[positions_of(sets.offsets, chosen)]
    return VisitSets(starts, offsets_of(np.diff(sets.offsets)[chosen]), values)


@dataclass(frozen=True)
class Released:
    """Released visits and their labels; processor seconds that it took."""

    sets: VisitSets
    labels: tuple[str, ...]
    seconds: float = 0.0


def anonymize(people: People, setting: dict[str, Any], vocabulary: Path) -> Released:
    """The steps of the method between reading and writing."""
    given = dict(setting)
    if given.get("policy") == "phecode":
        given["policy"] = f"phecode:{map_of(vocabulary)}"
    method = Visits(k=K, **given)
    groups = groups_of(method.policy, people.cohort, people.lens)  # type: ignore[arg-type]  # `rules` parsed it
    order = np.random.Generator(np.random.Philox(key=1)).permutation(len(people.lens))
    begin = time.process_time()
    outcome = enforce(method, people.cohort.vocabulary, make(None), people.lens, groups, order)
    return Released(outcome.enforced, outcome.labels, time.process_time() - begin)


def anonymize_once(people: People, setting: dict[str, Any], vocabulary: Path, place: Path) -> Released:
    """A population's release, as an earlier run kept it where one did: a level may take long."""
    named = "-".join(f"{value}" for value in setting.values())
    file = place / f"released-{len(people.lens)}-{named.replace(':', '')}.npz"
    if not file.is_file():
        made = anonymize(people, setting, vocabulary)
        arrays = {name: getattr(made.sets, name) for name in ("patient_offsets", "offsets", "values")}
        np.savez(file, labels=np.array(made.labels), seconds=made.seconds, **arrays)
    kept = np.load(file)
    sets = VisitSets(kept["patient_offsets"], kept["offsets"], kept["values"])
    return Released(sets, tuple(kept["labels"].tolist()), float(kept["seconds"]))


def count_kept(original: People, released: Released) -> dict[str, int]:
    """DC and CC of the original, of the release, and of codes released as they were."""
    held = np.bincount(unions(released.sets, len(released.labels)).values, minlength=len(released.labels))
    shown = [label for label, n in zip(released.labels, held.tolist(), strict=True) if n]
    single = np.array(["|" not in label for label in released.labels], np.bool_)
    every, known = unions(original.sets(), len(original.lens.codes)).values, set(original.lens.codes)
    return {
        "DC original": len(every),
        "DC": int(held.sum()),
        "DC single": int(held[single].sum()),
        "CC original": len(np.unique(every)),
        "CC": len({member for label in shown for member in label.split("|")} & known),
        "CC single": int(np.count_nonzero(held[single])),
    }


def share(kept: dict[str, int], name: str) -> float:
    """In per cent of the original's."""
    return 100 * kept[name] / max(1, kept[f"{name[:2]} original"])


def rare(vocabulary: Path, patients: int, place: Path) -> list[str]:
    """Table 3 on populations that differ in the fall of their codes' tail alone."""
    rows = []
    for fall in FALLS:
        found = once(
            place / "rare.json",
            f"{patients} {fall}",
            lambda fall=fall: gain(vocabulary, patients, fall, place),
        )
        phecodes, sections, rescued = (
            found[name] for name in ("code, phecode", "code, hierarchy:1", "rescue")
        )
        rows.append(
            {
                "fall": f"{fall:g}",
                "codes": phecodes["CC original"],
                "below k": phecodes["CC original"] - phecodes["CC single suppressed"],
                "CC %, suppressed": share(phecodes, "CC single suppressed"),
                "`hierarchy:1`": share(sections, "CC"),
                "`phecode`": share(phecodes, "CC"),
                "`phecode`, `rescue`": share(rescued, "CC"),
                "gain, points": share(rescued, "CC") - share(phecodes, "CC single suppressed"),
                "DC %, suppressed": share(phecodes, "DC single suppressed"),
                "DC %, `phecode`": share(phecodes, "DC"),
                "DC %, `rescue`": share(rescued, "DC"),
            }
        )
    lines = table(f"Table 3: codes of {patients:,} patients, level `code`", rows, ["fall"], 2)
    return [
        *lines,
        "\nThe paper: 89.48 % without generalization, 99.98 % with it; of diagnoses 99.97 and 99.99 %.",
    ]


def gain(vocabulary: Path, patients: int, fall: float, place: Path) -> dict[str, dict[str, int]]:
    """What either policy keeps of one population, and what suppression alone does."""
    source = place / f"people-{patients}-{fall:g}"
    if not source.is_dir():
        write_visits(source, patients, 1, fall=fall)
    people = People.read(source, vocabulary)
    united = unions(people.sets(), len(people.lens.codes)).values
    held = np.bincount(united, minlength=len(people.lens.codes))
    alone = {
        "DC single suppressed": int(held[held >= K].sum()),
        "CC single suppressed": int(np.count_nonzero(held >= K)),
    }
    return {
        name: count_kept(people, anonymize(people, given, vocabulary)) | alone
        for name, given in {**SETTINGS, "rescue": RESCUED}.items()
        if given["level"] == "code"
    }


def cohorts(vocabulary: Path, patients: int, draws: int, place: Path) -> list[str]:
    """Tables 1, 2, 4 and 5."""
    from study_visits_errors import planted_pairs
    from study_visits_tables import sections

    source = place / f"people-{patients}-{FALL:g}"
    if not source.is_dir():
        write_visits(source, patients, 1)
    file, found = place / "cohorts.json", {}
    everyone: People | None = None
    originals: list[pl.DataFrame] = []
    for setting in SETTINGS:
        key = f"{patients} {draws} {setting}"

        def work(setting: str = setting) -> dict[str, Any]:
            nonlocal everyone
            everyone = everyone or People.read(source, vocabulary)
            return compare_cohorts(everyone, setting, draws, vocabulary, place, originals)

        found[setting] = once(file, key, work)
    planted = planted_pairs(TRAITS, phecode.load(map_of(vocabulary)))
    return sections(found, phecodes_of_traits(vocabulary), planted, f"{patients:,}", draws)


def compare_cohorts(
    everyone: People, setting: str, draws: int, vocabulary: Path, place: Path, originals: list[pl.DataFrame]
) -> dict[str, Any]:
    """Everything of one setting: what the masters keep, and each cohort in each of its three releases. `originals`: the
    scans of the cohorts' originals, made here if there are none yet."""
    given = SETTINGS[setting]
    members = np.flatnonzero(everyone.attributes["biobank"].to_numpy())
    biobank = everyone.take(members)
    masters = {
        name: (people, anonymize_once(people, given, vocabulary, place))
        for name, people in (("population", everyone), ("biobank", biobank))
    }
    found: dict[str, Any] = {name: count_kept(*of) for name, of in masters.items()}
    mapping = phewas.mapping_of(str(map_of(vocabulary)))
    found["cohorts"] = []
    for number, (kind, chosen) in enumerate(choose(biobank, draws)):
        cohort = biobank.take(chosen)
        if len(originals) == number and setting in SCANNED:
            originals.append(scan(cohort, Released(cohort.sets(), cohort.lens.codes), mapping))
        releases = {DRAWS[2]: anonymize(cohort, given, vocabulary)}
        for name, strategy, places in (
            ("biobank", DRAWS[1], chosen),
            ("population", DRAWS[0], members[chosen]),
        ):
            whole = masters[name][1]
            releases[strategy] = replace(whole, sets=take_sets(whole.sets, places))
        for strategy, released in reversed(releases.items()):
            row = {"kind": kind, "strategy": strategy, "kept": count_kept(cohort, released)}
            if setting in SCANNED:
                row |= associations(originals[number], scan(cohort, released, mapping), mapping)
            found["cohorts"].append(row)
    return found


def choose(biobank: People, draws: int) -> Iterator[tuple[str, Int64s]]:
    """Cohorts of the paper's share of the biobank: preferring patients with many visits, and half with a trait."""
    size = max(2, round(len(biobank.lens) * STUDY / 104_904))
    visits = np.diff(biobank.lens.patient_offsets)
    traits = [place for place, code in enumerate(biobank.lens.codes) if code in _codes_of_traits()]
    with_trait = np.zeros(len(biobank.lens), np.bool_)
    with_trait[biobank.lens.table().filter(pl.col("code").is_in(traits))["patient"].unique().to_numpy()] = (
        True
    )
    for draw in range(draws):
        generator = np.random.Generator(np.random.Philox(key=draw))
        score = np.log(visits) + generator.gumbel(size=len(visits))
        yield KINDS[0], np.sort(np.argsort(-score, kind="stable")[:size])
        halves = [
            generator.choice(np.flatnonzero(of), n, replace=False)
            for of, n in ((with_trait, size // 2), (~with_trait, size - size // 2))
        ]
        yield KINDS[1], np.sort(np.concatenate(halves))


def _codes_of_traits() -> set[str]:
    return {code for trait in TRAITS for code in trait.codes}


def scan(cohort: People, released: Released, mapping: Any) -> pl.DataFrame:
    """The phenome-wide scan of a cohort as a release shows it."""
    sets = released.sets
    visit = np.repeat(np.arange(len(sets)), np.diff(sets.offsets))
    mentions = pl.DataFrame(
        {
            "person": sets.patient_of_visit()[visit],
            "visit": visit,
            "code": pl.Series(released.labels, dtype=pl.Enum(released.labels)).gather(sets.values),
        }
    )
    phenotypes = phenotypes_of(mentions, len(cohort.lens), mapping, ("icd9",))
    return phewas.scan(phenotypes, cohort.attributes, list(SNPS), min_cases=MIN_CASES)


def associations(before: pl.DataFrame, after: pl.DataFrame, mapping: Any) -> dict[str, Any]:
    """Lost and false by rule and SNP, and every test with both p, effects and errors."""
    keys = ["predictor", "phecode"]
    columns = {"p_allelic": "p", "beta": "beta", "error": "error"}
    both = before.select(
        *keys, "cases", *(pl.col(a).alias(f"{b}_original") for a, b in columns.items())
    ).join(
        after.select(*keys, *(pl.col(a).alias(f"{b}_release") for a, b in columns.items())),
        on=keys,
        how="full",
        coalesce=True,
    )
    both = both.filter(pl.any_horizontal(pl.col("^p_.*$").is_not_null())).with_columns(
        phenotype=pl.col("phecode").replace_strict(
            dict(mapping.phenotypes), default="", return_dtype=pl.String
        ),
        category=pl.col("phecode").replace_strict(
            dict(mapping.categories), default="", return_dtype=pl.String
        ),
    )
    moved = phewas.compare_effects(
        both.rename({"beta_original": "beta", "error_original": "error", "beta_release": "beta_anonymized"})
    )
    return {
        "comparison": phewas.compare(before, after).to_dicts(),
        "effects": moved,
        "tests": both.sort(keys).to_dicts(),
    }


def phecodes_of_traits(vocabulary: Path) -> dict[str, str]:
    """The longest phecode that all codes of a trait count for."""
    mapping = phecode.load(map_of(vocabulary))
    found = {}
    for trait in TRAITS:
        common = set.intersection(*({*mapping.roll_up(code)} for code in trait.codes))
        found[trait.name] = max(common, key=lambda each: (len(each), each))
    return found


def volume(vocabulary: Path, sizes: Sequence[int], place: Path) -> list[str]:
    """What each level keeps of growing populations; processor seconds of the steps between reading and writing."""
    rows, kept = [], {}
    for size in sizes:
        row: dict[str, Any] = {"patients": f"{size:,}"}
        for level in VOLUME:
            key = f"{size} {level}"
            found = once(
                place / "volume.json",
                key,
                lambda size=size, level=level: grown(vocabulary, size, level, place),
            )
            kept[level, size] = found
            row["pairs"], row["codes"] = f"{found['DC original']:,}", f"{found['CC original']:,}"
            row[f"{level}: DC % / CC % / CPU, s"] = [share(found, "DC"), share(found, "CC"), found["seconds"]]
        rows.append(row)
    return [
        *table("Kept as the population grows", rows, ["patients", "pairs", "codes"]),
        *table("Patients that it takes", list(needed(kept, sizes)), ["level"]),
    ]


def needed(kept: dict[tuple[str, int], dict[str, Any]], sizes: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Of each level, between which of the sizes tried each share begins to be kept."""
    for level in VOLUME:
        row = {"level": level}
        for name, key in (("diagnoses", "DC"), ("codes", "CC")):
            for wanted in SHARES:
                enough = [size for size in sizes if share(kept[level, size], key) >= wanted]
                row[f"{wanted} % of {name}"] = between(enough[0] if enough else None, sizes)
        yield row


def between(first: int | None, sizes: Sequence[int]) -> str:
    """The first size that is enough, and the one before."""
    before = sizes[: sizes.index(first) if first else len(sizes)][-1:]
    if not first:
        return f"more than {before[0]:,}"
    return f"{before[0]:,} to {first:,}" if before else f"up to {first:,}"


@lru_cache(maxsize=1)
def read_once(source: Path, vocabulary: Path) -> People:
    """A population, read once for all levels."""
    return People.read(source, vocabulary)


def grown(vocabulary: Path, size: int, level: str, place: Path) -> dict[str, Any]:
    """One population at one level."""
    source = place / f"people-{size}-{FALL:g}"
    if not source.is_dir():
        write_visits(source, size, 1)
    people = read_once(source, vocabulary)
    released = anonymize_once(people, VOLUME[level], vocabulary, place)
    return count_kept(people, released) | {"seconds": round(released.seconds)}


if __name__ == "__main__":
    main()
