"""Runs ended at random moments (SIGKILL, or SIGTERM and SIGINT too): what they leave, and what the ledger says.

    python benchmarks/kills.py [--kills 300] [--seed 1] [--only index,query] [--seconds 300] [--races 10] [--json FILE]
                               [--signals KILL,TERM,INT]

Kills are dealt to `protect` (several methods), `visits`, `index`, `query` and `notes annotate`, and where `--only` says
so to `split`, `explore`, `dossier`, `link` and `serve`, each at a moment drawn uniformly over the length of a whole run
of that command. A run that is asked to end (TERM, INT) leaves nothing aside, and says by its exit status that it was.
A portal that was killed is started again in its folder and answers. After every kill: whatever is there under the asked
name is verified or opened; folders aside are private and opened by nobody. Every tenth run of a command is left to its
end, and nothing of the killed ones may be left then. Of `query` every question is asked again after its kill: the
answer shown before the kill, if one was, is the answer then, and the log has one charge a question. At the end two
`index` runs at a time write to one name. Exits with 1 where one of the counts that must be 0 is not.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

START = "import sys; from leeward.cli.main import main; main()"
CODES = ["250.00", "401.9", "272.4", "414.01", "428.0", "V10.1", "E812.0"]
SHARES = {"disassociate": 4, "parts": 3, "constrain": 2, "censor": 2, "condense": 3, "k-anonymize": 2, "trajectories": 2, "visits": 5,  # noqa: E501
          "index": 6, "query": 9, "notes": 5}  # fmt: skip
LATER = {"split": 1, "explore": 1, "dossier": 1, "link": 1, "serve": 1}
"""Commands that only `--only` names."""
EVERY = 10
"""A run in so many is not killed."""

PRICE = 0.01


def make_data(folder: Path, seed: int) -> None:
    """Small sources for every command."""
    made = random.Random(seed)
    rows = [(p, c, v, 40 + v + made.randrange(3)) for p in range(600) for v in range(made.randint(1, 2))
            for c in made.sample(CODES, made.randint(1, 3))]  # fmt: skip
    (folder / "events.csv").write_text(
        "patient,code,visit,age\n" + "".join(f"{p},{c},{2 * p + v},{a}\n" for p, c, v, a in rows)
    )
    (folder / "sample.csv").write_text(
        "patient,code,visit,age\n" + "".join(f"{p},{c},{2 * p + v},{a}\n" for p, c, v, a in rows if p < 200)
    )
    (folder / "table.csv").write_text(
        "x,y,g\n"
        + "".join(f"{made.gauss(5, 1):.2f},{made.gauss(2, 1):.2f},{made.choice('ab')}\n" for _ in range(600))
    )
    (folder / "spec.yaml").write_text(
        "source: {path: events.csv, columns: {patient: patient, code: code}}\n"
        "method: {name: disassociation, k: 3, m: 2}\n"
    )
    (folder / "notes.csv").write_text(
        "patient,text\n"
        + "".join(
            f'{p},"Mr. John Smith was seen on 2009-04-0{p % 9 + 1} and has a sore throat and fever."\n'
            for p in range(60)
        )
    )


COLUMNS = ["--patient", "patient", "--code", "code"]
COMMANDS: dict[str, list[str]] = {
    "disassociate": ["disassociate", "events.csv", *COLUMNS, "--k", "3", "--m", "2"],
    "parts": ["disassociate", "events.csv", *COLUMNS, "--k", "3", "--m", "2", "--partitions", "3"],
    "constrain": ["constrain", "events.csv", *COLUMNS, "--k", "3", "--m", "2", "--policy", "hierarchy:1", "--vocabulary", "icd9"],  # noqa: E501
    "censor": ["censor", "sample.csv", *COLUMNS, "--population", "events.csv", "--k", "3"],
    "condense": ["condense", "table.csv", "--k", "10"],
    "k-anonymize": ["k-anonymize", "table.csv", "--k", "5"],
    "trajectories": ["trajectories", "events.csv", *COLUMNS, "--age", "age", "--k", "3", "--vocabulary", "icd9"],
    "visits": ["visits", "events.csv", *COLUMNS, "--visit", "visit", "--k", "3"],
    "index": ["index", "events.csv", *COLUMNS, "--terms", "icd9", "--new-budget", "kills", "--epsilon-total", "1"],
    "notes": ["notes", "annotate", "notes.csv", "--text", "removed"],
    "split": ["split", "events.csv", "--patient", "patient", "--parts", "3"],
    "explore": ["explore", "spec.yaml", "--vary", "k=2,3"],
    "dossier": ["dossier", "RELEASE"],
    "link": ["link", "events.csv", *COLUMNS, "--k", "3"],
}  # fmt: skip


def begin(folder: Path, *arguments: str, out: Any = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """A command, started."""
    return subprocess.Popen(
        [sys.executable, "-c", START, *arguments], cwd=folder, stdout=out, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip


def kill_at(process: subprocess.Popen[bytes], seconds: float, how: str = "KILL") -> str:
    """Kill a run with its processes after so many seconds; how it ended, nothing where it had ended by itself."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.Signals[f"SIG{how}"])
    else:
        return ""
    try:
        return f"by {how}: ended with {process.wait(120)}"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return f"ALIVE AFTER {how}"


