"""Words that fit a changed release: what a careful forger, who has the verifier too, writes anew."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.mutations.copies import Change, in_manifest, in_text, manifest_of, put_manifest

from leeward.contracts.contract import Words
from leeward.contracts.readme import readme_of
from leeward.verify import contract_checks, contract_of
from leeward.verify.manifest import open_share

README = "share/README.md"
NUMBERS = ("k", "m", "epsilon", "delta")


def restate_words(out: Path) -> None:
    """The guarantee's numbers and sentences, and the README, as the parameters of the manifest call for; left alone
    where no contract has words for them."""
    words, manifest = words_of(out), manifest_of(out)
    guarantee, parameters = manifest["guarantee"], manifest["parameters"]
    if words is None or not all(isinstance(parameters.get(name, 1), int | None) for name in ("k", "m")):
        return
    before = numbers_of(guarantee)
    for name in ("k", "m"):
        if name in guarantee:
            guarantee[name] = parameters.get(name)
    stated = {"name": words.name, "attacker": words.attacker, "not_protected": list(words.not_protected)}
    guarantee.update(stated, **({"facts": dict(words.facts)} if words.facts else {}))
    risk = guarantee.get("risk")
    if risk is not None and isinstance(guarantee.get("k"), int):
        guarantee["risk"] = contract_checks.risk_of(guarantee, risk["model"])
    put_manifest(out, manifest)
    restate_readme(out, words)
    restate_numbers(out, before)


def words_of(out: Path) -> Words | None:
    """The wording for the manifest's parameters that is nearest to the one that is there."""
    share = open_share(out)
    contract = contract_of(share.method)
    assert contract is not None
    try:
        found = list(contract_checks.words_of(share, contract))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None
    there = set(manifest_of(out)["guarantee"]["not_protected"])
    return max(found, key=lambda words: len(there & set(words.not_protected)), default=None)


def restate_readme(out: Path, words: Words | None = None) -> None:
    """The README with the manifest's own sentences, whatever they say."""
    words, manifest = words or words_of(out), manifest_of(out)
    guarantee = manifest["guarantee"]
    if words is None or not all(isinstance(guarantee.get(key), str) for key in ("name", "attacker")):
        return
    left_open = list(map(str, guarantee.get("not_protected") or ()))
    spoken = manifest | {"guarantee": {"unit": "patient"} | guarantee | {"not_protected": left_open}}
    (out / README).write_text(rendered(spoken, words), encoding="utf-8")


def rendered(manifest: dict[str, Any], words: Words) -> str:
    """The README that the verifier asks for beside this manifest."""
    return readme_of(manifest, words.readme, contract_of(manifest["method"]))


def numbers_of(guarantee: Mapping[str, Any]) -> str:
    """The numbers of a guarantee as a README prints them."""
    stated = [(name, guarantee.get(name)) for name in NUMBERS]
    return ", ".join(f"{name} = {value:g}" for name, value in stated if isinstance(value, int | float))


def restate_numbers(out: Path, before: str) -> None:
    """The README with the manifest's numbers in the place of those before."""
    after = numbers_of(manifest_of(out)["guarantee"])
    if before and after:
        in_text(
            README,
            lambda text: text.replace(f"({before})", f"({after})").replace(f", {before})", f", {after})"),
        )(out)


def claiming(**numbers: float | None) -> Change:
    """Numbers of the guarantee (None: gone), in the README too."""

    def apply(out: Path) -> None:
        before = numbers_of(manifest_of(out)["guarantee"])

        def change(manifest: dict[str, Any]) -> None:
            guarantee = manifest["guarantee"]
            rest = {key: value for key, value in guarantee.items() if key not in NUMBERS}
            stated = {name: numbers.get(name, guarantee.get(name)) for name in NUMBERS}
            manifest["guarantee"] = {
                "name": rest.pop("name"), **{n: v for n, v in stated.items() if v is not None}, **rest
            }  # fmt: skip

        in_manifest(change)(out)
        restate_numbers(out, before)

    return apply


def listed_as(order: list[int]) -> Change:
    """The files of the manifest in another order, in the README's table too."""

    def apply(out: Path) -> None:
        in_manifest(lambda m: m.update(files=[m["files"][place] for place in order]))(out)
        rows = re.compile(r"(?:^\| `data/[^\n]*\n)+", re.M)

        def moved(found: re.Match[str]) -> str:
            lines = found[0].splitlines(keepends=True)
            return "".join(lines[place] for place in order)

        in_text(README, lambda text: rows.sub(moved, text, count=1))(out)

    return apply
