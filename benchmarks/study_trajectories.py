"""The experiments of Tamersoy (2011), chapter IV, again: writes docs/studies/trajectories.md.

    python benchmarks/study_trajectories.py [--data DIR] [--output docs/studies/trajectories.md]

The thesis's sets cannot be had; the sets here have the shapes of its Table 3 (`leeward synth trajectories`, seed 1).
DIR holds the public sets `synthea-oh/` (Synthea, from nkbds/ws2018), `pyphewas-synthetic/` (MASILab/pyPheWAS) and
`eunomia-gibleed/` (OHDSI/Eunomia); without it their part is left out. Needs some time on two cores, most of it for
Baseline, which nothing prunes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import study_trajectories_figures as figures
from benchmarks import trajectories_exhaustive as exhaustive
from benchmarks.common import commit, machine, save
from benchmarks.objections import ended

from leeward.cohort.cohort import Cohort
from leeward.engine import available_threads
from leeward.methods.trajectories import Trajectories, clustering, hierarchies
from leeward.methods.trajectories.records import Group, Losses, Records, losses_of
from leeward.runs.measure import measure
from leeward.runs.protect import protect
from leeward.synthetic.trajectories import SETS, write_trajectories
from leeward.vocabulary.omop import from_concept_ancestor

KS = (2, 5, 10, 15)
AGES = "1-128"
"""The thesis's tree of ages."""

OUTPUT = Path(__file__).resolve().parent.parent / "docs" / "studies" / "trajectories.md"


def paper(k: int, **given: Any) -> Trajectories:
    """The thesis's clustering."""
    return Trajectories(k=k, clustering="alignment", **given)


class Page:
    """Markdown, line by line, to a file and to the terminal."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, *lines: str) -> None:
        """More lines."""
        for line in lines:
            self.lines.append(line)
            print(line, flush=True)

    def table(self, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """A table; columns after the first to the right."""
        self.say("", "| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1))
        for row in rows:
            self.say("| " + " | ".join(row) + " |")
        self.say("")


class Set:
    """One data set, laid out for clustering; the thesis's tree of ages 1–128."""

    def __init__(self, name: str, cohort: Cohort) -> None:
        self.name, self.cohort = name, cohort
        self.lens = cohort.trajectories(1, 128)
        self.ages = hierarchies.age_tree(AGES)
        self.tree, _ = hierarchies.code_tree("icd9", (), self.lens.codes)
        codes = self.tree.nodes_of(self.lens.codes)[self.lens.values]
        self.records = Records(self.lens.offsets, codes, self.ages.nodes(self.lens.ages))

    def spaces(self, weight: float = 0.5) -> hierarchies.Space:
        """Losses under a weight of codes."""
        return hierarchies.make_space(self.tree, self.ages, (weight, 1 - weight))

    def groups(self, k: int, joining: str, *, weight: float = 0.5, baseline: bool = False) -> list[Group]:
        """Clusters by A-GS or Baseline."""
        p = clustering.make_problem(self.records, self.spaces(weight), k)
        if baseline:
            return clustering.groups_of(p, exhaustive.mdav(p, k, baseline=True))
        return clustering.groups_of(p, clustering.mdav(p, k, joining == "normalised", available_threads()))

    def loss(self, groups: list[Group]) -> Losses:
        """ILM and ALM."""
        return losses_of(groups, self.records.lengths(), self.spaces())

    def levels(self, groups: list[Group]) -> dict[str, dict[str, float]]:
        """Shares of original values published at each level; vanished ones count at the root."""
        found = {}
        total = float(sum(self.records.lengths()[group.members].sum() for group in groups))
        for name, tree, nodes in (
            ("code", self.tree, [g.codes for g in groups]),
            ("age", self.ages.hierarchy, [g.ages for g in groups]),
        ):
            times = np.repeat([len(g.members) for g in groups], [len(n) for n in nodes])
            counts = np.bincount(tree.level[np.concatenate(nodes)], times, len(tree.level_names))
            counts[tree.level[0]] += total - counts.sum()
            found[name] = {label: float(n / total) for label, n in zip(tree.level_names, counts, strict=True)}
        return found


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def at_most(levels: dict[str, float], last: str) -> float:
    """Share of values at a level or a finer one."""
    names = list(levels)
    return sum(levels[name] for name in names[: names.index(last) + 1])


