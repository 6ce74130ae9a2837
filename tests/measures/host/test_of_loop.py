from __future__ import annotations

from pipediag.measures.host.of_loop import host_of_loop, stacks_of
from pipediag.measures.missing import Missing
from pipediag.session.host_track import HostTrack
from pipediag.session.recording import RecordedStacks
from tests.recordings import make_recorded_loop, make_recording


def test_stacks_belong_to_the_loop_they_were_taken_beside() -> None:
    loops = [make_recorded_loop(), make_recorded_loop(id="loop2")]
    first, second = (RecordedStacks(loop.id, 10, 1, 1, 0) for loop in loops)
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
