"""ConText's triggers, by what they say of a term and on which side of it they are (`notes/data/triggers.txt`)."""

from __future__ import annotations

from leeward.texts import read_parts


def phrases(text: str) -> tuple[str, ...]:
    """The phrases of a list parted by commas."""
    return tuple(dict.fromkeys(" ".join(part.split()) for part in text.split(",")))


ACTIONS: dict[tuple[str, str], tuple[str, ...]] = {
    tuple(name.partition("_")[::2]): phrases(text)  # type: ignore[misc]  # two texts
    for name, text in read_parts("leeward.notes", "triggers.txt").items()
}
"""What phrases say, on which side of the term, and the phrases. `stop` ends every scope before and after itself."""
