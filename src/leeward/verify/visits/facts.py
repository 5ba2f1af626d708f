"""What the words of a cohort drawn from a population rest on beside its parameters: its figures."""

from __future__ import annotations

import re
from typing import Any

from leeward.contracts.visits import limits_of_cohort
from leeward.verify.manifest import Share


def facts_of(share: Share) -> list[dict[str, Any]]:
    """The figures that a cohort states, which its checks count again in the files; none of a release by itself."""
    parameters = share.manifest["parameters"]
    if not parameters.get("extract"):
        return [{}]
    figures: dict[str, int] = {}
    stated = share.manifest["guarantee"]["not_protected"]
    sentences = limits_of_cohort(parameters)
    if len(stated) < len(sentences):
        return []
    for sentence, text in zip(sentences, stated, strict=False):
        found = pattern_of(sentence).fullmatch(text)
        if found is None:
            return []
        figures |= {name: int(number.replace(",", "")) for name, number in found.groupdict().items()}
    return [{"figures": figures}]


def pattern_of(sentence: str) -> re.Pattern[str]:
    """A sentence with any figures in its places; shares follow from the others."""
    parts = re.split(r"\{(\w+)(:[^}]*)?\}", sentence)
    found = re.escape(parts[0])
    for name, form, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        found += r"[\d.]+%" if form == ":.1%" else rf"(?P<{name}>\d[\d,]*)"
        found += re.escape(text)
    return re.compile(found)
