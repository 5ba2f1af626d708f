"""What the fuzzer feeds to whole commands: odd arguments, plans, specs, keys, and two processes on one name."""

from __future__ import annotations

import io
import multiprocessing
import os
import time
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.damage import content_of, spoil
from tests.fuzz.ending import CODES, RELEASES, STATUSES, ended, odd_path, release, sources, write_rows
from tests.fuzz.making import CELLS, YAML_PARTS, mutated

from leeward.cli.main import status_of

COMMANDS: Mapping[str, list[list[str]]] = {
    "profile": [
        ["FILE"],
        ["FILE", "--code", "code,age"],
        ["FILE", "--k", "0"],
        ["FILE", "--vocabulary", "none", "--json"],
    ],
    "verify": [["FILE"], ["FOLDER"], ["FOLDER", "--source", "FILE"]],
    "estimate": [["FOLDER", "250.00"], ["FILE", "x"]],
    "measure": [["FOLDER", "--source", "FILE"]],
    "budget": [["FOLDER"], ["FILE"]],
    "audit": [["FOLDER"]],
    "query": [["FOLDER", "fever", "--epsilon", "x"], ["FOLDER", "fever", "--epsilon", "-1"]],
    "protect": [["FILE", "-o", "OUT"]],
    "vocabulary": [["add", "hierarchy", "FILE"], ["add", "nothing", "FILE"]],
}


def commands(random: Random, folder: Path) -> int:
    """A command with odd arguments."""
    file = folder / "input.csv"
    file.write_bytes(mutated(b"patient,code,age\n1,401.9,20\n2,250.00,30\n3,E11.9,40\n", random))
    (folder / "share").mkdir()
    (folder / "share" / "release.json").write_bytes(mutated(b'{"method": "disassociation", "k": 5}', random))
    command = random.choice(list(COMMANDS))
    arguments = [
        {"FILE": str(file), "FOLDER": str(folder), "OUT": str(folder / "out")}.get(each, each)
        for each in random.choice(COMMANDS[command])
    ]
    if random.random() < 0.3:
        arguments += [random.choice(["--nothing", "--json", "\x1b[0m", "-o", "--k", "--seed"])]
    return ended([command, *arguments], folder)


PLAN = """source: {path: SOURCE, columns: {patient: patient, code: code, age: age, patients: [sex]}}
recipient: {who: named researchers, controls: [contract], knows: {codes: 2, in_study: true}}
threshold: ipc-ontario/medium
sensitive: ['428.0']
plan:
- counts: {of: 'hierarchy:1', within: '10 %', from: 5}
- prevalence: {of: codes, within: '20 patients'}
- query: {questions: 20, within: '20 patients'}
- sequences: {min_support: 0.1}
- logistic: {response: sex, covariates: [age]}
keep: [sex]
"""
RUN = """source: {path: SOURCE, columns: {patient: patient, code: code, age: age}}
method: {name: disassociation, k: 3, m: 2, utility: 'hierarchy:1'}
plan: [{logistic: {response: sex, covariates: [age]}}]
"""
CONTEXT = """declared_by: A. Person
declared_on: '2026-01-01'
purpose: A study.
controls: [contract]
attributes: [{name: age, kind: indirect}, {name: code, kind: sensitive}]
intruder_test: {by: B. Person, date: '2026-01-01', tries: 3, right: 1, means: a newspaper}
conclusion: {outcome: very small, words: All well., expert: A. Person, qualifications: many years, date: '2026-01-01'}
"""


def _yaml(random: Random, folder: Path, text: str, changes: int) -> str:
    """A file of YAML with some of its tokens replaced by others; its path."""
    text = text.replace(
        "SOURCE", str(sources(folder) / random.choice(["events.csv", "events.csv", "table.csv"]))
    )
    words = text.split(" ")
    for _ in range(random.randint(0, changes)):
        place = random.randrange(len(words))
        words[place] = random.choice([*YAML_PARTS, *CELLS, *words, ""])
    file = folder / f"{random.randrange(10**9)}.yaml"
    data = " ".join(words).encode("utf-8", "surrogatepass")
    file.write_bytes(mutated(data, random) if random.random() < 0.2 else data)
    return str(file if random.random() < 0.95 else odd_path(random, folder, file))


