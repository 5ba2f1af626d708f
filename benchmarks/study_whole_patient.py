"""Demographics and codes in one release: what demographics cost, and what they keep of questions about both.

    python benchmarks/study_whole_patient.py --data DIR

DIR holds `uci-diabetes130/diabetic_data.csv.gz` (UCI, Diabetes 130-US hospitals), `synthea-oh/` (patients.csv,
conditions.csv.gz), `eunomia-gibleed/` (PERSON.csv, CONDITION_OCCURRENCE.csv.gz) and `pyphewas-synthetic/` (group.csv,
icds.csv.gz). Writes the tables of docs/studies/whole-patient.md. Disassociation, m = 2, no policy, but in the part
`methods`, which runs the other methods too.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import study_whole_patient_methods as side
from common import commit, save, table, taken_by
from leeward.analysis.demographics import Columns, columns_of
from leeward.analysis.demographics.joint import Questions, draw, errors, independence
from leeward.analysis.demographics.released import ReleasedClasses
from leeward.cohort.cohort import Cohort
from leeward.cohort.lenses.code_sets import CodeSets
from leeward.cohort.readers import read
from leeward.methods.disassociation import Disassociation
from leeward.methods.disassociation.measures.estimates import estimates_in, estimates_of_numbers
from leeward.methods.disassociation.measures.published import read as published_of
from leeward.randomness import Randomness
from leeward.release import Release, write

sys.path.append(str(Path(__file__).resolve().parent.parent))
from tests.attacks.test_whole_patient import known_of  # after the path is known
from tests.attacks.whole_patient import attack
from tests.oracles.generalized_clusters import apriori, clusters, expected

PAGE = Path(__file__).resolve().parent.parent / "docs" / "studies" / "whole-patient.md"
KS = (2, 5, 10, 25)
PARTS = (
    "costs", "costs-made", "methods", "methods-by-k", "trajectories", "answers", "correlation", "generalization",
    "attack", "recodings",
)  # fmt: skip
QUESTIONS = 3_000
CLUSTERED = 4_000
"""Patients of the baseline's sample: its plain version takes hours for all."""
SAMPLED = 10_000
"""Patients of the sample that is censored, the population being all."""
ATTACKED = 2_000
"""Patients whom the attacker knows."""


def uci(data: Path, **more: str) -> Cohort:
    """UCI: age in decades, sex, race; `more`: further columns to read."""
    found = read(
        data / "uci-diabetes130/diabetic_data.csv.gz",
        columns={
            "patient": "patient_nbr",
            "code": ["diag_1", "diag_2", "diag_3"],
            "patients": ["age", "gender", "race"],
            **more,
        },
        missing=["?"],
    )
    assert found.patients is not None
    return Cohort(
        found.events, found.patients.rename({"gender": "sex"}), name="UCI", vocabulary=found.vocabulary
    )


def synthea(data: Path) -> Cohort:
    """Synthea Ohio: age in years in 2018, sex, race."""
    people = pl.read_csv(data / "synthea-oh/patients.csv", infer_schema=False)
    people = people.select(
        patient="pat_id",
        age=2018 - pl.col("birth_date").str.slice(0, 4).cast(pl.Int64, strict=False),
        sex="gender",
        race="race",
    )
    rows = pl.read_csv(data / "synthea-oh/conditions.csv.gz", infer_schema=False)
    who = next(name for name in rows.columns if "pat" in name.lower())
    code = next(name for name in rows.columns if name.upper() == "CODE")
    return _joined(rows.select(patient=who, code=code), people)


def eunomia(data: Path) -> Cohort:
    """Eunomia GiBleed: age in years in 2020, sex, race."""
    people = pl.read_csv(data / "eunomia-gibleed/PERSON.csv", infer_schema=False)
    people = people.select(
        patient="PERSON_ID",
        age=2020 - pl.col("YEAR_OF_BIRTH").cast(pl.Int64),
        sex="GENDER_SOURCE_VALUE",
        race="RACE_SOURCE_VALUE",
    )
    rows = pl.read_csv(data / "eunomia-gibleed/CONDITION_OCCURRENCE.csv.gz", infer_schema=False)
    return _joined(rows.select(patient="PERSON_ID", code="CONDITION_CONCEPT_ID"), people)


def _joined(events: pl.DataFrame, people: pl.DataFrame) -> Cohort:
    columns: dict[str, Any] = {"patient": "patient", "code": "code", "patients": ["age", "sex", "race"]}
    return read(events.join(people, on="patient"), columns=columns, vocabulary="none")


