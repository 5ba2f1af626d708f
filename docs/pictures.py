"""Draws docs/images/*.svg: runs the worked examples and draws what is released (`python -m docs.pictures`)."""

from __future__ import annotations

import math
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock
from xml.sax.saxutils import escape

import numpy as np
import polars as pl
from tests.methods.disassociation.shapes import POLICY, cohort_of, running_example
from tests.methods.trajectories.test_thesis_examples import AGE, AS_PRINTED, ICD
from tests.methods.visits.frames import EXAMPLE
from tests.methods.visits.frames import cohort as cohort_of_visits

import leeward as lw

IMAGES = Path(__file__).parent / "images"
STYLE = """svg{color:#1c2733;font:12px Helvetica,Arial,sans-serif}text,circle{fill:currentColor}.h{font-size:14px}
.h,.b{font-weight:bold}.q{font-size:11px;color:#55606b}.c{font:11px monospace}.m{text-anchor:middle}.big{font-size:18px}
.v{writing-mode:vertical-rl}.blue{color:#1d5a99}.purple{color:#6a3d9a}.orange{color:#8f4a00}.red,.lost{color:#a3271f}
rect,path,ellipse{color:#8a949e;stroke:currentColor;fill:#fff}path{stroke-width:1.5}.lost{text-decoration:line-through}
rect.full{fill:#1d5a99}path.blue,path.red{fill:currentColor}path.ink,ellipse.ink{color:#1c2733}ellipse,path.ink{fill:none}
rect.blue{fill:#dfeaf6}rect.purple{fill:#ece3f6}rect.orange{fill:#fbdcb4}ellipse.ink{stroke-dasharray:4 3}
path.band{color:#cfe0f2;stroke-width:12}path.mark{color:#8f4a00;stroke-width:3}"""


def tag(kind: str, looks: str, words: str = "", **given: Any) -> str:
    named = "".join(f' {key}="{value:g}"' if key != "d" else f' d="{value}"' for key, value in given.items())
    return f"<{kind}{f' class={looks!r}' if looks else ''}{named}>{escape(words)}</{kind}>"


def text(x: float, y: float, words: str, looks: str = "") -> str:
    return "".join(tag("text", looks, each, x=x, y=y + 16 * i) for i, each in enumerate(words.splitlines()))


def box(x: float, y: float, width: float, height: float, looks: str = "") -> str:
    return tag("rect", looks, x=x, y=y, width=width, height=height, rx=4)


def dot(x: float, y: float, looks: str, r: float = 4.5) -> str:
    return tag("circle", looks, cx=x, cy=y, r=r)


def line(x: float, y: float, x2: float, y2: float, looks: str = "") -> str:
    return tag("path", looks, d=f"M{x:g} {y:g}L{x2:g} {y2:g}")


def picture(drawn: Callable[[Path], tuple[int, list[str]]], made: Path) -> str:
    """An SVG on a white panel of its own, for light and dark pages alike; `made` is an empty folder."""
    (height, parts), (name, about) = drawn(made), (drawn.__doc__ or "").split(": ")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 380 {height}" width="532" height="{height * 1.4:g}" '
        f'role="img">\n<title>{name}</title>\n<desc>{about}</desc>\n<style>{STYLE}</style>\n'
        f'<rect width="380" height="{height}" rx="8"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def released(made: Path, cohort: lw.Cohort, method: Any) -> lw.Release:
    lw.protect(cohort, method, made, seed=1, tell=lambda *_: None)
    return lw.open(made)


def disassociate(made: Path, attacker: str) -> lw.Release:
    rows = [(name, each) for name, codes in POLICY.items() for each in codes.split()]
    pl.DataFrame(rows, ["constraint", "code"], orient="row").write_csv(made / "policy.csv")
    as_in_the_paper = {"policy": f"file:{made / 'policy.csv'}", "partitioning": "paper", "max_cluster": 6}
    method = lw.Disassociation(k=3, m=2, attacker=attacker, **as_in_the_paper)
    return released(made / attacker, cohort_of(running_example(), "icd9"), method)


