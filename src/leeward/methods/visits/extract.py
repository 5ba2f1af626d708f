"""Cohorts drawn from a master: the master's records, renumbered and shuffled, never anonymized anew.

Every cohort shows the same codes of a patient as the master, so two cohorts reveal no more codes than one
(docs/methods/visits.md#cohorts).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from polars import selectors

from leeward.analysis.demographics.released import ReleasedClasses
from leeward.arrays import Int32s, Int64s, count_noun, offsets_of
from leeward.contracts.visits import CONTRACT
from leeward.errors import BadInput, GuaranteeUnreachable
from leeward.methods.code_list import PATH
from leeward.methods.visits.release import Released
from leeward.methods.visits.sets import Distinct, VisitSets
from leeward.methods.visits.visit_lists import VisitLists, lists_of
from leeward.methods.whole_patient import hierarchy_table, labels_of_records
from leeward.randomness import Randomness
from leeward.release import Release
from leeward.release.content import Anonymized, Guarantee, ReleaseTable

DRAWING = pa.schema([("membership_is_secret", pa.string()), ("payload_sha256", pa.string())])


@dataclass(frozen=True)
class Master:
    """A master release, opened by its custodian. `people`: `record`, `patient` (the identifier), `codes` (distinct
    original codes)."""

    release: Release
    people: pl.DataFrame

    @staticmethod
    def open(path: str) -> Master:
        """Open the folder that `leeward visits` wrote. Raises BadInput for another method's release, an extract, or no
        custody."""
        release = Release.open(path)
        release.require_format()
        if release.method != "visits" or release.parameters.get("extract"):
            kind = (
                "a cohort already drawn" if release.method == "visits" else f"a release by {release.method}"
            )
            raise BadInput(f"{path}: {kind}; a cohort is drawn from the master that `leeward visits` wrote.")
        if "versions" in release.manifest:
            raise BadInput(
                f"{path}: a release of several batches (`leeward refresh`); no cohort is drawn from it yet."
            )
        patients = release.custody_table("patients")
        if patients is None:
            raise BadInput(
                f"{path}: no custody/data/patients.parquet, so nothing says who is who; name the whole folder."
            )
        return Master(release, patients)


@dataclass(frozen=True)
class DrawnClasses:
    """The classes of a master, and the place of the class of each master record among them: int64[records]. A cohort
    shows the master's labels, unchanged (docs/methods/whole-patient.md#methods)."""

    classes: ReleasedClasses
    of_record: Int64s

    @staticmethod
    def of(release: Release) -> DrawnClasses | None:
        """The classes of a master; None without demographics."""
        if not release.demographics:
            return None
        classes = ReleasedClasses.read(release)
        return DrawnClasses(classes, classes.of_records(release))

    @property
    def names(self) -> tuple[str, ...]:
        return self.classes.names

    def labels(self, order: Int64s) -> dict[str, pa.Array]:
        """Labels of the master records `order`, one text column a demographic."""
        return labels_of_records(self.names, self.classes.labels, self.of_record[order])

    def tables(self, order: Int64s) -> list[ReleaseTable]:
        """`classes.parquet` and hierarchies, restricted to the classes of the master records `order`."""
        sizes = self._sizes(order)
        used = np.flatnonzero(sizes)
        columns = {
            "class": pa.array(np.arange(len(used), dtype=np.int64)),
            **labels_of_records(self.names, self.classes.labels, used),
            "records": pa.array(sizes[used]),
        }
        found = [ReleaseTable.of("classes.parquet", pa.table(columns))]
        for i, (name, parent) in enumerate(zip(self.names, self.classes.parents, strict=True)):
            shown = {self.classes.labels[c][i] for c in used}
            shown |= {above for label in tuple(shown) for above in self.classes.above(parent, label)}
            pairs = [(node, parent[node]) for node in parent if node in shown]
            found.append(hierarchy_table(f"hierarchies/{name}.csv", pairs))
        return found

    def figures(self, order: Int64s, k: int) -> dict[str, int]:
        """Members in classes of fewer than k members, members alone in theirs, the smallest class of the cohort, and
        the smallest of these classes in the master."""
        sizes = self._sizes(order)
        own = sizes[self.of_record[order]]
        return {
            "few_in_class": int((own < k).sum()),
            "alone_in_class": int((own == 1).sum()),
            "smallest_class": int(own.min()),
            "population_smallest_class": int(self.classes.records[sizes > 0].min()),
        }

    def _sizes(self, order: Int64s) -> Int64s:
        return np.bincount(self.of_record[order], minlength=len(self.classes.labels)).astype(np.int64)


