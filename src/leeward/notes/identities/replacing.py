"""Remove, replace by surrogates, or encrypt the identities in a text.

This covers all explicit identifiers and the quasi-identifiers that HIPAA's Safe Harbor would remove from a text
(dates, ZIP codes, places). Ages up to 89, sex and race stay; on demand three digits of ZIP codes, too.
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
from leeward.texts import list_words

Mode = Literal["removed", "surrogates", "encrypted"]
MODES: tuple[str, ...] = get_args(Mode)

NONCE = 12
PADDED = 32
"""Texts are padded with NUL, which no note holds, to a multiple of this many bytes before encryption."""
ZIP = re.compile(r"[0-9]{5}(?:-?[0-9]{4})?")

HHS = frozenset(list_words("036 059 063 102 203 556 692 790 821 823 830 831 878 879 884 890 893"))
"""Areas of at most 20,000 people in the census of 2000 by the first three digits of their ZIP codes: Department of
Health and Human Services, guidance on de-identification (2012). The rule asks for the newest census."""


def restricted_areas(zip3: Sequence[str]) -> frozenset[str] | None:
    """Areas to write as 000: `hhs` stands for `HHS`; None: no ZIP code keeps digits. Raises BadInput."""
    if not all(code == "hhs" or re.fullmatch("[0-9]{3}", code) for code in zip3):
        raise BadInput("--zip3: give `hhs`, first three digits of ZIP codes, or both, such as hhs,205,369.")
    return frozenset(zip3) - {"hhs"} | (HHS if "hhs" in zip3 else frozenset()) if zip3 else None


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
    text: str, spans: Sequence[Span], mode: Mode, keys: Keys, patient: str, note: str, year: int = 2001,
    restricted: frozenset[str] | None = None,
) -> tuple[str, list[Replacement]]:  # fmt: skip
    """Return the text without its identities, and the replacements. Spans ascend and do not overlap. Surrogates and
    date shifts are specific to the `patient`. `note` names the run and the note in one text, so that no two notes or
    runs share a token. `year` is that of the visit, for dates without one. Where there are `restricted` areas, 000, the
    first three digits of other ZIP codes stay."""
    pieces: list[str] = []
    done: list[Replacement] = []
    past = length = 0
    for span in spans:
        if not goes(span) or not any(map(str.isalnum, text[span.start : span.end])):
            continue  # the rest of a span partly covered by another may be blank
        kept = text[past : span.start]
        words = text[span.start : span.end]
        new = _replacement(words, span, mode, keys, patient, note, year)
        if span.category == "zip" and restricted is not None and ZIP.fullmatch(words):
            new = ("000" if words[:3] in restricted else words[:3]) + "**"
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
