"""Runs whose rows stay with workers, who see the folders of the source and of the release.

The process that starts such a run sends work, and gets counts, the vocabulary of the codes and figures. Everything else
lies in a folder beside the release, so that a run goes on where one before it was killed.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from leeward.cohort.readers.copies import copies
from leeward.cohort.readers.files import find_files
from leeward.engine import LocalEngine, once, running
from leeward.engine.local import UNSEEN
from leeward.errors import BadInput
from leeward.randomness import Randomness
from leeward.release.aside import LOCK, rename, work_beside
from leeward.release.folder import disk_errors, flush_folder, parents
from leeward.release.spec import Spec, to_yaml
from leeward.runs.progress import Tell
from leeward.runs.stored import Stored, goes_by_parts, sources_of, store_parts
from leeward.verify import Verification
from leeward.version import __version__

Release = Callable[[Stored | None, Path, LocalEngine, Randomness], tuple[Verification, Mapping[str, Any]]]
"""Writes a release from what is on the disk, or else from the source in memory; gives its verification and figures."""


def release_there(
    spec: Spec, method: Any, out: Path, threads: int | None, say: Tell, release: Release
) -> tuple[Verification, Mapping[str, Any]]:
    """Write, verify and measure a release in workers. Where it goes by parts, one stores the source, tasks of the
    engine prepare the parts, and one does the rest; otherwise one does all."""
    randomness = Randomness.of(spec.seed)
    with (
        running(spec.engine, threads, shared=True) as engine,
        disk_errors(out, "release"),
        parents(out),
        work_beside(out, _digest(spec)) as work,
    ):
        stored = engine.there(partial(_store, spec, method, work))
        say(f"Protecting in workers ({method.name})")
        if stored is not None:
            method.prepare(stored[0], engine, randomness)
        say("Writing the release aside, verifying and measuring it in a worker")
        worker = LocalEngine(1, engine.name)
        written = partial(_write, release, stored, work, out.name, worker, randomness)
        place, verification, figures = engine.there(written)
        rename(place, out)
        flush_folder(out.parent)
    return verification, figures


def _store(spec: Spec, method: Any, work: Path) -> Stored | None:
    """The source in files below `work`, with all that the starting process asks of it; None where the run does not go
    by parts. BadInput where this worker does not see `work`."""
    if not (work / LOCK).is_file():
        raise BadInput(f"{work.parent}: {UNSEEN}")

    def store() -> Stored | None:
        if not goes_by_parts(spec, method):
            return None
        stored = store_parts(spec, method, Path(tempfile.mkdtemp(prefix="source-", dir=work)))
        if stored is not None:
            stored[0].supports()
            stored[0].count_events()
        return stored

    with copies():
        return once(work / "source", store)


def _write(
    release: Release,
    stored: Stored | None,
    work: Path,
    name: str,
    engine: LocalEngine,
    randomness: Randomness,
) -> tuple[Path, Verification, Mapping[str, Any]]:
    """Write a release below `work`, in a folder of its own: a task may run twice at once."""
    place = Path(tempfile.mkdtemp(prefix="release-", dir=work)) / name
    with copies():
        return place, *release(stored, place, engine, randomness)


def _digest(spec: Spec) -> str | None:
    """Of what a run does: the version, the spec and its files as they are now; None where these are not seen here."""
    stats = []
    for source in sources_of(spec):
        if source.path is None or "://" in str(source.path):
            return None
        try:
            files = find_files(source.path)
        except BadInput:  # a worker says what is wrong with it
            return None
        stats += [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return hashlib.sha256(repr((__version__, to_yaml(spec), stats)).encode()).hexdigest()
