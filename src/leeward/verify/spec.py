"""The manifest's parameters against the custodian's spec of the run (`custody/spec.yaml`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from leeward.verify.checks import Check, of_count
from leeward.verify.manifest import Share

STATED = frozenset(
    {
        "k", "safe", "repeats", "nested", "recut", "reconstructions", "sensitive", "diversity", "payload",
        "cap", "caps", "scope", "level", "merge_visits", "rescue", "joining", "widest_age", "codes", "algorithm",
        "plan", "relations", "coarsen_time", "coarsen_groups", "response", "marginals", "grouping", "cell_rows",
        "missing", "rare", "synthesis", "draw", "prior", "keep", "small", "recoding", "hierarchies", "views",
        "strata", "time", "quasi_identifiers", "max_cluster",
    }
)  # fmt: skip
"""Parameters that are in the manifest exactly where the spec has them (none, false and empty ones may be left out)."""

ASKED = frozenset(
    {"policy", "sensitive_column", "clustering", "weights", "m", "alpha", "climb_to", "key", "enforce"}
)
"""Parameters that are in the manifest only where the spec has them, but not always then."""

RANKED = frozenset({"partitioning", "recut", "nested", "safe", "reconstructions"})
"""Parameters that `attacker: algorithm` decides, whatever else is asked for; the contract has their values."""

UNNAMED = {"small": "merge", "recoding": "full"}
"""What a release with demographics states where the spec names nothing."""

COMPLETED = frozenset({"strata", "time", "quasi_identifiers"})
"""Lists that a method completes."""

RENAMED = frozenset({"policy", "hierarchy", "codes", "privacy", "mapping"})
"""Parameters that name a file, of which a manifest shows a word."""

RANGE = re.compile(r"\d+-\d+|hipaa")


def spec_checks(share: Share) -> list[Check]:
    """Every parameter of the manifest is the spec's, and the spec's are in the manifest; no check without a spec."""
    file = share.folder.parent / "custody" / "spec.yaml"
    if share.folder.name != "share" or not file.is_file():
        return []
    try:
        spec = yaml.safe_load(file.read_text(encoding="utf-8"))
        asked = dict(spec["method"])
    except (OSError, UnicodeDecodeError, yaml.YAMLError, KeyError, TypeError, ValueError):
        return [Check("parameters_of_spec", False, "custody/spec.yaml cannot be read as the spec of a run.")]
    stated = share.manifest["parameters"]
    if not isinstance(stated, dict):
        return [Check("parameters_of_spec", False, "`parameters` of release.json is no object.")]
    if share.method == "disassociation":
        asked = with_sizes(asked)
    wrong = [name for name in {*asked, *stated} if not agrees(name, asked, stated)]
    versions = spec.get("versions")
    if (
        isinstance(versions, dict)
        and versions.get("leeward", share.manifest["leeward"]) != share.manifest["leeward"]
    ):
        wrong.append("leeward")
    if str(asked.get("name")) != share.method:
        wrong.append("method")
    if (spec.get("seed") is not None) != bool(share.manifest.get("seeded")):
        wrong.append("seeded")
    return [
        of_count(
            "parameters_of_spec",
            len(wrong),
            "The parameters are those of the custodian's spec.",
            f"parameters are not those of the custodian's spec: {', '.join(sorted(wrong))}.",
        )
    ]


def agrees(name: str, asked: Mapping[str, Any], stated: Mapping[str, Any]) -> bool:
    """Whether one parameter of the manifest is what the spec asked for."""
    given, shown = asked.get(name, UNNAMED.get(name)), stated.get(name)
    if name in UNNAMED and not asked.get("demographics"):
        return name not in stated
    if asked.get("attacker") == "algorithm" and name in RANKED:
        return True
    if name == "hierarchies" and isinstance(given, Mapping):
        given = {c: kind if kind in ("intervals", "prefix", "exact") else "file" for c, kind in given.items()}
    if name == "policy" and given is None:
        given = asked.get("utility")
    if name not in stated:
        return not given or given == "none" or name not in STATED | {"policy"}
    if not given:
        return not shown or name not in (STATED | ASKED) - COMPLETED
    if name == "algorithm" and asked.get("mapping"):
        return bool(shown == "mapping")
    if name == "ages":
        return shown == given if RANGE.fullmatch(str(given)) else shown == "custom"
    if name == "hierarchy" and "/" not in str(given) and "." not in str(given):
        return bool(shown == given)
    if name in RENAMED:
        plain = (
            isinstance(given, str)
            and not given.startswith(("file:", "phecode", "similarity"))
            and ":" in given
        )
        return not plain or given == shown
    if name not in STATED | ASKED | COMPLETED and not isinstance(given, str | int | float):
        return True
    if name in COMPLETED:
        if not isinstance(given, list) or not isinstance(shown, list):
            return False
        return {str(each) for each in given} <= {str(each) for each in shown}
    return same(given, shown)


def with_sizes(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What a spec of disassociation asks for, with the partitioning and size that it leaves to the method."""
    k, chosen = asked.get("k", 5), asked.get("partitioning") or "auto"
    if not isinstance(k, int):
        return dict(asked)
    if chosen == "auto":
        chosen = "fitted" if k >= 3 else "paper"
    if asked.get("attacker") == "algorithm":
        chosen = "ranked"
    largest = {"fitted": 10, "paper": 2, "ranked": 20}.get(chosen, 0) * k
    if chosen == "fitted" and not asked.get("demographics"):
        largest = min(largest, k * k)
    given = {name: value for name, value in asked.items() if value is not None}
    return {"max_cluster": largest, **given, "partitioning": chosen}


def same(asked: Any, stated: Any) -> bool:
    """Equal values; lists in whatever order, objects by their keys."""
    if isinstance(asked, list | tuple) and isinstance(stated, list):
        return sorted(map(repr, map(_plain, asked))) == sorted(map(repr, map(_plain, stated)))
    if isinstance(asked, dict) and isinstance(stated, dict):
        return {str(key): value for key, value in asked.items()} == {str(k): v for k, v in stated.items()}
    if isinstance(asked, bool) or isinstance(stated, bool):
        return asked is stated
    return bool(asked == stated)


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
