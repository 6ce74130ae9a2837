from __future__ import annotations

import pytest

from pipediag.measures.loop.measures import NO_METHOD, measure_loop
from tests.factories import make_block, make_recording, make_window


def test_sections_of_an_input_bound_loop() -> None:
    recording = make_recording()
    found = measure_loop(recording, recording.loops[0], None)
    assert found.steps is not None
    assert found.steps.mean_ms == 10.0
    assert found.breakdown is not None
    assert found.breakdown["input_wait"].ms == pytest.approx(7.0)
    assert found.breakdown["unattributed"].percent == 30.0
    assert found.ceiling is not None
    assert found.ceiling.speedup_if_input_free == pytest.approx(10 / 3)
    assert found.pipeline.bottleneck_op_id == "op2"
    assert "No step was profiled" in (found.trace_missing or "")


def test_too_few_steps_have_no_breakdown() -> None:
    recording = make_recording(windows=[make_window("baseline", make_block(4))])
    found = measure_loop(recording, recording.loops[0], None)
    assert found.steps is not None
    assert found.breakdown is None
    assert "Fewer than 5 steps" in (found.breakdown_missing or "")
    assert found.ceiling is None


def test_without_any_method_there_is_no_breakdown() -> None:
    recording = make_recording(windows=[make_window("baseline", make_block(gap_ms=None))])
    found = measure_loop(recording, recording.loops[0], None)
    assert found.breakdown_missing == NO_METHOD
