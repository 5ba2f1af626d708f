"""What is left of learned annotators' answers."""

from __future__ import annotations

import re

import pytest

from leeward.notes.annotators.plausible import plausible
from leeward.notes.annotators.rules import Rules
from leeward.notes.spans import Span


def kept(text: str, category: str) -> list[str]:
    """What is left of the [bracketed] spans."""
    plain, spans = "", []
    for part in re.split(r"(\[[^]]*\])", text):
        if part.startswith("["):
            spans.append(Span(len(plain), len(plain) + len(part) - 2, "EID", category))
            part = part[1:-1]
        plain += part
    return [plain[s.start : s.end] for s in plausible(plain, plain.lower(), spans, {"foley", "edema"})]


@pytest.mark.parametrize(
    ("text", "category", "left"),
    [
        ("[Benign]. [Gait] is normal. [However], [The] rate", "name", []),
        ("[Edema] and [Gastrology], [Xerostatin] 5", "name", []),
        ("[Ocuvex] 20 mg, [Ocuvex] tablets", "name", []),
        ("[Babinski] sign", "name", []),
        ("[Mette] refused. [Mary Gait] came. Mr. [Babinski]", "name", ["Mette", "Mary Gait", "Babinski"]),
        ("[Q.  However] it", "name", ["Q.  "]),
        ("[Physical Therapy], the [Hospital]", "facility", []),
        ("at [Mass General], [Lakeside Clinic]", "facility", ["Mass General", "Lakeside Clinic"]),
        ("strength [5/5], pain [7/10], MMSE [28/30]", "date", []),
        ("seen on [5/5], [3/14] and [3/14/2020]", "date", ["5/5", "3/14", "3/14/2020"]),
        ("[approximately], [Monday]", "date", ["Monday"]),
        ("a weight of [120] on her own scale, aged [90]", "age", ["90"]),
        ("[1361], [5550123]", "phone", ["5550123"]),
    ],
)
def test_what_its_own_words_contradict_is_left_out(text: str, category: str, left: list[str]) -> None:
    assert kept(text, category) == left


def test_report_words_begin_no_name_for_the_rules() -> None:
    text = "Speech: Fluent. Onset: Sudden. Seen by Dr. X. Again normal. The patient saw Dr. Speech."
    assert [text[s.start : s.end] for s in Rules().annotate(text) if s.category == "name"] == ["X.", "Speech"]
