"""The page of the disassociation study: tables, plots, and what they say beside the paper."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from common import SECTION, commit, machine, save
from leeward.methods.disassociation import Disassociation
from leeward.methods.disassociation.measures.estimates import DEFAULT
from objections import FOLDER, ended
from study_disassociation_words import CLOSING, FIGURE_WORDS, OPENING

COHORTS = ("UCI", "synthetic")
COMMAND = "python benchmarks/study_disassociation.py --data DIR"
K = 5
WAYS = ("default", "paper")
COLORS = ("#0072B2", "#E69F00", "#D55E00", "#56B4E9", "#009E73", "#8A8F98", "#CC79A7", "#000000")

Rows = Sequence[dict[str, Any]]


def write_page(found: dict[str, Any], out: Path) -> None:
    """`disassociation.md` and its plots."""
    plots = out / "disassociation"
    made = found.get("made") or made_on()
    parts = [OPENING.format(machine=made, command=COMMAND, **settings(), **sizes_of(found)), summary(found)]
    for name, section in SECTIONS.items():
        title, table, plot = section
        parts.append(f"## {title}\n\n{FIGURE_WORDS[name]}")
        if plot is not None:
            (plots / f"{name}.svg").write_text(plot(found), encoding="utf-8")
            parts.append(f"![{title}](disassociation/{name}.svg)")
        parts.append(table(found))
    kept = SECTION.finditer((FOLDER / "disassociation.md").read_text(encoding="utf-8"))  # of other scripts
    parts += [*(section[0] for section in kept), CLOSING]
    save(out / "disassociation.md", ended("\n\n".join(parts), "disassociation"))


def made_on() -> str:
    """Machine and commit."""
    return f"{machine()}; commit {commit()}"


def settings() -> dict[str, str]:
    """What the default is, as the product has it."""
    method = Disassociation(k=K)
    return {"partitioning": method.chosen_partitioning, "attacker": method.attacker, "prior": DEFAULT}


def sizes_of(found: dict[str, Any]) -> dict[str, str]:
    """Patients and codes of each cohort, for the opening."""
    named = {"UCI": "uci", "synthetic": "synthetic"}
    return {
        key: f"{found[name]['patients']:,} patients, {found[name]['codes']} codes, {found[name]['mean']:.2f} each"
        for name, key in named.items()
    }


# -- tables --------------------------------------------------------------------------------------------


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table; figures are set to the right."""
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" + "---:|" * (len(columns) - 1)]
    return "\n".join([*lines, *(f"| {' | '.join(shown(cell) for cell in row)} |" for row in rows)])


def shown(value: Any) -> str:
    """A figure, or a mean with the half of its interval."""
    if value is None:
        return "–"
    if isinstance(value, list):
        mean, half = value
        digits = 4 if abs(mean) < 0.1 else 3 if abs(mean) < 10 else 1
        return f"{mean:.{digits}f} ± {half:.{digits}f}"
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def percent(share: Any, digits: int = 0) -> str:
    if isinstance(share, list):
        mean, half = (f"{100 * each:.{digits}f}" for each in share)
        return f"{mean} ± {half} %"
    return "–" if share is None else f"{100 * share:.{digits}f} %"


def middle(value: Any) -> Any:
    """The mean, without its interval."""
    return value[0] if isinstance(value, list) else value


def p_value(p: float | None) -> str:
    return "–" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def policy_name(policy: str) -> str:
    """The paper's names: level 1, sim 10, sup 1.25."""
    kind, _, value = policy.partition(":")
    if kind == "frequency":
        return f"sup {100 * float(value):g}"
    return f"{'level' if kind == 'hierarchy' else 'sim'} {value}"


def rows_of(found: dict[str, Any], figure: str) -> list[dict[str, Any]]:
    """The rows of a figure of both cohorts, each with its `cohort`."""
    return [{"cohort": name, **row} for name in COHORTS for row in found[name][figure]]


def chosen(found: dict[str, Any], cohort: str, figure: str, **wanted: Any) -> list[dict[str, Any]]:
    return [row for row in found[cohort][figure] if all(row[key] == value for key, value in wanted.items())]


LEVEL_1_IN_THE_PAPER = "0.055 / 0.155 on average; 0.129 / 0.163 elsewhere in the text"


