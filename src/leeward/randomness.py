"""Random numbers, in one place.

Everything random in a release comes from here, but for privacy noise (OpenDP's own secure sampler). A release for
a recipient draws its key from the operating system; with a seed (tests and studies) the same key gives the same
numbers whatever the thread, partition or engine, because each consumer names its own stream.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Randomness:
    """A source of independent streams. `key`: 128 bits. `seeded`: a person chose it, so shuffles can be inverted; the
    manifest says that, never the key."""

    key: int
    seeded: bool

    @staticmethod
    def of(seed: int | None) -> Randomness:
        """Streams of a seed, or of the operating system's entropy when `seed` is None."""
        if seed is None:
            return Randomness(secrets.randbits(128), False)
        digest = hashlib.blake2b(f"leeward:{seed}".encode(), digest_size=16).digest()
        return Randomness(int.from_bytes(digest, "little"), True)

    def stream(self, *name: str | int) -> np.random.Generator:
        """The generator of the stream `name`: counter-based (Philox), equal on every machine and engine."""
        text = "\x1f".join(f"{type(part).__name__}:{part}" for part in name)
        digest = hashlib.blake2b(text.encode(), digest_size=16, key=self.key.to_bytes(16, "little")).digest()
        return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))

    def number(self, *name: str | int) -> int:
        """A 64-bit number of the stream `name`, to key a kernel's own counter-based generator."""
        return int(self.stream(*name).integers(0, 2**63, dtype=np.int64))
