"""Names of codes in a report, from the list of codes that the release has (`codes.parquet`)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from leeward.release import Release

LIST = "codes.parquet"
LONGEST = 44
REMARK = re.compile(r" \([a-z ]{1,12}\)$")
"""What a name is of: `(category)`, or SNOMED's `(disorder)`."""


def names_of_release(release: Release) -> Mapping[str, str]:
    """The name of each listed code that has one."""
    if LIST not in release.names():
        return {}
    table = release.table(LIST)
    if "name" not in table.collect_schema().names():
        return {}
    rows = table.select("code", "name").collect().iter_rows()
    return {code: name for code, name in rows if name}


def label_code(code: str, names: Mapping[str, str], longest: int = LONGEST) -> str:
    """The code with its name, as far as there is room: `428 Heart failure`; a last remark in brackets is kept."""
    text = f"{code} {names[code]}" if names.get(code) else code
    if len(text) <= longest:
        return text
    remark = REMARK.search(text)
    end = "…" + (remark[0] if remark else "")
    return text[: longest - len(end)].rstrip(" ,;(") + end
