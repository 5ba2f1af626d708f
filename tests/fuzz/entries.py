"""What the fuzzer feeds, entry by entry: each makes one hostile input from a generator and hands it to Leeward.

An entry may end in an error with a sentence (`LeewardError`, the exit status of a command). Anything else that it raises, an aborted process, a
hang, and a row that is neither kept nor noticed are faults.
"""

from __future__ import annotations

import csv
import gzip
import io
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from tests.fuzz.commands import at_once, commands, compare, dossier, explore, link, recommend
from tests.fuzz.counting import counted, plain_rows, rows_accounted
from tests.fuzz.damage import damaged
from tests.fuzz.files import forms, split
from tests.fuzz.making import CELLS, NAMES, YAML_PARTS, mutated, one_value
from tests.fuzz.services import calls, portal, pumped
from tests.fuzz.stores import corpora, fhir, i2b2, omop, sql, synthea

from leeward.cohort import read
from leeward.errors import BadInput, LeewardError

Entry = Callable[[Random, Path], int | None]
"""Returns the exit status, where a command ran."""


def options_of(random: Random) -> dict[str, Any]:
    """Arguments of `read` for a table of events."""
    chosen: dict[str, Any] = {"accept_unknown": random.random() < 0.8}
    if random.random() < 0.3:
        chosen["vocabulary"] = random.choice(["icd9", "icd10", "icd", "none", "icd11", "nothing.csv"])
    if random.random() < 0.3:
        chosen["missing"] = random.sample(CELLS, 2)
    if random.random() < 0.2:
        chosen["date_format"] = random.choice(["%d.%m.%Y", "%Y", "%%", "", "%Q", "x"])
    if random.random() < 0.3:
        roles = ["patient", "code", "age", "visit", "date", "birth", "vocabulary", "patients"]
        chosen["columns"] = {
            role: random.choice(NAMES) for role in random.sample(roles, random.randint(1, 4))
        }
        if random.random() < 0.3:
            chosen["columns"]["code"] = random.sample(NAMES, 2)
    return chosen


def events(random: Random, folder: Path) -> None:
    """A well-formed CSV file with odd cells: its rows are counted."""
    names = ["patient", "code", *random.sample(NAMES[2:], random.randint(0, 3))]
    good = random.random() < 0.6
    rows = [
        [
            str(random.randint(1, 9)) if good and name == "patient" else
            random.choice(["401.9", "E11.9", "", "x"]) if good and name == "code" else random.choice(CELLS)
            for name in names
        ]
        for _ in range(random.randint(0, 12))
    ]  # fmt: skip
    out = io.StringIO()
    separator = random.choice(",;\t|")
    writer = csv.writer(out, delimiter=separator, lineterminator=random.choice(["\n", "\r\n"]))
    writer.writerows([names, *rows])
    data = out.getvalue().encode("utf-8", "surrogatepass")
    compressed = random.random() < 0.2
    file = folder / ("events.csv.gz" if compressed else "events.csv")
    file.write_bytes(gzip.compress(data) if compressed else data)
    options = options_of(random)
    cohort = read(file, **options)
    if not any("\n" in cell or "\r" in cell for row in rows for cell in row):
        rows_accounted(cohort, sum(any(row) for row in rows))


def bytes_of_events(random: Random, folder: Path) -> None:
    """The bytes of a CSV file, damaged."""
    text = "patient,code,age,date\n" + "".join(
        f"{i % 5},{random.choice(['401.9', 'E11.9', '250.00'])},{20 + i},2020-01-{i + 1:02d}\n"
        for i in range(9)
    )
    data = mutated(text.encode(), random)
    ending = random.choice([".csv", ".csv", ".tsv", ".csv.gz", ".parquet", ".txt"])
    file = folder / f"events{ending}"
    file.write_bytes(mutated(gzip.compress(data), random) if ending.endswith("gz") else data)
    cohort = read(file, **options_of(random))
    rows = plain_rows(data) if ending == ".csv" else None
    if rows is not None:
        rows_accounted(cohort, rows)


