"""`leeward itemsets`: the catalogue of itemsets of an index, as one private release paid from the budget."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leeward.cli.options import commas, json_option, print_json, print_lines

if TYPE_CHECKING:
    from leeward.queries.answer.catalogue import Catalogue, Items
    from leeward.queries.answer.charged_query import Desk
    from leeward.release.content import Anonymized

SHOWN = 20


@click.command()
@click.argument("path", metavar="INDEX")
@click.option("--epsilon", required=True, metavar="E", help="Privacy price of the whole catalogue.")
@click.option(
    "-o", "--out", metavar="OUT", help="The release folder to write [default: print the catalogue]."
)
@click.option("--max-size", type=click.IntRange(min=1), default=2, show_default=True, metavar="N",
              help="Most items of an itemset; the sizes share epsilon.")  # fmt: skip
@click.option("--contributions", type=click.IntRange(min=1), default=10, show_default=True, metavar="N",
              help="A patient is counted in at most N itemsets of each size.")  # fmt: skip
@click.option("--threshold", type=click.IntRange(min=1), metavar="N",
              help="Noisy counts below N are not listed; public [default: noise alone is rarely listed].")  # fmt: skip
@click.option("--qid", metavar="NAME[,NAME…]", callback=commas,
              help="Quasi-identifiers whose values take part; their domains must be public.")  # fmt: skip
@click.option("--user", metavar="NAME", envvar="LEEWARD_USER", help="Who asks [default: the login name].")
@click.option("--ledger", "url", metavar="URL", envvar="LEEWARD_LEDGER",
              help="Database with the budget [default: the ledger in INDEX].")  # fmt: skip
@click.option("--format", "formats", metavar="parquet,csv", callback=commas,
              help="Parquet is always written; csv adds a copy.")  # fmt: skip
@json_option
def itemsets(path: str, epsilon: str, out: str | None, user: str | None, url: str | None, formats: tuple[str, ...],
             as_json: bool, qid: tuple[str, ...], **flags: Any) -> None:  # fmt: skip
    """List which health terms of INDEX are frequent, alone and together, with noise that protects each patient.

    What may be listed is decided by the public vocabulary and by noisy counts, never by exact ones; the whole catalogue
    is paid once. The same catalogue asked for again is the same, at no cost.

    \b
    Examples:
      leeward itemsets INDEX --epsilon 1 -o catalogue
      leeward itemsets INDEX --epsilon 1 --max-size 3 --qid sex --threshold 50 --format parquet,csv -o catalogue

    Exit status: 0 done; 2 bad input; 3 the budget does not pay for it; 4 verification failed (nothing is shared).
    """
    from leeward.queries.answer.api import login_name
    from leeward.queries.answer.catalogue import Catalogue, items_of, released
    from leeward.queries.answer.charged_query import charged, open_desk
    from leeward.queries.ledger import found as stored
    from leeward.queries.ledger import left, named
    from leeward.queries.ledger.chain import digest, text_of
    from leeward.queries.privacy.accounting import micro, shown
    from leeward.release.folder import check_out

    if out is not None:
        check_out(Path(out))
    user = named(user if user is not None else login_name())
    asked = Catalogue(epsilon=micro(epsilon), qids=qid, **flags)
    desk = open_desk(path, url)
    items = items_of(desk.index, asked.qids)
    require_patients(desk)
    question = asked.question(desk.index)
    before = left(desk.ledger, desk.index.meta.id, user).user
    price = f"costs {shown(asked.epsilon):g}"
    if stored(desk.ledger, desk.index.meta.id, digest(text_of(question))) is not None:
        price = "was paid before and costs nothing"
    click.echo(f"leeward: this {price}; {user} has {shown(before):g} left.", err=True)
    found = charged(desk, question, asked.epsilon, user, lambda: released(desk.index, asked))
    remaining = shown(left(desk.ledger, desk.index.meta.id, user).user)
    if out is not None:
        write(out, desk, asked, items, found, remaining, formats)
    tell(found, shown(asked.epsilon), remaining, out, as_json)


def require_patients(desk: Desk) -> None:
    """The catalogue protects patients; a budget of notes cannot pay for it."""
    from leeward.errors import BadInput

    if desk.terms.unit != "patient":
        raise BadInput("the catalogue protects patients; the budget of this index is for single notes.")


def write(
    out: str,
    desk: Desk,
    asked: Catalogue,
    items: Items,
    found: dict[str, Any],
    remaining: float,
    formats: tuple[str, ...],
) -> None:
    """The release folder, verified and reported, or nothing."""
    from leeward.queries.privacy.accounting import shown
    from leeward.release import draft
    from leeward.release.spec import SourceSpec, Spec, to_yaml
    from leeward.runs.protect import refusal, reported, verify

    made = anonymized(desk, asked, items, found)
    method = {
        "name": "notes",
        **{key: value for key, value in asked.question(desk.index).items() if key != "release"},
    }
    with draft(out) as pending:
        pending.write(made, formats=tuple(dict.fromkeys(("parquet", *formats))))
        charge = {"epsilon": shown(asked.epsilon), "data_set": desk.index.meta.id, "unit": "patient"}
        pending.put_json("custody/charge.json", charge)
        name = desk.index.path.name
        pending.put(
            "custody/spec.yaml", to_yaml(Spec(source=SourceSpec(format="memory", name=name), method=method))
        )
        figures = {
            "source": {"name": name},
            "notices": [],
            "method": {**made.custody, "remaining": remaining},
        }
        pending.put_json("custody/measures.json", figures)
        verification = verify(pending.folder)
        if not verification.passed:
            from leeward.errors import VerificationFailed

            raise VerificationFailed(f"{refusal(verification)} Nothing was written.")
        pending.put_json("custody/verification.json", verification.to_json())
        reported(pending.folder)


def anonymized(desk: Desk, asked: Catalogue, items: Items, found: dict[str, Any]) -> Anonymized:
    """The catalogue as a release of the method `notes`."""
    import pyarrow as pa

    from leeward.queries.privacy.accounting import epsilon_of
    from leeward.release.content import Anonymized, Guarantee, ReleaseTable

    index, meta = desk.index, desk.index.meta
    table = pa.table(
        {
            "items": pa.array(found["itemsets"], pa.list_(pa.string())),
            "count": pa.array([float(n) for n in found["counts"]], pa.float64()),
        }
    )
    names = pa.table({"item": pa.array(items.texts[: items.terms], pa.string())})
    domains = {index.meta.qid(name).name: list(index.domain(name) or ()) for name in asked.qids}
    return Anonymized(
        method="notes",
        parameters={
            "max_size": asked.max_size,
            "contributions": asked.contributions,
            "mechanism": "two-sided geometric noise",
            "vocabulary": meta.vocabulary,
            "domains": domains,
            "row": meta.row,
            "max_rows_per_patient": meta.max_rows_per_patient,
            "levels": found["levels"],
        },
        guarantee=Guarantee(
            name="differential privacy",
            attacker="anybody, whatever they know of other patients or of this one",
            not_protected=(
                "facts of the population that the data show whoever takes part, such as which terms go together",
                "further answers about the same patients: their epsilons add up (the custodian's ledger limits them)",
                "what a term means where it was taken wrongly from a note: noise covers counts, not extraction",
            ),
            epsilon=epsilon_of(asked.epsilon),
        ),
        records=0,
        tables=(ReleaseTable.of("itemsets.parquet", table),),
        readme=readme(asked, meta.row),
        custody_tables=(ReleaseTable.of("vocabulary.parquet", names),),
        custody={"levels": found["levels"], "vocabulary": meta.vocabulary, "seeded_rows": meta.seeded},
        seeded=meta.seeded,
    )


def readme(asked: Catalogue, row: str) -> str:
    """How a recipient reads the catalogue."""
    return f"""
