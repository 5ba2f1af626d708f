"""Phecodes: groups of ICD codes for phenome-wide studies, from the map file that the user provides.

The map of the PheWAS catalogue and its relatives are recognised by their columns. A code with several
phecodes counts for the longest one, the largest among equals; all are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from leeward.errors import BadInput
from leeward.vocabulary._text import TextTable, read_table
from leeward.vocabulary.icd import ICD9CM, ICD10CM

Range = tuple[float, float]

VOCABULARY_OF = {"ICD9": "icd9", "ICD9CM": "icd9", "ICD10": "icd10", "ICD10CM": "icd10"}
"""Names of columns with codes, and of vocabularies in `vocabulary_id`."""


@dataclass(frozen=True)
class PhecodeMap:
    """Codes to phecodes, and what the file says about each phecode.

    name : the file's name.
    codes : by vocabulary (`"icd9"`, `"icd10"`), then by canonical code: its phecodes as the file lists
        them, sorted.
    phenotypes, categories : text of a phecode, where the file has it.
    exclusions : ranges of phecodes (both ends included) whose holders are no controls of a phecode.
    no_rollup : codes (vocabulary, code) that the file exempts from counting for the phecodes above.
    """

    name: str
    codes: Mapping[str, Mapping[str, tuple[str, ...]]]
    phenotypes: Mapping[str, str] = field(default_factory=dict)
    categories: Mapping[str, str] = field(default_factory=dict)
    exclusions: Mapping[str, tuple[Range, ...]] = field(default_factory=dict)
    no_rollup: frozenset[tuple[str, str]] = frozenset()

    def phecodes(self, code: str, vocabulary: str = "icd9") -> tuple[str, ...]:
        """The phecodes that the file lists for a code, sorted; empty if it lists none."""
        listed = self.codes.get(vocabulary, {})
        canonical = _normalise(code, vocabulary)
        return listed.get(canonical, ()) if canonical else ()

    def group(self, code: str, vocabulary: str = "icd9") -> str | None:
        """The one phecode that stands for a code: the longest, the largest among equals; None if there is none."""
        found = self.phecodes(code, vocabulary)
        return max(found, key=lambda phecode: (len(phecode), phecode)) if found else None

    def parents(self, phecode: str) -> tuple[str, ...]:
        """The phecodes above, nearest first: 250.11 is under 250.1 and 250 (those that the file has)."""
        whole, _, tail = phecode.partition(".")
        above = [f"{whole}.{tail[:n]}" for n in range(len(tail) - 1, 0, -1)] + ([whole] if tail else [])
        return tuple(p for p in above if p in self.all_phecodes)

    def roll_up(self, code: str, vocabulary: str = "icd9") -> tuple[str, ...]:
        """All phecodes that a code counts for: those listed and, unless the file exempts it, those above them."""
        found = set(self.phecodes(code, vocabulary))
        if (vocabulary, _normalise(code, vocabulary)) not in self.no_rollup:
            found.update(p for phecode in tuple(found) for p in self.parents(phecode))
        return tuple(sorted(found))

    def exclude_controls(self, phecode: str) -> tuple[str, ...]:
        """The phecodes whose holders are not controls of `phecode`, sorted; empty if the file names no range."""
        ranges = self.exclusions.get(phecode, ())
        known = sorted(self.all_phecodes) if ranges else ()
        return tuple(each for each in known if any(low <= float(each) <= high for low, high in ranges))

    def joined(self, other: PhecodeMap) -> PhecodeMap:
        """Both maps, of different vocabularies, as one; what this one says of a phecode goes first."""
        return PhecodeMap(
            f"{self.name}, {other.name}",
            {**self.codes, **other.codes},
            {**other.phenotypes, **self.phenotypes},
            {**other.categories, **self.categories},
            {**other.exclusions, **self.exclusions},
            self.no_rollup | other.no_rollup,
        )

    @cached_property
    def all_phecodes(self) -> frozenset[str]:
        return frozenset(p for listed in self.codes.values() for found in listed.values() for p in found)


def load(path: str | Path, *, ignored: bool = False) -> PhecodeMap:
    """Read a phecode map (CSV, gz too).

    Columns, in any case and order: the code in `ICD9`, `ICD9CM`, `ICD10`, `ICD10CM`, or in `code` beside
    `vocabulary_id`; `phecode`; and where present `phenotype` or `phecode_string`, `category_string` or
    `category`, `Excl. Phecodes` or `exclude_range` (`249-250.99`, several parted by commas), `Rollup`,
    `Ignore Bool`. Rows without a phecode are skipped, and rows to ignore unless `ignored` asks for them
    (1009 and 1011, injuries and complications, are among them). Raises BadInput with file, row and column.
    """
    table = read_table(Path(path))
    code_column, vocabularies = _codes(table)
    phecodes = table.column("phecode", "phecode_uncorrected")
    rollup = _optional(table, "rollup")
    ignore = [""] * len(phecodes) if ignored else _optional(table, "ignore bool", "ignore_bool")
    rows = [i for i, phecode in enumerate(phecodes) if phecode and not _is_set(ignore[i])]
    if not rows:
        raise BadInput(f"{table.path.name}: no row with a code and a phecode.")
    codes: dict[tuple[str, str], set[str]] = {}
    kept: set[tuple[str, str]] = set()
    for i in rows:
        _number(phecodes[i], table, i)
        code = vocabularies[i], _normalise(code_column[i], vocabularies[i]) or code_column[i]
        codes.setdefault(code, set()).add(phecodes[i])
        if rollup[i] and not _is_set(rollup[i]):
            kept.add(code)
    return PhecodeMap(
        table.path.name,
        _by_vocabulary(codes),
        _texts_of(phecodes, rows, _optional(table, "phenotype", "phecode_string", "phecode_str")),
        _texts_of(phecodes, rows, _optional(table, "category_string", "category", "group")),
        _exclusions(table, phecodes, rows),
        frozenset(kept),
    )


def _by_vocabulary(codes: Mapping[tuple[str, str], set[str]]) -> dict[str, dict[str, tuple[str, ...]]]:
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for (vocabulary, code), phecodes in codes.items():
        found.setdefault(vocabulary, {})[code] = tuple(sorted(phecodes))
    return found


def _exclusions(
    table: TextTable, phecodes: Sequence[str], rows: Sequence[int]
) -> dict[str, tuple[Range, ...]]:
    exclude = _optional(table, "excl. phecodes", "exclude_range", "phecode_exclude_range", "excl_phecodes")
    first = {phecodes[i]: i for i in reversed(rows) if exclude[i]}
    return {phecode: _ranges(exclude[i], table, i) for phecode, i in first.items()}


def _texts_of(phecodes: Sequence[str], rows: Sequence[int], column: Sequence[str]) -> dict[str, str]:
    """What a column says of each phecode first."""
    return {phecodes[i]: column[i] for i in reversed(rows) if column[i]}


def _codes(table: TextTable) -> tuple[list[str], list[str]]:
    for name, vocabulary in VOCABULARY_OF.items():
        if table.find(name) is not None:
            return table.column(name), [vocabulary] * len(table.cells)
    if table.find("code") is None:
        raise BadInput(
            f"{table.path.name}, row 1: no column with codes; name it {', '.join(VOCABULARY_OF)} "
            "or `code` (with `vocabulary_id` beside it)."
        )
    given = table.column("vocabulary_id")
    for name, row in zip(given, table.rows, strict=True):
        if name.upper() not in VOCABULARY_OF:
            raise BadInput(
                f"{table.path.name}, row {row}: vocabulary_id {name!r}; it is one of {', '.join(VOCABULARY_OF)}."
            )
    return table.column("code"), [VOCABULARY_OF[name.upper()] for name in given]


def _optional(table: TextTable, *names: str) -> list[str]:
    return [""] * len(table.cells) if table.find(*names) is None else table.column(*names)


def _is_set(cell: str) -> bool:
    return cell.lower() not in ("", "0", "0.0", "false", "no")


def _normalise(code: str, vocabulary: str) -> str | None:
    if vocabulary not in ("icd9", "icd10"):
        raise BadInput(f"phecodes group the codes of icd9 and icd10, not of {vocabulary!r}.")
    return (ICD9CM if vocabulary == "icd9" else ICD10CM).normalise(code)


def _number(text: str, table: TextTable, i: int) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadInput(
            f"{table.path.name}, row {table.rows[i]}: {text!r} is not a phecode (a number such as 250.11)."
        ) from None


def _ranges(text: str, table: TextTable, i: int) -> tuple[Range, ...]:
    found = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        found.append((_number(first, table, i), _number(last or first, table, i)))
    return tuple(found)
