"""The page of the disassociation study: tables, plots, and what they say beside the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from common import commit, machine, save
from objections import ended
from study_disassociation_words import CLOSING, FIGURE_WORDS, OPENING

COHORTS = ("UCI", "synthetic")
COMMAND = "python benchmarks/study_disassociation.py --data DIR"
K = 5
COLORS = ("#0072B2", "#E69F00", "#D55E00", "#56B4E9", "#009E73", "#8A8F98", "#CC79A7", "#000000")

Rows = Sequence[dict[str, Any]]


def write_page(found: dict[str, Any], out: Path) -> None:
    """`disassociation.md` and its plots."""
    plots = out / "disassociation"
    made = found.get("made") or made_on()
    parts = [OPENING.format(machine=made, command=COMMAND, **sizes_of(found)), summary(found)]
    for name, section in SECTIONS.items():
        title, table, plot = section
        parts.append(f"## {title}\n\n{FIGURE_WORDS[name]}")
        if plot is not None:
            (plots / f"{name}.svg").write_text(plot(found), encoding="utf-8")
            parts.append(f"![{title}](disassociation/{name}.svg)")
        parts.append(table(found))
    parts.append(CLOSING)
    save(out / "disassociation.md", ended("\n\n".join(parts), "disassociation"))


def made_on() -> str:
    """Machine and commit."""
    return f"{machine()}; commit {commit()}"


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
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def percent(share: float | None, digits: int = 0) -> str:
    return "–" if share is None else f"{100 * share:.{digits}f} %"


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


def mean_of(rows: Rows, column: str) -> float | None:
    values = [row[column] for row in rows if row[column] is not None]
    return sum(values) / len(values) if values else None


def chosen(found: dict[str, Any], cohort: str, figure: str, **wanted: Any) -> list[dict[str, Any]]:
    return [row for row in found[cohort][figure] if all(row[key] == value for key, value in wanted.items())]


LEVEL_1_IN_THE_PAPER = "0.055 / 0.155 on average; 0.129 / 0.163 elsewhere in the text"


def summary(found: dict[str, Any]) -> str:
    """Every number that the paper's text gives, beside ours."""

    def both(claim: str, paper: str, ours: Callable[[str], str]) -> tuple[str, ...]:
        return (claim, paper, *(ours(name) for name in COHORTS))

    def pair(**wanted: Any) -> Callable[[str], str]:
        def ours(name: str) -> str:
            rows = chosen(found, name, "against", **wanted)
            return f"{shown(mean_of(rows, 'dis'))} / {shown(mean_of(rows, 'cba'))}"

        return ours

    def smallest(name: str) -> str:
        row = found[name]["sizes"][0]
        return f"{shown(row['dis'])} / {shown(row['cba'])}"

    def seconds(name: str) -> str:
        row = found[name]["sizes"][-1]
        return f"{row['dis_seconds']:.2f} / {row['cba_seconds']:.2f}"

    def suppressed(name: str) -> str:
        row = chosen(found, name, "suppression", policy="hierarchy:1", m=3)[0]
        return f"{row['cba']} of {row['codes']}"

    def span(name: str) -> str:
        row = chosen(found, name, "matching", policy="hierarchy:1", m=2)[0]
        return f"{percent(row['smallest'], 1)} … {percent(row['largest'], 1)}"

    def sim_5(name: str) -> str:
        row = chosen(found, name, "matching", policy="similarity:5", m=2)[0]
        return f"{percent(row['within_2_5'])}, {percent(row['within_5'])}"

    def within(k: int) -> Callable[[str], str]:
        def ours(name: str) -> str:
            row = chosen(found, name, "privacy", policy="hierarchy:1", k=k)[0]
            return f"{percent(row['within_5'], 1)} (prior `graded`: {percent(row['within_5_graded'], 1)})"

        return ours

    def m_5(name: str) -> str:
        rows = chosen(found, name, "matching", m=5)
        return " / ".join(percent(row["within_5"]) for row in rows)

    rows = [
        both("W1, level 1, mean over supports: ARE Dis / CBA", LEVEL_1_IN_THE_PAPER, pair(policy="hierarchy:1")),
        both("W1, level 3: ARE Dis / CBA", "0.006 / 0.1", pair(policy="hierarchy:3")),
        both("codes suppressed by CBA, level 1, m = 3", "149 of 631", suppressed),
        both("codes suppressed by Dis", "0", lambda name: "0"),
        both("2,500 patients, W2, sup 1.25: ARE Dis / CBA", "0.95 / 11.57", smallest),
        both("25,000 patients: seconds Dis / CBA", "1.2 / 4.9", seconds),
        both("level 1: all MRE in", "[-24 %, 5 %)", span),
        both("sim 5: MRE within ±2.5 %, ±5 %", "81 %, 90 %", sim_5),
        both("level 1, k = 2: MRE within ±5 %", "95.3 %", within(2)),
        both("level 1, k = 25: MRE within ±5 %", "53 %", within(25)),
        both("m = 5: MRE within ±5 %, level 1 / sim 10 / sup 2.5", "89 % / 93 % / 100 %", m_5),
    ]  # fmt: skip
    return "## The paper's numbers and ours\n\n" + table(("what", "paper (INFORMS)", *COHORTS), rows)


