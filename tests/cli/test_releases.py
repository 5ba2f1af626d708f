"""`leeward releases`, and what `protect` and a method's command say of the register."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Run


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


REGISTER = ("--register", "register.db")


def test_a_line_says_that_nobody_counts(leeward: Run, spec: Path) -> None:
    shown = leeward("protect", spec, "-o", "one")
    assert shown.status == 0
    (line,) = (each for each in shown.err.splitlines() if "register" in each)
    assert line.startswith("leeward: no register counts what this release and earlier ones")


def test_the_way_of_a_release_through_the_register(leeward: Run, spec: Path) -> None:
    assert (
        "compared with 0 earlier releases."
        in leeward("protect", spec, "-o", "one", *REGISTER, "--recipient", "uni").err
    )
    shown = leeward("releases", "list", *REGISTER)
    assert "released   counting, for uni  60 patients, k = 5" in shown.out
    name = leeward("releases", "list", *REGISTER, "--json").json()["releases"][0]["id"]
    other = spec.with_name("other.yaml")
    other.write_text(spec.read_text().replace("k: 5", "k: 6"))

    shown = leeward("releases", "overlap", other, *REGISTER)
    assert f"{name}  counting, for uni: 60 patients in both, 0 only here, 0 only there" in shown.out
    assert "needs a reason (other)" in shown.out
    refused = leeward("protect", other, "-o", "two", *REGISTER)
    assert refused.status == 2 and "--reason" in refused.err and not Path("two").exists()
    told = leeward("protect", other, "-o", "two", *REGISTER, "--reason", "The board agreed.")
    assert told.status == 0 and "compared with 1 earlier release." in told.err

    shown = leeward("releases", "show", name[:6], *REGISTER)
    assert "recipient   uni" in shown.out and "status      released" in shown.out
    second = leeward("releases", "list", *REGISTER, "--json").json()["releases"][1]["id"]
    shown = leeward("releases", "show", second, *REGISTER)
    assert "reason      The board agreed." in shown.out and f"beside {name}: other" in shown.out
    assert leeward("releases", "overlap", second, *REGISTER, "--measure").status == 0

    assert leeward("releases", "withdraw", second, *REGISTER).status == 2  # a reason is needed
    assert leeward("releases", "withdraw", second, "--reason", "Not sent.", *REGISTER).status == 0
    assert "no other release" in leeward("releases", "overlap", name, *REGISTER).out
    shown = leeward("releases", "audit", *REGISTER)
    assert shown.status == 0 and "passed  entries" in shown.out
    assert leeward("releases", "audit", "--expect", "0" * 64, *REGISTER).status == 4


def test_an_older_register_stops_until_it_is_repaired(leeward: Run, spec: Path) -> None:
    leeward("protect", spec, "-o", "one", *REGISTER)
    for file in Path().glob("register.db*"):
        file.unlink()
    stopped = leeward("protect", spec, "-o", "two", *REGISTER)
    assert stopped.status == 2 and "leeward releases repair" in stopped.err and not Path("two").exists()
    shown = leeward("releases", "repair", "one", *REGISTER)
    assert shown.status == 0 and "entered again from its folder" in shown.out
    assert leeward("protect", spec, "-o", "two", *REGISTER).status == 0


def test_without_a_register_there_is_nothing_to_list(leeward: Run) -> None:
    shown = leeward("releases", "list")
    assert shown.status == 2 and "house file" in shown.err
    shown = leeward("releases", "list", *REGISTER)
    assert shown.status == 2 and "no register of releases here" in shown.err
    assert not Path("register.db").exists()


def test_flags_of_a_method_are_keys_of_its_spec(leeward: Run, events: Path) -> None:
    shown = leeward(
        "spec", "init", "disassociate", events, "--patient", "pid", "--code", "icd", "--k", 5, "--m", 2,
        "--recipient", "uni", "--purpose", "a study",
    )  # fmt: skip
    assert "release:\n  recipient: uni\n  purpose: a study\n" in shown.out


def test_a_method_s_command_enters_its_release(leeward: Run, events: Path) -> None:
    shown = leeward(
        "disassociate", events, "--patient", "pid", "--code", "icd", "--k", 5, "--m", 2, "-o", "one", *REGISTER,
        "--purpose", "a study",
    )  # fmt: skip
    assert shown.status == 0, shown.err
    (row,) = leeward("releases", "list", *REGISTER, "--json").json()["releases"]
    assert row["method"] == "disassociation"