def extract(
    master: Master,
    records: Int64s,
    payload: pl.DataFrame | None,
    notices: tuple[str, ...],
    randomness: Randomness,
    membership_is_secret: str | None = None,
) -> Anonymized:
    """Build the release of some master records.

    `records`: the master's numbers of the chosen records, ascending. `payload`: further columns, in the order of
    `records`. `membership_is_secret`: why nobody can know who is in the cohort; kept in the manifest. Raises
    GuaranteeUnreachable: fewer members than k; BadInput: visits that fewer than k members share, and no reason why
    membership is secret.
    """
    k = int(master.release.guarantee["k"])
    if len(records) < k:
        raise GuaranteeUnreachable(
            f"the cohort has {count_noun('member', len(records))} and k is {k}: so few are not released. Select more "
            "patients."
        )
    order = records[randomness.stream("visits", "cohort").permutation(len(records))]
    everyone = lists_of(master.release)
    visits = _visits(everyone, order, randomness)
    classes = DrawnClasses.of(master.release)
    carried = _payload(master.release, records, payload)
    figures = figures_of(k, master.release.records, everyone, visits, order, classes)
    if not membership_is_secret:
        _refuse_known_members(figures, classes is not None)
    names = () if carried is None else tuple(carried.columns)
    parameters = {
        **master.release.parameters,
        **({"payload": list(names)} if names else {}),
        "extract": True,
        "population": master.release.records,
        **({"membership_is_secret": membership_is_secret} if membership_is_secret else {}),
    }
    if names and figures["members_alone_population"]:
        alone = f"{figures['members_alone_population']:,} of {count_noun('record', figures['members'])}"
        joining = (
            f"{alone} can be recognized in other cohorts of this master by all their visits together, which joins the "
            "payloads of both. A master with --merge-visits at level `visit` leaves no record alone."
        )
        notices = (*notices, joining)
    words = CONTRACT.words(parameters, figures=figures)
    placed = None if carried is None else carried[np.searchsorted(records, order)]
    return Anonymized(
        method="visits",
        parameters=parameters,
        guarantee=Guarantee.of(CONTRACT, words, parameters),
        records=len(order),
        tables=tuple(_tables(master, order, visits, classes, placed)),
        readme=words.readme,
        custody_tables=_custody_tables(master, order, membership_is_secret, carried),
        custody={"level": str(parameters["level"]), "shared_by": figures},
        notices=notices,
        seeded=randomness.seeded,
    )


def _custody_tables(
    master: Master, order: Int64s, membership_is_secret: str | None, payload: pl.DataFrame | None
) -> tuple[ReleaseTable, ...]:
    """The master record and the patient of each record of the cohort; and of the extraction the reason for secrecy and
    the digest of the payload in master order."""
    number = pa.array(np.arange(len(order), dtype=np.int64))
    identifiers = master.people.sort("record")["patient"].gather(order).to_arrow()
    digest = None if payload is None else payload_digest(payload)
    drawn = {"membership_is_secret": [membership_is_secret], "payload_sha256": [digest]}
    return (
        ReleaseTable.of("records.parquet", pa.table({"record": number, "master_record": pa.array(order)})),
        ReleaseTable.of("patients.parquet", pa.table({"record": number, "patient": identifiers})),
        ReleaseTable.of("drawing.parquet", pa.table(drawn, schema=DRAWING)),
    )


