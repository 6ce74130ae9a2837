"""A profile's summary, and those of several hosts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipediag.trace import ON_TPU
from pipediag.trace.classes import STEP_CLASSES
from pipediag.trace.summary import TraceSummary, read_hosts, summarise, summarise_events
from tests.trace.builder import TraceBuilder, add_events, main_causes, marked_steps

RECORDED = Path(__file__).parent / "data" / "fit.xplane.pb.gz"


@pytest.fixture(scope="module")
def summary() -> TraceSummary:
    """Ten steps of a Keras fit whose map `decode` sleeps."""
    return summarise(RECORDED)


def test_the_steps_of_a_real_fit(summary: TraceSummary) -> None:
    assert summary.steps.basis == "markers"
    assert summary.steps.numbers == tuple(range(20, 30))
    assert (summary.steps.ns.sum(axis=1) == summary.steps.durations_ns).all()
    assert (summary.steps.ns >= 0).all()
    assert summary.steps_missing is None


def test_a_real_fit_has_every_class_that_a_cpu_can_have(summary: TraceSummary) -> None:
    totals = dict(zip(STEP_CLASSES, summary.steps.ns.sum(axis=0), strict=True))
    present = {name for name, total in totals.items() if total}
    assert present == {"device_compute", "input_wait", "dispatch", "python"}
    assert max(totals, key=lambda name: totals[name]) == "input_wait"


def test_the_pipeline_of_a_real_fit(summary: TraceSummary) -> None:
    found = {iterator.path: iterator for iterator in summary.iterators}
    assert {path: iterator.names for path, iterator in found.items()} == {
        "Root": ("label", "batch"),
        "Root::MapAndBatch": ("label", "batch"),
        "Root::MapAndBatch::Map": ("decode",),
        "Root::MapAndBatch::Map::TensorSlice": ("rows",),
    }
    assert found["Root::MapAndBatch"].autotune is True
    slowest = max(summary.iterators, key=lambda iterator: iterator.self_ns)
    assert slowest.names == ("decode",)
    # The sleep alone.
    assert slowest.self_ns >= slowest.calls * 1_000_000


def test_on_a_tpu_the_host_stands_for_no_device(tmp_path: Path) -> None:
    builder = TraceBuilder()
    builder.host().line("tf_Compute/1").event("scope/op:MatMul", 0, 10)
    builder.plane("/device:TPU:0").line("XLA Ops", 1).event("fusion.1", 0, 100)
    found = summarise_events(builder.events(tmp_path))
    assert found.devices == ()
    assert found.warnings == (ON_TPU,)
    without = TraceBuilder()
    without.host().line("tf_Compute/1").event("scope/op:MatMul", 0, 10)
    assert summarise_events(without.events(tmp_path)).warnings == ()


def test_the_input_gaps_of_a_real_fit_are_the_slow_maps(summary: TraceSummary) -> None:
    [device] = summary.devices
    assert device.name == "CPU"
    found = device.activity
    assert found.busy_ms + found.idle_ms == pytest.approx(found.span_ms)
    gaps_ms = int(device.gaps.lengths_ns.sum()) / 1e6
    assert gaps_ms + found.noise_ms == pytest.approx(found.idle_ms)
    longest = np.argsort(device.gaps.lengths_ns)[-10:].tolist()
    assert {main_causes(device)[gap] for gap in longest} == {"input"}
    assert {device.gaps.iterators[device.gaps.iterator_ids[gap]] for gap in longest} == {
        ("Root::MapAndBatch::Map", ("decode",))
    }


def test_what_the_host_hands_to_replicas_is_not_counted_beside_what_they_ask_for(
    tmp_path: Path,
) -> None:
    """Each of two replicas draws once; the host's root, which both read from, hands on twice."""
    builder = TraceBuilder()
    host = builder.host()
    for replica, start in enumerate((0, 500)):
        consumer = host.line(f"replica/{replica}")
        consumer.event("IteratorGetNextOp::DoCompute", start, start + 90, id=10 + replica)
        consumer.event("Iterator::Root", start + 1, start + 80, id=replica, name="device_prefetch")
        feeding = host.line(f"host/{replica}")
        feeding.event("Iterator::Root", start + 10, start + 60, id=5, name="batch")
    assert summarise(builder.save(tmp_path)).get_next_calls == 2


def profile(directory: Path, host: str) -> Path:
    builder = TraceBuilder()
    add_events(builder.host().line("python"), marked_steps(0, 100, 200))
    return builder.save(directory, f"{host}.xplane.pb")


def test_files_of_one_name_bear_their_directories(tmp_path: Path) -> None:
    paths = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        paths.append(profile(tmp_path / name, "vm"))
    assert [host.host for host in read_hosts(paths)[0]] == ["one/vm", "two/vm"]


def test_a_bad_file_costs_its_own_summary_alone(tmp_path: Path) -> None:
    good = profile(tmp_path, "good")
    bad = tmp_path / "bad.xplane.pb"
    bad.write_bytes(good.read_bytes()[:-3])
    missing = tmp_path / "missing.pt.trace.json.gz"
    [host], unread = read_hosts([bad, good, missing])
    assert host.host == "good"
    assert [file.path for file in unread] == [str(bad), str(missing)]
    assert "cut short" in unread[0].reason
    assert "No such file" in unread[1].reason
