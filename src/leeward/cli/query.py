"""`leeward query`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from leeward.cli.options import flag, json_option, ledger_option, print_result, switch, user_option
from leeward.errors import BadInput

if TYPE_CHECKING:
    from leeward.queries.answer.charged_query import Answer
    from leeward.queries.answer.plan import IndexSession, Plan, Question

COUNTED = {"patients": "patient", "notes": "note"}


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", metavar="INDEX ['TERM & TERM'] [--QID CONDITION]…", nargs=-1, type=click.UNPROCESSED)
@flag("--epsilon", "E", "Privacy cost of the answer; a larger one means less noise.")
@flag("--by", "QID", "One count for each value of a quasi-identifier, for one cost.")
@flag("--most", "N", "With --by: count one patient in at most N bins.", type=int)
@flag("--unit", None, "What is protected: a patient with all notes, or a single note (weaker).",
      type=click.Choice(["patient", "note"]), default="patient")  # fmt: skip
@flag("--count counted", None, "What is counted [default: the unit].", type=click.Choice(list(COUNTED)))
@flag("--mechanism", None, "Two-sided geometric noise; Laplace for replication.",
      type=click.Choice(["geometric", "laplace"]), default="geometric")  # fmt: skip
@flag("--mode", None, default="private", hidden=True, show_default=False)
@flag("--where", "QID=CONDITION", "Condition on a quasi-identifier that has the name of a flag.",
      multiple=True)  # fmt: skip
@flag("--batch", "FILE", "A file of queries, one per line, as on the command line. All are charged or none.",
      type=click.Path(exists=True, dir_okay=False))  # fmt: skip
@switch("--dry-run", "Answer from made-up patients; nothing is charged.")
@user_option
@flag("--project", "NAME", "Project that is charged as well as the user.", envvar="LEEWARD_PROJECT")
@switch("--yes", "Pay even if the noise may exceed the count.")
@ledger_option
@json_option
def query(words: tuple[str, ...], batch: str | None, dry_run: bool, user: str | None, project: str | None, yes: bool,
          ledger: str | None, as_json: bool, **flags: Any) -> None:  # fmt: skip
    """Count patients with a note that holds the TERMS, with noise that protects each patient.

    Join terms by & (and), | (or), ! (not) and parentheses; all of it is asked of one note, or visit.

    A condition is a value, a range a..b or a prefix with a star. Cost and precision are printed before anything
    is charged; the same question again gets the same answer, free.

    Allotments apply to the user named. Whoever can run this command can also read the custodian's index and ledger.

    \b
    Examples:
      leeward query INDEX 'sore throat & fever' --when 2009-04..2009-06 --zip '1230*' --epsilon 0.5
      leeward query INDEX 'fever & (cough | sore throat) & !headache' --epsilon 0.5
      leeward query INDEX fever --by when --when 2009 --epsilon 0.5 --json
      leeward query INDEX fever --epsilon 0.5 --dry-run
      leeward query INDEX --batch questions.txt --epsilon 0.1

    Exit status: 0 answered; 2 the question or the ledger is wrong; 3 the budget does not suffice.
    """
    from leeward.queries.answer.api import login_name
    from leeward.queries.answer.charged_query import answer_plans, price_of
    from leeward.queries.answer.plan import check_noise, open_session, plan_query
    from leeward.queries.ledger.budgets import check_user

    path, questions = _parse_questions(words, batch, flags)
    user = check_user(login_name() if user is None else user)
    session = open_session(path, ledger)
    plans = [plan_query(session, question) for question in questions]
    if not plans[0].vocabulary_public:
        click.echo(
            "leeward: this index has no list of terms: any text is answered; one that nobody has counts 0 "
            "plus noise.",
            err=True,
        )
    price, left = price_of(session, plans, user, project)
    click.echo(f"leeward: {_price(plans, price, left, user, dry_run)}", err=True)
    if price and not (dry_run or yes):
        check_noise(session, plans)
    note: list[str] = []
    if dry_run:
        from leeward.queries.answer.dry_run import dry_run_answers  # loads what makes an index

        answers = dry_run_answers(session, plans, user)
        note = ["dry run: these counts are of made-up patients; nothing was charged."]
    else:
        answers = answer_plans(session, plans, user, project)
    lines = [line for answer in answers for line in _lines(answer, session)]
    print_result(as_json, _figures(answers, batch is not None, dry_run), [*lines, *note])


def _figures(answers: Sequence[Answer], batch: bool, dry_run: bool) -> dict[str, Any]:
    """An answer, or those of a batch with what is left, as JSON."""
    mark = {"dry_run": True} if dry_run else {}
    found = [each.to_json() | mark for each in answers]
    return {"answers": found, "remaining": found[-1]["remaining"]} if batch else found[0]


def _parse_questions(
    words: tuple[str, ...], batch: str | None, flags: dict[str, Any]
) -> tuple[str, list[Question]]:
    if not words or words[0].startswith("-"):
        raise click.UsageError("name the INDEX first, then the terms and conditions.")
    if batch is None:
        return words[0], [_question(words[1:], flags)]
    if len(words) > 1:
        raise BadInput(
            "with --batch all terms and conditions are in the file; give none on the command line."
        )
    return words[0], _batch(batch, flags)


def _batch(path: str, flags: dict[str, Any]) -> list[Question]:
    """Lines like `'sore throat & fever' --when 2009-04 --epsilon 0.1`; the command's own flags are their defaults."""
    import shlex
    from pathlib import Path

    found = []
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise BadInput(f"{path}: a file of questions is text in UTF-8.") from None
    for number, line in enumerate(lines, 1):
        try:
            words = shlex.split(line, comments=True)
            if words:
                own, rest = _flags_of_line(words)
                found.append(_question(rest, flags | own))
        except (BadInput, ValueError) as error:
            raise BadInput(f"{path}, line {number}: {error}") from None
    if not found:
        raise BadInput(f"{path}: there is no question in this file.")
    return found


