"""Keys: one secret in a file outside the release, and one derived key per use."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from leeward.errors import BadInput

HEAD = "leeward-notes-key-1 "
HEADS = {"notes": HEAD, "register": "leeward-register-key-1 "}
"""What a key file begins with, by what uses it."""
USES = {"notes": "`leeward notes annotate`", "register": "a register of releases"}
BYTES = 32
LONGEST = 1024
"""Bytes read from a key file; a key has 65."""


@dataclass(frozen=True, repr=False)
class Keys:
    """Keys derived from one secret; none reveals another (HKDF's expand step, RFC 5869, with SHA-256)."""

    patients: bytes
    surrogates: bytes
    encryption: bytes
    nonces: bytes

    @classmethod
    def of(cls, secret: bytes) -> Keys:
        """Derive the keys of a secret of 32 bytes."""
        # Written out: with another word every pseudonym would change.
        uses = ("patients", "surrogates", "encryption", "nonces")
        return cls(
            *(hmac.digest(secret, f"leeward notes {use}\x01".encode(), hashlib.sha256) for use in uses)
        )

    def patient(self, identifier: str) -> str:
        """A patient's pseudonym in the table: a keyed hash, the same for all notes under this key."""
        return hmac.digest(self.patients, identifier.encode(), "sha256")[:12].hex()

    def number(self, *parts: str) -> int:
        """Keyed hash of the parts (128 bits), for surrogates."""
        return int.from_bytes(hmac.digest(self.surrogates, "\x1f".join(parts).encode(), "sha256")[:16], "big")

    def __repr__(self) -> str:
        return "Keys(…)"


def fresh() -> bytes:
    return secrets.token_bytes(BYTES)


def read_or_make(path: str | Path, release: str | Path | None = None, use: str = "notes") -> bytes:
    """Read the secret in a key file; a missing file is created, readable by its owner only. Raises BadInput if the file
    holds no key or is inside the folder `release`."""
    file = Path(path)
    if release is not None and Path(release).resolve() in file.resolve().parents:
        raise BadInput(
            f"key file {file.name}: the key may not lie in the folder that it protects; name a file elsewhere."
        )
    if file.exists():
        return read(file, use)
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as stream:
            secret = fresh()
            stream.write(HEADS[use] + base64.b64encode(secret).decode() + "\n")
            stream.flush()
            os.fsync(stream.fileno())  # without the key, encrypted texts are lost
        folder = os.open(file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except FileExistsError:  # another process created it in the meantime
        return read(file, use)
    except OSError:
        raise BadInput(
            f"key file {file.name}: cannot be made; name one with --key in a folder that exists."
        ) from None
    return secret


def read(path: str | Path, use: str = "notes") -> bytes:
    """Read the secret in an existing key file. Raises BadInput if it is missing or holds no key."""
    file, head = Path(path), HEADS[use].strip()
    # opening a pipe would block, reading a device would never end
    if file.exists() and not (file.is_file() or file.is_dir()):
        raise BadInput(f"key file {file.name}: is a pipe or a device, no file; name another with --key.")
    try:
        with file.open("rb") as stream:
            text = stream.read(LONGEST).decode("ascii").strip()
        secret = base64.b64decode(text.removeprefix(head).strip(), validate=True)
    except FileNotFoundError:
        raise BadInput(f"key file {file.name}: no such file; name another with --key.") from None
    except OSError as error:
        why = (error.strerror or "cannot be read").lower()
        raise BadInput(f"key file {file.name}: {why}; name another with --key.") from None
    except (UnicodeDecodeError, binascii.Error, ValueError):
        text, secret = "", b""
    if not text.startswith(head) or len(secret) != BYTES:
        raise BadInput(f"key file {file.name}: holds no key of {USES[use]}.")
    return secret