DATA: dict[str, Callable[[Path], Cohort]] = {
    "UCI": uci,
    "Synthea Ohio": synthea,
    "Eunomia": eunomia,
}


def release_of(cohort: Cohort, folder: Path, **parameters: Any) -> tuple[Release, dict[str, Any]]:
    """A release and the method's facts."""
    made = Disassociation(**{"k": 5, "m": 2, **parameters}).protect(cohort, randomness=Randomness.of(1))
    out = folder / f"{len(list(folder.iterdir()))}"
    return Release.open(write(made, out)), dict(made.custody)


def share_lost(facts: dict[str, Any]) -> float:
    """Code occurrences in item chunks, of all."""
    return float(facts["item_occurrences"] / facts["occurrences"])


def costs(cohort: Cohort, folder: Path) -> str:
    """What each demographic costs the codes, by k."""
    kept: list[tuple[str, dict[str, Any]]] = [
        ("none", {}),
        ("age in 20 years", {"age": 20}),
        ("and sex", {"age": 20, "sex": "exact"}),
        ("age in 10 years, sex", {"age": 10, "sex": "exact"}),
        ("and race", {"age": 10, "sex": "exact", "race": "exact"}),
    ]
    rows = []
    for name, keep in kept:
        cells: list[str] = []
        for k in KS:
            parameters = {"k": k, "demographics": tuple(keep), "keep": keep} if keep else {"k": k}
            _, facts = release_of(cohort, folder, **parameters)
            small = facts.get("patients_in_small_classes", 0)
            cells.append(f"{share_lost(facts):.3f} ({facts.get('classes', 1)}, {small})")
        rows.append([name, *cells])
    return table(["demographics kept", *(f"k = {k}" for k in KS)], rows)


def columns_for(cohort: Cohort, sets: CodeSets, names: tuple[str, ...]) -> Columns:
    """The exact columns."""
    return columns_of(cohort.patients, sets.patients, names, {}, {}, cohort.name)


def answers(cohort: Cohort, folder: Path) -> str:
    """Questions of demographics and codes: this release, apart, and the published generalization."""
    sets, names = cohort.code_sets(), ("age", "sex")
    levels: dict[str, Any] = {"age": 10, "sex": "exact"}
    columns = columns_for(cohort, sets, names)
    questions = draw(columns, sets, levels, QUESTIONS)
    classed, _ = release_of(cohort, folder, demographics=names, keep=levels)
    bare, _ = release_of(cohort, folder)
    ways = {
        "in classes": in_classes(classed, questions, columns, sets),
        "apart, released": apart(bare, questions, sets),
        "apart, true counts": independence(questions, sets),
    }
    found = errors(questions, ways)
    rows = [
        [f"{each.codes}, {each.at_least} or more", each.questions, *(f"{e.are:.3f}" for e in each.errors)]
        for each in found
    ]
    return table(["codes, true count of", "questions", *ways], rows)


TIMES = (0.0, 0.5, 0.8, 1.25, 2.0, 4.0, np.inf)
"""Bounds of how many times as often the codes occur in the demographics asked for as independence says."""


def correlation(cohort: Cohort, folder: Path) -> list[list[Any]]:
    """Errors by how much codes and demographics depend on each other: questions with a true count of 10 or more."""
    sets, names = cohort.code_sets(), ("age", "sex")
    levels: dict[str, Any] = {"age": 10, "sex": "exact"}
    columns = columns_for(cohort, sets, names)
    questions = draw(columns, sets, levels, QUESTIONS)
    classed, _ = release_of(cohort, folder, demographics=names, keep=levels)
    found, alone = in_classes(classed, questions, columns, sets), independence(questions, sets)
    frequent = (questions.true >= 10) & (questions.size <= 2)
    times = questions.true / alone
    rows = []
    for low, high in itertools.pairwise(TIMES):
        mine = frequent & (times >= low) & (times < high)
        if not mine.any():
            continue
        true = questions.true[mine]
        errors_of = [f"{np.mean(np.abs(way[mine] - true) / true):.3f}" for way in (found, alone)]
        name = f"{low:g} and more" if high == np.inf else f"{low:g} to {high:g}"
        rows.append([cohort.name, name, int(mine.sum()), *errors_of])
    return rows


def in_classes(
    release: Release, questions: Questions, columns: Columns, sets: CodeSets
) -> np.ndarray[Any, Any]:
    """The expected counts of a release with demographics."""
    published, classes = published_of(release), ReleasedClasses.read(release)
    found = np.zeros(len(questions.codes))
    translate = np.array([published.number.get(code, -1) for code in sets.codes], np.int32)
    for cell in np.unique(questions.cell):
        mine = np.flatnonzero(questions.cell == cell)
        where = dict(zip(columns.names, columns.labels(questions.cells[cell]), strict=True))
        concerned = classes.find_part(where)
        asked = [translate[questions.codes[i]] for i in mine]
        found[mine] = estimates_in(published, concerned, classes.number, asked).expected
    return found


