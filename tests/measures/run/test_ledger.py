"""The ledger of the run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipediag.measures.run.ledger import (
    ONLY_OURS,
    measure_run,
    with_epochs_noted,
    with_given_epochs,
)
from pipediag.measures.steps import Missing
from pipediag.session.ledger import Run
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.vocabulary import ScriptOutcome, SpanKind
from tests.measures.run.runs import (
    FIT_LINE,
    Rows,
    Written,
    ended,
    fit_loop,
    ledger,
    ns,
    own_loop,
    recording_of,
    row,
    rows,
    seen,
)
from tests.recordings import make_block, make_recorded_loop, make_recorded_operation, make_window


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


def test_a_callback_is_at_the_line_of_its_own_file_that_ran_longest() -> None:
    run = three_epochs()
    elsewhere = replace(seen(99, 0.1), file="other.py")
    run.saw(7.5, 7.7, elsewhere, seen(9, 0.02, "save"), seen(10, 0.08, "save"))
    report = ledger(run, recording_of(fit_loop(epochs=3, steps=501)), 20.4)
    assert row(report, "epoch_end", "the callback Saves").line == 10


def test_what_is_between_two_epochs_of_a_loop_of_its_own_is_at_their_ends() -> None:
    run = Written()
    run.span("script", 0.0, 10.0)
    run.epoch(1.0, 2.0, 4.0)
    run.span("iterator", 4.2, 4.3, "eval1")
    run.span("first_batch", 4.3, 4.5, "eval1")
    run.span("steps", 4.5, 4.7, "eval1")
    run.span("steps", 4.8, 5.0, "eval1")
    run.epoch(5.5, 6.0, 8.0)
    evaluates = make_recorded_loop(id="eval1", role="evaluate", line=50)
    report = ledger(run, recording_of(own_loop(), evaluates), 10.0)

    assert rows(report) == {
        ("before_training", None): 1.0,
        ("epoch_start", None): 1.5,
        ("steps", None): 4.0,
        ("evaluation", "a loop that evaluates"): 0.7,
        ("epoch_end", None): 0.8,
        ("after_training", None): 2.0,
    }
    evaluation = row(report, "evaluation", "a loop that evaluates")
    assert (evaluation.line, evaluation.loop_id, evaluation.count) == (50, "loop1", 1)


@pytest.mark.parametrize("end_s", [None, 13.9])
def test_what_follows_the_last_step_that_python_fed_is_no_part_of_it(end_s: float | None) -> None:
    """120 steps, and then ten seconds of predictions that were said to be the last step."""
    run = Written()
    run.span("script", 0.0, 14.0)
    run.span("steps", 1.0, 2.0, "loop1")
    run.span("steps", 2.0, end_s, "loop1")
    loop = own_loop(from_python=True, last_ns=ns(3.99), steps=301)
    report = ledger(run, recording_of(loop), 14.0)
    assert row(report, "after_training", None).seconds == pytest.approx(10.0)


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


def test_lines_are_in_the_place_that_the_script_was_at_and_imports_are_start_up() -> None:
    run = Written()
    run.span("script", 0.0, 20.0)
    run.saw(0.0, 2.0, seen(1, 1.5, importing=True), seen(5, 0.5))
    run.saw(2.0, 4.0, seen(5, 1.0), seen(6, 0.5, "load"), seen(8, 0.04))
    run.epoch(4.0, 5.0, 9.0)
    run.saw(6.0, 7.0, seen(30, 1.0))
    run.saw(9.0, 11.0, seen(33, 1.5, "Trainer.save"))
    run.epoch(11.0, 12.0, 16.0)
    run.saw(16.0, 18.0, seen(90, 2.0), seen(91, 2.0), seen(92, 4.0))
    report = ledger(run, recording_of(own_loop()), 20.0)

    assert [
        (part.part, part.what, part.line, round(part.seconds, 4))
        for part in report.parts
        if part.part not in ("steps", "epoch_start")
    ] == [
        ("startup", "imports", 1, 1.5),
        ("before_training", "the script's own line", 5, 1.5),
        ("before_training", None, None, 0.5),
        ("before_training", "in `load`", 6, 0.5),
        ("epoch_end", "in `Trainer.save`", 33, 1.5),
        ("epoch_end", None, None, 0.5),
        ("after_training", "the script's own line", 92, 2.0),
        ("after_training", "the script's own line", 90, 1.0),
        ("after_training", "the script's own line", 91, 1.0),
    ]


KINDS: tuple[SpanKind, ...] = (
    "fit",
    "evaluation",
    "callback",
    "first_batch",
    "steps",
    "first_call",
    "tracing",
    "aside",
)
moments = st.tuples(st.integers(0, 40), st.integers(0, 40)).map(sorted)


@given(
    st.lists(st.tuples(st.sampled_from(KINDS), moments, st.sampled_from(["loop1", "look", ""]))),
    st.lists(st.tuples(moments, st.integers(1, 40), st.booleans())),
    st.sampled_from(["finished", "killed", "stopped"]),
    st.sampled_from([None, 4000, 7]),
    st.one_of(st.none(), st.integers(1, 45)),
)
def test_whatever_is_written_the_parts_add_up(
    listed: list[tuple[SpanKind, list[int], str]],
    lines: list[tuple[list[int], int, bool]],
    outcome: ScriptOutcome,
    planned: int | None,
    until: int | None,
) -> None:
    run = Written()
    run.span("script", 1.0, 42.0)
    for kind, (first, last), name in listed:
        run.span(kind, first, last, name, 20)
    for (first, last), line, importing in lines:
        run.saw(first, last, seen(line, 0.5 * line, importing=importing))
    run.timeline.spans.sort(key=lambda span: (span.start_ns, span.id))
    run.timeline.until_ns = None if until is None else ns(until)
    recording = recording_of(
        fit_loop(planned_steps=planned), make_recorded_loop(id="look", role="preview")
    )

    if measure_run(run.timeline, recording, ended(0, ns(45.0), outcome)) != Missing(ONLY_OURS):
        ledger(run, recording, 45.0, outcome)


GIVEN = 20


def of_unknown_length(ends: int) -> Written:
    """Epochs of a second's wait, 200 steps of 10 ms, and a second at their end."""
    run = Written()
    run.span("script", 0.0, 4.0 + 4.0 * ends)
    run.epochs(ends + 1, 1.0, 1.0, 2.0, 1.0)
    return run


def told_given_epochs(
    written: Written, loop: RecordedLoop, cardinality: int | None = 200, **options: Any
) -> tuple[Run, str | None]:
    root = make_recorded_operation("op3", "batch", cardinality=cardinality)
    recording = recording_of(loop, operations=[root])
    given = with_given_epochs(recording, GIVEN)
    run = ledger(written, given, 16.0, options.get("outcome", "stopped"))
    return with_epochs_noted(run, recording, GIVEN)


@pytest.mark.parametrize("cardinality", [200, None])
def test_they_are_carried_on_to(cardinality: int | None) -> None:
    run, note = told_given_epochs(of_unknown_length(3), own_loop(iterators=4), cardinality)

    assert (run.scope, run.epochs_planned, run.epochs_given, note) == ("run", GIVEN, True, None)
    assert row(run, "steps").seconds == pytest.approx(2.0 * GIVEN)
    assert row(run, "before_training").seconds == pytest.approx(1.0)