def _values(random: Random, n: int) -> pa.Array:
    kinds: list[Callable[[], pa.Array]] = [
        lambda: pa.array([random.choice(CELLS) for _ in range(n)]),
        lambda: pa.array([random.choice(["401.9", None]) for _ in range(n)], pa.large_string()),
        lambda: pa.array([random.randint(-5, 9) for _ in range(n)]),
        lambda: pa.array([2**64 - 1 - i for i in range(n)], pa.uint64()),
        lambda: pa.array([random.choice([1.0, 1.5, float("nan"), float("inf"), None]) for _ in range(n)]),
        lambda: pa.array([Decimal("1.5")] * n, pa.decimal256(50, 2)),
        lambda: pa.array([Decimal(i) for i in range(n)], pa.decimal128(20, 0)),
        lambda: pa.array([[1, 2]] * n),
        lambda: pa.array([{"a": 1}] * n),
        lambda: pa.array([[("a", 1)]] * n, pa.map_(pa.string(), pa.int64())),
        lambda: pa.array([b"\xff\x00"] * n),
        lambda: pa.array([True, None, False, True, True, True, True, True, True][:n]),
        lambda: pa.array([random.randint(0, 99999) for _ in range(n)], pa.date32()),
        lambda: pa.array([random.randint(0, 2**62) for _ in range(n)], pa.timestamp("ns")),
        lambda: pa.array([1] * n, pa.duration("s")),
        lambda: pa.array([1] * n, pa.time64("us")),
        lambda: pa.nulls(n),
        lambda: pa.array([random.choice("ab") for _ in range(n)]).dictionary_encode(),
        lambda: pa.array([random.choice(["401.9", "x"]) for _ in range(n)], pa.string_view()),
    ]
    return random.choice(kinds)()


def parquet(random: Random, folder: Path) -> None:
    """Parquet with columns of any type, sometimes with its bytes damaged."""
    n = random.randint(0, 9)
    names = ["patient", "code", *random.sample(NAMES[2:7], random.randint(0, 3))]
    columns = {name: _values(random, n) for name in names}
    if random.random() < 0.5:
        columns["patient"] = pa.array([i % 3 for i in range(n)])
    if random.random() < 0.4:
        columns["code"] = pa.array([random.choice(["401.9", "E11.9", None]) for _ in range(n)])
    file = folder / "events.parquet"
    try:
        pq.write_table(pa.table(columns), file)
    except (pa.ArrowException, OSError):
        return  # a type that Parquet does not have
    damaged = random.random() < 0.3
    if damaged:
        file.write_bytes(mutated(file.read_bytes(), random))
    table = random.random() < 0.3
    cohort = read(file, format="table") if table else read(file, **options_of(random))
    if table:
        cohort.table()
        assert cohort.patients is not None
        if not damaged:
            counted(n, cohort.patients.height)
    elif not damaged:
        rows_accounted(cohort, n)


def frames(random: Random, folder: Path) -> None:
    """A frame in memory."""
    n = random.randint(0, 6)
    frame = pl.DataFrame(
        {
            "patient": [random.choice(CELLS) for _ in range(n)],
            "code": [random.choice(CELLS) for _ in range(n)],
        }
    )
    options = options_of(random) | {"missing": ()}
    options.pop("columns", None)
    cohort = read(frame, **options)
    rows_accounted(cohort, n)


def tables(random: Random, folder: Path) -> None:
    """A table of patients with odd columns and options."""
    n = random.randint(0, 8)
    names = random.sample([*NAMES, "x1", "x2", "x3"], random.randint(1, 5))
    out = io.StringIO()
    rows = [[random.choice(CELLS[:20] if random.random() < 0.5 else CELLS) for _ in names] for _ in range(n)]
    csv.writer(out).writerows([names, *rows])
    file = folder / "table.csv"
    file.write_bytes(out.getvalue().encode("utf-8", "surrogatepass"))
    options: dict[str, Any] = {}
    if random.random() < 0.4:
        options["columns"] = {random.choice(["patient", "code"]): random.choice(names)}
    if random.random() < 0.3:
        options["drop"] = random.sample([*names, "nope"], 1)
    if random.random() < 0.3:
        options["domains"] = random.choice(
            [
                {names[0]: ["a"]},
                {names[0]: {"low": 1, "high": 0}},
                {names[0]: 3},
                {"nope": []},
                {names[0]: {"x": 1}},
            ]
        )
    cohort = read(file, format="table", **options)
    cohort.table()
    assert cohort.patients is not None
    if not any("\n" in cell or "\r" in cell for row in rows for cell in row):
        counted(n, cohort.patients.height)


