"""What a recipient needs first: the meaning of columns, lines that count one code with bounds, how to cite and ask."""

from __future__ import annotations

from collections.abc import Sequence

from leeward.contracts.words import Counting

COLUMNS = """\
| file | column | meaning |
|---|---|---|
"""

BOUNDED = """\
How many patients have a code, with bounds that are certain. Run in this folder:
"""
BOUNDED_BELOW = """\
How many patients have a code, with bounds that are certain. Codes may be missing in any record, so the upper bound is
everybody; `leeward estimate` has the expected number. Run in this folder:
"""
"""What the lines of a method with codes say they do."""

LISTED = """\
import pandas as pd

listed = pd.read_parquet("data/codes.parquet").set_index("code")
code = listed.index[0]  # or another one
assert code in listed.index, "not in this release: unknown, not 0"
"""
PRINT = """\
print(low, "to", high, "patients")
"""

R_LISTED = """\
read <- function(name) arrow::read_parquet(paste0("data/", name, ".parquet"))
has <- function(lists, code) vapply(lists, function(held) code %in% held, NA)
listed <- read("codes")
code <- unlist(listed$code)[1]  # or another one
stopifnot(code %in% unlist(listed$code))  # else not in this release: unknown, not 0
"""
R_PRINT = """\
cat(low, "to", high, "patients\\n")
"""


def of_codes(pandas: str, r: str, intro: str = BOUNDED) -> Counting:
    """Lines of a release with a list of codes: these find `low` and `high`, from `listed` and a `code` of it."""
    return Counting(intro, LISTED + pandas + PRINT, R_LISTED + r + R_PRINT)


OPENING = """\
{records:,} records, anonymized with Leeward {version} (method `{method}`). Records are numbered anew; neither numbers \
nor row order mean anything.
"""

CITING = """\
## Citing, terms, questions

Cite the release as: "{what}, method {method} ({guarantee}), made with Leeward {version}; {counts}". Whoever gave you \
this folder states the terms of use and answers questions; quote the first characters of `sha256sum release.json`, \
which name this release.
"""

PLEASE = """\
Do not try to find out who a record belongs to, and do not combine this release with another release of the same \
people: the guarantee holds for this release alone.
"""

OPENING_OF_CATALOGUE = """\
A catalogue of itemsets with noisy counts, made with Leeward {version} (method `{method}`). The order of rows follows \
from the counts and the texts, and means nothing else.
"""

PLEASE_OF_CATALOGUE = """\
Do not try to find out whom a count is about. What another release of the same people tells comes on top: the \
guarantee holds for this release alone.
"""


def columns_table(meanings: Sequence[tuple[str, str, str]], files: Sequence[str]) -> str:
    """The meaning of the columns of the files that are there; empty where nothing is said of them."""
    there = {path.removeprefix("data/").partition(".")[0] for path in files}
    rows = [
        f"| `{name}` | `{column.replace(', ', '`, `')}` | {meaning.replace('|', '&#124;')} |"
        for name, column, meaning in meanings
        if name in there
    ]
    return COLUMNS + "\n".join(rows) + "\n" if rows else ""


def counting_lines(counting: Counting | None) -> str:
    """Lines of pandas and of R that count the patients with a code, or the rows with a value."""
    if counting is None:
        return ""
    needs = "the packages `arrow` and `jsonlite`" if "jsonlite" in counting.r else "the package `arrow`"
    python, r = f"```python\n{counting.pandas}```", f"```r\n{counting.r}```"
    return f"{counting.intro}\n{python}\n\nThe same in R (needs {needs}):\n\n{r}\n"


def opening(method: str, records: int, version: str) -> str:
    """What the release is."""
    text = OPENING_OF_CATALOGUE if method == "notes" else OPENING
    return text.format(method=method, records=records, version=version)


def citing(method: str, guarantee: str, records: int, version: str) -> str:
    """How to cite the release, on which terms it is used, whom to ask."""
    what, counts = f"{records:,} records", "counts are estimates with bounds"
    if method == "notes":
        what, counts = "catalogue of itemsets", "counts hold noise"
    return CITING.format(what=what, counts=counts, method=method, guarantee=guarantee, version=version)


def asking(method: str) -> str:
    """What a recipient is asked not to do."""
    return PLEASE_OF_CATALOGUE if method == "notes" else PLEASE