def asides(folder: Path, name: str) -> list[Path]:
    return sorted(folder.glob(f"{name}.partial-*"))


class Tally:
    """What was seen, by command."""

    def __init__(self) -> None:
        self.by_command: dict[str, Counter[str]] = {}

    def add(self, command: str, what: str, n: int = 1) -> None:
        self.by_command.setdefault(command, Counter())[what] += n

    def total(self, what: str) -> int:
        return sum(each[what] for each in self.by_command.values())


def opens(folder: Path) -> bool:
    """Whether a folder is opened as a release."""
    from leeward.errors import LeewardError
    from leeward.release import Release

    try:
        Release.open(folder)
    except LeewardError:
        return False
    return True


def notes_are_whole(out: Path) -> bool:
    """Whether every file of annotated notes is there and has all notes."""
    import polars as pl

    counts = [
        pl.read_parquet(out / name).height
        for name in ("custody/table.parquet", "custody/numbers.parquet", "share/text.parquet")
    ]
    figures = json.loads((out / "custody" / "summary.json").read_text())
    return (
        counts == [60, 60, 60]
        and figures["notes"] == 60
        and "</html>" in (out / "custody" / "review.html").read_text()
    )


def parts_are_whole(out: Path) -> bool:
    """Whether the parts have every row of the source, and no patient twice."""
    import polars as pl

    parts = [pl.read_parquet(file) for file in sorted(out.iterdir())]
    source, found = pl.read_csv(out.parent / "events.csv", infer_schema=False), pl.concat(parts)
    people = sum(part["patient"].n_unique() for part in parts)
    return (
        found.sort(pl.all()).equals(source.sort(pl.all()))
        and people == source["patient"].n_unique()
        and len(parts) == 3
    )


def points_are_whole(out: Path) -> bool:
    """Whether table and page of an exploration have both points."""
    import polars as pl

    points = pl.read_parquet(out / "explore.parquet")
    page = (out / "explore.html").read_text()
    return points["k"].to_list() == [2, 3] and set(points["status"]) == {"verified"} and "</html>" in page


def dossier_is_whole(out: Path) -> bool:
    """Whether a dossier is that of its release, and its page is whole."""
    from leeward.runs.dossier import check

    return check(out, out.parent / "RELEASE").matches and "</html>" in (out / "dossier.html").read_text()


def index_is_whole(out: Path) -> bool:
    import leeward as lw

    return lw.audit(out).passed


WHOLE: dict[str, Callable[[Path], bool]] = {
    "index": index_is_whole,
    "notes": notes_are_whole,
    "split": parts_are_whole,
    "explore": points_are_whole,
    "dossier": dossier_is_whole,
}
"""What is asked of a folder under its own name; of a release of the other commands, that it verifies."""


def needed(command: str, folder: Path) -> dict[str, Any]:
    """What a release is checked against: a k-map speaks of a population, so source and population are given."""
    import leeward as lw

    if command != "censor":
        return {}
    return {"source": lw.read(folder / "sample.csv"), "population": lw.read(folder / "events.csv")}


def look(tally: Tally, command: str, folder: Path, name: str) -> None:
    """What a killed run left; what is there under its own name is taken away."""
    import leeward as lw

    for each in asides(folder, name):
        tally.add(command, "folders aside")
        if stat.S_IMODE(each.stat().st_mode) != 0o700:
            tally.add(command, "FOLDERS ASIDE OPEN TO OTHERS")
        if opens(each):
            tally.add(command, "FOLDERS ASIDE OPENED AS A RELEASE")
    out = folder / name
    if not out.exists() or (command == "explore" and not (out / "explore.html").exists()):
        return  # an exploration that was stopped has its points in its folder, and goes on
    tally.add(command, "whole under its name")
    try:
        whole = WHOLE[command](out) if command in WHOLE else lw.verify(out, **needed(command, folder)).passed
    except (lw.LeewardError, OSError):
        whole = False
    if not whole:
        tally.add(command, "UNVERIFIED UNDER ITS NAME")
    shutil.rmtree(out)


