"""Every benchmark and study, one after the other, as the pages of docs/ name them.

    make studies STUDIES_ARGS="--data DIR [--population POPULATION] [--peers PYTHON] [--further SITE-PACKAGES]"

A command is left out, and named, where what it needs is not given: the public data sets (DIR), a Python with
Presidio, philter-lite and spaCy's small model (PYTHON), packages that are no dependency (SITE-PACKAGES). POPULATION
is made where none is given. A command that fails is named at the end, and the others run. `--only WORD` takes the
commands with WORD in them, `--list` shows them with the seconds that they took last.

What each prints is in `build/studies/COMMIT/`, beside `state.json` and what commands share. A command that is in
`state.json` has run: begun again at the same commit (docs/ apart), a run that was stopped goes on where it was. What
commands take goes into `docs/studies/durations.csv`. At the end the lines of docs/ that the run changed are shown.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from common import commit, once

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "docs" / "studies" / "README.md"
DURATIONS = README.with_name("durations.csv")
HEAD = ["command", "processor s", "s", "commit"]
COMMANDS = """
python -m tests.fuzz --inputs 20900 --seed 15
leeward synth visits --patients 1366786 --seed 1 -o POPULATION

python benchmarks/disassociation.py --sizes 25000,100000,1000000,10000000 --repeat 3
python benchmarks/classes.py --records 1000000 --classes 100 --pairs 2
python benchmarks/constraints.py --policy hierarchy:1
python benchmarks/censoring.py
python benchmarks/trajectories.py
python benchmarks/trajectories.py --no-speed --exact
python benchmarks/trajectories.py --no-speed --parts
python benchmarks/trajectories.py --no-speed --million
python benchmarks/condensation.py --parts commands
python benchmarks/condensation.py --parts groupings
python benchmarks/condensation.py --parts growth
python benchmarks/queries.py
python benchmarks/queries.py --spark 20000000
python benchmarks/charged_queries.py
python benchmarks/memory.py
python benchmarks/memory_limits.py --store FOLDER
python benchmarks/scale.py --store FILE
python benchmarks/scale.py --store FILE --data DIR
python benchmarks/scale.py --store FILE --page
python benchmarks/cluster.py --store FILE
python benchmarks/cluster.py --store FILE --page
python benchmarks/cluster_kills.py --store FILE
python benchmarks/robustness.py
python benchmarks/ledger_soak.py
python benchmarks/kills.py --kills 300
python benchmarks/portal_load.py load --seconds 600 --known 300 --new 60 --patients 1000000
python benchmarks/portal_load.py load --postgres --seconds 600 --known 300 --new 60 --patients 1000000
python benchmarks/portal_load.py kill --times 50
python benchmarks/portal_load.py timing --replies 10000
python benchmarks/portal_load.py pages
python benchmarks/portal_load.py pages --postgres
python benchmarks/mutations.py --random 100 --page
python benchmarks/walks.py

