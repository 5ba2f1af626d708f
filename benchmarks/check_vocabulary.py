"""Compare the project's ICD-9-CM and ICD-10-CM with the public tables of their codes.

    python benchmarks/check_vocabulary.py --data DIR

DIR holds `vocab/icd9cm_hierarchy.csv.gz` and `vocab/icd10cm2019.csv.gz` (columns code, billable, three_digit,
sub_chapter, chapter; the tables of the R package icd.data). A code agrees when its category is the table's
`three_digit` and when its section and chapter carry the table's titles (case and abbreviations apart).

The ICD-10-CM table contradicts itself around the categories that end in a letter (C4A, C7A, C7B, D3A, M1A):
there its `major` and `sub_chapter` columns are shifted against its `code` column (C44.7, a skin tumour, is
filed under Kaposi's sarcoma). A row whose `major` is not the title of its own category is called misfiled,
and its section is counted apart. Exit status 1 if anything else disagrees.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import re
import sys
import time
from collections import Counter
from pathlib import Path

from leeward.vocabulary.classification import Classification
from leeward.vocabulary.icd import ICD9CM, ICD10CM

TABLES = {"icd9cm_hierarchy.csv.gz": ICD9CM, "icd10cm2019.csv.gz": ICD10CM}


def main() -> int:
    """Compare both tables; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the public data sets")
    folder = parser.parse_args().data / "vocab"
    return max(compare(folder / name, vocabulary) for name, vocabulary in TABLES.items())


def compare(path: Path, vocabulary: Classification) -> int:
    """Print agreement figures of one table and every disagreement; return 1 if there is one."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    titles = {row["code"]: (row["long_desc"], row["short_desc"]) for row in rows}
    started = time.perf_counter()
    canonical = [vocabulary.normalise(row["code"]) for row in rows]
    count: Counter[str] = Counter()
    odd: Counter[tuple[str, ...]] = Counter()
    for row, code in zip(rows, canonical, strict=True):
        count["codes"] += 1
        count["billable"] += row["billable"] == "True"
        if code is None or not vocabulary.is_known(code):
            odd[("unknown", row["code"])] += 1
            continue
        ours = vocabulary.category(code), *(vocabulary.title(vocabulary.level(code, n)) for n in (2, 3))
        theirs = row["three_digit"], row["sub_chapter"], row["chapter"]
        for kind, own, their in zip(("category", "section", "chapter"), ours, theirs, strict=True):
            if same_title(own, their):
                count[kind] += 1
            elif kind == "section" and misfiled(row, titles):
                count["section, misfiled in the table"] += 1
            else:
                odd[(kind, row["three_digit"], own, their)] += 1
    listed = {row["three_digit"] for row in rows}
    extra = sorted(c for c in every_category(vocabulary) if c not in listed)
    started_tree = time.perf_counter()
    tree = vocabulary.hierarchy([code for code in canonical if code])
    print(f"{vocabulary.name}: {dict(count)}; {sum(odd.values())} disagreements")
    print(f"  categories that the table lacks: {', '.join(extra) or 'none'}")
    print(
        f"  checked in {started_tree - started:.2f} s; {tree} in {time.perf_counter() - started_tree:.2f} s"
    )
    for what, times in odd.items():
        print("  ", *what, f"× {times}", sep=" | ")
    return int(bool(odd))


def misfiled(row: dict[str, str], titles: dict[str, tuple[str, str]]) -> bool:
    """Whether the table names another category than the row's own as its `major`."""
    return not any(same_title(own, row["major"]) for own in titles[row["three_digit"]])


def every_category(vocabulary: Classification) -> list[str]:
    """Every category that the vocabulary knows, by trying all spellings."""
    numbers = [f"{n:03d}" for n in range(1000)]
    letters = [f"{a}{n:02d}" for a in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" for n in range(100)]
    letters += [f"{a}{d}A" for a in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" for d in range(10)] + ["C7B"]
    external = [f"E{n:03d}" for n in range(1000)]
    known = (vocabulary.normalise(text) for text in numbers + letters + external)
    return sorted({c for c in known if c is not None and "." not in c and vocabulary.is_known(c)})


def same_title(ours: str, theirs: str) -> bool:
    """Whether two titles agree, apart from case, punctuation, blanks, `CNS`, and a cut-off end of either."""
    a, b = (re.sub(r"[^a-z0-9]", "", spell_out(text).lower()) for text in (ours, theirs))
    return a == b or (min(len(a), len(b)) >= 40 and (a.startswith(b) or b.startswith(a)))


def spell_out(text: str) -> str:
    """Abbreviations of our tables in full."""
    return text.replace("CNS", "central nervous system")


if __name__ == "__main__":
    sys.exit(main())