def against_table(found: dict[str, Any]) -> str:
    columns = (
        "cohort, policy", "W1 support", "queries, all", "CBA keeps", "Dis", "Dis as published", "CBA subset",
        "CBA share", "UGACLIP", "p Dis = CBA", "both keep", "Dis", "CBA", "UGACLIP", "Dis, all queries",
    )  # fmt: skip
    return table(
        columns,
        (
            (
                f"{r['cohort']}, {policy_name(r['policy'])}", percent(r["support"], 3), r["all_queries"], r["queries"],
                r["dis"], r["dis_as_published"], r["cba"], r["cba_share"], r["ugaclip"], p_value(r["p"]),
                r["queries_both_keep"], r["dis_both"], r["cba_both"], r["ugaclip_both"], r["dis_all"],
            )
            for r in rows_of(found, "against")
        ),
    )  # fmt: skip


def ratios_table(found: dict[str, Any]) -> str:
    """Means over the four supports, and how many times larger the others' error is."""
    rows = []
    for name in COHORTS:
        for policy in dict.fromkeys(row["policy"] for row in found[name]["against"]):
            each = chosen(found, name, "against", policy=policy)
            each = [{**row, "better": min(row["cba"], row["cba_share"])} for row in each]
            means = {c: mean_of(each, c) or 0.0 for c in RATIO_COLUMNS}
            factors = (
                means["better"] / means["dis_as_published"],
                means["cba"] / means["dis"],
                means["ugaclip_both"] / means["dis_both"],
            )
            rows.append((f"{name}, {policy_name(policy)}", *means.values(), *(f"{f:.1f}" for f in factors)))
    columns = (
        "cohort, policy", "Dis as published", "CBA, better reading", "Dis", "CBA, subset", "Dis, both keep", "UGACLIP",
        "better reading / as published", "CBA / Dis", "UGACLIP / Dis",
    )  # fmt: skip
    return "Means over the four supports:\n\n" + table(columns, rows)


RATIO_COLUMNS = ("dis_as_published", "better", "dis", "cba", "dis_both", "ugaclip_both")


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
                f"{r['cohort']}, {policy_name(r['policy'])}", r["m"], r["codes"], r["cba"],
                percent(r["cba"] / r["codes"]), r["cba_labels"], r["ugaclip"],
                percent(r["ugaclip"] / r["codes"]), r["ugaclip_labels"],
            )
            for r in rows_of(found, "suppression")
        ),
    )  # fmt: skip