python benchmarks/check_vocabulary.py --data DIR
python benchmarks/defaults.py --data DIR
python benchmarks/disassociation_quality.py --data DIR
python benchmarks/safe.py --data DIR
python benchmarks/sensitive.py --data DIR
python benchmarks/partitioning.py --data DIR --k 5
python benchmarks/partitioning.py --data DIR --k 25
python benchmarks/partitioning.py --data DIR --k gap
python benchmarks/algorithm_known.py --data DIR
python benchmarks/minimality.py --data DIR
python benchmarks/modes.py scopes --data DIR --k 5,10,25
python benchmarks/modes.py cells --data DIR --k 3,5,10
python benchmarks/visits.py --data DIR --parts uci
python benchmarks/visits.py --data DIR --parts phewas
python benchmarks/visits.py --data DIR --parts large --population POPULATION --engines local,spark
python benchmarks/refresh.py --data DIR --store FILE
python benchmarks/visits_levels.py --data DIR --parts uci
python benchmarks/visits_levels.py --data DIR --parts claims --claims 3000
python benchmarks/visits_levels.py --data DIR --parts claims --claims 10000
python benchmarks/visits_levels.py --data DIR --parts growth --sizes 10000,30000,100000
python benchmarks/notes.py --data DIR
python benchmarks/notes_read.py --data DIR
python benchmarks/notes_read.py --data DIR --doubt
python benchmarks/sources.py --data DIR
python benchmarks/attacks.py --data DIR
python benchmarks/composition.py --data DIR
python benchmarks/surrogates.py
python benchmarks/planted.py --data DIR
python benchmarks/verifying.py --data DIR --people 1000000 --repeat 1
python benchmarks/condensation_attacks.py --data DIR --k 2,3,5,10,20,50 --seeds 4
python benchmarks/condensation_attacks.py --data DIR --relations --sets gbsg,rotterdam,mgus2,support2 --k 5,10,20,50
python benchmarks/condensation_attacks.py --data DIR --sets rotterdam --k 5,10,50 --planted --relations --no-matching
python benchmarks/condensation_attacks.py --data DIR --inside --sets gbsg,rotterdam,mgus2,colon --k 5,10,20 --seeds 4
python benchmarks/condensation_relations.py --data DIR --planted
python benchmarks/condensation_relations.py --independent --seeds 40
python benchmarks/condensation_times.py --data DIR
python benchmarks/cox.py --data DIR --further SITE-PACKAGES
python benchmarks/report_pictures.py --data DIR --out FOLDER
python benchmarks/larger_than_memory.py --store FOLDER --patients 3000000 --limit 2.6 --engines local,spark,free
python benchmarks/larger_than_memory.py --store FOLDER --patients 10000000 --limit 5 --engines spark
python benchmarks/larger_than_memory.py --store FOLDER --patients 10000000 --limit 12 --engines local

