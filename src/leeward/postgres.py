"""TLS to PostgreSQL, as its own programs name it in a URL: `sslmode`, `sslrootcert`, `sslcert`, `sslkey`.

A server on another machine is checked in full unless the URL says otherwise, and there is no way back to clear text
when it has no TLS.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
from typing import TYPE_CHECKING, Any, Final

from leeward.errors import BadInput, did_you_mean, listed

if TYPE_CHECKING:
    import sqlalchemy as sa

MODES: Final = ("disable", "require", "verify-ca", "verify-full")
TLS: Final = ("sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword")
OTHERS: Final = ("application_name", "unix_sock")
"""What else the driver takes in a URL."""
REFUSES: Final = "Server refuses SSL"
"""What pg8000 says where a server has no TLS."""


def with_tls(url: sa.URL) -> tuple[sa.URL, dict[str, Any]]:
    """A URL without its options of TLS, and what they are for the driver. BadInput for an option that is unknown, a
    mode that falls back to clear text, and certificates that cannot be read."""
    for name, value in url.query.items():
        if name not in (*TLS, *OTHERS):
            known = did_you_mean(name, (*TLS, *OTHERS))
            raise BadInput(f"the URL of PostgreSQL has no option {name!r} here.{known}")
        if not isinstance(value, str):
            raise BadInput(f"the URL of PostgreSQL names {name!r} twice.")
    return url.difference_update_query(TLS), {"ssl_context": _context(url)}


def _context(url: sa.URL) -> ssl.SSLContext | bool:
    """What a connection is encrypted and checked with, made once; False: in clear text."""
    given = {name: str(url.query.get(name) or os.environ.get(f"PG{name.upper()}") or "") for name in TLS}
    mode = given["sslmode"] or ("disable" if _is_here(url) else "verify-full")
    if mode not in MODES:
        raise BadInput(f"`sslmode` is one of {listed(MODES)}; libpq's others may fall back to clear text.")
    if mode == "disable":
        return False
    roots = given["sslrootcert"]
    try:
        context = ssl.create_default_context(cafile=None if roots in ("", "system") else roots)
        if given["sslcert"]:
            context.load_cert_chain(given["sslcert"], given["sslkey"] or None, given["sslpassword"])
    except OSError:
        raise BadInput(
            "`sslrootcert`, `sslcert` or `sslkey` names no file of certificates or keys in PEM that can be read."
        ) from None
    context.check_hostname = mode == "verify-full"
    if mode == "require" and not roots:
        context.verify_mode = ssl.CERT_NONE
    return context


def _is_here(url: sa.URL) -> bool:
    """Whether a server is on this machine."""
    if url.host in (None, "localhost") or "unix_sock" in url.query:
        return True
    try:
        return ipaddress.ip_address(url.host).is_loopback
    except ValueError:
        return False


def fault_of_tls(error: BaseException) -> str | None:
    """What is wrong where TLS is why there is no connection, with what helps; None for another error."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"the server's certificate was refused: {error.verify_message}. Name the authority that signed it with "
            "?sslrootcert=FILE in the URL, and the host as its certificate does"
        )
    if str(error) == REFUSES:
        return (
            "the server has no TLS, and nothing is sent to another machine in clear text. Set ssl = on in "
            "postgresql.conf"
        )
    return f"TLS failed: {error.reason}" if isinstance(error, ssl.SSLError) else None
