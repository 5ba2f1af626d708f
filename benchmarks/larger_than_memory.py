"""One release of a table that is larger than memory: whole commands in memory control groups of their own.

    python benchmarks/larger_than_memory.py --store FOLDER [--patients N] [--limit GB] [--engines local,spark,free]

Made-up code sets of about five codes a patient (`benchmarks/memory.py`). `local` is `leeward disassociate` as it is;
`spark` the same on Spark (Java with its heap, its workers and the starting process all in the group); `parts` with
`--partitions`, as many as Spark has; `free` as many, in memory and without a limit. Every run has seed 1, so that the
shares can be compared with that of `free`. Needs root on Linux with memory groups of version 1. Prints one line a run:
status, peak of the group, how often the limit was met, what was said.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from common import commit, machine
from memory import events

START = "import sys; from leeward.cli.main import main; main(sys.argv[1:])"
FREE = """
import sys, leeward as lw
from leeward.runs.protect import method_of
cohort = lw.read(sys.argv[1], vocabulary="icd9", accept_unknown=True)
method = method_of({"name": "disassociation", "k": 5, "m": 2, "partitions": int(sys.argv[3])})
lw.protect(cohort, method, sys.argv[2], seed=1, allow_memory=True)
"""
GROUPS = Path("/sys/fs/cgroup/memory")
PARTITION = 250_000
SPARK = """source: {{path: {file}, vocabulary: icd9, accept_unknown: true}}
method: {{name: disassociation, k: 5, m: 2}}
engine: {{spark: {{master: "local[{workers}]", memory: {heap}}}}}
seed: 1
"""


def grouped(command: list[str], limit: float | None) -> tuple[int, float, int, float, str]:
    """Run a command in a group of its own: status, peak in GB, times at the limit, processor seconds, last words."""
    group = GROUPS / f"leeward-{os.getpid()}"
    group.mkdir()
    try:
        if limit is not None:
            (group / "memory.limit_in_bytes").write_text(str(int(limit * 1e9)))
        before = os.times()
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            preexec_fn=lambda: (group / "cgroup.procs").write_text(str(os.getpid())),
        )  # fmt: skip
        words = process.communicate()[1]
        after = os.times()
        peak = int((group / "memory.max_usage_in_bytes").read_text()) / 1e9
        hits = int((group / "memory.failcnt").read_text())
    finally:
        for _ in range(100):
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.1)
    cpu = sum(after[2:4]) - sum(before[2:4])
    said = [line for line in words.splitlines() if line.strip()]
    return process.returncode, peak, hits, cpu, said[-1][-240:] if said and process.returncode else ""


def digest(out: Path) -> str:
    """One digest of all files of the share."""
    whole = hashlib.sha256()
    for file in sorted((out / "share").rglob("*")):
        if file.is_file():
            whole.update(file.name.encode() + hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()[:16]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--patients", type=int, default=2_000_000)
    parser.add_argument("--limit", type=float, default=2.5, help="GB (10^9 bytes)")
    parser.add_argument("--engines", default="local,spark,parts,free")
    parser.add_argument("--workers", type=int, default=1, help="of Spark")
    parser.add_argument("--heap", default="512m", help="of Spark's Java")
    parser.add_argument("--store", type=Path, required=True)
    given = parser.parse_args()
    given.store.mkdir(parents=True, exist_ok=True)
    file = given.store / f"events-{given.patients}.parquet"
    if not file.is_file():
        frame = events(given.patients, 5)
        frame.select("patient", "code").write_parquet(file, row_group_size=1 << 20)
        del frame
    print(machine(), commit(), flush=True)
    parts = str(-(-given.patients // PARTITION))
    plain = [sys.executable, "-c", START, "disassociate", str(file), "--k", "5", "--m", "2", "--seed", "1",
             "--vocabulary", "icd9", "--accept-unknown"]  # fmt: skip
    for name in given.engines.split(","):
        out = given.store / f"OUT-{name}-{given.patients}"
        shutil.rmtree(out, ignore_errors=True)  # of an earlier run of this benchmark
        limit = None if name == "free" else given.limit
        if name == "spark":
            spec = given.store / "spark.yaml"
            spec.write_text(SPARK.format(file=file, workers=given.workers, heap=given.heap))
            command = [sys.executable, "-c", START, "protect", str(spec), "-o", str(out)]
        elif name == "free":
            command = [sys.executable, "-c", FREE, str(file), str(out), parts]
        else:
            command = [*plain, *(["--partitions", parts] if name == "parts" else []), "-o", str(out)]
        begun = time.monotonic()
        status, peak, hits, cpu, words = grouped(command, limit)
        found: dict[str, object] = {
            "run": name, "patients": given.patients, "limit GB": limit, "status": status, "peak GB": round(peak, 2),
            "at the limit": hits, "CPU s": round(cpu), "s": round(time.monotonic() - begun), "said": words,
        }  # fmt: skip
        if out.is_dir():
            checks = json.loads((out / "custody/verification.json").read_text())
            found |= {"verified": checks["passed"], "checks": len(checks["checks"]), "share": digest(out)}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