def summary(found: dict[str, Any]) -> str:
    """Every number that the paper's text gives, beside those of both settings."""
    Told = Callable[[str, str], str]

    def line(claim: str, paper: str, ours: Told) -> tuple[str, ...]:
        return (claim, paper, *(ours(name, way) for name in COHORTS for way in WAYS))

    def pair(**wanted: Any) -> Told:
        def ours(name: str, way: str) -> str:
            row = chosen(found, name, "ratios", **wanted)[0]
            return f"{shown(row[way])} / {shown(row['cba'])}"

        return ours

    def smallest(name: str, way: str) -> str:
        row = found[name]["sizes"][0]
        return f"{shown(row[f'{way}_all'])} / {shown(row['cba_all'])}"

    def seconds(name: str, way: str) -> str:
        row = found[name]["seconds"][-1]
        return f"{row[way]:.2f} / {row['cba']:.2f}"

    def suppressed(name: str, way: str) -> str:
        row = chosen(found, name, "suppression", policy="hierarchy:1", m=3)[0]
        return f"{shown(row['cba'])} of {shown(row['codes'])}"

    def span(name: str, way: str) -> str:
        row = chosen(found, name, "matching", policy="hierarchy:1", m=2, way=way)[0]
        return f"[{percent(middle(row['smallest']))}, {percent(middle(row['largest']))}]"

    def sim_5(name: str, way: str) -> str:
        row = chosen(found, name, "matching", policy="similarity:5", m=2, way=way)[0]
        return f"{percent(row['within_2_5'])}, {percent(row['within_5'])}"

    def within(k: int) -> Told:
        def ours(name: str, way: str) -> str:
            row = chosen(found, name, "privacy", policy="hierarchy:1", k=k, way=way)[0]
            return percent(row["within_5"])

        return ours

    def m_5(name: str, way: str) -> str:
        rows = chosen(found, name, "matching", m=5, way=way)
        return " / ".join(percent(middle(row["within_5"])) for row in rows)

    rows = [
        line("W1, level 1, mean over supports: ARE Dis / CBA", LEVEL_1_IN_THE_PAPER, pair(policy="hierarchy:1")),
        line("W1, level 3: ARE Dis / CBA", "0.006 / 0.1", pair(policy="hierarchy:3")),
        line("codes suppressed by CBA, level 1, m = 3", "149 of 631", suppressed),
        line("2,500 patients, all W2, sup 1.25: ARE Dis / CBA", "0.95 / 11.57", smallest),
        line("25,000 patients: seconds Dis / CBA", "1.2 / 4.9", seconds),
        line("level 1: all MRE in", "[-24 %, 5 %)", span),
        line("sim 5: MRE within ±2.5 %, ±5 %", "81 %, 90 %", sim_5),
        line("level 1, k = 2: MRE within ±5 %", "95.3 %", within(2)),
        line("level 1, k = 25: MRE within ±5 %", "53 %", within(25)),
        line("m = 5: MRE within ±5 %, level 1 / sim 10 / sup 2.5", "89 % / 93 % / 100 %", m_5),
    ]  # fmt: skip
    columns = ("what", "paper (INFORMS)", *(f"{name}, {way}" for name in COHORTS for way in WAYS))
    return "## The paper's numbers and ours\n\n" + table(columns, rows)


def named(row: dict[str, Any]) -> str:
    return f"{row['cohort']}, {policy_name(row['policy'])}"


def against_table(found: dict[str, Any]) -> str:
    columns = (
        "cohort, policy", "W1 support", "queries, all", "CBA keeps", "default", "paper", "CBA", "p default = CBA",
        "p paper = CBA", "both keep", "default, both keep", "paper, both keep", "UGACLIP", "default, all queries",
        "paper, all queries",
    )  # fmt: skip
    return table(
        columns,
        (
            (
                named(r), percent(middle(r["support"]), 3), r["all_queries"], r["queries"], r["default"], r["paper"],
                r["cba"], p_value(r["p_default"]), p_value(r["p_paper"]), r["queries_both_keep"], r["default_both"],
                r["paper_both"], r["ugaclip"], r["default_all"], r["paper_all"],
            )
            for r in rows_of(found, "against")
        ),
    )  # fmt: skip


def ratios_table(found: dict[str, Any]) -> str:
    """Means over the four supports, and how many times larger the others' error is."""
    columns = (
        "cohort, policy", "default", "paper", "CBA", "CBA / default", "CBA / paper", "default, both keep",
        "paper, both keep", "UGACLIP", "UGACLIP / default",
    )  # fmt: skip
    keys = ("default", "paper", "cba", "cba_by_default", "cba_by_paper", "default_both", "paper_both", "ugaclip",
            "ugaclip_by_default")  # fmt: skip
    rows = ((named(row), *(row[key] for key in keys)) for row in rows_of(found, "ratios"))
    return "Means over the four supports:\n\n" + table(columns, rows)


