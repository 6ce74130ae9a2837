"""The devices of a profile."""

from __future__ import annotations

import pytest

from pipediag.facts.devices import (
    accelerators,
    accelerators_or_cpus,
    block_start_ms,
    cause_percent,
    held_up,
    idle_evidence,
    longest_doing,
    worst,
)
from tests.reporters import trial_sessions
from tests.rules.devices import cpu, gap, gpu


def test_a_gpu_that_ran_nothing_is_left_out() -> None:
    silent, busy, host = gpu(span_ms=0.0), gpu(kind="GPU", span_ms=0.5), cpu({})

    assert accelerators([host, silent, busy]) == [busy]
    assert accelerators_or_cpus([host, silent, busy]) == [busy]
    assert accelerators_or_cpus([silent, host]) == [host]
    assert accelerators_or_cpus([silent, cpu({}).model_copy(update={"span_ms": 0.0})]) == []


def test_one_device_speaks_for_all() -> None:
    calm, idle = gpu({"input": 10.0}), gpu({"input": 30.0})

    assert worst([calm, idle], lambda device: cause_percent(device, "input")) == idle
    assert worst([], lambda device: device.idle_percent) is None


def test_a_gap_of_several_causes_counts_for_each_with_its_part() -> None:
    both = gap("input", 10.0, causes_ms={"input": 6.0, "python": 4.0})
    device = gpu(gaps=[both, gap("sync", 3.0)])

    assert held_up(device, "python") == [(both, 4.0)]
    assert held_up(device, "copy") == []


def test_a_gap_of_which_only_the_largest_cause_is_known_counts_for_that() -> None:
    plain = gap("input", 10.0, causes_ms={})
    device = gpu(gaps=[plain])

    assert held_up(device, "input") == [(plain, 10.0)]
    assert held_up(device, "python") == []


def test_what_was_done_longest_is_summed_over_the_gaps() -> None:
    device = gpu(
        gaps=[
            gap("python", 5.0, doing="$train.py:30 log"),
            gap("python", 3.0, doing="$train.py:8 crop"),
            gap("python", 4.0, doing="$train.py:8 crop"),
            gap("python", 50.0, doing=None),
            gap("sync", 60.0, doing="numpy"),
        ]
    )

    assert longest_doing(device, "python") == ("train.py:8 crop", 7.0)
    assert longest_doing(device, "input") is None


@pytest.mark.parametrize(("recorded", "longest"), [(True, 9.0), (False, None)])
def test_findings_on_idle_time_rest_on_the_whole_and_on_the_longest_gap(
    recorded: bool, longest: float | None
) -> None:
    gaps = [gap("sync", 4.0), gap("sync", 9.0)] if recorded else []
    device = gpu({"sync": 20.0}, gaps=gaps, span_ms=200.0)

    assert idle_evidence(device, "sync") == {
        "device": "GPU:0",
        "sync_idle_percent_of_span": 10.0,
        "sync_idle_ms": 20.0,
        "longest_sync_gap_ms": longest,
        "busy_percent": 80.0,
    }
    assert idle_evidence(device, "copy")["copy_idle_ms"] == 0.0


@pytest.mark.parametrize(
    ("start_ms", "since_began_ms", "expected"),
    [(6000.0, 500.0, 6500.0), (None, 500.0, None), (6000.0, None, None)],
)
def test_a_block_stands_on_the_clock_of_the_windows(
    start_ms: float | None, since_began_ms: float | None, expected: float | None
) -> None:
    run = trial_sessions.make_run(start_ms=start_ms)
    block = run.blocks[0].model_copy(update={"since_began_ms": since_began_ms})

    assert block_start_ms(run, block) == expected