def _flags_of_line(words: list[str]) -> tuple[dict[str, Any], list[str]]:
    """The flags that a line of a batch may set for itself, and the rest of it."""
    names = {"--epsilon": "epsilon", "--by": "by", "--most": "most", "--unit": "unit", "--count": "counted",
             "--mechanism": "mechanism"}  # fmt: skip
    own: dict[str, Any] = {}
    rest: list[str] = []
    waiting = iter(words)
    for word in waiting:
        name, _, value = word.partition("=")
        if name in names:
            given = value or next(waiting, "")
            if not given or (name == "--most" and not given.isdecimal()):
                raise BadInput(f"{name} has no value that it can take.")
            own[names[name]] = int(given) if name == "--most" else given
        else:
            rest.append(word)
    return own, rest


def _question(words: tuple[str, ...] | list[str], flags: dict[str, Any]) -> Question:
    from leeward.queries.answer.plan import Question
    from leeward.queries.language.query import parse
    from leeward.queries.privacy.accounting import micro

    terms, conditions = _terms_and_conditions(words, flags["where"])
    if flags["epsilon"] is None:
        raise BadInput("set the privacy cost with --epsilon, for example --epsilon 0.5.")
    return Question(
        query=parse(terms, conditions),
        epsilon=micro(flags["epsilon"]),
        unit=flags["unit"],
        counted=COUNTED.get(flags["counted"], flags["counted"]),
        mechanism=flags["mechanism"],
        by=flags["by"],
        most=flags["most"],
        mode=flags["mode"],
    )


def _terms_and_conditions(
    words: tuple[str, ...] | list[str], where: tuple[str, ...]
) -> tuple[str, dict[str, str]]:
    """`'sore throat' --zip 1230* --when=2009` as its terms and its conditions by quasi-identifier."""
    terms: list[str] = []
    pairs = [each.partition("=")[::2] for each in where]
    waiting = iter(words)
    for word in waiting:
        if not word.startswith("--"):
            terms.append(word)
            continue
        name, equals, value = word[2:].partition("=")
        pairs.append((name, value if equals else next(waiting, "")))
    if len(terms) != 1:
        raise BadInput("a query has one text of terms; put it in quotation marks: 'sore throat & fever'.")
    conditions: dict[str, str] = {}
    for name, value in pairs:
        name = name.replace("-", "_") if "_" not in name else name
        if name in conditions:
            raise BadInput(f"`{name}` has two conditions; give one.")
        conditions[name] = value
    return terms[0], conditions


def _price(plans: list[Plan], price: int, left: int, user: str, dry_run: bool) -> str:
    from leeward.queries.privacy.accounting import to_epsilon
    from leeward.queries.privacy.mechanism import half_width

    would = "would cost" if dry_run else "costs"
    if price == 0:
        return f"asked before: this {would} nothing."
    notes = {plan.factor for plan in plans if plan.factor > 1}
    because = f" (a patient may have {max(notes)} notes, and the budget protects patients)" if notes else ""
    widths = sorted({half_width(plan.noise) for plan in plans})
    within = f"± {widths[0]:,.4g}" + (f" to {widths[-1]:,.4g}" if len(widths) > 1 else "")
    return (
        f"this {would} {to_epsilon(price):g}{because} for counts within {within} of the true ones (95 %); {user} has "
        f"{to_epsilon(left):g} left."
    )


def _lines(answer: Answer, session: IndexSession) -> list[str]:
    """An answer for a person: values, interval, what protects whom, what is left."""
    from leeward.queries.privacy.accounting import to_epsilon

    plan, meta = answer.plan, session.index.meta
    unit = {"patient": "patient", "note": meta.row}
    labels = ((name, session.index.terms.label_of(name)) for name in plan.query.names)
    called = [f"{name} ({label})" for name, label in labels if label != name]
    lines = [plan.query.canonical()]
    if called:
        lines.append(f"  {', '.join(called)}")
    names = [""] if plan.by is None else [f"{plan.by} {name}: " for name in plan.bins]
    for name, value in zip(names, answer.values, strict=True):
        lines.append(f"  {name}{_count(answer, value, unit[plan.counted])}")
    if plan.by is not None:
        lines.append(
            f"  all {len(plan.bins)} bins at once are within ± {answer.half_width_of_all:,.6g} (95 %)"
        )
    if answer.total is not None:
        total, (low, high) = answer.total
        lines.append(f"  sum of the bins: {total:,.10g} (95 % interval {low:,.6g} to {high:,.6g})")
    lines.append(
        f"  protects each {unit[plan.unit]} with epsilon {to_epsilon(plan.noise.epsilon):g} ({plan.noise.kind}, "
        f"sensitivity {plan.noise.sensitivity}); cost {to_epsilon(answer.cost):g}; "
        f"remaining {to_epsilon(answer.remaining):g}"
    )
    return lines


def _count(answer: Answer, value: float | None, unit: str) -> str:
    if value is None:
        return f"hidden: the noisy count is below {answer.threshold}"
    low, high = answer.interval(value) or (0, 0)
    return f"{value:,.10g} {unit}{'' if value == 1 else 's'} (95 % interval {low:,.6g} to {high:,.6g})"
