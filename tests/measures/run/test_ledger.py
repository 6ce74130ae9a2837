"""Whole runs, made of spans, and where each second of them is."""

from __future__ import annotations

import pytest

from pipediag.session.recorded_loops import RecordedSeam
from pipediag.session.recording import RecordedEnvironment
from tests.measures.run.runs import (
    FIT_LINE,
    Rows,
    Written,
    fit_loop,
    ledger,
    ns,
    own_loop,
    recording_of,
    row,
    rows,
)
from tests.recordings import make_block, make_recorded_loop, make_window
from tests.records import SCRIPT


def three_epochs() -> Written:
    """A `fit` with validation and a callback, whose first step traces for two seconds."""
    run = Written()
    run.span("aside", 0.5, 1.0)
    run.span("script", 1.0, 20.0)
    run.span("fit", 3.0, 18.0, "fit", FIT_LINE)
    run.epoch(3.5, 4.0, 7.0)
    run.span("first_call", 4.0, 6.0, "one_step", FIT_LINE)
    run.span("evaluation", 7.0, 7.5, "evaluate", FIT_LINE)
    run.span("callback", 7.5, 7.7, "Saves", 7)
    run.epoch(8.0, 8.2, 10.2)
    run.span("evaluation", 10.2, 10.6, "evaluate", FIT_LINE)
    run.span("callback", 10.6, 10.7, "Saves", 7)
    run.epoch(11.0, 11.3, 13.3)
    run.span("evaluation", 13.3, 14.0, "evaluate", FIT_LINE)
    run.span("callback", 14.0, 14.2, "Saves", 7)
    return run


THREE_EPOCHS: Rows = {
    ("startup", "the interpreter"): 0.5,
    ("before_training", None): 2.5,
    ("compile", "the step of `fit`"): 1.99,
    ("epoch_start", None): 1.0,
    ("steps", None): 5.01,
    ("evaluation", "validation in `fit`"): 1.6,
    ("epoch_end", "the callback Saves"): 0.5,
    ("epoch_end", None): 4.4,
    ("after_training", None): 2.0,
    ("after_training", "exit"): 0.4,
}


def test_each_second_of_a_fit_is_in_one_place() -> None:
    run = ledger(three_epochs(), recording_of(fit_loop(epochs=3, steps=501)), 20.4)

    assert rows(run) == THREE_EPOCHS
    assert run.total_s == pytest.approx(19.9)
    assert (run.scope, run.projected_total_s, run.projected_missing) == ("run", None, None)
    assert run.pipediag_s == pytest.approx(0.5)
    assert (run.epochs_seen, run.epochs_planned) == (3.0, 3)
    assert run.not_seen == []
    assert {part.basis for part in run.parts} == {"measured"}
    assert run.seconds_of("epoch_end") == pytest.approx(4.9)
    assert run.percent_of("epoch_end") == pytest.approx(100 * 4.9 / 19.9)


def test_rows_say_where_and_how_often() -> None:
    run = ledger(three_epochs(), recording_of(fit_loop(epochs=3, steps=501)), 20.4)

    callback = row(run, "epoch_end", "the callback Saves")
    assert (callback.file, callback.line, callback.loop_id) == (SCRIPT, 7, "loop1")
    assert callback.count == 3
    steps = row(run, "steps")
    assert (steps.file, steps.line, steps.loop_id, steps.count) == (SCRIPT, FIT_LINE, "loop1", 501)
    assert row(run, "epoch_start").count == 3
    assert row(run, "evaluation", "validation in `fit`").count == 3
    assert row(run, "compile", "the step of `fit`").line == FIT_LINE
    assert row(run, "epoch_end").count is None
    assert row(run, "before_training").count is None


def test_parts_are_in_the_order_of_a_run_the_largest_row_first() -> None:
    run = ledger(three_epochs(), recording_of(fit_loop(epochs=3)), 20.4)

    assert [(part.part, part.what) for part in run.parts] == [
        ("startup", "the interpreter"),
        ("before_training", None),
        ("compile", "the step of `fit`"),
        ("epoch_start", None),
        ("steps", None),
        ("evaluation", "validation in `fit`"),
        ("epoch_end", None),
        ("epoch_end", "the callback Saves"),
        ("after_training", None),
        ("after_training", "exit"),
    ]


