"""The story of the catalogue: pay for the itemsets of an index, write them as a release, verify, report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from leeward.contracts.notes import CONTRACT
from leeward.errors import BadInput
from leeward.queries.answer.api import login_name
from leeward.queries.answer.catalogue import (
    Catalogue,
    Items,
    domains_of,
    first_threshold,
    items_of,
    release_catalogue,
)
from leeward.queries.answer.charged_query import charge
from leeward.queries.answer.plan import IndexSession, open_session
from leeward.queries.ledger import spending
from leeward.queries.ledger.budgets import check_user
from leeward.queries.ledger.chain import digest, text_of
from leeward.queries.ledger.spending import find_answer as stored
from leeward.queries.ledger.spending import left
from leeward.queries.privacy.accounting import epsilon_of, micro, to_epsilon
from leeward.release import draft
from leeward.release.content import Anonymized, Guarantee, ReleaseTable
from leeward.release.folder import check_out
from leeward.release.spec import SourceSpec, Spec, to_yaml
from leeward.runs.protect import verify
from leeward.runs.reports import write_report
from leeward.runs.writing import require_passed
from leeward.vocabulary.names import icd_name


def itemsets(
    index: str | Path,
    out: str | Path | None = None,
    /,
    *,
    epsilon: float | str,
    max_size: int = 2,
    contributions: int = 10,
    threshold: int | None = None,
    quasi_identifiers: Sequence[str] = (),
    user: str | None = None,
    ledger: str | None = None,
    formats: Sequence[str] = (),
    dry_run: bool = False,
    yes: bool = True,
    tell: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Make the catalogue of itemsets of an index: one private release, paid from the budget.

    Parameters
    ----------
    index : str or Path
        Folder of the index.
    out : str or Path, optional
        Release folder to write; without it, the catalogue is only returned.
    epsilon : float or str
        Cost of the whole catalogue. The same catalogue again is free.
    max_size : int, optional
        Largest number of items of an itemset.
    contributions : int, optional
        Largest number of itemsets of each size in which a patient is counted.
    threshold : int, optional
        Smallest noisy count that is listed; by default, above what noise alone is likely to reach.
    quasi_identifiers : sequence of str, optional
        Columns whose values take part.
    user : str, optional
        Who asks; by default, the login name.
    ledger : str, optional
        URL of the database with the budget; by default, the ledger in the index's folder.
    formats : sequence of str, optional
        `("parquet",)`: no CSV copy; `("csv",)`: a CSV copy of any size. By default, one of up to 10 MB in all.
    dry_run : bool, optional
        Charge nothing; return `cost`, `remaining` and `first_threshold`, the smallest noisy count of a term that is
        listed.
    yes : bool, optional
        Pay even if that threshold is above half of the stated number of patients, or that number is not stated.
    tell : callable, optional
        Called with the cost and that threshold, in words, before anything is charged.

    Returns
    -------
    dict
        The itemsets with their noisy counts, and the cost.

    Raises
    ------
    BadInput
        The index or a setting is wrong.
    BudgetSpent
        The budget does not suffice; nothing was charged.
    VerificationFailed
        The verifier refuted the release. After any error, nothing is left at `out`.

    Examples
    --------
    >>> import leeward as lw
    >>> import polars as pl
    >>> terms = [["fever"], ["cough"], ["fever"], ["cough"]]
    >>> notes = pl.DataFrame({"patient": [1, 1, 2, 3], "terms": terms})
    >>> made = lw.index(notes, "counts", epsilon_total=5, about_patients=3)
    >>> lw.itemsets("counts", epsilon=1, dry_run=True)
    {'cost': 1.0, 'remaining': 5.0, 'first_threshold': 205}
    """
    if out is not None:
        check_out(Path(out))
    user = check_user(user if user is not None else login_name())
    asked = Catalogue(
        epsilon=micro(epsilon),
        max_size=max_size,
        contributions=contributions,
        threshold=threshold,
        qids=tuple(quasi_identifiers),
    )
    session = open_session(index, ledger)
    data_set = session.index.meta.id
    items = items_of(session.index, asked.qids)
    if session.terms.unit != "patient":
        raise BadInput("a catalogue protects patients, but the budget of this index protects single notes.")
    question = asked.question(session.index)
    least = first_threshold(items.terms, asked)
    paid = stored(session.ledger, data_set, digest(text_of(question))) is not None
    cost = 0.0 if paid else to_epsilon(asked.epsilon)
    before = to_epsilon(left(session.ledger, data_set, user).user)
    if tell is not None:
        price = f"costs {cost:g}" if cost else "was paid for and is free"
        tell(f"this {price}; only single terms with a noisy count of at least {least:,} patients are listed; "
             f"{user} has {before:g} left.")  # fmt: skip
    if dry_run:
        return {"cost": cost, "remaining": before, "first_threshold": least}
    if cost and not yes:
        check_threshold(session, least)
    found = charge(session, question, asked.epsilon, user, lambda: release_catalogue(session.index, asked))
    remaining = to_epsilon(left(session.ledger, data_set, user).user)
    if out is not None:
        write(out, session, to_release(session, asked, items, found), asked, found, remaining, formats)
    pairs = zip(found["itemsets"], found["counts"], strict=True)
    return {
        "release": None if out is None else str(out),
        "itemsets": [{"items": items, "count": count} for items, count in pairs],
        "levels": found["levels"],
        "epsilon": to_epsilon(asked.epsilon),
        "unit": "patient",
        "remaining": remaining,
    }


