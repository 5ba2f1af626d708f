"""The report: one HTML file for the custodian, made from the JSON files of a release folder."""

from __future__ import annotations

from leeward.report.sections import Chart, Notes, Section, Table, Tile, Tiles
from leeward.report.writing import render

__all__ = ["Chart", "Notes", "Section", "Table", "Tile", "Tiles", "render"]
