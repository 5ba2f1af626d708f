"""ConText's triggers, lower case: phrases parted by commas, by what they say of a term and where they stand."""

from __future__ import annotations


def phrases(text: str) -> tuple[str, ...]:
    """The phrases of a list parted by commas."""
    return tuple(dict.fromkeys(" ".join(part.split()) for part in text.split(",")))


PSEUDO = phrases(
    """children's hospital, children's medical center, children's clinic, children's hosp, no increase, no further, no
    change, no significant change, no interval change, no suspicious change, not only, not just, not necessarily,
    not certain whether, not certain if, without difficulty, without incident, without any difficulty, gram
    negative, gram-negative, no other, not drain, not to be outdone, no new complaints but, not extend, not cause,
    history and physical, history taking, history and, poor history, family physician, family practice, family
    doctor, family medicine, family meeting, family member, family members, mother and baby, could be seen, could
    not be determined, no doubt, no question, no problem with, not able to exclude, no longer needs, history of
    present illness, social history, medical history, review of systems, rule out sheet, without further, nothing
    makes, no way, questions answered, all questions, if any, i suggest, we suggest, i would suggest, we would
    suggest, no improvement in, no better, no relief, not relieved, not improved, not controlled, not well
    controlled, poorly controlled, not resolved, not completely resolved, did not resolve, has not resolved, no
    improvement of, no improvement with, no resolution of"""
)

NEGATED_BEFORE = phrases(
    """no, not, without, denies, denied, denying, deny, denies any, no evidence of, no evidence for, no sign of, no
    signs of, no history of, no prior history of, no known history of, no previous, no prior, no complaints of, no
    complaint of, negative for, neg for, negative, absence of, absent, lack of, lacks, never had, never, free of,
    free from, ruled out for, rules out, ruled out, rule him out, rule her out, rules him out, rules her out, not
    have, does not have, did not have, do not have, doesn't have, didn't have, don't have, hasn't had, has not had,
    isn't, wasn't, is not, was not, are not, were not, cannot see, can't see, couldn't find, could not find, not
    find, no abnormal, no new, no acute, no active, no clinical evidence of, no radiographic evidence of, no
    definite, no findings of, no findings to indicate, no mammographic evidence of, no cause of, no suggestion of,
    nor, neither, non, fails to reveal, failed to reveal, not associated with, not demonstrate, not exhibit, not
    feel, not had, not know of, not known to have, not reveal, not see, not complain of, not appreciate, not appear,
    not noted, not show, no known, unremarkable for, with no, exclude, excludes, excluding, excluded, evaluate
    negative for, resolved without, w/o, patient was not, declines, declined, refuses, refused, unable to
    appreciate, does not take, not taking, not on, off of, stopped taking, held, hold, avoid, contraindicated,
    allergic to, allergy to, allergies to, intolerant of, intolerance to, intolerant to, denial of, no hx of, no
    h/o, neg, nkda, none of, rather than, instead of, doubt, aside from no, other than no, resolution of, without
    any, without evidence of, without signs of, did not report, does not report, not reporting, doesn't report, does
    not endorse, did not endorse, does not complain of, doesn't take, did not exhibit, never diagnosed with, never
    been diagnosed with, no personal history of, not consistent with, inconsistent with, no longer has, no longer
    takes, no longer taking, no longer on, was negative for, is negative for, were negative for, are negative for"""
)

NEGATED_AFTER = phrases(
    """ruled out, was ruled out, is ruled out, has been ruled out, have been ruled out, were ruled out, are ruled out,
    is negative, was negative, were negative, are negative, negative, unlikely, is unlikely, was not found, not
    found, was not seen, not seen, were not seen, not noted, not identified, not present, not detected, not
    appreciated, is absent, was absent, are absent, were absent, absent, denied, denies, free, is denied, are
    denied, was denied, were denied, has been excluded, was excluded, excluded, not demonstrated, not evident, not
    observed, not reported, is not present, are not present, were not present, declined, not visualized, refused,
    not done, was not done, not performed, (-), [-], (neg), (negative), (denied), (denies), (absent), (none), (ruled
    out)"""
)

