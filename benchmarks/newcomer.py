"""What three newcomers met (a data manager, a biostatistician, a recipient), each finding reproduced by its commands.

    python benchmarks/newcomer.py --data DIR [--only 1,8] [--json FILE]

Each reproduction runs in a folder of its own; its outcome is one line, quoted in docs/studies/newcomer.md,
after the commit that is run. Sources of hospitals by every method (13, 14) are in `sources.py`.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import commit
from robustness import TREE, Place, Ran
from sources import MIXED, mixed

UCI = ("--patient", "patient_nbr", "--code", "diag_1,diag_2,diag_3", "--missing", "?")
TRIALS: dict[str, Callable[[Newcomer], str]] = {}


class Newcomer(Place):
    """A place with the public data."""

    def __init__(self, folder: Path, data: Path) -> None:
        super().__init__(folder, TREE)
        self.data = data

    @property
    def uci(self) -> tuple[object, ...]:
        """UCI and its columns."""
        return self.data / "uci-diabetes130/diabetic_data.csv.gz", *UCI

    def write(self, name: str, text: str) -> str:
        """A file."""
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    def released(self, *arguments: object) -> dict[str, Any]:
        """The figures of a release."""
        ran = self.run(*arguments, "-o", "OUT", "--json", timeout=1200)
        if ran.status != 0:
            raise RuntimeError(ran.said)
        found: dict[str, Any] = json.loads(ran.out)
        return found

    def visits(self) -> str:
        """A small master: 300 patients."""
        self.events(300)
        self.run("visits", "E.csv", "--vocabulary", "icd9", "--merge-visits", "--k", 5, "-o", "MASTER")
        return "MASTER"


def trial(number: str) -> Callable[[Callable[[Newcomer], str]], Callable[[Newcomer], str]]:
    """Register a reproduction."""

    def put(function: Callable[[Newcomer], str]) -> Callable[[Newcomer], str]:
        TRIALS[number] = function
        return function

    return put


def costs(found: dict[str, Any]) -> str:
    """What the end of a command says it cost."""
    summary = found["summary"]
    said = [f"{each['value']} {each['what']}" for each in summary["costs"]]
    return "; ".join(
        [*said, *([f"Little is left: {summary['little_left']}"] if summary["little_left"] else [])]
    )


def said(ran: Ran, *words: str) -> str:
    """The status, and the lines with one of the words."""
    lines = [line.strip() for line in (ran.out + "\n" + ran.said).splitlines()]
    kept = [line for line in lines if any(word in line for word in words)] if words else [ran.said]
    return f"exit {ran.status}: {' / '.join(dict.fromkeys(kept))[:420]}"


@trial("1")
def one(place: Newcomer) -> str:
    master = place.visits()
    place.write("one.csv", "patient\n7\n")
    few = place.run("cohort", master, "--select", "one.csv", "-o", "Y")
    place.write("few.csv", "pid\n" + "".join(f"{n}\n" for n in range(30)))
    some = place.run("cohort", master, "--select", "few.csv", "--patient", "pid", "-o", "Y")
    return f"1 patient: {said(few)}; 30 patients: {said(some)}"


@trial("2")
def cost(place: Newcomer) -> str:
    first = place.released("constrain", *place.uci, "--k", 5, "--m", 2, "--policy", "hierarchy:1")
    place.run("show", "OUT")
    (place.folder / "OUT").rename(place.folder / "C")
    second = place.released("censor", *place.uci, "--population", place.uci[0], "--k", 5, "--cap", 3)
    return f"constrain: {costs(first)}. censor: {costs(second)}"


@trial("3")
def swallowed(place: Newcomer) -> str:
    file = place.data / "pyphewas-synthetic/icds.csv.gz"
    columns = ("--patient", "id", "--code", "ICD_CODE", "--age", "AgeAtICD")
    return said(place.run("trajectories", file, *columns, "--vocabulary", "icd9", "--k", 5, "-o", "X"))


@trial("4")
def raw(place: Newcomer) -> str:
    mixed(place.folder / "m.csv")
    told = place.run("profile", "m.csv", *MIXED)
    release = place.run(
        "trajectories", "m.csv", *MIXED, "--missing", "NULL", "--missing", "-", "--k", 5, "-o", "X"
    )
    return f"profile {said(told, 'entries', 'dots', 'points', 'mean', 'neither')}; trajectories: exit {release.status}"


@trial("5")
def risk(place: Newcomer) -> str:
    before = json.loads(place.run("profile", *place.uci, "--json", timeout=1200).out)["risk"]["by_m"]
    shares = [round(100 * row["below_k_share"], 1) for row in before]
    found = place.released("disassociate", *place.uci, "--k", 5, "--m", 2)["measures"]["risk"]["by_m"]
    return f"profile {shares} %, report of disassociation {[round(100 * row['below_k_share'], 1) for row in found]} %"


@trial("6")
def legend(place: Newcomer) -> str:
    return costs(place.released("trajectories", place.data / "eunomia-gibleed", "--k", 5))


@trial("7")
def impossible(place: Newcomer) -> str:
    import polars as pl

    plan = "plan:\n- cox: {time: dtime, event: death, covariates: [age, meno, size, grade, nodes, pgr, er]}\n"
    place.write("plan.yaml", plan)
    file = place.data / "survival/rotterdam.csv"
    flags = (file, "--drop", "rownames", "--patient", "pid", "--k", 100, "--plan", "plan.yaml")
    refused = said(place.run("condense", *flags, "-o", "OUT"))
    flags = (*flags, "--time", "dtime,rtime")
    broken = []
    for number, further in enumerate(((), ("--coarsen-time", "--relations", "rtime <= dtime"))):
        found = place.released("condense", *flags, *further)
        frame = pl.read_parquet(Path(found["share"]) / "data" / "*.parquet")
        broken.append(f"{frame.filter(pl.col('rtime') > pl.col('dtime')).height:,} of {frame.height:,}")
        (place.folder / "OUT").rename(place.folder / f"OUT{number}")
    named = "rtime" in (place.folder / "OUT0/share/README.md").read_text(encoding="utf-8")
    related = said(place.run("condense", *flags, "--relations", "rtime <= dtime", "-o", "OUT"))
    return (
        f"by default {refused}; with --time dtime,rtime rows with rtime > dtime {broken[0]}, with --relations "
        f"{related}, with --coarsen-time and --relations {broken[1]}; README of the first names rtime: {named}"
    )


@trial("8")
def nobody(place: Newcomer) -> str:
    place.released("disassociate", *place.uci, "--k", 5, "--m", 2)
    absent = place.run("estimate", "OUT/share", "250.00,401.9")
    there = place.run("estimate", "OUT/share", "250,401")
    return f"{said(absent)}; 250,401: {there.out.strip().splitlines()[0]}"


@trial("9")
def twice(place: Newcomer) -> str:
    place.events(300)
    flags = ("E.csv", "--terms", "icd9")
    first = place.run("index", *flags, "--epsilon-total", 5, "-o", "I1")
    asked = place.run("query", "I1", "250.00", "--epsilon", 3, "--yes")
    again = place.run("index", *flags, "--epsilon-total", 50, "-o", "I2")
    left = place.run("query", "I2", "250.00", "--epsilon", 3, "--yes")
    return (
        f"index {first.status}, query {asked.status}, index again: {said(again)}; query there: {said(left)}"
    )


@trial("10")
def price(place: Newcomer) -> str:
    place.index(patients=300, epsilon=5)
    query = said(place.run("query", "I", "250.00", "--epsilon", 0.01))
    itemsets = place.run("itemsets", "I", "--epsilon", 1, "--dry-run")
    paid = place.run("itemsets", "I", "--epsilon", 1)
    return f"query {query}; itemsets --dry-run {said(itemsets)}; itemsets {said(paid)}"


@trial("11")
def kind(place: Newcomer) -> str:
    return costs(place.released("disassociate", *place.uci, "--k", 5, "--m", 2))


@trial("12")
def allergic(place: Newcomer) -> str:
    import gzip

    import polars as pl

    place.write(
        "own.csv", 'note,text\n1,"She denies fever. Her mother had breast cancer. ALLERGIES: None."\n'
    )
    place.run("notes", "annotate", "own.csv", "-o", "own")
    own = pl.read_parquet(place.folder / "own/custody/table.parquet")["terms"].to_list()
    with gzip.open(place.data / "mtsamples-medcat/pt_notes.csv.gz") as packed:
        (place.folder / "notes.csv").write_bytes(packed.read())
    ran = place.run(
        "notes", "annotate", "notes.csv", "--patient", "subject_id", "--review", 0, "-o", "N", timeout=1800
    )
    table = pl.read_parquet(place.folder / "N/custody/table.parquet")
    counts = table.select(pl.col("terms").list.unique().explode(empty_as_null=True))["terms"].value_counts(
        sort=True
    )
    found = counts.with_row_index("place").filter(pl.col("terms") == "LW1718")
    where = f"{found['count'][0]} of {table.height:,} notes (place {found['place'][0] + 1} of all terms)"
    return f"terms of the made-up note {own}; exit {ran.status}; allergic reaction (LW1718) in {where}"


@trial("13")
def undone(place: Newcomer) -> str:
    ran = place.run("disassociate", place.data / "fhir-bulk-10", "--k", 5, "--m", 2, "-o", "X", timeout=600)
    return f"exit {ran.status}: {ran.out.splitlines()[0]}"


@trial("14")
def turned_away(place: Newcomer) -> str:
    found = []
    for method in ("visits", "disassociate", "trajectories"):
        more = ("--m", 2, "--policy", "hierarchy:1") if method == "disassociate" else ()
        ran = place.run(method, place.data / "eunomia-gibleed", "--k", 5, *more, "-o", method, timeout=1200)
        found.append(f"{method}: exit {ran.status}")
    return ", ".join(found)


@trial("15")
def names(place: Newcomer) -> str:
    shown = place.run("profile", place.data / "eunomia-gibleed")
    return shown.out.split("Most frequent codes")[1].splitlines()[1].strip()


@trial("16")
def which(place: Newcomer) -> str:
    place.events(300)
    place.write(
        "plan.yaml",
        "source: {path: E.csv}\nrecipient: {who: named researchers, controls: [contract], knows: {codes: 2}}\n"
        "plan:\n- counts: {of: codes, within: 10 %, from: 50}\n",
    )
    lines = [line for line in place.run("recommend", "plan.yaml").out.splitlines() if line.strip()]
    return " / ".join(lines[:4])[:300]


@trial("17")
def library(place: Newcomer) -> str:
    words = ["profile", "index", "itemsets", "budget", "compare", "extract", "estimate", "audit", "explore"]
    code = f"""
