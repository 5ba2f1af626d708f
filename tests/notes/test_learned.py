"""The learned annotators: their tables against the libraries they come from, and what they learn from little."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.notes.small_lexicon import SMALL
from tests.oracles import runs

from leeward.errors import BadInput
from leeward.notes.annotators.dictionary import Dictionary
from leeward.notes.annotators.learned import CARD, crf, load, model_folder, svm
from leeward.notes.annotators.learned.features import SLOTS, attributes, class_of, features_at, look, shape_of
from leeward.notes.annotators.learned.labels import LABELS, labels_of, spans_of
from leeward.notes.annotators.learned.linear import LinearAnnotator, best_sequence
from leeward.notes.annotators.learned.training import train
from leeward.notes.corpora.evaluation import evaluate
from leeward.notes.spans import AnnotatedNote, Span
from leeward.notes.vocabulary import PIECES, Shared, plain_number, tokens_of
from leeward.synthetic.notes import NotePlan, synthetic_notes

DICTIONARY = Dictionary(SMALL)


def corpus(number: int, split: Any = "training") -> list[AnnotatedNote]:
    return [note.annotated for note in synthetic_notes(NotePlan(number, number, split, 11), SMALL)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("models") / "small"
    train(corpus(60), DICTIONARY, out, 1, corpus={"name": "test"})
    return out


@pytest.fixture(scope="module")
def both(trained: Path) -> list[LinearAnnotator]:
    return [crf.load(trained, DICTIONARY), svm.load(trained, DICTIONARY)]


@given(st.text(max_size=60))
def test_every_sign_that_is_no_blank_is_in_one_token(text: str) -> None:
    tokens = tokens_of(text)
    covered = [0] * len(text)
    for word, start, end in zip(tokens.words, tokens.starts.tolist(), tokens.ends.tolist(), strict=True):
        assert text[start:end] == word
        for place in range(start, end):
            covered[place] += 1
    assert covered == [int(not sign.isspace() or sign == "\n") for sign in text]


def test_tokens_by_hand() -> None:
    words = tokens_of("Mr. O'Neil, 88yo:\n(555) 123-4567").words
    assert words == [
        "Mr",
        ".",
        "O",
        "'",
        "Neil",
        ",",
        "88",
        "yo",
        ":",
        "\n",
        "(",
        "555",
        ")",
        "123",
        "-",
        "4567",
    ]


@pytest.mark.parametrize(
    ("word", "expected", "shape"),
    [
        ("Dr", "title", "Xx"),
        ("Brown", "capital", "Xxx"),
        ("BROWN", "upper", "XX"),
        ("J", "initial", "X"),
        ("1998", "year", "dddd"),
        ("12345", "d5", "ddddd"),
        ("MA", "state", "XX"),
        ("or", "stop", "xx"),
        ("April", "month", "Xxx"),
        ("", "edge", ""),
        ("\n", "line", "<line>"),
        ("¶", "sign", "¶"),
    ],
)
def test_classes_and_shapes_of_words(word: str, expected: str, shape: str) -> None:
    assert (class_of(word), shape_of(word)) == (expected, shape)


@given(st.from_regex(r"\\A[0-9]{1,15}\\Z"))
def test_a_number_s_stand_in_has_its_features(number: str) -> None:
    for slot in range(len(SLOTS)):
        assert features_at(plain_number(number), slot) == features_at(number, slot)


def test_labels_and_spans_by_hand() -> None:
    text = "Mr. Ann Lee, (aged 95) seen 4/5/2009 and 4/6.\nPoe"
    spans = (
        Span(4, 11, "EID", "name"),
        Span(19, 21, "EID", "age"),
        Span(28, 36, "QID", "date"),
        Span(41, 44, "EID", "date"),
        Span(46, 49, "EID", "name"),
    )
    tokens = tokens_of(text)
    labels = labels_of(tokens, spans)
    assert [label for label in labels if label != "O"] == [
        "EID:name",
        "EID:name",
        "QID:age",
        *["QID:date"] * 8,
        "EID:name",
    ]
    again = spans_of(tokens, labels, "svm")
    # An age above 89 and a date without its year are explicit identifiers again.
    assert [(s.start, s.end, s.kind, s.category) for s in again] == [
        (s.start, s.end, s.kind, s.category) for s in spans
    ]


@pytest.mark.parametrize(
    ("text", "label", "kept"),
    [
        (")", "EID:name", False),
        ("122/86", "QID:date", False),  # a blood pressure
        ("2021", "QID:date", False),
        ("65", "QID:date", False),
        ("3/14", "QID:date", True),
        ("3/14/99", "QID:date", True),
        ("April 2009", "QID:date", True),
        ("the 4th of May 2010", "QID:date", True),
        ("get", "EID:email", False),
        ("a.b@c.org", "EID:email", True),
        ("210", "EID:phone", False),
        ("555-1234", "EID:phone", True),
        ("risk", "EID:other_id", False),
        ("may", "EID:url", False),
        ("12301", "QID:zip", True),
    ],
)
def test_what_cannot_be_what_it_is_called_is_left_out(text: str, label: str, kept: bool) -> None:
    tokens = tokens_of(text)
    found = spans_of(tokens, [label] * len(tokens.words), "svm")
    assert [text[s.start : s.end] for s in found] == [text] * kept


@given(st.data())
def test_labelled_tokens_become_the_spans_of_the_plain_version(data: st.DataObject) -> None:
    words = st.sampled_from(
        ["Roe", "12", "2019", "95", "5550123", "May", "\n", ".", ",", "(", ")", "'", "@", "/", "é"]
    )
    text = " ".join(data.draw(st.lists(words, max_size=12)))
    tokens = tokens_of(text)
    few = st.sampled_from([*(data.draw(st.sampled_from(LABELS)) for _ in range(2)), "O"])
    labels = [data.draw(few) for _ in tokens.words]
    assert spans_of(tokens, labels, "svm") == runs.spans(tokens, labels, "svm")


@given(st.integers(1, 6), st.integers(1, 4), st.randoms())
def test_the_best_sequence_is_the_best_of_all(length: int, labels: int, random: Any) -> None:
    scores = np.array([[random.randrange(4) for _ in range(labels)] for _ in range(length)], dtype=float)
    gains = np.array([[random.randrange(4) for _ in range(labels)] for _ in range(labels)], dtype=float)

    def total(path: tuple[int, ...]) -> float:
        return float(
            sum(scores[i, label] for i, label in enumerate(path))
            + sum(gains[a, b] for a, b in pairwise(path))
        )

    best = max(
        product(range(labels), repeat=length),
        key=lambda path: (total(path), [-label for label in path[::-1]]),
    )
    assert tuple(best_sequence(scores, gains).tolist()) == best


def test_the_context_of_tokens_by_hand() -> None:
    text = "PLAN\nName: Ann Roe\nmother of Roe, Dr. Poe"
    looked = look(text, ())
    words = looked.tokens.words
    key = {word: words[k] if k >= 0 else "" for word, k in zip(words, looked.key.tolist(), strict=True)}
    assert key["Ann"] == "Name" and key["mother"] == ""
    head = {word: words[k] if k >= 0 else "" for word, k in zip(words, looked.head.tolist(), strict=True)}
    assert head["Name"] == "PLAN" and head["Ann"] == "Name" and head["Poe"] == "Name"
    again = {word for word, flag in zip(words, looked.again.tolist(), strict=True) if flag}
    assert again == {"Ann", "Roe", "Poe"}  # after the field of a name or a title, here or elsewhere


def test_the_field_decodes_as_crfsuite_does(trained: Path, both: list[LinearAnnotator]) -> None:
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(str(trained / crf.FILE))
    for note in corpus(25, "held-out"):
        looked = look(note.text, DICTIONARY.annotate(note.text))
        assert both[0].labels_of(looked) == tagger.tag(pycrfsuite.ItemSequence(attributes(looked)))
    tagger.close()


def test_the_machine_scores_as_its_weights_say(trained: Path, both: list[LinearAnnotator]) -> None:
    with np.load(trained / svm.FILE, allow_pickle=False) as stored:
        weights = np.zeros(int(stored["columns"][0]) * len(stored["labels"]))
        weights[np.cumsum(stored["steps"].astype(np.int64))] = stored["weights"]
        intercept = stored["intercept"]
    table = weights.reshape(-1, len(intercept))
    for note in corpus(10, "held-out"):
        looked = look(note.text, DICTIONARY.annotate(note.text))
        slow = [intercept + sum(table[svm.column(feature)] for feature in row) for row in attributes(looked)]
        assert np.allclose(both[1].scores(looked), slow, atol=1e-3)


def test_sixty_notes_teach_most_identities(both: list[LinearAnnotator]) -> None:
    held_out = corpus(60, "held-out")
    for model in both:
        result = evaluate(model.name, held_out, model.annotate)
        assert result.spans["protected"].recall > 0.75, model.name
        assert result.spans["protected"].precision > 0.75, model.name
        assert {span.source for note in held_out for span in model.annotate(note.text)} == {model.name}


def test_the_same_seed_gives_the_same_files(trained: Path, tmp_path: Path) -> None:
    train(corpus(60), DICTIONARY, tmp_path / "again", 1, corpus={"name": "test"})
    for name in (crf.FILE, svm.FILE, CARD):
        assert (trained / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name


def test_what_was_read_before_changes_nothing(trained: Path) -> None:
    notes = corpus(30, "held-out")
    fresh = [svm.load(trained, DICTIONARY).annotate(note.text) for note in notes[:5]]
    small = svm.load(trained, DICTIONARY)
    few = Shared(PIECES, numbers_alike=True, kept=300)  # forgets all after a few notes
    vocabularies = set()

    def again(text: str) -> list[Span]:
        seen = few.read(text)
        vocabularies.add(seen.vocabulary)
        return small.annotate_looked(text, look(text, DICTIONARY.annotate(text), seen))

    for note in notes:
        again(note.text)
    assert [again(note.text) for note in notes[:5]] == fresh
    assert len(vocabularies) > 2


def test_threads_share_a_model(both: list[LinearAnnotator]) -> None:
    texts = [note.text for note in corpus(40, "held-out")]
    for model in both:
        alone = [model.annotate(text) for text in texts]
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(model.annotate, texts * 3)) == alone * 3


@pytest.mark.parametrize("text", ["", " \n ", "\n\n\n", "é", "…", "a" * 5000, "Dr. " * 3000])
def test_odd_texts(both: list[LinearAnnotator], text: str) -> None:
    whole = text + corpus(1, "held-out")[0].text
    for model in both:
        for odd, spans in ((text, model.annotate(text)), (whole, model.annotate(whole))):
            assert all(0 <= span.start < span.end <= len(odd) for span in spans)
        assert spans


def test_missing_and_broken_models_are_named(tmp_path: Path) -> None:
    for name in ("svm", "crf"):
        with pytest.raises(BadInput, match="no such file; train a model"):
            load(name, tmp_path)
    (tmp_path / crf.FILE).write_bytes(b"text")
    with pytest.raises(BadInput, match="is no CRFsuite model"):
        crf.load(tmp_path)
    for content in (b"text", b""):
        (tmp_path / svm.FILE).write_bytes(content)
        with pytest.raises(BadInput, match="is no model of `leeward notes train`"):
            svm.load(tmp_path)
    with pytest.raises(BadInput, match="no learned annotator 'lstm'; there are svm and crf"):
        load("lstm")


@pytest.mark.parametrize("name", ["svm", "crf"])
@pytest.mark.parametrize("fault", ["cut", "flip", "card", "no card", "no digest"])
def test_a_model_whose_card_does_not_name_it_is_not_read(
    trained: Path, tmp_path: Path, name: str, fault: str
) -> None:
    models = tmp_path / "models"
    shutil.copytree(trained, models)
    file = models / (svm.FILE if name == "svm" else crf.FILE)
    content = bytearray(file.read_bytes())
    if fault == "cut":
        file.write_bytes(content[: len(content) // 2])
    elif fault == "flip":
        content[45] ^= 255
        file.write_bytes(content)
    elif fault == "card":
        (models / CARD).write_bytes(b"")
    elif fault == "no card":
        (models / CARD).unlink()
    else:
        (models / CARD).write_text('{"leeward": "0.2.0", "format": 2}')
    told = "is not the file that model.json names" if fault in ("cut", "flip") else "names no SHA-256 of"
    with pytest.raises(BadInput, match=told):
        load(name, models)


def test_models_of_another_format_name_the_version_that_made_them(trained: Path, tmp_path: Path) -> None:
    models = tmp_path / "models"
    shutil.copytree(trained, models)
    card = json.loads((models / CARD).read_text())
    old = {"leeward": "0.1.0"}  # without a format and without digests
    for found, told in ((old, 1), ({**card, **old, "format": 3}, 3)):
        (models / CARD).write_text(json.dumps(found))
        with pytest.raises(BadInput, match=f"Leeward 0.1.0 made .* in format {told}; .*train them again"):
            load("crf", models)


def test_training_refuses_what_it_cannot_learn_from(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no span with a category that the models learn"):
        train([AnnotatedNote("one", "nothing here")], DICTIONARY, tmp_path / "out", 1, corpus={})
    (tmp_path / "there").mkdir()
    with pytest.raises(BadInput, match="exists already"):
        train(corpus(2), DICTIONARY, tmp_path / "there", 1, corpus={})
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_the_shipped_models_are_small_and_say_where_they_come_from() -> None:
    for name in (crf.FILE, svm.FILE):
        assert 50_000 < (model_folder() / name).stat().st_size < 1_000_000
    card = json.loads((model_folder() / CARD).read_text(encoding="utf-8"))
    assert card["corpus"] == {"name": "synthetic", "notes": card["notes"], "seed": 1}
    assert (model_folder() / "README.md").is_file()


@pytest.mark.parametrize("name", ["svm", "crf"])
def test_the_shipped_models_know_mr_brown(name: str) -> None:
    text = "Mr. Brown's daughter is 9 year old. Visited on 4/13/2009. Having runny nose and fever."
    found = {(text[s.start : s.end], s.kind) for s in load(name).annotate(text)}
    assert {("Brown", "EID"), ("4/13/2009", "QID"), ("fever", "HMI")} <= found
