"""The story of a dossier: verify the release today, gather the evidence, write JSON and HTML, sign; check it later."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import polars as pl

from leeward.advise.dossier.content import TITLE, Evidence, annex, check_entries, parts_of, render, titles
from leeward.advise.dossier.context import Context, load_context
from leeward.advise.dossier.signing import SIGNATURE, is_signed, sign
from leeward.advise.page import describe_spec
from leeward.advise.plan import Plan
from leeward.advise.recommendation import questions_of
from leeward.advise.risk import maximum_in_words, measure_risk, scope_of
from leeward.advise.situation import Facts, Situation
from leeward.advise.thresholds import Threshold, limits
from leeward.advise.utility.measure import prepare, utility_of
from leeward.analysis.figures import plain
from leeward.cohort.cohort import Cohort
from leeward.errors import BadInput, VerificationFailed
from leeward.paths import require_plain_files
from leeward.release import Release
from leeward.release.aside import LOCK, written_aside
from leeward.release.folder import check_out
from leeward.release.manifest import sha256_of, to_json_text
from leeward.release.spec import SourceSpec
from leeward.runs.progress import Tell, watch
from leeward.runs.protect import verify
from leeward.runs.specs import open_release, plan_of, read_custody_spec, read_missing
from leeward.runs.writing import refusal
from leeward.verify import Verification
from leeward.version import __version__

JSON, HTML, EVIDENCE = "dossier.json", "dossier.html", "evidence.json"
FIGURES = ("measures.json", "verification.json", "register.json")
"""Files of custody that a dossier rests on."""

TABLES = ("explore.parquet", "compare.parquet")
ALTERNATIVES_SHOWN = 40


@dataclass(frozen=True)
class Dossier:
    """A dossier that was written. `folder` holds dossier.json, dossier.html and evidence.json."""

    folder: Path
    content: Mapping[str, Any]

    @property
    def open_items(self) -> list[str]:
        return [
            e["label"] for part in self.content["parts"][1:] for e in part["entries"] if e["block"] == "open"
        ]

    def __repr__(self) -> str:
        return f"Dossier({self.folder}: {len(self.open_items)} open items)"


@dataclass(frozen=True)
class Match:
    """What a check of a dossier found. `faults`: each in a sentence; none: it matches. `signed`: None without a key."""

    faults: tuple[str, ...]
    figures: int
    signed: bool | None

    @property
    def matches(self) -> bool:
        return not self.faults and self.signed is not False


def dossier(
    release: str | Path,
    out: str | Path,
    *,
    plan: Plan | str | Path | None = None,
    context: Context | str | Path | None = None,
    explored: str | Path | None = None,
    audience: Literal["expert", "recipient"] = "expert",
    cohort: Cohort | None = None,
    population: Cohort | None = None,
    key: str | Path | None = None,
    tell: Tell | None = None,
) -> Dossier:
    """Write the technical evidence on a release for the expert who decides.

    A dossier never claims that a rule is met.

    Parameters
    ----------
    release : str or Path
        Release folder, with its custody.
    out : str or Path
        Folder to write; it must not exist.
    plan : Plan, str or Path, optional
        The recipient's plan: its analyses are measured against its source, and its threshold is stated.
    context : Context, str or Path, optional
        What people declare; everything else stays an open item.
    explored : str or Path, optional
        Folder of `explore` or `compare`, for the alternatives.
    audience : {'expert', 'recipient'}, optional
        For a recipient, no figure of the original data is included.
    cohort, population : Cohort, optional
        Source and population; by default, those of the plan or of `custody/spec.yaml`.
    key : str or Path, optional
        Private Ed25519 key (PEM) that signs `dossier.json`.
    tell : callable, optional
        Called with the name of each stage.

    Returns
    -------
    Dossier
        `folder`, `content` and `open_items`.

    Raises
    ------
    BadInput
        A folder without custody, a plan or context that does not fit, or `out` exists.
    VerificationFailed
        The release does not verify today; nothing is written.

    Examples
    --------
    >>> import leeward as lw
    >>> rows = lw.synth.write_codes("events.csv", patients=300, codes=40, seed=1)
    >>> cohort = lw.read("events.csv")
    >>> result = lw.protect(cohort, lw.Disassociation(k=5, m=2), "release")
    >>> found = lw.dossier("release", "dossier", cohort=cohort)
    >>> (found.folder / "dossier.html").exists(), len(found.open_items) > 0
    (True, True)
    """
    folder = Path(out)
    check_out(folder)
    asked = None if plan is None else plan_of(plan)
    said = (
        context if isinstance(context, Context) else Context() if context is None else load_context(context)
    )
    opened = open_release(release)
    opened.require_format()
    if opened.custody is None:
        raise BadInput(
            f"{release}: no custody folder; a dossier needs the custodian's folder, not the share alone."
        )
    with watch(tell) as say:
        say("Reading the source")
        source, others = _sources(opened, asked)
        cohort, population = read_missing(cohort, source), read_missing(population, others)
        say("Verifying the release")
        outcome = verify(release, cohort, population if cohort is not None else None)
        if not outcome.passed:
            raise VerificationFailed(f"{refusal(outcome)} No dossier was written.")
        say("Gathering the evidence")
        found = evidence_of(opened, outcome, asked, cohort, population, explored)
        content = _content(opened, found, said, audience, _questions(asked, cohort))
    _write(folder, opened, content, found if audience == "expert" else {}, key)
    return Dossier(folder, content)


def _sources(opened: Release, plan: Plan | None) -> tuple[SourceSpec | None, SourceSpec | None]:
    """Source and population of the plan; where it names none, those of the release's own spec that still exist. None
    of a later version of a release: each of its batches has a source of its own."""
    if "versions" in opened.manifest:
        return None, None
    release = read_custody_spec(opened)
    found = []
    for key in ("source", "population"):
        asked, own = getattr(plan, key, None), getattr(release, key, None)
        there = own is not None and own.path and ("://" in own.path or Path(own.path).exists())
        found.append(asked or (own if there else None))
    return found[0], found[1]


def evidence_of(
    release: Release,
    outcome: Verification,
    plan: Plan | None,
    cohort: Cohort | None,
    population: Cohort | None,
    explored: str | Path | None,
) -> dict[str, Any]:
    """`evidence.json`: what was computed today. Figures and the plan's own words only."""
    limit = None if plan is None else plan.limit
    found: dict[str, Any] = {
        "leeward": __version__,
        "verification": {
            "passed": outcome.passed,
            "checks": len(outcome.checks),
            "with_source": cohort is not None,
            "custody": outcome.saw_custody or None,
        },
        "threshold": None if limit is None else _threshold(limit, release),
    }
    if "versions" in release.manifest:
        found["version"] = _version(release)
    if cohort is not None:
        maximum = None if limit is None else limit.maximum
        found["risk"] = measure_risk(release, cohort, population, limits(maximum))
        if plan is not None:
            found["lines"] = plain(utility_of(prepare(plan.lines, cohort), release))
    measures = release.custody_json("measures.json") or {}
    found["risk_in_words"] = maximum_in_words(release, found.get("risk") or measures.get("reidentification"))
    if explored is not None:
        found["alternatives"] = _alternatives(Path(explored))
    return found


