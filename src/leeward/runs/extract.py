"""The story of an extract: draw a cohort from a master, write it aside, verify, measure, report, rename."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput
from leeward.fields import build
from leeward.methods.visits import extract as drawing
from leeward.methods.visits.selection import carry_payload, records_of, select_patients
from leeward.randomness import Randomness
from leeward.release import draft
from leeward.release.manifest import sha256_of
from leeward.release.spec import Handover
from leeward.runs.measure import measure
from leeward.runs.protect import Result, open_result, verify_or_raise
from leeward.runs.registering import Handing, registered
from leeward.runs.reports import write_report


def extract(
    master: str | Path,
    selection: str | Path | pl.Series,
    out: str | Path,
    *,
    payload: str | Path | pl.DataFrame | None = None,
    column: str = "patient",
    original: Cohort | None = None,
    measures: Sequence[Any] = (),
    membership_is_secret: str | None = None,
    seed: int | None = None,
    formats: Sequence[str] = (),
    handover: Mapping[str, Any] | None = None,
    reason: str | None = None,
    register: str | Path | None = None,
) -> Result:
    """Draw a cohort from a master release of visits and write it as a verified release.

    Parameters
    ----------
    master : str or Path
        Release folder that `leeward visits`, or `protect` with `Visits`, wrote.
    selection : str, Path or polars.Series
        Patients: a file of identifiers, an SQL expression over `patient`, payload, `codes` and `visits`, or
        identifiers.
    out : str or Path
        Folder to write; it must not exist.
    payload : str, Path or polars.DataFrame, optional
        Further columns of the patients, such as genotypes, released without protection.
    column : str, optional
        Column of the identifiers in both files.
    original : Cohort, optional
        Source of the master, to measure what the cohort lost.
    measures : sequence, optional
        Measures as in a spec; they need `original`.
    membership_is_secret : str, optional
        Why nobody can know who is in the cohort. Required if fewer than k members share the codes of some visit; the
        release keeps it.
    seed : int, optional
        For tests and studies only.
    formats : sequence of str, optional
        `("parquet",)`: no CSV copy; `("csv",)`: a CSV copy of any size. By default, one of up to 10 MB in all.
    handover, reason, register : optional
        As in `protect`.

    Returns
    -------
    Result
        The cohort's release.

    Raises
    ------
    BadInput
        An argument is wrong, or `out` exists.
    GuaranteeUnreachable
        The cohort has fewer than k members.
    VerificationFailed
        The verifier refuted the release. After any error, nothing is left at `out`.

    Examples
    --------
    >>> import leeward as lw
    >>> claims = lw.synth.write_claims("claims.csv", patients=300, codes=100, seed=1)
    >>> codes = [f"diag_{n}" for n in range(1, 11)]
    >>> columns = {"code": codes, "visit": "claim", "age": "age", "patients": ["sex"]}
    >>> cohort = lw.read("claims.csv", columns=columns)
    >>> master = lw.protect(cohort, lw.Visits(k=5), "master")
    >>> patients = cohort.patients["patient"].head(100)
    >>> drawn = lw.extract("master", patients, "cohort", membership_is_secret="The sample was drawn at random.")
    >>> drawn.release.records
    100
    """
    whole = drawing.Master.open(str(master))
    records, strangers = records_of(whole, select_patients(whole, selection, column))
    if not len(records):
        raise BadInput("--select: none of these patients is in the master.")
    left_out = f"{strangers:,} of the patients named are not in the master and were left out."
    told = (left_out,) if strangers else ()
    secret = (membership_is_secret or "").strip() or None
    further = None if payload is None else carry_payload(payload, column, whole, records)
    manifest = whole.release.share / "release.json"  # the extract's verifier counts in the master
    known = whole.release.custody_json("measures.json")
    if known is None:
        raise BadInput(
            f"{master}: no custody/measures.json; name the whole folder that `leeward visits` wrote."
        )
    chosen = whole.people.sort("record")["patient"].gather(records)
    carried = further is not None or bool(whole.release.parameters.get("payload"))
    facts = {"method": "visits", "k": whole.release.guarantee["k"], "m": whole.release.guarantee.get("m")}
    handing = Handing(build(Handover, handover or {}, "handover"), reason, register)
    with (
        registered(
            out, handing, lambda: chosen, master=sha256_of(manifest), payload=carried, **facts
        ) as registration,
        draft(out) as pending,
    ):
        anonymized = drawing.extract(whole, records, further, told, Randomness.of(seed), secret)
        pending.write(anonymized, formats=formats)
        where = {"path": str(Path(master).absolute()), "sha256": sha256_of(manifest)}
        pending.put_json("custody/master.json", where)
        verification = verify_or_raise(pending.folder)
        pending.put_json("custody/verification.json", verification.to_json())
        name, vocabulary = f"Cohort of {Path(master).name}", known["source"].get("vocabulary")
        figures: dict[str, Any] = {
            "source": {"name": name, "vocabulary": vocabulary, "patients": len(records)},
            "notices": [
                {"kind": "method", "message": n, "count": strangers, "rows": []} for n in anonymized.notices
            ],
            "method": {**anonymized.custody, "population": drawing.population_counts(whole.release, known)},
        }
        pending.put_json("custody/measures.json", figures)
        if original is not None:
            figures |= measure(pending.folder, original.restrict(chosen), measures)
            pending.put_json("custody/measures.json", figures)
        registration.settle(pending)
        write_report(pending.folder)
    return open_result(pending.out, verification, figures)
