"""Sources as hospitals have them, by every method that releases codes: what is released, and what it costs.

    python benchmarks/sources.py --data DIR [--only eunomia-gibleed] [--json FILE]

A made-up table that mixes ICD-9-CM and ICD-10-CM with and without points and junk, and public folders (OMOP, FHIR,
Synthea, tables of codes) in DIR. Each command has its defaults and no flag but k, m, the budget and columns, as a
person would type it; a remedy that a refusal names is tried once. Writes docs/benchmarks/sources.md; with `--only` it
prints.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from common import once, table, write_page

FOLDERS: dict[str, tuple[str, ...]] = {
    "eunomia-gibleed": (),
    "synthea-omop-27": (),
    "fhir-bulk-10": (),
    "synthea-oh": (),
    "synthea-ma": (),
    "uranium-pathology": ("--patient", "case", "--code", "icd10"),
    "disassociation-replication/dataset_final.csv": ("--lines",),
}
"""Folder or file -> the flags that a person needs for it."""
METHODS = {
    "disassociate": ("--k", "5", "--m", "2"),
    "constrain": ("--k", "5", "--m", "2"),
    "visits": ("--k", "5"),
    "trajectories": ("--k", "5"),
    "censor": ("--k", "5", "--cap", "3"),
    "link": ("--k", "5"),
    "index": ("--epsilon-total", "1"),
}
REMEDIES = (("--odd-ages", "leave out"), ("--accept-unknown",), ("--merge-visits",))
"""Flags that a refusal may name; the command is then run again with them, and both are told."""
MIXED = ("--patient", "pid", "--code", "icd", "--visit", "visit", "--age", "age")
WEIGHTS = {
    "250.00": 8, "25000": 4, "401.9": 8, "4019": 4, "E11.9": 6, "E119": 3, "I10": 8, "J45.909": 3, "J45909": 2,
    "272.4": 5, "V58.61": 2, "E849.0": 1, "NULL": 1, "-": 1, "25O.00": 0.2, "xyz": 0.2,
}  # fmt: skip
WIDEST = 110
"""Columns of the screen where nobody watches."""
SHORT = {
    "mean error of counts of pairs of codes": "error of pairs",
    "mean error of counts of triples of codes": "error of triples",
    "mean error of counts of frequent pairs": "error of frequent pairs",
    "mean error of the number of patients with a code": "error of counts of codes",
    "of the codes' occurrences are in item chunks": "in item chunks",
    "of the codes' occurrences suppressed or generalized": "of occurrences lost",
    "of the diagnoses (patient and code) are kept": "of diagnoses kept",
    "of the visits lost all their codes": "of visits emptied",
    "of the (code, age) pairs are usable": "of pairs usable",
    "of the pairs are not published, or say no more than that there was some code": "of pairs without a code",
    "codes are in no released visit": "codes lost",
    "codes are in no released record": "codes lost",
    "codes are in no released table": "codes lost",
    "of all mentions of codes are released": "of mentions kept",
    "of the repeats of a code in a record are released": "of repeats kept",
    "of the events are suppressed": "of events lost",
}
"""Phrases of the first screen, as the page has them."""
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


def outcome(method: str, source: list[str], folder: str) -> list[str]:
    """Exit status, checks that passed, what the first screen says it cost or why nothing was released, CPU seconds."""
    further = ["--population", source[0]] if method == "censor" else []
    command = [method, *source, *further, *METHODS[method], "-o", str(Path(folder) / "OUT")]
    status, out, err, seconds = ran(command, folder)
    exits, refused = str(status), ""
    if status:
        said = [line for line in err.splitlines() if line.startswith("leeward: ")]
        refused = said[-1].removeprefix("leeward: ") if said else "no sentence"
        remedy = next((flags for flags in REMEDIES if flags[0] in refused), None)
        if remedy is not None:
            status, out, err, seconds = ran([*command, *remedy], folder)
            exits, refused = f"{exits}; {status}", f"{refused} With `{shlex.join(remedy)}`: "
    verified = re.search(r"^Verified: (\d+) checks .* passed", out, re.MULTILINE)
    return [exits, verified[1] if verified else "–", (refused + first_screen(out)).strip(), f"{seconds:.1f}"]


def first_screen(out: str) -> str:
    """What a person reads there of the costs, and whether little is left; of an index its first line."""
    if "It cost" not in out:
        return out.partition(" in /")[0]
    below = re.search(r"^It cost.*\n(?: .*\n)*", out, re.MULTILINE)
    assert below is not None
    costs: list[str] = []
    before = ""
    for line in below[0].splitlines():
        said = line.removeprefix("It cost").strip()
        if costs and len(before) + len(said.split()[0]) >= WIDEST:  # the word did not fit there
            costs[-1] += f" {said}"
        else:
            costs.append(said)
        before = line
    little = re.search(r"^Little is left: ", out, re.MULTILINE)
    told = "; ".join(cost.partition(":")[0] for cost in costs) + (". **Little is left.**" if little else "")
    for phrase, short in SHORT.items():
        told = told.replace(phrase, short)
    return told


def main() -> None:
    """Run and write the section."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument(
        "--json", type=Path, help="keeps what was run, so that a long run can go on in pieces"
    )
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="leeward-sources-") as folder:
        os.environ["LEEWARD_STATE"] = str(Path(folder) / "state")
        file = mixed(Path(folder) / "mixed.csv")
        sources = {"mixed ICD-9 and ICD-10": [str(file), *MIXED, "--missing", "NULL", "--missing", "-"]}
        sources |= {name: [str(given.data / name), *flags] for name, flags in FOLDERS.items()}
        for name, source in sources.items():
            if given.only and name not in given.only.split(","):
                continue
            for method in METHODS:
                with tempfile.TemporaryDirectory(dir=folder) as place:
                    said = once(given.json, f"{name} {method}", partial(outcome, method, source, place))
                rows.append([name, method, *(each.replace("|", "\\|") for each in said)])
                print(*rows[-1], sep=" | ", flush=True)
    if not given.only:
        head = [
            "source",
            "method",
            "exit status",
            "checks passed",
            "what it cost, or why not",
            "CPU s",
        ]
        command = "python benchmarks/sources.py --data DIR"
        write_page("sources", "Sources of hospitals, by every method of codes", command, table(head, rows))


if __name__ == "__main__":
    main()