def sizes_table(found: dict[str, Any]) -> str:
    columns = (
        "cohort", "patients", "codes", "W2 queries CBA keeps", "Dis", "CBA", "p", "Dis, all W2", "CBA, all W2",
        "CBA suppresses", "Dis s", "CBA s",
    )  # fmt: skip
    return table(
        columns,
        (
            (
                r["cohort"], r["patients"], r["codes"], f"{r['queries']:,} of {r['all_queries']:,}", r["dis"], r["cba"],
                p_value(r["p"]), r["dis_all"], r["cba_all"], percent(r["cba_suppressed"] / r["codes"]),
                r["dis_seconds"], r["cba_seconds"],
            )
            for r in rows_of(found, "sizes")
        ),
    )  # fmt: skip


def query_sizes_table(found: dict[str, Any]) -> str:
    supports = list(found[COHORTS[0]]["query_sizes"][0]["w1"])
    return table(
        (
            "cohort, policy",
            *(f"W2, {size}" for size in range(1, 6)),
            *(f"W1, {percent(float(s), 3)}" for s in supports),
        ),
        (
            (f"{r['cohort']}, {policy_name(r['policy'])}", *r["w2"].values(), *r["w1"].values())
            for r in rows_of(found, "query_sizes")
        ),
    )


def privacy_table(found: dict[str, Any]) -> str:
    columns = (
        "cohort, policy", "k", "ARE W1 1.25 %", "ARE W2", "MRE within ±2.5 %", "±5 %", "±5 %, prior `graded`",
        "smallest", "largest",
    )  # fmt: skip
    return table(
        columns,
        (
            (
                f"{r['cohort']}, {policy_name(r['policy'])}", r["k"], r["w1"], r["w2"], percent(r["within_2_5"], 1),
                percent(r["within_5"], 1), percent(r["within_5_graded"], 1),
                percent(r["smallest"]), percent(r["largest"]),
            )
            for r in rows_of(found, "privacy")
        ),
    )  # fmt: skip


def matching_table(found: dict[str, Any]) -> str:
    rows = rows_of(found, "matching")
    ends = [_interval(each) for each in rows[0]["intervals"]]
    return table(
        ("cohort, policy", "m", "constraints", *ends, "±5 %, prior `graded`"),
        (
            (
                f"{r['cohort']}, {policy_name(r['policy'])}",
                r["m"],
                r["constraints"],
                *(percent(each["share"], 1) for each in r["intervals"]),
                percent(r["within_5_graded"], 1),
            )
            for r in rows
        ),
    )


def _interval(each: dict[str, Any]) -> str:
    low, high = (None if each[end] is None else f"{100 * each[end]:g}" for end in ("low", "high"))
    return f"< {high} %" if low is None else f"≥ {low} %" if high is None else f"{low} … {high} %"


def subtrees_table(found: dict[str, Any]) -> str:
    rows = [{"cohort": name, **row} for name in (*COHORTS, "two chapters") for row in found[name]["subtrees"]]
    return table(
        ("cohort", "k", "m", "codes", "labels", "codes in the largest", "ARE W1 1.25 %", "Dis, level 1"),
        (
            (r["cohort"], r["k"], r["m"], r["codes"], r["labels"], r["largest_label"], r["are"], r["dis"])
            for r in rows
        ),
    )


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

    frame = pl.DataFrame([row for row in rows if row[y] is not None], infer_schema_length=None)
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
    svg: str = vl_convert.vegalite_to_svg(panels.properties(background="white").to_json())
    return svg


def melted(rows: Rows, columns: dict[str, str], **keep: str) -> list[dict[str, Any]]:
    """One row a column of `columns` (column → its name in the legend), with the fields of `keep`."""
    return [
        {
            "cohort": row["cohort"],
            **{new: row[old] for new, old in keep.items()},
            "what": name,
            "value": row[column],
        }
        for row in rows
        for column, name in columns.items()
    ]


