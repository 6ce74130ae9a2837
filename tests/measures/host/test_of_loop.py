from __future__ import annotations

from pipediag.measures.host import host_of_loop, stacks_of
from pipediag.measures.recorded_windows import Missing
from pipediag.session.host import Host
from pipediag.session.host_track import HostTrack
from pipediag.session.recorded_windows import RecordedStacks
from tests.measures.tracks import make_track
from tests.recordings import make_block, make_recorded_loop, make_recording, make_window


def test_stacks_belong_to_the_loop_they_were_taken_beside() -> None:
    loops = [make_recorded_loop(), make_recorded_loop(id="loop2")]
    first, second = (RecordedStacks(loop.id, 10, 1) for loop in loops)
    recording = make_recording(loops=loops, stacks=[second, first])
    assert stacks_of(recording, loops[0]) == [first]
    assert stacks_of(recording, loops[1]) == [second]


def test_a_host_that_was_not_sampled_gives_the_reason() -> None:
    recording = make_recording()
    track = HostTrack(pid=1, missing="psutil saw no such process.")
    found = host_of_loop(track, recording, recording.loops[0], 2.0)
    assert found == Missing("psutil saw no such process.")


def test_without_a_baseline_there_is_no_host() -> None:
    recording = make_recording(windows=[])
    found = host_of_loop(HostTrack(pid=1), recording, recording.loops[0], 2.0)
    assert isinstance(found, Missing)
    assert "no baseline" in found.reason


def test_a_baseline_too_short_for_the_sampler_is_taken_with_the_stacks_after_it() -> None:
    """It touches one reading's span; those up to the end of the stacks are seven."""
    baseline = make_window("baseline", make_block(4, 20.0, start_ms=510.0))
    stacks = make_window("stacks", make_block(30, 20.0, start_ms=600.0))
    short = make_recording(windows=[baseline])
    longer = make_recording(windows=[baseline, stacks])
    other = make_window("stacks", make_block(30, 20.0, start_ms=600.0), loop_id="loop2")

    found = host_of_loop(make_track(), longer, longer.loops[0], 2.0)
    assert isinstance(found, Host)
    assert found.samples == 7
    assert found.cores_busy == 1.2
    for recording in (short, make_recording(windows=[baseline, other])):
        assert isinstance(host_of_loop(make_track(), recording, recording.loops[0], 2.0), Missing)


def test_a_baseline_long_enough_is_taken_alone() -> None:
    baseline = make_window("baseline", make_block(20, 20.0, start_ms=500.0))
    stacks = make_window("stacks", make_block(30, 20.0, start_ms=900.0))
    recording = make_recording(windows=[baseline, stacks])

    found = host_of_loop(make_track(), recording, recording.loops[0], 2.0)

    assert isinstance(found, Host)
    assert found.samples == 4


def test_stacks_and_threads_of_the_loop_alone_are_told() -> None:
    baseline = make_window(
        "baseline",
        make_block(20, 20.0, start_ms=500.0),
        python_thread_cpu_ns={"Thread-1#105": 40_000_000},
    )
    beside = make_window(
        "baseline",
        make_block(20, 20.0, start_ms=500.0),
        loop_id="loop2",
        python_thread_cpu_ns={"Thread-2#106": 900_000_000},
    )
    stacks = [RecordedStacks("loop1", 10, 1), RecordedStacks("loop2", 10, 1)]
    recording = make_recording(windows=[baseline, beside], stacks=stacks)

    found = host_of_loop(make_track(), recording, recording.loops[0], 2.0)

    assert isinstance(found, Host)
    assert found.python_source_cpu_ms_per_step == 2.0
