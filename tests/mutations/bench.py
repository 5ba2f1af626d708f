"""Run mutations of a release: classify each by the plain definitions, verify it with source and custody and alone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PanicException
from tests.forging import restate
from tests.mutations import (
    claims,
    custody,
    forms,
    generic,
    guarantees,
    guarantees_joined,
    guarantees_more,
    orders,
    payloads,
    subrecords,
)
from tests.mutations.classed import labels_of, record_labels
from tests.mutations.copies import Kinds, Mutation
from tests.mutations.definitions import Truth
from tests.mutations.judging import broken
from tests.mutations.reasons import unseen
from tests.mutations.releases import FURTHER, Made, cases, choices, make, verifying

from leeward.errors import BadInput
from leeward.verify import Source, verify

__all__ = ["Score", "cases", "make", "mutations", "run"]

RECORDS = "share/data/records.parquet"


def mutations(made: Made, random: int = 100) -> Iterator[Mutation]:
    """Every mutation of the release; of a variant of a method without those that no parameter changes: metadata and
    random edits."""
    yield from aimed(made)
    yield from generic.content_kinds(made.out)
    yield from order_kinds(made)
    yield from claims.words_kinds(made.out)
    yield from claims.claims_kinds(made.out, choices, FURTHER[made.method])
    yield from forms.form_kinds(made.out)
    if made.name == made.kind or made.name == "disassociation, demographics":
        yield from custody.custody_kinds(made.out)
    if made.name == made.kind:
        yield from generic.metadata_kinds(made.out)
        yield from generic.random_kinds(made.out, random)


def aimed(made: Made) -> Kinds:
    """At the method's guarantee, and at its classes."""
    if made.demographics:
        yield from guarantees_joined.classed_kinds(made.out)
    if made.method == "disassociation" and made.payload:
        yield from payloads.payload_kinds(made.out, made.truth, made.payload)
    if made.method == "constraints" and made.demographics:
        return  # the labels of each class: any value of any column
    yield from of_method(made)


def of_method(made: Made) -> Kinds:
    """At the method's guarantee."""
    if made.method == "disassociation" and getattr(made.case.method, "attacker", None) in (
        "algorithm",
        "rules",
    ):
        return guarantees_joined.singles_kinds(made.out)
    if made.method == "disassociation":
        return chain(
            guarantees.disassociation_kinds(made.out), subrecords.subrecord_kinds(made.out, made.truth)
        )
    if made.method in ("condensation", "k-anonymity"):
        assert made.case.cohort.patients is not None
        return guarantees_more.table_kinds(made.out, made.case.cohort.patients)
    return {
        "constraints": guarantees.constraints_kinds,
        "censoring": guarantees.censoring_kinds,
        "trajectories": guarantees_more.trajectories_kinds,
        "visits": guarantees_more.visits_kinds,
        "linked": guarantees_joined.linked_kinds,
        "notes": guarantees_joined.catalogue_kinds,
    }[made.method](made.out)


def order_kinds(made: Made) -> Kinds:
    """Orders by what source, custody and share know of each record."""
    truth, out = made.truth, made.out
    custody = "custody/data/"
    if made.method in ("disassociation", "notes"):
        return orders.order_kinds(out, {}, {})
    if made.method == "linked":
        table = pl.read_parquet(out / "share/data/patients.parquet")
        known = {f"share: {name}": table[name] for name in table.columns[1:]}
        known["source"] = truth.custody("records.parquet").sort("record")["place"]
        numbers = {f"share/data/{name}.parquet": "" for name in ("visits", "events")}
        numbers["share/data/patients.parquet"] = custody + "records.parquet"
        return orders.order_kinds(out, known, numbers)
    if made.method in ("condensation", "k-anonymity"):
        released = truth.custody("released_rows.parquet").sort("record")
        table = pl.read_parquet(out / "share/data/table.parquet")
        known = {"group": released["group"], **{f"share: {name}": table[name] for name in table.columns[2:4]}}
        return orders.order_kinds(out, known, {"share/data/table.parquet": custody + "released_rows.parquet"})
    records = pl.read_parquet(out / RECORDS)
    known = {f"share: {name}": records[name] for name in records.columns if name != "record"}
    files = {RECORDS: custody + ("patients.parquet" if made.method == "visits" else "records.parquet")}
    if made.method == "constraints":
        files[RECORDS] = ""
        known["source"] = by_source(out, truth)
    elif made.method == "visits":
        known["source"] = truth.custody("patients.parquet").sort("record")["patient"]
        beside = ("visit_sets.parquet", "visits.parquet", "records.parquet")
        found = [custody + each for each in beside if (out / custody / each).is_file()]
        files["share/data/visits.parquet"] = ",".join(found)
    else:
        known["source"] = truth.custody("records.parquet").sort("record")["place"]
        if made.method == "trajectories":
            files["share/data/trajectories.parquet"] = ""
    return orders.order_kinds(out, known, files)