import leeward as lw
from leeward.methods import METHODS
names = [m.class_name for m in METHODS.values()] + {words!r}
print([n for n in names if not hasattr(lw, n)], lw.Trajectories, callable(lw.run))
"""
    return place.python(code).out


@trial("18")
def frames(place: Newcomer) -> str:
    code = """
import duckdb, pandas as pd, polars as pl, pyarrow as pa, leeward as lw
data = {"patient": [1, 2], "code": ["401.9", "250.00"]}
pandas = pd.DataFrame(data)
kinds = [pandas, pa.table(data), pl.LazyFrame(data), duckdb.sql("select * from pandas")]
print([lw.read(each).events.height for each in kinds])
try:
    lw.read(data)
except Exception as error:
    print(type(error).__name__, error)
"""
    return place.python(code).out.replace("\n", "; ")


@trial("19")
def files(place: Newcomer) -> str:
    import zipfile

    text = "patient;code;day;age\n1;401.9;03.04.2010;61,3\n2;250.00;04.04.2010;50\n"
    (place.folder / "cp1252.csv").write_bytes(
        text.replace("patient", "patient").encode("cp1252") + b"3;401.9;;\n"
    )
    (place.folder / "utf16.csv").write_text(text, encoding="utf-16")
    with zipfile.ZipFile(place.folder / "a.zip", "w") as archive:
        archive.writestr("a.csv", text)
    code = """
