from __future__ import annotations

from pathlib import Path

from pipediag.measures.measured_loop import trace_of
from tests.recordings import make_recorded_loop, make_recording, make_window


def test_a_loop_without_a_profile_says_why() -> None:
    window = make_window("profile", reason="the script's own profiler took over")
    window.blocks = []
    recording = make_recording(windows=[window])
    summary, reason = trace_of(recording, recording.loops[0])
    assert summary is None
    assert "own profiler took over" in (reason or "")


def test_a_profile_that_began_behind_the_last_step_says_nothing_of_the_steps() -> None:
    window = make_window("profile", trace_directory="trace", reason="the script finished")
    window.blocks = []
    recording = make_recording(windows=[window])
    assert trace_of(recording, recording.loops[0]) == (
        None,
        "No step was profiled: the script finished.",
    )


def test_a_damaged_profile_is_a_reason_and_no_error(tmp_path: Path) -> None:
    run = tmp_path / "plugins" / "profile" / "one"
    run.mkdir(parents=True)
    (run / "host.xplane.pb").write_bytes(b"\xff\xff\xff")
    recording = make_recording(windows=[make_window("profile", trace_directory=str(tmp_path))])
    summary, reason = trace_of(recording, recording.loops[0])
    assert summary is None
    assert "host.xplane.pb" in (reason or "")


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
