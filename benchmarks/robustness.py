"""Each finding of the reliability and security review, reproduced on a tree from outside, as commands.

    python benchmarks/robustness.py [--tree FOLDER] [--only 1,13b] [--json FILE]

`--tree` is another checkout of the repository (its `src` is used), so that before and after are the same script. Every
reproduction runs in a folder of its own that goes away; its outcome is one line: the exit status and what was said or
left. Server processes and full disks are in tests/queries and tests/release; clients and kills in `ledger_soak.py` and
`kills.py`.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import random
import re
import resource
import shutil
import socket
import sqlite3
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

TREE = Path(__file__).resolve().parents[1]
START = "import sys; from leeward.cli.main import main; main(sys.argv[1:])"
CODES = ["250.00", "401.9", "272.4", "414.01", "428.0"]


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    status: int | str
    said: str
    out: str
    seconds: float

    def __str__(self) -> str:
        return (
            f"exit {self.status}, {self.seconds:.0f} s: {self.said[:150]}"
            if self.said
            else f"exit {self.status}"
        )


class Place:
    """A folder, and the tree's command line in it."""

    def __init__(self, folder: Path, tree: Path) -> None:
        self.folder, self.tree = folder, tree
        self.env = {
            **os.environ,
            "PYTHONPATH": str(tree / "src"),
            "LEEWARD_STATE": str(folder / "state"),
            "LEEWARD_HOME": str(folder / "home"),
        }

    def run(
        self,
        *arguments: object,
        timeout: float = 240,
        before: Callable[[], None] | None = None,
        **environment: str,
    ) -> Ran:
        """A command of Leeward's; its last words."""
        begun = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-c", START, *map(str, arguments)], cwd=self.folder, env={**self.env, **environment},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", preexec_fn=before,
        )  # fmt: skip
        try:
            out, err = process.communicate(timeout=timeout)
            status: int | str = process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            status = f"none after {timeout:.0f} s"
        lines = [line for line in err.splitlines() if line.strip()]
        said = lines[-1] if lines else ""
        return Ran(status, said.replace(str(self.folder) + "/", ""), out, time.monotonic() - begun)

    def python(self, code: str, *arguments: object, timeout: float = 240) -> Ran:
        """A program with the tree's library."""
        begun = time.monotonic()
        ran = subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)], cwd=self.folder, env=self.env, timeout=timeout,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        last = ran.stderr.strip().splitlines()[-1:] or [""]
        return Ran(ran.returncode, last[0], ran.stdout.strip(), time.monotonic() - begun)

    def left(self) -> list[str]:
        """Folders that are aside."""
        return sorted(path.name for path in self.folder.glob("*.partial-*"))

    def events(self, patients: int = 300, codes: Sequence[str] = CODES, name: str = "E.csv") -> Path:
        """A file of events: some codes a patient."""
        made = random.Random(15)
        with (self.folder / name).open("w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file)
            rows.writerow(["patient", "code"])
            for patient in range(patients):
                rows.writerows([patient, code] for code in made.sample(list(codes), made.randint(1, 4)))
        return self.folder / name

    def index(self, name: str = "I", *flags: object, patients: int = 300, epsilon: object = 1) -> Ran:
        """An index of such events."""
        file = self.events(patients) if not (self.folder / "E.csv").exists() else self.folder / "E.csv"
        return self.run("index", file, "--terms", "icd9", "--epsilon-total", epsilon, "-o", name, *flags)

    def ask(
        self, index: str = "I", epsilon: object = 1, *flags: object, term: str = "250.00", **rest: Any
    ) -> Ran:
        """A question."""
        return self.run("query", index, term, "--epsilon", epsilon, "--yes", *flags, **rest)

    def ask_old(
        self, index: str = "I", epsilon: object = 1, *flags: object, term: str = "250.00", **rest: Any
    ) -> Ran:
        """A question as the tree before had it."""
        return self.run("query", index, term, "--epsilon", epsilon, *flags, **rest)


def question(place: Place, *arguments: Any, **rest: Any) -> Ran:
    """`--yes` where the tree knows it."""
    found = place.ask(*arguments, **rest)
    return place.ask_old(*arguments, **rest) if "No such option" in found.said else found


Trial = Callable[[Place], str]
TRIALS: dict[str, tuple[str, Trial]] = {}


def trial(number: str, words: str) -> Callable[[Trial], Trial]:
    """Add a reproduction."""

    def add(function: Trial) -> Trial:
        TRIALS[number] = (words, function)
        return function

    return add


def protect(place: Place, file: Path, *flags: object, **rest: Any) -> Ran:
    return place.run("disassociate", file, "--k", 3, "--m", 2, "-o", "OUT", *flags, **rest)


@trial("1", "a control character in one code")
def control_character(place: Place) -> str:
    found = []
    for sign in ("\x00", "\x01", "\x1b", "\ufffe"):
        ran = protect(place, place.events(codes=["25" + sign + "0", *CODES]), "--vocabulary", "none")
        found.append(f"U+{ord(sign):04X}: exit {ran.status}, {len(place.left())} left")
    return "; ".join(found)


@trial("2", "surrogates: the recipient gets the list of made-up names")
def surrogates(place: Place) -> str:
    (place.folder / "notes.csv").write_text(
        'patient,text\n1,"The patient Mr. John Smith was seen by Dr. Brown on 2009-04-03 and has a sore throat."\n'
    )
    ran = place.run("notes", "annotate", "notes.csv", "--text", "surrogates", "--key", "key", "-o", "OUT")
    share = sorted(path.name for path in (place.folder / "OUT" / "share").rglob("replacements*"))
    return f"exit {ran.status}; in share/: {share or 'none'}"


@trial("3", "an older copy of the ledger put back; accounts edited; the chain cut")
def old_ledger(place: Place) -> str:
    place.index()
    ledger = place.folder / "I" / "ledger.db"
    before = ledger.read_bytes()
    first = question(place)
    ledger.write_bytes(before)
    restored = question(place, term="401.9")
    shutil.rmtree(place.folder / "I")
    shutil.rmtree(place.folder / "state", ignore_errors=True)
    place.index()
    half = question(place, "I", 0.5)
    with sqlite3.connect(ledger) as books:
        books.execute("UPDATE accounts SET spent = 0")
    edited = question(place, "I", 0.5, term="401.9")
    with sqlite3.connect(ledger) as books:
        for (name,) in books.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            books.execute(f'DROP TRIGGER "{name}"')
        books.execute("UPDATE accounts SET spent = 500000 WHERE spent = 0")
        books.execute("DELETE FROM log WHERE rowid = (SELECT max(rowid) FROM log)")
    cut = question(place, "I", 0.1, term="272.4")
    return f"paid: exit {first.status}; restored: {restored}; paid: exit {half.status}; edited: {edited}; cut: {cut}"


@trial("4", "indexed again: the same rows, shuffled, less the last patient")
def indexed_again(place: Place) -> str:
    place.index("I", epsilon=1)
    again = place.run("index", "E.csv", "--terms", "icd9", "--epsilon-total", 1, "-o", "J")
    lines = (place.folder / "E.csv").read_text().splitlines()
    random.Random(1).shuffle(body := lines[1:])
    (place.folder / "S.csv").write_text("\n".join([lines[0], *body]) + "\n")
    shuffled = place.run("index", "S.csv", "--terms", "icd9", "--epsilon-total", 1, "-o", "K")
    (place.folder / "L.csv").write_text("\n".join(lines[:-1]) + "\n")
    less = place.run("index", "L.csv", "--terms", "icd9", "--epsilon-total", 1, "-o", "L")
    spent = [question(place, name, 0.9, term=term).status for name, term in (("I", "250.00"), ("J", "401.9"))]
    return f"same {again}; shuffled {shuffled}; less one row {less}; ε 0.9 asked of the first and the second: {spent}"


def _parquet(place: Place, **columns: Any) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), place.folder / "E.parquet")
    return place.folder / "E.parquet"