import sys, duckdb, sqlite3, pandas as pd, pyreadstat, leeward as lw
frame = pd.DataFrame({"patient": [1, 2], "code": ["401.9", "250.00"]})
pyreadstat.write_sav(frame, "a.sav"); pyreadstat.write_dta(frame, "a.dta"); pyreadstat.write_xport(frame, "a.xpt")
duckdb.connect("a.duckdb").execute("create table t as select * from frame").close()
with sqlite3.connect("a.sqlite") as c: frame.to_sql("t", c, index=False)
columns = {"patient": "patient", "code": "code", "date": "day", "age": "age"}
for name in ("cp1252.csv", "utf16.csv", "a.zip"):
    c = lw.read(name, columns=columns); print(name, c.events.height, c.events["age"][0], c.events["date"][0], end="; ")
for name in ("a.sav", "a.dta", "a.xpt", "a.duckdb", "a.sqlite"): print(name, lw.read(name).events.height, end="; ")
"""
    return place.python(code).out


@trial("20")
def flags(place: Newcomer) -> str:
    given = (
        "--events",
        "drug,procedure",
        "--concepts",
        "--attributes",
        "gender",
        "--date-format",
        "%d.%m.%Y",
    )
    ran = place.run("spec", "init", "visits", "cdm", "--k", 5, *given)
    return " ".join(line.strip() for line in ran.out.splitlines() if line.strip() and "#" not in line)


@trial("21")
def waiting(place: Newcomer) -> str:
    place.events(300)
    ran = place.run("disassociate", "E.csv", "--k", 5, "--m", 2, "-o", "X")
    return re.sub(r"^.*leeward: ", "", ran.said)


@trial("22")
def top_to_bottom(place: Newcomer) -> str:
    """The commands of README, as they are printed, in one folder; those of trajectories and notes on fewer patients."""
    import shlex

    text = (TREE / "README.md").read_text(encoding="utf-8")
    place.write("plan.yaml", re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)[0])
    (place.folder / "diabetic_data.csv.gz").symlink_to(place.data / "uci-diabetes130/diabetic_data.csv.gz")
    (place.folder / "rotterdam.csv").symlink_to(place.data / "survival/rotterdam.csv")
    commands = re.findall(r"^    leeward ((?:.*\\\n)*.*)", text, re.MULTILINE)
    wrong = []
    for command in commands:
        words = shlex.split(command.replace("\\\n", " "), comments=True)
        ran = place.run(*words, timeout=1200)
        if ran.status:
            wrong.append(f"{' '.join(words[:2])} {said(ran)}")
    return f"{len(commands)} commands of README in one folder: {'; '.join(wrong) or 'exit 0 each'}"


@trial("23")
def flagged(place: Newcomer) -> str:
    place.write("e.csv", "patient_nbr,code\n1,x\n")
    named = said(place.run("profile", "e.csv", "--code", "code"))
    rotterdam = said(place.run("profile", place.data / "survival/rotterdam.csv"))
    rows = "".join(f"{n},401.9,{40 if n else ''}\n250{n},250.00,41\n" for n in range(9))
    place.write("a.csv", f"patient,code,age\n{rows}")
    flags = (
        "a.csv",
        "--age",
        "age",
        "--patient",
        "patient",
        "--code",
        "code",
        "--vocabulary",
        "icd9",
        "--k",
        3,
    )
    return (
        f"{named}; rotterdam {rotterdam}; an age missing {said(place.run('trajectories', *flags, '-o', 'X'))}"
    )


@trial("24")
def tables(place: Newcomer) -> str:
    place.events(300)
    place.run("disassociate", "E.csv", "--k", 5, "--m", 2, "-o", "X")
    shown = place.run("measure", "X", "--source", "E.csv").out.splitlines()
    one = place.run("verify", "X").out.strip()
    return f"measure: {len(shown)} lines, dotted keys: {any(re.match('[a-z]+[.][a-z]', line) for line in shown)}; {one}"


@trial("25")
def differing(place: Newcomer) -> str:
    code = """
