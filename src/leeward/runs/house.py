"""The house file: what a house decides for all of its releases (docs/how-to/register.md).

    register: {url: /srv/leeward/register.db, key: /srv/leeward/keys/register.secret}

`LEEWARD_HOUSE` names it (empty: none); else it is `leeward/house.yaml` in `XDG_CONFIG_HOME` (`~/.config`), or
`/etc/leeward/house.yaml`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Final

from leeward.errors import BadInput
from leeward.fields import Declared, Parameter, build
from leeward.paths import text_of
from leeward.release.spec import content_of_yaml

VARIABLE: Final = "LEEWARD_HOUSE"
FILE: Final = "house.yaml"


@dataclass(frozen=True, kw_only=True)
class RegisterOfHouse(Declared):
    """The register that every release of the house is entered in."""

    url: Annotated[str, Parameter("A file of SQLite, next to the house file, or the URL of a database.")]
    key: Annotated[
        str | None,
        Parameter("File of the key, made where it does not exist.", default="in the account's state"),
    ] = None
    policy: Annotated[
        Mapping[str, str], Parameter("Stricter outcomes by the rule's name: allow, reason or refuse.")
    ] = field(default_factory=dict)
    pools: Annotated[
        tuple[Any, ...], Parameter("Lists of recipients that may put releases together, but not with others.")
    ] = ()

    def rules(self) -> None:
        from leeward.register.policy import check_policy

        check_policy(self.policy)
        for group in self.pools:
            if not isinstance(group, list | tuple) or not all(isinstance(name, str) for name in group):
                raise BadInput("`register.pools`: a list of lists of recipients.")


@dataclass(frozen=True, kw_only=True)
class HouseFile(Declared):
    """What a house decides."""

    register: Annotated[RegisterOfHouse | None, Parameter("The register of releases.")] = None


def house_register() -> RegisterOfHouse | None:
    """The register that the house file names; None without one. BadInput where the file that `LEEWARD_HOUSE` names is
    missing, or one that is there cannot be read: a register that the house demands is never left out in silence."""
    file = _file()
    if file is None:
        return None
    try:
        content = content_of_yaml(text_of(file, "house file"))
        found: HouseFile = build(HouseFile, content or {}, "")
    except BadInput as error:
        raise BadInput(f"{file}: {error}") from None
    if found.register is None:
        return None
    url, key = found.register.url, found.register.key
    return replace(
        found.register,
        url=url if "://" in url else str(file.parent / url),
        key=None if key is None else str(file.parent / key),
    )


def _file() -> Path | None:
    named = os.environ.get(VARIABLE)
    if named is not None:
        return Path(named) if named else None
    places = [Path("/etc")]
    with suppress(RuntimeError):  # an account without a home
        places.insert(0, Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"))
    return next((each for place in places if (each := place / "leeward" / FILE).is_file()), None)
