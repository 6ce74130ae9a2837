from __future__ import annotations

from pipediag.measures.loop.loops import diagnosed_loop, loop_rows, projected_s
from tests.recordings import make_block, make_recorded_loop, make_recording, make_window
from tests.records import MS


def windows(loop_id: str, step_ms: float) -> list[object]:
    return [make_window("baseline", make_block(10, step_ms), loop_id=loop_id)]


def test_the_cost_is_projected_from_the_planned_steps() -> None:
    recording = make_recording()
    assert projected_s(recording, recording.loops[0]) == 6.25


def test_the_most_expensive_training_loop_is_diagnosed() -> None:
    cheap = make_recorded_loop(planned_steps=100, elapsed_ns=120 * MS)
    dear = make_recorded_loop(id="loop2", planned_steps=50, elapsed_ns=100 * MS)
    recording = make_recording(
        loops=[cheap, dear], windows=[*windows("loop1", 2.0), *windows("loop2", 8.0)]
    )
    assert diagnosed_loop(recording) is dear
    assert [row.diagnosed for row in loop_rows(recording, dear)] == [False, True]


def test_a_measured_loop_goes_before_a_dear_one_that_was_not() -> None:
    measured = make_recorded_loop()
    cut_off = make_recorded_loop(id="loop2", planned_steps=10**6)
    recording = make_recording(
        loops=[measured, cut_off],
        windows=[*windows("loop1", 2.0), make_window("warmup", loop_id="loop2")],
    )
    assert diagnosed_loop(recording) is measured


def test_elapsed_time_counts_where_no_plan_is_known() -> None:
    short = make_recorded_loop(planned_steps=None, elapsed_ns=10 * MS)
    long = make_recorded_loop(id="loop2", planned_steps=None, elapsed_ns=90_000 * MS)
    recording = make_recording(
        loops=[short, long], windows=[*windows("loop1", 9.0), *windows("loop2", 1.0)]
    )
    assert diagnosed_loop(recording) is long


def test_loops_of_other_roles_are_not_diagnosed() -> None:
    recording = make_recording(loops=[make_recorded_loop(role="evaluate")])
    assert diagnosed_loop(recording) is None
