"""Where each moment of the run belongs, and the script's lines in the ledger."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipediag.measures.loops import PAUSE_SEEN_ONCE
from pipediag.measures.run.amounts import Projected
from pipediag.measures.run.ledger import divided_by_lines
from pipediag.measures.run.places import (
    PIPEDIAG,
    Place,
    Spent,
    callback_lines,
    line_shares,
    segments_of,
    spent_on,
)
from pipediag.session.ledger import EVALUATING_LOOP, IN_FRAMEWORK, OWN_LINE, Run
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.timeline import SeenLine, SeenLines, Span
from pipediag.vocabulary import LoopRole, SpanKind
from tests.measures.run.runs import FIT_LINE, Written, fit_loop, ledger, recording_of
from tests.recordings import make_recorded_loop
from tests.records import MS, SCRIPT


@pytest.mark.parametrize("call", ["script", "fit", "evaluation", "callback"])
def test_what_never_ended_lasts_no_longer_than_the_call_that_it_lies_in(call: SpanKind) -> None:
    spans = [Span(1, call, 10, 50), Span(2, "callback", 20, None), Span(3, "steps", 30, None)]

    assert [(one.start_ns, one.end_ns) for one in segments_of(spans, 0, 100)][-1] == (50, 100)
    assert segments_of(spans, 0, 100)[-1].span is None


TRAINING = make_recorded_loop()
"""At line 20."""


def loop(id: str, role: LoopRole, line: int = 50) -> RecordedLoop:
    return make_recorded_loop(id=id, role=role, line=line)


def spent(
    *spans: tuple[SpanKind, int, int, str], loops: tuple[RecordedLoop, ...] = ()
) -> list[Spent]:
    """Of a run of 100 moments; a fit is at line 20, all else at line 7."""
    written = [
        Span(number, kind, start, end, name, "train.py", 20 if kind == "fit" else 7)
        for number, (kind, start, end, name) in enumerate(spans, 1)
    ]
    return spent_on(segments_of(written, 0, 100), [TRAINING, *loops])


def places(
    *spans: tuple[SpanKind, int, int, str], loops: tuple[RecordedLoop, ...] = ()
) -> list[Place]:
    return [one.place for one in spent(*spans, loops=loops)]


STEPS = Place("steps", None, "train.py", 20, "loop1")
END = Place("epoch_end", loop_id="loop1")
BEFORE, BETWEEN, AFTER = Place("before_training"), Place("between_loops"), Place("after_training")


def test_a_second_fit_before_its_first_batch_is_between_loops() -> None:
    spans: list[tuple[SpanKind, int, int, str]] = [
        ("fit", 0, 30, "fit"),
        ("steps", 0, 20, "loop1"),
        ("fit", 50, 100, "fit"),
        ("steps", 60, 100, "loop1"),
    ]
    assert places(*spans) == [STEPS, END, BETWEEN, BETWEEN, STEPS]
    assert [one.fit for one in spent(*spans)] == [1, 1, None, 3, 3]


def test_a_loop_of_its_own_after_a_fit_is_another_training() -> None:
    assert places(
        ("fit", 0, 30, "fit"), ("steps", 0, 20, "loop1"), ("steps", 50, 100, "loop1")
    ) == [STEPS, END, BETWEEN, STEPS]
    assert places(
        ("steps", 0, 20, "loop1"), ("fit", 30, 100, "fit"), ("steps", 50, 100, "loop1")
    ) == [STEPS, BETWEEN, BETWEEN, STEPS]


@pytest.mark.parametrize(
    ("around", "what"),
    [
        ([("fit", 0, 100, "fit")], "validation in `fit`"),
        ([("fit", 0, 100, "fit"), ("callback", 0, 100, "Own")], "`predict` in the callback Own"),
        ([], "`predict`"),
    ],
)
def test_an_evaluation_is_told_by_what_it_is_in(
    around: list[tuple[SpanKind, int, int, str]], what: str
) -> None:
    (place,) = places(*around, ("evaluation", 0, 100, "predict"), ("steps", 30, 60, "loop1"))

    assert place == Place("evaluation", what, "train.py", 7)


@pytest.mark.parametrize("role", ["validation", "evaluate", "predict", "other"])
@pytest.mark.parametrize("kind", ["steps", "first_batch"])
def test_other_loops_evaluate(role: LoopRole, kind: SpanKind) -> None:
    assert places(
        ("steps", 0, 20, "loop1"), (kind, 20, 100, "eval"), loops=(loop("eval", role),)
    ) == [STEPS, Place("evaluation", "a loop that evaluates", "train.py", 50, "loop1")]


@pytest.mark.parametrize("role", ["preview", "preparation", "reading", "adapt"])
def test_looks_at_the_data_are_the_scripts_code_where_they_are(role: LoopRole) -> None:
    look = loop("look", role)
    reading = "reading a data set", "train.py", 50

    assert places(("steps", 0, 20, "look"), ("steps", 20, 50, "loop1"), loops=(look,)) == [
        Place("before_training", *reading),
        STEPS,
        AFTER,
    ]
    assert places(("steps", 0, 50, "loop1"), ("steps", 50, 100, "look"), loops=(look,)) == [
        STEPS,
        Place("after_training", *reading),
    ]


def test_the_outermost_function_with_a_name_is_what_was_compiled() -> None:
    assert places(("tracing", 0, 100, ""), ("first_call", 0, 100, "augment")) == [
        Place("compile", "augment", "train.py", 7)
    ]
    assert places(("first_call", 0, 100, "outer"), ("first_call", 0, 100, "inner")) == [
        Place("compile", "outer", "train.py", 7)
    ]


def test_the_dataset_that_each_call_of_predict_makes_is_a_part_of_the_call() -> None:
    called = places(("evaluation", 0, 100, "predict"), ("tracing", 10, 40, ""))
    assert called == [Place("evaluation", "`predict`", "train.py", 7)]
    compiled = places(("evaluation", 0, 100, "predict"), ("tracing", 10, 40, "one_step"))
    assert "compile" in {one.part for one in compiled}


FED = make_recorded_loop(id="fed", line=30, from_python=True)


def test_what_each_step_predicts_is_a_part_of_the_steps() -> None:
    assert places(
        ("steps", 10, 90, "fed"),
        ("evaluation", 20, 40, "predict"),
        ("tracing", 22, 24, ""),
        ("evaluation", 50, 70, "predict"),
        ("aside", 60, 65, ""),
        loops=(FED,),
    ) == [
        BEFORE,
        Place("steps", None, "train.py", 30, "fed"),
        PIPEDIAG,
        Place("steps", None, "train.py", 30, "fed"),
        AFTER,
    ]


@pytest.mark.parametrize(
    ("loop_id", "steps_end"),
    [
        ("fed", 30),  # its first batch interrupts the steps, so that it is no part of each
        ("loop1", 90),  # a pipeline's steps are never interrupted by a part of themselves
    ],
)
def test_what_some_steps_predict_is_an_evaluation(loop_id: str, steps_end: int) -> None:
    predicted = Place("evaluation", "`predict`", "train.py", 7, loop_id)
    assert predicted in places(
        ("steps", 10, steps_end, loop_id),
        ("evaluation", 20, 40, "predict"),
        ("steps", 50, 60, loop_id),
        loops=(FED,),
    )


IMPORTS = Place("startup", "imports", "train.py", 1)


def met(start_ms: int, end_ms: int, *lines: SeenLine) -> SeenLines:
    return SeenLines(start_ms * MS, end_ms * MS, lines)


def a_line(line: int, ms: float, importing: bool = False, function: str = "<module>") -> SeenLine:
    return SeenLine("train.py", line, function, importing, round(ms * MS))


def own(place: Place, line: int) -> Place:
    return Place(place.part, "the script's own line", "train.py", line, place.loop_id)


SPENT = [Spent(BEFORE, 0, 1000 * MS), Spent(END, 1000 * MS, 1500 * MS)]
NS_AT = {BEFORE: 1000 * MS, END: 500 * MS}


def test_a_line_is_put_where_it_was_met_and_not_where_most_of_its_group_lies() -> None:
    """A wait for a first batch is known when it is over: looks went on meanwhile."""
    waiting = Place("epoch_start", loop_id="loop1")
    spent = [Spent(BEFORE, 0, 1000 * MS), Spent(waiting, 1000 * MS, 1500 * MS)]
    at_wait = replace(a_line(4, 400), at_ns=1300 * MS)
    before = replace(a_line(3, 250), at_ns=300 * MS)

    assert line_shares(spent, [met(0, 1500, before, at_wait)], NS_AT) == {
        BEFORE: {own(BEFORE, 3): 0.25}
    }


def test_what_a_loop_that_evaluates_lets_go_of_is_a_part_of_the_evaluation() -> None:
    evaluation = Place("evaluation", EVALUATING_LOOP, "train.py", 7, "loop1")
    spent = [
        Spent(END, 0, 100 * MS),
        Spent(evaluation, 100 * MS, 900 * MS),
        Spent(END, 900 * MS, 1300 * MS),
    ]
    groups = [met(900, 1300, a_line(7, 300), a_line(8, 100))]

    assert line_shares(spent, groups, NS_AT) == {END: {evaluation: 0.6, own(END, 8): 0.2}}


@pytest.mark.parametrize(("ms", "told"), [(49.9, False), (50, True)])
def test_a_line_that_was_met_by_chance_is_none_but_an_import_is_one(ms: float, told: bool) -> None:
    (shares,) = line_shares(SPENT, [met(0, 900, a_line(3, ms), a_line(1, 2, True))], NS_AT).values()

    assert (own(BEFORE, 3) in shares) == told
    assert shares[IMPORTS] == 0.002


SAVES = Place("epoch_end", "the callback Saves", "train.py", 7, "loop1")


def test_lines_of_a_callback_are_those_that_were_met_in_it() -> None:
    spent = [Spent(BEFORE, 0, 1000 * MS), Spent(SAVES, 1000 * MS, 1500 * MS)]
    groups = [
        met(1000, 1500, a_line(9, 80), a_line(10, 300)),
        met(1000, 1500, replace(a_line(99, 900), file="other.py")),
        met(0, 900, a_line(3, 800)),
    ]

    (lines,) = callback_lines(spent, groups).values()
    assert [(one.file, one.line, one.what) for one in lines] == [
        ("other.py", 99, "the callback Saves"),
        ("train.py", 10, "the callback Saves"),
        ("train.py", 9, "the callback Saves"),
    ]
    assert sum(one.percent for one in lines) == pytest.approx(100.0)


def test_lines_of_a_loop_that_evaluates_name_the_loop() -> None:
    evaluation = Place("evaluation", EVALUATING_LOOP, "train.py", 7, "loop1")
    in_fit = replace(evaluation, what="validation in `fit`")
    spent = [Spent(evaluation, 0, 1000 * MS), Spent(in_fit, 1000 * MS, 2000 * MS)]
    found = callback_lines(spent, [met(0, 1000, a_line(9, 800)), met(1000, 2000, a_line(3, 800))])
    ((line,),) = found.values()
    assert (line.line, line.what, line.loop_line) == (9, EVALUATING_LOOP, 7)


@pytest.mark.parametrize(
    "place", [SAVES, Place("evaluation", EVALUATING_LOOP, "train.py", 7, "loop1")]
)
def test_shares_of_lines_add_up_to_one_where_their_callback_or_loop_follows_several_loops(
    place: Place,
) -> None:
    spent = [Spent(replace(place, loop_id=None), 0, 500 * MS), Spent(place, 500 * MS, 1500 * MS)]
    groups = [met(0, 500, a_line(9, 200)), met(500, 1500, a_line(9, 400), a_line(10, 200))]
    ((first, second),) = callback_lines(spent, groups).values()
    assert (first.line, first.percent) == (9, pytest.approx(75.0))
    assert (second.line, second.percent) == (10, pytest.approx(25.0))


def test_the_time_of_a_line_is_divided_by_whose_code_ran() -> None:
    lines = a_line(4, 300), replace(a_line(4, 500), in_framework=True)
    whole = divided_by_lines(
        {BEFORE: Projected.seen(NS_AT[BEFORE], 1)}, line_shares(SPENT, [met(0, 900, *lines)], NS_AT)
    )
    assert {place.what: round(one.ns) for place, one in whole.items()} == {
        OWN_LINE: 300 * MS,
        OWN_LINE + IN_FRAMEWORK: 500 * MS,
        None: 200 * MS,
    }


KEEPS = SeenLine(SCRIPT, 41, "keeps", importing=False, ns=150 * MS)
LETS_GO = replace(KEEPS, line=FIT_LINE, function="<module>")


def two_epochs_with(*lines: SeenLine) -> Run:
    """Epochs of 20 steps in a `fit`, and 200 ms after the first, some of them in these lines."""
    run = Written()
    run.span("script", 0.0, 0.6)
    run.span("fit", 0.0, 0.6, "fit", FIT_LINE)
    run.steps(0.0, 0.2)
    run.steps(0.4, 0.6)
    run.saw(0.2, 0.4, *lines)
    loop = fit_loop(epochs=10, steps_per_epoch=20, fill_ns=0)
    return ledger(run, recording_of(loop), 0.6, "stopped")


def test_a_line_that_a_fit_comes_to_after_each_epoch_is_carried_on_and_not_counted_twice() -> None:
    run = two_epochs_with(KEEPS)
    assert run.seconds_of("epoch_end") == pytest.approx(10 * 0.2)
    in_line = sum(part.seconds for part in run.parts if part.line == KEEPS.line)
    assert in_line == pytest.approx(10 * 0.15)
    assert PAUSE_SEEN_ONCE not in run.not_seen


def test_letting_go_of_an_iterator_that_was_slow_once_is_not_carried_on() -> None:
    run = two_epochs_with(LETS_GO)
    assert run.seconds_of("epoch_end") == pytest.approx(0.2)
    assert PAUSE_SEEN_ONCE in run.not_seen