@trial("5", "decimal256 identifiers")
def decimals(place: Place) -> str:
    import pyarrow as pa

    number = pa.array([Decimal(i) for i in range(9)], pa.decimal256(50, 0))
    return str(protect(place, _parquet(place, patient=number, code=["250.00"] * 9)))


@trial("6", "little address space (ulimit -v), 2,000 patients")
def address_space(place: Place) -> str:
    file = place.events(2000)
    found = []
    for gigabytes in (1.5, 3, 5):
        limit = int(gigabytes * 2**30)
        ran = protect(
            place, file, before=lambda limit=limit: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        )
        found.append(f"{gigabytes} GB: exit {ran.status} ({ran.said[:60]}), {len(place.left())} left")
        shutil.rmtree(place.folder / "OUT", ignore_errors=True)
    return "; ".join(found)


class Server:
    """Accepts connections; says nothing, or resets them."""

    def __init__(self, reset: bool) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.reset = reset
        self.open: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.open.append(connection)
            if self.reset:
                connection.recv(8)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.close()


@trial("7", "a PostgreSQL that accepts and is silent")
def silent(place: Place) -> str:
    place.index()
    return str(
        question(
            place, "I", 0.1, "--ledger", f"postgresql://u:p@127.0.0.1:{Server(False).port}/d", timeout=75
        )
    )