import click
from collections import defaultdict
from leeward.cli.main import leeward
found = defaultdict(set)
def walk(command, name):
    if isinstance(command, click.Group):
        for each in command.list_commands(click.Context(command)):
            walk(command.get_command(click.Context(command), each), f"{name} {each}".strip())
    for option in getattr(command, "params", []):
        for flag in option.opts:
            found[flag].add(name)
walk(leeward, "")
gone = ["--qid", "--domain", "--column", "--partition", "--hierarchy", "--missing-values"]
alike = sorted(flag for flag in found if f"{flag}s" in found and found[flag] & found[f"{flag}s"])
print([flag for flag in gone if flag in found], "of", gone, "are left; beside their plural in one command:", alike)
"""
    return place.python(code).out.strip()


@trial("26")
def nosuch(place: Newcomer) -> str:
    master = place.visits()
    absent = place.run("cohort", master, "--select", "nosuch.csv", "-o", "Y")
    nobody = place.run("cohort", master, "--select", "visits > 99", "-o", "Y")
    return f"{said(absent)}; {said(nobody)}"


@trial("27")
def absent(place: Newcomer) -> str:
    place.events(300)
    for name, k in (("A", 5), ("B", 10)):
        place.run("disassociate", "E.csv", "--k", k, "--m", 2, "-o", name)
    shown, compared = place.run("show", "A"), place.run("compare", "A", "B", "-o", "CMP")
    return (
        f"show: exit {shown.status}, {shown.out.splitlines()[0][:100]}; compare: exit {compared.status} "
        f"{compared.said[:120]}; demo -o /proc/x: {said(place.run('demo', '-o', '/proc/x'))}"
    )


@trial("28")
def words(place: Newcomer) -> str:
    place.events(300)
    place.run("disassociate", "E.csv", "--k", 5, "--m", 2, "-o", "X")
    readme = place.folder / "X/share/README.md"
    text = readme.read_text(encoding="utf-8")
    readme.chmod(0o644)
    readme.write_text(text.replace("k = 5", "k = 50"), encoding="utf-8")
    changed = text != readme.read_text(encoding="utf-8")
    first = place.run("verify", "X")
    readme.write_text(text, encoding="utf-8")
    manifest = place.folder / "X/share/release.json"
    content = json.loads(manifest.read_text(encoding="utf-8"))
    content["guarantee"]["attacker"], content["guarantee"]["not_protected"] = "anybody", []
    manifest.write_text(json.dumps(content), encoding="utf-8")
    return (
        f"README changed ({changed}): exit {first.status}; manifest: exit {place.run('verify', 'X').status}"
    )


@trial("29")
def recipient(place: Newcomer) -> str:
    place.events(300)
    place.run("disassociate", "E.csv", "--k", 5, "--m", 2, "-o", "X")
    text = (place.folder / "X/share/README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    (pandas,) = [code for language, code in blocks if language == "python"][:1]
    ran = place.python(f"import os; os.chdir('X/share')\n{pandas}")
    languages = [language for language, _ in blocks]
    return f"languages {languages}; the lines of pandas: exit {ran.status} {ran.out.splitlines()[-1:]}"


def main() -> None:
    """Run and print, a line each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    print(f"commit {commit()}", flush=True)
    found = {}
    for number in given.only.split(",") if given.only else TRIALS:
        with tempfile.TemporaryDirectory(prefix="leeward-newcomer-") as folder:
            try:
                outcome = TRIALS[number](Newcomer(Path(folder), given.data.absolute()))
            except Exception as error:  # of the script, or a command that failed
                outcome = f"not run: {type(error).__name__}: {error}"
        found[number] = outcome
        print(f"{number}: {outcome}", flush=True)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
