"""A run compiles a kernel for one choice of arguments' types, but for those that take several widths on purpose."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

GENERIC = {"leeward.analysis.kernels.grown": 2}
"""How many choices, where arrays of several widths are given."""

RUN = """
import gc, json, sys
from leeward.cli.main import status_of
for line in sys.stdin.read().splitlines():
    assert status_of(line.split()) == 0, line
from numba.core.dispatcher import Dispatcher
kernels = [each for each in gc.get_objects() if isinstance(each, Dispatcher)]
print(json.dumps({
    f"{each.py_func.__module__}.{each.py_func.__qualname__}": [str(given) for given in each.overloads]
    for each in kernels if each.py_func.__module__.startswith("leeward.")
}))
"""

LINES = """synth codes --patients 400 --codes 120 --mean 5 --seed 1 -o codes.csv
disassociate codes.csv --vocabulary icd9 --k 5 --m 2 --policy hierarchy:1 -o release
verify release"""


def test_a_kernel_is_compiled_for_one_choice_of_types(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN], input=LINES, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=True
    )  # fmt: skip
    compiled = json.loads(done.stdout.splitlines()[-1])
    assert sum(map(bool, compiled.values())) > 20
    assert {name: given for name, given in compiled.items() if len(given) > GENERIC.get(name, 1)} == {}
