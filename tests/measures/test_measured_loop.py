"""All that is measured of the diagnosed loop."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pipediag.measures import measured_loop as measures
from pipediag.measures.measured_loop import (
    BESIDE_TENSORFLOW,
    measure_loop,
    measure_text_work,
    trace_of,
)
from pipediag.measures.steps import Missing
from pipediag.session.loops import Steps
from pipediag.session.model import Host
from pipediag.session.recording import Device, RecordedPythonCalls, Recording
from pipediag.session.timeline import Timeline
from pipediag.trace.classes import STEP_CLASSES
from pipediag.trace.operations import ComputeTimes
from tests.factories import make_host
from tests.measures.traces import make_split, make_trace
from tests.recordings import make_block, make_recorded_loop, make_recording, make_window
from tests.records import MS, make_steps

NOT_SAMPLED = Missing("The host was not sampled.")


def measured(
    recording: Recording, host: Host | Missing = NOT_SAMPLED
) -> tuple[SimpleNamespace, list[str]]:
    sections, notes = measure_loop(Timeline(), recording, recording.loops[0], host)
    return SimpleNamespace(**sections), notes


def test_too_few_steps_have_no_breakdown() -> None:
    recording = make_recording(windows=[make_window("baseline", make_block(4))])
    found, _ = measured(recording)
    assert isinstance(found.steps, Steps)
    assert (found.breakdown, found.ceiling) == (None, None)
    assert "Fewer than 5 steps" in found.breakdown_missing
    assert found.ceiling_missing == found.breakdown_missing


def test_python_that_computes_in_the_steps_is_measured_by_its_calls() -> None:
    recording = make_recording()
    (function,) = [one.function for one in recording.operations if one.function is not None]
    function.python_tokens = ["parse"]
    for window in recording.windows:
        if window.kind == "baseline":
            window.python_calls = [RecordedPythonCalls("parse", 40, 160 * MS, 120 * MS)]
    host = make_host(threads={})

    found, _ = measured(recording, host)

    assert found.input_wait.contention == "python"


@pytest.mark.parametrize(("kind", "contention"), [("CPU", "cpu"), ("GPU", None)])
def test_a_pipeline_of_tensorflow_fights_for_cpus_with_a_model_on_them(
    kind: str, contention: str | None
) -> None:
    recording = make_recording()
    recording.environment.devices.append(Device("/device:0", kind))
    host = make_host(threads={"tf_data": 90.0})

    wait = measured(recording, host)[0].input_wait

    assert wait.contention == contention


@pytest.mark.parametrize(("compute", "told"), [(0.0, False), (4.0, True)])
def test_what_pytorch_computes_is_python_to_tensorflows_profiler(
    monkeypatch: pytest.MonkeyPatch, compute: float, *, told: bool
) -> None:
    """But on a GPU, whose kernels the profile has whoever launches them."""
    split = make_split(input_wait=5.0, device_compute=compute, python=5.0 - compute)
    monkeypatch.setattr(measures, "trace_of", lambda *_, **__: (make_trace(steps=split), None))
    recording = make_recording()
    recording.environment.keras_backend = "torch"
    found, notes = measured(recording)
    assert isinstance(found.breakdown, dict)
    assert (found.breakdown["unattributed"].percent == 0.0) == told
    assert (found.breakdown["python"].percent > 0.0) == told
    assert notes == ([] if told else [BESIDE_TENSORFLOW])


@pytest.mark.parametrize(
    ("work", "known"),
    [
        ({"logits/MatMul:MatMul": 60.0, "in_top_k/InTopKV2:InTopKV2": 40.0}, (True, True)),
        ({"logits/MatMul:MatMul": 100.0}, (True, False)),
        ({"dense/MatMul:MatMul": 100.0}, (False, False)),
    ],
)
def test_logits_and_metrics_that_the_profile_does_not_name_have_no_time(
    monkeypatch: pytest.MonkeyPatch, work: dict[str, float], known: tuple[bool, bool]
) -> None:
    split = make_split(input_wait=1.0, device_compute=8.0, dispatch=1.0)
    trace = make_trace(steps=split, compute=ComputeTimes(100, work, 0.0))
    monkeypatch.setattr(measures, "trace_of", lambda *_, **__: (trace, None))
    recording = make_recording()
    recording.loops[0].vocabulary_operations = ["logits/MatMul"]
    recording.loops[0].metric_operations = ["in_top_k/InTopKV2"]
    found, _ = measured(recording)
    assert (found.vocabulary_ms is not None, found.metrics_ms is not None) == known


def test_a_profile_that_began_behind_the_last_step_says_nothing_of_the_steps() -> None:
    window = make_window("profile", trace_directory="trace", reason="the script finished")
    window.blocks = []
    recording = make_recording(windows=[window])
    assert trace_of(recording, recording.loops[0]) == (
        None,
        "No step was profiled: the script finished.",
    )


def test_of_several_profiles_each_loop_gets_its_own(tmp_path: Path) -> None:
    loops = [make_recorded_loop(), make_recorded_loop(id="loop2")]
    for loop in loops:
        run = tmp_path / loop.id / "plugins" / "profile" / "run"
        run.mkdir(parents=True)
        (run / "host.xplane.pb").write_bytes(b"")
    windows = [
        make_window("profile", trace_directory=str(tmp_path / loop.id), loop_id=loop.id)
        for loop in loops
    ]
    recording = make_recording(loops=loops, windows=windows)
    reasons = [trace_of(recording, loop)[1] or "" for loop in loops]
    assert "loop1/plugins/profile/run/host.xplane.pb" in reasons[0]
    assert "loop2/plugins/profile/run/host.xplane.pb" in reasons[1]


def test_the_share_is_the_profiles_and_the_milliseconds_are_the_clocks() -> None:
    steps = SimpleNamespace(durations_ns=np.array([1000, 1000]))
    trace: Any = SimpleNamespace(steps=steps, text_ns=500)
    found = measure_text_work(make_steps(mean_ms=10.0), trace)
    assert (found.percent, found.ms) == (pytest.approx(25.0), pytest.approx(2.5))


@pytest.mark.parametrize(("longest_ms", "counts"), [(10.0, False), (950.0, True)])
def test_a_trace_that_only_the_profile_has_is_no_part_of_every_step(
    monkeypatch: pytest.MonkeyPatch, longest_ms: float, *, counts: bool
) -> None:
    """For the last batch of an epoch, a function is traced once more, in 890 ms."""
    split = make_split(python=10.0)
    rows = split.ns.copy()
    rows[-1, STEP_CLASSES.index("compile")] = 890_000_000
    windows = split.windows.copy()
    windows[-1, 1] += 890_000_000
    long = replace(split, ns=rows, windows=windows)
    monkeypatch.setattr(measures, "trace_of", lambda *_, **__: (make_trace(steps=long), None))
    block = make_block(gap_ms=1.0)
    block.durations_ns[-1] = round(longest_ms * MS)
    found, _ = measured(make_recording(windows=[make_window("baseline", block)]))
    assert (found.breakdown["compile"].percent > 0.0) == counts
