from __future__ import annotations

import pytest

from pipediag.sensors import cpu_capacity as module
from pipediag.sensors.cpu_capacity import cpu_capacity


def counting(monkeypatch: pytest.MonkeyPatch, alone: list[int], together: list[int]) -> None:
    rounds = {1: iter(alone), 2: iter(together)}
    monkeypatch.setattr(module, "_chunks", lambda threads: next(rounds[threads]))
    cpu_capacity.cache_clear()
    monkeypatch.setattr(module, "ROUNDS", len(alone))


def test_the_middle_one_of_the_rounds_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    counting(monkeypatch, alone=[100, 100, 50], together=[150, 120, 100])
    assert cpu_capacity(2) == 1.5


@pytest.mark.parametrize(("together", "expected"), [(260, 2.0), (80, 1.0)])
def test_it_lies_between_one_and_the_threads(
    monkeypatch: pytest.MonkeyPatch, together: int, expected: float
) -> None:
    counting(monkeypatch, alone=[100], together=[together])
    assert cpu_capacity(2) == expected


def test_one_cpu_needs_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    counting(monkeypatch, alone=[], together=[])
    assert cpu_capacity(1) == 1.0


def test_threads_that_really_run_get_something_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROUND_S", 0.005)
    cpu_capacity.cache_clear()
    assert 1.0 <= cpu_capacity(2) <= 2.0
    cpu_capacity.cache_clear()