def kill_writers(
    tally: Tally, command: str, kills: int, folder: Path, draws: random.Random, end: float, signals: list[str]
) -> None:
    """Kills of a command that writes a folder, until so many or until `end`."""
    arguments, name = COMMANDS[command], f"OUT-{command}"
    length = whole_run(tally, command, folder, name)
    done = 0
    while done < kills and time.monotonic() < end:
        if done and done % EVERY == 0:
            whole_run(tally, command, folder, name)
        how = draws.choice(signals) if len(signals) > 1 else signals[0]
        before, process = asides(folder, name), begin(folder, *arguments, "-o", name)
        if ended := kill_at(process, draws.uniform(0.02, length), how):
            tally.add(command, "kills")
            tally.add(command, ended)
            done += 1
            if how != "KILL" and set(asides(folder, name)) - set(before):
                tally.add(command, "FOLDERS LEFT ASIDE BY A RUN THAT WAS ASKED TO END")
        look(tally, command, folder, name)
    whole_run(tally, command, folder, name)


def whole_run(tally: Tally, command: str, folder: Path, name: str) -> float:
    """A run to its end, after which nothing is aside; its seconds."""
    begun = time.monotonic()
    status = begin(folder, *COMMANDS[command], "-o", name).wait()
    length = time.monotonic() - begun
    if status:
        tally.add(command, f"WHOLE RUNS THAT FAILED ({status})")
    left = asides(folder, name)
    if left:
        tally.add(command, "FOLDERS LEFT AFTER THE NEXT RUN", len(left))
    tally.add(command, "whole runs")
    look(tally, command, folder, name)
    return length


def kill_portals(
    tally: Tally, kills: int, folder: Path, draws: random.Random, end: float, signals: list[str]
) -> None:
    """Kills of `serve` while it starts in a new folder, or once it answers; each is then started again there."""
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        port = asked.getsockname()[1]
    length = 0.0
    for number in range(kills + 1):
        if time.monotonic() >= end:
            return
        place = f"PORTAL-{number}"
        arguments = ["serve", "--folder", place, "--port", str(port)]
        how = draws.choice(signals) if len(signals) > 1 else signals[0]
        if length:
            process = begin(folder, *arguments)
            ended = kill_at(process, draws.uniform(0.02, 1.5 * length), how)
            tally.add("serve", "kills" if ended else "PORTALS THAT ENDED BY THEMSELVES")
            tally.add("serve", ended or f"by itself: ended with {process.returncode}")
        begun = time.monotonic()
        again = begin(folder, *arguments)
        answers = wait_for_portal(port, again)
        length = time.monotonic() - begun
        tally.add("serve", "started again and answered" if answers else "PORTALS THAT DO NOT START AGAIN")
        kill_at(again, 0, "KILL")
        shutil.rmtree(folder / place, ignore_errors=True)


def wait_for_portal(port: int, process: subprocess.Popen[bytes]) -> bool:
    """Whether a portal says that it is ready before it ends, within two minutes."""
    begun = time.monotonic()
    while process.poll() is None and time.monotonic() - begun < 120:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready", timeout=5) as reply:
                return bool(reply.status == 200)
        except OSError:
            time.sleep(0.05)
    return False