def test_a_step_that_asks_for_its_batch_itself_has_waited_in_the_call() -> None:
    run = Written()
    run.span("script", 0.0, 10.0)
    run.span("fit", 1.0, 10.0, "fit", FIT_LINE)
    run.steps(1.0, 4.0)
    run.span("first_call", 1.0, 2.5, "one_step", FIT_LINE)
    run.steps(5.0, 7.0)
    run.steps(8.0, 10.0)
    seams = [
        RecordedSeam(ns(4), ns(5), None, ns(0.21)),
        RecordedSeam(ns(7), ns(8), None, ns(0.31)),
    ]
    loop = fit_loop(epochs=3, fill_ns=ns(0.25), epoch_seams=seams)

    # 0.25 s of the first call were waiting, and 10 ms a step; later epochs waited 0.2 and 0.3 s.
    assert rows(ledger(run, recording_of(loop), 10.0)) == {
        ("before_training", None): 1.0,
        ("compile", "the step of `fit`"): 1.24,
        ("epoch_start", None): 0.75,
        ("steps", None): 5.01,
        ("epoch_end", None): 2.0,
    }
    assert row(ledger(run, recording_of(loop), 10.0), "epoch_start").count == 3


def test_a_function_that_is_traced_once_more_gives_a_step_back_each_time() -> None:
    run = Written()
    run.span("script", 0.0, 10.0)
    run.epoch(0.0, 1.0, 10.0)
    run.span("first_call", 1.0, 2.0, "step", 40)
    run.span("first_call", 5.0, 6.0, "step", 40)

    assert rows(ledger(run, recording_of(own_loop()), 10.0)) == {
        ("compile", "step"): 1.98,
        ("epoch_start", None): 1.0,
        ("steps", None): 7.02,
    }


def test_what_pipediag_took_in_the_middle_of_a_first_call_makes_it_no_two_steps() -> None:
    run = Written()
    run.span("script", 0.0, 10.0)
    run.epoch(0.0, 1.0, 10.0)
    run.span("first_call", 1.0, 2.0, "step", 40)
    run.span("aside", 1.25, 1.5)

    assert rows(ledger(run, recording_of(own_loop()), 10.0)) == {
        ("compile", "step"): 0.74,
        ("epoch_start", None): 1.0,
        ("steps", None): 8.01,
    }


def test_what_is_between_two_fits_is_between_loops() -> None:
    run = Written()
    run.span("script", 0.0, 12.0)
    run.span("fit", 1.0, 5.0, "fit", FIT_LINE)
    run.epoch(1.5, 2.0, 4.0)
    run.span("fit", 7.0, 11.0, "fit", FIT_LINE)
    run.epoch(7.5, 8.0, 10.0)

    assert rows(ledger(run, recording_of(fit_loop(epochs=1)), 12.0)) == {
        ("before_training", None): 1.5,
        ("epoch_start", None): 1.0,
        ("steps", None): 4.0,
        ("epoch_end", None): 2.0,
        ("between_loops", None): 2.5,
        ("after_training", None): 1.0,
    }


def test_what_is_between_two_epochs_of_a_loop_of_its_own_is_at_their_ends() -> None:
    run = Written()
    run.span("script", 0.0, 10.0)
    run.epoch(1.0, 2.0, 4.0)
    run.span("steps", 4.5, 5.0, "eval1")
    run.epoch(5.5, 6.0, 8.0)
    evaluates = make_recorded_loop(id="eval1", role="evaluate", line=50)
    report = ledger(run, recording_of(own_loop(), evaluates), 10.0)

    assert rows(report) == {
        ("before_training", None): 1.0,
        ("epoch_start", None): 1.5,
        ("steps", None): 4.0,
        ("evaluation", "a loop that evaluates"): 0.5,
        ("epoch_end", None): 1.0,
        ("after_training", None): 2.0,
    }
    evaluation = row(report, "evaluation", "a loop that evaluates")
    assert (evaluation.line, evaluation.loop_id) == (50, "loop1")


