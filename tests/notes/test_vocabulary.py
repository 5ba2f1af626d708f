"""Words by number, whatever came before."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from leeward.notes.vocabulary import PIECES, PerWord, Shared, plain_number, read, tokens_of

TEXTS = st.text(st.sampled_from("aBé'1239 \n._-²٣≠😀\x1f\ud800"), max_size=60)


def _words(text: str) -> list[str]:
    return [plain_number(word) if word[0].isdigit() else word for word in tokens_of(text).words]


@given(st.lists(TEXTS, max_size=5))
def test_tokens_are_those_of_the_pattern_and_numbers_name_their_words(texts: list[str]) -> None:
    small = Shared(PIECES, numbers_alike=True, kept=5)
    for text in texts:
        plain = tokens_of(text)
        for seen in (read(text), small.read(text)):
            assert (seen.tokens.starts.tolist(), seen.tokens.ends.tolist()) == (
                plain.starts.tolist(),
                plain.ends.tolist(),
            )
            assert [seen.vocabulary.words[number] for number in seen.words.tolist()] == _words(text)
            assert len(set(seen.vocabulary.words)) == len(seen.vocabulary.words)


@given(st.from_regex(r"\A[0-9]{1,15}\Z"))
def test_a_number_stands_for_all_of_its_length(number: str) -> None:
    alike = plain_number(number)
    year = len(number) == 4 and number[:2] in ("19", "20")
    assert alike == (number if len(number) < 3 else "2000" if year else "3" * len(number))


def test_many_words_keep_their_numbers() -> None:
    shared = Shared(PIECES)
    lengths = PerWord(len, int)
    texts = [
        " ".join(f"{a}{b}{'x' * (n % 7)}" for b in "abcdefghij")
        for n, a in enumerate(map(chr, range(0x3B1, 0x3B1 + 700)))
    ]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(shared.read, [*texts, *texts]))
    for text, seen in zip([*texts, *texts], found, strict=True):
        assert [seen.vocabulary.words[number] for number in seen.words.tolist()] == tokens_of(text).words
        assert lengths.of(seen.vocabulary)[seen.words].tolist() == [
            len(word) for word in tokens_of(text).words
        ]
