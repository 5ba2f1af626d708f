"""A Debian system of a test's own, with systemd as its first process: systemd-nspawn on a copy of a root folder.

What it changes is in memory and goes away with it; its network is its own and leads nowhere, but a command may use this
machine's. It needs root, systemd-nspawn, and a kernel with overlayfs; what is missing is said.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.waiting import LONG, wait_until

BOOT = """
mount -t tmpfs tmpfs "$HERE"
mkdir "$HERE/changed" "$HERE/work" "$HERE/root"
mount -t overlay overlay -o "lowerdir=$LOWER,upperdir=$HERE/changed,workdir=$HERE/work" "$HERE/root"
rm -f "$HERE/root/usr/sbin/policy-rc.d"  # services start when they are installed, as on a server
exec systemd-nspawn --quiet --directory="$HERE/root" --boot --private-network --register=no --keep-unit \
    --link-journal=no --console=pipe --settings=no --resolv-conf=copy-host --timezone=off \
    $SHOWN -- systemd.unit=basic.target
"""


@dataclass
class Container:
    first: int
    """Its first process, as this machine counts."""

    def run(self, script: str, *, outside: bool = False, **variables: str) -> str:
        """What a script of the shell prints there, as root; `outside`: with this machine's network. AssertionError with
        that where it fails."""
        spaces = ["--mount", "--uts", "--ipc", "--pid", *([] if outside else ["--net"])]
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        given = {"PATH": path, "HOME": "/root", "LANG": "C.UTF-8", **variables}
        done = subprocess.run(
            ["nsenter", f"--target={self.first}", *spaces, "bash", "-euo", "pipefail", "-c", script],
            env=given, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=10 * LONG, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{script}\nended with {done.returncode} and said:\n{done.stdout}"
        return done.stdout


def check_that_it_can_run() -> None:
    missing = [] if os.geteuid() == 0 else ["root"]
    if shutil.which("systemd-nspawn") is None:
        missing.append("systemd-nspawn (Debian: apt-get install systemd-container)")
    if "\toverlay\n" not in Path("/proc/filesystems").read_text(encoding="ascii"):
        missing.append("overlayfs (modprobe overlay)")
    if missing:
        pytest.fail(f"no system of the test's own can be started, as this is missing: {', '.join(missing)}")


@contextmanager
def running_container(shown: Mapping[str, Path], lower: Path = Path("/")) -> Iterator[Container]:
    """A container on a copy of the root folder `lower`; at the places of `shown` it reads folders of this machine."""
    check_that_it_can_run()
    here = tempfile.mkdtemp(prefix="leeward-system-")
    binds = " ".join(f"--bind-ro={folder}:{place}" for place, folder in shown.items())
    with tempfile.TemporaryFile() as said:
        outer = subprocess.Popen(
            ["unshare", "--mount", "bash", "-euc", BOOT],
            env={**os.environ, "HERE": here, "LOWER": str(lower), "SHOWN": binds},
            stdin=subprocess.DEVNULL, stdout=said, stderr=said,
        )  # fmt: skip
        found: list[Container] = []

        def started() -> bool:
            if outer.poll() is not None:
                said.seek(0)
                pytest.fail(f"no system of the test's own can be started: {said.read().decode()}")
            children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text(encoding="ascii")
            for each in map(int, children.split()):
                with suppress(OSError, AssertionError):  # not yet
                    if Path(f"/proc/{each}/comm").read_text(encoding="ascii") == "systemd\n":
                        Container(each).run("systemctl is-active basic.target")
                        found.append(Container(each))
            return bool(found)

        try:
            wait_until(started, "a system of the test's own starts")
            yield found[0]
        finally:
            # With a container's first process its others end, and systemd-nspawn, which waits for it.
            for each in found:
                os.kill(each.first, signal.SIGKILL)
            if not found:
                outer.kill()
            outer.wait(LONG)
            Path(here).rmdir()
