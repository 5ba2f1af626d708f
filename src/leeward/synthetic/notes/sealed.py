"""Templates that nobody looks at: neither models nor rules are changed after their errors here.

`held_out.py` is unknown to training, but its errors were read and their causes mended. What is measured on these, in
other kinds of documents again, is what to expect on notes that nobody has seen. Identities are those held out.
"""

from __future__ import annotations

from leeward.synthetic.notes.banks import read_banks
from leeward.synthetic.notes.training import Step

BANKS: dict[str, str] = read_banks("sealed")

KINDS: dict[str, tuple[Step, ...]] = {
    "ambulance report": (
        ("top", (), 2, 4, 1.0, "\n"),
        ("day", (), 1, 1, 0.8, "\n"),
        ("tell", ("Situation", "WHAT HAPPENED"), 3, 6, 1.0, " "),
        ("line", ("Known before",), 1, 3, 0.8, "\n"),
        ("end", (), 1, 1, 1.0, "\n"),
    ),
    "therapy note": (
        ("top", (), 1, 2, 1.0, "\n"),
        ("day", (), 1, 1, 1.0, "\n"),
        ("tell", ("Talk", "Course of the session"), 3, 7, 1.0, " "),
        ("view", ("What next",), 1, 3, 1.0, " "),
        ("end", (), 1, 1, 0.9, "\n"),
    ),
    "expert letter": (
        ("top", (), 2, 5, 1.0, "\n"),
        ("day", (), 1, 1, 0.7, "\n"),
        ("tell", (), 3, 6, 1.0, " "),
        ("line", (), 2, 4, 1.0, " "),
        ("view", (), 3, 5, 1.0, " "),
        ("end", (), 1, 2, 1.0, "\n"),
    ),
}

WEIGHTS: dict[str, int] = {"ambulance report": 30, "therapy note": 30, "expert letter": 40}