def between_table(found: dict[str, Any]) -> str:
    rows = rows_of(found, "between")
    kinds = {"w1": "ARE W1 1.25 %", "w2": "ARE W2", "mre": "MRE ±5 %"}
    keys = {kind: [key for key in rows[0] if key.startswith(f"{kind}_")] for kind in kinds}
    columns = [f"{kinds[kind]}, `{key.partition('_')[2]}`" for kind in kinds for key in keys[kind]]
    return table(
        ("cohort, settings", "in item chunks", *columns),
        (
            (
                f"{row['cohort']}, {row['settings']}",
                percent(row["item"], 1),
                *(row[key] for kind in ("w1", "w2") for key in keys[kind]),
                *(percent(row[key], 1) for key in keys["mre"]),
            )
            for row in rows
        ),
    )


def histogram_table(found: dict[str, Any]) -> str:
    return table(
        ("cohort, workload", "ε", "queries", "default", "paper", "histogram", "codes a patient"),
        (
            (
                f"{r['cohort']}, {r['workload']}", r["epsilon"], r["queries"], r["default"], r["paper"], r["histogram"],
                f"{middle(r['cap']):.0f}",
            )
            for r in rows_of(found, "histogram")
        ),
    )  # fmt: skip


def risk_table(found: dict[str, Any]) -> str:
    return table(
        ("cohort", "m", "sets counted", "in one record", f"in fewer than {K}",
         "patients whom such a set makes unique", f"patients with a set of fewer than {K}"),
        (
            (
                r["cohort"], r["m"], f"{r['sets']:,}", percent(r["in_one"], 1), percent(r["below"], 1),
                percent(r["patients_unique"], 1), percent(r["patients_below"], 1),
            )
            for r in rows_of(found, "risk")
        ),
    )  # fmt: skip


def suppression_table(found: dict[str, Any]) -> str:
    return table(
        ("cohort, policy", "m", "codes", "CBA suppresses", "share", "labels", "UGACLIP suppresses", "share", "labels"),
        (
            (
                named(r), r["m"], r["codes"], r["cba"], percent(r["cba_share"]), r["cba_labels"], r["ugaclip"],
                percent(r["ugaclip_share"]), r["ugaclip_labels"],
            )
            for r in rows_of(found, "suppression")
        ),
    )  # fmt: skip


def sizes_table(found: dict[str, Any]) -> str:
    columns = (
        "cohort", "patients", "codes", "W2 queries CBA keeps", "of", "default", "paper", "CBA", "p default = CBA",
        "p paper = CBA", "default, all W2", "paper, all W2", "CBA, all W2", "CBA suppresses",
    )  # fmt: skip
    keys = ("cohort", "patients", "codes", "queries", "all_queries", "default", "paper", "cba")
    return table(
        columns,
        (
            (
                *(r[key] for key in keys), p_value(r["p_default"]), p_value(r["p_paper"]), r["default_all"],
                r["paper_all"], r["cba_all"], percent(r["cba_suppressed"], 1),
            )
            for r in rows_of(found, "sizes")
        ),
    )  # fmt: skip


def seconds_table(found: dict[str, Any]) -> str:
    """A row a size, and the growth from the first to the last."""
    columns = [(name, way) for name in COHORTS for way in (*WAYS, "cba")]
    rows = {name: found[name]["seconds"] for name in COHORTS}
    body = [
        (row["patients"], *(f"{rows[name][place][way]:.2f}" for name, way in columns))
        for place, row in enumerate(rows[COHORTS[0]])
    ]
    growth = ("growth: n to the", *(f"{exponent(rows[name], way):.2f}" for name, way in columns))
    return table(("patients", *(f"{name}, {SECONDS_OF[way]}" for name, way in columns)), [*body, growth])


SECONDS_OF = {"default": "default", "paper": "paper", "cba": "CBA"}


def exponent(rows: Rows, way: str) -> float:
    """Of the growth of the seconds, by least squares of logarithms."""
    x, y = ([math.log(row[name]) for row in rows] for name in ("patients", way))
    return statistics.linear_regression(x, y).slope


def query_sizes_table(found: dict[str, Any]) -> str:
    rows = rows_of(found, "query_sizes")
    return table(
        (
            "cohort, policy",
            "settings",
            *(f"W2, {size}" for size in rows[0]["w2"]),
            *(f"W1, {percent(float(s), 3)}" for s in rows[0]["w1"]),
        ),
        ((named(r), r["way"], *r["w2"].values(), *r["w1"].values()) for r in rows),
    )


