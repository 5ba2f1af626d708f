"""Banks of templates and of words, from `data/`: `[name]`, then its lines, up to the next name."""

from __future__ import annotations

import re
from importlib import resources

HEADING = re.compile(r"^\[(\w+)\]\n", re.MULTILINE)


def read_banks(name: str) -> dict[str, str]:
    """The banks of `data/NAME.txt` by name, each as a text whose lines begin and end with a line break.

    `{slot}` is filled by `slots.py`. Signs before a health slot say whose the term is: `-` denied, `?` doubted, `~` of
    the family, `<` over long ago.
    """
    text = resources.files("leeward.synthetic.notes").joinpath("data", f"{name}.txt").read_text("utf-8")
    parts = HEADING.split(text)
    return {bank: f"\n{lines.strip()}\n" for bank, lines in zip(parts[1::2], parts[2::2], strict=True)}
