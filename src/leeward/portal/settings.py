"""Settings of a portal: `portal.toml` in its folder, readable by its owner only."""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import field, fields
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from leeward.errors import BadInput, did_you_mean, listed
from leeward.queries.ledger.engines import parse_url, place_of

FILE: Final = "portal.toml"
LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]", "::1"})
ALGORITHMS: Final = ("RS256", "PS256", "ES256", "EdDSA")
"""Signatures of ID tokens that may be allowed: by a private key, never by a shared secret or none."""
STRICT: Final = ConfigDict(extra="forbid")


def check_https(name: str, url: str, why: str = "") -> None:
    """BadInput for an address that is not https, except on this computer."""
    parts = urlsplit(url)
    if parts.scheme != "https" and (parts.scheme != "http" or parts.hostname not in LOOPBACK):
        raise BadInput(f"`{name}` must begin with https, except on this computer{why}.")


@dataclass(frozen=True, kw_only=True, repr=False, config=STRICT)
class Provider:
    """An OpenID Connect provider (`[provider]`)."""

    issuer: str
    """As in its discovery document and in every token."""
    client_id: str
    client_secret: str = ""
    """May be left out for a public client."""
    name: str = "your institution"
    """On the button."""
    algorithms: tuple[str, ...] = ("RS256",)
    """Accepted signatures of ID tokens."""
    roles_claim: str | None = None
    """The claim that lists a person's groups. Without it roles are given on the admin page."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Group -> role of the house."""
    required: Mapping[str, str] = field(default_factory=dict)
    """Claim -> the value that it must have or, where it is a list (`amr`), hold; for example the tenant."""

    def __post_init__(self) -> None:
        check_https("provider.issuer", self.issuer, ": who is on the way could sign in as anybody")
        if not set(self.algorithms) <= set(ALGORITHMS) or not self.algorithms:
            raise BadInput(f"`provider.algorithms` may name {', '.join(ALGORITHMS)}.")


@dataclass(frozen=True, kw_only=True, repr=False, config=STRICT)
class Notify:
    """How people are told of what waits for them (`[notify]`)."""

    mail: str | None = None
    """URL of a mail server: `smtps://user:password@mail.hospital.example`, or `smtp://` with STARTTLS."""
    sender: str = ""
    """The address that mails come from."""
    webhook: str | None = None
    """An address that gets `{"text": ...}` by POST, as chat services take it."""

    def __post_init__(self) -> None:
        if self.mail is not None:
            if urlsplit(self.mail).scheme not in {"smtp", "smtps"} or not urlsplit(self.mail).hostname:
                raise BadInput(
                    "`notify.mail` is an address such as smtps://user:password@mail.hospital.example."
                )
            if "@" not in self.sender:
                raise BadInput("`notify.sender` must be an e-mail address where `notify.mail` is given.")
        if self.webhook is not None:
            check_https("notify.webhook", self.webhook)