def recommend(random: Random, folder: Path) -> int:
    """A plan with words replaced."""
    flags = random.choice(
        [[], ["-o", str(folder / "out")], ["--why", random.choice(["disassociation", "x", ""])], ["--json"]]
    )
    return ended(["recommend", _yaml(random, folder, PLAN, 3), *flags], folder)


VARIED = ["k=2,3", "m=1,2", "k=2,x", "k=1e400", "k=2;m=1", "k=2,99999999999999999999", "k=", "=", "k", "k=2,2", "name=visits", "k=null",
          "k=[2]", "k=-1,0", "x=1", "utility=none", "k=2.5", "k=١", "policy=a", "k=60,61", "k=true", "m=0", "k= 2 , 3 "]  # fmt: skip


def explore(random: Random, folder: Path) -> int:
    """A spec with words replaced, and any values to vary."""
    arguments = [
        "explore",
        _yaml(random, folder, RUN, 2),
        "--vary",
        random.choice(VARIED),
        "-o",
        str(folder / "out"),
    ]
    if random.random() < 0.3:
        arguments += ["--vary", random.choice([*VARIED, *CELLS])]
    if random.random() < 0.2:
        arguments += [
            "--methods",
            random.choice(["constraints", "visits,censoring", "x", "", "disassociation"]),
        ]
    if random.random() < 0.3:
        arguments += ["--plan", _yaml(random, folder, PLAN, 2)]
    arguments += random.choice([[], ["--csv"], ["--json"], ["--sample", "10"], ["--sample", "1"]])
    for _ in range(random.choice([1, 1, 2])):  # twice: an exploration that was stopped goes on
        status = ended(arguments, folder)
        for file in sorted((folder / "out").rglob("*")) if (folder / "out").is_dir() else []:
            if file.is_file() and random.random() < 0.1:
                file.write_bytes(mutated(file.read_bytes(), random))
    return status


def compare(random: Random, folder: Path) -> int:
    """Releases of any method, folders that are none, and a plan with words replaced."""
    odd = [
        folder,
        odd_path(random, folder, sources(folder) / "events.csv"),
        Path("nothing"),
        Path("x" * 5000),
    ]
    outs = [
        str(random.choice(odd) if random.random() < 0.15 else release(random.choice(list(RELEASES)), folder))
        for _ in range(random.randint(1, 2))
    ]
    plan = ["--plan", _yaml(random, folder, PLAN, 2)] if random.random() < 0.7 else []
    return ended(["compare", *outs, *plan, "-o", str(folder / "out")], folder)


def dossier(random: Random, folder: Path) -> int:
    """A plan and a context with words replaced, damaged keys, and a dossier that is damaged and checked."""
    made = str(release(random.choice(list(RELEASES)), folder))
    arguments = ["dossier", made, "-o", str(folder / "out")]
    if random.random() < 0.4:
        arguments += ["--plan", _yaml(random, folder, PLAN, 2)]
    if random.random() < 0.4:
        arguments += ["--context", _yaml(random, folder, CONTEXT, 3)]
    if random.random() < 0.2:
        arguments += ["--explored", str(random.choice([folder, Path(made), Path("nothing")]))]
    if random.random() < 0.2:
        key = folder / "key.pem"
        key.write_bytes(
            mutated(
                b"-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIA==\n-----END PRIVATE KEY-----\n", random
            )
        )
        arguments += ["--sign", str(key)]
    arguments += random.choice([[], ["--for", "recipient"], ["--json"]])
    status = ended(arguments, folder)
    if status == 0:
        before, written = content_of(folder / "out"), folder / "dossier"
        (folder / "out").rename(written)
        files = sorted(path for path in written.rglob("*") if path.is_file())
        spoil(random, random.choice(files), files, folder)
        passed = ended(["dossier", made, "--check", str(written)], folder) == 0
        assert not passed or content_of(written) == before, "a dossier with another file passed its check"
    return status