def _tables(
    master: Master,
    order: Int64s,
    visits: VisitLists,
    classes: DrawnClasses | None,
    placed: pl.DataFrame | None,
) -> list[ReleaseTable]:
    columns = {
        "record": pa.array(np.arange(len(order), dtype=np.int64)),
        **(classes.labels(order) if classes else {}),
    }
    if placed is not None:
        columns |= dict(zip(placed.columns, placed.to_arrow().columns, strict=True))
    found = classes.tables(order) if classes else []
    sets, numbers = VisitSets(np.zeros(1, np.int64), visits.offsets, visits.values), np.arange(len(visits))
    shown = Released(sets, order, numbers, visits.record, visits.visit)
    found += [
        shown.table("visits.parquet", visits.labels),
        ReleaseTable.of("records.parquet", pa.table(columns)),
    ]
    if "code_hierarchy.csv" in master.release.names():
        hierarchy = master.release.table("code_hierarchy.csv").collect()
        nodes = {visits.labels[label] for label in np.unique(visits.values)}
        nodes |= {"*", *hierarchy.filter(pl.col("node").is_in(nodes))["parent"]}
        hierarchy = hierarchy.filter(pl.col("node").is_in(nodes))
        found.append(ReleaseTable.of("code_hierarchy.csv", hierarchy.to_arrow()))
    if PATH not in master.release.names():
        raise BadInput(f"the master has no {PATH}: an older Leeward made it; make it again.")
    # codes suppressed in the population are suppressed in every cohort
    return [*found, ReleaseTable.of(PATH, pq.read_table(master.release.path(PATH)))]


def _refuse_known_members(figures: Mapping[str, Any], in_classes: bool) -> None:
    """Raise BadInput if visits or demographics match fewer than k members."""
    k, few_in_class = figures["k"], figures.get("few_in_class", 0)
    if not figures["few"] and not few_in_class:
        return
    among = " with the same released demographics" if in_classes else ""
    few = f"{figures['few_share']:.1%} of the cohort's visits have a set of codes that fewer than {k} members{among} "
    few += f"share ({figures['alone_share']:.1%}: one member)"
    if few_in_class:
        few += f", {count_noun('member', few_in_class)} have demographics that fewer than {k} members have"
    raise BadInput(
        f"{few}, so the cohort is safe only while "
        "nobody knows who is in it. If that is so, say why with --membership-is-secret REASON (kept in the "
        "release); if membership is public, or follows from published inclusion criteria, anonymize the cohort "
        "itself with `leeward visits`."
    )


def _visits(master: VisitLists, order: Int64s, randomness: Randomness) -> VisitLists:
    number = np.full(int(max(order.max(initial=-1), master.record.max(initial=-1))) + 1, -1, np.int64)
    number[order] = np.arange(len(order))
    record = number[master.record]
    rows = np.flatnonzero(record >= 0)
    rows = rows[np.lexsort((master.visit[rows], record[rows]))]
    rows = rows[randomness.stream("visits", "cohort visits").permutation(len(rows))]
    rows = rows[np.argsort(record[rows], kind="stable")]
    chosen, mine = master.take(rows), record[rows]
    return replace(chosen, record=mine, visit=np.arange(len(mine)) - np.searchsorted(mine, mine, side="left"))


def _payload(release: Release, records: Int64s, further: pl.DataFrame | None) -> pl.DataFrame | None:
    labels = release.demographics
    own = release.table("records.parquet").collect().sort("record")[records].drop("record", *labels)
    if further is None:
        return own if own.width else None
    doubled = [name for name in further.columns if name in own.columns]
    if doubled:
        raise BadInput(
            f"the master carries {', '.join(f'`{name}`' for name in doubled)} already; leave it out of --payload."
        )
    return own.hstack(further) if own.width else further


def payload_digest(values: pl.DataFrame) -> str:
    """SHA-256 of payload values: a line of JSON with the columns' names, and one for each row, as files can hold them
    (times in UTC, durations as numbers); what JSON has no value for is a text."""
    as_written = values.with_columns(
        selectors.datetime(time_zone="*").dt.convert_time_zone("UTC"), selectors.duration().to_physical()
    )
    found = hashlib.sha256()
    for row in (as_written.columns, *as_written.iter_rows()):
        found.update(json.dumps(row, ensure_ascii=False, default=str).encode("utf-8") + b"\n")
    return found.hexdigest()