def lines(random: Random, folder: Path) -> None:
    """One record a line."""
    text = "\n".join(
        random.choice([" ", ",", "\t"]).join(random.choice(CELLS) for _ in range(random.randint(0, 5)))
        for _ in range(random.randint(0, 6))
    )
    data = text.encode("utf-8", "surrogatepass")
    (folder / "lines.txt").write_bytes(mutated(data, random) if random.random() < 0.5 else data)
    cohort = read(folder / "lines.txt", lines=True, accept_unknown=random.random() < 0.8)
    written = (folder / "lines.txt").read_bytes().removesuffix(b"\n").split(b"\n")
    without = sum(each.count for each in cohort.notices if each.kind == "record without codes")
    counted(len(written), cohort.require_events()["patient"].n_unique(), without)


def notes(random: Random, folder: Path) -> None:
    """A table of clinical notes, or a folder of texts."""
    from leeward.notes.reading import read as read_notes

    texts = [
        random.choice(CELLS) + random.choice([" has fever.", "", "\n"]) for _ in range(random.randint(0, 5))
    ]
    if random.random() < 0.5:
        out = io.StringIO()
        names = random.sample(["patient", "text", "note", "date", "sex", "age"], random.randint(1, 5))
        csv.writer(out).writerows([names, *([random.choice(texts) for _ in names] for _ in texts)])
        data = out.getvalue().encode("utf-8", "surrogatepass")
        place = folder / random.choice(["notes.csv", "notes.jsonl", "notes.tsv"])
        place.write_bytes(mutated(data, random) if random.random() < 0.4 else data)
    else:
        place = folder / "texts"
        place.mkdir()
        for number, text in enumerate(texts):
            (place / f"{number}.txt").write_bytes(mutated(text.encode("utf-8", "surrogatepass"), random))
    read_notes(place)


SPEC = """source: {path: events.csv, columns: {patient: pid, code: [a, b]}, missing: ['?']}
method: {name: disassociation, k: 5, m: 2, utility: 'hierarchy:1'}
measure: [{are: {min_support: 0.1}}, mre]
engine: {spark: {master: 'local[2]', memory: 2g}}
plan: [{cox: {time: t, event: d, covariates: [x, y]}}]
seed: 3
"""


def spec(random: Random, folder: Path) -> None:
    """A spec, read and its method built."""
    from leeward.release.spec import parse

    text = SPEC
    for _ in range(random.randint(1, 4)):
        place = random.randrange(len(text))
        cut = random.randint(0, 12)
        text = text[:place] + random.choice([*YAML_PARTS, *CELLS]) + text[place + cut :]
    read_spec = parse(text)
    from leeward.runs.protect import method_of

    method_of(read_spec.method, read_spec.plan)


def parameters(random: Random, folder: Path) -> None:
    """A method's parameters with any values."""
    from leeward.methods import METHODS
    from leeward.runs.protect import method_of

    values = [
        0,
        1,
        2,
        5,
        -1,
        5.5,
        "5",
        None,
        True,
        [],
        {},
        "x",
        10**20,
        float("nan"),
        [1, "a"],
        {"a": 1},
        "hierarchy:1",
    ]
    names = [
        "k",
        "m",
        "policy",
        "cap",
        "caps",
        "codes",
        "prior",
        "algorithm",
        "enforce",
        "level",
        "ages",
        "sensitive",
    ]
    given = {name: random.choice(values) for name in random.sample(names, random.randint(0, 4))}
    method_of({"name": random.choice([*METHODS, "nothing"]), "k": random.choice([5, *values]), **given})


def policy(random: Random, folder: Path) -> None:
    """A utility policy, as text, mapping or file."""
    from leeward.analysis.policies import constraints

    sets = read(pl.DataFrame({"patient": [1, 1, 2], "code": ["401.9", "250.00", "401.9"]})).code_sets()
    texts = [
        "hierarchy:1",
        "hierarchy:9",
        "similarity:2",
        "similarity:x",
        "frequency:0.5",
        "frequency:",
        "file:",
        "none",
        ":",
    ]
    text = random.choice(texts) + random.choice(["", *CELLS])
    if random.random() < 0.4:
        file = folder / "policy.csv"
        file.write_bytes(mutated(b"constraint,code\n1,401.9\n1,250.00\n2,250.00\n", random))
        text = f"file:{file}"
    content: Any = text
    if random.random() < 0.3:
        content = {
            "policy": random.choice(["hierarchy", "file", 3, None]),
            random.choice(["level", "size", "path"]): one_value(random),
        }
    constraints(content, sets, random.choice([None, "icd9", "icd10", "icd"]))