def apart(release: Release, questions: Questions, sets: CodeSets) -> np.ndarray[Any, Any]:
    """Codes in one release without demographics, times the true share of the cell."""
    published = published_of(release)
    translate = np.array([published.number.get(code, -1) for code in sets.codes], np.int32)
    share = np.bincount(questions.cell_of, minlength=len(questions.cells)) / len(questions.cell_of)
    asked = [translate[codes] for codes in questions.codes]
    return np.asarray(estimates_of_numbers(published, asked).expected * share[questions.cell])


def against_generalization(cohort: Cohort, folder: Path) -> str:
    """The published generalization, plain, on a sample of patients; codes have their first three characters above
    them, and above these the root."""
    everybody = cohort.code_sets()
    chosen = np.sort(Randomness.of(2).stream("sample").permutation(len(everybody))[:CLUSTERED])
    patients = everybody.patients.gather(chosen)
    events = cohort.require_events().filter(pl.col("patient").is_in(patients.implode()))
    assert cohort.patients is not None
    part = Cohort(events, cohort.patients, name=cohort.name, vocabulary=cohort.vocabulary)
    sets = part.code_sets()
    columns = columns_for(part, sets, ("age", "sex"))
    levels: dict[str, Any] = {"age": 10, "sex": "exact"}
    questions = draw(columns, sets, levels, QUESTIONS)
    records = [
        frozenset(sets.codes[c] for c in sets.values[sets.offsets[r] : sets.offsets[r + 1]])
        for r in range(len(sets))
    ]
    tree = {"*": ""} | {code[:3]: "*" for code in sets.codes} | {
        code: code[:3] for code in sets.codes if len(code) > 3
    }  # fmt: skip
    below = {
        label: sum(tree.get(code, "") == label or code == label for code in sets.codes) for label in tree
    }
    below["*"] = len(sets.codes)
    vectors = [columns.labels(v) for v in columns.vectors(levels)]
    loss = {(a, b): float(sum(x != y for x, y in zip(a, b, strict=True)))
            for a in set(vectors) for b in set(vectors)}  # fmt: skip
    groups = clusters(vectors, loss, 5)
    labels = [apriori([records[r] for r in group], tree, 5, 2) for group in groups]
    cells = [columns.labels(v) for v in questions.cells]
    general = np.zeros(len(questions.codes))
    wanted = [frozenset(sets.codes[c] for c in codes) for codes in questions.codes]
    for group, label in zip(groups, labels, strict=True):
        shares = {
            cell: sum(vectors[r] == cell for r in group) / len(group) for cell in {vectors[r] for r in group}
        }
        shown = [records[r] for r in group]
        known: dict[frozenset[str], float] = {}
        for i in np.flatnonzero(
            np.isin(questions.cell, [n for n, cell in enumerate(cells) if cell in shares])
        ):
            if wanted[i] not in known:
                full = {code: label.get(code, "*") for code in wanted[i]} | label
                known[wanted[i]] = expected(shown, full, wanted[i], below)
            general[i] += known[wanted[i]] * shares[cells[questions.cell[i]]]
    classed, _ = release_of(part, folder, demographics=("age", "sex"), keep=levels)
    ways = {
        "in classes": in_classes(classed, questions, columns, sets),
        "apart, true counts": independence(questions, sets),
        "clusters and Apriori": general,
    }
    rows = [
        [f"{each.codes}, {each.at_least} or more", each.questions, *(f"{e.are:.3f}" for e in each.errors)]
        for each in errors(questions, ways)
    ]
    return table(["codes, true count of", "questions", *ways], rows)


def recodings(cohort: Cohort, folder: Path, ks: Sequence[int]) -> list[list[str]]:
    """Full against local recoding of age, sex and race on the objective, by k."""
    rows = []
    for k in ks:
        cells = [str(k)]
        for recoding in ("full", "local"):
            _, facts = release_of(cohort, folder, k=k, demographics=("age", "sex", "race"), recoding=recoding)
            loss, lost = float(np.mean(list(facts["demographics_loss"].values()))), share_lost(facts)
            cells.append(f"{loss:.3f} + {lost:.3f} = {loss + lost:.3f} ({facts['classes']})")
        rows.append(cells)
    return rows