python benchmarks/study_disassociation.py --data DIR
python benchmarks/study_disassociation_related.py --data DIR
python benchmarks/study_censoring.py --data DIR
python benchmarks/study_censoring_margins.py
python benchmarks/study_trajectories.py --data DIR
python benchmarks/study_trajectories_bounds.py --parts baseline
python benchmarks/study_trajectories_bounds.py --parts pairs
python benchmarks/study_trajectories_bounds.py --parts seeds
python benchmarks/study_trajectories_bounds.py --parts ranges
python benchmarks/study_trajectories_bounds.py --parts others
python benchmarks/study_trajectories_phenotypes.py --data DIR --k 2,5,10
python benchmarks/study_visits.py --data DIR --parts uci --draws 5
python benchmarks/study_visits.py --data DIR --parts drugs
python benchmarks/study_visits_population.py --data DIR --parts rare
python benchmarks/study_visits_population.py --data DIR --parts cohorts
python benchmarks/study_visits_population.py --data DIR --parts volume
python benchmarks/study_condensation.py --data DIR
python benchmarks/study_condensation_measures.py --data DIR --part measures
python benchmarks/study_condensation_measures.py --data DIR --part hundred
python benchmarks/study_queries.py --data DIR
python benchmarks/study_queries_seasons.py --parts seasons
python benchmarks/study_queries_seasons.py --parts safe-harbor
python benchmarks/study_queries_seasons.py --parts budgets
python benchmarks/study_queries_extraction.py --data DIR
python benchmarks/study_notes.py --data DIR --peers PYTHON
python benchmarks/study_advice.py --data DIR
python benchmarks/study_options.py --data DIR
python benchmarks/study_options_caps.py --data DIR
python benchmarks/study_whole_patient.py --data DIR --parts costs
python benchmarks/study_whole_patient.py --data DIR --parts costs-made
python benchmarks/study_whole_patient.py --data DIR --parts methods
python benchmarks/study_whole_patient.py --data DIR --parts methods-by-k
python benchmarks/study_whole_patient.py --data DIR --parts trajectories --ks 2,5,10,25
python benchmarks/study_whole_patient.py --data DIR --parts answers
python benchmarks/study_whole_patient.py --data DIR --parts correlation
python benchmarks/study_whole_patient.py --data DIR --parts generalization
python benchmarks/study_whole_patient.py --data DIR --parts attack
python benchmarks/study_whole_patient.py --data DIR --parts recodings
""".strip()
"""Words in capitals stand for paths."""
PLACES = {
    "--data": "DIR",
    "--population": "POPULATION",
    "--peers": "PYTHON",
    "--further": "SITE-PACKAGES",
}
"""Options and the words that they fill."""


def commands() -> list[str]:
    """The commands in their order, words in capitals unfilled."""
    return [line for line in COMMANDS.splitlines() if line]


def recorded() -> dict[str, list[str]]:
    """What each command took when it was last run: processor seconds, seconds by the clock, commit."""
    if not DURATIONS.is_file():
        return {}
    with DURATIONS.open(encoding="utf-8", newline="") as file:
        return {command: taken for command, *taken in list(csv.reader(file))[1:]}


def record(command: str, taken: list[float], measured: str) -> None:
    """Put what a command took into the table, and the sum into the page."""
    known = recorded() | {command: [*(f"{each:.0f}" for each in taken), measured]}
    rows = [[each, *known[each]] for each in commands() if each in known]
    with DURATIONS.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([HEAD, *rows])
    text = re.sub(
        r"(?<=<!-- durations -->\n).*?(?=\n<!--)",
        total(commands()),
        README.read_text("utf-8"),
        flags=re.DOTALL,
    )
    README.write_text(text, encoding="utf-8")


def total(chosen: list[str]) -> str:
    """How many of these commands are recorded, and the hours that they took."""
    known = [each for command, each in recorded().items() if command in chosen]
    hours = [sum(float(each[place]) for each in known) / 3600 for place in (0, 1)]
    return (
        f"{len(known)} of {len(chosen)} commands recorded: {hours[0]:.2f} hours of a processor, "
        f"{hours[1]:.2f} by the clock."
    )


def run(filled: list[str], log: Path) -> list[float]:
    """Run a command; processor seconds and seconds by the clock. CalledProcessError if it failed."""
    begin = time.perf_counter()
    with log.open("wb") as file:
        process = subprocess.Popen(filled, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, filled)
    return [usage.ru_utime + usage.ru_stime, time.perf_counter() - begin]


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def difference() -> str:
    """The pages that differ from the commit, and their changed lines; of pictures the names alone."""
    lines = git("diff", "-U0", "--", "docs", ":!*.svg").splitlines()
    changed = [line for line in lines if line.startswith(("+", "-")) and not line.startswith("---")]
    new = git("ls-files", "--others", "--exclude-standard", "--", "docs")
    return "\n".join([git("diff", "--stat", "--", "docs") or "no page changed\n", *changed, new])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for option, word in PLACES.items():
        parser.add_argument(option, type=Path, metavar=word)
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    given = vars(parser.parse_args())
    chosen = [command for command in commands() if given["only"] in command]
    last = recorded()
    for command in chosen if given["list"] else []:
        print(*last.get(command, ["–", "–"])[:2], command, sep="\t")
    print(total(chosen), flush=True)
    if given["list"]:
        return
    if given["population"] or not any("--population POPULATION" in command for command in chosen):
        chosen = [command for command in chosen if "-o POPULATION" not in command]
    measured = commit()
    if measured.endswith("-dirty"):
        raise SystemExit(
            "Files outside docs/ differ from the commit that pages would name. Commit them first."
        )
    code = git("log", "-1", "--format=%h", "--abbrev=10", "--", ".", ":!docs").strip()
    folder = ROOT / "build" / "studies" / code
    folder.mkdir(parents=True, exist_ok=True)
    words = {word: str(folder / word) for word in ("FILE", "FOLDER", "POPULATION", "RARE")}
    words |= {word: str(path.absolute()) for option, word in PLACES.items() if (path := given[option[2:]])}
    words |= {"python": sys.executable, "leeward": str(Path(sys.executable).parent / "leeward")}
    left_out, failed = [], []
    for number, command in enumerate(chosen, 1):
        filled = [words.get(word, word) for word in shlex.split(command)]
        if set(filled) & set(PLACES.values()):
            left_out.append(command)
            continue
        log = folder / f"{re.sub(r'[^a-z0-9]+', '-', command)[-100:].strip('-')}.log"
        before = last.get(command, ["–"])[0]
        print(f"== {number} of {len(chosen)}, last time {before} processor s: {command}", flush=True)
        try:
            taken = once(folder / "state.json", command, lambda: run(filled, log))  # noqa: B023
        except subprocess.CalledProcessError:
            failed.append(f"{command}: {log}")
            continue
        record(command, taken, measured)
        print("   {:.0f} processor s, {:.0f} s".format(*taken), flush=True)
    print(total(chosen), difference(), sep="\n\n")
    for what, named in (("left out", left_out), ("failed", failed)):
        if named:
            print(f"{what}:", *named, sep="\n  ", file=sys.stderr)
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
