"""Mutations of what a release says: every sentence of the guarantee and the README, every key of release.json."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.mutations.copies import Change, Kinds, Mutation, both, in_manifest, in_text, manifest_of
from tests.mutations.restating import restate_readme, restate_words


def words_kinds(out: Path) -> Kinds:
    """Every sentence of the guarantee, in the README too, and of the README alone changed, lost or added."""
    manifest = manifest_of(out)
    guarantee = manifest["guarantee"]

    def said(change: Callable[[dict[str, Any]], Any]) -> Change:
        return both(in_manifest(lambda m: change(m["guarantee"])), restate_readme)

    def lines(change: Callable[[list[str]], Any]) -> Change:
        return said(lambda g: change(g["not_protected"]))

    for place, sentence in enumerate(guarantee["not_protected"]):
        about = f"not_protected {place}"
        yield Mutation(f"{about} gone", "words", lines(lambda s, p=place: s.pop(p)))
        yield Mutation(
            f"{about} cut", "words", lines(lambda s, p=place: s.__setitem__(p, s[p][: len(s[p]) // 2]))
        )
        word = sentence.split()[1]
        yield Mutation(
            f"{about}: a word gone",
            "words",
            lines(lambda s, p=place, w=word: s.__setitem__(p, s[p].replace(f" {w}", "", 1))),
        )
        if figure := re.search(r"\d+", sentence):
            other = f"{sentence[: figure.start()]}{int(figure[0]) + 1}{sentence[figure.end() :]}"
            yield Mutation(
                f"{about}: another figure", "words", lines(lambda s, p=place, o=other: s.__setitem__(p, o))
            )
    yield Mutation("not_protected empty", "words", said(lambda g: g.update(not_protected=[])))
    yield Mutation("a sentence more", "words", lines(lambda s: s.append("p001")))
    yield Mutation("sentences in another order", "words", lines(lambda s: s.reverse()))
    for key in ("name", "attacker", "unit"):
        yield Mutation(f"{key} is another", "words", said(lambda g, k=key: g.update({k: "anybody"})))
        yield Mutation(f"{key} gone", "words", in_manifest(lambda m, k=key: m["guarantee"].pop(k)))
        yield Mutation(
            f"{key} with a word more",
            "words",
            said(lambda g, k=key: g.update({k: g[k] + " p001"})),
        )
    yield Mutation(
        "a key more in the guarantee", "words", in_manifest(lambda m: m["guarantee"].update(note="p001"))
    )
    if "facts" in guarantee:
        yield Mutation("facts gone", "words", in_manifest(lambda m: m["guarantee"].pop("facts")))
    yield Mutation(
        "facts added",
        "words",
        in_manifest(lambda m: m["guarantee"].setdefault("facts", {}).update(safe=True)),
    )
    readme = "share/README.md"
    blocks = (out / readme).read_text(encoding="utf-8").split("\n\n")
    for place, block in enumerate(blocks):
        if block.startswith("| file"):
            continue
        yield Mutation(
            f"README block {place} gone",
            "words",
            in_text(
                readme,
                lambda t, b=block: t.replace(b + "\n\n", "", 1) if b + "\n\n" in t else t.replace(b, "", 1),
            ),
        )
        yield Mutation(
            f"README block {place}: a word gone",
            "words",
            in_text(
                readme, lambda t, b=block: t.replace(b, b.replace(" ", "", 1) if " " in b else b + "x", 1)
            ),
        )
    yield Mutation("README with an identifier", "words", in_text(readme, lambda t: t + "\np001\n"))
    yield Mutation("README missing", "words", lambda c: (c / readme).unlink())
    yield Mutation(
        "README claims more",
        "words",
        in_text(readme, lambda t: t.replace("## Files", "Nobody can be found.\n\n## Files")),
    )


def claims_kinds(out: Path, choices: Callable[[str, Any], Sequence[Any]], further: dict[str, Any]) -> Kinds:
    """Every key of release.json: another value, none, one more, with words that fit. `choices`: other values that a
    parameter can have."""
    manifest = manifest_of(out)

    def stated(name: str, change: Callable[[dict[str, Any]], Any]) -> Mutation:
        return Mutation(
            name, "claims", both(in_manifest(lambda m: change(m["parameters"])), restate_words), worded=True
        )

    def to(key: str, value: Any) -> Callable[[dict[str, Any]], Any]:
        return lambda parameters: parameters.update({key: value})

    for key, value in manifest["parameters"].items():
        for other in choices(key, value):
            if other != value:
                yield stated(
                    f"parameter {key}: {json.dumps(value)} -> {json.dumps(other)}"[:90], to(key, other)
                )
        yield stated(f"parameter {key} gone", lambda p, k=key: p.pop(k))
        yield stated(f"parameter {key} is an object", to(key, {"p001": 1}))
    for key, value in further.items():
        if key not in manifest["parameters"]:
            yield stated(f"parameter {key} claimed: {json.dumps(value)}", to(key, value))
    for name in ("k", "m"):
        if name in manifest["guarantee"]:
            for step in (1, -1):
                yield Mutation(
                    f"guarantee {name} {step:+d}",
                    "claims",
                    in_manifest(lambda m, n=name, s=step: m["guarantee"].update({n: m["guarantee"][n] + s})),
                )
    yield Mutation("records is another", "claims", in_manifest(lambda m: m.update(records=m["records"] + 1)))
    yield Mutation(
        "method is another",
        "claims",
        in_manifest(
            lambda m: m.update(method="k-anonymity" if m["method"] != "k-anonymity" else "condensation")
        ),
    )
    yield Mutation("version is another", "claims", in_manifest(lambda m: m.update(leeward="9.9.9")))
    yield Mutation("seeded is false", "claims", in_manifest(lambda m: m.update(seeded=False)))
    yield Mutation("a seed", "claims", in_manifest(lambda m: m.update(seed=3)))
    yield Mutation("a key more", "claims", in_manifest(lambda m: m.update(note="p001")))
    for key, value in (("rows", 1), ("sha256", "0" * 64), ("path", "data/other.parquet")):
        yield Mutation(
            f"files: {key} is another",
            "claims",
            in_manifest(lambda m, k=key, v=value: m["files"][0].update({k: v})),
            restated=False,
        )
    yield Mutation("files: one not listed", "claims", in_manifest(lambda m: m["files"].pop()), restated=False)
    yield Mutation(
        "files: one listed twice",
        "claims",
        in_manifest(lambda m: m["files"].append(m["files"][0])),
        restated=False,
    )
