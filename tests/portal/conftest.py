"""One release and one portal for the tests of this folder; a test that spoils a portal makes its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.portal.made import Bench, make_bench, make_release


@pytest.fixture(scope="session", name="release_folder")
def one_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release") / "cohort"
    make_release(folder)
    return folder


@pytest.fixture(scope="module", name="bench")
def shared_bench(
    tmp_path_factory: pytest.TempPathFactory, release_folder: Path, state_of_the_module: None
) -> Bench:
    """A portal that the tests of a module share; each asks questions of its own."""
    return make_bench(
        tmp_path_factory.mktemp("portal") / "portal", release=release_folder, allotted=95, cap=100
    )


@pytest.fixture(scope="module", name="apart")
def bench_of_projects_that_pay_separately(
    tmp_path_factory: pytest.TempPathFactory, state_of_the_module: None
) -> Bench:
    """A portal whose index charges projects separately, with two that have an allotment."""
    found = make_bench(tmp_path_factory.mktemp("apart") / "portal", separately=True)
    found.allot("two", 4)
    return found


@pytest.fixture(name="fresh")
def own_bench(tmp_path: Path) -> Bench:
    """A portal of a test's own, without a release."""
    return make_bench(tmp_path / "portal")
