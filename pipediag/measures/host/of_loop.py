"""The host while the diagnosed loop was measured."""

from __future__ import annotations

from pipediag.measures.host.totals import host_missing, measure_host
from pipediag.measures.recorded_windows import WindowNs, span_ns
from pipediag.session.host import Host
from pipediag.session.host_track import HostTrack
from pipediag.session.recording import RecordedLoop, RecordedStacks, Recording


def host_of_loop(
    track: HostTrack, recording: Recording, loop: RecordedLoop, cores_allowed: float
) -> tuple[Host | None, str | None]:
    """The host in the loop's baseline, or None and why.

    A baseline that is too short for the sampler is taken together with the stacks window after it,
    in which the script runs on, watched by a thread that samples its stacks.
    """
    window = span_ns(recording, loop, "baseline")
    if window is None:
        return None, "There is no baseline window in which the host could be measured."
    missing = host_missing(track, window)
    if missing is not None:
        window = _with_stacks(recording, loop, window)
        missing = host_missing(track, window)
    if missing is not None:
        return None, missing
    own = [recorded for recorded in recording.windows if recorded.loop_id == loop.id]
    stacks = stacks_of(recording, loop)
    return measure_host(track, window, cores_allowed, stacks=stacks, windows=own), None


def stacks_of(recording: Recording, loop: RecordedLoop) -> list[RecordedStacks]:
    """The stack samples taken beside the loop."""
    return [stacks for stacks in recording.stacks if stacks.loop_id == loop.id]


def _with_stacks(recording: Recording, loop: RecordedLoop, window: WindowNs) -> WindowNs:
    after = span_ns(recording, loop, "stacks")
    return window if after is None else (window[0], max(window[1], after[1]))