def link(random: Random, folder: Path) -> int:
    """Linked tables of events with odd cells, attributes, views and hierarchies."""
    names = ["patient", "code", "date", "visit", "sex", "zip"]
    odd = random.random() * 0.1
    rows = [
        [random.choice(CELLS) if random.random() < odd else cell for cell in
         (p, random.choice(CODES), f"2020-01-{p % 27 + 1:02d}", f"{p}-{v}", "fm"[p % 2], f"12{p % 5}45")]
        for p in range(random.choice([3, 20])) for v in range(2)
    ]  # fmt: skip
    file = folder / "events.csv"
    write_rows(file, names, rows)
    arguments = [
        "link",
        str(file),
        "--k",
        random.choice(["2", "3", "3", "0", "99"]),
        "-o",
        str(folder / "out"),
        "--accept-unknown",
    ]
    known = (
        random.sample(["sex", "zip", "code", "x"], random.randint(0, 2))
        if random.random() < 0.3
        else ["sex", "zip"]
    )
    if known:
        arguments += ["--attributes", ",".join(known), "--demographics", ",".join(known)]
    if random.random() < 0.5:
        arguments += ["--visit", "visit", "--date", "date"]
        arguments += [
            "--views",
            random.choice(
                ["patients+visits", "patients+visits+events", "patients+events+events", "x", "patients"]
            ),
        ]
        arguments += random.choice([[], ["--days", random.choice(["30", "0", "-1", "1", "99999999999"])]])
    if random.random() < 0.3:
        tree = folder / "tree.csv"
        tree.write_bytes(
            mutated(b"node,parent\nall,\n1,all\n12045,1\n12145,1\n12245,1\n12345,1\n12445,1\n", random)
        )
        arguments += [
            "--hierarchies",
            random.choice(
                [f"zip:{tree}", "zip:prefix", "sex:exact", "zip:x", "zip", f"sex:{tree},zip:prefix"]
            ),
        ]
    if random.random() < 0.3:
        arguments += [
            "--keep",
            random.choice(
                ["zip:2", "zip:all", "sex:exact", "zip:99", "zip:-1", "x:1", "zip", "sex:all,zip:1"]
            ),
        ]
    arguments += random.choice(
        [[], ["--small", "suppress"], ["--small", "drop"], ["--recoding", "local"], ["--format", "csv"]]
    )
    return ended(arguments, folder)


def _status_at(arguments: list[str], state: dict[str, str], moment: float) -> str:
    os.environ.update(state)
    time.sleep(max(0.0, moment - time.time()))
    said = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(said):
        status = status_of(arguments)
    return f"{status} {said.getvalue()[-300:] if status not in STATUSES else ''}"


@cache
def _other_process() -> Any:
    return multiprocessing.get_context("spawn").Pool(1)


def at_once(random: Random, folder: Path) -> None:
    """Two processes that write to one name at the same moment: one folder, whole, and one refusal."""
    events, table, out = sources(folder) / "events.csv", sources(folder) / "table.csv", folder / "out"
    command = random.choice(
        [
            "split",
            "k-anonymize",
            "disassociate",
            "link",
            "dossier",
            "compare",
            "recommend",
            "explore",
            "index",
        ]
    )
    arguments = {
        "split": [str(events), "--patient", "patient", "--parts", "2"], "k-anonymize": [str(table), "--k", "5"],
        "disassociate": [str(events), "--k", "3", "--m", "2"], "link": [str(events), "--k", "3"],
        "dossier": [str(release("k-anonymize", folder))], "compare": [str(release("disassociate", folder))],
        "recommend": [_yaml(random, folder, PLAN, 0)], "explore": [_yaml(random, folder, RUN, 0), "--vary", "k=2"],
        "index": [str(events), "--terms", "icd9", "--new-budget", "fuzz", "--epsilon-total", "1"],
    }[command]  # fmt: skip
    moment = time.time() + random.random() / 50
    state = {name: os.environ[name] for name in ("LEEWARD_HOME", "LEEWARD_STATE")}
    call = ([command, *arguments, "-o", str(out)], state, moment)
    other = _other_process().apply_async(_status_at, call)
    own = _status_at(call[0], call[1], moment + random.choice([0, 0, 0.001, 0.01]))
    statuses = sorted([own, other.get(120)])
    assert all(each.split(" ")[0] in {"0", "2", "3"} for each in statuses), f"{command} ended with {statuses}"
    assert not list(folder.glob("*.partial-*")), f"two {command} left something aside"
    done = sum(each.startswith("0") for each in statuses)
    assert out.exists() == (done > 0), f"two {command}: {statuses}, and a folder: {out.exists()}"
    assert done < 2 or command == "explore", f"two {command} wrote to one name"
