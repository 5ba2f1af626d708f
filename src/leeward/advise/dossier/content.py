"""The dossier's content: parts 0 to 10, each a list of entries that are measured, declared or open.

A measured entry is made from a JSON pointer into one of the evidence files and nothing else, so that every figure
resolves. Files: `release.json` (share), `measures.json`, `verification.json` (custody) and `evidence.json`, which was
computed on the day of the dossier and is beside it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from leeward.advise.dossier.context import Context
from leeward.errors import BadInput
from leeward.release.spec import content_of_yaml

HERE = Path(__file__).parent
TITLE = "Technical evidence for a determination. Not itself a determination."

Block = Literal["measured", "declared", "open"]

PARTS = (
    "Summary",
    "Context",
    "Data",
    "Attacks considered",
    "Method",
    "Results",
    "Utility",
    "Alternatives",
    "Governance",
    "Verification by a third person",
    "Conclusion and signature",
)
SOURCE_FILES = frozenset({"measures.json", "evidence.json"})
"""Files with figures of the original data: in a dossier for the recipient only their absence is said."""


@dataclass(frozen=True)
class Entry:
    """One line of a part. pointer : of a measured value, `file#/path`. chance : of an attack, what guessing reaches."""

    block: Block
    label: str
    value: Any = None
    pointer: str | None = None
    chance: Any = None
    chance_pointer: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As `dossier.json` has it."""
        content = {
            "block": self.block,
            "label": self.label,
            "value": self.value,
            "pointer": self.pointer,
            "chance": self.chance,
            "chance_pointer": self.chance_pointer,
        }
        return {key: value for key, value in content.items() if value is not None}


@dataclass(frozen=True)
class Evidence:
    """The evidence files by name, parsed. within : for whom the maximum risk of the guarantee holds, where not as it
    stands (`if they do not …`)."""

    files: Mapping[str, Any]
    recipient: bool = False
    within: str = ""

    def measured(self, label: str, pointer: str, chance: Any = None) -> list[Entry]:
        """The entry of a pointer; none where it points at nothing, or at nothing that this reader may have."""
        name, _, _ = pointer.partition("#")
        if self.recipient and name in SOURCE_FILES:
            return []
        try:
            value = resolve(self.files, pointer)
        except KeyError:
            return []
        if value is None or isinstance(value, Mapping | list):
            return []
        if isinstance(chance, str):
            at = f"{name}#{chance}"
            try:
                return [Entry("measured", label, value, pointer, resolve(self.files, at), at)]
            except KeyError:
                chance = None
        return [Entry("measured", label, value, pointer, chance)]


def resolve(files: Mapping[str, Any], pointer: str) -> Any:
    """What `file#/path` points at (RFC 6901). KeyError where there is nothing."""
    name, _, path = pointer.partition("#")
    found = files[name]
    for part in path.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list):
            if not key.isdigit() or int(key) >= len(found):
                raise KeyError(pointer)
            found = found[int(key)]
        elif isinstance(found, Mapping) and key in found:
            found = found[key]
        else:
            raise KeyError(pointer)
    return found


def parts_of(evidence: Evidence, context: Context, questions: Sequence[str] = ()) -> list[list[Entry]]:
    """The entries of every part. `questions`: open ones that the advice for the plan asks."""
    parts = [
        [],
        _context(context),
        _data(evidence, context),
        _attacks(evidence, context),
        _method(evidence),
        _results(evidence, context),
        _utility(evidence),
        _alternatives(evidence),
        _governance(context),
        _verification(evidence),
        _conclusion(context),
    ]
    if questions:
        parts[1] += [Entry("open", each) for each in questions]
    parts[0] = _summary(evidence, context, parts)
    return parts


@functools.cache
def figures() -> Mapping[str, Any]:
    """The figures of each method (`figures.yaml`)."""
    found: Mapping[str, Any] = content_of_yaml((HERE / "figures.yaml").read_text(encoding="utf-8"))
    return found