UNCERTAIN_BEFORE = phrases(
    """possible, possibly, probable, probably, likely, suspected, suspect, suspicious for, suspicion for, suspicion of,
    concern for, concerning for, concerned for, concern about, worrisome for, rule out, r/o, to rule out, evaluate
    for, evaluation for, to evaluate for, assess for, check for, screen for, screening for, screened for, may have,
    might have, could have, may be, might be, could be, may represent, might represent, could represent, may
    reflect, could reflect, may indicate, could indicate, may well be, cannot exclude, can't exclude, cannot rule
    out, can't rule out, can not exclude, not excluded, differential includes, differential diagnosis includes,
    differential diagnosis, ddx, ddx includes, versus, vs, questionable, question of, ?, questions of, presumed,
    presumptive, suggestive of, suggests, suggesting, suggest, consistent with possible, appears to be, perhaps,
    maybe, equivocal for, borderline, at risk for, risk of, risk for, risk factors for, in case of, if, if she
    develops, if he develops, return for, return if, call if, call for, watch for, monitor for, unless, prophylaxis
    for, prophylaxis against, prevent, prevention of, to prevent, pending, vaccine for, vaccination against, worried
    about, fear of, fears, fearful of, low suspicion for, high suspicion for, working diagnosis of, be ruled out
    for, consider, considering, considered, precautions for, concerns for, work-up for, workup for, worked up for,
    test for, testing for, tested for, query, as needed for, prn for, educated on, educated about, education about,
    counseled on, counselled on, discussed risks of, in the event of, awaiting, referred for, scheduled for,
    planned, think of, thinking of, think about, thinking about, possibility of, wonder about, wondering about,
    wonders about, whether, unclear if, unsure if, uncertain if, unsure about, entertain, entertaining, entertained,
    tentative diagnosis of, provisional diagnosis of, hypothesis of, as if, so-called, feared"""
)

UNCERTAIN_AFTER = phrases(
    """possible, is possible, suspected, is suspected, was suspected, questionable, is questionable, cannot be
    excluded, can't be excluded, could not be excluded, cannot be ruled out, can't be ruled out, not excluded, not
    ruled out, has not been ruled out, to be ruled out, must be ruled out, should be ruled out, be ruled out, be
    excluded, is considered, was considered, is likely, is probable, remains a possibility, is a possibility, in the
    differential, on the differential, is being considered, versus, not certain, uncertain, is pending, pending, to
    be determined, vs, (?), [?], (possible), (possibly), (probable), (suspected), (likely), cannot be confirmed, not
    confirmed, remains to be seen, to be clarified, comes to mind, come to mind"""
)

FAMILY_BEFORE = phrases(
    """mother, mother's, father, father's, brother, brother's, brothers, sister, sister's, sisters, sibling, siblings,
    grandmother, grandfather, grandparent, grandparents, grandmother's, grandfather's, aunt, uncle, aunts, uncles,
    cousin, cousins, parent, parents, maternal, paternal, mom, dad, mom's, dad's, son, son's, daughter, daughter's,
    wife, wife's, husband, husband's, spouse, niece, nephew, family history, family history of, family hx, fhx, fh
    of, family has, family history significant for, family history positive for, runs in the family, relative,
    relatives, roommate, partner, children, kids, half-brother, half-sister, stepfather, stepmother, coworker,
    boyfriend, girlfriend, great-grandmother, great-grandfather, grandson, granddaughter, classmate, neighbor,
    friend, friends"""
)

