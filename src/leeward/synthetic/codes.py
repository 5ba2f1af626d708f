"""Synthetic diagnosis codes: Zipf frequencies, comorbidity, the structure of ICD-9-CM; any size, streaming.

The shape follows the UCI diabetes data (130 US hospitals): the frequency of the code of rank r falls like
1 / (r + 2), faster in the tail (exp(-4 r / codes)), so that many codes are rare. Every patient has one to
three latent conditions; a condition draws its codes from a few categories of any chapter, which makes
frequent pairs and triples. Each code's share of the draws is the wanted frequency, whatever the conditions.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from leeward import engine
from leeward.arrays import Float64s, Int32s, Int64s, UInt64s, offsets_of
from leeward.errors import BadInput
from leeward.randomness import Randomness

if TYPE_CHECKING:
    from leeward.synthetic.kernels import AliasTables

ONE = 1 << 32


def tables_of(weight: Float64s, members: Sequence[Int64s]) -> AliasTables:
    """Build the alias tables of codes with these shares (float64[codes]) and of conditions with these codes."""
    from leeward.synthetic.kernels import AliasTables

    first = offsets_of([len(m) for m in members])
    of_members = [alias_table(weight[m], int(start)) for m, start in zip(members, first, strict=False)]
    return AliasTables(
        *alias_table(np.array([weight[m].sum() for m in members]), 0),
        first,
        np.concatenate([t for t, _ in of_members]),
        np.concatenate([a for _, a in of_members]),
        np.concatenate(members).astype(np.int32),
        *alias_table(weight, 0),
    )


def alias_table(weight: Float64s, offset: int) -> tuple[UInt64s, Int32s]:
    """Build Walker's alias table (Vose 1991): (thresholds of 2**32, alias cells counted from `offset`)."""
    n = len(weight)
    scaled = weight / weight.sum() * n
    threshold = np.full(n, ONE, np.uint64)
    alias = np.arange(n, dtype=np.int32) + np.int32(offset)
    small = [i for i in range(n) if scaled[i] < 1.0]
    large = [i for i in range(n) if scaled[i] >= 1.0]
    while small and large:
        low, high = small.pop(), large.pop()
        threshold[low] = int(scaled[low] * ONE)
        alias[low] = high + offset
        scaled[high] -= 1.0 - scaled[low]
        (small if scaled[high] < 1.0 else large).append(high)
    return threshold, alias


T = TypeVar("T")
CHUNK_PATIENTS = 100_000
MAX_CODES = 12_000
MAX_LENGTH = 80
CONDITION_SHARE = 0.8
"""Share of a patient's codes that come from the patient's own conditions."""

CONDITIONS = (0.55, 0.33, 0.12)
"""Distribution of the number of latent conditions per patient (one to three)."""


