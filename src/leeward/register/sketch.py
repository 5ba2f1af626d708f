"""The patients of a release as the exact set of their keyed hashes: 64 bits each, sorted.

Only an exact set can say that two releases have no patient in common, or that they differ by fewer than k. Without the
key a hash says nothing: who tries all identifiers needs it.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

import numpy as np
import polars as pl

from leeward.arrays import AnyArray
from leeward.compiled import njit

NAMESPACE: Final = "patient"
RULE: Final = "1: outer blanks removed, Unicode NFC, whole numbers without a point; zeros stay"
"""How identifiers are written before they are hashed: two spellings are two patients."""


def normalize(identifiers: pl.Series) -> pl.Series:
    """The distinct identifiers as texts, by `RULE`."""
    if identifiers.dtype.is_float() and (identifiers == identifiers.floor()).all():
        identifiers = identifiers.cast(pl.Int64)
    texts = identifiers.drop_nulls().cast(pl.String).str.strip_chars().str.normalize("NFC")
    return texts.unique()


def sketch_of(identifiers: pl.Series, key: bytes) -> AnyArray:
    """uint64[patients], ascending: the first 8 bytes of HMAC-SHA-256 of each distinct identifier in the namespace."""
    hashes = bytearray()
    for each in normalize(identifiers):
        hashes += hmac.digest(key, f"{NAMESPACE}\0{each}".encode(), "sha256")[:8]
    return np.unique(np.frombuffer(bytes(hashes), "<u8"))


def epoch_of(key: bytes) -> str:
    """The name of the key and of `RULE`, which says nothing about the key: sets of another epoch cannot be compared."""
    return hmac.digest(key, RULE.encode(), "sha256")[:8].hex()


def to_bytes(sketch: AnyArray) -> bytes:
    return sketch.astype("<u8", copy=False).tobytes()


def from_bytes(content: bytes) -> AnyArray:
    return np.frombuffer(content, "<u8")


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@njit
def count_common(one: AnyArray, other: AnyArray) -> int:
    """How many hashes two sketches have in common."""
    common = i = j = 0
    while i < len(one) and j < len(other):
        a, b = one[i], other[j]
        common += a == b
        i += a <= b
        j += b <= a
    return common
