# SPDX-License-Identifier: Apache-2.0
"""Random numbers that are functions of counters, as kernels/README.md describes Syntra's random masks."""

from __future__ import annotations

Key = tuple[int, int]


def philox(counter: int, stream: int, key: Key) -> tuple[int, int, int, int]:
    """Philox4x32-10 (Salmon et al. 2011)."""
    word = 0xFFFFFFFF
    a, b, c, d = counter & word, counter >> 32, stream & word, stream >> 32
    low, high = key
    for _ in range(10):
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (second >> 32) ^ b ^ low, second & word, (first >> 32) ^ d ^ high, first & word
        low, high = (low + 0x9E3779B9) & word, (high + 0xBB67AE85) & word
    return a, b, c, d


def word_of(key: Key, element: int, site: int) -> int:
    """The word that an element of a row draws."""
    return philox(element // 4, site, key)[element % 4]


def keeps(key: Key, element: int, site: int, rate: float) -> bool:
    """Whether dropout keeps it; the rate is exact in float."""
    return (word_of(key, element, site) >> 8) / 2**24 >= rate


def open_uniform(key: Key, element: int, site: int) -> float:
    """In (0, 1)."""
    return ((word_of(key, element, site) >> 9) + 0.5) / 2**23