@trial("8", "a connection that is reset")
def reset(place: Place) -> str:
    place.index()
    return str(
        question(place, "I", 0.1, "--ledger", f"postgresql://u:p@127.0.0.1:{Server(True).port}/d", timeout=90)
    )


@trial("9", "100 clients, 50 connections")
def many_clients(place: Place) -> str:
    script = Path(__file__).with_name("ledger_soak.py")
    ran = subprocess.run(
        [sys.executable, str(script), "--kills", "0"],
        env=place.env,
        capture_output=True,
        text=True,
        check=False,
    )
    found = dict(
        re.findall(r'"(questions without an answer|overspent|paid twice|charged)": (\d+)', ran.stdout)
    )
    return f"exit {ran.returncode}; {found}; {(ran.stdout.strip().splitlines() or [''])[-1]}"


@trial("10", "a password in the options of the URL, in messages")
def password(place: Place) -> str:
    place.index()
    url = "postgresql://u@127.0.0.1:1/d?password=SECRET"
    found = [question(place, "I", 0.1, "--ledger", url), place.run("budget", "I", "--ledger", url)]
    return "; ".join(
        f"exit {r.status}, password {'printed' if 'SECRET' in r.said + r.out else 'not printed'}"
        for r in found
    )


def _kill_when(place: Place, seen: Callable[[], bool], *arguments: object) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", START, *map(str, arguments)], cwd=place.folder, env=place.env,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while process.poll() is None and not seen():
        time.sleep(0.001)
    process.kill()
    process.wait()


@trial("11", "a killed run's folder")
def aside(place: Place) -> str:
    file = place.events(2000)
    _kill_when(
        place,
        lambda: any(place.folder.glob("OUT.partial-*/share/data/*")),
        "disassociate",
        file,
        "--k",
        3,
        "--m",
        2,
        "-o",
        "OUT",
    )
    (left,) = place.left() or ["none"]
    if left == "none":
        return "nothing was left"
    mode = stat.S_IMODE((place.folder / left).stat().st_mode)
    opened = place.python(
        "import leeward as lw, sys; from leeward.release import Release; Release.open(sys.argv[1])", left
    )
    refused = place.run("verify", left)
    protect(place, file)
    return f"mode {mode:04o}; opening: exit {opened.status}; verify: exit {refused.status}; left after the next run: {len(place.left())}"  # noqa: E501