def test_what_is_between_two_loops_is_between_them() -> None:
    run = Written()
    run.span("script", 0.0, 10.0)
    run.epoch(0.0, 1.0, 4.0)
    run.epoch(6.0, 7.0, 9.0, loop_id="loop2")
    recording = recording_of(own_loop(), own_loop(id="loop2", line=60))

    assert rows(ledger(run, recording, 10.0)) == {
        ("epoch_start", None): 2.0,
        ("steps", None): 5.0,
        ("between_loops", None): 2.0,
        ("after_training", None): 1.0,
    }


@pytest.mark.parametrize("role", ["preview", "preparation", "adapt"])
def test_a_look_at_the_data_before_training_is_the_scripts_code_there(role: str) -> None:
    run = Written()
    run.span("script", 0.0, 10.0)
    run.span("first_batch", 1.0, 2.0, "look")
    run.span("steps", 2.0, 3.0, "look")
    run.epoch(4.0, 5.0, 10.0)
    look = make_recorded_loop(id="look", role=role, line=12)
    report = ledger(run, recording_of(own_loop(), look), 10.0)

    assert rows(report) == {
        ("before_training", "reading a data set"): 2.0,
        ("before_training", None): 2.0,
        ("epoch_start", None): 1.0,
        ("steps", None): 5.0,
    }
    assert row(report, "before_training", "reading a data set").line == 12


def test_a_call_that_evaluates_is_told_by_its_name_and_by_whose_it_is() -> None:
    run = Written()
    run.span("script", 0.0, 10.0)
    run.span("fit", 0.0, 8.0, "fit", FIT_LINE)
    run.epoch(0.0, 1.0, 5.0)
    run.span("callback", 5.0, 7.0, "Scores", 7)
    run.span("evaluation", 5.5, 6.5, "predict", 9)
    run.span("evaluation", 8.5, 9.5, "evaluate", 44)

    assert rows(ledger(run, recording_of(fit_loop()), 10.0)) == {
        ("epoch_start", None): 1.0,
        ("steps", None): 4.0,
        ("evaluation", "`predict` in the callback Scores"): 1.0,
        ("evaluation", "`evaluate`"): 1.0,
        ("epoch_end", "the callback Scores"): 1.0,
        ("epoch_end", None): 1.0,
        ("after_training", None): 1.0,
    }


def test_trials_and_windows_of_ours_are_no_part_of_the_run() -> None:
    run = Written()
    run.span("script", 0.0, 10.0)
    run.epoch(0.0, 1.0, 9.0)
    run.span("aside", 4.0, 6.0)
    recording = recording_of(own_loop())
    profile = make_window("profile", make_block(20, 25.0), start_ns=ns(2), end_ns=ns(3))
    repeat = make_window("repeat", make_block(50, 3.0), start_ns=ns(3), end_ns=ns(3.5))
    recording.windows += [profile, repeat]
    report = ledger(run, recording, 10.0)

    # The 20 steps under the profiler are the script's own, at 10 ms.
    assert rows(report) == {
        ("epoch_start", None): 1.0,
        ("steps", None): 4.7,
        ("after_training", None): 1.0,
    }
    assert report.pipediag_s == pytest.approx(3.3)


def test_a_loop_in_a_function_keeps_its_profiled_steps_where_they_are() -> None:
    run = Written()
    run.span("script", 0.0, 10.0)
    run.steps(1.0, 9.0)
    run.span("aside", 0.0, 0.5)
    recording = recording_of(own_loop(kind="in_graph", fill_ns=0))
    profile = make_window("profile", make_block(20, 25.0), start_ns=ns(2), end_ns=ns(3))
    recording.windows.append(profile)
    report = ledger(run, recording, 10.0)

    assert rows(report) == {
        ("before_training", None): 0.5,
        ("steps", None): 8.0,
        ("after_training", None): 1.0,
    }
    assert report.pipediag_s == pytest.approx(0.5)


def test_the_first_step_of_jax_has_compiled() -> None:
    run = Written()
    run.span("script", 0.0, 10.0)
    run.span("fit", 0.0, 10.0, "fit", FIT_LINE)
    run.epoch(0.0, 1.0, 10.0)
    environment = RecordedEnvironment("3.11.9", "python", keras_backend="jax")
    recording = recording_of(fit_loop(first_step_ns=ns(0.91)), environment=environment)

    assert rows(ledger(run, recording, 10.0)) == {
        ("compile", "the step of `fit`"): 0.9,
        ("epoch_start", None): 1.0,
        ("steps", None): 8.1,
    }
