from __future__ import annotations

import pytest

from pipediag.reporters.words.idle_time import idle_parts, longest_gaps, main_part, shown_iterator
from tests.reporters import devices


def test_the_parts_add_up_to_the_idle_time_longest_first() -> None:
    parts = idle_parts(devices.make_gpu())

    assert [(part.label, part.ms) for part in parts] == [
        ("Waiting for input", 45.0),
        ("Launching operations", 10.0),
        ("Blocking copy", 4.0),
        ("Gaps under 5\N{NO-BREAK SPACE}µs", 1.0),
    ]
    assert sum(part.percent_of_idle for part in parts) == pytest.approx(100.0)
    assert sum(part.percent_of_span for part in parts) == pytest.approx(60.0)


def test_a_device_that_never_idled_has_no_parts() -> None:
    assert idle_parts(devices.make_gpu(idle_ms=0.0, noise_ms=0.0, causes_ms={})) == []


def test_the_main_part_may_be_the_short_gaps() -> None:
    assert main_part(devices.make_gpu()) == "Waiting for input"
    assert main_part(devices.make_gpu(noise_ms=50.0)) == "Gaps under 5\N{NO-BREAK SPACE}µs"
    assert main_part(devices.make_gpu(noise_ms=0.0, causes_ms={})) is None


def test_a_cause_of_a_newer_version_is_shown_as_it_is_called() -> None:
    [part] = idle_parts(devices.make_gpu(noise_ms=0.0, causes_ms={"power_cap": 60.0}))

    assert (part.label, part.meaning) == ("power cap", "")


def test_the_longest_gaps_come_first() -> None:
    gaps = [devices.make_gap(start_ms=float(ms), duration_ms=float(ms)) for ms in (1, 3, 2)]

    longest = longest_gaps(devices.make_gpu(gaps=gaps), 2)

    assert [gap.duration_ms for gap in longest] == [3.0, 2.0]


def test_the_root_of_an_iterator_says_nothing() -> None:
    assert shown_iterator("Root::Prefetch::Map") == "Prefetch::Map"
