"""What the words of a k-anonymous table rest on: its columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from leeward.verify.manifest import Share


def facts_of(share: Share) -> list[dict[str, Any]]:
    """The columns of the table; no wording fits a table that cannot be read."""
    try:
        return [{"columns": pq.read_schema(share.data("table.parquet")).names}]
    except (OSError, pa.ArrowInvalid):
        return []