def privacy_table(found: dict[str, Any]) -> str:
    columns = (
        "cohort, policy", "k", "settings", "ARE W1 1.25 %", "ARE W2", "MRE within ±2.5 %", "±5 %", "smallest",
        "largest",
    )  # fmt: skip
    return table(
        columns,
        (
            (
                named(r), r["k"], r["way"], r["w1"], r["w2"], percent(r["within_2_5"], 1),
                percent(r["within_5"], 1), percent(middle(r["smallest"])), percent(middle(r["largest"])),
            )
            for r in rows_of(found, "privacy")
        ),
    )  # fmt: skip


def matching_table(found: dict[str, Any]) -> str:
    """What lies close to zero of both settings; the intervals one by one are a table of their own."""
    rows = rows_of(found, "matching")
    pairs = [(each, other) for each, other in zip(rows[::2], rows[1::2], strict=True)]
    near = table(
        (
            "cohort, policy",
            "m",
            "constraints",
            *(f"{way}, {what}" for way in WAYS for what in ("±2.5 %", "±5 %", "from", "to")),
        ),
        (
            (
                named(each),
                each["m"],
                each["constraints"],
                *(
                    cell
                    for row in (each, other)
                    for cell in (
                        percent(row["within_2_5"], 1),
                        percent(row["within_5"], 1),
                        percent(middle(row["smallest"])),
                        percent(middle(row["largest"])),
                    )
                ),
            )
            for each, other in pairs
        ),
    )
    whole = table(
        ("cohort, policy", "m", "settings", *rows[0]["intervals"]),
        (
            (named(r), r["m"], r["way"], *(percent(middle(share), 1) for share in r["intervals"].values()))
            for r in rows
        ),
    )
    return f"{near}\n\nBy interval:\n\n{whole}"


def subtrees_table(found: dict[str, Any]) -> str:
    rows = [{"cohort": name, **row} for name in (*COHORTS, "two chapters") for row in found[name]["subtrees"]]
    keys = ("cohort", "k", "m", "codes", "labels", "largest_label", "are", "default", "paper")
    return table(
        ("cohort", "k", "m", "codes", "labels", "codes in the largest", "ARE W1 1.25 %", "default, level 1", "paper"),
        ([row[key] for key in keys] for row in rows),
    )  # fmt: skip


# -- plots ---------------------------------------------------------------------------------------------


def chart(
    rows: Rows,
    x: str,
    y: str,
    color: str,
    *,
    x_title: str,
    y_title: str,
    mark: str = "line",
    log: bool = False,
) -> str:
    """One panel a cohort, as SVG."""
    import altair as alt
    import polars as pl
    import vl_convert

    shown_rows = [{name: row[name] for name in ("cohort", x, y, color)} for row in rows if row[y] is not None]
    frame = pl.DataFrame(shown_rows, infer_schema_length=None)
    ordered = list(dict.fromkeys(str(row[color]) for row in rows))
    scale = alt.Scale(type="log") if log else alt.Scale()
    kind = "Q" if mark == "line" else "N"
    base = alt.Chart(frame)
    marked = base.mark_line(point=True) if mark == "line" else base.mark_bar()
    axis = alt.Axis(labelAngle=0 if mark == "line" else -40)
    encoded = marked.encode(
        x=alt.X(f"{x}:{kind}", title=x_title, sort=None, axis=axis),
        y=alt.Y(f"{y}:Q", title=y_title, scale=scale),
        color=alt.Color(
            f"{color}:N", title=None, sort=ordered, scale=alt.Scale(domain=ordered, range=list(COLORS))
        ),
        **({} if mark == "line" else {"xOffset": alt.XOffset(f"{color}:N", sort=ordered)}),
    )
    panels = encoded.properties(width=330, height=230).facet(
        column=alt.Column("cohort:N", title=None, sort=list(COHORTS))
    )
    room = {"left": 5, "top": 5, "bottom": 5, "right": 40}  # other fonts than ours are wider
    svg: str = vl_convert.vegalite_to_svg(panels.properties(background="white", padding=room).to_json())
    return svg


def melted(rows: Rows, columns: dict[str, str], **keep: str) -> list[dict[str, Any]]:
    """One row a column of `columns` (column → its name in the legend), with the fields of `keep`."""
    return [
        {
            "cohort": row["cohort"],
            **{new: row[old] for new, old in keep.items()},
            "what": name,
            "value": middle(row[column]),
        }
        for row in rows
        for column, name in columns.items()
    ]


