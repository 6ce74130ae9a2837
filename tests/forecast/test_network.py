"""The laws of the model, on the pipeline of the tf.data paper and others worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.forecast.network import Network, Station, bounds, consumer_ms, stages, step


def station(id: str, service_ms: float, *inputs: str, **overrides: Any) -> Station:
    values: dict[str, Any] = {"kind": "map", "elements": 10.0, "cpu_ms": 0.0}
    return Station(id=id, inputs=inputs, service_ms=service_ms, **{**values, **overrides})


def network(*chain: Station, **overrides: Any) -> Network:
    values: dict[str, Any] = {
        "stations": {one.id: one for one in chain},
        "root": chain[-1].id if chain else None,
        "step_ms": 10.0,
        "consumer_ms": 0.0,
        "consumer_alone_ms": 0.0,
        "consumer_cpu_ms": 0.0,
        "pipeline_cpu_ms": 0.0,
        "fixed_ms": 0.0,
        "per_call_ms": 0.0,
        "cpus": 16.0,
        "capacity": 16.0,
        "threads": 16.0,
        "consumer_share": 0.0,
        "overlaps": False,
    }
    return Network(**{**values, **overrides})


def longest(of: Network) -> float:
    return max(bound.ms for bound in bounds(of))


def test_the_sequential_pipeline_of_the_tf_data_paper_takes_71_ms_a_batch() -> None:
    read, mapped = station("read", 10 * 5.0), station("map", 10 * 2.0, "read")
    assert longest(network(read, mapped, station("batch", 1.0, "map"))) == 71.0


def test_with_two_readers_ten_calls_and_a_prefetch_it_takes_25_ms() -> None:
    read = station("read", 10 * 5.0, calls=2, asynchronous=True)
    mapped = station("map", 10 * 2.0, "read", calls=10, asynchronous=True)
    batch = station("batch", 1.0, "map")
    paper = network(read, mapped, batch, station("prefetch", 0.0, "batch", asynchronous=True))
    assert [stage.ms for stage in stages(paper) if stage.ms] == [1.0, 2.0, 25.0]
    assert longest(paper) == 25.0


def test_calls_are_held_back_by_the_threads_of_the_pool() -> None:
    waiting = station("map", 16.0, calls=16, asynchronous=True)
    assert longest(network(waiting, threads=2.0)) == 8.0
    unbounded = station("map", 16.0, calls=16, asynchronous=True, unbounded=True)
    assert longest(network(unbounded, threads=2.0)) == 1.0


def test_what_runs_in_a_function_runs_on_the_outer_calls() -> None:
    outer = station("interleave", 2.0, calls=4, asynchronous=True)
    reader = station("reader", 6.0, inside="interleave")
    both = network(reader, outer)
    assert longest(both) == pytest.approx((2.0 + 6.0) / 4)


def test_branches_that_meet_are_served_by_one_thread() -> None:
    left, right = station("left", 2.0), station("right", 3.0)
    assert longest(network(left, right, station("zip", 1.0, "left", "right"))) == 6.0


def test_cpu_time_of_pipeline_and_consumer_fills_the_cpus() -> None:
    spread = station("map", 8.0, calls=8, asynchronous=True, cpu_ms=8.0)
    busy = network(spread, capacity=2.0, consumer_cpu_ms=4.0, threads=8.0)
    assert longest(busy) == 6.0
    assert max(bounds(busy), key=lambda bound: bound.ms).limit == "cpu"


def test_python_under_the_lock_has_one_cpu_however_many_there_are() -> None:
    held = station("map", 8.0, calls=8, asynchronous=True, cpu_ms=8.0, holds_lock=True)
    assert longest(network(held)) == 8.0


def test_the_consumer_speeds_up_as_the_pipelines_cpu_time_goes() -> None:
    half = network(
        station("map", 4.0, cpu_ms=4.0),
        pipeline_cpu_ms=8.0,
        consumer_ms=5.0,
        consumer_alone_ms=3.0,
    )
    assert consumer_ms(half) == 4.0


def test_steps_that_either_side_sets_gain_from_both_in_their_shares() -> None:
    before = network(station("map", 8.0, asynchronous=True), consumer_ms=8.0, consumer_alone_ms=8.0)
    mixed = network(
        station("map", 8.0, asynchronous=True),
        consumer_ms=8.0,
        consumer_alone_ms=8.0,
        consumer_share=0.5,
    )
    faster = network(station("map", 8.0, asynchronous=True), consumer_ms=6.0, consumer_alone_ms=6.0)
    assert step(faster, before).ms == 10.0
    assert step(faster, mixed).ms == pytest.approx(10.0 - 0.5 * 2.0)


def test_steps_that_wait_scale_with_a_pipeline_that_all_but_goes_away() -> None:
    """Shifted by what the mean loses, the waiting steps would seem to keep most of their time."""
    slow = network(
        station("map", 7.0, asynchronous=True), consumer_ms=3.0, consumer_share=0.4, step_ms=10.0
    )
    fast = network(station("map", 0.7, asynchronous=True), consumer_ms=3.0)
    # Four of ten steps are the consumer's 3 ms; the others' 8.8 ms of ten shrink to a tenth.
    assert step(fast, slow).ms == pytest.approx(3.0)
    unconsumed = network(station("map", 0.7, asynchronous=True), consumer_ms=1.0)
    assert step(unconsumed, slow).ms == pytest.approx(0.4 * 1.0 + 8.8 * 0.1)


def test_a_chain_longer_than_pythons_stack() -> None:
    chain = [station("s0", 1.0)]
    chain += [station(f"s{n}", 1.0, f"s{n - 1}", asynchronous=n == 1200) for n in range(1, 1500)]
    assert [len(stage.stations) for stage in stages(network(*chain))] == [299, 1, 1200]