def annex(parts: Sequence[Sequence[Entry]]) -> list[dict[str, Any]]:
    """Which parts speak to which heading of which text (`mappings.yaml`); never that a text is fulfilled."""
    texts: list[dict[str, Any]] = content_of_yaml((HERE / "mappings.yaml").read_text(encoding="utf-8"))
    return [
        {
            "text": text["text"],
            "read": text["read"],
            "rows": [
                {"heading": row["heading"], "parts": row["parts"], "state": _state(parts, row["parts"])}
                for row in text["rows"]
            ],
        }
        for text in texts
    ]


def _state(parts: Sequence[Sequence[Entry]], numbers: Sequence[int]) -> str:
    blocks = [entry.block for number in numbers for entry in parts[number]]
    if not blocks or set(blocks) == {"open"}:
        return "open"
    listed = ", ".join(map(str, numbers))
    there = "declared" if "measured" not in blocks else "covered"
    return f"{there} in part {listed}" + (f"; {blocks.count('open')} open" if "open" in blocks else "")


def _of_context(context: Context, labels: Mapping[str, str]) -> list[Entry]:
    found = []
    for name, label in labels.items():
        value = getattr(context, name)
        if value:
            found.append(Entry("declared", label, list(value) if isinstance(value, tuple) else value))
        else:
            found.append(Entry("open", label))
    return found


def _context(context: Context) -> list[Entry]:
    labels = {
        "purpose": "Purpose",
        "recipient": "Recipient",
        "controls": "Controls in force",
        "motives": "Who might want to identify patients, and why",
        "other_releases": "Other releases of the same patients",
        "auxiliary": "Other data that an attacker may join",
        "harm": "Harm to a patient who is found",
        "law": "Law and ethics decision",
    }
    return _of_context(context, labels)


def _data(evidence: Evidence, context: Context) -> list[Entry]:
    found = evidence.measured("Released records", "release.json#/records")
    found += _of_method(evidence, 2)
    if context.attributes:
        found += [
            Entry(
                "declared",
                f"Attribute: {each['name']}",
                {key: value for key, value in each.items() if key != "name"},
            )
            for each in context.attributes
        ]
    else:
        found.append(
            Entry("open", "Table of attributes: direct, indirect, sensitive; replicability, availability")
        )
    return found


def _attacks(evidence: Evidence, context: Context) -> list[Entry]:
    found = evidence.measured("Attacker of the guarantee", "release.json#/guarantee/attacker")
    found += evidence.measured("Whom the attacker looks for", "release.json#/guarantee/risk/model")
    within = f", {evidence.within}" if evidence.within else ""
    found += evidence.measured(
        f"Maximum risk by the guarantee{within}", "release.json#/guarantee/risk/maximum"
    )
    if within:
        found += evidence.measured("Maximum risk, for each attacker", "evidence.json#/risk_in_words")
    at, risk = _risk(evidence)
    found += evidence.measured("Assumed knowledge in the measured attack", f"{at}/knows")
    found += evidence.measured("Mean risk, measured", f"{at}/mean")
    found += evidence.measured("Maximum risk, measured", f"{at}/maximum")
    found += evidence.measured("Patients looked at", f"{at}/patients")
    for place, each in enumerate(risk.get("above", ())):
        label = f"Share of patients whose risk is above {each['threshold']:g}"
        found += evidence.measured(label, f"{at}/above/{place}/share")
    further = risk.get("further")
    if further:
        found += evidence.measured("What an attacker knows who goes further", f"{at}/further/knows")
        found += evidence.measured(f"Of that attacker: {further['known']}", f"{at}/further/sets")
        found += evidence.measured("Of these, with fewer than k candidates", f"{at}/further/below_k")
        found += evidence.measured("Patients who have one of those", f"{at}/further/patients")
    threshold = evidence.files["evidence.json"].get("threshold")
    if threshold:
        found += evidence.measured("Threshold of the plan", "evidence.json#/threshold/maximum")
        found += evidence.measured("Where the threshold is from", "evidence.json#/threshold/source")
        label = f"Maximum risk is within the threshold{within}"
        found += evidence.measured(label, "evidence.json#/threshold/within")
    else:
        found.append(Entry("open", "Which threshold applies here, and who decided it"))
    for place in range(len(evidence.files["release.json"]["guarantee"]["not_protected"])):
        found += evidence.measured("Not protected", f"release.json#/guarantee/not_protected/{place}")
    return found


