"""In which order the runs of two versions were made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipediag.session.model import Session


@dataclass(frozen=True)
class Order:
    """Of each run of base and of head, how many were made before it."""

    base: tuple[int, ...]
    head: tuple[int, ...]

    @property
    def by_turns(self) -> bool:
        """Whether the first of both were made first, then the second of both, and so on.

        The last round may lack a run.
        """
        rounds = zip(self.base, self.head, strict=False)
        return abs(len(self.base) - len(self.head)) <= 1 and all(
            one // 2 == other // 2 == number for number, (one, other) in enumerate(rounds)
        )


def order_of(base: Sequence[Session], head: Sequence[Session]) -> Order | None:
    """By the times that the sessions have; None where two of them have the same."""
    times = [session.created_at for session in (*base, *head)]
    if len(set(times)) < len(times):
        return None
    places = {time: at for at, time in enumerate(sorted(times))}
    return Order(
        tuple(places[session.created_at] for session in base),
        tuple(places[session.created_at] for session in head),
    )