FAMILY_AFTER = phrases(
    """in the family, in family, in her family, in his family, in their family, in the patient's family, runs in the
    family, in her mother, in his mother, in her father, in his father, in mother, in father, in his brother, in her
    brother, in his sister, in her sister, in a sister, in a brother, in a sibling, in his siblings, in her
    siblings, in both parents, in her parents, in his parents, in a parent, in siblings, in sister, in brother, in
    maternal, in paternal, in his maternal, in her maternal, in his paternal, in her paternal, in the maternal, in
    the paternal, in a maternal, in a paternal, in an aunt, in an uncle, in a cousin, in his aunt, in her aunt, in
    his uncle, in her uncle, on the maternal side, on the paternal side, on mother's side, on father's side, on her
    mother's side, on his mother's side, on her father's side, on his father's side, in a grandparent, in
    grandmother, in grandfather, in her grandmother, in his grandmother, in her grandfather, in his grandfather, in
    relatives, in a first-degree relative, in her daughter, in his daughter, in her son, in his son, (mother),
    (father), (sister), (brother), (siblings), (sibling), (parents), (parent), (both parents), (mother and, (father
    and, (sister and, (brother and, (his mother), (her mother), (his father), (her father), (her sister), (his
    sister), (her brother), (his brother), (grandmother), (grandfather), (grandparents), (maternal, (paternal,
    (aunt), (uncle), (cousin), (son), (daughter), (mom), (dad), (family), (wife), (husband), (mgm), (mgf), (pgm),
    (pgf), among relatives, among his relatives, among her relatives, on both sides of the family, of his mother, of
    her mother, of his father, of her father, of his brother, of her brother, of his sister, of her sister"""
)

PAST_BEFORE = phrases(
    """remote, remote history of, childhood, distant history of, history of childhood, as a child he had, as a child
    she had, as a child had, as a teenager had, in childhood had, previously had, prior episode of, had previously,
    years ago had, in the past had, in the past he had, in the past she had, in remote past, resolved, history of
    resolved, former, formerly had, formerly took, former use of, used to have, used to take, stopped, discontinued,
    was discontinued from, previously took, past use of, previously on, formerly on, was once on, status post
    treatment for, s/p treatment for, recovered from, no longer, outgrew, has outgrown, had outgrown, as a boy had,
    as a girl had, as a baby had, as an infant had"""
)

PAST_AFTER = phrases(
    """as a child, as a kid, as a teenager, as an infant, in childhood, in infancy, during childhood, in his youth, in
    her youth, in youth, in adolescence, in the past, in the remote past, in the distant past, now resolved, since
    resolved, has since resolved, which resolved, which has resolved, that resolved, completely resolved, long
    resolved, in remission, was discontinued, were discontinued, discontinued, was stopped, were stopped, stopped,
    long ago, in college, in high school, when he was young, when she was young, in her teens, in his teens, in her
    twenties, in his twenties, last pregnancy, during her pregnancy, with her pregnancy, without recurrence, as a
    boy, as a girl, as a baby, as a toddler, as a youngster, as an adolescent, as a schoolchild, in his childhood,
    in her childhood, in early life, in early childhood, in grade school, in elementary school, during adolescence,
    in her infancy, in his infancy, when small, when little, since outgrown, which he outgrew, which she outgrew,
    outgrown, in former years, in earlier years"""
)

STOP = phrases(
    """but, however, although, though, yet, except, except for, aside from, apart from, secondary to, because of,
    because, since, as well as the patient, which, who, whom, nevertheless, nonetheless, still, now has, now with,
    presents with, presenting with, presented with, complains of, complaining of, reports, reported, reporting,
    endorses, endorsed, admits to, admits, has been having, has had, he has, she has, patient has, pt has, patient
    had, he had, she had, the patient, positive for, remarkable for, significant for, notable for, due to,
    attributed to, cause of, causes of, etiology of, origin of, source of, reason for, other than, trigger event
    for, as a cause of, as a reason for, developed, found to have, was found, also has, also had, is having, does
    have, did have, did report, does report, currently, today, who presents, status post, treated with, started on,
    and started, and began, began, switched to, changed to, replaced by, on exam, on examination, while, whereas,
    only"""
)

ACTIONS: dict[tuple[str, str], tuple[str, ...]] = {
    ("pseudo", ""): PSEUDO,
    ("negated", "before"): NEGATED_BEFORE,
    ("negated", "after"): NEGATED_AFTER,
    ("uncertain", "before"): UNCERTAIN_BEFORE,
    ("uncertain", "after"): UNCERTAIN_AFTER,
    ("family", "before"): FAMILY_BEFORE,
    ("family", "after"): FAMILY_AFTER,
    ("past", "before"): PAST_BEFORE,
    ("past", "after"): PAST_AFTER,
    ("stop", ""): STOP,
}
"""What phrases say, on which side of the term, and the phrases. `stop` ends every scope before and after itself."""
