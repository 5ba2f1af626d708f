"""What the process that starts a run holds of patients, for `test_cluster`: `python -m tests.engine.shared_on_cluster
FOLDER PREFIX`. In FOLDER are two specs and their source, whose identifiers begin with PREFIX."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import leeward as lw

BLOCK = 1 << 24


def count_identifiers(process: int, prefix: str) -> int:
    """How many identifiers are in the memory of a process, as bytes or as Java's wide texts."""
    plain = re.compile(re.escape(prefix.encode()) + rb"\d{6}")
    wide = re.compile(re.escape(prefix.encode("utf-16-le")) + rb"(?:\d\0){6}")
    found = 0
    areas = Path(f"/proc/{process}/maps").read_text().splitlines()
    with Path(f"/proc/{process}/mem").open("rb", 0) as memory:
        for area in areas:
            bounds, rights = area.split()[:2]
            if not rights.startswith("rw"):
                continue
            low, high = (int(each, 16) for each in bounds.split("-"))
            for at in range(low, high, BLOCK):
                try:
                    memory.seek(at)
                    data = memory.read(min(BLOCK, high - at))
                except (OSError, ValueError):
                    break
                found += len(plain.findall(data)) + len(wide.findall(data))
    return found


def main(folder: Path, prefix: str) -> None:
    lw.run(folder / "cluster.yaml", folder / "cluster")
    session = SparkSession.active()
    java = session.sparkContext._gateway.proc.pid
    told = {"python": count_identifiers(os.getpid(), prefix), "java": count_identifiers(java, prefix)}
    lw.run(folder / "local.yaml", folder / "local")
    told["python, of a local run"] = count_identifiers(os.getpid(), prefix)
    (folder / "told.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
