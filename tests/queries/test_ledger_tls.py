"""A ledger on another machine: the server's certificate is checked, and nothing is sent in clear text."""

from __future__ import annotations

import datetime
import ipaddress
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.portal.served import free_port
from tests.postgres_fixture import running_postgres
from tests.waiting import LONG

from leeward.cohort.readers.databases import Database
from leeward.errors import BadInput
from leeward.queries.ledger import families, opening
from leeward.queries.ledger.opening import LedgerUnreachable

HOST = "db.hospital.example"
SECRET = "s3cr3t"


@dataclass(frozen=True)
class Signer:
    """An authority made up for a test."""

    name: x509.Name
    key: ec.EllipticCurvePrivateKey

    def sign(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, more: x509.ExtensionType) -> bytes:
        today = datetime.datetime.now(datetime.UTC)
        own = key is self.key
        built = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(today - datetime.timedelta(days=1))
            .not_valid_after(today + datetime.timedelta(days=1))
            .add_extension(more, critical=own)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False
            )
        )
        return built.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def write_key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = ec.generate_private_key(ec.SECP256R1())
    form = serialization.PrivateFormat.PKCS8
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    path.chmod(0o600)
    return key


def write_authority(folder: Path, name: str) -> Signer:
    """An authority whose certificate is `NAME.crt`."""
    signer = Signer(named(f"authority {name}"), ec.generate_private_key(ec.SECP256R1()))
    own = signer.sign(signer.name, signer.key, x509.BasicConstraints(ca=True, path_length=None))
    (folder / f"{name}.crt").write_bytes(own)
    return signer


@pytest.fixture(scope="module", name="certificates")
def folder_of_certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    signer = write_authority(folder, "ca")
    write_authority(folder, "other")
    names = x509.SubjectAlternativeName(
        [x509.DNSName(HOST), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    )
    for name, subject, more in (("server", HOST, names), ("client", "custodian", names)):
        key = write_key(folder / f"{name}.key")
        (folder / f"{name}.crt").write_bytes(signer.sign(named(subject), key, more))
    return folder


@pytest.fixture(scope="module", name="server")
def server_with_tls(certificates: Path) -> Iterator[str]:
    """User, host and database of a server with TLS, as another machine's."""
    port = free_port()
    with running_postgres(connections=20, port=port, tls=certificates):
        yield f"custodian:{SECRET}@{HOST}:{port}/postgres"


@pytest.fixture(autouse=True)
def every_name_is_this_computer(monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *more, **most: real("127.0.0.1", *more, **most))


def asked(url: str, what: str) -> Any:
    ledger = opening.make_ledger(url)
    try:
        with opening.reading(ledger) as connection:
            return connection.exec_driver_sql(
                f"SELECT {what} FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
            ).scalar()
    finally:
        families.close(ledger)


@pytest.mark.parametrize(
    "options",
    [
        "sslrootcert=ca",
        "sslmode=verify-ca&sslrootcert=ca",
        "sslmode=require",
        "sslmode=require&sslrootcert=ca",
    ],
)
def test_the_right_certificate_is_taken(server: str, certificates: Path, options: str) -> None:
    options = options.replace("rootcert=ca", f"rootcert={certificates}/ca.crt")
    assert asked(f"postgresql://{server}?{options}", "ssl") is True


def test_a_client_shows_its_own_certificate(server: str, certificates: Path) -> None:
    own = f"sslcert={certificates}/client.crt&sslkey={certificates}/client.key"
    assert (
        asked(f"postgresql://{server}?sslrootcert={certificates}/ca.crt&{own}", "client_dn")
        == "/CN=custodian"
    )


@pytest.mark.parametrize(
    ("options", "host"),
    [
        ("", HOST),  # the system's authorities did not sign it
        ("?sslrootcert=other", HOST),
        ("?sslrootcert=ca", "other.hospital.example"),
        ("?sslmode=verify-ca&sslrootcert=other", HOST),
        ("?sslmode=require&sslrootcert=other", HOST),
        ("?sslmode=verify-full&sslrootcert=other", "127.0.0.1"),
    ],
)
def test_another_certificate_is_refused_with_the_remedy(
    server: str, certificates: Path, options: str, host: str
) -> None:
    for name in ("ca", "other"):
        options = options.replace(f"sslrootcert={name}", f"sslrootcert={certificates}/{name}.crt")
    with pytest.raises(LedgerUnreachable, match=r"certificate was refused.*sslrootcert") as refused:
        opening.make_ledger(f"postgresql://{server.replace(HOST, host)}{options}")
    assert SECRET not in str(refused.value)


def test_a_source_is_checked_too(server: str, certificates: Path) -> None:
    Database(f"postgresql://{server}?sslrootcert={certificates}/ca.crt").close()
    with pytest.raises(BadInput, match=r"certificate was refused.*sslrootcert"):
        Database(f"postgresql://{server}?sslrootcert={certificates}/other.crt")


def heard_by_a_server_without_tls(options: str, host: str) -> list[bytes]:
    """What such a server was sent until it or the client closed."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        server.settimeout(LONG)

        def refuse() -> None:
            with server.accept()[0] as connection:
                heard.append(connection.recv(1000))
                connection.sendall(b"N")
                heard.append(connection.recv(1000))

        refusing = pool.submit(refuse)
        with pytest.raises(LedgerUnreachable, match=r"no TLS.*ssl = on"):
            opening.open_ledger(f"postgresql://ann:{SECRET}@{host}:{server.getsockname()[1]}/x{options}")
        refusing.result(timeout=LONG)
    return heard


@pytest.mark.parametrize(
    ("options", "host"), [("", HOST), ("?sslmode=require", HOST), ("?sslmode=require", "127.0.0.1")]
)
def test_nothing_is_sent_in_clear_text(options: str, host: str) -> None:
    """Of a server that has no TLS only that is asked: eight bytes, and no name and no password."""
    assert heard_by_a_server_without_tls(options, host) == [b"\x00\x00\x00\x08\x04\xd2\x16\x2f", b""]


def test_the_loopback_and_whoever_says_so_need_no_tls(server: str) -> None:
    assert asked(f"postgresql://{server.replace(HOST, '127.0.0.1')}", "ssl") is False
    assert asked(f"postgresql://{server}?sslmode=disable", "ssl") is False


@pytest.mark.parametrize("where", ["url", "environment"])
def test_a_mode_that_may_fall_back_is_refused(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if where == "environment":
        monkeypatch.setenv("PGSSLMODE", "prefer")
    with pytest.raises(BadInput, match=r"sslmode.*verify-full.*clear text"):
        opening.open_ledger("postgresql://ann@h/x" + ("?sslmode=prefer" if where == "url" else ""))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (f"sslmod={SECRET}", "'sslmod' here. Did you mean 'sslmode'"),
        (f"sslmode={SECRET}&sslmode={SECRET}", "twice"),
        (f"sslrootcert=/nowhere/{SECRET}", "no file of certificates"),
        (f"sslcert=/nowhere/{SECRET}", "no file of certificates"),
    ],
)
def test_an_option_that_is_wrong_is_named_without_its_value(options: str, message: str) -> None:
    with pytest.raises(BadInput, match=message) as refused:
        opening.open_ledger(f"postgresql://ann@h/x?{options}")
    assert SECRET not in str(refused.value)