def kill_queries(tally: Tally, kills: int, folder: Path, draws: random.Random, end: float) -> None:
    """Kills of `query`, each with a question of its own, asked again afterwards."""
    import leeward as lw

    epsilon_total = PRICE * 3 * kills
    begin(folder, *COMMANDS["index"][:-1], f"{epsilon_total:.4f}", "-o", "INDEX").wait()
    index, terms = str(folder / "INDEX"), [f"{a} & {b}" for a in CODES[:5] for b in CODES[:5] if a < b]
    length, number, done = 0.0, 0, 0
    shown: dict[tuple[str, str], Any] = {}
    while done < kills and time.monotonic() < end:
        question = (terms[number % len(terms)], f"{PRICE + number * 1e-6:.6f}")
        number += 1
        log = folder / "shown"
        with log.open("wb") as out:
            begun = time.monotonic()
            process = begin(
                folder, "query", "INDEX", question[0], "--epsilon", question[1], "--yes", "--json", out=out
            )
            killed = bool(kill_at(process, draws.uniform(0.02, length) if length else 600))
        if not length:
            length = time.monotonic() - begun
            continue
        done += killed
        tally.add("query", "kills", int(killed))
        said = log.read_text()
        spent = lw.budget(index)["spent"]
        try:
            shown[question] = [json.loads(said)["answer"]] if said else None
        except (ValueError, KeyError):
            shown[question] = None
        if shown[question] is not None:
            tally.add("query", "answers shown")
        audit = lw.audit(index)
        if not audit.passed:
            tally.add("query", "AUDITS THAT FAILED")
        again = lw.query(index, question[0], epsilon=question[1])
        later = lw.budget(index)["spent"]
        if later == spent:
            tally.add("query", "charged before the kill")
        elif abs(later - spent - float(question[1])) > 1e-9:
            tally.add("query", "WRONG PRICES")
        if shown[question] is not None and list(again.values) != shown[question]:
            tally.add("query", "OTHER ANSWERS THAN SHOWN")
        if shown[question] is not None and later != spent:
            tally.add("query", "ANSWERS SHOWN AND NOT CHARGED")
    with sqlite3.connect(f"file:{index}/ledger.db?mode=ro", uri=True) as books:
        bodies = [json.loads(body) for (body,) in books.execute("SELECT body FROM log")]
    charges = Counter(each["key"] for each in bodies if each["event"] == "charged")
    tally.add("query", "charges in the log", charges.total())
    tally.add("query", "QUESTIONS CHARGED TWICE", sum(n - 1 for n in charges.values()))
    if len(charges) != number:
        tally.add("query", "CHARGES WITHOUT A QUESTION", abs(len(charges) - number))
    prices = sum(PRICE + i * 1e-6 for i in range(number))
    if abs(lw.budget(index)["spent"] - prices) > 1e-6:
        tally.add("query", "WRONG SUM OF CHARGES")


def race(tally: Tally, folder: Path, rounds: int) -> None:
    """Two `index` runs at once on one name: one index, one refusal, nothing aside."""
    import leeward as lw

    for n in range(rounds):
        name = f"RACE-{n}"
        both = [begin(folder, *COMMANDS["index"], "-o", name) for _ in range(2)]
        statuses = sorted(each.wait() for each in both)
        tally.add("two index runs", f"ended with {statuses}")
        if not lw.audit(folder / name).passed or asides(folder, name):
            tally.add("two index runs", "RACES LOST")
        shutil.rmtree(folder / name)


def main() -> None:
    """Kill, look, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default=",".join(SHARES))
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="end after so many, with fewer kills"
    )
    parser.add_argument("--races", type=int, default=10)
    parser.add_argument("--signals", default="KILL", help="which a run is ended with, drawn each time")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell lets what it runs in the background ignore it
    names, signals, shares = given.only.split(","), given.signals.split(","), SHARES | LATER
    draws, tally, begun = random.Random(given.seed), Tally(), time.monotonic()
    whole = sum(shares[name] for name in names)
    with tempfile.TemporaryDirectory(prefix="leeward-kills-") as place:
        folder = Path(place)
        os.environ["LEEWARD_STATE"] = str(folder / "state")
        make_data(folder, given.seed)
        if "dossier" in names:
            begin(folder, *COMMANDS["disassociate"], "-o", "RELEASE").wait()
        end = begun
        for name in names:
            kills = -(-given.kills * shares[name] // whole)
            end += given.seconds * shares[name] / whole
            if name == "query":
                kill_queries(tally, kills, folder, draws, end)
            elif name == "serve":
                kill_portals(tally, kills, folder, draws, end, signals)
            else:
                kill_writers(tally, name, kills, folder, draws, end, signals)
            print(name, dict(tally.by_command[name]), flush=True)
        race(tally, folder, given.races)
    wrong = {
        what: n
        for each in tally.by_command.values()
        for what, n in each.items()
        if what.isupper() or what.split(" (")[0].isupper()
    }
    found = {"kills": tally.total("kills"), "seconds": round(time.monotonic() - begun), "seed": given.seed,
             "must be 0": sum(wrong.values()), "wrong": wrong, "by command": tally.by_command}  # fmt: skip
    print(json.dumps(found, indent=1))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))
    sys.exit(1 if wrong and any(wrong.values()) else 0)


if __name__ == "__main__":
    main()
