"""Every example of every `--help`, run in a folder of made-up files that has what the examples name."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import click
import polars as pl
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from tests.vocabulary.test_rf2 import release as snomed

from leeward.cli.main import leeward, status_of

NOT_RUN = {
    "postgresql://": "a database server",
    "leeward serve": "the portal serves until it is stopped; tests/portal runs it",
    "leeward warm": "compiles for minutes; tests/laws/test_completeness.py has its lines",
    "--corpus synthetic": "minutes of training; tests/notes trains on less",
    "i2b2-2014": "the corpus may not be passed on",
}
"""Part of an example, and why it is not run here."""

HEAD = "5f2b…"
"""Stands in an example for the head of a ledger or a register, which nobody knows before."""
RELEASE = "3f9a"
"""Stands in an example for a release of the register."""

FILES = {
    "plan.yaml": """
        source: {path: events.csv, columns: {patient: pid, code: icd}}
        recipient: {who: named researchers, knows: {codes: 2, in_study: true}}
        threshold: 0.2
        plan: [{counts: {of: "hierarchy:1", within: "20 %", from: 20}}]
    """,
    "models.yaml": """
        plan: [{cox: {time: SurvInterval, event: VitalStat, event_value: 1, covariates: [DiagAge, Gender]}}]
    """,
    "spec.yaml": """
        source: {path: events.csv, columns: {patient: pid, code: icd, visit: enc}}
        method: {name: disassociation, k: 5, m: 2}
    """,
    "house.yaml": "register: {url: register.db}",
    "context.yaml": "purpose: How often diabetes and heart disease go together.",
    "baskets.txt": "\n".join(["250.00 401.9", "401.9", "250.00, 272.4"] * 9),
    "known.txt": "250.00\n250.00 401.9",
    "studies.csv": "250.00,250.01",
    "withdrawn.txt": "1\n2",
    "labels.csv": "label,kind,category\nPATIENT,EID,name",
    "questions.txt": "fever\n'sore throat & fever'",
    "registration.csv": "note,sex,zip\n1,F,12301",
    "folder/1.txt": "Fever since Monday. No cough.",
    "annotated/1.txt": "Ann Hill has fever.",
    "annotated/1.ann": "T1\tPATIENT 0 8\tAnn Hill",
    "phecode_map.csv": "ICD9,phecode\n250.00,250.2\n401.9,401.1",
    "DocumentReference.ndjson": json.dumps(
        {
            "resourceType": "DocumentReference", "id": "d1", "subject": {"reference": "Patient/p1"},
            "content": [{"attachment": {"contentType": "text/plain", "data": "ZmV2ZXI="}}],
        }
    ),
}  # fmt: skip

MADE = (
    "synth trajectories --patients 300 --seed 1 -o pairs.csv",
    "synth claims --patients 400 --seed 1 -o claims.csv",
    "synth registry --patients 300 --seed 1 -o registry.csv",
    "synth repeats --patients 2000 --seed 1 -o people.csv --sample some.csv --sample-patients 100",
    "synth notes --patients 30 --seed 1 -o notes.parquet --spans gold.jsonl",
    "synth notes --patients 25 --seed 2 -o others.parquet",
)
PREPARED = (
    "split events.csv --patient pid --parts 4 -o parts",
    "disassociate events.csv --patient pid --code icd --k 5 --m 2 -o release",
    "disassociate events.csv --k 5 --m 2 -o release-1",
    "disassociate events.csv --k 9 --m 2 -o release-2",
    "disassociate events.csv --demographics age,sex --keep age:10,sex:exact --k 5 --m 2 -o by-age",
    "constrain events.csv --k 5 --m 1 --policy file:studies.csv -o constrained",
    "visits events.csv --patient pid --code icd --visit enc --k 5 -o master",
    "disassociate events.csv --patient pid --code icd --k 5 --m 2 -o 2025/q1 --register register.db",
    "disassociate events.csv --patient pid --code icd --k 5 --m 2 -o 2025/q2 --register register.db",
    "refresh master new.csv -o master-2",
    "dossier release --sign private.pem -o dossier",
    "notes annotate notes.parquet --text encrypted --recipient city-university -o OUT",
    "notes annotate notes.parquet -o notes",
    "notes annotate others.parquet -o others",
    "notes train --corpus gold.jsonl --seed 1 -o models",
    "index others/custody/table.parquet --about-patients 1000 --epsilon-total 9 -o INDEX",
    "itemsets INDEX --epsilon 1 -o catalogue",
    "vocabulary add phecode phecode_map.csv",
)
"""What examples read that other examples write."""


def commands(
    command: click.Command, above: click.Context | None = None
) -> Iterator[tuple[str, click.Command]]:
    """Each command with those under it."""
    context = click.Context(command, info_name=command.name, parent=above)
    yield context.command_path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            under = command.get_command(context, name)
            assert under is not None
            under.name = name
            yield from commands(under, context)


def examples_of(command: click.Command) -> list[str]:
    """The lines of its help that begin with `leeward`, those that go on joined."""
    text = re.sub(r"\\\n\s+", "", command.help or "")
    return [line.strip() for line in text.splitlines() if re.match(r"\s+leeward ", line)]


COMMANDS = dict(commands(leeward))
EXAMPLES = list(dict.fromkeys(each for command in COMMANDS.values() for each in examples_of(command)))


def environment(folder: Path) -> dict[str, str]:
    return {name: str(folder / "home") for name in ("HOME", "LEEWARD_HOME", "LEEWARD_STATE")}


def run(line: str) -> int:
    """The exit status of a line as a shell would read it, without the command's name."""
    return status_of(
        [str(Path(each).expanduser()) if each.startswith("~") else each for each in shlex.split(line)]
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder that the examples run in."""
    folder = tmp_path_factory.mktemp("examples")
    for name in ("home", "folder", "annotated"):
        (folder / name).mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(dedent(text).strip() + "\n", encoding="utf-8")
    snomed(folder / "SnomedCT_InternationalRF2")
    key = Ed25519PrivateKey.generate()
    (folder / "private.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (folder / "expert.pem").write_bytes(
        key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
        for name, value in environment(folder).items():
            patch.setenv(name, value)
        assert [each for each in MADE if run(each) != 0] == []
        derived()
        assert [each for each in PREPARED if run(each) != 0] == []
        key_of_recipient = next((folder / "home").rglob("*city-university*"))
        shutil.copy(key_of_recipient, folder / "home/notes.key")
    yield folder


def derived() -> None:
    """The files of the examples that are the made-up ones with further columns."""
    pid, icd = pl.col("patient").alias("pid"), pl.col("code").alias("icd")
    pairs = pl.read_csv("pairs.csv", schema_overrides={"code": pl.String})
    rare = pairs.filter(pl.col("patient") <= 3).unique("patient").with_columns(code=pl.lit("250.01"))
    events = pl.concat([pairs, rare]).sort("patient").with_columns(
        pid, icd, pl.col("age").alias("enc"), pl.lit("2009-04-05").alias("day"),
        pl.when(pl.col("patient") % 2 == 0).then(pl.lit("Female")).otherwise(pl.lit("Male")).alias("sex"),
    )  # fmt: skip
    for name in ("events.csv", "later.csv"):
        events.write_csv(name)
    events.with_columns(pl.col("enc") + 200).write_csv("new.csv")
    events.write_parquet("events.parquet")
    patients = events.unique("patient").sort("patient")
    patients.select("patient", "pid").write_csv("patients.csv")
    patients.select("patient", (pl.col("patient") % 3).alias("rs1")).write_csv("genotypes.csv")
    parents = {code: code[:3] for code in events["code"] if len(code) > 3}
    parents |= dict.fromkeys(
        [*parents.values(), *events["code"].filter(events["code"].str.len_chars() <= 3)], "all"
    )
    tree = parents | {"all": None}
    pl.DataFrame({"node": list(tree), "parent": list(tree.values())}).write_csv("codes.csv")
    for made, name in (("people.csv", "everybody.csv"), ("some.csv", "sample.csv")):
        people = pl.read_csv(made, schema_overrides={"code": pl.String})
        people.with_columns(
            pid, icd, pl.int_range(pl.len()).alias("enc"), (pl.col("patient") % 3).alias("dna")
        ).write_csv(name)
    pl.read_parquet("notes.parquet").write_csv("notes.csv")


def test_every_command_has_an_example() -> None:
    assert [path for path, command in COMMANDS.items() if not examples_of(command)] == []


def test_every_reason_is_that_of_an_example() -> None:
    assert [part for part in NOT_RUN if not any(part in each for each in EXAMPLES)] == []


@pytest.mark.parametrize("example", [each for each in EXAMPLES if not any(part in each for part in NOT_RUN)])
def test_the_example_runs(
    example: str,
    files: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "folder"
    shutil.copytree(files, folder)
    monkeypatch.chdir(folder)
    for name, value in environment(folder).items():
        monkeypatch.setenv(name, value)
    of_register = example.startswith("leeward releases")
    if of_register and "--register" not in example:
        monkeypatch.setenv("LEEWARD_HOUSE", str(folder / "house.yaml"))
    if RELEASE in example:
        capfd.readouterr()
        assert run("releases list --json") == 0
        example = example.replace(RELEASE, json.loads(capfd.readouterr().out)["releases"][0]["id"])
    if HEAD in example:
        assert run("releases audit" if of_register else "audit INDEX") == 0
        example = example.replace(HEAD, capfd.readouterr().out.split()[-1])
    line = example.removeprefix("leeward ")
    for out in re.findall(r" (?:-o|--spans|--sample) (\S+)", line):
        shutil.rmtree(out) if Path(out).is_dir() else Path(out).unlink(missing_ok=True)
    assert run(line) == 0, capfd.readouterr().err[-2000:]