def disassociation(made: Path) -> tuple[int, list[str]]:
    """Disassociation: the table of ten patients is cut into record chunks, a shared chunk and item chunks."""
    chunks: dict[tuple[int, int, str], list[list[str]]] = {}
    for row in disassociate(made, "operation").table("chunks.parquet").collect().to_dicts():
        chunks.setdefault((row["node"], row["chunk"], row["kind"]), []).append(row["codes"])
    looks = {"record": "blue", "shared": "purple", "item": "orange"}
    place, colour, x = {}, {}, 46
    parts = [text(12, 22, "Ten patients and their codes", "h")]
    parts += [text(12, 266, "Released (k = 3, m = 2): cut into chunks", "h")]
    parts.append(tag("path", "ink", d="M190 222v22m-5 -6l5 6l5 -6"))
    for (node, _, kind), rows in chunks.items():
        codes, low = sorted({each for row in rows for each in row}), node == 1
        top, tall = 306 + 83 * low, 161 if kind == "shared" else 78
        parts.append(box(x - 12, top, 24 * len(codes), tall, looks[kind]))
        for each in codes:
            place[each], colour[each] = x, looks[kind]
            parts += [text(x, y, each.replace(".", "\n."), "q m") for y in (40, 284)]
            held = [top + 7 + 16 * i for i, row in enumerate(rows) if each in row and kind != "item"]
            parts += [dot(x, y, looks[kind]) for y in held] or [text(x, top + 42, "?", "b m big orange")]
            x += 24
        x += 5
    for r, record in enumerate(running_example()):
        y = 70 + 15 * r + 8 * (r > 4)
        parts += [text(8, y + 4, f"r{r + 1}", "q"), *(dot(place[each], y, colour[each]) for each in record)]
    parts += [text(22, y, "5 patients", "q m v") for y in (345, 428)]
    parts += [box(12, y, 12, 12, each) for y, each in ((478, "blue"), (526, "purple"), (542, "orange"))]
    legend = """Record chunk: each row is some patient of the
cluster. Every box has its rows shuffled anew, so
nobody can follow a patient from box to box.
Shared chunk: the same, over both clusters.
Item chunk: some patients of the cluster have
the code. Not shown: who, and how many."""
    return 586, [*parts, text(32, 488, legend)]


def candidates(made: Path) -> tuple[int, list[str]]:
    """What an attacker holds, and who is left: 4 candidates, 2 for who knows the rule, 3 by default."""
    rare, counted = "401.0", "692.71"
    parts = [text(12, 24, "An attacker knows m = 2 codes of a patient", "h"), text(12, 48, "The patient has")]
    for x, each in ((118, rare), (182, counted)):
        parts += [box(x, 34, 54, 20, "blue"), text(x + 27, 48, each, "c m")]
    parts.append(text(12, 72, "Who may it be? k = 3 promises at least 3 candidates."))
    cases = ((92, "operation", 3, "attacker: operation"), (290, "counts", 4, "attacker: counts, the default"))
    for y, attacker, least, name in cases:
        release = disassociate(made, attacker)
        files = lw.estimate(release, [rare, counted]).high
        of = release.table("nodes.parquet").collect()["records"][0]
        parts += [box(8, y, 364, 186), text(20, y + 22, name, "b")]
        parts.append(text(20, y + 42, f"Cluster of {of} patients; codes of {least} or more are counted."))
        why = f"{files} have {counted}; each may have {rare}."
        parts += people(y + 62, "Who reads the files:", files, of, why)
        why = f"{rare} is not counted: {least - 1} have it at most."
        parts += people(y + 124, "Who knows that rule, too:", min(files, least - 1), of, why)
    return 490, parts


