"""Where each moment of the run belongs."""

from __future__ import annotations

import pytest

from pipediag.measures.run.places import PIPEDIAG, Place, Spent, segments_of, spent_on
from pipediag.session.ledger import RunSpan
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.timeline import Span
from pipediag.vocabulary import LoopRole, SpanKind
from tests.measures.run.runs import Written, fit_loop, ledger, recording_of
from tests.measures.run.test_ledger import three_epochs
from tests.recordings import make_recorded_loop


def owners(spans: list[Span], start: int, end: int) -> list[tuple[int, int, int | None]]:
    return [
        (one.start_ns, one.end_ns, one.span.id if one.span else None)
        for one in segments_of(spans, start, end)
    ]


def test_what_began_last_has_its_moments() -> None:
    spans = [Span(1, "script", 10, 90), Span(2, "fit", 20, 60), Span(3, "callback", 30, 40)]

    assert owners(spans, 0, 100) == [
        (0, 10, None),
        (10, 20, 1),
        (20, 30, 2),
        (30, 40, 3),
        (40, 60, 2),
        (60, 90, 1),
        (90, 100, None),
    ]


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


def test_all_of_a_fit_after_its_first_batch_is_at_ends_of_epochs() -> None:
    assert places(
        ("fit", 10, 90, "fit"), ("steps", 20, 40, "loop1"), ("steps", 50, 70, "loop1")
    ) == [BEFORE, BEFORE, STEPS, END, STEPS, END, AFTER]


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


def seen(written: Written) -> list[RunSpan]:
    return ledger(written, recording_of(fit_loop(epochs=3, steps=501)), 20.4).spans


def test_what_was_seen_is_there_in_order_without_a_hole() -> None:
    found = seen(three_epochs())

    ends = [span.start_ms + span.duration_ms for span in found]
    assert [span.start_ms for span in found[1:]] == pytest.approx(ends[:-1])
    assert sum(span.duration_ms for span in found) == pytest.approx(20_400)
    assert [span.part for span in found[:3]] == ["startup", None, "before_training"]
    assert [span.part for span in found].count("evaluation") == 3
    callback = next(span for span in found if span.what == "the callback Saves")
    assert callback.duration_ms == pytest.approx(200)
