"""Characters allowed in text that is written to SVG, HTML and terminals (which obey control sequences)."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

CONTROL = re.compile("[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and marks that turn the direction of what follows."""

REPLACEMENT = "\ufffd"


@cache
def outside_xml() -> re.Pattern[str]:
    """What XML 1.0 has no sign for (section 2.2): most control characters, surrogates, U+FFFE and U+FFFF.

    So large a set is long in compiling: done for those who ask.
    """
    return re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def for_xml(text: str) -> str:
    """The text with a replacement character for each sign that XML 1.0 does not have."""
    return outside_xml().sub(REPLACEMENT, text)


def for_terminal(text: str) -> str:
    r"""The text with control characters written out (`\x1b`), so that a name in a file cannot steer a terminal."""
    return CONTROL.sub(lambda sign: f"\\x{ord(sign[0]):02x}", text)


PART = re.compile(r"^\[(\w+)\]\n", re.MULTILINE)


def read_parts(package: str, file: str) -> dict[str, str]:
    """The parts of a text in a package's `data/`, by name: `[name]`, then its lines, up to the next name."""
    text = resources.files(package).joinpath("data", file).read_text("utf-8")
    parts = PART.split(text)
    return {name: lines.strip() for name, lines in zip(parts[1::2], parts[2::2], strict=True)}


def list_words(text: str, sign: str | None = None) -> tuple[str, ...]:
    """The words of a text in order, or what a sign parts."""
    return tuple(" ".join(each.split()) for each in text.split(sign))
