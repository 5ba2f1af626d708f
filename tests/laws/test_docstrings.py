"""Every public name describes its parameters and has an example, which runs in an empty folder as printed."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import leeward as lw

TAKEN = {name: getattr(lw, name) for name in lw.__all__ if name not in ("__version__", "releases", "synth")}
OF_GROUPS = {
    f"{group}.{name}": each
    for group in ("releases", "synth")
    for name, each in vars(getattr(lw, group)).items()
}
PUBLIC = {"leeward": lw, **TAKEN, **OF_GROUPS}


def takes_nothing(public: Any) -> bool:
    return public is lw or (inspect.isclass(public) and issubclass(public, Exception))


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_has_parameters_and_an_example_that_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    public, text = PUBLIC[name], inspect.cleandoc(PUBLIC[name].__doc__)
    assert takes_nothing(public) or re.search(r"\n(Parameters|Attributes)\n-+\n\w+.* : ", text)
    if inspect.isfunction(public):
        described = re.findall(
            r"^(?:\*\*)?(\w+(?:, \w+)*)(?= : |$)", text.partition("\nReturns\n")[0], re.MULTILINE
        )
        assert set(inspect.signature(public).parameters) <= set(", ".join(described).split(", "))
        assert "\nReturns\n-------\n" in text
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LEEWARD_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("LEEWARD_HOME", str(tmp_path / "home"))
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    lines: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=lines.append)
    assert example.examples and not lines, "".join(lines)
