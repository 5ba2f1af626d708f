"""The story of annotating notes: read, annotate on an engine, write the folder aside, rename."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from leeward.engine import LocalEngine, at_most, running
from leeward.errors import BadInput
from leeward.notes import star
from leeward.notes.identities import keys
from leeward.notes.identities.replacing import decrypt as opened
from leeward.notes.identities.replacing import restricted_areas
from leeward.notes.language import foreign_notes
from leeward.notes.lexicon.loaders import load as load_lexicon
from leeward.notes.pipeline import INPUT, OUTPUT, Work, available_members, reader_of, spans_of
from leeward.notes.reading import read
from leeward.notes.review import Reviewed, page
from leeward.notes.table import ROW, with_disagreements
from leeward.paths import require_new
from leeward.queries.state import VARIABLE, account_folder
from leeward.randomness import Randomness
from leeward.release import Draft, draft
from leeward.release.aside import own_file
from leeward.runs.progress import Tell, watch

BLOCK, SMALL_BLOCK = 256, 32
"""Notes that a kernel gets at once; where processes share them, so that none is left with much at the end."""

WORTH_PROCESSES = 3_000_000
"""Characters of all notes (1,000 discharge letters, 4,000 short notes) from which on further processes are started.

Each costs some two seconds of processor time, to start and to meet the words; of 1,600,000 characters two processes
spare a fifth of the time for half as much processor time again."""

SPANS_KEPT = 5_000
"""Notes up to which the spans of all are kept for the review page; of more, those on the page are found again."""

SAID = {
    "removed": "a category in brackets stands in its place, such as [NAME]",
    "surrogates": "something made up stands in its place; dates of a patient moved by one number of days",
    "encrypted": "a token stands in its place that only the custodian's key opens",
}

TOLD = {
    "surrogates": """
What moved together can be joined: one date that somebody knows tells by how many days a patient's dates moved, and so
all of them; the days between two dates are as they were, and few patients have the same. Who has these notes with other
surrogates too can tell what is made up: it is not in both.
""",
    "encrypted": """
The tokens tell how many identities a note has, where and of which category, and how long each is, by steps of 32
bytes. No two notes have a token in common.
""",
}
"""What somebody may learn from what stands in the identities' places."""

SHARED = """# Clinical notes without the identities that were found in them

`text.parquet` has a note a row (`note`, `patient`, `text`).{listed}

Where an identity, a date, a place or a ZIP code was found, {mode}. Ages up to 89, sex and race are as they were.{zips}

Nothing is guaranteed: programs found the identities, and programs miss some. Whoever gets these texts must not try to
find out who the patients are.
{told}"""

ZIPS = " What stays, too: the first three digits of ZIP codes (000: an area of at most 20,000 people)."

LISTED = """ `replacements.parquet` has what was replaced where: characters
`start` to `end` (exclusive) of a text, `kind` (EID: explicit identifier, QID: quasi-identifier) and `category`."""

FOREIGN = """
{count:,} of the {total:,} notes are not in English, the only language that the programs read: identities in them were
missed more often.
"""

FOREIGN_SHARE = 0.1
"""Above this share of notes in other languages nothing is annotated unless it is asked for."""

RECIPIENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Names of recipients, of which each is a file's."""

REVIEWED = 100
"""Notes on the review page, unless asked otherwise."""


