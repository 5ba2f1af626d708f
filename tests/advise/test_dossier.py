"""The dossier: every figure resolves, one changed byte does not match, nothing private, nothing claimed, signed."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from tests.laws.cases import cases, events

import leeward as lw
from leeward.advise.dossier.content import annex, resolve
from leeward.advise.dossier.context import Context, load_context
from leeward.cli.main import status_of
from leeward.errors import BadInput, VerificationFailed
from leeward.methods import METHODS
from leeward.runs.dossier import check, dossier
from leeward.runs.protect import method_of
from leeward.runs.specs import plan_of

CANARY = "E970.1"
FORBIDDEN = ("compliant", "certified", "hipaa-safe", "zero risk", "fully anonymous")
PLAN = {"threshold": {"max": 0.34}, "plan": [{"counts": {"of": "hierarchy:1", "from": 5}}]}
CONTEXT = """
declared_by: A. Steward
declared_on: "2026-11-22"
purpose: a study of diabetes
controls: [contract]
attributes: [{name: code, kind: indirect, availability: claims}]
intruder_test: {by: B. Tester, date: "2026-11-20", tries: 20, right: 1, means: the web}
conclusion: {outcome: very small, words: as above, expert: C. Expert, qualifications: statistics, date: "2026-11-22"}
"""


@pytest.fixture(scope="module")
def source() -> Any:
    """A cohort with a patient and a code that nobody else has."""
    rare = events().head(1).with_columns(patient=pl.lit("canary-7"), code=pl.lit(CANARY))
    return lw.read(
        pl.concat([events(), rare]), columns={"patient": "patient", "code": "code"}, vocabulary="icd9"
    )


@pytest.fixture
def release(source: Any, tmp_path: Path) -> Path:
    return lw.protect(source, lw.Disassociation(k=3, m=2, policy="hierarchy:1"), tmp_path / "out").path


@pytest.fixture
def written(release: Path, source: Any, tmp_path: Path) -> Path:
    (tmp_path / "context.yaml").write_text(CONTEXT)
    return dossier(
        release, tmp_path / "dossier", plan=plan_of(PLAN), context=tmp_path / "context.yaml", cohort=source
    ).folder


def shares(folder: Path) -> dict[str, str]:
    return {
        str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.rglob("*")) if p.is_file()
    }


def entries(content: dict[str, Any]) -> list[dict[str, Any]]:
    return [entry for part in content["parts"] for entry in part["entries"]]


def test_every_figure_resolves(written: Path, release: Path) -> None:
    content = json.loads((written / "dossier.json").read_text())
    files = {
        name: json.loads((release / "custody" / name).read_text())
        for name in ("measures.json", "verification.json")
    }
    files["release.json"] = json.loads((release / "share/release.json").read_text())
    files["evidence.json"] = json.loads((written / "evidence.json").read_text())
    measured = [entry for entry in entries(content) if entry["block"] == "measured"]
    assert len(measured) > 40 and {"Mean risk, measured", "Share of patients whose risk is above 0.09"} <= {
        e["label"] for e in measured
    }
    assert all("pointer" in entry for entry in measured)
    for entry in measured:
        there = resolve(files, entry["pointer"])
        assert entry["value"] == (len(there) if isinstance(there, list | dict) else there)
        if "chance_pointer" in entry:
            assert entry["chance"] == resolve(files, entry["chance_pointer"])
    shown = (written / "dossier.html").read_text()
    assert all(entry["pointer"] in shown for entry in measured if entry not in content["parts"][0]["entries"])
    assert check(written, release).matches


@pytest.mark.parametrize(
    "place", ["share/README.md", "share/data/chunks.parquet", "share/release.json", "custody/measures.json"]
)
def test_one_changed_byte_does_not_match(
    place: str, written: Path, release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = release / place
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))
    try:
        found = check(written, release)
        assert not found.matches and any(place in fault for fault in found.faults)
    except BadInput:  # the manifest is no JSON any more
        assert place.endswith(".json")
    status = status_of(["dossier", str(release), "--check", str(written)])
    assert status in (2, 4) and (status == 2 or "does not match" in capsys.readouterr().out)


def test_a_changed_figure_does_not_match(written: Path, release: Path) -> None:
    content = json.loads((written / "dossier.json").read_text())
    entry = next(e for e in entries(content) if e["label"].startswith("Maximum risk by the guarantee"))
    entry["value"] = 0.01
    (written / "dossier.json").write_text(json.dumps(content))
    assert [fault for fault in check(written, release).faults if "Maximum risk" in fault]
    (written / "evidence.json").write_text("{}")
    assert any("evidence.json" in fault for fault in check(written, release).faults)


def test_another_page_and_an_added_file_do_not_match(written: Path, release: Path) -> None:
    page = written / "dossier.html"
    text = page.read_text()
    stated = json.loads((written / "dossier.json").read_text())["digests"]
    assert {name for name, digest in stated.items() if digest not in text} == {"dossier.html", "dossier.json"}
    page.write_text(text.replace("open", "closed"))
    (written / "letter.txt").touch()
    assert check(written, release).faults == ("dossier.html does not match.", "letter.txt was added.")
    (written / "letter.txt").unlink()
    content = json.loads((written / "dossier.json").read_text())
    del content["digests"]["dossier.html"], content["digests"]["dossier.json"]  # as earlier versions wrote it
    (written / "dossier.json").write_text(json.dumps(content))
    assert check(written, release).matches


def test_another_word_does_not_match(written: Path, release: Path) -> None:
    content = json.loads((written / "dossier.json").read_text())
    (written / "dossier.json").write_text(json.dumps({**content, "title": "A determination."}))
    assert check(written, release).faults == ("dossier.json does not match.",)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.pop("digests"),
        lambda content: content.update(digests=[]),
        lambda content: content["parts"][1]["entries"][0].pop("label"),
        lambda content: content["parts"].append("?"),
        lambda content: content.pop("parts"),
    ],
)
def test_a_damaged_dossier_is_told(change: Any, written: Path, release: Path) -> None:
    content = json.loads((written / "dossier.json").read_text())
    change(content)
    (written / "dossier.json").write_text(json.dumps(content))
    with pytest.raises(BadInput, match="dossier"):
        check(written, release)


@pytest.mark.parametrize("place", ["out/custody/measures.json", "d/evidence.json"])
def test_a_pipe_is_not_waited_for(place: str, written: Path, release: Path, tmp_path: Path) -> None:
    folder = {"out": release, "d": written}[place.split("/")[0]]
    file = folder / place.split("/", 1)[1]
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(BadInput, match="pipe"):
        check(written, release)


def test_a_release_that_does_not_verify_gets_none(release: Path, tmp_path: Path) -> None:
    (release / "share/README.md").write_text("Nothing can be found.\n")
    with pytest.raises(VerificationFailed, match="No dossier was written"):
        dossier(release, tmp_path / "dossier")
    assert not (tmp_path / "dossier").exists()
    assert status_of(["dossier", str(release), "-o", str(tmp_path / "dossier")]) == 4


def test_nothing_private_and_no_claim(written: Path, release: Path, source: Any, tmp_path: Path) -> None:
    before = shares(release)
    copy = dossier(release, tmp_path / "copy", plan=plan_of(PLAN), cohort=source, audience="recipient").folder
    assert shares(release) == before
    for path in (*written.iterdir(), *copy.iterdir()):
        text = path.read_text()
        assert "canary" not in text and CANARY not in text and str(tmp_path) not in text
        assert not any(word in text.lower() for word in FORBIDDEN)
    page = (written / "dossier.html").read_text()
    assert (
        "default-src 'none'" in page and "<script" not in page and not re.findall(r"(?:src|href)\s*=", page)
    )
    told = json.loads((copy / "dossier.json").read_text())
    assert not (copy / "evidence.json").exists()
    assert {e["pointer"].partition("#")[0] for e in entries(told) if "pointer" in e} == {"release.json"}
    assert check(copy, release).matches


def test_declared_and_open(written: Path) -> None:
    content = json.loads((written / "dossier.json").read_text())
    by_label = {entry["label"].partition(",")[0]: entry for entry in entries(content)}
    assert by_label["Purpose"] == {"block": "declared", "label": "Purpose", "value": "a study of diabetes"}
    assert by_label["Retention"] == {"block": "open", "label": "Retention"}
    assert by_label["Conclusion on the risk"]["value"] == "very small"
    assert by_label["Maximum risk is within the threshold"]["value"] is True
    states = {row["state"] for text in content["annex"] for row in text["rows"]}
    assert any(state.startswith("covered in part") for state in states) and not any(
        "fulfil" in s for s in states
    )


def test_without_a_context_everything_of_people_is_open(release: Path, tmp_path: Path) -> None:
    made = dossier(release, tmp_path / "d")
    declared = [entry["label"] for entry in entries(made.content) if entry["block"] == "declared"]
    assert declared == ["Randomness", "How to repeat it"] and len(made.open_items) >= 18
    assert annex([[] for _ in range(11)])[0]["rows"][0]["state"] == "open"


def test_a_plan_without_a_source_is_measured_on_the_release_s_own(tmp_path: Path) -> None:
    events().write_csv(tmp_path / "events.csv")
    (tmp_path / "spec.yaml").write_text(
        "source: {path: events.csv, columns: {patient: patient, code: code}, vocabulary: icd9}\n"
        "method: {name: disassociation, k: 3, m: 2}\n"
    )
    lw.run(tmp_path / "spec.yaml", tmp_path / "out")
    made = dossier(tmp_path / "out", tmp_path / "dossier", plan=plan_of(PLAN))
    evidence = json.loads((made.folder / "evidence.json").read_text())
    assert evidence["verification"]["with_source"] and len(evidence["lines"]) == 1
    assert not any("serve the recipient's plan" in each for each in made.open_items)


def test_a_page_zero_answers_five_questions(written: Path) -> None:
    labels = " ".join(
        e["label"] for e in json.loads((written / "dossier.json").read_text())["parts"][0]["entries"]
    )
    for question in ("What is hidden", "From whom", "How sure", "What can still be found", "Who decides"):
        assert question in labels


def test_signatures(written: Path, release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = {}
    for name in ("expert", "other"):
        key = Ed25519PrivateKey.generate()
        (tmp_path / f"{name}.pem").write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        )
        keys[name] = tmp_path / f"{name}.pub"
        keys[name].write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    assert check(written, release, key=keys["expert"]).signed is False
    assert (
        status_of(["dossier", str(release), "--check", str(written), "--sign", str(tmp_path / "expert.pem")])
        == 0
    )
    assert check(written, release, key=keys["expert"]).matches
    assert check(written, release, key=keys["other"]).signed is False
    assert status_of(["dossier", str(release), "--check", str(written), "--key", str(keys["other"])]) == 4
    assert "does not match the key" in capsys.readouterr().out
    with (written / "dossier.json").open("a") as file:
        file.write(" ")
    assert check(written, release, key=keys["expert"]).signed is False
    (tmp_path / "text.pem").write_text("no key")
    with pytest.raises(BadInput, match="no public Ed25519 key"):
        check(written, release, key=tmp_path / "text.pem")
    with pytest.raises(BadInput, match="no private Ed25519 key"):
        check(dossier(release, tmp_path / "again").folder, release, private=keys["other"])


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A release of every method."""
    folder = tmp_path_factory.mktemp("releases")
    return {
        name: lw.protect(
            case.cohort,
            method_of({"name": name, **case.parameters}),
            folder / name,
            population=case.population,
        ).path
        for name, case in cases().items()
    }


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_dossier(name: str, releases: dict[str, Path], tmp_path: Path) -> None:
    case, out = cases()[name], releases[name]
    made = lw.dossier(out, tmp_path / "d", cohort=case.cohort, population=case.population)
    shown = [entry for entry in entries(dict(made.content)) if entry["block"] == "measured"]
    measured = {entry["label"].partition(", if ")[0] for entry in shown}
    assert {"Maximum risk by the guarantee", "Mean risk, measured"} <= measured
    assert (
        any(entry["block"] == "measured" for entry in made.content["parts"][5]["entries"])
        or name == "trajectories"
    )


