"""The host while the diagnosed loop was measured."""

from __future__ import annotations

from functools import partial

from pipediag.measures.host.totals import measure_host
from pipediag.measures.missing import Missing
from pipediag.measures.recorded_windows import spans_ns
from pipediag.session.host import Host
from pipediag.session.host_track import HostTrack
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recorded_windows import RecordedStacks
from pipediag.session.recording import Recording


def host_of_loop(
    track: HostTrack, recording: Recording, loop: RecordedLoop, cores_allowed: float
) -> Host | Missing:
    """The host in the loop's baseline.

    A baseline that is too short for the sampler is taken together with the stacks window after it,
    in which the script runs on, watched by a thread that samples its stacks.
    """
    spans = spans_ns(recording, loop, "baseline")
    if not spans:
        return Missing("There is no baseline window in which the host could be measured.")
    own = [recorded for recorded in recording.windows if recorded.loop_id == loop.id]
    measure = partial(measure_host, track, stacks=stacks_of(recording, loop), windows=own)
    found = measure(spans, cores_allowed)
    if isinstance(found, Missing):
        found = measure([*spans, *spans_ns(recording, loop, "stacks")], cores_allowed)
    return found


def stacks_of(recording: Recording, loop: RecordedLoop) -> list[RecordedStacks]:
    """The stack samples taken beside the loop."""
    return [stacks for stacks in recording.stacks if stacks.loop_id == loop.id]