def check_threshold(session: IndexSession, least: int) -> None:
    """BadInput where single terms are listed from a count on that few or none can reach, by what is public only: half
    of the patients that the custodian states; where none are stated nothing tells."""
    stated = session.index.meta.about_patients
    if stated is not None and least <= stated / 2:
        return
    reach = (
        "whether any can reach it is unknown: the index was made without --about-patients"
        if stated is None
        else f"the index has about {stated:,} patients: hardly any can reach it"
    )
    raise BadInput(
        f"only terms with a noisy count of at least {least:,} patients would be listed, and {reach}; nothing was "
        "charged. Use a larger --epsilon, fewer --contributions or a smaller --max-size, or --yes to pay anyway."
    )


def read_stored_answers(index: str | Path, ledger: str | None = None) -> list[tuple[str, str]]:
    """Every question and answer that the ledger of an index keeps of its data set, to verify a catalogue with."""
    session = open_session(index, ledger)
    return spending.answers(session.ledger, session.index.meta.id)


def write(
    out: str | Path,
    session: IndexSession,
    made: Anonymized,
    asked: Catalogue,
    found: Mapping[str, Any],
    remaining: float,
    formats: Sequence[str],
) -> None:
    """The release folder, verified and reported, or nothing."""
    index = session.index
    question = {key: value for key, value in asked.question(index).items() if key != "release"}
    method = {"name": "notes", **question, "domains": made.parameters["domains"], "row": index.meta.row}
    charged = {"epsilon": to_epsilon(asked.epsilon), "data_set": index.meta.id, "unit": "patient"}
    figures = {
        "source": {"name": index.path.name},
        "notices": [],
        "method": {
            **made.custody,
            "remaining": remaining,
            "names": names_of_codes(index.meta.vocabulary, found),
        },
    }
    with draft(out) as pending:
        pending.write(made, formats=formats)
        pending.put_json("custody/charge.json", charged)
        source = SourceSpec(format="memory", name=index.path.name)
        pending.put("custody/spec.yaml", to_yaml(Spec(source=source, method=method)))
        pending.put_json("custody/measures.json", figures)
        answers = spending.answers(session.ledger, index.meta.id)
        verification = require_passed(verify(pending.folder, answers=answers))
        pending.put_json("custody/verification.json", verification.to_json())
        write_report(pending.folder)


def to_release(session: IndexSession, asked: Catalogue, items: Items, found: dict[str, Any]) -> Anonymized:
    index, meta = session.index, session.index.meta
    table = pa.table(
        {
            "items": pa.array(found["itemsets"], pa.list_(pa.string())),
            "count": pa.array([float(n) for n in found["counts"]], pa.float64()),
        }
    )
    names = pa.table({"item": pa.array(items.texts[: items.terms], pa.string())})
    domains = {name: in_order(values) for name, values in domains_of(index, asked.qids).items()}
    parameters = {
        "max_size": asked.max_size,
        "contributions": asked.contributions,
        "mechanism": "two-sided geometric noise",
        "vocabulary": meta.vocabulary,
        "domains": domains,
        "row": meta.row,
        "max_rows_per_patient": meta.max_rows_per_patient,
        "levels": found["levels"],
    }
    words = CONTRACT.words(parameters)
    return Anonymized(
        method="notes",
        parameters=parameters,
        guarantee=Guarantee.of(CONTRACT, words, {"epsilon": epsilon_of(asked.epsilon)}),
        records=0,
        tables=(ReleaseTable.of("itemsets.parquet", table),),
        readme=words.readme,
        custody_tables=(ReleaseTable.of("vocabulary.parquet", names),),
        custody={"levels": found["levels"], "vocabulary": meta.vocabulary, "seeded_rows": meta.seeded},
        seeded=meta.seeded,
    )


def in_order(values: Sequence[str]) -> list[str]:
    """Values of a domain by their number where all are whole numbers, else by their text."""
    numbers = all(value.removeprefix("-").isdecimal() for value in values)
    return sorted(values, key=(lambda value: (int(value), value)) if numbers else None)


def names_of_codes(vocabulary: str, found: Mapping[str, Any]) -> dict[str, str]:
    """What the listed ICD codes are called, for the custodian's report; nothing for another vocabulary."""
    system = {"icd9": "ICD-9-CM", "icd10": "ICD-10-CM"}.get(vocabulary)
    if system is None:
        return {}
    listed = sorted({item for items in found["itemsets"] for item in items})
    return {item: name for item in listed if (name := icd_name(item.upper(), system))}
