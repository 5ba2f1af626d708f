"""Build hook of the wheel: with compiled kernels inside, it is for this platform and this Python.

Without `src/leeward/_compiled/` (the usual checkout) the wheel stays pure and kernels are compiled at first use.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):
    """Tags the wheel and takes the compiled kernels along."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        compiled = Path(self.root) / "src" / "leeward" / "_compiled"
        if version == "editable" or not any(compiled.rglob("*.nbc")):
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        for file in compiled.rglob("*.nb?"):
            inside = file.relative_to(compiled.parent.parent).as_posix()
            build_data["force_include"][str(file)] = inside
