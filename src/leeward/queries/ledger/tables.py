"""The ledger's tables, as the migrations leave them (a test compares the two).

No table holds a count, a draw of noise, text of a note or a patient's identifier: what is kept is who asked what, at
what cost, and the noisy answer that was given.
"""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData()

families = sa.Table(
    "families",
    metadata,
    sa.Column("family", sa.Text, primary_key=True),  # the id of the data set that all the others descend from
    sa.Column("accounting", sa.Text, nullable=False),
    sa.Column("epsilon", sa.BigInteger, nullable=False),
    sa.Column("delta", sa.Float(53)),
    sa.Column("unit", sa.Text, nullable=False),  # what the budget protects: patient or note
    sa.Column("entries", sa.BigInteger, nullable=False),
    sa.Column("head", sa.Text, nullable=False),
    sa.Column("moved", sa.Text),  # where its ledger is now; null while it is here
    sa.Column("arrived", sa.Boolean, nullable=False),
    sa.Column("default_allotment", sa.Text, nullable=False, server_default="all"),  # of a name without one
    sa.Column("separately", sa.Boolean, nullable=False, server_default=sa.false()),  # each project pays
)
"""One row a family of data sets: its budget's terms and the end of its log. Whoever writes locks this row first."""

data_sets = sa.Table(
    "data_sets",
    metadata,
    sa.Column("data_set", sa.Text, primary_key=True),
    sa.Column("parent", sa.Text, sa.ForeignKey("data_sets.data_set")),
    sa.Column("family", sa.Text, sa.ForeignKey("families.family"), nullable=False),
    sa.Column("threshold", sa.BigInteger),  # noisy values below it are hidden; public
)

accounts = sa.Table(
    "accounts",
    metadata,
    sa.Column("account", sa.Text, primary_key=True),  # data:ID, project:FAMILY:NAME or user:FAMILY:NAME
    sa.Column("family", sa.Text, sa.ForeignKey("families.family"), nullable=False),
    sa.Column("most", sa.BigInteger, nullable=False),
    sa.Column("spent", sa.BigInteger, nullable=False),
    sa.CheckConstraint("spent >= 0 AND spent <= most", name="never_overspent"),
)
"""What may be spent and was, in smallest units (micro-ε, or 1e-12 ρ). The constraint is the second lock on the door."""

answers = sa.Table(
    "answers",
    metadata,
    sa.Column("data_set", sa.Text, sa.ForeignKey("data_sets.data_set"), primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("question", sa.Text, nullable=False),
    sa.Column("epsilon", sa.BigInteger, nullable=False),
    sa.Column("cost", sa.BigInteger, nullable=False),
    sa.Column("user", sa.Text, nullable=False),
    sa.Column("charged", sa.Text, nullable=False),
    sa.Column("payload", sa.Text),  # null: charged, not answered
)

log = sa.Table(
    "log",
    metadata,
    sa.Column("family", sa.Text, sa.ForeignKey("families.family"), primary_key=True),
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("time", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
)
"""Append-only: triggers refuse changes and deletions, and each hash covers the one before."""
