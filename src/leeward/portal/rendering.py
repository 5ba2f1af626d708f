"""Pages from templates: escaped, with control and direction marks written out, addresses below the prefix."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from fastapi.exceptions import ValidationException
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.exceptions import HTTPException

from leeward.portal import words
from leeward.portal.question import faults_of
from leeward.queries.privacy.accounting import to_epsilon
from leeward.report.charts import ticks_from_zero
from leeward.version import __version__

HERE: Final = Path(__file__).parent
MARKS: Final = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)
"""Control characters, and marks that are not seen or turn the direction of what follows."""
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def visible(text: object) -> str:
    """The text with marks that cannot be seen written as code points."""
    return MARKS.sub(lambda sign: f"‹U+{ord(sign[0]):04X}›", str(text))


def write_out_marks(value: object) -> object:
    """Value that a template prints: markup unchanged, everything else with its marks written out (then escaped)."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else visible(value)


@cache
def environment() -> Environment:
    """The templates; a name that is missing is an error, not an empty text."""
    found = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=write_out_marks,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["amount"] = amount
    found.filters["paid"] = lambda micros: amount(to_epsilon(micros))
    found.filters["number"] = number
    found.filters["times"] = words.times
    found.filters["tenths"] = "{:.1f}".format
    found.filters["day"] = lambda text: str(text)[:10]
    found.filters["minute"] = lambda text: str(text)[:16].replace("T", " ")
    found.filters["share"] = lambda part, whole: (
        0 if not whole else max(0, min(100, round(100 * part / whole)))
    )
    found.globals["version"] = __version__
    return found


def render(template: str, **values: Any) -> str:
    return environment().get_template(template).render(**values)


def amount(value: float) -> str:
    """An ε as a person writes it: 0.5, not 0.500000."""
    return f"{value:.6f}".rstrip("0").rstrip(".")


def number(value: float) -> str:
    return f"{value:,.10g}"


def csv_of(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """CSV whose texts are never formulas: a sign that begins one gets an apostrophe before it."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(header)
    writer.writerows([cell_of(value) for value in row] for row in rows)
    return file.getvalue()


def cell_of(value: object) -> object:
    """A cell that a spreadsheet shows and does not compute."""
    if value is None:
        return ""
    if isinstance(value, str):
        text = visible(value)
        return f"'{text}" if text.lstrip(" ").startswith(FORMULA) else text
    return value


def chart_of(
    bins: Sequence[str], values: Sequence[float | None], half_width: float, title: str, made_up: bool = False
) -> Markup:
    """Bars with error bars as SVG; hatched where the patients are made up. The table beside it says the same."""
    tops = [0.0 if value is None else max(0.0, value) + half_width for value in values]
    steps = ticks_from_zero(max([1.0, *tops]), 5)
    top, step, every = max(steps[-1], *tops), 640 / max(1, len(bins)), max(1, -(-len(bins) // 12))

    def height_of(value: float) -> float:
        return 10 + 220 * (1 - max(0.0, value) / top)

    columns = [
        {
            "middle": 56 + step * (place + 0.5),
            "name": visible(name)[:12] if place % every == 0 else None,
            "ends": None
            if value is None
            else [height_of(each) for each in (value, value - half_width, value + half_width)],
        }
        for place, (name, value) in enumerate(zip(bins, values, strict=True))
    ]
    grid = [(height_of(each), f"{each:,g}") for each in steps]
    return Markup(
        render(
            "chart.svg", title=title, made_up=made_up, grid=grid, columns=columns, wide=max(1.0, step * 0.7)
        )
    )


def sentence_of(answer: Any, question: str, index: str, synthetic: bool) -> str:
    """A sentence that may be quoted: the count, its interval, what protects whom."""
    plan = answer.plan
    epsilon = amount(to_epsilon(plan.noise.epsilon))
    what = "made-up patients" if synthetic else f"{plan.counted}s"
    each = "the count" if plan.by is None else "each count"
    how = (
        f"differentially private, epsilon {epsilon} for each {plan.unit}, {plan.noise.kind} noise; 95 % within "
        f"± {number(answer.half_width)} of {each}"
    )
    how += "" if plan.by is None else f", of all at once within ± {number(answer.half_width_of_all)}"
    about = visible(question)
    if plan.by is not None:
        return f"Numbers of {what} in {visible(index)} with {about}, by {plan.by} ({how})."
    value = answer.values[0]
    if value is None:
        return f"Fewer than {answer.threshold} {what} (with noise) in {visible(index)} have {about} ({how})."
    low, high = answer.interval(value)
    within = f"95 % interval {number(low)} to {number(high)}"
    return f"{number(value)} {what} in {visible(index)} have {about} ({within}; {how})."


def rows_of(answer: Any) -> list[Mapping[str, Any]]:
    """An answer's table: bin, value, low, high; None where hidden."""
    names = [""] if answer.plan.by is None else answer.plan.bins
    found: list[Mapping[str, Any]] = []
    for name, value in zip(names, answer.values, strict=True):
        low, high = answer.interval(value) or (None, None)
        found.append({"bin": name, "value": value, "low": low, "high": high})
    return found


FLAG: Final = re.compile(r"`?--([a-z-]+)`?")


def message_of(error: Exception) -> str:
    """An error's words for somebody at a form: `epsilon` instead of `--epsilon`."""
    if isinstance(error, HTTPException):
        return error.detail
    if isinstance(error, ValidationException):
        return faults_of(error.errors())
    text = FLAG.sub(lambda flag: flag[1].replace("-", " "), str(error))
    text = text.replace(
        "or yes to pay for it all the same", "or say below that it is to be paid all the same"
    )
    path = "/" in text.partition(" ")[0]
    return text if path else text[:1].upper() + text[1:]