def figures_of(
    k: int,
    population: int,
    master: VisitLists,
    visits: VisitLists,
    order: Int64s,
    classes: DrawnClasses | None = None,
) -> dict[str, Any]:
    """Numbers of holders of a cohort's visit sets, in its master and inside the cohort (with one numbering of labels),
    separately in each class where there are demographics.

    `population_smallest`: fewest holders in the master of a set of the cohort. `visits`: of the cohort. `few`, `alone`:
    visits whose set fewer than k members of the cohort hold, and only one. `smallest`: fewest holders inside the
    cohort. `members`: records of the cohort. `members_alone`, `members_alone_population`: those whose visits, all
    together, no other record of the cohort (of the master) has. `few_in_class`, `alone_in_class`: members whose
    released demographics fewer than k members have, and nobody else; `smallest_class`, `population_smallest_class`:
    fewest members of such a class, fewest records of one in the master (with demographics alone).
    `order`: the master's record of each of the cohort, those without visits included.
    """
    in_classes: dict[str, int] = {}
    if classes is not None:
        in_classes = classes.figures(order, k)
        master, visits = _together(classes, master, visits, order)
    # The master comes first, and the cohort has only its sets, so the numbers of the sets agree.
    everywhere = Distinct.of(master.sets(population), len(master.labels))
    both = VisitSets(
        np.array([0, len(master) + len(visits)]),
        np.concatenate([master.offsets, visits.offsets[1:] + master.offsets[-1]]),
        np.concatenate([master.values, visits.values]),
    )
    shown = Distinct.of(both, len(master.labels)).set_of[len(master) :]
    here = Distinct.of(visits.sets(int(visits.record.max(initial=-1)) + 1), len(master.labels))
    inside, there = here.holders[here.set_of], everywhere.holders[shown]
    alike = _records_alike(
        np.concatenate([everywhere.set_of, shown]),
        np.concatenate([master.record, visits.record + population]),
    )
    mine = alike[population:]
    in_master = np.bincount(alike[:population][alike[:population] >= 0], minlength=len(alike) + 1)
    in_cohort = np.bincount(mine[mine >= 0], minlength=len(alike) + 1)
    mine = mine[mine >= 0]
    few, alone = int((inside < k).sum()), int((inside == 1).sum())
    return {
        "k": k,
        "population": population,
        "population_smallest": int(there.min()) if len(there) else 0,
        "visits": len(visits),
        "few": few,
        "alone": alone,
        "smallest": int(inside.min()) if len(inside) else 0,
        "members": len(order),
        "members_alone": int((in_cohort[mine] == 1).sum()),
        "members_alone_population": int((in_master[mine] == 1).sum()),
        **in_classes,
        "few_share": few / max(1, len(visits)),
        "alone_share": alone / max(1, len(visits)),
    }


def _together(
    classes: DrawnClasses, master: VisitLists, visits: VisitLists, order: Int64s
) -> tuple[VisitLists, VisitLists]:
    """Master and cohort with separate labels for each class, in the master's numbering, which covers the cohort's."""
    whole, drawn = master.apart(classes.of_record), visits.apart(classes.of_record[order])
    place = {label: i for i, label in enumerate(whole.labels)}
    values = np.array([place[label] for label in drawn.labels], np.int32)[drawn.values]
    return whole, replace(drawn, values=values, labels=whole.labels)


def _records_alike(set_of: Int32s, record: Int64s) -> Int64s:
    """Number the records by their visits' sets (equal records, equal numbers); -1 for records without visits."""
    order = np.lexsort((set_of, record))
    records = int(record.max(initial=-1)) + 1
    offsets = offsets_of(np.bincount(record, minlength=records))
    lists = VisitSets(np.array([0, records]), offsets, set_of[order])
    return Distinct.of(lists, int(set_of.max(initial=-1)) + 1).set_of.astype(np.int64)


def population_counts(release: Release, measures: Mapping[str, Any]) -> dict[str, int]:
    """DC and CC of the population's original, for the extract's shares of it."""
    kept = measures.get("retention", {})
    return {name: int(kept[name]["original"]) for name in ("dc", "cc") if name in kept}