def people(y: int, who: str, found: int, of: int, why: str) -> Iterator[str]:
    """The patients of a cluster, the candidates filled."""
    looks = "blue" if found >= 3 else "red"
    for i in range(of):
        shape = f"M{30 + 22 * i} {y + 3}a5 5 0 1 1 -.1 0zm-8 29v-8a8 8 0 0 1 16 0v8z"
        yield tag("path", looks if i < found else "", d=shape)
    yield text(142, y + 5, who)
    yield text(142, y + 22, f"{found} candidates{'' if found >= 3 else ': fewer than k'}", f"b {looks}")
    yield text(142, y + 39, why, "q")


def visits(made: Path) -> tuple[int, list[str]]:
    """From visits to cohorts: codes are deleted or merged once, in the master; two cohorts show D alike."""
    sets = [(patient, i, each) for patient, held in EXAMPLE.items() for i, each in enumerate(held)]
    source = {1 + sum(len(each) for _, _, each in sets[:i]): sets[i][:2] for i in range(len(sets))}
    parts = [text(x, 24, name, "h") for x, name in ((28, "Population"), (154, "Master"), (266, "Cohorts"))]
    master, top = released(made / "master", cohort_of_visits(EXAMPLE), lw.Visits(k=2)), 40
    shown = {tuple(key): codes for *key, codes in master.table("visits.parquet").collect().rows()}
    kept = {source[row]: shown[record, i] for record, i, row in master.custody_table("visits").rows()}
    label = {row[0]: row[1] for row in master.custody_table("codes").rows()}
    for number, chosen in enumerate(("ABD", "DE"), 1):
        wanted, out = pl.Series("patient", list(chosen)), made / chosen
        lw.extract(made / "master", wanted, out, membership_is_secret="a picture", seed=1)
        cohort = lw.open(out)
        who = {row[0]: row[1] for row in cohort.custody_table("patients").rows()}
        rows = cohort.table("visits.parquet").collect().rows()
        found = sorted((who[record], *codes) for record, _, codes in rows)
        parts += [box(266, top, 110, 28 + 26 * len(found), "purple"), text(273, top + 16, f"cohort {number}")]
        for y, (patient, *codes) in enumerate(found):
            at = top + 38 + 26 * y
            parts += [text(273, at, patient, "b"), text(285, at, " ".join(codes), "c")]
        top += 42 + 26 * len(found)
    y = 40
    for patient, i, codes in sets:
        y, left = y + 6 * (i == 0), kept.get((patient, i), [])
        parts += [text(12, y + 15, patient * (i == 0), "b"), box(28, y, 8 + 46 * len(codes), 20)]
        for x, one in enumerate(codes):
            parts.append(text(32 + 46 * x, y + 14, one, "c" if label[one] in left else "c lost"))
        if left:
            parts += [line(130, y + 10, 152, y + 10, "ink"), box(154, y, 100, 20, "blue")]
            parts.append(text(160, y + 14, " ".join(left), "c"))
        y += 26
    words = """k = 2: each visit in the master has codes that at least
2 patients have exactly. Codes struck out are deleted,
others become one label. Both cohorts show D alike."""
    return 358, [*parts, text(12, 312, words)]