def _risk(evidence: Evidence) -> tuple[str, Mapping[str, Any]]:
    """Where the measured risk is: computed today, or else when the release was made."""
    today = evidence.files["evidence.json"].get("risk")
    if today:
        return "evidence.json#/risk", today
    return "measures.json#/reidentification", evidence.files["measures.json"].get("reidentification") or {}


def _method(evidence: Evidence) -> list[Entry]:
    found = evidence.measured("Method", "release.json#/method")
    found += evidence.measured("Guarantee", "release.json#/guarantee/name")
    for name in ("k", "m", "epsilon", "delta", "unit"):
        found += evidence.measured(name, f"release.json#/guarantee/{name}")
    for name, value in evidence.files["release.json"]["parameters"].items():
        if isinstance(value, Mapping | list):  # codes and values by name are no business of a document
            label, pointer = f"Parameter {name}: number of entries", f"release.json#/parameters/{name}"
            found.append(Entry("measured", label, len(value), pointer))
        else:
            found += evidence.measured(f"Parameter {name}", f"release.json#/parameters/{name}")
    found += evidence.measured("Leeward", "release.json#/leeward")
    seeded = evidence.files["release.json"].get("seeded")
    source = (
        "a seed that a person chose: NOT to be shared" if seeded else "the operating system's secure source"
    )
    found.append(Entry("declared", "Randomness", source))
    return found


def _results(evidence: Evidence, context: Context) -> list[Entry]:
    found = [*_of_method(evidence, 5), *_list_attacks(evidence)]
    test = context.intruder_test
    if test is None:
        found.append(
            Entry(
                "open", "Motivated intruder test: who tried, by which means, how many claims, how many right"
            )
        )
    else:
        found.append(
            Entry("declared", "Motivated intruder test",
                  {"by": test.by, "date": test.date, "means": test.means, "tries": test.tries, "right": test.right})
        )  # fmt: skip
    return found


def _list_attacks(evidence: Evidence) -> list[Entry]:
    """The attacks that were made on the release when it was measured: how many tries, how many succeeded."""
    found = []
    for place, each in enumerate(evidence.files["measures.json"].get("tried") or ()):
        at = f"measures.json#/tried/{place}"
        found += evidence.measured(
            f"Attack tried, {each['knows']}: {each['success']}, tries", f"{at}/attacked"
        )
        found += evidence.measured(
            f"Attack tried, {each['knows']}: {each['success']}, successes", f"{at}/succeeded"
        )
    return found


def _utility(evidence: Evidence) -> list[Entry]:
    found = _of_method(evidence, 6)
    lines = evidence.files["evidence.json"].get("lines") or []
    for place, line in enumerate(lines):
        at = f"evidence.json#/lines/{place}"
        found += evidence.measured(f"{line['line']}: verdict", f"{at}/verdict")
        floor = None if line["floor"] is None else f"/lines/{place}/floor"
        found += evidence.measured(f"{line['line']}: {line['figure']}", f"{at}/value", floor)
    if not lines:
        found.append(
            Entry(
                "open",
                "Does the release serve the recipient's plan? (no plan was given, or no source to measure it on)",
            )
        )
    return found


def _alternatives(evidence: Evidence) -> list[Entry]:
    alternatives = evidence.files["evidence.json"].get("alternatives") or []
    found: list[Entry] = []
    for place, each in enumerate(alternatives):
        at = f"evidence.json#/alternatives/{place}"
        found += evidence.measured(f"{each['spec']}: {each['line']}", f"{at}/value")
    return found or [
        Entry("open", "Which alternatives were tried, and why this one? (leeward explore, then --explored)")
    ]


def _governance(context: Context) -> list[Entry]:
    labels = {
        "roles": "Roles",
        "agreement": "Agreement with the recipient",
        "retention": "Retention",
        "incident": "What happens when a patient is found",
        "review_date": "Date of review",
        "review_triggers": "What would trigger an earlier review",
    }
    return _of_context(context, labels)


