from __future__ import annotations

from pipediag.measures.devices import MOST_GAPS, describe_devices
from pipediag.trace.devices import DeviceTrace, Gap
from tests.factories import make_pipeline
from tests.measures.traces import make_trace

KEY = ("Root::Map", ("m",))


def device(gaps: tuple[Gap, ...]) -> DeviceTrace:
    return DeviceTrace(
        "GPU:0", "gpu", 100_000_000, 40_000_000, 60_000_000, 9_000_000, 1_000_000, gaps
    )


def test_a_gap_names_the_operation_behind_it() -> None:
    gap = Gap(7_000_000, 9_000_000, "input", KEY)
    trace = make_trace(window_ns=(5_000_000, 105_000_000), devices=(device((gap,)),))
    (found,) = describe_devices(trace, make_pipeline(), {KEY: "map_0"})
    assert (found.busy_percent, found.idle_percent, found.noise_ms) == (40.0, 60.0, 1.0)
    (described,) = found.gaps
    assert (described.start_ms, described.duration_ms) == (2.0, 9.0)
    assert (described.op_id, described.line) == ("map_0", 12)


def test_a_gap_of_another_cause_names_none() -> None:
    trace = make_trace(devices=(device((Gap(0, 10, "python", None),)),))
    (found,) = describe_devices(trace, None, {})
    assert found.gaps[0].op_id is None


def test_of_very_many_gaps_the_longest_are_kept_in_order_of_time() -> None:
    gaps = tuple(Gap(index, index + 1, "launch", None) for index in range(MOST_GAPS + 5))
    (found,) = describe_devices(make_trace(devices=(device(gaps),)), None, {})
    assert len(found.gaps) == MOST_GAPS
    starts = [gap.start_ms for gap in found.gaps]
    assert starts == sorted(starts)
    assert starts[0] == 5 / 1e6