def annotate(
    notes: str | Path,
    out: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    metadata: str | Path | None = None,
    mode: str | None = None,
    key: str | Path | None = None,
    recipient: str | None = None,
    lexicon: str = "leeward",
    members: tuple[str, ...] = (),
    review: int = REVIEWED,
    engine: Any = "local",
    threads: int | None = None,
    processes: bool = False,
    seed: int | None = None,
    any_language: bool = False,
    zip3: Sequence[str] = (),
    i2b2: str | None = None,
) -> dict[str, Any]:
    """Turn clinical notes into a table of quasi-identifiers and health terms, and into texts without identities.

    Parameters
    ----------
    notes : str or Path
        A folder of texts, a table with a column of text, or FHIR NDJSON.
    out : str or Path
        Folder to write; it must not exist. The table is `custody/table.parquet`.
    columns : mapping of str to str, optional
        Source columns of a table for `text`, `patient`, `note`, `date`, `sex` …
    metadata : str or Path, optional
        Registration data, one row for each patient or note.
    mode : str, optional
        `removed`, `surrogates` or `encrypted`: also write `share/text.parquet`, with identities treated this way.
    key : str or Path, optional
        Key file for patients, surrogates and encryption; made if it does not exist.
    recipient : str, optional
        Without `key`, the recipient whose key is used. All releases for one recipient have the same surrogates.
    lexicon : str, optional
        List of health terms.
    members : tuple of str, optional
        Annotators to use; by default, all that are installed.
    review : int, optional
        Number of notes on the review page.
    engine : str or mapping, optional
        As in `protect`.
    threads : int, optional
        Number of threads; all processors by default.
    processes : bool, optional
        Annotate many notes in `threads` processes. The caller's main module must be safe to import again.
    seed : int, optional
        For tests and studies only.
    any_language : bool, optional
        Accept notes in other languages, which the annotators cannot read. Otherwise they are refused if texts are
        written, or if they are more than a tenth of the notes.
    zip3 : sequence of str, optional
        Keep three digits of ZIP codes in what is shared, but write 000 for these areas: `hhs` (17, by the census of
        2000) or three digits. By default no digit is kept.
    i2b2 : str, optional
        `full`: also write the table as an i2b2 star in custody; `safe-harbor`: by Safe Harbor, as `share/i2b2`.

    Returns
    -------
    dict
        Figures of the run, as in `custody/summary.json`, with `out` and `key`, the key file.

    Raises
    ------
    BadInput
        The notes cannot be read, or `out` exists. Nothing is left at `out`.

    Examples
    --------
    >>> import leeward as lw
    >>> import polars as pl
    >>> notes = pl.DataFrame({"patient": [1, 2], "text": ["Seen for fever.", "No cough."]})
    >>> notes.write_csv("notes.csv")
    >>> found = lw.annotate("notes.csv", "annotated", key="notes.key", members=("rules", "dictionary"))
    >>> sorted(pl.read_parquet("annotated/custody/table.parquet")["terms"].to_list())
    [[], ['LW0001']]
    """
    restricted = restricted_areas(zip3)
    if i2b2 == "safe-harbor" and mode == "surrogates":
        raise BadInput("the years of a shared i2b2 star would tell how surrogates of dates moved.")
    with at_most(threads), watch(None) as say, draft(out) as pending:
        say("Reading the notes")
        frame = read(notes, columns, metadata)
        foreign = check_languages(frame["text"].to_list(), mode, any_language)
        chosen = members or available_members()
        words = load_lexicon(lexicon)
        reader_of(chosen, lexicon)  # a wrong member or model is said before work begins
        secret, file = _secret(key, recipient, seed, pending.out)
        randomness = Randomness.of(seed)
        run = randomness.stream("notes", "tokens").bytes(16).hex()
        work = Work(chosen, lexicon, mode, secret, frame.height <= SPANS_KEPT, run, restricted)  # type: ignore[arg-type]  # click or the caller gave one of the modes
        with running(engine, threads) as runner:
            if isinstance(runner, LocalEngine):
                many = processes and int(frame["text"].str.len_chars().sum()) >= WORTH_PROCESSES
                runner = replace(runner, processes=many, told=_progress(frame.height, say))
            size = SMALL_BLOCK if getattr(runner, "processes", False) else BLOCK
            blocks = frame.select(*INPUT.names).with_columns(((pl.col("row") - 1) // size).alias("block"))
            made = runner.map_groups(blocks, "block", work, OUTPUT, order=("row",))
        found = pl.DataFrame(pl.from_arrow(made))
        say("Writing")
        order = randomness.stream("notes", "order").permutation(frame.height)
        rows = found.sort("row").with_columns(pl.Series("note", order, pl.Int64)).sort("note")
        table = with_disagreements(rows.select("note", *ROW.names))
        _write_tables(pending, frame, table)
        _write_texts(pending, rows, mode, sum(foreign.values()), "" if restricted is None else ZIPS)
        if i2b2 is not None:
            where, kept = "custody", table
            if i2b2 == "safe-harbor":
                where, kept = "share", star.generalize_by_safe_harbor(table, restricted)
                pending.put("share/i2b2/README.md", star.README)
            for name, part in star.build_star(kept, words).items():
                pending.put(f"{where}/i2b2/{name}.csv", part.write_csv())
        counts = rows["found"].explode(empty_as_null=True).drop_nulls().value_counts()
        by_category = dict(counts.sort("count", "found", descending=[True, False]).iter_rows())
        figures: dict[str, Any] = {
            "notes": table.height,
            "patients": table["patient"].n_unique(),
            "members": list(chosen),
            "lexicon": {"name": words.name, "concepts": len(words), "digest": words.digest},
            "text": mode,
            "other_languages": foreign,
            "control_characters": int(frame["controls"].sum()),
            **_figures_of(table, by_category),
        }
        drawn = randomness.stream("notes", "review").permutation(table.height)
        reviewed = _draw_reviewed(frame, table.with_columns(pl.Series("_drawn", drawn)), rows, work, review)
        asserted = {term for note in reviewed for term in note.row["terms"]}
        names = {term: words[term].name for term in asserted if term in words}
        pending.put("custody/review.html", page(reviewed, table.height, names, by_category))
        pending.put_json("custody/summary.json", figures)
    return {"out": str(out), "key": None if file is None else str(file), **figures}


def check_languages(texts: Sequence[str], mode: str | None, any_language: bool) -> dict[str, int]:
    """How many notes are in which language that the annotators do not read; BadInput where that cannot be let pass."""
    found = foreign_notes(texts)
    count = sum(map(len, found.values()))
    if count == 0 or any_language or (mode is None and count <= FOREIGN_SHARE * len(texts)):
        return {language: len(rows) for language, rows in found.items()}
    what = ", ".join(f"{len(rows):,} in {language}" for language, rows in found.items())
    first = ", ".join(str(row) for row in sorted(row for rows in found.values() for row in rows)[:5])
    raise BadInput(
        f"{count:,} of {len(texts):,} notes are not in English ({what}; first: row {first}). The annotators "
        f"only read English and would leave names, dates and places in the texts. Leave these notes out; "
        "--any-language annotates them anyway, for a table or for texts that a person checks afterwards."
    )


def decrypt(path: str | Path, key: str | Path | None, out: str | Path, recipient: str | None = None) -> int:
    """Restore the identities in encrypted texts.

    Parameters
    ----------
    path : str or Path
        Folder that `annotate` wrote with `mode="encrypted"`.
    key : str or Path or None
        Key file of `annotate`.
    out : str or Path
        File to write; it must not exist.
    recipient : str, optional
        Without `key`, the recipient whose key is used.

    Returns
    -------
    int
        Number of texts.

    Raises
    ------
    BadInput
        There are no such texts, the key is wrong, or `out` exists.

    Examples
    --------
    >>> import leeward as lw
    >>> import polars as pl
    >>> notes = pl.DataFrame({"patient": [1, 2], "text": ["Dr. Miller saw the patient.", "No cough."]})
    >>> notes.write_csv("notes.csv")
    >>> members = ("rules", "dictionary")
    >>> found = lw.annotate("notes.csv", "annotated", mode="encrypted", key="notes.key", members=members)
    >>> lw.decrypt("annotated", "notes.key", "plain.parquet")
    2
    """
    source, target = Path(path) / "share" / "text.parquet", Path(out)
    if not source.is_file():
        raise BadInput(f"{Path(path).name}: no share/text.parquet; was it written with --text encrypted?")
    require_new(target)
    secret = keys.Keys.of(keys.read(_key_file(key, recipient)))
    table = pl.read_parquet(source)
    table = table.with_columns(pl.Series("text", [opened(text, secret) for text in table["text"]], pl.String))
    aside = target.with_name(target.name + ".partial")
    try:
        own_file(aside)
        if target.suffix == ".csv":
            table.write_csv(aside)
        else:
            table.write_parquet(aside)
        aside.rename(target)
    finally:
        aside.unlink(missing_ok=True)
    return table.height


def key_file_of(recipient: str | None = None) -> Path:
    """The key file of a recipient, in the folder `keys` of this user's state (`leeward.queries.state`). Recipients
    without a name share one key: their releases have the same surrogates and can be joined. Raises BadInput where the
    name cannot name a file, or the folder cannot be made."""
    name = recipient or "everybody"
    if not RECIPIENT.fullmatch(name):
        raise BadInput("--recipient: a name of letters, digits, `.`, `_` and `-`, 64 at most, is needed.")
    folder = account_folder("keys")
    if folder is None:
        raise BadInput(
            f"there is no folder for the key; name a file with --key, or a folder with {VARIABLE}."
        )
    return folder / f"{name}.key"


def _key_file(key: str | Path | None, recipient: str | None) -> Path:
    if key is not None and recipient is not None:
        raise BadInput("give --key or --recipient, not both.")
    return Path(key) if key is not None else key_file_of(recipient)


def _secret(
    key: str | Path | None, recipient: str | None, seed: int | None, out: Path
) -> tuple[bytes, Path | None]:
    """The secret and its file. A seed alone, for tests and studies, gives one that follows from it and is not kept."""
    if seed is not None and key is None and recipient is None:
        return Randomness.of(seed).stream("notes", "key").bytes(32), None
    file = _key_file(key, recipient)
    return keys.read_or_make(file, out), file


def _progress(total: int, say: Tell) -> Callable[[int], None]:
    done, lock = 0, threading.Lock()

    def tell_rows(rows: int) -> None:
        nonlocal done
        with lock:
            done += rows
            say(f"{done:,} of {total:,} notes ({done / total:.0%})")

    return tell_rows


def _write_tables(pending: Draft, frame: pl.DataFrame, table: pl.DataFrame) -> None:
    """Custody's table, and which note and patient of the source each of its numbers is."""
    table.drop("row").write_parquet(pending.custody / "table.parquet", compression="zstd")
    source = frame.select(
        "row", "file", pl.col("note").alias("source_note"), pl.col("patient").alias("source_patient")
    )
    numbers = table.select("note", "row", "patient").join(source, on="row", how="left", maintain_order="left")
    numbers.write_parquet(pending.custody / "numbers.parquet", compression="zstd")


def _figures_of(table: pl.DataFrame, by_category: Mapping[str, int]) -> dict[str, Any]:
    columns = ("visit_month", "age", "sex", "race", "zip", "place")
    return {
        "spans": {
            kind: sum(n for category, n in by_category.items() if category.startswith(kind))
            for kind in ("EID", "QID", "HMI")
        },
        "categories": by_category,
        "terms": table["terms"].explode(empty_as_null=True).drop_nulls().n_unique(),
        "terms_per_note": int(table["terms"].list.len().sum()) / table.height,
        "disagreeing": int((table["disagrees"].list.len() > 0).sum()),
        "known": {name: int(table[name].is_not_null().sum()) for name in columns},
    }


def _write_texts(pending: Draft, rows: pl.DataFrame, mode: str | None, foreign: int, zips: str) -> None:
    """Write `share/` only where texts were asked for. The list of replacements goes with texts whose brackets and
    tokens show them anyway. With surrogates it stays in custody: a name that it lacks would be a real one that the
    annotators missed."""
    shutil.rmtree(pending.share)
    if mode is None:
        return
    pending.share.mkdir()
    hidden = mode == "surrogates"
    listed, told = "" if hidden else LISTED, TOLD.get(mode, "")
    readme = SHARED.format(mode=SAID[mode], listed=listed, told=told, zips=zips)
    if foreign:
        readme += FOREIGN.format(count=foreign, total=rows.height)
    pending.put("share/README.md", readme)
    rows.select("note", "patient", "text").write_parquet(pending.share / "text.parquet", compression="zstd")
    names = {"starts": "start", "ends": "end", "kinds": "kind", "categories": "category"}
    replaced = rows.filter(pl.col("starts").list.len() > 0).select("note", *names)
    folder = pending.custody if hidden else pending.share
    replaced.explode(*names, empty_as_null=False).rename(names).write_parquet(
        folder / "replacements.parquet", compression="zstd"
    )


def _draw_reviewed(
    frame: pl.DataFrame, table: pl.DataFrame, rows: pl.DataFrame, work: Work, count: int
) -> list[Reviewed]:
    """The notes of the review page: first those that annotators disagree on, each by the number drawn for it."""
    agrees = (pl.col("disagrees").list.len() == 0).alias("_agrees")
    shown = table.with_columns(agrees).sort("_agrees", "_drawn").head(count)
    among = pl.col("row").is_in(shown["row"].implode())
    texts = dict(frame.filter(among).select("row", "text").iter_rows())
    if work.keeps_spans:
        found = {row: spans_of(each) for row, each in rows.select("row", "spans").filter(among).iter_rows()}
    else:
        reader = reader_of(work.members, work.lexicon)
        found = {row: reader.read(text) for row, text in texts.items()}
    return [Reviewed(row["note"], row, texts[row["row"]], found[row["row"]]) for row in shown.to_dicts()]