def _verification(evidence: Evidence) -> list[Entry]:
    found = evidence.measured("Verified on the day of this dossier", "evidence.json#/verification/passed")
    found += evidence.measured("Checks", "evidence.json#/verification/checks")
    found += evidence.measured("Compared with the source", "evidence.json#/verification/with_source")
    custody = evidence.measured(
        "The custodian's figures are as the run wrote them, by their digests",
        "evidence.json#/verification/custody",
    )
    if not custody and not evidence.recipient:
        custody = [
            Entry("open", "Are the custodian's figures as the run wrote them? (custody has no digests.json)")
        ]
    found += custody
    found.append(
        Entry(
            "declared", "How to repeat it", "leeward verify OUT; sha256sum of the files beside release.json"
        )
    )
    for place in range(len(evidence.files["release.json"]["files"])):
        found += evidence.measured("File", f"release.json#/files/{place}/path")
        found += evidence.measured("SHA-256", f"release.json#/files/{place}/sha256")
    return found


def _conclusion(context: Context) -> list[Entry]:
    end = context.conclusion
    if end is None:
        return [Entry("open", "The expert's conclusion in own words, qualifications, date, signature")]
    return [
        Entry("declared", "Conclusion on the risk", end.outcome),
        Entry("declared", "In the expert's own words", end.words),
        Entry("declared", "Expert", f"{end.expert}; {end.qualifications}"),
        Entry("declared", "Date", end.date),
        Entry("declared", "Look again", end.reassess)
        if end.reassess
        else Entry("open", "When to look again"),
    ]


def _of_method(evidence: Evidence, part: int) -> list[Entry]:
    found = []
    for row in figures().get(evidence.files["release.json"]["method"], ()):
        if row["part"] == part:
            found += evidence.measured(row["label"], f"measures.json#{row['pointer']}", row.get("chance"))
    return found


def _summary(evidence: Evidence, context: Context, parts: Sequence[Sequence[Entry]]) -> list[Entry]:
    is_open = sum(entry.block == "open" for part in parts for entry in part)
    found = evidence.measured("What is hidden: the method", "release.json#/method")
    found += evidence.measured("What is hidden: the guarantee", "release.json#/guarantee/name")
    found += evidence.measured("From whom", "release.json#/guarantee/attacker")
    within = f", {evidence.within}" if evidence.within else ""
    found += evidence.measured(
        f"How sure: maximum risk for that attacker{within}", "release.json#/guarantee/risk/maximum"
    )
    if within:
        found += evidence.measured("How sure: for each attacker", "evidence.json#/risk_in_words")
    found += evidence.measured(
        "How sure: mean risk for that attacker, measured", f"{_risk(evidence)[0]}/mean"
    )
    label = f"How sure: within the plan's threshold{within}"
    found += evidence.measured(label, "evidence.json#/threshold/within")
    found += evidence.measured("What can still be found", "release.json#/guarantee/not_protected/0")
    lines = evidence.files["evidence.json"].get("lines") or []
    for place, line in enumerate(lines):
        found += evidence.measured(
            f"What it is good for: {line['line']}", f"evidence.json#/lines/{place}/verdict"
        )
    if context.conclusion is None:
        found.append(Entry("open", "Who decides: nobody has signed"))
    else:
        found.append(Entry("declared", "Who decides", context.conclusion.expert))
    if is_open:
        found.append(Entry("open", f"{is_open} open items in the parts below"))
    return found


def check_entries(content: Mapping[str, Any], files: Mapping[str, Any]) -> list[str]:
    """Figures of a dossier that do not resolve to what it says, by label.

    Raises
    ------
    BadInput
        `content` is no dossier.
    """
    try:
        entries = [(entry["label"], entry) for part in content["parts"] for entry in part["entries"]]
    except (KeyError, TypeError):
        raise BadInput("dossier.json: not a dossier.") from None
    wrong = []
    for label, entry in entries:
        for key, value in (("pointer", "value"), ("chance_pointer", "chance")):
            if key in entry:
                try:
                    there = resolve(files, str(entry[key]))
                except KeyError:
                    wrong.append(label)
                    continue
                if (len(there) if isinstance(there, Mapping | list) else there) != entry.get(value):
                    wrong.append(label)
    return wrong


__all__ = ["PARTS", "TITLE", "Entry", "Evidence", "annex", "check_entries", "parts_of", "resolve"]