@trial("12", "one bit flipped in an index file")
def damaged_index(place: Place) -> str:
    place.index(epsilon=5)
    found = []
    for name in ("bitmaps.bin", "vocabulary", "directory"):
        for file in sorted((place.folder / "I").glob(f"{name}*")):
            whole = file.read_bytes()
            damaged = bytearray(whole)
            damaged[len(damaged) // 2] ^= 16
            file.write_bytes(damaged)
            ran = question(place, "I", 0.1, term="272.4")
            file.write_bytes(whole)
            found.append(f"{file.name}: exit {ran.status}")
    budget = place.run("budget", "I", "--json")
    spent = json.loads(budget.out).get("spent") if budget.status == 0 else budget
    return f"{'; '.join(found)}; charged for them: {spent}"


@trial("13a", "a table whose patient column is named, beside another that is called patient")
def two_patients(place: Place) -> str:
    (place.folder / "t.csv").write_text(
        "id,patient,x\n" + "".join(f"{i},{i % 3},{i % 7}\n" for i in range(60))
    )
    return str(
        place.run(
            "k-anonymize" if _has(place, "k-anonymize") else "condense",
            "t.csv",
            "--patient",
            "id",
            "--k",
            3,
            "-o",
            "OUT",
        )
    )


def _has(place: Place, command: str) -> bool:
    return place.run(command, "--help").status == 0


@trial("13b", "Parquet with a map, list or struct as code")
def nested(place: Place) -> str:
    import pyarrow as pa

    kinds = {
        "list": pa.array([["a"]] * 9),
        "struct": pa.array([{"a": 1}] * 9),
        "map": pa.array([[("a", 1)]] * 9, pa.map_(pa.string(), pa.int64())),
    }
    return "; ".join(
        f"{name}: {protect(place, _parquet(place, patient=list(range(9)), code=kind))}"
        for name, kind in kinds.items()
    )


@trial("13c", "an Arabic digit in a number column of a table")
def arabic(place: Place) -> str:
    (place.folder / "t.csv").write_text("x,y\n" + "".join(f"{i % 7},{i}\n" for i in range(60)) + "\u0661,5\n")
    return str(place.run("condense", "t.csv", "--k", 3, "-o", "OUT"))


@trial("13d", "age as a list")
def list_age(place: Place) -> str:
    file = _parquet(place, patient=list(range(9)), code=["250.00"] * 9, age=[[1]] * 9)
    return str(protect(place, file, "--patient", "patient", "--code", "code", "--age", "age"))


@trial("13e", "a path of 5,000 bytes")
def long_path(place: Place) -> str:
    return (
        f"source: {protect(place, Path('x' * 5000))}; spec: {place.run('protect', 'x' * 5000, '-o', 'OUT')}"
    )


@trial("13f", "damaged Parquet whose dictionary indexes are out of bounds")
def damaged_parquet(place: Place) -> str:
    code = (
        "import pyarrow as pa, leeward as lw\n"
        "bad = pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int32()), pa.array(['250.00']), safe=False)\n"
        "try:\n    lw.read(pa.table({'patient': [1, 2], 'code': bad}))\n"
        "except BaseException as error:\n    print(type(error).__name__)\n"
    )
    ran = place.python(code)
    return ran.out or str(ran)


@trial("13g", "YAML nested 2,000 deep; !!float x; a plan with a date; m of 20 digits")
def yaml(place: Place) -> str:
    place.events()
    spec = "source: {path: E.csv}\nmethod: {name: disassociation, k: 3, m: %s}\n"
    texts = {
        "deep": "{" * 2000,
        "float": spec % "!!float x",
        "m": spec % ("9" * 20),
        "plan": "source: {path: E.csv, format: table}\nmethod: {name: condensation, k: 3}\nplan: [{linear: {response: 2020-01-01, covariates: [x]}}]\n",  # noqa: E501
        "plan of true": "source: {path: E.csv, format: table}\nmethod: {name: condensation, k: 3}\nplan: [{linear: {response: patient, covariates: true}}]\n",  # noqa: E501
    }
    found = []
    for name, text in texts.items():
        (place.folder / "s.yaml").write_text(text)
        ran = place.run("protect", "s.yaml", "-o", "OUT")
        shutil.rmtree(place.folder / "OUT", ignore_errors=True)
        found.append(f"{name}: exit {ran.status}")
    return "; ".join(found)


@trial("13h", "a URL with a bare @ in the password; a port that is no number")
def urls(place: Place) -> str:
    place.index()
    return "; ".join(
        f"exit {ran.status}"
        for ran in (
            place.run("profile", "postgresql://u:p@ss@host/db#t"),
            question(place, "I", 0.1, "--ledger", "postgresql://u@h:port/db"),
        )
    )


@trial("13i", "two `index` runs at once on one output")
def two_indexes(place: Place) -> str:
    file = place.events(3000)
    args = ["index", str(file), "--terms", "icd9", "--epsilon-total", "1", "-o", "I"]
    found: list[Ran] = []
    threads = [threading.Thread(target=lambda: found.append(place.run(*args))) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    ran = question(place, "I", 0.1)
    return f"exits {sorted(str(r.status) for r in found)}; asked: exit {ran.status}; {len(place.left())} left"


@trial("14", "a FIFO without a writer")
def fifo(place: Place) -> str:
    os.mkfifo(place.folder / "f.csv")
    return str(place.run("profile", "f.csv", timeout=30))


@trial("15", "codes that spreadsheets run, --format csv")
def formulas(place: Place) -> str:
    ran = protect(
        place,
        place.events(codes=["=cmd|' /C calc'!A0", "@SUM(1)", "+1+1", "a", "b"]),
        "--vocabulary",
        "none",
        "--format",
        "csv",
    )
    written = (
        [path for path in (place.folder / "OUT").rglob("*.csv") if "@SUM" in path.read_text(errors="replace")]
        if ran.status == 0
        else []
    )
    return f"{ran}; formulas in {len(written)} files"


@trial("16", "an allotment of another name")
def allotments(place: Place) -> str:
    place.index(epsilon=1)
    place.run("budget", "I", "--user", "ann", "--allot", 0.1)
    helped = place.run("query", "--help").out
    bob = question(place, "I", 0.5, "--user", "bob")
    return f"bob: {bob}; said in --help: {'can also read the index' in ' '.join(helped.split())}"


@trial("17", "m: 1000 on 120 patients with one code each")
def large_m(place: Place) -> str:
    (place.folder / "o.csv").write_text(
        "patient,code\n" + "".join(f"{i},{CODES[i % 5]}\n" for i in range(120))
    )
    plain = place.run("disassociate", "o.csv", "--k", 3, "--m", 2, "-o", "P")
    ran = place.run("disassociate", "o.csv", "--k", 3, "--m", 1000, "-o", "OUT")
    return f"exit {ran.status}, {ran.seconds:.1f} s (m = 2: {plain.seconds:.1f} s); {' '.join(re.findall('Note: [^.]*m [^.]*[.]', ran.out))[:120]}"  # noqa: E501


@trial("18", "control sequences of column names on the terminal")
def terminal(place: Place) -> str:
    (place.folder / "c.csv").write_text("\x1b]0;owned\x07,code\n1,250.00\n")
    ran = place.run("profile", "c.csv", "--patient", "nobody")
    return f"exit {ran.status}; {'raw' if chr(27) in ran.said else 'escaped'}"


@trial("19", "an entry of 1999 at the end of the log, with its right hash")
def old_entry(place: Place) -> str:
    place.index()
    paid = question(place, "I", 0.1)
    with sqlite3.connect(place.folder / "I" / "ledger.db") as books:
        family, number, head, body = books.execute(
            "SELECT family, number, hash, body FROM log ORDER BY number DESC LIMIT 1"
        ).fetchone()
        refused = {"event": "refused", "data_set": family, "user": "ann", "questions": 1, "epsilon": 1}
        number, time, body = number + 1, "1999-01-01T00:00:00+00:00", json.dumps(refused)
        link = hashlib.sha256("\n".join((head, str(number), time, body)).encode()).hexdigest()
        books.execute("INSERT INTO log VALUES (?, ?, ?, ?, ?)", (family, number, time, body, link))
        books.execute("UPDATE families SET entries = ?, head = ?", (number, link))
    audit, asked = place.run("audit", "I"), question(place, "I", 0.1, term="401.9")
    return f"paid: exit {paid.status}; audit: {audit}; asked: {asked}"


@trial("20", "modes of a ledger by URL, custody and index under umask 022 and 000")
def modes(place: Place) -> str:
    file = place.events()
    found = []
    for mask in (0o022, 0o000):
        for name in ("I", "OUT", "l.db"):
            target = place.folder / name
            shutil.rmtree(target, ignore_errors=True)
            target.unlink(missing_ok=True)
        shutil.rmtree(place.folder / "state", ignore_errors=True)
        place.run(
            "index",
            file,
            "--terms",
            "icd9",
            "--epsilon-total",
            1,
            "-o",
            "I",
            "--ledger",
            f"sqlite:///{place.folder}/l.db",
            before=lambda mask=mask: os.umask(mask),
        )
        protect(place, file, before=lambda mask=mask: os.umask(mask))
        open_files = [
            path for root in ("I", "OUT/custody") for path in (place.folder / root).rglob("*")
            if path.is_file() and stat.S_IMODE(path.stat().st_mode) & 0o077
        ]  # fmt: skip
        ledger = stat.S_IMODE((place.folder / "l.db").stat().st_mode)
        found.append(
            f"umask {mask:03o}: ledger {ledger:04o}, {len(open_files)} files of custody and index open to others"
        )
    return "; ".join(found)


@trial("21", "Content-Security-Policy in report.html and review.html")
def policy(place: Place) -> str:
    protect(place, place.events())
    (place.folder / "notes.csv").write_text('patient,text\n1,"Mr. John Smith has a sore throat."\n')
    place.run("notes", "annotate", "notes.csv", "-o", "N")
    pages = [place.folder / "OUT" / "custody" / "report.html", place.folder / "N" / "custody" / "review.html"]
    return "; ".join(
        f"{page.name}: {'yes' if page.exists() and 'Content-Security-Policy' in page.read_text() else 'no'}"
        for page in pages
    )


@trial("22", "`index` on a full disk")
def full_disk(place: Place) -> str:
    file = place.events(20_000)
    disk = place.folder / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=False, capture_output=True
    )
    if mounted.returncode:
        return "no disk could be mounted here"
    try:
        ran = place.run("index", file, "--terms", "icd9", "--epsilon-total", 1, "-o", "disk/I")
        released = place.run("disassociate", file, "--k", 3, "--m", 2, "-o", "disk/OUT")
        return f"index {ran}; release {released}; left: {len(list(disk.iterdir()))}"
    finally:
        subprocess.run(["umount", disk], check=False)


@trial("U1", "100 patients with 15 codes each, default measures")
def small_cohort(place: Place) -> str:
    made = random.Random(3)
    codes = [f"{n}" for n in range(200, 900)]
    (place.folder / "E.csv").write_text(
        "patient,code\n"
        + "".join(f"{p},{c}\n" for p in range(100) for c in made.sample(codes[: 100 if p % 2 else 700], 15))
    )
    return "; ".join(
        f"{command}: exit {ran.status}, {ran.seconds:.0f} s {ran.said[:80]}"
        for command, flags in (
            ("disassociate", ["--m", 2]),
            ("constrain", ["--m", 2, "--policy", "hierarchy:1", "--vocabulary", "icd9"]),
        )
        for ran in [place.run(command, "E.csv", "--k", 3, *flags, "-o", command)]
    )


@trial("U2", "apriori on 58,460 patients × 5,815 codes that become one label")
def one_label(place: Place) -> str:
    made = random.Random(2)
    codes = [f"C{n:04d}" for n in range(5815)]
    with (place.folder / "E.csv").open("w") as file:
        file.write("patient,code\n")
        for patient in range(58_460):
            # every code occurs, none in k patients together with others: all meet in the root
            file.writelines(
                f"{patient},{code}\n" for code in {codes[patient % 5815], *made.choices(codes, k=12)}
            )
    with (place.folder / "h.csv").open("w") as file:
        file.write("node,parent\nall,\n" + "".join(f"{code},all\n" for code in codes))
    ran = place.run(
        "constrain",
        "E.csv",
        "--k",
        50,
        "--m",
        2,
        "--algorithm",
        "apriori",
        "--vocabulary",
        "h.csv",
        "-o",
        "OUT",
        timeout=580,
    )
    size = (
        sum(path.stat().st_size for path in (place.folder / "OUT" / "share").rglob("*"))
        if ran.status == 0
        else 0
    )
    return f"{ran}; share {size / 1e6:.1f} MB"


@trial("U6", "`rare: withhold` names the coefficients that it takes away")
def withheld(place: Place) -> str:
    made = random.Random(4)
    (place.folder / "t.csv").write_text(
        "y,x,g\n"
        + "".join(
            f"{made.random():.3f},{made.random():.3f},{'rare' if i < 2 else made.choice('abc')}\n"
            for i in range(400)
        )
    )
    (place.folder / "s.yaml").write_text(
        "source: {path: t.csv, format: table}\nmethod: {name: condensation, k: 10, rare: withhold}\n"
        "plan: [{linear: {response: y, covariates: [x, g]}}]\n"
    )
    ran = place.run("protect", "s.yaml", "-o", "OUT")
    notes = [line for line in ran.out.splitlines() if line.startswith("Note")]
    return f"exit {ran.status} {ran.said[:80]}; {' '.join(notes)[:200]}"


@trial("U10", "blanks around the levels of a table")
def blanks(place: Place) -> str:
    (place.folder / "t.csv").write_text(
        "x,g\n" + "".join(f"{i % 9},{'a' if i % 2 else ' a'}\n" for i in range(80))
    )
    code = "import leeward as lw; c = lw.read('t.csv', format='table'); print([n.message for n in c.notices])"
    return place.python(code).out[:200]


@trial("U11", "a visit without any code")
def no_code(place: Place) -> str:
    (place.folder / "v.csv").write_text(
        "patient,visit,code\n" + "".join(f"{i},{i},250.00\n" for i in range(20)) + "20,99,\n"
    )
    code = "import leeward as lw; c = lw.read('v.csv', columns={'patient': 'patient', 'visit': 'visit', 'code': 'code'}); print([n.message for n in c.notices])"  # noqa: E501
    return place.python(code).out[:240]


@trial("U12", "a glob: files with digests in custody")
def glob(place: Place) -> str:
    for i in range(3):
        place.events(100, name=f"part{i}.csv")
    ran = protect(place, Path("part*.csv"))
    text = (
        "".join(path.read_text(errors="replace") for path in (place.folder / "OUT" / "custody").glob("*.*"))
        if ran.status == 0
        else ""
    )
    return f"exit {ran.status} {ran.said[:80]}; part1.csv named: {'part1.csv' in text}; digest: {bool(re.search('[0-9a-f]{64}', text))}"  # noqa: E501


@trial("U13", "empty trailing columns of wide form")
def wide(place: Place) -> str:
    (place.folder / "w.csv").write_text(
        "patient,c1,c2,c3\n" + "".join(f"{i},250.00,{'401.9' if i % 2 else ''},\n" for i in range(100))
    )
    code = "import leeward as lw; c = lw.read('w.csv', columns={'patient': 'patient', 'code': ['c1', 'c2', 'c3']}); print([(n.kind, n.count) for n in c.notices])"  # noqa: E501
    return place.python(code).out[:200]


def main() -> None:
    """Run and print, a line each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tree", type=Path, default=TREE)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    chosen = given.only.split(",") if given.only else list(TRIALS)
    found = {}
    for number in chosen:
        words, function = TRIALS[number]
        with tempfile.TemporaryDirectory(prefix="leeward-robust-") as folder:
            try:
                outcome = function(Place(Path(folder), given.tree.absolute()))
            except Exception as error:  # of the script, not of Leeward
                outcome = f"not run: {type(error).__name__}: {error}"
        found[number] = [words, outcome]
        print(f"{number} {words}\n    {outcome}", flush=True)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