@dataclass(frozen=True, kw_only=True, repr=False, config=STRICT)
class Settings:
    """A portal's settings."""

    folder: Path
    """Where its database is; for its owner alone."""
    public_url: str = "http://127.0.0.1:8000"
    """What people write in their browser, never taken from a request. Its host is the one that is answered, its path a
    prefix; with https cookies are sent over TLS alone."""
    database: str | None = None
    """URL of the database; None: SQLite in the folder."""
    indexes: Path | None = None
    releases: Path | None = None
    """Folders in which indexes and releases may be proposed; by default those of these names in `folder`."""
    local_accounts: bool = False
    """Sign in with a password kept here."""
    provider: Provider | None = None
    ledgers: Mapping[str, str] = field(default_factory=dict)
    """Name -> URL, or file (SQLite), of a ledger that is not in the folder of its index. A URL may hold a password; the
    portal keeps and shows the name and the place."""
    notify: Notify | None = None
    hosts: tuple[str, ...] = ()
    """Further values of the Host header that are answered: what a proxy calls the portal."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses whose X-Forwarded-For is believed; of nobody else's."""
    slot: float = 0.05
    """Replies leave at multiples of so many seconds after their request came in."""
    idle_minutes: int = 30
    most_hours: int = 8
    """How long a session lasts."""
    questions_a_minute: int = 300
    """Questions and prices of a person in a minute, in each process; a rehearsal counts as ten."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.public_url)
        if parts.scheme not in {"http", "https"} or not parts.netloc or parts.query or parts.fragment:
            raise BadInput(
                f"`public_url`: {self.public_url} is no address such as https://portal.hospital.example/leeward."
            )
        check_https("public_url", self.public_url, ": passwords and answers would be readable on the way")
        for url in self._ledgers().values():
            parse_url(url)
        if not 0 <= self.slot <= 5:
            raise BadInput("`slot` is a time in seconds from 0 to 5.")

    @property
    def host(self) -> str:
        """The host, with its port where there is one, that requests must name."""
        return urlsplit(self.public_url).netloc.lower()

    @property
    def origin(self) -> str:
        """Scheme and host, as a browser sends them with a form."""
        parts = urlsplit(self.public_url)
        return f"{parts.scheme}://{parts.netloc.lower()}"

    @property
    def prefix(self) -> str:
        """The path below which the portal is, without a slash at its end."""
        return urlsplit(self.public_url).path.rstrip("/")

    @property
    def secure(self) -> bool:
        """Whether people reach it over TLS."""
        return self.public_url.startswith("https:")

    @property
    def cookie(self) -> str:
        """The session cookie's name; a browser takes `__Host-` over TLS only, for this host only."""
        return "__Host-leeward" if self.secure else "leeward"

    def ledger(self, name: str) -> str:
        """The URL of a ledger by its name, or by its place (of indexes from before ledgers had names)."""
        for known, url in self._ledgers().items():
            if name in (known, place_of(parse_url(url))):
                return url
        raise BadInput(
            f"{self.folder / FILE}: `ledgers` does not name {name}; it names {listed(sorted(self.ledgers)) or 'none'}."
        )

    def place_of_ledger(self, name: str | None) -> str:
        """Where a ledger is, without a secret."""
        return "in the index's folder" if name is None else place_of(parse_url(self.ledger(name)))

    def _ledgers(self) -> dict[str, str]:
        return {
            name: text if "://" in text else f"sqlite:///{self.folder / text}"
            for name, text in self.ledgers.items()
        }

    @property
    def index_folder(self) -> Path:
        return self.indexes or self.folder / "indexes"

    @property
    def release_folder(self) -> Path:
        return self.releases or self.folder / "releases"


def read_settings(folder: Path, **given: Any) -> Settings:
    """The settings in `folder`, those `given` (not None) before them. BadInput where a setting is unknown or others
    can read the folder or the file: it may hold secrets."""
    check_private(folder)
    found: dict[str, Any] = {}
    path = folder / FILE
    if path.is_file():
        check_private(path)
        try:
            found = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise BadInput(f"{path}: not TOML ({error}).") from None
    if "folder" in found:
        raise BadInput(f"{path}: there is no setting `folder`; it is where this file is.")
    found |= {name: value for name, value in given.items() if value is not None}
    found |= {name: folder / found[name] for name in ("indexes", "releases") if found.get(name) is not None}
    try:
        return TypeAdapter(Settings).validate_python({**found, "folder": folder})
    except ValidationError as error:
        raise BadInput(f"{path}: {_fault(error.errors()[0])}") from None


def _fault(error: Any) -> str:
    """An error of pydantic's in words, without the value, which may be a secret."""
    name = ".".join(str(part) for part in error["loc"])
    if error["type"] != "unexpected_keyword_argument":
        return f"`{name}`: {error['msg']}."
    kind = {"provider": Provider, "notify": Notify}.get(error["loc"][0], Settings)
    return (
        f"there is no setting `{name}`.{did_you_mean(error['loc'][-1], [each.name for each in fields(kind)])}"
    )


def check_private(path: Path) -> None:
    """BadInput where others than the owner can read a folder or file."""
    if os.name == "posix" and path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise BadInput(
            f"{path}: others can read it, and it holds accounts or exact data; take their rights away with "
            f"chmod go-rwx."
        )