def trajectories(made: Path) -> tuple[int, list[str]]:
    """Two trajectories become one: pairs of code and age are aligned, and generalized or removed."""
    shown: dict[int, list[tuple[str, str]]] = {}
    for name, tree in (("codes", ICD), ("ages", AGE)):
        nodes = pl.DataFrame(list(tree.parent.items()), ["node", "parent"], orient="row")
        nodes.write_csv(made / f"{name}.csv")
    rows = [(p, code, float(age)) for p, record in enumerate(AS_PRINTED) for code, age in record]
    events = pl.DataFrame(rows, ["patient", "code", "age"], orient="row")
    cohort = lw.read(events, vocabulary=made / "codes.csv")
    of_the_thesis = {"clustering": "alignment", "joining": "thesis", "ages": str(made / "ages.csv")}
    release = released(made / "out", cohort, lw.Trajectories(k=2, **of_the_thesis))
    owner = dict(release.custody_table("records").rows())
    for record, _, code, age in release.table("trajectories.parquet").collect().rows():
        shown.setdefault(owner[record], []).append((code, age))
    parts = [text(12, 24, "Two patients, upward until both fit", "h")]
    panels = (
        (40, 0, "A pair of one patient alone: removed", "", ICD),
        (166, 1, "Two codes: up to their parent", "401", ICD),
        (292, 4, "Two ages: up to their interval", "39-40", AGE),
    )
    for y, first, name, top, tree in panels:
        members = [p for p in sorted(shown) if shown[p] == shown[first]]
        longest = max(len(AS_PRINTED[p]) for p in members)
        parts += [box(8, y, 364, 118), text(18, y + 18, name, "b"), text(290, y + 52, top, "c m blue")]
        below = [node for node, above in tree.parent.items() if above == top]
        for j, node in enumerate(below):
            x = 290 + 46 * j - 23 * (len(below) - 1)
            parts += [line(x, y + 76, 290, y + 58, "ink"), text(x, y + 90, node, "c m")]
        records = [(28, "blue", shown[first])]
        records += [(60 + 28 * i, "", AS_PRINTED[p]) for i, p in enumerate(members)]
        for at, looks, pairs in records:
            for j, pair in enumerate(pairs, longest - len(pairs)):
                x, lost = 28 + 86 * j, j < longest - len(shown[first])
                parts += [line(x + 41, y + 48, x + 41, y + 92, "blue")] if looks else []
                parts.append(box(x, y + at, 82, 20, "red" if lost else looks))
                parts.append(text(x + 41, y + at + 14, ", ".join(pair), f"c m {'lost' if lost else looks}"))
        parts += [text(14, y + 74 + 28 * i, f"{p + 1}", "b") for i, p in enumerate(members)]
    words = "White: the patients' pairs of code and age. Blue:\nreleased for both of them alike (k = 2)."
    return 460, [*parts, text(12, 432, words)]


def ellipse(points: list[tuple[float, float]], left: float, looks: str) -> str:
    """The mean, and 1.5 standard deviations around it."""
    (x, y), spread = np.mean(points, axis=0).round(), np.cov(np.transpose(points), ddof=0)
    sizes, axes = np.linalg.eigh(spread)
    (short, long), turn = 1.5 * np.sqrt(sizes), math.degrees(math.atan2(axes[1, 1], axes[0, 1])) % 180
    at = f'rx="{long:.0f}" ry="{short:.0f}" transform="translate({x + left:g} {y:g}) rotate({turn:.0f})"'
    return f'<ellipse class="{looks}" {at}/>' + tag("path", looks, d=f"M{x + left - 5:g} {y:g}h10m-5 -5v10")


def condensation(made: Path) -> tuple[int, list[str]]:
    """Condensation: three groups of patients become synthetic rows with the same means and spreads."""
    chance = random.Random(7)
    as_in_the_paper = {"algorithm": "improved", "synthesis": "exact"}
    ages = [round(chance.gauss(60, 12), 1) for _ in range(36)]
    source = [(age, round(80 + 0.8 * age + chance.gauss(0, 7), 1)) for age in ages]
    frame = pl.DataFrame(source, schema=["age", "pressure"], orient="row")
    release = released(made / "out", lw.read(frame, format="table"), lw.Condensation(k=12, **as_in_the_paper))
    groups = [release.custody_table(f"{name}_rows")["group"].to_list() for name in ("source", "released")]
    rows = release.table("table.parquet").collect().rows()
    titles = ("36 patients,\n3 groups of k = 12", "36 synthetic rows,\n12 from each group")
    parts, before = [], {}
    for left, title, points, group in zip((12, 196), titles, (source, rows), groups, strict=True):
        parts += [text(left, 24, title, "h"), box(left, 52, 172, 190)]
        parts += [text(left + 6, 66, "blood pressure", "q"), text(left + 86, 258, "age", "q m")]
        for number, looks in enumerate(("blue", "orange", "purple")):
            own = [points[i] for i, each in enumerate(group) if each == number]
            own = [((x - 28) * 3.1, 536 - y * 3.1) for x, y in own]
            parts += [ellipse(before.setdefault(number, own), left, "ink"), ellipse(own, left, looks)]
            parts += [dot(left + round(x), round(y), looks, 3) for x, y in own]
    words = """A cross is a group's mean, an ellipse its spread. Both
stay (algorithm: improved, synthesis: exact). A row
stands for its group, not for a patient."""
    return 332, [*parts, text(12, 282, words)]


