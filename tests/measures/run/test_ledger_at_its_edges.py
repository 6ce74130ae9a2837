"""Runs that did not go as they should, and whatever else is written, on spans made by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipediag.measures.recorded_windows import Missing
from pipediag.measures.run.ledger import (
    NO_TIMELINE,
    ONLY_OURS,
    UNMEASURED,
    UNWRITTEN,
    RunBounds,
    measure_run,
)
from pipediag.session.timeline import Timeline
from pipediag.vocabulary import ScriptOutcome, SpanKind
from tests.measures.run.runs import (
    FIT_LINE,
    Written,
    fit_loop,
    ledger,
    ns,
    own_loop,
    recording_of,
    row,
    rows,
    seen,
)
from tests.recordings import make_recorded_loop, make_recording


def test_a_killed_run_has_all_until_its_end() -> None:
    run = Written()
    run.span("script", 1.0, None)
    run.span("fit", 2.0, None, "fit", FIT_LINE)
    run.epoch(2.0, 3.0, 4.0)
    run.span("callback", 4.0, None, "Saves", 7)

    report = ledger(run, recording_of(fit_loop()), 10.0, "killed")
    assert rows(report) == {
        ("startup", "the interpreter"): 1.0,
        ("before_training", None): 1.0,
        ("epoch_start", None): 1.0,
        ("steps", None): 1.0,
        ("epoch_end", "the callback Saves"): 6.0,
    }
    assert report.projected_total_s is None


def test_a_run_without_a_training_is_all_before_it() -> None:
    run = Written()
    run.span("script", 1.0, 9.0)
    run.span("tracing", 2.0, 3.0)
    report = ledger(run, recording_of(), 10.0)

    assert rows(report) == {
        ("startup", "the interpreter"): 1.0,
        ("before_training", None): 7.0,
        ("compile", "what `a function` builds"): 1.0,
        ("after_training", "exit"): 1.0,
    }
    assert (report.epochs_seen, report.epochs_planned) == (None, None)


def test_a_stopped_run_without_a_training_ends_where_it_was_stopped() -> None:
    run = Written()
    run.span("script", 1.0, 9.0)
    report = ledger(run, recording_of(), 15.0, "stopped")

    assert rows(report) == {("startup", "the interpreter"): 1.0, ("before_training", None): 8.0}
    assert report.projected_missing == UNMEASURED


def test_a_held_run_ends_at_the_last_moment_that_is_known() -> None:
    run = Written()
    run.span("script", 1.0, None)
    run.epoch(2.0, 3.0, 5.0)
    run.saw(5.0, 6.0)
    report = ledger(run, recording_of(), 15.0, "stopped")

    assert report.total_s == pytest.approx(6.0)


def test_what_was_compiled_is_told_by_its_function_and_by_the_call_that_it_is_for() -> None:
    run = Written()
    run.span("script", 0.0, 10.0)
    run.span("first_call", 0.0, 1.0, "augment", 50)
    run.span("tracing", 0.2, 0.8)
    run.span("fit", 1.0, 9.0, "fit", FIT_LINE)
    run.span("tracing", 1.0, 3.0)
    run.span("first_call", 3.0, 4.0, "metric", 60)
    run.span("evaluation", 5.0, 6.0, "evaluate", FIT_LINE)
    run.span("first_call", 5.0, 5.5, "one_step", FIT_LINE)
    report = ledger(run, recording_of(), 10.0)

    compiled = {key: seconds for key, seconds in rows(report).items() if key[0] == "compile"}
    assert compiled == {
        ("compile", "augment"): 1.0,
        ("compile", "what `fit` builds"): 2.0,
        ("compile", "metric"): 1.0,
        ("compile", "the step of `evaluate`"): 0.5,
    }
    assert row(report, "compile", "metric").line == 60
    assert row(report, "compile", "what `fit` builds").line == FIT_LINE


def test_after_the_last_thing_that_was_written_nothing_is_guessed() -> None:
    run = Written()
    run.span("script", 0.0, None)
    run.span("fit", 1.0, None, "fit", FIT_LINE)
    run.epoch(1.0, 2.0, 4.0)
    run.span("callback", 4.0, None, "Saves", 7)
    run.timeline.until_ns = ns(5.0)
    report = ledger(run, recording_of(fit_loop()), 1000.0)

    assert rows(report) == {
        ("before_training", None): 1.0,
        ("epoch_start", None): 1.0,
        ("steps", None): 2.0,
        ("epoch_end", "the callback Saves"): 1.0,
    }
    assert report.not_seen == [UNWRITTEN]


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


def test_nothing_is_said_where_nothing_was_written() -> None:
    bounds = RunBounds(0, 10, "finished")

    assert measure_run(Timeline(), make_recording(), bounds) == Missing(NO_TIMELINE)
    run = Written()
    run.span("script", 1.0, 2.0)
    assert measure_run(run.timeline, None, bounds) == Missing(NO_TIMELINE)


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

    if measure_run(run.timeline, recording, RunBounds(0, ns(45.0), outcome)) != Missing(ONLY_OURS):
        ledger(run, recording, 45.0, outcome)


def test_a_run_of_which_only_our_own_time_was_seen_has_no_ledger() -> None:
    run = Written()
    run.span("script", 1.0, 2.0)
    run.span("aside", 0.0, 45.0)

    assert measure_run(run.timeline, recording_of(), RunBounds(0, ns(45.0), "finished")) == Missing(
        ONLY_OURS
    )
