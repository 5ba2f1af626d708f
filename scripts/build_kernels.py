"""Compile the kernels into the package, for a wheel: `python scripts/build_kernels.py`.

Fills src/leeward/_compiled/<level>/ with machine code for the processor level named in `leeward.compiled`, by
running `leeward warm`. Run it in an environment with the locked Numba, from a clean tree; then build the wheel, which
takes the folder along and is tagged for this platform and Python (see docs/decisions/0014-compiled-kernels.md).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEVEL = "x86-64-v2"
FEATURES = "+64bit,+cmov,+cx16,+cx8,+fxsr,+mmx,+popcnt,+sahf,+sse,+sse2,+sse3,+sse4.1,+sse4.2,+ssse3"


def main() -> int:
    """Returns the exit status of the build."""
    target = ROOT / "src" / "leeward" / "_compiled"
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as cache:
        environment = {
            **os.environ,
            "LEEWARD_BUILD_KERNELS": "1",
            "LEEWARD_LEVEL": LEVEL,
            "NUMBA_CPU_NAME": "x86-64-v2",
            "NUMBA_CPU_FEATURES": FEATURES,
            "NUMBA_CACHE_DIR": cache,
        }
        command = [sys.executable, "-c", "from leeward.cli import main; main()", "warm"]
        status = subprocess.run(command, env=environment, check=False).returncode
    files = list(target.rglob("*.nb?"))
    size = sum(file.stat().st_size for file in files) / 1e6
    sys.stdout.write(f"{len(files)} files, {size:.1f} MB\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