PLOTTED = {"default": "Dis, default", "paper": "Dis, paper", "cba": "CBA", "ugaclip": "UGACLIP"}


def against_plot(found: dict[str, Any]) -> str:
    rows = [{**r, "policy": policy_name(r["policy"])} for r in rows_of(found, "ratios")]
    return chart(
        melted(rows, PLOTTED, policy="policy"), "policy", "value", "what",
        x_title="policy", y_title="ARE, W1, mean over supports", mark="bar",
    )  # fmt: skip


def suppression_plot(found: dict[str, Any]) -> str:
    rows = [
        {**r, "policy": f"{policy_name(r['policy'])}, m = {r['m']}", "cba": 100 * middle(r["cba_share"]),
         "ugaclip": 100 * middle(r["ugaclip_share"]), "dis": 0.0}
        for r in rows_of(found, "suppression")
    ]  # fmt: skip
    columns = {"dis": "Dis", "cba": "CBA", "ugaclip": "UGACLIP"}
    return chart(
        melted(rows, columns, policy="policy"), "policy", "value", "what",
        x_title="policy", y_title="codes suppressed, %", mark="bar",
    )  # fmt: skip


def sizes_plot(found: dict[str, Any]) -> str:
    columns = {
        "default_all": "Dis, default", "paper_all": "Dis, paper", "cba_all": "CBA", "default": "Dis, default, kept",
        "paper": "Dis, paper, kept", "cba": "CBA, kept",
    }  # fmt: skip
    return chart(
        melted(rows_of(found, "sizes"), columns, patients="patients"), "patients", "value", "what",
        x_title="patients", y_title="ARE, W2", log=True,
    )  # fmt: skip


def query_sizes_plot(found: dict[str, Any]) -> str:
    rows = [
        {
            "cohort": r["cohort"],
            "size": int(size),
            "policy": f"{policy_name(r['policy'])}, {r['way']}",
            "are": middle(value),
        }
        for r in rows_of(found, "query_sizes")
        if r["policy"] in ("hierarchy:1", "hierarchy:3", "similarity:10", "frequency:0.0125")
        for size, value in r["w2"].items()
    ]
    return chart(rows, "size", "are", "policy", x_title="codes of a query (W2)", y_title="ARE of Dis")


def privacy_plot(found: dict[str, Any]) -> str:
    rows = [
        {**r, "policy": f"{policy_name(r['policy'])}, {r['way']}", "within": 100 * middle(r["within_5"])}
        for r in rows_of(found, "privacy")
    ]
    return chart(rows, "k", "within", "policy", x_title="k", y_title="constraints with MRE within ±5 %, %")


def matching_plot(found: dict[str, Any]) -> str:
    rows = [
        {
            "cohort": r["cohort"],
            "policy": f"{policy_name(r['policy'])}, {r['way']}",
            "interval": label,
            "share": 100 * middle(share),
        }
        for r in rows_of(found, "matching")
        if r["m"] == 2
        for label, share in r["intervals"].items()
    ]
    return chart(rows, "interval", "share", "policy", x_title="MRE", y_title="constraints, %", mark="bar")


SECTIONS: dict[str, tuple[str, Callable[[dict[str, Any]], str], Callable[[dict[str, Any]], str] | None]] = {
    "risk": ("Risk before release (Fig. 12)", risk_table, None),
    "against": (
        "Against generalization: ARE on W1 (Fig. 13)",
        lambda found: f"{ratios_table(found)}\n\nEach support:\n\n{against_table(found)}",
        against_plot,
    ),
    "between": ("From the paper's settings to the default", between_table, None),
    "histogram": ("Against a differentially private histogram", histogram_table, None),
    "suppression": ("Codes suppressed (Fig. 14)", suppression_table, suppression_plot),
    "sizes": ("Size of the data set (Fig. 15)", sizes_table, sizes_plot),
    "seconds": ("Seconds (Fig. 15(c))", seconds_table, None),
    "query_sizes": ("Policies and query sizes (Figs. 16 and 17)", query_sizes_table, query_sizes_plot),
    "privacy": ("k from 2 to 25 (Figs. 18 and 22 to 24)", privacy_table, privacy_plot),
    "matching": (
        "MRE of every constraint (Figs. 19 to 21), and m = 5 (Fig. 25)",
        matching_table,
        matching_plot,
    ),
    "subtrees": ("Full-subtree recoding (Apriori k^m)", subtrees_table, None),
}
