"""A tiny release content, for tests of the folder around it."""

from __future__ import annotations

import pyarrow as pa

from leeward.release import Anonymized, Guarantee, ReleaseTable

CANARY = "patient-7731-canary"
"""An identifier that must be found nowhere in a release."""

CHUNKS = pa.table(
    {
        "node": pa.array([0, 0, 1], pa.int64()),
        "codes": pa.array([["401.0", "a b"], [], None], pa.list_(pa.string())),
    }
)
POLICY = pa.table({"constraint": ["u1"], "code": ["401.0"]})


def made(*, seeded: bool = False, codes: pa.Table = CHUNKS) -> Anonymized:
    return Anonymized(
        method="disassociation",
        parameters={"k": 5, "m": 2},
        guarantee=Guarantee("k^m-anonymity", "knows up to 2 codes", ("collusion",), k=5, m=2),
        records=3,
        tables=(
            ReleaseTable.of("chunks.parquet", codes),
            ReleaseTable.of("reconstructions/01.parquet", CHUNKS),
        ),
        readme="Count with `leeward estimate`.",
        custody_tables=(ReleaseTable.of("policy.parquet", POLICY),),
        custody={"clusters": 2},
        seeded=seeded,
    )