def _threshold(limit: Threshold, release: Release) -> dict[str, Any]:
    """The plan's threshold, and whether the guarantee's maximum is within it (null where the guarantee has none)."""
    maximum = (release.guarantee.get("risk") or {}).get("maximum")
    within = None if maximum is None or limit.maximum is None else bool(maximum <= limit.maximum)
    return {"maximum": limit.maximum, "name": limit.name, "source": limit.cited, "within": within}


def _version(release: Release) -> dict[str, Any]:
    """Which version of its line a release is, and what the runs that made it verified, by their custody."""
    number = len(release.manifest["versions"])
    batches = [
        release.custody_json(f"batches/{batch}/verification.json") or {} for batch in range(1, number + 1)
    ]
    own = release.custody_json("verification.json") or {}
    compared = any(check["name"] == "rows_stay" for check in own.get("checks", ()))
    return {
        "number": number,
        "batches_passed": all(each.get("passed") and each.get("with_source") for each in batches),
        "added_passed": compared and own["passed"],
    }


def files_of(release: Release, evidence: Mapping[str, Any]) -> dict[str, Any]:
    files: dict[str, Any] = {"release.json": dict(release.manifest), "evidence.json": dict(evidence)}
    for name in FIGURES:
        files[name] = {} if release.custody is None else _json(release.custody / name)
    return files