def plan(random: Random, folder: Path) -> None:
    """The recipient's models."""
    from datetime import date

    from leeward.analysis.plan import models_of

    odd = [date(2020, 1, 1), True, {"a": 1}, ["x"], 3, None, "x", "y", "", 1.5]
    entry = {
        random.choice(["cox", "linear", "logistic", "poisson", 3]): random.choice(
            [
                {key: random.choice(odd) for key in random.sample(
                    ["response", "time", "event", "event_value", "covariates", "other"], random.randint(0, 5))},
                random.choice(odd),
            ]
        )
    }  # fmt: skip
    models_of([entry])


def queries(random: Random, folder: Path) -> None:
    """A query with its conditions."""
    from leeward.queries.language.query import parse

    parts = [
        "fever",
        "sore throat",
        "&",
        "|",
        "!",
        "(",
        ")",
        "=",
        "*",
        "..",
        "250.00",
        "/",
        "\\",
        "'",
        '"',
        *CELLS,
    ]
    text = random.choice(["", " "]).join(random.choice(parts) for _ in range(random.randint(0, 8)))
    conditions = {
        random.choice(["when", "age", "zip", "", "x\x00"]): random.choice(
            ["2009", "2009-04..2009-06", "1*", "..", "a..b", *CELLS]
        )
        for _ in range(random.randint(0, 3))
    }
    parse(text, conditions)


def hierarchies(random: Random, folder: Path) -> None:
    """A hierarchy file, used as a vocabulary."""
    from leeward.vocabulary import load

    file = folder / "hierarchy.csv"
    text = b"node,parent\nall,\nheart,all\nH1,heart\nH2,heart\nlung,all\nL1,lung\n"
    file.write_bytes(mutated(text, random))
    vocabulary = load(file)
    vocabulary.level_groups(["H1", "L1"], 1)
    read(pl.DataFrame({"patient": [1], "code": ["H1"]}), vocabulary=file)


def _small_index(folder: Path) -> Path:
    """An index with its ledger, made once a process."""
    from leeward.queries.index.build import index_table
    from leeward.queries.language.vocabulary import Terms
    from leeward.queries.ledger import budgets, opening
    from leeward.queries.ledger.budgets import DataSet
    from leeward.queries.privacy.accounting import Budget, micro

    made = folder.parent / "index-of-the-fuzzer"
    if not made.exists():
        notes = pl.DataFrame(
            {
                "note": range(9),
                "patient": [f"p{i % 4}" for i in range(9)],
                "terms": [["fever", "cough"][: i % 3] for i in range(9)],
            }
        )
        index = index_table(notes, made, terms=Terms(("cough", "fever"))).index
        budgets.register(
            opening.make_ledger(made), DataSet(id=index.meta.id, budget=Budget(epsilon=micro(50)))
        )
    return made


def index_files(random: Random, folder: Path) -> None:
    """An index or its ledger with one file damaged, asked a question."""
    from leeward.queries.answer.api import query

    copy = folder / "index"
    shutil.copytree(_small_index(folder), copy)
    file = random.choice(sorted(path for path in copy.iterdir() if path.is_file()))
    kind = random.random()
    if kind < 0.1:
        file.unlink()
    elif kind < 0.2:
        file.write_bytes(b"")
    else:
        file.write_bytes(mutated(file.read_bytes(), random))
    query(copy, random.choice(["fever", "fever & cough", "nothing"]), epsilon=0.1)


def paths(random: Random, folder: Path) -> None:
    """Paths that no file has, or that are no files."""
    import os

    pipe = folder / "pipe.csv"
    os.mkfifo(pipe)
    (folder / "empty").mkdir()
    options = ["x" * 5000, "a\0b", str(folder / "empty"), str(pipe), "/dev/null", "*" * 300, "[", "sqlite:///nothing.db#t", "~", "",
               "postgresql://u:p@ss@host/db", "sqlite://", "x://", "postgresql://u@h:port/db"]  # fmt: skip
    kind: Any = random.choice([None, None, "events", "table", "lines", "omop", "fhir", "sql", "x"])
    chosen = random.choice(options)
    if ("host" not in chosen and "@h:" not in chosen) or kind in (None, "sql"):
        read(chosen, format=kind)


ENTRIES: dict[str, Entry] = {
    each.__name__: each
    for each in (
        events, bytes_of_events, parquet, frames, tables, lines, fhir, omop, i2b2, synthea, sql, corpora, notes, spec, parameters, policy, plan, queries,
        hierarchies, index_files, paths, commands, split, forms, damaged, recommend, explore, compare, dossier, link, at_once,
        pumped, portal, calls,
    )
}  # fmt: skip

__all__ = ["ENTRIES", "BadInput", "LeewardError"]
