"""Detached Ed25519 signatures over `dossier.json` (RFC 8032), by the `cryptography` package."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import Any

from leeward.errors import BadInput, require_extra

SIGNATURE = "dossier.json.sig"


def sign(content: bytes, key_file: str | Path) -> str:
    """The signature, in base64. BadInput where the file holds no private Ed25519 key in PEM."""
    key = _key(key_file, private=True)
    return base64.b64encode(key.sign(content)).decode() + "\n"


def is_signed(content: bytes, signature: str, key_file: str | Path) -> bool:
    """Whether the key's owner signed this content. BadInput where the file holds no public Ed25519 key in PEM."""
    key = _key(key_file, private=False)
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(base64.b64decode(signature, validate=True), content)
    except (InvalidSignature, binascii.Error, ValueError):
        return False
    return True


def _key(file: str | Path, *, private: bool) -> Any:
    require_extra("A signature", "notes", "cryptography")
    from cryptography.hazmat.primitives.asymmetric import ed25519
    from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

    path = Path(file)
    if not path.is_file():
        raise BadInput(f"{path}: there is no such key file.")
    kind: type = ed25519.Ed25519PrivateKey if private else ed25519.Ed25519PublicKey
    content = path.read_bytes()
    try:
        key: Any = load_pem_private_key(content, None) if private else load_pem_public_key(content)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, kind):
        word, way = ("private", "genpkey -algorithm ed25519") if private else ("public", "pkey -pubout")
        raise BadInput(
            f"{path.name}: no {word} Ed25519 key in PEM without a passphrase; make one with `openssl {way}`."
        )
    return key
