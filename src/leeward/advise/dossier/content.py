"""The dossier's content: parts 0 to 10, each a list of entries that are measured, declared or open.

`parts.yaml` has the entries of every part, `figures.yaml` those of each method. A measured entry is made from a JSON
pointer into one of the evidence files and nothing else, so that every figure resolves. Files: `release.json` (share),
`measures.json`, `verification.json` (custody) and `evidence.json`, which was computed on the day of the dossier and is
beside it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from leeward.advise.dossier.context import Context
from leeward.errors import BadInput
from leeward.pages import template_of
from leeward.release.spec import content_of_yaml
from leeward.report.sections import number
from leeward.report.writing import to_html

TITLE = "Technical evidence for a determination. Not itself a determination."
SOURCE_FILES = ("measures.json", "evidence.json", "register.json")
"""Files with figures of the original data: in a dossier for the recipient only their absence is said."""

Block = Literal["measured", "declared", "open"]


@dataclass(frozen=True)
class Entry:
    """One line of a part. pointer : of a measured value, `file#/path`. chance : of an attack, what guessing reaches."""

    block: Block
    label: str
    value: Any = None
    pointer: str | None = None
    chance: Any = None
    chance_pointer: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value is not None}


@functools.cache
def data_of(name: str) -> Any:
    return content_of_yaml((Path(__file__).parent / name).read_text(encoding="utf-8"))


def titles() -> list[str]:
    return [part["title"] for part in data_of("parts.yaml")]


@dataclass(frozen=True)
class Evidence:
    """What a dossier rests on: the evidence files by name, parsed, and what people declared.

    recipient : whether a recipient reads it, who may have no figure of the original data. within : for whom the maximum
    risk of the guarantee holds, where not for everybody (`if they do not …`).
    """

    files: Mapping[str, Any]
    context: Context
    recipient: bool = False
    within: str = ""

    def find(self, pointer: str) -> Any:
        """What a pointer points at; None where there is nothing."""
        try:
            return resolve(self.files, pointer)
        except KeyError:
            return None

    def entries(self, rows: Sequence[Mapping[str, Any]], at: str = "") -> Iterator[Entry]:
        """The entries of rows of `parts.yaml`; their pointers go on from `at`."""
        for row in rows:
            if (row.get("for") == "expert" and self.recipient) or (row.get("within") and not self.within):
                continue
            if "rows" in row:
                yield from self._under(row, at)
            elif "pointer" in row:
                yield from self._measured(row, at)
            elif "of" in row:
                yield from OF_SEVERAL_FIELDS[row["of"]](self, row)
            else:
                value = row.get("declared") or getattr(self.context, row["context"])
                yield declared(row["label"], value)

    def _under(self, row: Mapping[str, Any], at: str) -> Iterator[Entry]:
        asked = row.get("each", row.get("at"))
        places = [f"{at}{each}" for each in (asked if isinstance(asked, list) else [asked])]
        place = next((each for each in places if self.find(each)), None)
        if place is None:
            if "otherwise" in row:
                yield Entry("open", row["otherwise"])
        elif "at" in row:
            yield from self.entries(row["rows"], place)
        else:
            for item in range(len(self.find(place))):
                yield from self.entries(row["rows"], f"{place}/{item}")

    def _measured(self, row: Mapping[str, Any], at: str) -> Iterator[Entry]:
        """The entry of a pointer; none where it points at nothing, or at nothing that this reader may have."""
        pointer, chance = f"{at}{row['pointer']}", row.get("chance")
        value = self.find(pointer)
        if value is None or isinstance(value, Mapping | list):
            return
        if self.recipient and pointer.startswith(SOURCE_FILES):
            return
        beside = self.find(pointer.rpartition("/")[0])
        words = {"within": f", {self.within}" if self.within else ""}
        label = row["label"].format_map({**(beside if isinstance(beside, Mapping) else {}), **words})
        found = self.find(f"{at}{chance}") if isinstance(chance, str) else chance
        where = f"{at}{chance}" if isinstance(chance, str) and found is not None else None
        yield Entry("measured", label, value, pointer, found, where)


def resolve(files: Mapping[str, Any], pointer: str) -> Any:
    """What `file#/path` points at (RFC 6901). KeyError where there is nothing."""
    name, _, path = pointer.partition("#")
    found = files[name]
    for part in path.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and key.isdigit() and int(key) < len(found):
            found = found[int(key)]
        elif isinstance(found, Mapping) and key in found:
            found = found[key]
        else:
            raise KeyError(pointer)
    return found


def parts_of(evidence: Evidence, questions: Sequence[str] = ()) -> list[list[Entry]]:
    """The entries of every part. `questions`: open ones that the advice for the plan asks."""
    parts = [list(evidence.entries(part["rows"])) for part in data_of("parts.yaml")]
    parts[1] += [Entry("open", each) for each in questions]
    still_open = sum(entry.block == "open" for part in parts[1:] for entry in part)
    if still_open:
        parts[0].append(Entry("open", f"{still_open} open items in the parts below"))
    return parts


def declared(label: str, value: Any) -> Entry:
    if not value:
        return Entry("open", label)
    return Entry("declared", label, list(value) if isinstance(value, tuple) else value)


def _figures(evidence: Evidence, row: Mapping[str, Any]) -> Iterator[Entry]:
    of_method = data_of("figures.yaml").get(evidence.files["release.json"]["method"], ())
    yield from evidence.entries([each for each in of_method if each["part"] == row["part"]], "measures.json#")


def _signature(evidence: Evidence, row: Mapping[str, Any]) -> list[Entry]:
    end = evidence.context.conclusion
    if end is None:
        return [Entry("open", "Who decides: nobody has signed")]
    return [Entry("declared", "Who decides", end.expert)]


def _attributes(evidence: Evidence, row: Mapping[str, Any]) -> list[Entry]:
    found = [
        Entry("declared", f"Attribute: {name}", others)
        for name, others in (
            (each["name"], {key: value for key, value in each.items() if key != "name"})
            for each in evidence.context.attributes
        )
    ]
    missing = "Table of attributes: direct, indirect, sensitive; replicability, availability"
    return found or [Entry("open", missing)]


def _parameters(evidence: Evidence, row: Mapping[str, Any]) -> Iterator[Entry]:
    for name, value in evidence.files["release.json"]["parameters"].items():
        pointer = f"release.json#/parameters/{name}"
        if isinstance(value, Mapping | list):  # codes and values by name are no business of a document
            yield Entry("measured", f"Parameter {name}: number of entries", len(value), pointer)
        elif value is not None:
            yield Entry("measured", f"Parameter {name}", value, pointer)


def _randomness(evidence: Evidence, row: Mapping[str, Any]) -> list[Entry]:
    by_person = evidence.files["release.json"].get("seeded")
    secure = "the operating system's secure source"
    source = "a seed that a person chose: NOT to be shared" if by_person else secure
    return [Entry("declared", "Randomness", source)]


def _intruder_test(evidence: Evidence, row: Mapping[str, Any]) -> list[Entry]:
    test = evidence.context.intruder_test
    if test is None:
        label = "Motivated intruder test: who tried, by which means, how many claims, how many right"
        return [Entry("open", label)]
    names = ("by", "date", "means", "tries", "right")
    return [Entry("declared", "Motivated intruder test", {name: getattr(test, name) for name in names})]


def _conclusion(evidence: Evidence, row: Mapping[str, Any]) -> list[Entry]:
    end = evidence.context.conclusion
    if end is None:
        return [Entry("open", "The expert's conclusion in own words, qualifications, date, signature")]
    return [
        Entry("declared", "Conclusion on the risk", end.outcome),
        Entry("declared", "In the expert's own words", end.words),
        Entry("declared", "Expert", f"{end.expert}; {end.qualifications}"),
        Entry("declared", "Date", end.date),
        Entry("declared", "Look again", end.reassess)
        if end.reassess
        else Entry("open", "When to look again"),
    ]


OF_SEVERAL_FIELDS: dict[str, Callable[[Evidence, Mapping[str, Any]], Iterable[Entry]]] = {
    "figures": _figures,
    "signature": _signature,
    "attributes": _attributes,
    "parameters": _parameters,
    "randomness": _randomness,
    "intruder_test": _intruder_test,
    "conclusion": _conclusion,
}
"""What `of` of a row may name."""


def annex(parts: Sequence[Sequence[Entry]]) -> list[dict[str, Any]]:
    """Which parts speak to which heading of which text (`mappings.yaml`); never that a text is fulfilled."""
    return [
        {**text, "rows": [{**row, "state": _state(parts, row["parts"])} for row in text["rows"]]}
        for text in data_of("mappings.yaml")
    ]


def _state(parts: Sequence[Sequence[Entry]], numbers: Sequence[int]) -> str:
    blocks = [entry.block for part in numbers for entry in parts[part]]
    if not blocks or set(blocks) == {"open"}:
        return "open"
    listed = ", ".join(map(str, numbers))
    there = "declared" if "measured" not in blocks else "covered"
    return f"{there} in part {listed}" + (f"; {blocks.count('open')} open" if "open" in blocks else "")


def check_entries(content: Mapping[str, Any], files: Mapping[str, Any]) -> list[str]:
    """Figures of a dossier that do not resolve to what it says, by label. BadInput where `content` is no dossier."""
    try:
        entries = [(entry["label"], entry) for part in content["parts"] for entry in part["entries"]]
    except (KeyError, TypeError):
        raise BadInput("dossier.json: not a dossier.") from None
    wrong = []
    for label, entry in entries:
        for key, value in (("pointer", "value"), ("chance_pointer", "chance")):
            if key in entry:
                try:
                    there = resolve(files, str(entry[key]))
                except KeyError:
                    wrong.append(label)
                    continue
                if (len(there) if isinstance(there, Mapping | list) else there) != entry.get(value):
                    wrong.append(label)
    return wrong


def render(content: Mapping[str, Any]) -> str:
    """The page: one HTML file that opens offline and prints."""
    blocks = [entry["block"] for part in content["parts"] for entry in part["entries"]]
    counts = {block: blocks.count(block) for block in ("measured", "declared", "open")}
    template = template_of("leeward.advise", "dossier.html.j2", shown=format_value, marked=to_html)
    return template.render(content=content, counts=counts)


def format_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {format_value(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return "; ".join(map(format_value, value))
    return number(value)
