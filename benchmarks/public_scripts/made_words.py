"""Text of the form that people write, made on the spot."""

from __future__ import annotations

import numpy as np

WORDS = 8000
SYLLABLES = ("ba", "den", "fo", "gri", "hal", "ki", "lum", "ne", "or", "pra", "sti", "tu", "we")


def vocabulary(count: int = WORDS) -> list[str]:
    """Words by falling frequency."""
    rng = np.random.default_rng(7)
    made: dict[str, None] = {}
    while len(made) < count:
        made["".join(rng.choice(SYLLABLES, rng.integers(1, 4)))] = None
        if len(made) < count and len(made) > len(SYLLABLES) ** 2:
            made[f"{rng.choice(SYLLABLES)}{len(made)}"] = None
    return list(made)


class Texts:
    """Text whose words follow Zipf's law."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.words = np.array(vocabulary())

    def line(self, shortest: int, longest: int) -> str:
        count = self.rng.integers(shortest, longest)
        return " ".join(self.words[self.rng.zipf(1.25, count) % len(self.words)])
