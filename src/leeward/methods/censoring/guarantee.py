"""The release: its files, its guarantee in plain words, and how to analyse it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from leeward.cohort.lenses.counts import CodeCounts
from leeward.contracts.words import stated_facts
from leeward.methods import demographics_tables as whole
from leeward.methods import demographics_words as words
from leeward.release.content import Anonymized, Guarantee, ReleaseTable

if TYPE_CHECKING:
    from leeward.analysis.demographics import Classes
    from leeward.methods.censoring.parameters import Censoring
    from leeward.methods.censoring.run import Outcome

ATTACKER = (
    "Somebody who knows the codes of a person of the population, each with its number of mentions,{exact} but not who "
    "is in the sample, and who takes for a candidate everybody whose record contains a released one{fits}: at least "
    "{k} people are, so a guess at the record's person is right at most once in {k}."
)

EXACT, FITS = " and the exact {names},", " and whose demographics fit its labels"
"""What an attacker of demographics knows and does beside."""

NOT_PROTECTED = (
    "Somebody who knows that a person is in the sample: there a record may be the only one of its kind.",
    "What all candidates have in common: if each of them has a diagnosis, it is learnt.",
    "The payload columns: they are released as they are.",
    "Several releases of the same people compared with one another, or people who pool what they know.",
)

KNOWS_THE_GREEDY_RULE = (
    "Somebody who has everybody's full records and knows that all codes up to the final caps are shown: a "
    "candidate of whom more would be shown cannot be the owner. That may leave fewer than {k} candidates, at times "
    "one; the custodian's report says for how many records."
)

KNOWS_THE_RECORD_RULE = (
    "Somebody who has everybody's full records and knows this rule, by which each record keeps the largest part "
    "that {k} people share: a candidate of whom more could have been shown cannot be the owner. That often leaves "
    "fewer than {k} candidates, at times one; the custodian's report says for how many records."
)

ATTACKER_OF_GROUPS = (
    "Somebody who has everybody's full records{exact} and knows the method, but not who is in the sample: at least {k} "
    "people of the population would be published exactly as each released record is{alike}, so a guess at "
    "the record's person is right at most once in {k}."
)
EVERYBODY, ALIKE = " with the exact {names}", ", with the same labels of demographics"

README = """\
`data/records.parquet` holds one row a record: `record` (a new number), `codes` (a list, sorted; a code that was
recorded n times is listed n times, unless censored){payload}.

- A code's number of mentions is a lower bound: mentions may have been censored, none was added or changed.
- For a phenotype of "at least two mentions" count a code's places in the list. Cases found are cases; some records
  that had two mentions may show one.
