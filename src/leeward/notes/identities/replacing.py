"""Remove, replace by surrogates, or encrypt the identities in a text.

This covers all explicit identifiers and the quasi-identifiers that HIPAA's Safe Harbor would remove from a text
(dates, ZIP codes, places). Ages up to 89, sex and race stay.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

from leeward.errors import BadInput, require_extra
from leeward.notes.identities.keys import Keys
from leeward.notes.identities.surrogates import surrogate
from leeward.notes.spans import SAFE_HARBOR_QID, Span

Mode = Literal["removed", "surrogates", "encrypted"]
MODES: tuple[str, ...] = get_args(Mode)

NONCE = 12
PADDED = 32
"""Texts are padded with NUL, which no note holds, to a multiple of this many bytes before encryption."""
_TOKEN = re.compile(r"\[([A-Z_]+):([A-Za-z0-9_-]{38,}={0,2})\]")


@dataclass(frozen=True)
class Replacement:
    """Characters `start` to `end` (exclusive) of the new text stand for an identity of a kind and category."""

    start: int
    end: int
    kind: str
    category: str


def goes(span: Span) -> bool:
    """Whether a span must be removed from a released text."""
    return span.kind == "EID" or (span.kind == "QID" and span.category in SAFE_HARBOR_QID)


def replace(
    text: str, spans: Sequence[Span], mode: Mode, keys: Keys, patient: str, note: str, year: int = 2001
) -> tuple[str, list[Replacement]]:
    """Return the text without its identities, and the replacements. Spans ascend and do not overlap. Surrogates and
    date shifts are specific to the `patient`. `note` names the run and the note in one text, so that no two notes or
    runs share a token. `year` is that of the visit, for dates without one."""
    pieces: list[str] = []
    done: list[Replacement] = []
    past = length = 0
    for span in spans:
        if not goes(span) or not any(map(str.isalnum, text[span.start : span.end])):
            continue  # the rest of a span partly covered by another may be blank
        kept = text[past : span.start]
        new = _replacement(text[span.start : span.end], span, mode, keys, patient, note, year)
        start = length + len(kept)
        if done and not kept.strip() and new == pieces[-1] and mode == "removed":
            past = span.end  # "[NAME] [NAME]" would tell how many words a name has
            continue
        pieces += [kept, new]
        length = start + len(new)
        done.append(Replacement(start, length, span.kind, span.category))
        past = span.end
    pieces.append(text[past:])
    return "".join(pieces), done


def _replacement(text: str, span: Span, mode: Mode, keys: Keys, patient: str, note: str, year: int) -> str:
    if mode == "surrogates":
        return surrogate(keys, patient, span.category, text, year)
    if mode == "encrypted":
        return encrypt(keys, span.category, text, f"{note}\x1f{span.start}")
    return f"[{span.category.upper()}]"


def encrypt(keys: Keys, category: str, text: str, place: str) -> str:
    """`[CATEGORY:token]`, AES-256-GCM with the category as associated data.

    The nonce is a keyed hash of category, place and text, so that every engine writes the same token: two different
    texts share a nonce only by chance (96 bits), and equal texts at different places have different tokens. A token
    reveals the text's length only up to the next multiple of `PADDED` bytes.
    """
    name, plain = category.upper(), text.encode()
    message = "\x1f".join((name, place, text)).encode()
    nonce = hmac.digest(keys.nonces, message, "sha256")[:NONCE]
    padded = plain + bytes(-len(plain) % PADDED)
    sealed = _cipher(keys).encrypt(nonce, padded, name.encode())
    return f"[{name}:{base64.urlsafe_b64encode(nonce + sealed).decode()}]"


def decrypt(text: str, keys: Keys) -> str:
    """Restore a text's encrypted identities, including those of earlier versions, which did not pad. Raises BadInput if
    the key is not the one that encrypted, or a token was changed."""
    from cryptography.exceptions import InvalidTag

    def open_token(match: re.Match[str]) -> str:
        name = match.group(1)
        try:
            sealed = base64.urlsafe_b64decode(match.group(2))
            plain: bytes = _cipher(keys).decrypt(sealed[:NONCE], sealed[NONCE:], name.encode())
        except (InvalidTag, binascii.Error, ValueError):
            raise BadInput(
                "the key does not open these identities: it is another key's text, or the text was changed."
            ) from None
        return plain.rstrip(b"\0").decode()

    return _TOKEN.sub(open_token, text)


@cache
def _cipher(keys: Keys) -> Any:
    require_extra("Encryption", "notes", "cryptography")
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(keys.encryption)
