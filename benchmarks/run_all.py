"""Every benchmark and study, one after the other; stops at the first that fails.

make benchmarks BENCHMARK_ARGS="--data DIR"
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
WITHOUT_DATA = (
    "disassociation.py",
    "classes.py",
    "constraints.py",
    "censoring.py",
    "trajectories.py",
    "condensation.py",
    "queries.py",
    "charged_queries.py",
)
WITH_DATA = (
    "check_vocabulary.py",
    "disassociation_quality.py",
    "study_disassociation.py",
    "study_censoring.py",
    "visits.py",
    "study_visits.py",
    "study_advice.py",
    "study_whole_patient.py",
    "study_condensation.py",
    "study_trajectories.py",
    "notes.py",
    "study_notes.py",
    "study_queries.py",
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, help="folder with the public data sets; without it their part is left out"
    )
    data = parser.parse_args().data
    runs = [[script] for script in WITHOUT_DATA]
    if data is not None:
        runs += [[script, "--data", str(data)] for script in WITH_DATA]
    for script, *arguments in runs:
        print(f"== {script}", flush=True)
        subprocess.run([sys.executable, str(HERE / script), *arguments], check=True)


if __name__ == "__main__":
    main()
