"""Make a release: `python scripts/release.py X.Y.Z`, in the environment of `make install`, from a clean tree.

Moves [Unreleased] of CHANGELOG.md under the version and commits that, builds the source distribution and the pure
wheel twice from two clones and compares them, builds the wheel with compiled kernels for this platform, collects all
that the extras need (but Spark, which is published as source only) with the hashes of the lock file, installs it with
the network off, runs `leeward demo` there, and writes the SBOM and SHA256SUMS. All is in dist/X.Y.Z. Tag and upload
are for people.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UNRELEASED = "## [Unreleased]\n"
OFFLINE = ["unshare", "--map-root-user", "--net"]
SOURCE_ONLY = ("pyspark", "py4j")


def run(*command: str | Path, at: Path = ROOT) -> str:
    """The output of a command; ends the release where it fails."""
    done = subprocess.run(command, cwd=at, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}")
    return done.stdout.strip()


def move_unreleased(changelog: str, version: str, day: str) -> str:
    """The changelog with what is unreleased under the version; ValueError where there is nothing, or the version is."""
    if f"## [{version}]" in changelog:
        raise ValueError(f"CHANGELOG.md has a section {version} already.")
    before, head, rest = changelog.partition(UNRELEASED)
    if not head or not re.match(r"\s*(?!## )\S", rest):
        raise ValueError("CHANGELOG.md has nothing under [Unreleased].")
    return f"{before}{head}\n## [{version}] - {day}\n{rest}"


def leave_out(lock: str, names: tuple[str, ...]) -> str:
    """A lock file without some distributions, and without their hashes."""
    parts = re.split(r"^(?=[a-z0-9])", lock, flags=re.MULTILINE | re.IGNORECASE)
    return "".join(part for part in parts if part.partition("==")[0].partition("[")[0] not in names)


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def prepare(version: str) -> None:
    """The commit that is released: of this version, with its section in the changelog."""
    if run("git", "status", "--porcelain"):
        sys.exit("The tree has changes that are not committed.")
    changelog, module = ROOT / "CHANGELOG.md", ROOT / "src" / "leeward" / "version.py"
    text = changelog.read_text(encoding="utf-8")
    if re.search(rf"^## \[{re.escape(version)}\] - ", text, re.MULTILINE):
        if f'__version__ = "{version}"' not in module.read_text(encoding="utf-8"):
            sys.exit(f"version.py does not say {version}.")
        return
    changelog.write_text(move_unreleased(text, version, datetime.date.today().isoformat()), encoding="utf-8")
    for file, line in (
        (module, r'(?<=^__version__ = ").*(?="$)'),
        (ROOT / "CITATION.cff", r"(?<=^version: ).*$"),
    ):
        changed = re.sub(line, version, file.read_text(encoding="utf-8"), flags=re.MULTILINE)
        file.write_text(changed, encoding="utf-8")
    run("git", "commit", "--quiet", "--all", "--message", f"Version {version}")


def build_pure(clone: Path, into: Path) -> dict[str, str]:
    """The source distribution and the wheel of a fresh clone, with their digests."""
    run("git", "clone", "--quiet", ROOT, clone)
    run(sys.executable, "-m", "hatchling", "build", "--directory", into, at=clone)
    return {file.name: digest(file) for file in sorted(into.iterdir())}


def build_compiled(clone: Path, into: Path) -> Path:
    """The wheel for this platform and Python, with compiled kernels in it; installed before the pure one."""
    os.environ["PYTHONPATH"] = str(clone / "src")
    run(sys.executable, "scripts/build_kernels.py", at=clone)
    del os.environ["PYTHONPATH"]
    known = set(into.iterdir())
    run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", into, at=clone)
    (wheel,) = set(into.iterdir()) - known
    return wheel


def bundle(folder: Path, wheel: Path) -> None:
    """All that an installation without a network needs, for this platform and Python."""
    folder.mkdir()
    lock = (ROOT / "requirements" / "all.txt").read_text(encoding="utf-8")
    (folder / "requirements.txt").write_text(leave_out(lock, SOURCE_ONLY), encoding="utf-8")
    run(
        sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "--only-binary", ":all:",
        "--dest", folder, "--requirement", folder / "requirements.txt",
    )  # fmt: skip
    shutil.copy(wheel, folder)


def install_offline(folder: Path, venv: Path) -> None:
    """The bundle installed, and `leeward demo` run, where there is no network."""
    run(sys.executable, "-m", "venv", venv)
    pip = (*OFFLINE, venv / "bin" / "pip", "install", "--quiet", "--no-index", "--find-links", folder)
    run(*pip, "--require-hashes", "--requirement", folder / "requirements.txt")
    run(*pip, "--no-deps", *folder.glob("leeward-*.whl"))
    print(run(*OFFLINE, venv / "bin" / "leeward", "demo", "--out", venv / "demo", at=venv))


def main(version: str) -> None:
    prepare(version)
    target = ROOT / "dist" / version
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as made:
        one, other = Path(made, "one"), Path(made, "other")
        first, second = build_pure(one, target), build_pure(other, Path(made, "again"))
        if first != second:
            sys.exit(f"Two builds differ: {first} and {second}.")
        bundle(target / "bundle", build_compiled(one, target))
        install_offline(target / "bundle", Path(made, "venv"))
        sbom = target / f"leeward-{version}.cdx.json"
        run(sys.executable, "-m", "cyclonedx_py", "environment", "--output-file", sbom, Path(made, "venv"))
    files = sorted(each for each in target.rglob("*") if each.is_file())
    sums = "".join(f"{digest(each)}  {each.relative_to(target)}\n" for each in files)
    (target / "SHA256SUMS").write_text(sums, encoding="utf-8")
    print(f"{target}: look at it, then `git tag {version}`, push, and upload.")


if __name__ == "__main__":
    if len(sys.argv) != 2 or not re.fullmatch(r"\d+\.\d+\.\d+", sys.argv[1]):
        sys.exit(__doc__)
    main(sys.argv[1])