def budget(made: Path) -> tuple[int, list[str]]:
    """Counts with noise: of epsilon 5 the first costs 0.5, the same again nothing, a third 0.1."""
    asked = (("sore throat", 0.5), ("sore throat", 0.5), ("sore throat & fever", 0.1))
    chance = random.Random(2)

    def seeded(noise: Any, size: int) -> list[int]:
        """Two-sided geometric noise. Leeward's own takes no seed; a picture has to stay as it is."""
        sizes = [int(math.log(1 - chance.random()) / math.log(noise.alpha)) for _ in range(2 * size)]
        return [a - b for a, b in zip(sizes[::2], sizes[1::2], strict=True)]

    terms = [["sore throat"] * (i % 5 == 0) + ["fever"] * (i % 3 == 0) + ["cough"] for i in range(300)]
    with mock.patch("leeward.queries.privacy.mechanism.draw", seeded):
        frame = pl.DataFrame({"patient": range(300), "terms": terms})
        lw.index(frame, made / "counts", epsilon_total=5, tell=lambda *_: None)
        answers = [lw.query(made / "counts", question, epsilon=epsilon) for question, epsilon in asked]
    parts = [text(12, 24, "Counts with noise, paid from a budget", "h")]
    parts += [text(252, 50, "budget: epsilon 5", "b"), box(252, 56, 112, 14, "full")]
    for y, (question, _), answer in zip((82, 174, 266), asked, answers, strict=True):
        value, left = answer.values[0], answer.remaining / 1e6
        low, high = (18 + 3 * max(end, 0) for end in answer.interval(value))
        true = 18 + 3 * sum(set(question.split(" & ")) <= set(each) for each in terms)
        bounds = f"{value} patients ({(low - 18) // 3} to {(high - 18) // 3})"
        parts += [box(8, y, 364, 84), text(18, y + 18, question, "b"), text(18, y + 36, bounds)]
        parts += [line(18, y + 56, 228, y + 56), line(low, y + 56, high, y + 56, "band")]
        parts += [dot(18 + 3 * value, y + 56, "blue"), line(true, y + 48, true, y + 64, "mark")]
        parts += [text(18 + 3 * tick, y + 76, f"{tick}", "q m") for tick in (0, 35, 70)]
        price = f"costs {answer.cost / 1e6:g}" if answer.cost else "again: free"
        parts += [box(252, y + 28, 112, 14), box(252, y + 28, 112 * left / 5, 14, "full")]
        parts += [text(252, y + 18, price, "b blue"), text(252, y + 60, f"{left:g} left")]
    parts += [dot(18, 370, "blue"), text(30, 374, "answer, 95 % interval")]
    parts += [line(196, 362, 196, 378, "mark"), text(206, 374, "truth, never shown")]
    words = "The same question has the same answer, so that nobody\ncan average the noise away. At 0 the answers end."
    return 430, [*parts, text(12, 400, words)]


PICTURES = (disassociation, candidates, visits, trajectories, condensation, budget)

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        os.environ["LEEWARD_STATE"] = f"{made}/state"
        for each in PICTURES:
            (out := Path(made) / each.__name__).mkdir()
            (IMAGES / f"{each.__name__}.svg").write_text(picture(each, out), encoding="utf-8")
