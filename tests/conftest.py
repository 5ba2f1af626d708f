"""What holds for every test: Hypothesis profiles, caches, no use of global random generators."""

from __future__ import annotations

import itertools
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TREE = Path(__file__).resolve().parent.parent

# Before anything imports numba, matplotlib or pyspark. Spark's workers must be this very Python.
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path.home() / ".cache"))  # for tests with another home, too
os.environ.setdefault("MPLCONFIGDIR", str(TREE / ".cache" / "matplotlib"))
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

import numpy as np
import pytest
import rich.style  # noqa: F401  # draws from Python's global generator when it is loaded: before the first test
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

# `ci` gives the same examples on every run, so that a red build is a change's doing; `thorough`
# looks for new ones.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough",
    deadline=None,
    max_examples=2000,
    database=DirectoryBasedExampleDatabase(str(TREE / ".cache" / "hypothesis")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
"""Of a Java with no time to win back what a good compiler and collector cost at the start."""


def pytest_configure() -> None:
    """Every Java that a test starts, itself or by Spark, is short-lived."""
    os.environ.setdefault("JAVA_TOOL_OPTIONS", SHORT_LIVED)


@pytest.fixture(scope="module", autouse=True)
def state_of_the_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a module's own fixtures let Leeward remember is not the account's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEEWARD_STATE", str(tmp_path_factory.mktemp("module-state")))
        patch.setenv("LEEWARD_HOUSE", "")  # no register of this computer's counts what tests release
        yield


NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def states(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("states")


@pytest.fixture(autouse=True)
def state_of_its_own(monkeypatch: pytest.MonkeyPatch, states: Path) -> None:
    """What Leeward remembers of ledgers and data sets on this computer is each test's own.

    The folder is made by whoever needs it: `mktemp` looks through all folders of thousands of tests for its number.
    """
    monkeypatch.setenv("LEEWARD_STATE", str(states / str(next(NUMBERS))))


@pytest.fixture(autouse=True)
def global_generators_untouched() -> Iterator[None]:
    """Fail a test during which Python's or NumPy's global generator moved: draw from leeward.randomness.

    Hypothesis puts both generators back after each example, so in a property the guard sees nothing;
    there ruff (NPY002) and the tests of reproducibility stand in for it.
    """
    before = global_generators()
    yield
    after = global_generators()
    moved = [name for name, state in before.items() if after[name] != state]
    if moved:
        pytest.fail(
            f"the global generator of {' and of '.join(moved)} was used: draw from a generator of your own"
        )


def global_generators() -> dict[str, object]:
    """The states of Python's and NumPy's global generators, to be compared."""
    state = np.random.get_state(legacy=False)  # noqa: NPY002  (looking, not drawing)
    assert isinstance(state, dict)
    inner = state["state"]
    numpy_state = (inner["key"].tobytes(), int(inner["pos"]), int(state["has_gauss"]), float(state["gauss"]))
    return {"random": random.getstate(), "numpy.random": numpy_state}


REFUTED: set[str] = set()
"""Names of the verifiers' checks that failed in some test of this session."""


@pytest.fixture(autouse=True, scope="session")
def failed_checks_are_noted() -> Iterator[None]:
    """Every check that fails is noted in `REFUTED`, for the law that each one has a break."""
    from leeward.verify.checks import Check

    made = Check.__init__

    def noting(self: Check, *values: object, **named: object) -> None:
        made(self, *values, **named)  # type: ignore[arg-type]  # whatever a check is made of
        if not self.passed:
            REFUTED.add(self.name)

    Check.__init__ = noting  # type: ignore[method-assign]
    yield
    Check.__init__ = made  # type: ignore[method-assign]


BREAKS = "test_every_check_was_refuted"
ASKED: set[str] = set()
"""Verifiers of which a session in several processes runs all tests."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The law on breaks comes last, for the verifiers of which this session runs all tests; the others are left out.

    Where the tests are shared out to processes, each of these sees a part only: the law is then asked once, at the end
    of the session, of what all of them saw.
    """
    from tests.laws.test_completeness import files_with_breaks

    chosen = bool(
        config.option.keyword or config.option.markexpr or any("::" in each for each in config.args)
    )
    running = {Path(item.path) for item in items}
    last = [item for item in items if getattr(item, "originalname", "") == BREAKS]
    items[:] = [item for item in items if item not in last]
    asked = [
        item
        for item in last
        if not chosen and files_with_breaks(item.callspec.params["verifier"]) <= running  # type: ignore[attr-defined]
    ]
    if hasattr(config, "workerinput"):
        ASKED.update(item.callspec.params["verifier"] for item in asked)  # type: ignore[attr-defined]
    else:
        items += asked


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """What a process has seen."""
    REFUTED.update(node.workeroutput.get("refuted", ()))
    ASKED.update(node.workeroutput.get("asked", ()))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process tells what it saw; the session of all processes fails where a check was never refuted."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput |= {"refuted": sorted(REFUTED), "asked": sorted(ASKED)}
        return
    from tests.laws.test_completeness import check_names

    for verifier in sorted(ASKED):
        missing = check_names(TREE / "src/leeward/verify" / verifier) - REFUTED
        if missing:
            sys.stderr.write(f"\nFAILED {BREAKS}[{verifier}]: no test refutes {', '.join(sorted(missing))}\n")
            session.exitstatus = 1
