"""ConText's triggers, by what they say of a term and on which side of it they are (`notes/data/triggers.txt`).

In the file `{a|b|}` is a choice and `{NAME}` a choice that `[words]` defines, so that one line gives the forms of a
kind of phrase ("at age six", "when she was in grade school").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import product

from leeward.texts import read_parts

_CHOICE = re.compile(r"\{([^}]*)\}")


def phrases(text: str, words: Mapping[str, str]) -> tuple[str, ...]:
    """The phrases of a list parted by commas, choices written out."""
    written = (each for part in text.split(",") for each in _spellings(part, words))
    return tuple(dict.fromkeys(" ".join(each.split()) for each in written))


def _spellings(phrase: str, words: Mapping[str, str]) -> Iterator[str]:
    pieces = _CHOICE.split(phrase)  # text, choice, text, choice, …, text
    options = [[piece] if i % 2 == 0 else _options(piece, words) for i, piece in enumerate(pieces)]
    return map("".join, product(*options))


def _options(choice: str, words: Mapping[str, str]) -> list[str]:
    return [
        word + (" " if option.endswith(" ") else "")
        for option in choice.split("|")
        for word in words.get(option.strip(), option).split("|")
    ]


def _actions() -> dict[tuple[str, str], tuple[str, ...]]:
    parts = read_parts("leeward.notes", "triggers.txt")
    lines = (line.partition("=") for line in parts.pop("words").splitlines())
    words = {name.strip(): "".join(options.split()).replace("_", " ") for name, _, options in lines}
    found = {}
    for name, text in parts.items():
        says, _, side = name.partition("_")
        found[says, side] = phrases(text, words)
    return found


ACTIONS: dict[tuple[str, str], tuple[str, ...]] = _actions()
"""What phrases say, on which side of the term (`around`: anywhere in its clause), and the phrases. `stop` ends every
scope before and after itself; `option` doubts drugs and procedures alone."""