def _json(path: Path) -> Any:
    """The content of a JSON file; of one that is not there or damaged nothing, so that no figure resolves."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def check(
    folder: str | Path,
    release: str | Path,
    *,
    key: str | Path | None = None,
    private: str | Path | None = None,
) -> Match:
    """Whether a dossier is of this release as it is today, to the byte, and every figure resolves.

    key : a public Ed25519 key in PEM: the signature beside the dossier must be its owner's
    private : a private key: signs the dossier when all the rest matches

    Raises BadInput: no dossier, or no release.
    """
    place = Path(folder)
    require_plain_files(place)
    raw, content = _read(place)
    opened = Release.open(release, compare=False)  # what differs is told file by file
    faults = _compare_files(content, opened, place)
    outcome = verify(release)
    if not outcome.passed:
        faults.append(f"The release does not verify today: {refusal(outcome)}")
    wrong = check_entries(content, files_of(opened, _json(place / EVIDENCE)))
    faults += [f"A figure does not match: {label}." for label in wrong]
    figures = sum("pointer" in e for part in content["parts"] for e in part["entries"])
    signed, written = None, place / SIGNATURE
    if private is not None and not faults:
        written.write_text(sign(raw, private), encoding="utf-8")
    if key is not None:
        signed = written.is_file() and is_signed(raw, written.read_text(encoding="utf-8").strip(), key)
    return Match(tuple(faults), figures, signed)


def _compare_files(content: Mapping[str, Any], release: Release, folder: Path) -> list[str]:
    stated, there = content["digests"], digests_of(release, folder)
    if JSON in stated:
        there[JSON] = digest_of(content)
    changed = [name for name, digest in there.items() if stated.get(name, digest) != digest]
    # Of custody a recipient's dossier states nothing; those of earlier versions state neither page nor JSON.
    added = [name for name in sorted(there.keys() - {HTML, *stated}) if not name.startswith("custody/")]
    return [
        *(f"{name} does not match." for name in changed),
        *(f"{name} is not there." for name in sorted(stated.keys() - there)),
        *(f"{name} was added." for name in added),
    ]


def _read(folder: Path) -> tuple[bytes, dict[str, Any]]:
    """The JSON of a dossier, as bytes and parsed. BadInput where it is none."""
    if not (folder / JSON).is_file():
        raise BadInput(f"{folder}: no {JSON}; name the folder of a dossier.")
    raw = (folder / JSON).read_bytes()
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError):
        raise BadInput(f"{folder}: {JSON} is not valid JSON; the dossier is damaged.") from None
    if not isinstance(content, dict) or not isinstance(content.get("digests"), dict):
        raise BadInput(f"{folder}: {JSON} has no `digests`; it is not a dossier, or is damaged.")
    return raw, content


def digests_of(release: Release, folder: Path) -> dict[str, str]:
    """SHA-256 of every input file of a dossier: the share, the custodian's figures, and the files of its own folder."""
    files = {f"share/{path.relative_to(release.share).as_posix()}": path for path in release.share.rglob("*")}
    if release.custody is not None:
        files |= {f"custody/{name}": release.custody / name for name in FIGURES}
    files |= {path.name: path for path in folder.iterdir() if path.name not in (JSON, SIGNATURE, LOCK)}
    return {name: sha256_of(path) for name, path in sorted(files.items()) if path.is_file()}


def digest_of(content: Mapping[str, Any]) -> str:
    """SHA-256 of what a dossier says, but for this digest."""
    others = {name: digest for name, digest in content["digests"].items() if name != JSON}
    return hashlib.sha256(json.dumps({**content, "digests": others}, sort_keys=True).encode()).hexdigest()


def _content(
    release: Release, found: Mapping[str, Any], context: Context, audience: str, questions: Sequence[str]
) -> dict[str, Any]:
    scope = scope_of(release)
    within = "" if scope is None else scope.within
    evidence = Evidence(files_of(release, found), context, audience == "recipient", within)
    parts = parts_of(evidence, questions)
    return {
        "title": TITLE,
        "leeward": __version__,
        "made": datetime.now(UTC).date().isoformat(),
        "audience": audience,
        "release": {"method": release.method, "records": release.records},
        "declared_by": context.declared_by,
        "declared_on": context.declared_on,
        "digests": {},
        "parts": [
            {"number": number, "title": title, "entries": [entry.to_json() for entry in part]}
            for number, (title, part) in enumerate(zip(titles(), parts, strict=True))
        ],
        "annex": annex(parts),
    }


def _write(
    folder: Path,
    release: Release,
    content: dict[str, Any],
    evidence: Mapping[str, Any],
    key: str | Path | None,
) -> None:
    with written_aside(folder) as aside:
        if content["audience"] == "expert":
            (aside / EVIDENCE).write_text(to_json_text(evidence), encoding="utf-8")
        content["digests"] = {
            name: digest
            for name, digest in digests_of(release, aside).items()
            if content["audience"] == "expert" or not name.startswith("custody/")
        }
        (aside / HTML).write_text(render(content), encoding="utf-8")
        content["digests"][HTML] = sha256_of(aside / HTML)  # which the page itself cannot show
        content["digests"][JSON] = digest_of(content)
        text = to_json_text(content)
        (aside / JSON).write_text(text, encoding="utf-8")
        if key is not None:
            (aside / SIGNATURE).write_text(sign(text.encode(), key), encoding="utf-8")


def _questions(plan: Plan | None, cohort: Cohort | None) -> tuple[str, ...]:
    if plan is None or cohort is None:
        return ()
    kind: Literal["events", "table"] = "table" if cohort.events is None else "events"
    return tuple(questions_of(Situation(plan, Facts(kind, 0, 0, 0))))


def _alternatives(folder: Path) -> list[dict[str, Any]]:
    file = next((folder / name for name in TABLES if (folder / name).is_file()), None)
    if file is None:
        raise BadInput(
            f"{folder}: neither {' nor '.join(TABLES)}; name the folder of leeward explore or compare."
        )
    runs = pl.read_parquet(file).head(ALTERNATIVES_SHOWN).with_row_index("run")
    lines = [name for name in runs.columns if name.startswith("line_")]
    verified = runs.filter(pl.col("status") == "verified")
    values = verified.unpivot(lines, index=["run", "spec", "risk_maximum"], variable_name="line").drop_nulls(
        "value"
    )
    rows = values.sort("run", maintain_order=True).select("spec", "line", "value", "risk_maximum").iter_rows()
    return [
        {"spec": describe_spec(spec), "line": line.replace("_", " "), "value": value, "risk": risk}
        for spec, line, value, risk in rows
    ]
