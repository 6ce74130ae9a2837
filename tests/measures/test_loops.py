"""The loops of the script, and which of them is diagnosed."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from pipediag.measures.loops import (
    chosen_loop,
    diagnosed_loop,
    loop_rows,
    median_step_ms,
    projected_s,
)
from pipediag.session.loops import Callback, Evaluation, KerasUse, Loop
from pipediag.session.recorded_keras import RecordedCallback
from pipediag.session.recorded_loops import RecordedEvaluation, RecordedLoop, RecordedNestedCall
from pipediag.session.recording import Recording
from pipediag.session.settings import WantedLoop
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


def test_a_row_holds_all_that_is_known_of_its_loop() -> None:
    keras = make_recorded_loop().keras
    assert keras is not None
    logger = RecordedCallback("Logger", "train.py", 7, ["on_train_batch_end"])
    told = Callback(name="Logger", file="train.py", line=7, batch_hooks=["on_train_batch_end"])
    recorded = make_recorded_loop(
        kind="eager",
        role="validation",
        role_reason="no variable changes",
        file="val.py",
        line=31,
        function="check",
        root_op_id=None,
        iterators=3,
        batch_size=16,
        planned_steps=100,
        updates_variables=False,
        replicas=2,
        step_functions=["val.py:8 step"],
        element_spec="(16, 4) float32",
        untried="It is no training.",
        beside="loop9",
        keras=replace(keras, callbacks=[logger], parameter_count=12),
    )
    recording = make_recording(loops=[recorded])

    assert loop_rows(recording, None) == [
        Loop(
            id="loop1",
            kind="eager",
            role="validation",
            role_reason="no variable changes",
            diagnosed=False,
            file="val.py",
            line=31,
            function="check",
            steps=60,
            elapsed_s=1.5,
            median_step_ms=10.0,
            projected_s=1.5,
            time=None,
            time_missing=None,
            batch_size=16,
            planned_steps=100,
            updates_variables=False,
            iterators=3,
            replicas=2,
            keras=KerasUse(**{**asdict(keras), "parameter_count": 12, "callbacks": [told]}),
            step_functions=["val.py:8 step"],
            element_spec="(16, 4) float32",
            untried="It is no training.",
            beside="loop9",
        )
    ]


def test_a_step_is_told_by_the_baseline_before_the_warm_up_and_before_the_clock() -> None:
    warm = make_window("warmup", make_block(10, 20.0))
    loop = make_recorded_loop(steps=30, elapsed_ns=1500 * MS)
    assert median_step_ms(make_recording(windows=[warm, *windows("loop1", 8.0)]), loop) == 8.0
    assert median_step_ms(make_recording(windows=[warm]), loop) == 20.0
    assert median_step_ms(make_recording(windows=[]), loop) == 50.0
    assert median_step_ms(make_recording(windows=[]), make_recorded_loop(steps=0)) is None


def test_a_loop_that_evaluates_has_its_pipeline_as_written_and_a_look_at_its_steps() -> None:
    training = make_recorded_loop()
    seen = RecordedEvaluation(32, 64 * MS, [1_500] * 32)
    validation = make_recorded_loop(id="loop2", role="validation", evaluation=seen)
    recording = make_recording(loops=[training, validation])
    rows = loop_rows(recording, training)

    assert rows[0].root_op_id == training.root_op_id
    assert (rows[0].pipeline, rows[0].evaluation) == (None, None)
    pipeline = rows[1].pipeline
    assert pipeline is not None
    assert [op.id for op in pipeline.ops][-1] == rows[1].root_op_id == training.root_op_id
    assert {op.self_ms_per_step for op in pipeline.ops} == {None}
    assert not any(op.removed_by_tensorflow for op in pipeline.ops)
    assert rows[1].evaluation == Evaluation(steps=32, step_ms=2.0, consumer_ms=1.5)


def test_what_keras_predicts_in_each_step_is_a_share_of_the_steps() -> None:
    call = RecordedNestedCall("predict", "/work/gan.py", 12, count=10, elapsed_ns=80 * MS)
    loop = make_recorded_loop(elapsed_ns=100 * MS, nested=[call])
    (row,) = loop_rows(make_recording(loops=[loop]), loop)
    (nested,) = row.nested
    assert (nested.what, nested.line, nested.percent, nested.ms) == ("predict", 12, 80.0, 8.0)


def trained(line: int, elapsed_s: float, **overrides: Any) -> RecordedLoop:
    return make_recorded_loop(
        id=f"loop{line}",
        line=line,
        elapsed_ns=int(elapsed_s * 1e9),
        asked_ns=None,
        planned_steps=None,
        **overrides,
    )


def chosen(wanted: WantedLoop | None, *loops: RecordedLoop) -> tuple[int | None, str]:
    recording: Recording = make_recording(loops=list(loops), windows=[])
    loop, notes = chosen_loop(recording, wanted)
    return (loop.line if loop is not None else None), " ".join(notes)


def test_of_several_the_longest_is_taken_and_that_is_said() -> None:
    line, said = chosen("longest", trained(10, 3), trained(20, 9))
    assert line == 20
    assert said.startswith("Of 2 training loops the one at train.py:20 is diagnosed")
    assert "Others were seen at train.py:10; `--loop LINE` takes another." in said
    assert chosen(None, trained(10, 3), trained(20, 9)) == (line, said)


def test_the_line_decides_where_one_is_given() -> None:
    line, said = chosen(10, trained(10, 3), trained(20, 9))
    assert line == 10
    assert "is the one that --loop asks for. Others were seen at train.py:20." in said


def test_a_line_without_a_training_says_which_have_one() -> None:
    line, said = chosen(11, trained(10, 3), trained(20, 9))
    assert line is None
    assert "No training loop begins at line 11" in said
    assert "train.py:10, train.py:20" in said


def test_what_does_not_train_is_not_chosen() -> None:
    validation = trained(30, 99, role="validation")
    assert chosen(None, trained(10, 3), validation)[0] == 10
    assert chosen(30, trained(10, 3), validation)[0] is None


def stopped(wanted: WantedLoop | None, *loops: RecordedLoop, outcome: str = "stopped") -> str:
    recording = make_recording(loops=list(loops), windows=[], outcome=outcome)
    return " ".join(chosen_loop(recording, wanted)[1])


def test_that_the_source_trains_again_behind_a_stopped_loop_is_said() -> None:
    loop = trained(10, 3, followed_by=["/home/me/train.py:30", "/home/me/train.py:40"])
    said = stopped(None, loop)
    assert "trains again at train.py:30, train.py:40, behind the loop at train.py:10" in said
    assert "`--loop longest` lets it go on" in said
    assert stopped("longest", loop) == stopped(10, loop) == ""
    assert stopped(None, loop, outcome="finished") == ""


def test_a_loop_that_was_cut_off_is_as_long_as_its_data_tell() -> None:
    short = trained(10, 7.5, steps=750, last_ns=10)
    long = trained(20, 2, steps=200, last_ns=20, data_steps=375, planned_rounds=20)
    assert "the one at train.py:20 is diagnosed: it takes most, 75 s" in stopped(None, short, long)
    # As while it is held for trials.
    assert "train.py:20 is diagnosed" in stopped(None, short, long, outcome="running")
    # It ended by itself.
    assert "train.py:10 is diagnosed" in stopped(None, short, long, outcome="finished")
    long.last_ns = 5
    assert "train.py:10 is diagnosed" in stopped(None, short, long)