def cohort_of(table: pl.DataFrame, name: str, vocabulary: str | None = None) -> Cohort:
    """A cohort of `patient`, `code`, `age` rows, numbered as they stand."""
    kind = pl.Enum(sorted(table["code"].unique().to_list()))
    events = table.with_columns(pl.col("code").cast(kind), pl.col("age").cast(pl.Float64))
    return Cohort(events.with_row_index("row", 1), name=name, vocabulary=vocabulary)


def synthetic(folder: Path, seed: int = 1) -> list[Set]:
    """The three sets of Table 3."""
    found = []
    for shape in SETS:
        write_trajectories(folder / f"{shape}.parquet", shape=shape, seed=seed)
        found.append(Set(shape, cohort_of(pl.read_parquet(folder / f"{shape}.parquet"), shape, "icd9")))
    return found


DISTINCT = {"d50-pop": (4_246, 50, 102), "d4-pop": (354, 4, 97), "d4-smp": (322, 4, 90)}
"""Table 3 of the thesis: distinct (code, age) pairs, codes and ages of each set."""


def table_3(page: Page, sets: list[Set]) -> None:
    rows = []
    for each in sets:
        events = each.cohort.require_events()
        n = len(each.lens)
        rows.append(
            (
                f"{each.name} (wanted)",
                f"{SETS[each.name].patients:,}",
                *(f"{number:,}" for number in DISTINCT[each.name]),
                *(f"{x:.2f}" for x in (SETS[each.name].pairs, SETS[each.name].codes, SETS[each.name].ages)),
            )
        )
        made = (
            events.height / n,
            events.select("patient", "code").n_unique() / n,
            events.select("patient", "age").n_unique() / n,
        )
        distinct = (events.select(names).n_unique() for names in (("code", "age"), ("code",), ("age",)))
        rows.append(
            (
                f"{each.name} (made)",
                f"{n:,}",
                *(f"{number:,}" for number in distinct),
                *(f"{x:.2f}" for x in made),
            )
        )
    page.say("## The sets (Table 3)")
    page.table(
        (
            "set",
            "patients",
            "distinct pairs",
            "codes",
            "ages",
            "pairs a patient",
            "codes a patient",
            "ages a patient",
        ),
        rows,
    )


def figures_9_to_11(page: Page, sets: list[Set]) -> dict[tuple[str, int, str], Losses]:
    page.say(
        "## Information lost (Figs. 9–11)",
        "",
        "ILM + ALM by Definition 8: 0 exact, 2 everything suppressed. `thesis` joins as the thesis does, "
        "`normalised` (the default) maximizes what Definition 8 keeps.",
    )
    found: dict[tuple[str, int, str], Losses] = {}
    ways: tuple[tuple[str, dict[str, Any]], ...] = (
        ("Baseline", {"joining": "thesis", "baseline": True}),
        ("thesis", {"joining": "thesis"}),
        ("normalised", {"joining": "normalised"}),
    )
    for each in sets:
        rows = []
        for k in KS:
            for name, options in ways:
                found[each.name, k, name] = each.loss(each.groups(k, **options))
            lost = [found[each.name, k, name] for name, _ in ways]
            rows.append(
                (
                    f"k = {k}",
                    *(f"{x.total:.3f} ({x.ilm:.2f} + {x.alm:.2f})" for x in lost),
                    percent(lost[0].kept),
                )
            )
        page.say("", f"### {each.name}")
        page.table(("", *(name for name, _ in ways), "pairs Baseline keeps"), rows)
    return found