def against_plot(found: dict[str, Any]) -> str:
    rows = [r for r in rows_of(found, "against") if r["support"] == 0.0125]
    columns = {"dis": "Dis", "cba": "CBA", "ugaclip": "UGACLIP"}
    named = [{**r, "policy": policy_name(r["policy"])} for r in rows]
    return chart(
        melted(named, columns, policy="policy"), "policy", "value", "what",
        x_title="policy", y_title="ARE, W1 at 1.25 %", mark="bar",
    )  # fmt: skip


def suppression_plot(found: dict[str, Any]) -> str:
    rows = [
        {**r, "policy": f"{policy_name(r['policy'])}, m = {r['m']}", "cba": 100 * r["cba"] / r["codes"],
         "ugaclip": 100 * r["ugaclip"] / r["codes"], "dis": 0.0}
        for r in rows_of(found, "suppression")
    ]  # fmt: skip
    columns = {"dis": "Dis", "cba": "CBA", "ugaclip": "UGACLIP"}
    return chart(
        melted(rows, columns, policy="policy"), "policy", "value", "what",
        x_title="policy", y_title="codes suppressed, %", mark="bar",
    )  # fmt: skip


def sizes_plot(found: dict[str, Any]) -> str:
    columns = {"dis": "Dis", "cba": "CBA", "dis_all": "Dis, all W2", "cba_all": "CBA, all W2"}
    return chart(
        melted(rows_of(found, "sizes"), columns, patients="patients"), "patients", "value", "what",
        x_title="patients", y_title="ARE, W2", log=True,
    )  # fmt: skip


def query_sizes_plot(found: dict[str, Any]) -> str:
    rows = [
        {"cohort": r["cohort"], "size": int(size), "policy": policy_name(r["policy"]), "are": value}
        for r in rows_of(found, "query_sizes")
        if r["policy"] in ("hierarchy:1", "hierarchy:2", "hierarchy:3", "similarity:10", "frequency:0.0125")
        for size, value in r["w2"].items()
    ]
    return chart(rows, "size", "are", "policy", x_title="codes of a query (W2)", y_title="ARE of Dis")


def privacy_plot(found: dict[str, Any]) -> str:
    rows = [
        {**r, "policy": policy_name(r["policy"]), "within": 100 * r["within_5"]}
        for r in rows_of(found, "privacy")
    ]
    return chart(rows, "k", "within", "policy", x_title="k", y_title="constraints with MRE within ±5 %, %")


def matching_plot(found: dict[str, Any]) -> str:
    rows = [
        {
            "cohort": r["cohort"],
            "policy": policy_name(r["policy"]),
            "interval": _interval(each),
            "share": 100 * each["share"],
        }
        for r in rows_of(found, "matching")
        if r["m"] == 2
        for each in r["intervals"]
    ]
    return chart(rows, "interval", "share", "policy", x_title="MRE", y_title="constraints, %", mark="bar")


SECTIONS: dict[str, tuple[str, Callable[[dict[str, Any]], str], Callable[[dict[str, Any]], str] | None]] = {
    "risk": ("Risk before release (Fig. 12)", risk_table, None),
    "against": (
        "Against generalization: ARE on W1 (Fig. 13)",
        lambda found: f"{ratios_table(found)}\n\nEach support:\n\n{against_table(found)}",
        against_plot,
    ),
    "suppression": ("Codes suppressed (Fig. 14)", suppression_table, suppression_plot),
    "sizes": ("Size of the data set (Fig. 15)", sizes_table, sizes_plot),
    "query_sizes": ("Policies and query sizes (Figs. 16 and 17)", query_sizes_table, query_sizes_plot),
    "privacy": ("k from 2 to 25 (Figs. 18 and 22 to 24)", privacy_table, privacy_plot),
    "matching": (
        "MRE of every constraint (Figs. 19 to 21), and m = 5 (Fig. 25)",
        matching_table,
        matching_plot,
    ),
    "subtrees": ("Full-subtree recoding (Apriori k^m)", subtrees_table, None),
}
