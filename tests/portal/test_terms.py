"""Find, browse and save codes and terms, by page, program and client: public names, never a count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.portal.made import Bench
from tests.portal.served import serving

import leeward as lw
from leeward.errors import BadInput
from leeward.portal import sets
from leeward.portal.terms import MOST_BELOW, browse, example_of, look_up, place_of, search
from leeward.queries.language.vocabulary import AnyText, Terms
from leeward.runs.portal import make_demo
from leeward.runs.vocabularies import vocabulary_of

ICD9, ICD10 = vocabulary_of("icd9"), vocabulary_of("icd10")
LEXICON = vocabulary_of("lexicon")
PEAKS = Terms(
    ("A10", "A10.1", "A10B", "C02"),
    parents={"A10.1": "A10", "A10": "A", "A10B": "A", "C02": "C", "left out": "side"},
    labels={
        "A": "Alimentary tract",
        "A10": "Drugs used in diabetes",
        "A10B": "Blood glucose lowering (oral)",
    },
    aliases={"antidiabetics": "A10", "sugar pills": "A10B"},
)


@pytest.mark.parametrize(
    ("text", "first", "label"),
    [
        ("401", "401", "Essential hypertension"),
        ("4", "401", None),
        ("25000", "250.00", "Diabetes mellitus, a code of 250"),
        ("250.0", "250.0", "Diabetes mellitus, a code of 250"),
        ("essential hyper", "401", "Essential hypertension"),
        ("mellitus diab", "250", "Diabetes mellitus"),
        ("circulatory system", "390-459", "Diseases of the circulatory system"),
        ("e950", "E950", None),
    ],
)
def test_a_code_is_found_by_its_beginning_and_by_words(text: str, first: str, label: str | None) -> None:
    """All of these were "no term of the public list"."""
    found = search(ICD9, text)
    names = [each.name for each in found]
    assert first == names[0] and label in (None, found[0].label)
    for each in found:
        ICD9.resolve(each.asked.strip('"'))  # what is offered can be asked for
    assert search(ICD10, "i10")[0].name == "I10" and search(ICD10, "E11.65")[0].above == "E11"


def test_a_hierarchy_of_a_file_is_found_too() -> None:
    assert [each.name for each in search(PEAKS, "a10")] == ["A10", "A10.1", "A10B"]
    assert search(PEAKS, "a101")[0].name == "A10.1"
    assert search(PEAKS, "glucose")[0].asked == '"blood glucose lowering (oral)"'.replace("blood", "Blood")
    assert [each.name for each in browse(PEAKS, "")] == ["A", "C"], (
        "a node without a term cannot be asked for"
    )
    assert [(each.name, each.below) for each in browse(PEAKS, "A")] == [("A10B", 0), ("A10", 1)]
    assert [each.name for each in place_of(PEAKS, "A10.1")] == ["A", "A10", "A10.1"]


def test_the_synonym_that_matched_is_told() -> None:
    """`fev` showed neutropenia, and not why."""
    assert [(each.name, each.synonym) for each in search(PEAKS, "antidiab")] == [("A10", "antidiabetics")]
    assert search(PEAKS, "drugs")[0].synonym is None
    (first, *_), pyrexia = search(LEXICON, "fev"), search(LEXICON, "pyrexia")[0]
    assert (first.label, first.synonym) == ("fever", None)
    assert (pyrexia.label, pyrexia.synonym) == ("fever", "pyrexia")
    for each in search(LEXICON, "fev"):
        assert "fev" in each.label or "fev" in str(each.synonym)


def test_the_tree_is_walked_from_the_top_to_a_code_and_back() -> None:
    listed = look_up(ICD9, "", "*")
    assert listed is not None and len(listed.names) == 19 and listed.place == []
    chapter = next(each for each in listed.names if each.label.startswith("Diseases of the circulatory"))
    section = next(each for each in browse(ICD9, chapter.name) if each.name == "401-405")
    assert (section.label, section.below, section.above) == ("Hypertensive disease", 5, "390-459")
    assert [each.name for each in browse(ICD9, section.name)] == ["401", "402", "403", "404", "405"]
    assert browse(ICD9, "401") == []
    assert [each.name for each in place_of(ICD9, "401.9")] == ["390-459", "401-405", "401", "401.9"]
    assert len(browse(LEXICON, "")) == MOST_BELOW
    for unknown in ("nothing", "V99"):
        with pytest.raises(BadInput, match="no such name"):
            browse(ICD9, unknown)


def test_an_index_without_a_public_list_offers_nothing() -> None:
    assert search(AnyText(), "fever") == [] == browse(AnyText(), "")
    assert look_up(AnyText(), "", "") is None
    assert [example_of(each) for each in (AnyText(), ICD9, LEXICON)] == [
        "A & (B | C)", "250 & (401 | 585)", "sore throat & (fever | cough)",
    ]  # fmt: skip


# -- saved sets ----


def test_sets_stand_for_their_terms() -> None:
    known = {"one": "a | b", "two": '"x & y"'}
    assert sets.with_sets("c & @one & !@Two", known) == 'c & (a | b) & !("x & y")'
    assert sets.with_sets('"@one" & me@home', known) == '"@one" & me@home'
    with pytest.raises(BadInput, match=r"no set @three; it has @one, @two"):
        sets.with_sets("@three", known)


def test_a_set_asked_twice_is_one_answer_and_a_changed_one_changes_none(bench: Bench) -> None:
    client, token = bench.client("rita"), bench.token("rita")
    ask = f"/projects/{bench.project['one']}"
    saved = bench.post("rita", f"{ask}/sets", index=bench.index, terms="fever | rash", set_name="@Warm")
    assert saved.status_code == 303 and "terms=%40warm" in saved.headers["location"]
    page = client.get(saved.headers["location"]).text
    assert "Fever | rash" in page, "the price shows what the set stands for"
    first = bench.ask(token, "set-1", bench.question("@warm & cough", "0.3"))
    again = bench.ask(token, "set-2", bench.question("cough & (rash | fever)", "0.3"))
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    review = bench.post(
        "rita", f"{ask}/ask", index=bench.index, terms="@warm", epsilon="0.3", do="review"
    ).text
    assert 'name="terms" value="(fever | rash)"' in review, "what is paid is what was priced"
    bench.post("lea", f"{ask}/sets", index=bench.index, terms="chill", set_name="warm")
    assert [each["terms"] for each in sets.sets_of(bench.portal.database, bench.project["one"])] == ["chill"]
    shown = client.get(f"/answers/{first.json()['id']}")
    assert shown.status_code == 200 and "@warm" not in shown.text
    assert bench.ask(token, "set-3", bench.question("@warm", "0.3")).json()["query"] == "chill"
    bench.post("lea", f"{ask}/sets", remove="warm")
    refused = bench.ask(token, "set-4", bench.question("@warm", "0.3"))
    assert refused.status_code == 422 and "no set @warm" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"set_name": "1st", "terms": "fever"}, "begins with a letter"),
        ({"set_name": "x", "terms": "fever |"}, "on each side"),
        ({"set_name": "x", "terms": "@nothing"}, "no set @nothing"),
    ],
)
def test_a_set_that_cannot_be_asked_for_is_not_saved(
    bench: Bench, form: dict[str, str], message: str
) -> None:
    reply = bench.post("rita", f"/projects/{bench.project['one']}/sets", index=bench.index, **form)
    assert reply.status_code == 422 and message in reply.text


def test_sets_are_those_of_a_project(bench: Bench) -> None:
    made = bench.post("rob", f"/projects/{bench.project['two']}/sets", terms="fever", set_name="theirs")
    assert made.status_code == 303
    theirs = f"/api/v1/projects/{bench.project['two']}/sets"
    sent = {"authorization": f"Bearer {bench.token('rita')}"}
    assert bench.client(**sent).get(theirs).status_code == 404
    assert bench.client(**sent).put(f"{theirs}/mine", json={"terms": "fever"}).status_code == 404
    assert (
        "theirs"
        not in bench.client(**sent).get(theirs.replace(bench.project["two"], bench.project["one"])).text
    )
    refused = bench.ask(bench.token("rita"), "theirs", bench.question("@theirs", "0.1"))
    assert refused.status_code == 422 and "theirs," not in refused.text.partition("it has")[2]
    reader = {"authorization": f"Bearer {bench.token('rita', scope='read')}"}
    ours = theirs.replace(bench.project["two"], bench.project["one"])
    assert bench.client(**reader).put(f"{ours}/mine", json={"terms": "fever"}).status_code == 403


# -- codes in a portal ----


@pytest.fixture(scope="module", name="demo")
def demo_of_codes(tmp_path_factory: pytest.TempPathFactory, state_of_the_module: None) -> Any:
    from leeward.portal.app import make_app
    from leeward.portal.settings import read_settings

    folder = tmp_path_factory.mktemp("demo") / "portal"
    made: list[Any] = []

    def app(port: int) -> Any:
        url = f"http://127.0.0.1:{port}"
        made.append(make_demo(folder, patients=500, public_url=url))
        return make_app(read_settings(folder, local_accounts=True, public_url=url))

    with serving(app) as port:
        yield f"http://127.0.0.1:{port}", made[0], folder


def test_codes_are_found_browsed_saved_and_counted_by_a_program(
    demo: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, made, folder = demo
    portal = lw.connect(url, token=token_of(folder, made))
    assert portal.terms(made.codes, "401")[0]["label"] == "Essential hypertension"
    top = portal.browse(made.codes)
    below = portal.browse(made.codes, "390-459")
    assert len(top) == 19 and "401-405" in [each["name"] for each in below]
    assert set(top[0]) == {"name", "label", "asked", "synonym", "above", "below"}, "and no count of patients"
    portal.save_set("burns", "948 | 949 | 970")
    assert portal.sets() == {"burns": "948 | 949 | 970"}
    first = portal.ask(made.codes, "@burns & !749", epsilon=0.2)
    again = portal.ask(made.codes, "!749 & (970 | 949 | 948)", epsilon=0.2)
    assert (first["answer"], again["cost"]) == (again["answer"], 0)
    words = portal.price(made.codes, "@burns", epsilon=0.2)["words"]
    assert words.endswith("| 949 Burn, unspecified | 970 Poisoning by central nervous system stimulants")
    assert first["query"] == '!"749" & ("948" | "949" | "970")'
    with pytest.raises(lw.BadInput, match="at most ε 1 in this project"):
        portal.price(made.codes, "401", within=0)
    portal.remove_set("burns")
    assert portal.sets() == {}


def token_of(folder: Path, made: Any) -> str:
    from leeward.portal import people, sessions
    from leeward.portal.store import open_store, reading

    database = open_store(folder)
    with reading(database) as connection:
        viewer = people.viewer_of(connection, made.people["rita"])
    assert viewer is not None
    return sessions.make_token(database, viewer, made.project, "ask", 30, "test")[1]
