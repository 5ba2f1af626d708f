"""The register of releases: which patients each has, what recipients may put together, and whether that is safe.

It stays in custody. A release is entered before it is made and published after that, so that a run that is killed
leaves an entry that counts. Patients are kept as keyed hashes (`sketch`), entries are chained (`store`), and a small
file beside the key remembers the last entry (`head`), so that an older copy of the register is refused. `policy` has
the rules.
"""

from __future__ import annotations

from leeward.errors import require_extra

require_extra("A register of releases", "queries", "sqlalchemy", "alembic", "opendp")