def test_alternatives_of_an_exploration(release: Path, source: Any, tmp_path: Path) -> None:
    from leeward.release.spec import SourceSpec, Spec

    spec = Spec(
        source=SourceSpec(format="memory", name="c"), method={"name": "disassociation", "k": 3, "m": 2}
    )
    explored = lw.explore(spec, tmp_path / "e", vary={"k": [3, 5]}, plan=plan_of(PLAN), cohort=source).folder
    made = dossier(release, tmp_path / "d", explored=explored)
    labels = [entry["label"] for entry in made.content["parts"][7]["entries"]]
    assert labels == ["disassociation, k = 3, m = 2: line 1", "disassociation, k = 5, m = 2: line 1"]


BAD = {
    "purpos: x": "did you mean `purpose`",
    "attributes: [code]": "`attributes[1]` is a mapping",
    "attributes: [{name: code, kind: odd}]": "`attributes[1].kind` must be",
    "intruder_test: {by: x, date: d, tries: 1, right: 2, means: m}": "cannot be more than",
    "conclusion: {outcome: fine}": "is missing",
    "- x": "a context is a mapping",
}


@pytest.mark.parametrize(("text", "message"), BAD.items(), ids=list(BAD))
def test_a_bad_context_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(BadInput) as caught:
        load_context(tmp_path / "c.yaml")
    assert message in str(caught.value)


def test_an_empty_context_declares_nothing() -> None:
    assert Context() == Context() and Context().purpose is None