def figures_13_and_14(page: Page, sets: list[Set]) -> dict[str, dict[str, dict[str, float]]]:
    page.say(
        "## Values by level at k = 5 (Figs. 13 and 14)",
        "",
        "Shares of all original values; suppressed ones stand at the root.",
    )
    thesis = {}
    for each in sets:
        columns = {}
        for joining in ("thesis", "normalised"):
            groups = each.groups(5, joining)
            columns[joining] = each.levels(groups)
        thesis[each.name] = columns
        for kind in ("code", "age"):
            names = columns["thesis"][kind]
            page.table(
                (f"{each.name}, {kind}", "thesis", "normalised"),
                [
                    (level, *(percent(columns[j][kind][level]) for j in ("thesis", "normalised")))
                    for level in names
                ],
            )
    return {
        name: {f"{j} {k}": v for j, x in found.items() for k, v in x.items()}
        for name, found in thesis.items()
    }


def figure_12(page: Page, sets: list[Set], folder: Path) -> dict[tuple[str, int], float | None]:
    page.say(
        "## Answers to queries (Fig. 12)",
        "",
        "AvgRE over all combinations of (code, age) pairs in at least 1 % of the trajectories.",
    )
    found: dict[tuple[str, int], float | None] = {}
    rows = []
    for each in sets:
        for joining in ("thesis", "normalised"):
            row = [f"{each.name}, {joining}"]
            for k in KS:
                out = folder / f"{each.name}-{joining}-{k}"
                protect(each.cohort, paper(k, joining=joining, ages=AGES), out, seed=1)
                figures = measure(out, each.cohort, ["avgre"])["avgre"]
                if joining == "thesis":
                    found[each.name, k] = figures["avgre"]
                row.append(
                    "–" if figures["avgre"] is None else f"{figures['avgre']:.3f} ({figures['queries']})"
                )
            rows.append(row)
    page.table(("set (queries)", *(f"k = {k}" for k in KS)), rows)
    return found


def figure_15(page: Page, each: Set) -> None:
    page.say("## Weights (Fig. 15)", "", f"{each.name}, k = 2, joining `thesis`.")
    rows = []
    for weight in (0.1, 0.3, 0.5, 0.7, 0.9):
        lost = each.loss(each.groups(2, "thesis", weight=weight))
        rows.append((f"{weight:.1f} / {1 - weight:.1f}", f"{lost.ilm:.3f}", f"{lost.alm:.3f}"))
    page.table(("weight of codes / ages", "ILM", "ALM"), rows)