There are no records here. `itemsets.parquet` has one row an itemset: `items`, health terms and values such as `sex=f`,
and `count`, the number of patients with a {row} that has all of them, plus noise. Rows are sorted by size, count, text.

- The noise is two-sided geometric; its scale for each size stands in `release.json` under `levels`. With scale s, a
  count is off by about s on average, and by less than 3s in 95 of 100.
- Candidates were all terms of the public vocabulary; a larger itemset was tried when all its parts are listed. What is
  not listed had a noisy count below the threshold of its size, or was not tried.
- A patient is counted in at most {asked.contributions:,} itemsets of each size, drawn at random. Counts are too low, on
  average, where patients have more.
- Counts of overlapping itemsets have independent noise: a part may have a smaller count than the whole.
"""


def tell(found: dict[str, Any], epsilon: float, remaining: float, out: str | None, as_json: bool) -> None:
    """The catalogue's figures, to a person or a program."""
    if as_json:
        listed = [
            {"items": items, "count": count}
            for items, count in zip(found["itemsets"], found["counts"], strict=True)
        ]
        print_json(
            {
                "release": out,
                "itemsets": listed,
                "levels": found["levels"],
                "epsilon": epsilon,
                "unit": "patient",
                "remaining": remaining,
            }
        )
        return
    lines = [f"{len(found['counts']):,} itemsets (epsilon {epsilon:g} for each patient; {remaining:g} left)."]
    for items, count in list(zip(found["itemsets"], found["counts"], strict=True))[:SHOWN]:
        lines.append(f"  {count:>10,}  {' & '.join(items)}")
    if len(found["counts"]) > SHOWN:
        lines.append("  … (--json prints all)")
    if out is not None:
        lines += [
            f"For the recipient: {Path(out) / 'share'}",
            f"Report:            {Path(out) / 'custody' / 'report.html'}",
        ]
    print_lines(*lines)
