"""ConText: is what a note says of a health term so, now, and of the patient?

The rules of Harkema, Dowling, Thornblade, Chapman (J Biomed Inform 42, 2009), which extend NegEx (Chapman et al.
2001): a trigger before or after a term speaks for the terms up to the sentence's end, a terminating word, or the
next trigger of its own kind; a pseudo-trigger (`no increase`, `not only`) speaks for none. Beside them sections: a
disease of the section FAMILY HISTORY is not the patient's, whatever the sentence says.

Unlike ConText, a plain `history of` leaves a term asserted: somebody with a history of diabetes has it, and who
counts patients wants it counted. Past is what the text calls past: `remote`, `resolved`, `as a child`, `years ago`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from leeward.notes import sections
from leeward.notes.spans import Span

Status = Literal["negated", "uncertain", "family", "past"]

REACH = 10
"""Words over which an uncertainty or a negation after the term speaks (a sentence's end stops it before)."""

_Action = tuple[str, str]

PHRASES: dict[_Action, str] = {
    (
        "pseudo",
        "",
    ): """no increase,no further,no change,no significant change,no interval change,no suspicious change,
        not only,not just,not necessarily,not certain whether,not certain if,without difficulty,without incident,
        without any difficulty,gram negative,gram-negative,no other,not drain,not to be outdone,
        no new complaints but,
        not extend,not cause,history and physical,history taking,history and,poor history,family physician,
        family practice,family doctor,family medicine,family meeting,family member,family members,mother and baby,
        could be seen,could not be determined,no doubt,no question,no problem with,not able to exclude,
        no longer needs,history of present illness,social history,medical history,review of systems,
        rule out sheet,without further,nothing makes,no way,questions answered,all questions,if any,
        no improvement in,no better,no relief,not relieved,not improved,not controlled,not well controlled,
        poorly controlled,not resolved,not completely resolved,did not resolve,has not resolved""",
    (
        "negated",
        "before",
    ): """no,not,without,denies,denied,denying,deny,denies any,no evidence of,no evidence for,
        no sign of,no signs of,no history of,no prior history of,no known history of,no previous,no prior,
        no complaints of,no complaint of,negative for,
        neg for,negative,absence of,absent,lack of,lacks,never had,never,free of,free from,ruled out for,rules out,
        ruled out,rule him out,rule her out,rules him out,rules her out,not have,does not have,did not have,
        do not have,doesn't have,didn't have,don't have,hasn't had,has not had,isn't,wasn't,is not,was not,are not,
        were not,cannot see,can't see,couldn't find,could not find,not find,no abnormal,no new,no acute,no active,
        no clinical evidence of,no radiographic evidence of,no definite,no findings of,no findings to indicate,
        no mammographic evidence of,no cause of,no suggestion of,nor,neither,non,fails to reveal,failed to reveal,
        not associated with,not demonstrate,not exhibit,not feel,not had,not know of,not known to have,not reveal,
        not see,not complain of,not appreciate,not appear,not noted,not show,no known,unremarkable for,
        with no,exclude,excludes,excluding,excluded,evaluate negative for,resolved without,w/o,patient was not,
        declines,declined,refuses,refused,unable to appreciate,does not take,not taking,not on,off of,
        stopped taking,held,hold,avoid,contraindicated,allergic to,allergy to,allergies to,intolerant of,
        intolerance to,intolerant to,denial of,no hx of,no h/o,neg,nkda,none of,rather than,instead of,doubt,
        aside from no,other than no,resolution of,without any,without evidence of,without signs of,did not report,
        does not report,not reporting,doesn't report,does not endorse,did not endorse,does not complain of,
        doesn't take,did not exhibit,never diagnosed with,never been diagnosed with,no personal history of,
        not consistent with,inconsistent with,no longer has,no longer takes,no longer taking,no longer on""",
    (
        "negated",
        "after",
    ): """ruled out,was ruled out,is ruled out,has been ruled out,have been ruled out,were ruled out,
        are ruled out,is negative,was negative,were negative,are negative,negative,unlikely,is unlikely,
        was not found,not found,was not seen,not seen,were not seen,not noted,not identified,not present,
        not detected,
        not appreciated,is absent,was absent,are absent,were absent,absent,denied,denies,free,is denied,are denied,
        was denied,were denied,has been excluded,was excluded,excluded,not demonstrated,not evident,not observed,
        not reported,is not present,are not present,were not present,declined,not visualized""",
    ("uncertain", "before"): """possible,possibly,probable,probably,likely,suspected,suspect,suspicious for,
        suspicion for,suspicion of,concern for,concerning for,concerned for,concern about,worrisome for,
        rule out,r/o,to rule out,evaluate for,evaluation for,to evaluate for,assess for,check for,screen for,
        screening for,screened for,may have,might have,could have,may be,might be,could be,cannot exclude,
        can't exclude,cannot rule out,can't rule out,can not exclude,not excluded,differential includes,
        differential diagnosis includes,differential diagnosis,ddx,ddx includes,versus,vs,questionable,
        question of,?,
        questions of,presumed,presumptive,suggestive of,suggests,suggesting,suggest,consistent with possible,
        appears to be,perhaps,maybe,equivocal for,borderline,at risk for,risk of,risk for,risk factors for,
        in case of,if,if she develops,if he develops,return for,return if,call if,call for,watch for,monitor for,
        unless,prophylaxis for,prophylaxis against,prevent,prevention of,to prevent,pending,vaccine for,
        vaccination against,
        worried about,fear of,fears,fearful of,low suspicion for,high suspicion for,working diagnosis of,
        be ruled out for,consider,considering,considered,precautions for,concerns for,
        work-up for,workup for,worked up for,test for,testing for,tested for,query,as needed for,prn for,
        educated on,educated about,education about,counseled on,counselled on,discussed risks of,in the event of,
awaiting,referred for,scheduled for,planned""",
    (
        "uncertain",
        "after",
    ): """possible,is possible,suspected,is suspected,was suspected,questionable,is questionable,
        cannot be excluded,can't be excluded,could not be excluded,cannot be ruled out,can't be ruled out,
        not excluded,not ruled out,has not been ruled out,to be ruled out,must be ruled out,should be ruled out,
        be ruled out,be excluded,is considered,was considered,is likely,is probable,remains a possibility,
        is a possibility,in the differential,on the differential,is being considered,versus,?,not certain,uncertain,
        is pending,pending,to be determined""",
    (
        "family",
        "before",
    ): """mother,mother's,father,father's,brother,brother's,brothers,sister,sister's,sisters,
        sibling,siblings,grandmother,grandfather,grandparent,grandparents,grandmother's,grandfather's,aunt,uncle,
        aunts,uncles,cousin,cousins,parent,parents,maternal,paternal,mom,dad,mom's,dad's,son,son's,daughter,
        daughter's,
        wife,wife's,husband,husband's,spouse,niece,nephew,family history,family history of,family hx,fhx,fh of,
        family has,family history significant for,family history positive for,runs in the family,relative,
        relatives,roommate,partner,children,kids,half-brother,half-sister,stepfather,stepmother,coworker,boyfriend,
        girlfriend,great-grandmother,great-grandfather,grandson,granddaughter,classmate,neighbor,friend,friends""",
    (
        "family",
        "after",
    ): """in the family,in family,in her family,in his family,in their family,in the patient's family,
        runs in the family,in her mother,in his mother,in her father,in his father,in mother,in father,
        in his brother,
        in her brother,in his sister,in her sister,in a sister,in a brother,in a sibling,in his siblings,
        in her siblings,
        in both parents,in her parents,in his parents,in a parent,in siblings,in sister,in brother,in maternal,
        in paternal,in an aunt,in an uncle,in a cousin,in his aunt,in her aunt,in his uncle,in her uncle,
        on the maternal side,on the paternal side,on mother's side,on father's side,on her mother's side,
        on his mother's side,on her father's side,on his father's side,in a grandparent,in grandmother,
        in grandfather,
        in her grandmother,in his grandmother,in her grandfather,in his grandfather,in relatives,
        in a first-degree relative,
        in her daughter,in his daughter,in her son,in his son""",
    (
        "past",
        "before",
    ): """remote,remote history of,childhood,distant history of,history of childhood,as a child he had,
        as a child she had,as a child had,as a teenager had,in childhood had,previously had,prior episode of,
        had previously,years ago had,in the past had,in the past he had,in the past she had,in remote past,
        resolved,history of resolved,former,formerly had,formerly took,former use of,used to have,used to take,
        stopped,discontinued,was discontinued from,previously took,past use of,previously on,formerly on,
        was once on,
        status post treatment for,s/p treatment for,recovered from,no longer""",
    (
        "past",
        "after",
    ): """as a child,as a kid,as a teenager,as an infant,in childhood,in infancy,during childhood,
        in his youth,in her youth,in youth,in adolescence,
        in the past,in the remote past,in the distant past,now resolved,since resolved,has resolved,
        has since resolved,
        have resolved,resolved,which resolved,which has resolved,that resolved,is resolved,was resolved,
        completely resolved,long resolved,in remission,was discontinued,were discontinued,discontinued,
        was stopped,were stopped,stopped,long ago,in college,in high school,when he was young,
        when she was young,in her teens,in his teens,in her twenties,in his twenties,last pregnancy,
        during her pregnancy,with her pregnancy,without recurrence""",
    (
        "stop",
        "",
    ): """but,however,although,though,yet,except,except for,aside from,apart from,secondary to,because of,
        because,since,as well as the patient,which,who,whom,nevertheless,nonetheless,still,now has,now with,
        presents with,presenting with,presented with,complains of,complaining of,reports,reported,reporting,
        endorses,
        endorsed,admits to,admits,has been having,has had,he has,she has,patient has,pt has,patient had,he had,
        she had,
        the patient,positive for,remarkable for,significant for,notable for,due to,attributed to,cause of,causes of,
        etiology of,origin of,source of,reason for,other than,trigger event for,as a cause of,as a reason for,
        developed,found to have,was found,also has,also had,is having,does have,did have,did report,does report,
        currently,today,who presents,status post,treated with,started on,on exam,on examination,while,whereas,
        only""",
}
"""Triggers by what they say and where, lower case. `stop` ends every scope before and after itself."""

_SENTENCE_END = re.compile(r"[.!?](?=[\s\"')]|$)|\n\s*\n|;|\n(?=\s*(?:[-*•\d]|[A-Z]))|\.\.\.")
_NO_END = frozenset(
    [
        "dr",
        "mr",
        "mrs",
        "ms",
        "st",
        "vs",
        "no",
        "pt",
        "approx",
        "e.g",
        "i.e",
        "etc",
        "jr",
        "sr",
        "q.d",
        "b.i.d",
        "t.i.d",
        "p.o",
    ]
)


@dataclass(frozen=True)
class Trigger:
    """A phrase at `start` to `end` (exclusive)."""

    start: int
    end: int
    says: str
    side: str


def judged(text: str, low: str, spans: Sequence[Span]) -> list[Span]:
    """The spans with health terms that are denied, doubted, past or somebody else's marked as not asserted."""
    terms = [i for i, span in enumerate(spans) if span.kind == "HMI" and span.asserted]
    if not terms:
        return list(spans)
    statuses = statuses_of(text, low, [spans[i] for i in terms])
    result = list(spans)
    for i, status in zip(terms, statuses, strict=True):
        if status:
            result[i] = replace(spans[i], asserted=False)
    return result


def statuses_of(text: str, low: str, terms: Sequence[Span]) -> list[frozenset[str]]:
    """What the context says of each term (ascending): a set of `Status`, empty where it is plainly asserted."""
    parts = sections.find(text, low)
    starts = [part.start for part in parts]
    ends = _sentence_ends(text, [part.start for part in parts])
    triggers = find(low)
    trigger_starts = [t.start for t in triggers]
    found = []
    for term in terms:
        i = bisect_right(ends, term.start)
        begin, end = (ends[i - 1] if i else 0), (ends[i] if i < len(ends) else len(text))
        near = triggers[bisect_left(trigger_starts, begin) : bisect_left(trigger_starts, end)]
        said = _said(low, term, near)
        topic = sections.topic_at(parts, starts, term.start)
        if topic == "family":
            said.add("family")
        elif topic == "allergies" and term.category == "drug":
            said.add("negated")
        found.append(frozenset(said))
    return found


def find(low: str) -> list[Trigger]:
    """The triggers of a text, ascending; of overlapping ones the longest, and all readings of it."""
    found: list[tuple[int, int, tuple[_Action, ...]]] = []
    for last, (length, actions) in _automaton().iter(low):
        start, end = last + 1 - length, last + 1
        if low[start] != "?" and not _whole(low, start, end):
            continue
        found.append((start, end, actions))
    found.sort(key=lambda t: (t[0] - t[1], t[0]))
    taken = bytearray(len(low))
    kept = []
    for start, end, actions in found:
        if not any(taken[start:end]):
            taken[start:end] = b"\1" * (end - start)
            kept += [Trigger(start, end, says, side) for says, side in actions if says != "pseudo"]
    return sorted(kept, key=lambda t: (t.start, t.says, t.side))


def _whole(low: str, start: int, end: int) -> bool:
    """Whether a phrase begins and ends with words, not inside of them."""
    if start and (low[start - 1].isalnum() or low[start - 1] in "-'"):
        return False
    after = low[end : end + 2]
    return not after[:1].isalnum() and (after[:1] not in ("-", "'") or after in ("'s", "- "))


def _said(low: str, term: Span, triggers: Sequence[Trigger]) -> set[str]:
    """What triggers of the term's sentence say of it."""
    said: set[str] = set()
    blocked = False
    for trigger in reversed([t for t in triggers if t.end <= term.start]):
        between = low[trigger.end : term.start]
        if trigger.says == "stop":
            blocked = True
        elif trigger.side == "after":
            continue
        elif trigger.says == "family":
            if _of_relative(low, trigger, between):
                said.add("family")
        elif not blocked and not _cut(trigger, between):
            said.add(trigger.says)
    for trigger in triggers:
        if trigger.start < term.end:
            continue
        if trigger.says == "stop":
            break
        if trigger.side == "after" and _joins(low[term.end : trigger.start], trigger):
            said.add(trigger.says)
    return said


# Who tells, brings or looks after the patient has no disease by that.
_TELLS = re.compile(
    r"\b(?:patient|pt|he|she|but|however|today|child|infant|baby|reports?|reported|states?|stated|says?|said|notes?|noted|"
    r"noticed|denies|brought|brings|called|gives|gave|describes?|described|concerned|worried|feels?|felt|observed|"
    r"thinks|believes|accompanied|bedside|found (?:him|her)|requests?|asked|confirms?|helps?|lives)\b"
)
_HAS = re.compile(
    r"\W*(?:\w+\s){0,4}?(?:has|had|have|having|with|who|died|deceased|passed|is|was|were|diagnosed|suffers?|suffered|also|"
    r"takes?|took|on|of|positive|:|-)(?:\W|$)"
)
_BESIDE = frozenset({"by", "with", "per", "from", "to", "via"})
_NOT_OF_BLOOD = re.compile(
    r"(?:wife|husband|spouse|partner|roommate|coworker|boyfriend|girlfriend|classmate|neighbor|friends?|kids|children|"
    r"son|daughter|mom|dad|parents?)(?:'s)?$"
)


def _of_relative(low: str, trigger: Trigger, between: str) -> bool:
    """Whether the disease is the relative's: `mother had …`, `father: …`; not `mother reports …`, `with his wife`."""
    word = low[trigger.start : trigger.end]
    if "family" in word or word.startswith(("fhx", "fh ")):
        return not re.search(r"\b(?:patient|pt|he|she)\b", between)
    if _TELLS.search(between):
        return False
    before = re.findall(r"[\w']+", low[max(0, trigger.start - 24) : trigger.start])[-2:]
    beside = bool(_BESIDE.intersection(before))
    if beside or _NOT_OF_BLOOD.match(word):
        return bool(_HAS.match(between))
    return True


_RESUMES = re.compile(
    r",\s*(?:and\s+)?(?:with|has|had|is|was|positive|some|mild|moderate|severe|new|increased|occasional)\b"
)


def _cut(trigger: Trigger, between: str) -> bool:
    """Whether the scope of a trigger ends between it and the term."""
    if trigger.says == "negated":
        return _RESUMES.search(between) is not None
    if trigger.says == "past":
        return between.count(" ") > 6
    if trigger.says == "uncertain":
        return between.count(" ") > REACH + 4
    return False


def _joins(between: str, trigger: Trigger) -> bool:
    """Whether a trigger after a term is near enough to speak of it: few words, and no other clause between."""
    words = between.split()
    if trigger.says in ("family", "past"):
        return len(words) <= REACH
    return (len(words) <= 4 and "," not in between) or not words


@cache
def _automaton() -> Any:
    import ahocorasick

    actions: dict[str, list[_Action]] = {}
    for action, phrases in PHRASES.items():
        for phrase in phrases.replace("\n", " ").split(","):
            known = actions.setdefault(" ".join(phrase.split()), [])
            if action not in known:
                known.append(action)
    automaton = ahocorasick.Automaton()
    for phrase, meanings in actions.items():
        automaton.add_word(phrase, (len(phrase), tuple(meanings)))
    automaton.make_automaton()
    return automaton


def _sentence_ends(text: str, extra: Sequence[int]) -> list[int]:
    """Where sentences end (exclusive), ascending; sections begin sentences too."""
    ends = set(extra)
    for match in _SENTENCE_END.finditer(text):
        word = text[max(0, match.start() - 6) : match.start()].split()[-1:] if match.group() == "." else []
        if word and (word[0].lower() in _NO_END or (len(word[0]) == 1 and word[0].isupper())):
            continue
        ends.add(match.end())
    return sorted(ends)
