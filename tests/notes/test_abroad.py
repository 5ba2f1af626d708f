"""Addresses, companies, telephone numbers and days in the forms of other countries."""

from __future__ import annotations

import pytest

from leeward.notes.annotators.rules import Rules


def found(text: str, category: str) -> list[str]:
    return [text[s.start : s.end] for s in Rules().annotate(text) if s.category == category]


@pytest.mark.parametrize(
    ("text", "street"),
    [
        ("lives at Hauptstraße 12, 10115 Berlin", "Hauptstraße 12"),
        ("Via Roma 12, 90100 Palermo", "Via Roma 12"),
        ("at Calle Mayor, 8 in Madrid", "Calle Mayor, 8"),
        ("12, rue de Lille, 75007 Paris", "12, rue de Lille"),
        ("to 14 Abbey Close, Norwich", "14 Abbey Close"),
        ("Kirkegade 7, 8000 Aarhus", "Kirkegade 7"),
        ("ul. Marszałkowska 12, Warszawa", "ul. Marszałkowska 12"),
        ("PSC 1234, Box 5678", "PSC 1234, Box 5678"),
    ],
)
def test_streets_of_many_countries(text: str, street: str) -> None:
    assert found(text, "address") == [street]


def test_towns_and_postal_codes_are_behind_a_street() -> None:
    text = "14 Abbey Close\nFlat 3\nNewtown, NR1 4AB"
    assert found(text, "address") == ["14 Abbey Close", "Flat 3"]
    assert found("Kirkegade 7, 8000 Aarhus", "zip") == ["8000"]
    assert "NR1 4AB" in found(text, "zip")
    assert found("Kirkegade 7, 8000 Viby", "place") == ["Viby"]


@pytest.mark.parametrize(
    "text",
    ["2 Normal View", "Take 2 Tylenol tablets", "BP 112/80", "Lungs: 20 Left", "L4 and L5 at 3 Right Point"],
)
def test_reports_have_no_addresses(text: str) -> None:
    assert found(text, "address") == []


def test_companies_have_a_legal_form() -> None:
    assert found("works for Harris & Sons Ltd and Müller GmbH", "facility") == [
        "Harris & Sons Ltd",
        "Müller GmbH",
    ]


def test_telephone_numbers_with_a_trunk_prefix() -> None:
    assert found("call 044 668 18 00 or (03) 5334 8245", "phone") == ["044 668 18 00", "(03) 5334 8245"]


def test_days_by_their_name() -> None:
    text = "Seen Monday, since Thanksgiving, on the 5th of next month, in summer of 2003, in March of 2001."
    assert found(text, "date") == [
        "Monday",
        "Thanksgiving",
        "5th of next month",
        "summer of 2003",
        "March of 2001",
    ]