def write_codes(
    path: str | Path,
    patients: int,
    codes: int = 631,
    mean: float = 5.1,
    seed: int | None = None,
    *,
    chunk: int = CHUNK_PATIENTS,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Write the codes of made-up patients: the columns `patient` and `code`.

    Parameters
    ----------
    path : str or Path
        `.parquet`, `.csv` or `.csv.gz` file to write.
    patients : int
        Number of patients.
    codes : int, optional
        Number of distinct codes, at most 12,000. Each occurs at least once if there are as many patients.
    mean : float, optional
        Mean number of distinct codes of a patient, at least 1.
    seed : int, optional
        The same seed gives the same rows; without one, they differ each time.
    chunk : int, optional
        Patients drawn and written at a time, which bounds the memory.
    threads : int, optional
        Number of threads; all processors by default.
    progress : callable, optional
        Called with the number of patients drawn so far.

    Returns
    -------
    int
        Number of rows.

    Raises
    ------
    BadInput
        A number is out of range, the ending is another one, or the folder does not exist.

    Examples
    --------
    >>> import leeward as lw
    >>> lw.synth.write_codes("events.csv", patients=300, codes=40, seed=1)
    1632
    """
    from leeward.synthetic.kernels import draw_code_sets

    target = Path(path)
    _check(target, patients, codes, mean, chunk)
    catalogue = code_catalogue(codes)
    planted = np.arange(codes if patients >= codes else 0, dtype=np.int64) * patients // codes
    model = (
        _upto(_lengths(mean, min(MAX_LENGTH, codes))),
        _upto(np.array(CONDITIONS)),
        np.uint64(CONDITION_SHARE * ONE),
        tables_of(code_weights(codes), conditions_of(codes)),
        planted,
    )
    key = np.uint64(Randomness.of(seed).number("synthetic codes"))

    def draw(first: int) -> tuple[Int32s, Int32s]:
        lengths, values = draw_code_sets(key, np.int64(first), min(chunk, patients - first), *model)
        return lengths, values

    workers = threads or engine.available_threads()
    rows = done = 0
    with code_sink(target, catalogue) as write, engine.pool(workers) as pool:
        starts = range(0, patients, chunk)
        for first, (lengths, values) in draw_in_order(pool, draw, starts, workers + 1):
            write(np.repeat(np.arange(first + 1, first + 1 + len(lengths)), lengths), values)
            rows += len(values)
            done += len(lengths)
            if progress:
                progress(done)
    return rows


def _check(target: Path, patients: int, codes: int, mean: float, chunk: int) -> None:
    if patients < 1:
        raise BadInput(f"`patients` must be at least 1; got {patients}.")
    if not 1 <= codes <= MAX_CODES:
        raise BadInput(f"`codes` must be between 1 and {MAX_CODES}; got {codes}.")
    if not 1 <= mean <= min(codes, MAX_LENGTH) / 2 + 0.5:
        raise BadInput(
            f"`mean` must be between 1 and half of `codes`, and at most {MAX_LENGTH / 2}; got {mean}."
        )
    if chunk < 1:
        raise BadInput(f"`chunk` must be at least 1; got {chunk}.")
    check_target(target)


def check_target(target: Path) -> None:
    """Raise BadInput when a table cannot be written to a file: another ending, or no such folder."""
    if not target.name.endswith((".parquet", ".csv", ".csv.gz")):
        raise BadInput(f"{target.name}: the file must end in .parquet, .csv or .csv.gz.")
    if not target.absolute().parent.is_dir():
        raise BadInput(f"{target.name}: the folder to write into does not exist.")


@contextmanager
def file_aside(target: Path) -> Iterator[Path]:
    """Yield a temporary file that replaces `target` when the block ends well; else it is removed."""
    aside = target.with_name(f".{target.name}.part")
    try:
        yield aside
        aside.replace(target)
    finally:
        aside.unlink(missing_ok=True)


def write_table(frame: pl.DataFrame, target: Path) -> None:
    """Write a table to a temporary file, then rename it."""
    with file_aside(target) as aside:
        if target.suffix == ".parquet":
            frame.write_parquet(aside)
        elif target.suffix == ".gz":
            aside.write_bytes(gzip.compress(frame.write_csv().encode(), compresslevel=4, mtime=0))
        else:
            frame.write_csv(aside)


def draw_in_order(
    pool: Executor, draw: Callable[[int], T], starts: Iterable[int], ahead: int
) -> Iterator[tuple[int, T]]:
    """Yield (first patient, drawn chunk) in order, with at most `ahead` chunks drawn in advance."""
    waiting: list[tuple[int, Future[T]]] = []
    for first in starts:
        waiting.append((first, pool.submit(draw, first)))
        if len(waiting) > ahead:
            made, future = waiting.pop(0)
            yield made, future.result()
    for made, future in waiting:
        yield made, future.result()


def code_weights(codes: int, fall: float = 4.0) -> Float64s:
    """Return each catalogue code's share of all draws, float64[codes], sum 1; `fall`: of the tail, see the module."""
    rank = np.arange(1, codes + 1)
    by_rank = np.exp(-fall * rank / codes) / (rank + 2.0)
    # Some categories are common, and in them a few codes.
    draws = Randomness.of(0).stream("synthetic codes", "popularity", codes)
    categories = _categories_of(codes)
    score = draws.normal(size=categories.max() + 1)[categories] + 1.3 * draws.normal(size=codes)
    weight = np.empty(codes)
    weight[np.argsort(-score, kind="stable")] = by_rank / by_rank.sum()
    return weight


def _categories_of(codes: int) -> Int64s:
    return np.unique([code[:3] for code in code_catalogue(codes)], return_inverse=True)[1]


def conditions_of(codes: int) -> list[Int64s]:
    """Return the codes of each latent condition: whole categories, dealt so that conditions differ in prevalence."""
    draws = Randomness.of(0).stream("synthetic codes", "conditions", codes)
    categories = _categories_of(codes)
    count = max(1, min(codes // 4, round(codes / 15)))
    appeal = 1.0 / np.arange(1, count + 1) ** 0.5
    of_category = draws.choice(count, size=categories.max() + 1, p=appeal / appeal.sum())
    of_code = of_category[categories]
    found = [np.flatnonzero(of_code == g) for g in range(count)]
    return [members for members in found if len(members)]


def _lengths(mean: float, longest: int) -> Float64s:
    """Probabilities of lengths 1 … longest: 1 + negative binomial (shape 2) of mean `mean` - 1."""
    p = 2.0 / (2.0 + (mean - 1.0))
    more = np.arange(longest)
    probability = (more + 1.0) * p**2 * (1.0 - p) ** more
    return probability / probability.sum()


def _upto(probability: Float64s) -> UInt64s:
    """Cumulative distribution in fractions of 2**32."""
    upto = np.minimum(np.cumsum(probability), 1.0)
    upto[-1] = 1.0
    return (upto * ONE).astype(np.uint64)


def code_catalogue(codes: int) -> list[str]:
    """Return distinct codes with the structure of ICD-9-CM, in ascending order.

    The categories are of all chapters; most have several codes of four or five digits.

    Parameters
    ----------
    codes : int
        Number of codes, at most 12,000.

    Returns
    -------
    list of str
        The codes.

    Examples
    --------
    >>> import leeward as lw
    >>> lw.synth.code_catalogue(4)
    ['001.0', '001.2', '001.6', '001.9']
    """
    from leeward.vocabulary.classification import expand
    from leeward.vocabulary.icd import ICD9CM

    draws = Randomness.of(0).stream("synthetic codes", "catalogue", codes)
    sections = " ".join(section.label for section in ICD9CM.sections)
    everywhere = sorted(expand(sections) - ICD9CM.gaps)
    wanted = max(1, min(len(everywhere), round(codes / 4)))
    chosen = [everywhere[i * len(everywhere) // wanted] for i in range(wanted)]
    room = np.array([10 if c[0] == "E" else 100 for c in chosen])
    sizes = np.ones(wanted, np.int64)
    while sizes.sum() < codes:
        appeal = np.where(sizes < room, sizes + 1.0, 0.0)
        lacking = int(codes - sizes.sum())
        extra = np.bincount(
            draws.choice(wanted, size=(lacking + 1) // 2, p=appeal / appeal.sum()), minlength=wanted
        )
        sizes = np.minimum(sizes + extra, room)
    return sorted(
        code for c, size in zip(chosen, sizes, strict=True) for code in _subdivisions(c, int(size), draws)
    )


def _subdivisions(category: str, size: int, draws: np.random.Generator) -> list[str]:
    """`size` codes of one category: the category itself when alone, else four or five digits."""
    if size == 1 and category[0] not in "VE":
        return [category]
    if category[0] == "E" or size <= 4:
        digits = sorted(draws.choice(10, size=size, replace=False))
        return [f"{category}.{d}" for d in digits]
    width = -(-size // 10) if size > 30 else min(10, -(-size // 4))
    width = max(width, -(-size // 10))
    cells = [f"{category}.{d}{e}" for d in range(10) for e in range(width)]
    return [cells[i * len(cells) // size] for i in range(size)] if size > 30 else cells[:size]


@contextmanager
def code_sink(target: Path, catalogue: list[str]) -> Iterator[Callable[[Int64s, Int32s], None]]:
    """Yield a function that appends rows (patient numbers, code indices); `target` appears once all are written."""
    import pyarrow.csv as pacsv

    names = pl.Series(catalogue).to_arrow().cast(pa.string())
    in_parquet = target.suffix == ".parquet"
    kind = pa.dictionary(pa.int32(), pa.string()) if in_parquet else pa.string()
    schema = pa.schema([("patient", pa.int64()), ("code", kind)])
    with ExitStack() as stack:
        aside = stack.enter_context(file_aside(target))
        writer: pq.ParquetWriter | pacsv.CSVWriter
        if in_parquet:
            writer = pq.ParquetWriter(aside, schema, compression="zstd")
        else:
            zipped = target.suffix == ".gz"
            opened = gzip.GzipFile(aside, "wb", 4, mtime=0) if zipped else aside.open("wb")
            options = pacsv.WriteOptions(quoting_style="none")
            writer = pacsv.CSVWriter(stack.enter_context(opened), schema, write_options=options)
        stack.enter_context(writer)

        def write(patient: Int64s, values: Int32s) -> None:
            codes = pa.DictionaryArray.from_arrays(pl.Series(values).to_arrow(), names)
            columns = {
                "patient": pl.Series(patient).to_arrow(),
                "code": codes if in_parquet else codes.dictionary_decode(),
            }
            writer.write_table(pa.table(columns, schema=schema), max(1, len(values)))

        yield write