def by_source(out: Path, truth: Truth) -> pl.Series:
    """For each record the place of a patient whose generalized codes it has, each patient once."""
    codes, records = pl.read_parquet(out / "share/data/codes.parquet"), pl.read_parquet(out / RECORDS)
    member, of_record = dict.fromkeys(truth.held, 0), [0] * records.height
    if "class" in codes.columns:
        member = dict(truth.custody("class_of_patient.parquet").iter_rows())
        names = list(truth.case.method.demographics)
        number = {labels: n for n, labels in labels_of(out, names).items()}
        of_record = [number[row[1:]] for row in record_labels(out, names).iter_rows()]
    else:
        codes = codes.with_columns(pl.lit(0).alias("class"))
    shown = codes.filter(~pl.col("suppressed")).select("class", "code", "members")
    label = {(n, code): name for n, name, members in shown.iter_rows() for code in members}
    places: dict[Any, list[int]] = {}
    for place, patient in enumerate(truth.patients()):
        mine = member[patient]
        image = sorted({label[mine, code] for _, code, _ in truth.held[patient] if (mine, code) in label})
        places.setdefault((mine, *image), []).append(place)
    lists = zip(of_record, records["codes"].to_list(), strict=True)
    return pl.Series([places[n, *sorted(held)].pop(0) for n, held in lists])


@dataclass
class Score:
    """What became of a release's mutations.

    `whole` are those that break something, beside source and custody; `alone` those of them that change the share, and
    `shown` those of `alone` that the share shows. `hidden` are the names of what passed and no share shows, by the
    reason.
    """

    name: str
    kinds: int = 0
    random: int = 0
    neutral: list[str] = field(default_factory=list)
    whole: int = 0
    whole_caught: int = 0
    alone: int = 0
    alone_caught: int = 0
    shown: int = 0
    shown_caught: int = 0
    survivors: list[str] = field(default_factory=list)
    survivors_alone: list[str] = field(default_factory=list)
    hidden: dict[str, list[str]] = field(default_factory=dict)
    commit: str = ""
    parts: dict[str, list[int]] = field(default_factory=dict)
    """Part of the mutations -> broken and refuted with source and custody, broken and refuted with the share alone."""
    refuses: bool = False
    """Whether the verifier refuses to judge the sound share alone."""

    @property
    def share_whole(self) -> float:
        return self.whole_caught / max(self.whole, 1)

    @property
    def share_alone(self) -> float:
        return self.alone_caught / max(self.alone, 1)

    @property
    def share_shown(self) -> float:
        return self.shown_caught / max(self.shown, 1)


def run(made: Made, chosen: Sequence[Mutation], scratch: Path) -> Score:
    """Apply, classify and verify each mutation in a copy of its own."""
    with verifying(made.name):
        return scored(made, chosen, scratch)


def scored(made: Made, chosen: Sequence[Mutation], scratch: Path) -> Score:
    """As `run`."""
    score, copy = Score(made.name), scratch / "copy"
    assert broken(made, Mutation("as it was made", "", lambda out: None), made.out) == (set(), set())
    score.refuses = refuted(sent(made.out, scratch), None)
    for mutation in chosen:
        if mutation.part == "random":
            score.random += 1
        else:
            score.kinds += 1
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(made.out, copy, symlinks=True)
        mutation.change(copy)
        if mutation.restated:
            restate(copy)
        label = f"{mutation.part}: {mutation.name}"
        whole, alone = broken(made, mutation, copy)
        if not whole:
            score.neutral.append(label)
            continue
        part = score.parts.setdefault(mutation.part, [0, 0, 0, 0])
        caught = refuted(copy, made.source)
        score.whole, score.whole_caught = score.whole + 1, score.whole_caught + caught
        part[0], part[1] = part[0] + 1, part[1] + caught
        if not caught:
            score.survivors.append(named(label, whole))
        if mutation.part == "custody" or score.refuses:
            continue
        caught = refuted(sent(copy, scratch), None)
        score.alone, score.alone_caught = score.alone + 1, score.alone_caught + caught
        part[2], part[3] = part[2] + 1, part[3] + caught
        score.shown, score.shown_caught = (
            score.shown + bool(alone),
            score.shown_caught + (bool(alone) and caught),
        )
        if not caught and alone:
            score.survivors_alone.append(named(label, alone))
        elif not caught:
            score.hidden.setdefault(unseen(made, mutation, whole), []).append(label)
    shutil.rmtree(copy, ignore_errors=True)
    return score


def named(label: str, broken: set[str]) -> str:
    return f"{label} [{', '.join(sorted(broken))}]"


def sent(out: Path, scratch: Path) -> Path:
    """The share as a recipient has it: without custody beside it."""
    folder = scratch / "sent"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(out / "share", folder / "share", symlinks=True)
    return folder / "share"


def refuted(out: Path, source: Source | None) -> bool:
    """Whether the verifier refutes the release, or cannot open it as one. An exception is no refutation."""
    try:
        return not verify(out, source).passed
    except BadInput:
        return True
    except (Exception, PanicException):
        return False