def methods(data: Path, folder: Path) -> str:
    """Methods with demographics, beside their releases without."""
    everyone = uci(data, visit="encounter_id")
    aged = side.with_ages(data)
    small = side.tasks(side.part_of(everyone, 2_000), 1_000, side.part_of(aged, 500))
    side.side_by_side(small, folder / "small")  # loads the kernels: no method pays for that below
    return side.side_by_side(side.tasks(everyone, SAMPLED, aged), folder / "all")


def attack_on(cohort: Cohort, folder: Path) -> str:
    """The attacker of age and sex exactly and up to m codes, on sampled patients: candidates counted in the files."""
    release, _ = release_of(cohort, folder, demographics=("age", "sex"), keep={"age": 10, "sex": "exact"})
    known = sorted(
        known_of(cohort), key=lambda one: (*one[0].values(), sorted(one[1]))
    )  # the same every time
    drawn = np.random.default_rng(7).choice(len(known), ATTACKED, replace=False)
    found = attack(release.share, [known[i] for i in drawn])
    row = [f"{ATTACKED:,}", f"{found.sets:,}", found.below_k, found.smallest]
    return table(
        ["patients", "pieces of knowledge", "with fewer than k candidates", "fewest candidates"], [row]
    )


def main() -> None:
    """Run the parts and put the tables into the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the public data sets")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument(
        "--ks", default=",".join(map(str, KS)), help="k of `recodings`, `methods-by-k`, `trajectories`"
    )
    parser.add_argument("--seeds", default="1,2,3", help="seeds of `methods-by-k`")
    parser.add_argument(
        "--only", default="", help="beginning of the names of methods, for `methods-by-k` in pieces"
    )
    parser.add_argument("--store", type=Path, help="file in which `methods-by-k` keeps what it has")
    asked = parser.parse_args()
    measured = commit()  # before the page is written
    for part in asked.parts.split(","):
        with tempfile.TemporaryDirectory() as folder:
            if part == "methods-by-k":
                body = methods_by_k(asked, Path(folder), measured)
            else:
                body = run(part, asked.data, Path(folder), [int(k) for k in asked.ks.split(",")])
        put(part, body, measured)
        print(f"{part}: done", flush=True)


def methods_by_k(asked: argparse.Namespace, folder: Path, measured: str) -> str:
    """What each method loses by k, with and without demographics; in pieces (`--ks`, `--seeds`, `--only`)."""
    everyone = uci(asked.data, visit="encounter_id")
    tasks = side.tasks(everyone, SAMPLED, side.with_ages(asked.data))
    wanted = [task for task in tasks if task.name.startswith(asked.only)]
    store = (asked.store or folder / "lost").with_suffix(f".{measured}.json")
    ks, seeds = ([int(each) for each in text.split(",")] for text in (asked.ks, asked.seeds))
    side.lost_by_k(wanted, folder, ks, seeds, store)
    return side.lost_by_k(tasks, folder, (), (), store)


def run(part: str, data: Path, folder: Path, ks: Sequence[int]) -> str:
    """The tables of a part."""
    if part == "costs":
        return costs(uci(data), folder)
    if part == "costs-made":
        made = {name: make for name, make in DATA.items() if name != "UCI"}
        return "\n\n".join(f"{name}\n\n{costs(make(data), folder)}" for name, make in made.items())
    if part == "correlation":
        rows = [[name, *row[1:]] for name, make in DATA.items() for row in correlation(make(data), folder)]
        return table(
            ["data", "times as often as apart", "questions", "in classes", "apart, true counts"], rows
        )
    if part == "methods":
        return methods(data, folder)
    if part == "trajectories":
        return side.trajectories_asked(side.with_ages(data), folder, ks)
    if part == "attack":
        return attack_on(uci(data), folder)
    if part == "generalization":
        return against_generalization(uci(data), folder)
    if part == "answers":
        return "\n\n".join(f"{name}\n\n{answers(make(data), folder)}" for name, make in DATA.items())
    rows = [[name, *row] for name, make in DATA.items() for row in recodings(make(data), folder, ks)]
    return table(["data", "k", "full", "local"], rows)


def put(part: str, body: str, measured: str) -> None:
    """A part's tables in the page, with what they were taken on."""
    begin, end = f"<!-- {part} -->", f"<!-- end of {part} -->"
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(begin, 1)
    command = f"python benchmarks/study_whole_patient.py --data DIR --parts {part}"
    section = f"{begin}\n{body}\n\n{taken_by(command, text, measured)}\n{end}"
    save(PAGE, before + section + rest.split(end, 1)[1])


if __name__ == "__main__":
    main()
