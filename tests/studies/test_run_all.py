"""`make studies` goes on where it stopped, records what commands take, and shows what it changed."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = {
    "a": "from pathlib import Path\nprint('said')\n"
    "page = Path('docs/a.md')\npage.write_text(page.read_text() + 'measured\\n')\n",
    "b": "from pathlib import Path\nraise SystemExit(not Path('ready').exists())\n",
}
COMMANDS = "python benchmarks/a.py\npython benchmarks/b.py\npython benchmarks/c.py --data DIR"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two scripts, and a page."""
    for folder in ("benchmarks", "docs/studies"):
        (tmp_path / folder).mkdir(parents=True)
    for name, text in SCRIPTS.items():
        (tmp_path / "benchmarks" / f"{name}.py").write_text(text, encoding="utf-8")
    (tmp_path / "docs" / "a.md").write_text("# A\n", encoding="utf-8")
    readme = tmp_path / "docs" / "studies" / "README.md"
    readme.write_text("<!-- durations -->\nnone\n<!-- end of durations -->\n", encoding="utf-8")
    (tmp_path / ".gitignore").write_text("build/\nready\n", encoding="utf-8")
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for command in (("init", "-q"), ("add", "."), (*who, "commit", "-qm", "First")):
        subprocess.run(["git", *command], cwd=tmp_path, check=True, timeout=60)
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import run_all

    monkeypatch.setattr(run_all, "ROOT", tmp_path)
    monkeypatch.setattr(run_all, "README", readme)
    monkeypatch.setattr(run_all, "DURATIONS", readme.with_name("durations.csv"))
    monkeypatch.setattr(run_all, "COMMANDS", COMMANDS)
    monkeypatch.setattr(sys, "argv", ["run_all.py"])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run_goes_on_where_it_stopped(tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    import run_all

    with pytest.raises(SystemExit, match="True"):
        run_all.main()
    out, errors = capfd.readouterr()
    assert "left out:\n  python benchmarks/c.py --data DIR" in errors
    assert "failed:\n  python benchmarks/b.py: " in errors
    assert "0 of 3 commands recorded" in out and "1 of 3 commands recorded" in out
    (tree / "ready").touch()
    with pytest.raises(SystemExit, match="False"):
        run_all.main()
    assert (tree / "docs" / "a.md").read_text() == "# A\nmeasured\n"  # not run again
    out, _ = capfd.readouterr()
    assert "docs/a.md" in out and "\n+measured\n" in out and "docs/studies/durations.csv" in out
    (folder,) = (tree / "build" / "studies").iterdir()
    assert [*json.loads((folder / "state.json").read_text())] == COMMANDS.splitlines()[:2]
    assert [log.read_text() for log in sorted(folder.glob("*.log"))] == ["said\n", ""]
    head, *rows = csv.reader(run_all.DURATIONS.open(encoding="utf-8"))
    assert (head, [row[0] for row in rows]) == (run_all.HEAD, COMMANDS.splitlines()[:2])
    assert "2 of 3 commands recorded" in run_all.README.read_text(encoding="utf-8")


def test_a_tree_that_differs_from_its_commit_is_refused(tree: Path) -> None:
    import run_all

    (tree / "benchmarks" / "a.py").write_text("", encoding="utf-8")
    with pytest.raises(SystemExit, match="Commit them first"):
        run_all.main()


def test_the_committed_durations_are_of_commands_and_the_page_has_their_sum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import run_all

    assert [*run_all.recorded()] == [each for each in run_all.commands() if each in run_all.recorded()]
    assert run_all.total(run_all.commands()) in run_all.README.read_text(encoding="utf-8")
