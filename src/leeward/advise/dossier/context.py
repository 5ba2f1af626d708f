"""What people declare beside a release: purpose, recipient, controls, governance, tests by people, the conclusion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from leeward.errors import BadInput
from leeward.fields import Declared, Parameter, build, check_keys
from leeward.paths import text_of
from leeward.release.spec import content_of_yaml

ATTRIBUTE_KEYS = ("name", "kind", "replicability", "availability", "distinguishability", "treatment")
KINDS = ("direct", "indirect", "sensitive", "other")


@dataclass(frozen=True, kw_only=True)
class Intruder(Declared):
    """A test by a person who was asked to find patients."""

    by: Annotated[str, Parameter("Who tried.")]
    date: Annotated[str, Parameter("When, as YYYY-MM-DD.")]
    tries: Annotated[int, Parameter("Claims that were made.", ge=0)]
    right: Annotated[int, Parameter("Claims that were right.", ge=0)]
    means: Annotated[str, Parameter("What the person could use.")]

    def rules(self) -> None:
        if self.right > self.tries:
            raise BadInput("`intruder_test.right` cannot be more than `tries`.")


@dataclass(frozen=True, kw_only=True)
class Conclusion(Declared):
    """What the expert concludes."""

    outcome: Annotated[
        Literal["very small", "not approved", "changes needed"],
        Parameter("The expert's conclusion on the risk."),
    ]
    words: Annotated[str, Parameter("The reasons, in the expert's own words.")]
    expert: Annotated[str, Parameter("Name and function.")]
    qualifications: Annotated[str, Parameter("Knowledge and experience.")]
    date: Annotated[str, Parameter("When, as YYYY-MM-DD.")]
    reassess: Annotated[str | None, Parameter("When to look again.")] = None


@dataclass(frozen=True, kw_only=True)
class Context(Declared):
    """The context file: every field that is left out is open in the dossier."""

    declared_by: Annotated[str | None, Parameter("Who declares what is in this file.")] = None
    declared_on: Annotated[str | None, Parameter("When, as YYYY-MM-DD.")] = None
    purpose: Annotated[str | None, Parameter("What the data are for.")] = None
    recipient: Annotated[str | None, Parameter("Who receives them.")] = None
    controls: Annotated[tuple[str, ...], Parameter("Controls that are in force.")] = ()
    motives: Annotated[str | None, Parameter("Who might want to identify patients, and why.")] = None
    other_releases: Annotated[str | None, Parameter("Other releases of the same patients.")] = None
    harm: Annotated[str | None, Parameter("What harm a patient would suffer from being found.")] = None
    auxiliary: Annotated[str | None, Parameter("Other data that an attacker may join.")] = None
    law: Annotated[str | None, Parameter("Law and ethics decision.")] = None
    roles: Annotated[str | None, Parameter("Who is responsible for data and release.")] = None
    agreement: Annotated[str | None, Parameter("Agreement with the recipient.")] = None
    retention: Annotated[str | None, Parameter("How long data are kept.")] = None
    incident: Annotated[str | None, Parameter("What happens when a patient is found.")] = None
    review_date: Annotated[str | None, Parameter("When the decision is reviewed.")] = None
    review_triggers: Annotated[str | None, Parameter("What would trigger an earlier review.")] = None
    attributes: Annotated[
        tuple[Any, ...], Parameter(f"Table of attributes, each with {', '.join(ATTRIBUTE_KEYS)}.")
    ] = ()
    intruder_test: Annotated[Intruder | None, Parameter("A test by a motivated person.")] = None
    conclusion: Annotated[Conclusion | None, Parameter("The expert's conclusion.")] = field(default=None)

    def rules(self) -> None:
        for number, each in enumerate(self.attributes, start=1):
            where = f"attributes[{number}]"
            if not isinstance(each, Mapping) or not isinstance(each.get("name"), str):
                raise BadInput(f"`{where}` is a mapping with `name` and {', '.join(ATTRIBUTE_KEYS[1:])}.")
            check_keys(each, ATTRIBUTE_KEYS, where)
            if each.get("kind") not in KINDS:
                raise BadInput(f"`{where}.kind` must be {', '.join(KINDS)}.")


def load_context(path: str | Path) -> Context:
    """Read a context file. BadInput for an unreadable file, bad YAML, unknown keys, values that do not fit."""
    path = Path(path)
    text = text_of(path, "context")
    try:
        content = content_of_yaml(text)
        if not isinstance(content, dict):
            raise BadInput("a context is a mapping; dates are written in quotes.")
        found: Context = build(Context, content, "")
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None
    return found