- Records without any code stay in the file with an empty list, so the number of records is that of the sample.
- {rule}
"""

CLASSES = """\
`data/classes.parquet` has one row a *class*: records that are released with the same demographics ({names}), each as a
label of a hierarchy, and the number of `records`. At least k people of the population could have these labels, fewer
may be in the sample. `hierarchies/*.csv` list the published labels with their parents; `*` is the root: nothing is
released. An interval such as `70-79` includes both ends, `441**` is every text of that length that begins so, and
`(missing)` are patients without a value. A patient may fit several classes. `data/records.parquet` has the labels of
each record's class. Codes were censored in every class by itself.
"""
LEFT_OUT = "Patients whose demographics fewer than k people of the population share are not in the release.\n"

PEOPLE = "people.parquet"
"""Custody of scope `groups` with demographics: the labels that everybody of the population would be published with."""

RULES = {
    "global": "All records are censored alike: no code is more often in any record than its final cap.",
    "raise": "All records are censored alike: no code is more often in any record than its final cap.",
    "record": "Each record was censored by itself, so how often a code may occur differs from record to record.",
    "groups": "Each record shows what a group of at least k people of the population has in common; a code that is not "
    "shown may be there, and which codes are hidden differs from group to group.",
}


def guarantee_of(method: Censoring) -> Guarantee:
    """The k-map, exactly."""
    names = method.demographics
    if method.scope == "groups":
        exact, alike = (EVERYBODY.format(names=words.listed(names)), ALIKE) if names else ("", "")
        return Guarantee(
            name="k-map" + (words.IN_CLASSES if names else ""),
            k=method.k,
            attacker=ATTACKER_OF_GROUPS.format(k=method.k, exact=exact, alike=alike),
            not_protected=(*NOT_PROTECTED, *(words.limits(()) if names else ())),
            model="journalist",
            facts=stated_facts(
                "codes and mentions, and the method", "population", method.payload, **words.known(names)
            ),
        )
    rule = KNOWS_THE_RECORD_RULE if method.scope == "record" else KNOWS_THE_GREEDY_RULE
    exact, fits = (EXACT.format(names=words.listed(names)), FITS) if names else ("", "")
    return Guarantee(
        name="k-map" + (words.IN_CLASSES if names else ""),
        k=method.k,
        attacker=ATTACKER.format(k=method.k, exact=exact, fits=fits),
        not_protected=(*NOT_PROTECTED, rule.format(k=method.k), *(words.limits(()) if names else ())),
        model="journalist",
        facts=stated_facts("codes and mentions", "population", method.payload, **words.known(names)),
    )


@dataclass(frozen=True)
class InClasses:
    """The classes of a sample; the places in the sample of the records that are released; the final caps by class."""

    classes: Classes
    places: NDArray[np.int64]
    caps: Sequence[NDArray[np.int64]]


def release_of(
    method: Censoring,
    sample: CodeCounts,
    outcome: Outcome,
    order: NDArray[np.int64],
    payload: pl.DataFrame | None,
    people: int,
    notices: Sequence[str],
    seeded: bool,
    inside: InClasses | None = None,
) -> Anonymized:
    """The release; `order` gives the place of each released record in the sample (here: of those that are released)."""
    facts = {key: value for key, value in outcome.facts.items() if key != "exact"}
    carried = (
        "" if payload is None else f", and {', '.join(f'`{name}`' for name in payload.columns)} as they were"
    )
    opening, places, caps = "", order, _custody_caps(sample, outcome)
    tables: tuple[ReleaseTable, ...] = ()
    labels: dict[str, pa.Array] = {}
    if inside is not None:
        classes = inside.classes.only_released()
        labels, tables = whole.record_labels(classes, order), whole.tables_of(inside.classes)
        places, caps = inside.places[order], _caps_of_classes(sample, outcome, classes, inside.caps)
        carried = ", the labels " + ", ".join(f"`{name}`" for name in method.demographics) + carried
        opening = CLASSES.format(names=words.listed(method.demographics))
        opening += (LEFT_OUT if method.small == "drop" else "") + "\n"
    records = _records(sample, outcome, order, labels, payload)
    return Anonymized(
        method=method.name,
        parameters=method.public(),
        guarantee=guarantee_of(method),
        records=len(sample),
        tables=(*tables, ReleaseTable.of("records.parquet", records)),
        readme=opening + README.format(payload=carried, rule=RULES[method.scope]),
        custody_tables=(
            ReleaseTable.of("records.parquet", _custody_records(outcome, order, places)),
            ReleaseTable.of("caps.parquet", caps),
        ),
        custody={"population": people, **facts},
        notices=tuple(notices),
        seeded=seeded,
    )


def _records(
    sample: CodeCounts,
    outcome: Outcome,
    order: NDArray[np.int64],
    labels: Mapping[str, pa.Array],
    payload: pl.DataFrame | None,
) -> pa.Table:
    kept = outcome.kept.take(order)
    names = pa.array(sample.codes, pa.string())
    codes = names.take(pa.array(np.repeat(kept.values, kept.counts)))
    ends = np.concatenate([[0], np.cumsum(kept.sizes())]).astype(np.int32)
    columns = {
        "record": pa.array(np.arange(len(order), dtype=np.int64)),
        "codes": pa.ListArray.from_arrays(pa.array(ends), codes),
        **labels,
    }
    if payload is not None:
        arrow = payload[order].to_arrow()
        columns |= {name: arrow[name] for name in payload.columns}
    return pa.table(columns)


def _custody_records(outcome: Outcome, order: NDArray[np.int64], places: NDArray[np.int64]) -> pa.Table:
    """`record` and `place`: the record's patient, counted from 0 in ascending order of the sample's identifiers."""
    exact = outcome.facts.get("exact")
    columns = {
        "record": pa.array(np.arange(len(order), dtype=np.int64)),
        "place": pa.array(places.astype(np.int64)),
    }
    if exact is not None:
        columns["exact"] = pa.array(exact[order])
    return pa.table(columns)


def _custody_caps(sample: CodeCounts, outcome: Outcome) -> pa.Table:
    """What became of each code: its caps, and its mentions as they were read and as they are to be released."""
    return pa.table(
        {
            "code": pa.array(sample.codes, pa.string()),
            "highest": pa.array(sample.most()),
            "cap": pa.array(outcome.start_caps),
            "final_cap": pa.array(outcome.caps),
            "mentions": np.bincount(sample.values, sample.counts, len(sample.codes)).astype(np.int64),
            "shown": np.bincount(outcome.kept.values, outcome.kept.counts, len(sample.codes)).astype(
                np.int64
            ),
        }
    )


def _caps_of_classes(
    sample: CodeCounts, outcome: Outcome, classes: Classes, final: Sequence[NDArray[np.int64]]
) -> pa.Table:
    """The same by class, of the codes that the class's records have."""
    from leeward.methods.censoring.classed import take

    tables = []
    for number, caps in enumerate(final):
        own = np.flatnonzero(classes.of_record == number)
        part = replace(outcome, kept=outcome.kept.take(own), caps=caps)
        table = _custody_caps(take(sample, own), part)
        table = table.filter(pc.greater(table["mentions"], 0))
        tables.append(table.add_column(0, "class", pa.array([number] * table.num_rows, pa.int64())))
    return pa.concat_tables(tables)
