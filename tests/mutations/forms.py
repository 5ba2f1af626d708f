"""Mutations of how release.json, the README and other texts are written: orders of keys, types of values, ends of
lines, numbers claimed beside the true ones. Each is a channel or a false word: a release is written in one way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.mutations.copies import Change, Kinds, Mutation, csvs, in_manifest, in_text, manifest_of
from tests.mutations.restating import README, claiming, listed_as, restate_words

MANIFEST = "share/release.json"


def form_kinds(out: Path) -> Kinds:
    """Every form of the texts, every number beside the guarantee's."""
    for name, change in {**orders_of_keys(out), **types_of_values(out), **ends_of_lines(out)}.items():
        yield Mutation(name, "form", change, restated=".csv" in name)
    for name, change in numbers_claimed(out).items():
        yield Mutation(name, "claims", change, worded=True)


def orders_of_keys(out: Path) -> dict[str, Change]:
    """The keys of each object, the entries of lists and the files in another order."""
    manifest = manifest_of(out)
    found = {
        f"keys of {'.'.join(path) or 'release.json'} in another order": at(path, backwards)
        for path, value in objects(manifest, ())
        if len(value) > 1
    }
    found |= {
        f"parameter {name} in another order": both_words(at(("parameters", name), backwards))
        for name, value in manifest["parameters"].items()
        if isinstance(value, list) and len(value) > 1 and not isinstance(value[0], dict)
    }
    if (several := len(manifest["files"])) > 1:
        found["files in another order"] = listed_as(list(range(several))[::-1])
        found["two files in another order"] = listed_as([1, 0, *range(2, several)])
    return found


def objects(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Every object of a manifest with its path; of a list the first entry."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        yield from objects(value[0], (*path, "0"))
    if isinstance(value, dict):
        yield path, value
        for key, each in value.items():
            yield from objects(each, (*path, key))


def at(path: tuple[str, ...], change: Any) -> Change:
    """A change of the value at a path of the manifest."""

    def apply(manifest: dict[str, Any]) -> None:
        if not path:
            new = change(dict(manifest))
            manifest.clear()
            manifest.update(new)
            return
        holder: Any = manifest
        for key in path[:-1]:
            holder = holder[int(key) if isinstance(holder, list) else key]
        last = int(path[-1]) if isinstance(holder, list) else path[-1]
        holder[last] = change(holder[last])

    return in_manifest(apply)


def backwards(value: Any) -> Any:
    return dict(reversed(value.items())) if isinstance(value, dict) else value[::-1]


def both_words(change: Change) -> Change:
    """A change of the parameters, with the words that fit it."""

    def apply(out: Path) -> None:
        change(out)
        restate_words(out)

    return apply


def types_of_values(out: Path) -> dict[str, Change]:
    """Numbers and flags as values of another type that read alike."""
    manifest = manifest_of(out)
    found: dict[str, Change] = {}
    whole = {name: value for name, value in manifest["parameters"].items() if type(value) is int}
    numbers = [name for name in ("k", "m", "epsilon") if name in manifest["guarantee"]]
    for name in numbers:
        found[f"{name} as a text"] = everywhere(name, str)
        found[f"{name} as a list"] = everywhere(name, lambda value: [value])
        if type(manifest["guarantee"][name]) is int:
            found[f"{name} as a fraction"] = everywhere(name, float)
    for name in [name for name in whole if name not in numbers][:2]:
        found[f"parameter {name} as a fraction"] = at(("parameters", name), float)
    flags = [name for name, value in manifest["parameters"].items() if isinstance(value, bool)]
    for name in flags[:1]:
        found[f"parameter {name} as a number"] = at(("parameters", name), int)
    for path in (("records",), ("files", "0", "rows")):
        found[f"{'.'.join(path)} as a fraction"] = at(path, float)
        found[f"{'.'.join(path)} as a text"] = at(path, str)
    for path in (("guarantee",), ("parameters",), ("files",), ("guarantee", "not_protected"), ("leeward",)):
        found[f"{'.'.join(path)} is null"] = at(path, lambda value: None)
    return found


def everywhere(name: str, change: Any) -> Change:
    """A number of the guarantee and of the parameters."""

    def apply(manifest: dict[str, Any]) -> None:
        for holder in (manifest["guarantee"], manifest["parameters"]):
            if name in holder:
                holder[name] = change(holder[name])

    return in_manifest(apply)


def ends_of_lines(out: Path) -> dict[str, Change]:
    """Texts with other ends of lines, spaces, marks."""
    found: dict[str, Change] = {}
    for path in (README, MANIFEST, *csvs(out)):
        name = path.rsplit("/", 1)[1]
        changes = {
            "lines end with CR and LF": lambda text: text.replace("\n", "\r\n"),
            "lines end with CR": lambda text: text.replace("\n", "\r"),
            "one line ends with CR and LF": lambda text: text.replace("\n", "\r\n", 1),
            "no end of the last line": lambda text: text.rstrip("\n"),
            "a line more": lambda text: text + "\n",
            "a mark of order before it": lambda text: "\ufeff" + text,
            "spaces behind it": lambda text: text + " \t",
        }
        found |= {f"{name}: {what}": in_bytes(path, change) for what, change in changes.items()}
    readme = {
        "a space behind a line": lambda text: text.replace("\n", " \n", 1),
        "a space without width": lambda text: text.replace(" ", " \u200b", 1),
        "a comment": lambda text: text + "<!-- p001 -->\n",
    }
    found |= {f"README.md: {what}": in_text(README, change) for what, change in readme.items()}
    found["release.json: escaped letters"] = in_text(
        MANIFEST, lambda text: text.replace('"guarantee"', '"\\u0067uarantee"', 1)
    )
    found["release.json: a key twice"] = in_text(
        MANIFEST, lambda text: text.replace("{", '{\n  "records": 7,', 1)
    )
    return found


def in_bytes(path: str, change: Any) -> Change:
    """A change of a text to the letter."""

    def apply(out: Path) -> None:
        file = out / path
        file.write_bytes(change(file.read_bytes().decode("utf-8")).encode("utf-8"))

    return apply


def numbers_claimed(out: Path) -> dict[str, Change]:
    """Numbers that nobody computed, and other values of the method's own, in manifest, README and words."""
    guarantee, parameters = manifest_of(out)["guarantee"], manifest_of(out)["parameters"]
    found: dict[str, Change] = {}
    for name, value in (("k", 5), ("m", 2), ("epsilon", 0.1), ("delta", 1e-9)):
        if name not in guarantee:
            found[f"{name} claimed, in the README too"] = claiming(**{name: value})
        else:
            found[f"{name} gone, in the README too"] = claiming(**{name: None})
    for name in ("k", "m"):
        if guarantee.get(name) is not None and name in parameters:
            for step in (1, -1):
                found[f"{name} {step:+d} everywhere"] = both_words(
                    at(("parameters", name), lambda value, s=step: value + s)
                )
    found["version is another, in the README too"] = other_version
    found["seeded no longer stated, in the README neither"] = unseeded
    return found


def other_version(out: Path) -> None:
    old = manifest_of(out)["leeward"]
    in_manifest(lambda m: m.update(leeward="9.9.9"))(out)
    in_text(README, lambda text: text.replace(f"Leeward {old}", "Leeward 9.9.9"))(out)


def unseeded(out: Path) -> None:
    in_manifest(lambda m: m.pop("seeded", None))(out)
    restate_words(out)