def table_4(page: Page, each: Set) -> None:
    page.say("## Example groups (Table 4)", "", f"{each.name}, k = 5.", "")
    groups = [g for g in each.groups(5, "thesis") if len(g.codes) >= 3]
    lost = [float(np.mean(each.tree.losses[g.codes] + each.ages.hierarchy.losses[g.ages])) for g in groups]
    for place in np.argsort(lost)[[len(lost) // 8, len(lost) * 3 // 4]].tolist():
        group = groups[place]
        pairs = [
            f"({each.tree.labels[c]}, [{each.ages.hierarchy.labels[v]}])"
            for c, v in zip(group.codes, group.ages, strict=True)
        ]
        page.say(f"- {len(group.members)} records: {' '.join(pairs)}")
    page.say("")


def statements(
    page: Page,
    sets: list[Set],
    found: dict[tuple[str, int, str], Losses],
    levels: dict[str, dict[str, dict[str, float]]],
    errors: dict[tuple[str, int], float | None],
) -> None:
    """The thesis's own statements on our data, agreeing or not."""
    kept = [found[each.name, k, "Baseline"].kept for each in sets for k in KS if k > 2]
    worse = [
        f"{each.name} k = {k}"
        for each in sets
        for k in KS
        if found[each.name, k, "Baseline"].total < found[each.name, k, "thesis"].total
    ]
    answered = [error for error in errors.values() if error is not None]
    rows = [
        (
            "Baseline suppresses everything for k > 2",
            f"no: it keeps {percent(min(kept))} to {percent(max(kept))} of pairs",
        )
    ]
    for each, code_bar, age_bar in ((sets[0], 0.30, 0.60), (sets[1], 0.55, 0.70)):
        for joining in ("thesis", "normalised"):
            codes = at_most(levels[each.name][f"{joining} code"], "3-digit")
            ages = at_most(levels[each.name][f"{joining} age"], "16-year")
            for kind, share, bar, level in (
                ("codes", codes, code_bar, "3-digit"),
                ("ages", ages, age_bar, "16 years"),
            ):
                rows.append(
                    (
                        f"{each.name}, k = 5, {joining}: over {percent(bar)} of {kind} at {level} or finer",
                        f"{'yes' if share > bar else 'no'}: {percent(share)}",
                    )
                )
    if answered:
        rows.append(
            (
                "AvgRE below 1 for all k",
                f"{'yes' if max(answered) < 1 else 'no'}: at most {max(answered):.3f}",
            )
        )
    rows.append(
        (
            "Baseline never better than A-GS (ILM + ALM)",
            "yes" if not worse else f"no: better on {', '.join(worse)}",
        )
    )
    smallest = [
        max(lost.ilm, lost.alm)
        for (name, _, joining), lost in found.items()
        if (name, joining) == ("d4-smp", "thesis")
    ]
    if smallest:
        rows.append(
            (
                "d4-smp, thesis: ILM and ALM below 0.5 for all k (Fig. 11)",
                f"{'yes' if max(smallest) < 0.5 else 'no'}: at most {max(smallest):.2f}",
            )
        )
    order = [errors.get((name, 5)) for name in ("d4-pop", "d4-smp", "d50-pop")]
    shown = [error for error in order if error is not None]
    if len(shown) == 3:
        rows.append(
            (
                "AvgRE rises from d4-pop to d4-smp to d50-pop (Fig. 12; k = 5)",
                f"{'yes' if shown == sorted(shown) else 'no'}: {', '.join(f'{error:.3f}' for error in shown)}",
            )
        )
    page.say("## The thesis's statements on these sets")
    page.table(("statement", "here"), rows)
    page.say(
        "Baseline keeps pairs because matching them by their place cuts only the end of a trajectory. Under the "
        "thesis's joining cost a large cluster weighs as little as one record; `normalised` mends that.",
        "",
    )
    page.say(
        "Codes drawn independently to the same Table 3 give 0.88 and 0.689 for `thesis` and `normalised` at k = 5 on "
        "d50-pop, and 0.956 for Baseline: similar patients lower every loss here.",
        "",
    )


def real(page: Page, data: Path, folder: Path) -> None:
    """Releases of public files, verified from the written files and against the source."""
    page.say(
        "## Public files", "", "k = 5, `odd_ages: leave out`, ages 0–127, verified against their source."
    )
    rows = []
    for name, cohort, hierarchy in files(data, folder):
        method = paper(5, hierarchy=hierarchy, odd_ages="leave out")
        result = protect(cohort, method, folder / name, seed=1)
        lost = result.measures["loss"]
        error = result.measures["avgre"]["avgre"]
        rows.append(
            (
                name,
                f"{result.release.records:,}",
                f"{result.measures['method']['pairs']:,}",
                f"{lost['ilm']:.3f}",
                f"{lost['alm']:.3f}",
                percent(lost["kept_pairs"]),
                "–" if error is None else f"{error:.3f}",
                "yes" if result.verification.passed else "NO",
            )
        )
    page.table(("file", "patients", "pairs", "ILM", "ALM", "pairs kept", "AvgRE", "verified"), rows)


def files(data: Path, folder: Path) -> Iterable[tuple[str, Cohort, str]]:
    """(name, cohort, hierarchy) of each public set."""
    people = pl.read_csv(data / "synthea-oh" / "patients.csv", infer_schema=False)
    conditions = pl.read_csv(data / "synthea-oh" / "conditions.csv.gz", infer_schema=False)
    born = people.select("pat_id", born=pl.col("birth_date").str.to_date(strict=False))
    events = conditions.join(
        born, left_on="PATIENT", right_on="pat_id", how="left", maintain_order="left"
    ).select(
        patient="PATIENT",
        code="CODE",
        age=(pl.col("START").str.to_date(strict=False) - pl.col("born")).dt.total_days() / 365.25,
    )
    yield "synthea-oh", cohort_of(events, "synthea-oh"), flat(events["code"], folder / "synthea.csv")
    events = pl.read_csv(data / "pyphewas-synthetic" / "icds.csv.gz", infer_schema=False)
    events = events.filter(pl.col("ICD_TYPE") == "9").select(
        patient="id", code="ICD_CODE", age=pl.col("AgeAtICD").cast(pl.Float64)
    )
    yield "pyphewas-synthetic (ICD-9)", cohort_of(events, "pyphewas-synthetic"), "icd9"
    gibleed = data / "eunomia-gibleed"
    events = pl.read_csv(gibleed / "CONDITION_OCCURRENCE.csv.gz", infer_schema=False)
    events = events.join(
        pl.read_csv(gibleed / "PERSON.csv", infer_schema=False),
        on="PERSON_ID",
        how="left",
        maintain_order="left",
    ).select(
        patient="PERSON_ID",
        code="CONDITION_CONCEPT_ID",
        age=(
            pl.col("CONDITION_START_DATE").str.to_date() - pl.col("BIRTH_DATETIME").str.head(10).str.to_date()
        ).dt.total_days()
        / 365.25,
    )
    tree = from_concept_ancestor(gibleed / "CONCEPT_ANCESTOR.csv")
    known = events["code"].is_in(list(tree.labels))
    tree.restrict(events.filter(known)["code"].unique().to_list()).write_csv(folder / "omop.csv")
    rows = (folder / "omop.csv").read_text()
    rows += "".join(f"{code},*\n" for code in sorted(events.filter(~known)["code"].unique().to_list()))
    (folder / "omop.csv").write_text(rows)
    yield "eunomia-gibleed", cohort_of(events, "eunomia-gibleed"), str(folder / "omop.csv")


def flat(codes: pl.Series, path: Path) -> str:
    """A hierarchy of one level: all codes below one root."""
    path.write_text(
        "node,parent\nany,\n" + "".join(f"{code},any\n" for code in sorted(codes.unique().to_list()))
    )
    return str(path)


def by_clustering() -> str:
    """The section of the committed page whose tables `benchmarks/modes.py` measures."""
    text = OUTPUT.read_text(encoding="utf-8")
    return text[text.index("## Usable pairs by clustering") : text.index("## Public files")]


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, help="folder with the public data sets")
    parser.add_argument(
        "--sets", default=",".join(SETS), help="which of the synthetic sets; two of d50-pop, d4-pop at least"
    )
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    page = Page()
    page.say(
        "# Trajectories: LDA again",
        "",
        "Tamersoy (2011), chapter IV, on sets of the thesis's shapes and on public files. The sets' ages are in "
        f"the thesis's tree (`--age-hierarchy {AGES}`; the default's begins at 0). Made by "
        f"`python benchmarks/study_trajectories.py --data DIR`, commit {commit()}, on {machine()}.",
        "",
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sets = [each for each in synthetic(folder) if each.name in options.sets.split(",")]
        table_3(page, sets)
        found = figures_9_to_11(page, sets)
        levels = figures_13_and_14(page, sets)
        errors = figure_12(page, sets, folder)
        figure_15(page, sets[0])
        table_4(page, sets[-1])
        statements(page, sets, found, levels, errors)
        page.say(by_clustering())
        if options.data is not None:
            real(page, options.data, folder)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    save(options.output, ended("\n".join(page.lines), "trajectories"))
    if options.output == OUTPUT:
        figures.main()


if __name__ == "__main__":
    main()
