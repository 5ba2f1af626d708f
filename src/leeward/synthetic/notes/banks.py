"""Banks of templates and of words, from `data/`: `[name]`, then its lines, up to the next name."""

from __future__ import annotations

from leeward.texts import read_parts


def read_banks(name: str) -> dict[str, str]:
    """The banks of `data/NAME.txt` by name, each as a text whose lines begin and end with a line break.

    `{slot}` is filled by `slots.py`. Signs before a health slot say whose the term is: `-` denied, `?` doubted, `~` of
    the family, `<` over long ago.
    """
    return {
        bank: f"\n{lines}\n" for bank, lines in read_parts("leeward.synthetic.notes", f"{name}.txt").items()
    }
