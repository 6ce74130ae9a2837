from __future__ import annotations

from pipediag.reporters.words.device_summary import compute_percent, gap_counts, summary
from pipediag.session.devices import DeviceActivity
from tests.reporters import devices


def said(device: DeviceActivity) -> str:
    found = summary(device, device.name)
    return (found.lead + found.rest).replace("\N{NO-BREAK SPACE}", " ")


def test_copies_and_collectives_without_kernels_are_no_computing() -> None:
    device = devices.make_gpu(exposed_collective_ms=3.0, causes_ms={"python": 59.0})

    assert said(device) == (
        "GPU:0 computes 35.0 % of 100 ms: 5.0 % only copying, 3.0 % only collectives, "
        "60.0 % idle, mostly Python"
    )


def test_busy_time_where_kernels_are_not_known() -> None:
    device = devices.make_gpu(compute_ms=None, exposed_copy_ms=None)

    assert said(device).startswith("GPU:0 is busy 40.0 % of 100 ms: 60.0 % idle")
    assert compute_percent(device) == 40.0


def test_short_gaps_are_counted_apart() -> None:
    def counts(**overrides: object) -> str:
        return gap_counts(devices.make_gpu(**overrides)).replace("\N{NO-BREAK SPACE}", " ")

    assert counts() == " in 3 gaps of 5 µs or more, the longest 30.0 ms, and 400 shorter ones"
    assert counts(gap_count=0) == " in 400 gaps under 5 µs"
    assert counts(gap_count=1, gap_histogram=[]) == " in 1 gap of 5 µs or more"
    assert counts(gap_count=0, gap_histogram=[]) == ""
