"""Releases and the register, from the library: what enters, what is kept, what stops."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.cli import fake
from tests.runs.made_lines import visits

import leeward as lw
from leeward.cohort.readers import stored
from leeward.errors import BadInput, GuaranteeUnreachable, LeewardError, VerificationFailed
from leeward.register import sketch
from leeward.release.folder import Draft
from leeward.release.spec import SourceSpec, Spec
from leeward.runs.specs import read_source

METHOD = lw.Disassociation(k=5, m=2)
COUNTED = fake.Counting(k=5)


def cohort(first: int = 0, patients: int = 40, **more: object) -> lw.Cohort:
    """Patients with identifiers that must be found in no file but the source."""
    people = [f"canary-{each:04d}" for each in range(first, first + patients)]
    return lw.read(
        pl.DataFrame({"patient": people * 2, "code": ["401.9"] * patients + ["250.00"] * patients})
    )


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    fake.install(monkeypatch)
    return tmp_path


def listed() -> list[dict[str, object]]:
    return lw.releases.list(register="register.db").to_dicts()


def protect(out: str, first: int = 0, patients: int = 40, **more: object) -> lw.Result:
    return lw.protect(cohort(first, patients), COUNTED, out, register="register.db", **more)


def test_a_release_is_entered_and_its_custody_keeps_the_entry() -> None:
    result = protect("one", handover={"recipient": "uni", "line": "quarters", "purpose": "a study"})
    (row,) = listed()
    assert (row["status"], row["recipient"], row["line"], row["patients"]) == (
        "released",
        "uni",
        "quarters",
        40,
    )
    entry = json.loads(Path("one/custody/register.json").read_text())
    assert entry["facts"]["id"] == row["id"]
    content = Path("one/custody/register.sketch").read_bytes()
    assert sketch.digest_of(content) == entry["facts"]["sketch"] and len(content) == 8 * 40
    assert "release:\n  recipient: uni" in Path("one/custody/spec.yaml").read_text()
    assert "Together with earlier releases" in result.report.read_text()
    known = lw.releases.show(str(row["id"]), register="register.db")
    assert known["folder"] == str(Path("one").absolute()) and known["purpose"] == "a study"
    assert lw.verify("one").passed


def test_rows_that_stay_with_workers_are_refused_where_a_register_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("events.csv").write_text("patient,code\ncanary-1,401.9\n")
    spec = Spec(
        source=SourceSpec(path="events.csv"),
        method={"name": "counting", "k": 5},
        engine={"spark": {"shared": True}},
    )
    with pytest.raises(BadInput, match="rows stay with the workers"):
        lw.run(spec, "one", register="register.db")
    Path("house.yaml").write_text("register: {url: register.db}")
    monkeypatch.setenv("LEEWARD_HOUSE", "house.yaml")
    with pytest.raises(BadInput, match="Leave `shared` out of the engine"):
        lw.run(spec, "one")
    assert {each.name for each in Path().iterdir()} == {"events.csv", "house.yaml"}


def test_what_it_is_beside_is_in_the_report_and_in_no_share() -> None:
    protect("one", handover={"recipient": "university"})
    result = protect("two", 20, reason="The committee agreed.", handover={"recipient": "a firm"})
    first, second = (str(row["id"]) for row in listed())
    report = result.report.read_text()
    assert first in report and "university" in report and "The committee agreed." in report
    for file in Path("two/share").rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            assert not any(
                word.encode() in content for word in (first, second, "university", "a firm", "register")
            )


def test_without_a_register_the_report_says_that_nobody_counts() -> None:
    result = lw.protect(cohort(), COUNTED, "one")
    assert "Not counted" in result.report.read_text()
    assert not Path("one/custody/register.json").exists()
    with pytest.raises(BadInput, match="kept by a register"):
        lw.protect(cohort(), COUNTED, "two", reason="agreed")


def test_no_identifier_is_in_any_file_but_the_source(place: Path) -> None:
    protect("one")
    protect("two", 20, reason="agreed")
    with pytest.raises(BadInput):
        protect("three", 10)
    lw.dossier("two", "dossier")
    files = [each for each in place.rglob("*") if each.is_file()]
    assert {"register.db", "dossier.html", "report.html", "register.sketch"} <= {each.name for each in files}
    for file in files:
        assert b"canary" not in file.read_bytes(), file


def test_the_dossier_has_the_table_and_its_recipient_has_none() -> None:
    protect("one")
    protect("two", 20, reason="agreed")
    first = str(listed()[0]["id"])
    lw.dossier("two", "expert")
    text = Path("expert/dossier.json").read_text()
    assert f"Beside release {first}: common patients" in text and "agreed" in text
    lw.dossier("two", "recipient", audience="recipient")
    assert first not in Path("recipient/dossier.json").read_text()


def test_the_same_release_again_is_free_where_the_method_draws_nothing() -> None:
    for out in ("one", "two"):
        lw.protect(cohort(), METHOD, out, register="register.db")
    (compared,) = lw.releases.show(str(listed()[1]["id"]), register="register.db")["compared"]
    assert (compared["rule"], compared["outcome"], compared["common"]) == ("same", "allow", 40)


def test_the_same_parameters_with_another_content_need_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    people = [f"P{each}" for each in range(40)]

    def read(second: str) -> lw.Cohort:
        codes = ["401.9"] * 40 + [second] * 40
        return lw.read(pl.DataFrame({"patient": people * 2, "code": codes}))

    lw.protect(read("250.00"), METHOD, "one", register="register.db")
    with pytest.raises(BadInput, match="--reason"):
        lw.protect(read("272.4"), METHOD, "two", register="register.db")
    assert not Path("two").exists()
    assert [row["status"] for row in listed()] == ["released", "withdrawn"]
    lw.protect(read("272.4"), METHOD, "three", register="register.db", reason="agreed")
    (compared,) = lw.releases.show(str(listed()[2]["id"]), register="register.db")["compared"]
    assert compared["rule"] == "other"


def test_a_difference_of_few_patients_is_refused_whatever_the_reason() -> None:
    protect("one")
    with pytest.raises(GuaranteeUnreachable, match="Fewer than k patients") as refused:
        protect("two", 0, 41, reason="agreed")
    assert "canary" not in str(refused.value)
    assert not Path("two").exists()
    assert len(listed()) == 1


@pytest.mark.parametrize(
    ("method", "error"),
    [(fake.Counting(k=50), GuaranteeUnreachable), (fake.Counting(k=5, broken=True), VerificationFailed)],
)
def test_a_run_that_fails_counts_no_longer(method: fake.Counting, error: type[LeewardError]) -> None:
    people = [f"P{each}" for each in range(40)]
    rows = pl.DataFrame({"patient": [*people, "P1"], "code": ["401.9"] * 40 + ["250.00"]})
    with pytest.raises(error):
        lw.protect(lw.read(rows), method, "one", register="register.db")
    (row,) = listed()
    assert row["status"] == "withdrawn"
    assert error.__name__ in lw.releases.show(str(row["id"]), register="register.db")["why"]
    assert lw.protect(lw.read(rows), COUNTED, "two", register="register.db").verification.passed


def test_an_error_after_the_release_has_its_place_leaves_it_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    from leeward.release import folder

    true = folder.finish

    def interrupted(*given: Any) -> None:
        true(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(folder, "finish", interrupted)
    with pytest.raises(KeyboardInterrupt):
        protect("one")
    assert Path("one/share/release.json").is_file()
    assert [row["status"] for row in listed()] == ["intended"]


def test_a_run_that_cannot_say_that_it_is_published_tells_how(monkeypatch: pytest.MonkeyPatch) -> None:
    from leeward.register import entering

    def unreachable(*given: object, **more: object) -> None:
        raise BadInput("the database is gone.")

    with monkeypatch.context() as patched:
        patched.setattr(entering, "publish", unreachable)
        with pytest.raises(BadInput, match="leeward releases repair one"):
            protect("one")
    assert [row["status"] for row in listed()] == ["intended"]
    assert lw.releases.repair(["one"], register="register.db")["published"] == [listed()[0]["id"]]
    assert [row["status"] for row in listed()] == ["released"]


# -- measured ----


def from_file(rows: pl.DataFrame, method: Any, out: str, reason: str | None = None) -> lw.Result:
    """Release the rows of a file that can be read again."""
    rows.write_csv(f"{out}.csv")
    options = {"columns": {"patient": "patient", "code": "code", "visit": "visit"}}
    source = SourceSpec(path=str(Path(f"{out}.csv").absolute()), **options)
    return lw.protect(
        read_source(source), method, out, source=source, register="register.db", reason=reason, seed=1
    )


def test_what_asks_for_a_reason_is_measured() -> None:
    rows = visits(300, 1, 12, 1)[0]
    from_file(rows, lw.Disassociation(k=5, m=2), "one")
    result = from_file(rows, lw.Disassociation(k=8, m=2), "two", "agreed")
    (compared,) = lw.releases.show(str(listed()[1]["id"]), register="register.db")["compared"]
    bound = compared["bound"]
    assert (compared["rule"], bound["k"], bound["below"], bound["looked_at"]) == ("other", 5, 0, 300)
    assert f"Measured: {bound['attack']}" in result.report.read_text()
    shutil.rmtree("one")
    from_file(rows, lw.Disassociation(k=7, m=2), "three", "agreed")
    first, second = lw.releases.show(str(listed()[2]["id"]), register="register.db")["compared"]
    assert first["bound"] is None and second["bound"]["below"] == 0


def test_visits_released_from_scratch_again_are_refused_whatever_the_reason() -> None:
    quarters = visits(200, 2, 10, 7)
    from_file(quarters[0], lw.Visits(k=3, policy="none"), "one")
    with pytest.raises(GuaranteeUnreachable, match=r"Measured: fewest candidates [12]"):
        from_file(pl.concat(quarters), lw.Visits(k=3, policy="none"), "two", "agreed")
    assert [row["status"] for row in listed()] == ["released", "withdrawn"]


# -- repair ----


def test_a_register_is_made_again_from_the_folders(place: Path) -> None:
    protect("one", handover={"recipient": "uni"})
    protect("two", 100)
    protect("three", 200)
    before = listed()
    for file in place.glob("register.db*"):
        file.unlink()
    (place / "two/custody/register.sketch").write_bytes(b"01234567")
    with pytest.raises(BadInput, match="no entry of a register"):
        lw.releases.repair([place], register="register.db")
    found = lw.releases.repair(["one", "two"], register="register.db")
    ids = [str(row["id"]) for row in before]
    assert (found["restored"], found["lost"]) == (ids[:2], ids[2:])
    assert [(row["status"], row["patients"]) for row in listed()] == [
        ("released", 40), ("released", None), ("lost", None)
    ]  # fmt: skip
    compared = lw.releases.overlap(ids[0], register="register.db")
    assert compared["rule"].to_list() == ["unknown", "unknown"]
    assert lw.releases.audit(register="register.db")["passed"]


# -- what is compared ----


def test_a_spec_is_compared_before_it_is_run(place: Path) -> None:
    protect("one")
    cohort(20).events.select("patient", "code").write_csv("events.csv")
    Path("spec.yaml").write_text("source: {path: events.csv}\nmethod: {name: disassociation, k: 5, m: 2}\n")
    (row,) = lw.releases.overlap("spec.yaml", register="register.db").to_dicts()
    assert (row["common"], row["only_here"], row["only_there"]) == (20, 20, 20)
    assert (row["rule"], row["outcome"]) == ("other", "reason")
    assert len(listed()) == 1
    with pytest.raises(BadInput, match="--measure"):
        lw.releases.overlap("spec.yaml", measure=True, register="register.db")


def test_lines_and_tables_without_identifiers_count_as_everybody() -> None:
    Path("records.txt").write_text("401.9 250.00\n" * 40)
    lines = lw.read("records.txt", lines=True)
    assert lines.identifiers() is None
    assert lw.read(pl.DataFrame({"age": [1, 2, 3]}), format="table").identifiers() is None
    protect("one")
    with pytest.raises(BadInput, match="complete overlap"):
        lw.protect(lines, COUNTED, "two", register="register.db")


def test_identifiers_of_a_source_on_the_disk_are_those_of_one_in_memory(tmp_path: Path) -> None:
    lw.synth.write_codes("events.csv", patients=60, codes=30, seed=1)
    memory = lw.read("events.csv").identifiers()
    (tmp_path / "work").mkdir()
    on_disk = stored.store("events.csv", tmp_path / "work", None, None, frozenset())
    assert memory is not None and on_disk is not None and on_disk.files
    found = on_disk.identifiers()
    assert found is not None
    assert set(sketch.normalize(found)) == set(sketch.normalize(memory))


@pytest.fixture(name="claims")
def claims_cohort() -> lw.Cohort:
    lw.synth.write_claims("claims.csv", patients=300, codes=100, seed=1)
    columns = {"code": [f"diag_{each}" for each in range(1, 11)], "visit": "claim"}
    return lw.read("claims.csv", columns=columns)


def test_cohorts_of_one_master_are_rows_of_it(claims: lw.Cohort) -> None:
    lw.protect(claims, lw.Visits(k=5), "master", register="register.db")
    people = claims.events["patient"].unique().sort()
    secret = "Nobody can know who is in it."
    for number, chosen in enumerate((people[:100], people[:101])):
        lw.extract("master", chosen, f"cohort{number}", membership_is_secret=secret, register="register.db")
    payload = people.to_frame().with_columns(gene=pl.lit("a"))
    with pytest.raises(BadInput, match="payloads"):
        lw.extract(
            "master",
            people[:150],
            "more",
            payload=payload,
            membership_is_secret=secret,
            register="register.db",
        )
    with pytest.raises(GuaranteeUnreachable, match="Fewer than k"):
        lw.extract("master", people[:102], "more", payload=payload, membership_is_secret=secret,
                   register="register.db", reason="agreed")  # fmt: skip
    ids = [str(row["id"]) for row in listed() if row["status"] == "released"]
    rules = [
        [each["rule"] for each in lw.releases.show(one, register="register.db")["compared"]] for one in ids
    ]
    assert rules == [[], ["members"], ["members", "members"]]


# -- the house ----


def house(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("house").mkdir(exist_ok=True)
    Path("house/house.yaml").write_text(text)
    monkeypatch.setenv("LEEWARD_HOUSE", str(Path("house/house.yaml").absolute()))


def test_the_house_names_the_register_and_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    house("register: {url: register.db, key: keys/register.secret, policy: {disjoint: reason}}", monkeypatch)
    Path("house/keys").mkdir()
    lw.protect(cohort(), COUNTED, "one")
    assert lw.releases.list().height == 1
    assert {each.name for each in Path("house/keys").iterdir()} == {"register.secret", "register.secret.head"}
    with pytest.raises(BadInput, match="leave --register out"):
        lw.protect(cohort(100), COUNTED, "two", register="other.db")
    with pytest.raises(BadInput, match="--reason"):  # the house is stricter
        lw.protect(cohort(100), COUNTED, "two")
    lw.protect(cohort(100), COUNTED, "two", reason="agreed")


def test_the_house_says_who_may_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    house("register: {url: register.db, pools: [[uni], [firm]]}", monkeypatch)
    lw.protect(cohort(), COUNTED, "one", handover={"recipient": "uni"})
    lw.protect(cohort(1), COUNTED, "two", handover={"recipient": "firm"})
    with pytest.raises(GuaranteeUnreachable):
        lw.protect(cohort(2), COUNTED, "three", handover={"recipient": "uni"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("register: {url: x.db, policy: {difference: allow}}", "only be stricter"),
        ("register: {url: x.db, pools: [uni]}", "list of lists"),
        ("registry: {url: x.db}", "register"),
        ("register: {key: x}", "url"),
    ],
)
def test_a_house_file_that_is_wrong_stops(text: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    house(text, monkeypatch)
    with pytest.raises(BadInput, match=message):
        lw.protect(cohort(), COUNTED, "one")
    assert not Path("one").exists()


def test_a_house_file_that_is_named_and_missing_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEEWARD_HOUSE", "nowhere.yaml")
    with pytest.raises(BadInput, match="no such house file"):
        lw.protect(cohort(), COUNTED, "one")


def test_nothing_is_settled_for_a_run_that_nobody_counts(tmp_path: Path) -> None:
    from leeward.runs.registering import Registration

    Registration().settle(Draft(tmp_path, tmp_path))
    assert list(tmp_path.glob("custody/*")) == []
