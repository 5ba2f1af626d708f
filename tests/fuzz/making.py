"""What odd inputs are made of."""

from __future__ import annotations

from random import Random
from typing import Any

Rows = dict[str, dict[str, list[Any]]]
"""Tables: name to columns to cells."""

CELLS = [
    "", " ", "1", "01", "1.0", "-1", "007", "401.9", "4019", "250.00", "E11.9", "E876", "I10", "V20.2", "8", "?", "NULL",
    "n/a", "-", "=1+1", "@SUM(1)", "+1", "\x00", "\x1b[31m", "\x1f", "\ufffe", "\u0661\u0662", "é", "中", "𝒳", "\u202e",
    "a\nb", 'a"b', "a,b", "a;b", "a|b", "\t", "1e400", "-1e-400", "nan", "inf", "True", "2020-01-01", "2020-13-45", "99",
    "127", "128", "150", "151", "-5", "61,3", "03.04.2010", "9" * 30, "9" * 400, "x" * 5000, "\r", "#", "//", "{{}}",
    "18446744073709551616", "-9223372036854775809", "𝟙", "１２",
]  # fmt: skip
"""Cells that have broken readers of tables, here or elsewhere."""

NAMES = [
    "patient",
    "code",
    "age",
    "visit",
    "date",
    "birth",
    "vocabulary",
    "sex",
    "",
    "Patient",
    "code ",
    "x\x01",
    "中",
]

YAML_PARTS = [
    "!!float x", "!!int ''", "!!python/object/apply:os.system ['true']", "&a [*a]", "{{{{", "- - - -", "2020-01-01", "2020-99-99",
    "0o9", "1_000", ".nan", ".inf", "~", "!!binary x", "? [a]", "<<: *x", "\t", "%YAML 1.9", "---", "99999999999999999999", "true",
    "[" * 3000, "{a: " * 2000, "'", "k: 5.5", "m: [1]", "k: '5'", "!!set {a}", "!!timestamp 1",
]  # fmt: skip


def mutated(data: bytes, random: Random) -> bytes:
    """The bytes with a few changes: flips, cuts, repeats, insertions."""
    out = bytearray(data)
    for _ in range(random.randint(1, 8)):
        place = random.randrange(len(out) + 1)
        kind = random.randrange(6)
        if kind == 0 and out:
            out[place % len(out)] ^= 1 << random.randrange(8)
        elif kind == 1:
            del out[place : place + random.randint(1, 20)]
        elif kind == 2:
            out[place:place] = out[place : place + random.randint(1, 50)]
        elif kind == 3:
            out[place:place] = random.choice(CELLS).encode("utf-8", "surrogatepass")
        elif kind == 4:
            out[place:place] = bytes(random.randrange(256) for _ in range(random.randint(1, 4)))
        else:
            out[place:place] = random.choice(
                [b"\r\n", b"\n\n", b",", b";", b'"', b"\xef\xbb\xbf", b"\x1f\x8b", b"\x00"]
            )
    return bytes(out)


def one_value(random: Random, depth: int = 0) -> Any:
    """Anything that JSON can hold."""
    kind = random.randrange(9 if depth < 3 else 6)
    if kind < 3:
        return random.choice(CELLS)
    if kind == 3:
        return random.choice([0, -1, 2**70, 1.5, True, None, float("1e308")])
    if kind < 6:
        return random.choice(
            ["2020-01-01", "Condition/1", "Patient/a", "http://hl7.org/fhir/sid/icd-10-cm", "E11.9"]
        )
    if kind == 6:
        return [one_value(random, depth + 1) for _ in range(random.randint(0, 3))]
    return {
        random.choice(["coding", "code", "reference", "system", "display", "x"]): one_value(random, depth + 1)
    }
