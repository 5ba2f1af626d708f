"""Sources as hospitals have them, by every method that releases codes: what is released, and what it costs.

    python benchmarks/sources.py --data DIR [--only eunomia-gibleed] [--methods visits,censor]

A made-up table that mixes ICD-9-CM and ICD-10-CM with and without points and junk, and four public folders (OMOP, FHIR,
Synthea) in DIR. Each command has its defaults and no flag but k, m and the budget; each release is verified. Writes the
section *sources* of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import table, write_section

FOLDERS = ("eunomia-gibleed", "synthea-omop-27", "fhir-bulk-10", "synthea-oh")
METHODS = {
    "disassociate": ("--k", "5", "--m", "2"),
    "constrain": ("--k", "5", "--m", "2"),
    "visits": ("--k", "5"),
    "trajectories": ("--k", "5"),
    "censor": ("--k", "5", "--cap", "3"),
    "index": ("--epsilon-total", "1"),
}
REMEDIES = (("--odd-ages", "leave out"), ("--accept-unknown",))
"""Flags that a refusal may name; the command is then run again with them, and both are told."""
MIXED = ("--patient", "pid", "--code", "icd", "--visit", "visit", "--age", "age")
WEIGHTS = {
    "250.00": 8, "25000": 4, "401.9": 8, "4019": 4, "E11.9": 6, "E119": 3, "I10": 8, "J45.909": 3, "J45909": 2,
    "272.4": 5, "V58.61": 2, "E849.0": 1, "NULL": 1, "-": 1, "25O.00": 0.2, "xyz": 0.2,
}  # fmt: skip
START = "import sys; from leeward.cli.main import main; main(sys.argv[1:])"


def mixed(file: Path, patients: int = 1500) -> Path:
    """The mixed table: one to four visits a patient with one to four entries."""
    made = random.Random(16)
    rows = ["pid,visit,age,icd"]
    for patient in range(patients):
        age = made.randint(20, 85)
        for visit in range(made.randint(1, 4)):
            codes = made.choices(list(WEIGHTS), list(WEIGHTS.values()), k=made.randint(1, 4))
            rows += [f"{patient},{patient}-{visit},{age + visit},{code}" for code in codes]
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return file


def ran(command: list[str], folder: str) -> tuple[int, str, str, float]:
    """Status, output, errors and CPU seconds of a command of Leeward's."""
    with (
        tempfile.TemporaryFile("w+", dir=folder) as out,
        tempfile.TemporaryFile("w+", dir=folder) as err,
        subprocess.Popen([sys.executable, "-c", START, *command], stdout=out, stderr=err) as process,
    ):
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read())
    return process.returncode, texts[0], texts[1], usage.ru_utime + usage.ru_stime


def outcome(method: str, source: list[str], folder: str) -> str:
    """One cell: what was released and its first cost, or why nothing was."""
    further = ["--population", source[0]] if method == "censor" else []
    command = [method, *source, *further, *METHODS[method], "-o", str(Path(folder) / "OUT"), "--json"]
    status, out, err, seconds = ran(command, folder)
    refused = ""
    if status:
        said = [line for line in err.splitlines() if line.startswith("leeward: ")]
        refused = f"status {status}: {said[-1].removeprefix('leeward: ') if said else 'no sentence'}"
        remedy = next((flags for flags in REMEDIES if flags[0] in refused), None)
        if remedy is None:
            return refused
        refused += f" With `{shlex.join(remedy)}`: "
        status, out, err, seconds = ran([*command, *remedy], folder)
        assert not status, err
    found: dict[str, Any] = json.loads(out)
    if method == "index":
        return f"{refused}{found['rows']:,} rows of {found['patients']:,} patients indexed; {seconds:.1f} s"
    summary = found["summary"]
    assert found["verification"]["passed"]
    first = summary["costs"][0]
    cost = summary["little_left"] or f"{first['value']} {first['what']}"
    return f"{refused}{found['records']:,} records verified; {cost}; {seconds:.1f} s"


def main() -> None:
    """Run and write the section."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--methods", default="")
    parser.add_argument("--print", action="store_true", help="print the rows and leave the page as it is")
    given = parser.parse_args()
    methods = given.methods.split(",") if given.methods else list(METHODS)
    rows = []
    with tempfile.TemporaryDirectory(prefix="leeward-sources-") as folder:
        os.environ["LEEWARD_STATE"] = str(Path(folder) / "state")
        file = mixed(Path(folder) / "mixed.csv")
        sources = {"mixed ICD-9 and ICD-10": [str(file), *MIXED, "--missing", "NULL", "--missing", "-"]}
        sources |= {name: [str(given.data / name)] for name in FOLDERS}
        for name, source in sources.items():
            if given.only and name not in given.only.split(","):
                continue
            for method in methods:
                with tempfile.TemporaryDirectory(dir=folder) as place:
                    rows.append([name, method, outcome(method, source, place).replace("|", "\\|")])
                print(*rows[-1], sep=" | ", flush=True)
    if not given.print:
        head = ["source", "method", "what is released, its first cost, and CPU seconds of the whole command"]
        write_section(
            "sources", "Sources of hospitals", "python benchmarks/sources.py --data DIR", table(head, rows)
        )


if __name__ == "__main__":
    main()
