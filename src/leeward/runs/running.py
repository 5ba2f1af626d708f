"""Running a spec: a release, or the next version of one."""

from __future__ import annotations

from pathlib import Path

from leeward.release.spec import Spec, load
from leeward.runs.progress import Tell
from leeward.runs.protect import Result, run_spec


def run(
    spec: Spec | str | Path,
    out: str | Path,
    *,
    threads: int | None = None,
    reason: str | None = None,
    register: str | Path | None = None,
    allow_memory: bool = False,
    tell: Tell | None = None,
) -> Result:
    r"""Run a spec: read its source, then `protect` it, or `refresh` what it names.

    Parameters
    ----------
    spec : Spec, str or Path
        A spec, or the YAML file of one.
    out : str or Path
        Folder to write; it must not exist.
    threads : int, optional
        Number of threads; all processors by default.
    reason, register : optional
        As in `protect`.
    allow_memory : bool, optional
        Run even if less memory is free than needed.
    tell : callable, optional
        Called with the name of each stage; by default a line on the terminal.

    Returns
    -------
    Result
        The release with its verification, measures and report.

    Raises
    ------
    BadInput
        The spec or its source cannot be used, or `out` exists.
    GuaranteeUnreachable
        The guarantee cannot be met on these data.
    VerificationFailed
        The verifier refuted the release. After any error, nothing is left at `out`.

    Examples
    --------
    >>> from pathlib import Path
    >>> import leeward as lw
    >>> rows = lw.synth.write_codes("events.csv", patients=300, codes=40, seed=1)
    >>> text = "source: {path: events.csv}\nmethod: {name: disassociation, k: 5, m: 2}"
    >>> written = Path("spec.yaml").write_text(text)
    >>> lw.run("spec.yaml", "release").verification.passed
    True
    """
    spec = spec if isinstance(spec, Spec) else load(spec)
    if spec.refresh is None:
        return run_spec(
            spec, out, threads=threads, reason=reason, register=register, allow_memory=allow_memory, tell=tell
        )
    from leeward.runs.refresh import run_refresh

    return run_refresh(spec, spec.refresh, out, threads=threads, reason=reason, register=register, tell=tell)
