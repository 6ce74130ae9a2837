from __future__ import annotations

from pipediag.measures.steps import measure_perturbation
from tests.recordings import make_block, make_recording, make_window


def test_the_ratio_is_of_mean_steps() -> None:
    windows = [make_window("baseline"), make_window("profile", make_block(10, 18.0, None))]
    recording = make_recording(windows=windows)
    found = measure_perturbation(recording, recording.loops[0])
    assert found is not None
    assert (found.baseline_step_ms, found.profiled_step_ms, found.ratio) == (10.0, 18.0, 1.8)


def test_a_profile_that_was_refused_says_why() -> None:
    refused = make_window("profile", reason="the script's own profiler was running")
    refused.blocks = []
    recording = make_recording(windows=[make_window("baseline"), refused])
    found = measure_perturbation(recording, recording.loops[0])
    assert found is not None
    assert found.ratio is None
    assert found.missing == "No step was profiled: the script's own profiler was running."


def test_without_a_baseline_there_is_none() -> None:
    recording = make_recording(windows=[])
    assert measure_perturbation(recording, recording.loops[0]) is None
