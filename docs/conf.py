"""The site: `make site` writes it to build/site, where index.html opens from the file, with search."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import click
from sphinx.application import Sphinx
from sphinx.config import Config

from leeward.version import __version__

COMMANDS = Path(__file__).parent / "reference" / "commands"

project = "Leeward"
version = release = __version__
project_copyright = "the Leeward maintainers"
extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
exclude_patterns = ["studies/README.md"]
myst_heading_anchors = 4
numpydoc_show_class_members = False
autosummary_generate = True
default_role = "literal"
autodoc_typehints = "none"  # the signature has them
templates_path = ["_templates"]
html_theme = "furo"
html_title = "Leeward"
html_copy_source = False
html_show_search_summary = False  # browsers forbid a page that was opened from a file to fetch others


def write_commands(app: Sphinx, config: Config) -> None:
    """A page for each command and those under it: their `--help`, as it is printed."""
    COMMANDS.mkdir(parents=True, exist_ok=True)
    main = import_module("leeward.cli.main")
    lines = ["# Commands", ""]
    for section, table in main.SECTIONS.items():
        lines += [f"## {section}", "", "| | |", "|---|---|"]
        lines += [f"| [`leeward {name}`]({name}.md) | {line} |" for name, (_, line) in table.items()] + [""]
    lines += ["```{toctree}", ":hidden:", "", *main.COMMANDS, "```", ""]
    (COMMANDS / "all.md").write_text("\n".join(lines), encoding="utf-8")
    top = click.Context(main.leeward, info_name="leeward", terminal_width=80)
    for name in main.COMMANDS:
        page = "\n".join(help_of(main.leeward.get_command(top, name), name, top, 1))
        (COMMANDS / f"{name}.md").write_text(page, encoding="utf-8")


def help_of(command: click.Command, name: str, above: click.Context, level: int) -> list[str]:
    """A command's section, with those of the commands under it."""
    context = click.Context(command, info_name=name, parent=above, terminal_width=80)
    lines = [f"{'#' * level} {context.command_path}", "", "```text", command.get_help(context), "```", ""]
    under = command.commands if isinstance(command, click.Group) else {}
    for each, command in under.items():
        lines += help_of(command, each, context, level + 1)
    return lines


def make_accessible(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object) -> None:
    """What the theme leaves out: levels of the sidebar's headings; tables and code that scroll take the keyboard."""
    for part, plain, accessible in (
        ("furo_navigation_tree", 'role="heading"', 'role="heading" aria-level="2"'),
        ("body", '<div class="table-wrapper', '<div tabindex="0" class="table-wrapper'),
        ("body", "<pre>", '<pre tabindex="0">'),
    ):
        context[part] = context.get(part, "").replace(plain, accessible)


def setup(app: Sphinx) -> None:
    app.connect("config-inited", write_commands)
    app.connect("html-page-context", make_accessible, priority=900)  # after the theme's own
