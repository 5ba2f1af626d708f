"""The words of a release with demographics: attacker, limits, and how a recipient reads classes
(docs/methods/whole-patient.md#guarantee)."""

from __future__ import annotations

SMALL_CLASSES = (
    "An attacker who knows the algorithm and the demographics of everybody in the data can tell which classes were "
    "made of smaller ones, and which demographics these had."
)
PAYLOAD = (
    "The payload ({names}) is assumed unknown to the attacker. Values that all records of a cluster share are "
    "disclosed to whoever knows that a patient is in the cluster."
)
SENSITIVE_COLUMNS = (
    "The sensitive columns ({names}) are assumed unknown to the attacker, who sees how often each value occurs in a "
    "class: a value can be inferred by an attacker who knows those of other patients in the class, or how it depends "
    "on codes. That a patient has no value is not protected."
)

README = """\
`data/classes.parquet` has one row a *class*: at least k patients who are released with the same demographics ({names}),
each as a label of a hierarchy, and the number of `records`. `hierarchies/*.csv` list the published labels with their
parents; `*` is the root: nothing is released. An interval such as `70-79` includes both ends, `441**` is every text of
that length that begins so, and `(missing)` are patients without a value. A patient may fit several classes.
"""

LEFT_OUT = "Patients whose demographics fewer than k patients share are not in the release.\n"


IN_CLASSES = ", inside classes of demographics"
"""What classes add to the name of a guarantee."""


def known(names: tuple[str, ...]) -> dict[str, list[str]]:
    """What a guarantee's facts say of demographics that the attacker knows."""
    return {"demographics": list(names)} if names else {}


def listed(names: tuple[str, ...] | list[str]) -> str:
    """`age`, `age and sex`, `age, sex and zip`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def exact(names: tuple[str, ...] | list[str]) -> str:
    """What attackers know of demographics, before what they know beside; nothing without demographics."""
    return f"the exact {listed(names)} and " if names else ""


def limits(payload: tuple[str, ...], sensitive: tuple[str, ...] = ()) -> list[str]:
    """What a guarantee with demographics does not protect, beside the limits of the method."""
    found = [SMALL_CLASSES, *([PAYLOAD.format(names=listed(payload))] if payload else [])]
    return found + ([SENSITIVE_COLUMNS.format(names=listed(sensitive))] if sensitive else [])


def readme(names: tuple[str, ...], small: str) -> str:
    """How a recipient reads the classes."""
    return README.format(names=listed(names)) + (LEFT_OUT if small == "drop" else "")
