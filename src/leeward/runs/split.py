"""A table cut into parts by patient, a block of rows at a time: for tables that are larger than memory."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from leeward.errors import BadInput
from leeward.release.aside import written_aside
from leeward.release.folder import check_out

if TYPE_CHECKING:
    import pyarrow as pa

MOST_PARTS = 1000
"""A file of each part is open all the time."""


def split(source: str | Path, out: str | Path, parts: int, patient: str | None = None) -> list[int]:
    """Cut a table into Parquet files, each with all rows of its patients.

    Each patient's part is drawn at random with a key that is not kept. Each part can be released separately: no
    patient is in two parts, so the guarantee of each release also holds for all of them together, even if the attacker
    knows the part. Memory does not grow with the table.

    Parameters
    ----------
    source : str or Path
        CSV or Parquet: a file, a folder or a pattern.
    out : str or Path
        Folder to write; it must not exist.
    parts : int
        Number of files.
    patient : str, optional
        Column of the patient; without it, every row is a patient.

    Returns
    -------
    list of int
        Rows of each part.

    Raises
    ------
    BadInput
        The table cannot be read or lacks the column, a row names no patient, the files have different types, or `out`
        exists. Nothing is left at `out`.

    Examples
    --------
    >>> import leeward as lw
    >>> rows = lw.synth.write_codes("events.csv", patients=300, codes=40, seed=1)
    >>> sum(lw.split("events.csv", "parts", 2, patient="patient")) == rows
    True
    """
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from leeward.cohort.readers.copies import copies

    if not 2 <= parts <= MOST_PARTS:
        raise BadInput(f"--parts must be between 2 and {MOST_PARTS:,}; got {parts:,}.")
    folder = Path(out).absolute()
    check_out(folder)
    rows = [0] * parts
    with written_aside(folder) as aside, copies():
        with ExitStack() as files:
            writers: list[pq.ParquetWriter] = []
            for block, part in _blocks(source, patient, parts):
                for number in range(parts):
                    if number == len(writers):
                        file = aside / f"part-{number + 1:03d}.parquet"
                        writers.append(
                            files.enter_context(pq.ParquetWriter(file, block.schema, compression="zstd"))
                        )
                    chosen = block.filter(pc.equal(part, number))
                    writers[number].write_table(chosen)
                    rows[number] += chosen.num_rows
        if not any(rows):
            raise BadInput(f"{Path(source).name}: no rows to cut into parts.")
    return rows


def _blocks(source: str | Path, patient: str | None, parts: int) -> Iterator[tuple[pa.Table, pa.Array]]:
    """The table block by block, all of the same types, and each row's part. Identifiers that the reader calls alike get
    one part, so that it can tell of them."""
    import numpy as np
    import pyarrow as pa

    from leeward.cohort.readers.columns import require_columns
    from leeward.cohort.readers.copies import local
    from leeward.cohort.readers.files import find_files
    from leeward.cohort.readers.stores import reader_of
    from leeward.cohort.readers.tables import cast_column, common_types, require_same_columns
    from leeward.cohort.readers.values import identify_patients, simplify

    files = find_files(local(source))
    header = reader_of(files[0]).header(files[0])
    require_columns(files[0].name, [] if patient is None else [patient], header)
    require_columns(files[0].name, header, header)
    require_same_columns(files, header)
    types = common_types(files, header)
    key, draws = [secrets.randbits(64) for _ in range(4)], np.random.default_rng(secrets.randbits(128))
    for file in files:
        row = 1
        for batch in reader_of(file).batches(file, header):
            columns = [
                cast_column(batch.column(name), kind, file.name, name)
                for name, kind in zip(header, types, strict=True)
            ]
            block = pa.table(columns, header)
            if patient is None:
                part = draws.integers(0, parts, block.num_rows)
            else:
                rows = np.arange(row, row + block.num_rows)
                who = identify_patients(columns[header.index(patient)], file.name, patient, rows)
                part = (simplify(who).hash(*key) % parts).to_numpy()
            row += block.num_rows
            yield block, pa.array(part)
