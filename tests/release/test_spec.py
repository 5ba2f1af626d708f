"""The spec: what it takes, and a table of mistakes with their messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import pytest

from leeward.errors import BadInput
from leeward.fields import Declared, build
from leeward.release.spec import Spec, load, parse, resolve_paths, to_yaml

CONTRACT = """
source:   {format: events, path: events.parquet, columns: {patient: pid, code: icd, age: age, visit: enc}}
population: {format: events, path: everyone.parquet}
method:   {name: disassociation, k: 5, m: 2, utility: {policy: hierarchy, level: 1}}
measure:  [{are: {workload: frequent, min_support: 0.0125}}, {mre: {}}]
engine:   local
formats:  [parquet, csv]
seed:     7
"""


def test_the_spec_of_the_contract() -> None:
    spec = parse(CONTRACT)
    assert spec.source.columns == {"patient": "pid", "code": "icd", "age": "age", "visit": "enc"}
    assert spec.population is not None and spec.population.path == "everyone.parquet"
    assert spec.method["utility"] == {"policy": "hierarchy", "level": 1}
    assert (spec.engine, spec.formats, spec.seed) == ("local", ("parquet", "csv"), 7)


def test_the_spec_as_run_reads_back_and_names_versions() -> None:
    spec = parse(CONTRACT)
    text = to_yaml(spec)
    again = parse(text)
    assert again.versions is not None and set(again.versions) >= {
        "leeward",
        "python",
        "numpy",
        "polars",
        "pyarrow",
    }
    assert Spec(**{**again.__dict__, "versions": None}) == spec


def test_wide_form_plans_and_spark() -> None:
    spec = parse(
        "source: {path: d.csv, columns: {code: [a, b]}, missing: '?'}\nmethod: {name: x}\nengine: {spark: "
        "{master: 'local[2]'}}\nmeasure: [are]\nplan: [{cox: {time: t, event: e, covariates: [age]}}]\n"
    )
    assert spec.source.columns["code"] == ("a", "b")
    assert spec.source.missing == ("?",)


def test_paths_are_beside_the_spec_or_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs/s.yaml").write_text(
        "source: {path: a.csv}\npopulation: {path: b.csv}\nmethod: {name: x, utility: {policy: file, "
        "path: u.csv}}\n"
    )
    (tmp_path / "specs/a.csv").write_text("")
    (tmp_path / "b.csv").write_text("")
    monkeypatch.chdir(tmp_path)
    spec = load("specs/s.yaml")
    assert spec.source.path == str(tmp_path / "specs/a.csv")
    assert spec.population is not None and spec.population.path == str(tmp_path / "b.csv")
    assert spec.method["utility"]["path"] == str(tmp_path / "specs/u.csv")
    as_text = resolve_paths(
        Spec(source=spec.source, method={"name": "x", "policy": "file:b.csv"}), tmp_path / "specs"
    )
    assert as_text.method["policy"] == f"file:{tmp_path / 'b.csv'}"


def test_steps_up_are_not_shown(tmp_path: Path) -> None:
    for name in ("plans", "data", "far/inside"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "data/x.csv").write_text("")
    (tmp_path / "plans/s.yaml").write_text("source: {path: ../data/x.csv}\nmethod: {name: x}\n")
    assert load(tmp_path / "plans/s.yaml").source.path == str(tmp_path / "data/x.csv")
    (tmp_path / "far/x.csv").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "far/inside")
    (tmp_path / "far/inside/s.yaml").write_text("source: {path: ../x.csv}\nmethod: {name: x}\n")
    assert load(tmp_path / "link/s.yaml").source.path == str(tmp_path / "far/x.csv"), "as the system goes up"


START = "source: {path: a.csv}\nmethod: {name: x, k: 5}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sorce: {path: a}\nmethod: {name: x}", "unknown key `sorce`; did you mean `source`?"),
        (
            "source: {path: a, colums: {}}\nmethod: {name: x}",
            "unknown key `colums` in `source`; did you mean `columns`?",
        ),
        (
            "source: {path: a, columns: {patiant: p}}\nmethod: {name: x}",
            "unknown key `patiant` in `source.columns`; did you mean `patient`?",
        ),
        ("source: {path: a}", "`method` is missing"),
        ("source: {path: a}\nmethod: {k: 5}", "`method`: `name` is missing"),
        ("source: {}\nmethod: {name: x}", "`source`: `path` is missing"),
        (START + "seed: seven", "`seed` must be a whole number; got text"),
        (START + "seed: true", "`seed` must be a whole number; got true or false"),
        (START + "formats: [xlsx]", r"`formats\[1\]` must be `parquet` or `csv`; got `xlsx`."),
        (START + "formats: {a: 1}", "`formats` must be a list; got a mapping"),
        (START + "engine: sparc", "`engine`: unknown `sparc`; did you mean `spark`?"),
        (START + "engine: 3", "`engine` must be text or a mapping; got a whole number"),
        (START + "engine: {spark: 2}", "`engine.spark` takes a mapping"),
        (START + "measure: [{are: {}, mre: {}}]", "`measure`: each entry is a name"),
        (START + "plan: [{coks: {}}]", r"unknown key `coks` in `plan\[1\]`; did you mean `cox`"),
        (START + "plan: [{cox: {tme: a}}]", r"unknown key `tme` in `plan\[1\].cox`; did you mean `time`"),
        ("source: [a]\nmethod: {name: x}", "`source` must be a mapping; got a list"),
        ("- a", "a spec is a mapping"),
        ("a: [", r"not valid YAML \(line 1, column"),
        (
            "source: {path: a}\nmethod: {name: x, k: 5, k: 2}",
            r"\(line 2, column 25\): the key `k` is given twice",
        ),
        *(
            (
                f"source: {{path: !!{tag} x}}\nmethod: {{name: x}}",
                "not valid YAML: a value does not fit its tag",
            )
            for tag in ("bool", "int", "float", "timestamp")
        ),
        *(
            (f"source: {{path: a, columns: {{{role}: {value}}}}}\nmethod: {{name: x}}", message)
            for role in ("patient", "code")
            for value, message in (
                ("1.0e+308", f"`source.columns.{role}` must be text or a list of text; got a decimal number"),
                (
                    '!!float "1:2:3"',
                    f"`source.columns.{role}` must be text or a list of text; got a decimal number",
                ),
                ("{a: b}", f"`source.columns.{role}` must be text or a list of text; got a mapping"),
                ("[1, a]", f"`source.columns.{role}` must be text or a list of text; got a list"),
            )
        ),
    ],
)
def test_a_mistake_is_told(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        parse(text)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such spec file"):
        load(tmp_path / "s.yaml")
    (tmp_path / "s.yaml").write_bytes(b"source: \xff")
    with pytest.raises(BadInput, match=r"s\.yaml: not UTF-8 text"):
        load(tmp_path / "s.yaml")
    (tmp_path / "s.yaml").write_text("sorce: {}")
    with pytest.raises(BadInput, match=r"s\.yaml: unknown key `sorce`"):
        load(tmp_path / "s.yaml")


@dataclass(frozen=True, kw_only=True)
class Inner(Declared):
    level: int = 1


@dataclass(frozen=True, kw_only=True)
class Parameters(Declared):
    name: ClassVar[str] = "x"
    k: int
    share: float = 0.5
    safe: bool = False
    mode: Literal["fast", "plain"] = "fast"
    sensitive: tuple[str, ...] = ()
    policy: str | None = None
    inner: Inner | None = None
    loose: Inner | str | Mapping[str, int] | None = None


def test_a_parameter_class_is_built_with_its_types() -> None:
    built = build(
        Parameters,
        {"k": 3, "share": 1, "sensitive": ["a"], "utility": "u", "inner": {"level": 2}},
        "method",
        aliases={"utility": "policy"},
    )
    assert built == Parameters(k=3, share=1.0, sensitive=("a",), policy="u", inner=Inner(level=2))
    assert isinstance(built.share, float)


def test_a_class_that_takes_mappings_judges_them_itself() -> None:
    assert build(Parameters, {"k": 3, "loose": {"anything": 1}}, "").loose == {"anything": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "`method.k` is missing"),
        ({"k": "5"}, "`method.k` must be a whole number; got text"),
        ({"k": True}, "`method.k` must be a whole number; got true or false"),
        ({"k": 5.5}, "`method.k` must be a whole number; got a decimal number"),
        ({"k": None}, "`method.k` must be a whole number; got nothing"),
        ({"k": 1, "saef": True}, "unknown key `saef` in `method`; did you mean `safe`?"),
        ({"k": 1, "safe": 1}, "`method.safe` must be true or false; got a whole number"),
        (
            {"k": 1, "mode": "fats"},
            "`method.mode` must be `fast` or `plain`; got `fats`; did you mean `fast`?",
        ),
        ({"k": 1, "mode": 3}, "`method.mode` must be `fast` or `plain`; got a whole number"),
        ({"k": 1, "sensitive": [1]}, r"`method.sensitive\[1\]` must be text"),
        ({"k": 1, "inner": {"levl": 2}}, "unknown key `levl` in `method.inner`; did you mean `level`?"),
        ({"k": 1, "utility": "a", "policy": "b"}, "`method.policy` and its other name are both given"),
    ],
)
def test_a_wrong_parameter_is_told(content: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        build(Parameters, content, "method", aliases={"utility": "policy"})
