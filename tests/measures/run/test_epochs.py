"""The epochs of a loop as the ledger has them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pipediag.facts.run import where
from pipediag.measures.loops import PAUSE_SEEN_ONCE
from pipediag.measures.run.amounts import in_doubt
from pipediag.measures.run.epochs import Epochs
from pipediag.measures.run.ledger import WHAT, epochs_taken
from pipediag.session.ledger import PAUSE, PAUSES, Run
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import RecordedBlock, RecordedOperation
from pipediag.vocabulary import ScriptOutcome
from tests.factories import make_session
from tests.measures.run.runs import (
    FIT_LINE,
    Rows,
    Written,
    fit_loop,
    ledger,
    ns,
    own_loop,
    recording_of,
    rows,
)
from tests.recordings import make_block, make_window

BUILT = ("compile", "train_step")
UNTRACED = make_block(40, 10.0, start_ms=4000.0)


def stopped(
    calls: list[float],
    block: RecordedBlock = UNTRACED,
    planned_steps: int | None = None,
    element_spec: str | None = None,
) -> Rows:
    """Steps for ten seconds, in which a function is built for half a second each time."""
    run = Written()
    run.span("script", 0.0, None)
    run.steps(0.0, 10.0)
    for begin in calls:
        run.span("first_call", begin, begin + 0.5, "train_step", 12)
        run.span("tracing", begin + 0.1, begin + 0.4)
    loop = own_loop(root_op_id=None, fill_ns=0, planned_steps=planned_steps)
    loop.element_spec = element_spec or loop.element_spec
    recording = recording_of(loop, windows=[make_window("baseline", block)])
    return rows(ledger(run, recording, 10.0, "stopped"))


def test_what_is_built_for_each_rate_comes_as_often_in_a_thousand_steps() -> None:
    found = stopped([0.0, 3.0, 6.0, 9.0])

    # Three calls in 804 steps of 10 ms, less the step that each of them made, but the first.
    assert found["steps", None] == pytest.approx(10.0)
    assert found[BUILT] == pytest.approx(3 * 0.49 * 1000 / 804, rel=1e-4)


@pytest.mark.parametrize("calls", [[0.0], [0.0, 5.0], [0.0, 0.6, 1.2, 1.8]])
def test_what_is_built_at_first_or_for_one_odd_batch_comes_once(calls: list[float]) -> None:
    assert list(stopped(calls)) == [("steps", None)]


def test_of_batches_that_vary_in_length_fewer_and_fewer_are_new() -> None:
    calls = [0.0, 3.0, 6.0, 9.0]
    found = stopped(calls, element_spec="TensorSpec(shape=(4, None), dtype=tf.int64)")

    times = math.log1p(1000) / math.log1p(804)
    assert found[BUILT] == pytest.approx(3 * 0.49 * times, rel=1e-3)


def test_what_an_earlier_fit_built_is_counted_once() -> None:
    """A call of half a second builds a function in each second; the second of two fits was stopped
    in the middle, after 204 of 408 steps of 10 ms."""
    run = Written()
    run.span("script", 0.0, 14.0)
    for start, end in ((0.0, 8.0), (10.0, 14.0)):
        run.span("fit", start, end, "fit", FIT_LINE)
        run.steps(start, end)
        for second in range(int(end - start)):
            run.span("first_call", start + second, start + second + 0.5, "train_step", 12)
    loop = fit_loop(epochs=2, steps_per_epoch=204, fill_ns=0)
    found = rows(ledger(run, recording_of(loop), 14.0, "stopped"))

    assert found[BUILT] == pytest.approx(8 * 0.5 + 8 * 0.5, rel=0.1)


MADE = "making the iterator"


def seconds_of(run: Run, what: str) -> float:
    return sum(part.seconds for part in run.parts if part.what == what)


def epochs_of_20_steps(*each_ms: tuple[int, int], outcome: ScriptOutcome = "stopped") -> Run:
    """Epochs of a `fit` of 200 ms, after what making each one's iterator and what follows took."""
    run, now, end = Written(), 0.0, sum(made + more + 200 for made, more in each_ms) / 1e3
    run.span("script", 0.0, end)
    run.span("fit", 0.0, end, "fit", FIT_LINE)
    for made_ms, more_ms in each_ms:
        run.span("iterator", now, now + made_ms / 1e3, "loop1")
        now += (made_ms + more_ms) / 1e3
        run.steps(now, now + 0.2)
        now += 0.2
    loop = fit_loop(epochs=10, steps_per_epoch=20, fill_ns=0)
    return ledger(run, recording_of(loop), end, outcome)


def made_in(*each_ms: int) -> Run:
    return epochs_of_20_steps(*((ms, 0) for ms in each_ms))


@pytest.mark.parametrize(
    ("each_ms", "usual_s", "pause_s", "pauses_s", "doubts"),
    [
        ((20, 700), 10 * 0.02, 0.7, 0.0, 1),
        ((20, 700, 30), 0.02 + 9 * 0.03, 0.7, 0.0, 1),
        ((20, 700, 300), 0.02 + 9 * 0.02, 0.0, 10 * 0.48, 0),
        ((700, 20), 0.7 + 9 * 0.02, 0.0, 0.0, 0),
        ((500, 510, 530, 500), 0.5 + 9 * 1.54 / 3, 0.0, 0.0, 0),
        ((20, 700, 30, 700), 0.02 + 9 * 0.07 / 3, 0.0, 10 * 1.36 / 3, 0),
    ],
)
def test_a_pause_that_came_once_stands_for_no_other_epoch_and_several_are_a_row_of_their_own(
    each_ms: tuple[int, ...], usual_s: float, pause_s: float, pauses_s: float, doubts: int
) -> None:
    run = made_in(*each_ms)
    assert seconds_of(run, MADE) == pytest.approx(usual_s)
    assert seconds_of(run, PAUSE) == pytest.approx(pause_s)
    assert seconds_of(run, PAUSES) == pytest.approx(pauses_s)
    said = [one for one in run.not_seen if one == PAUSE_SEEN_ONCE]
    assert len(said) == doubts


def test_a_pause_of_an_earlier_fit_is_counted_once() -> None:
    """Its second iterator paused; the one end of the second fit lay within trials."""
    run = Written()
    run.span("script", 0.0, 4.0)
    for start, made_s in ((0.0, (0.02, 0.7)), (2.0, (0.02, 1.0))):
        run.span("fit", start, start + 0.4 + sum(made_s), "fit", FIT_LINE)
        for begun, made in zip((start, start + 0.2 + made_s[0]), made_s, strict=True):
            run.span("iterator", begun, begun + made, "loop1")
            run.steps(begun + made, begun + made + 0.2)
    run.span("aside", 2.22, 3.22)
    loop = fit_loop(epochs=10, steps_per_epoch=20, fill_ns=0)
    found = ledger(run, recording_of(loop), 3.42, "stopped")

    assert seconds_of(found, PAUSE) == pytest.approx(0.7)
    assert seconds_of(found, MADE) == pytest.approx(0.02 + 10 * 0.02)


@pytest.mark.parametrize("each_ms", [(20, 3000), (20, 3000, 20, 2000)])
def test_pauses_are_in_no_headline(each_ms: tuple[int, ...]) -> None:
    run = made_in(*each_ms)
    [pause] = [part for part in run.parts if part.what in (PAUSE, PAUSES)]
    assert pause.percent > 20.0
    found = where(make_session(run=run))
    assert found.part == "steps"


def test_what_lies_between_making_an_iterator_and_the_first_step_is_a_part_of_it() -> None:
    run = epochs_of_20_steps((1, 299), (1, 299), outcome="finished")
    assert run.seconds_of("epoch_start") == pytest.approx(0.6)
    assert run.seconds_of("epoch_end") == 0
    run = epochs_of_20_steps((1, 299), (1, 299))
    assert run.seconds_of("epoch_start") == pytest.approx(10 * 0.3)


OPERATIONS = [
    RecordedOperation("source", "from_tensor_slices", "source", "train.py", 3),
    RecordedOperation("cache", "cache", "cache", "train.py", 5, parent_ids=["source"]),
]


def epochs(
    lengths: Sequence[float],
    outcome: ScriptOutcome = "finished",
    root: str = "cache",
    kind: str = "cache",
    planned_steps: int | None = None,
    steps_per_epoch: int | None = None,
) -> Run:
    """A `fit` whose epochs take so many seconds, one second apart."""
    run, now = Written(), 2.0
    run.span("script", 1.0, 60.0)
    run.span("fit", 1.5, 59.0, "fit", 20)
    for length in lengths:
        run.span("steps", now, now + length, "loop1")
        now += length + 1.0
    loop = fit_loop(root_op_id=root)
    loop.keras.steps_per_epoch = steps_per_epoch
    loop.planned_steps = planned_steps
    operations = [OPERATIONS[0], replace(OPERATIONS[1], kind=kind)]
    return ledger(run, recording_of(loop, operations=operations), 60.0, outcome)


def test_what_the_first_epoch_took_longer_is_no_step_of_the_others() -> None:
    run = epochs([9.0, 2.0, 3.0, 1.0])

    (row,) = (row for row in run.parts if row.what == WHAT)
    assert (row.seconds, row.line) == (pytest.approx(6.45), 5)  # but for its wait of 50 ms
    assert run.seconds_of("steps") == pytest.approx(15.0, abs=0.1)


def test_an_epoch_that_fills_a_cache_is_not_carried_on_to_all() -> None:
    """Five epochs of 300 steps, of which a part of the first was seen."""
    run = epochs([9.0], "stopped", planned_steps=1500, steps_per_epoch=300)
    assert run.scope == "1000_steps"
    assert "fills its cache" in run.projected_missing
    other = epochs([9.0], "stopped", root="source", planned_steps=1500, steps_per_epoch=300)
    assert (other.scope, other.projected_missing) == ("run", None)
    assert epochs([9.0]).projected_missing is None


def predicting() -> Written:
    """Two epochs of twenty steps of 90 ms: a wait of 10 ms, then 30 ms, and a `predict`.

    That takes 50 ms and interrupts the step 10 ms after its begin.
    """
    run = Written()
    run.span("script", 0.0, 100.0)
    now = 1.0
    for _ in range(2):
        run.span("iterator", now, now + 0.1, "loop1")
        now += 0.1
        for _ in range(20):
            handed = now + 0.01
            run.span("first_batch", now, handed, "loop1")
            run.steps(handed, handed + 0.01)
            run.span("evaluation", handed + 0.01, handed + 0.06, "predict", 33)
            now = handed + 0.08
        now += 0.2
    run.timeline.spans[0] = run.span("script", 0.0, now)
    run.timeline.spans.pop()
    return run


def seconds(run: Written, loop: RecordedLoop) -> dict[tuple[str, str | None], float]:
    end = run.timeline.spans[0].end_ns
    assert end is not None
    return rows(ledger(run, recording_of(loop, windows=[]), end / 1e9))


def test_the_rest_of_a_step_that_predicts_is_no_end_of_an_epoch() -> None:
    assert seconds(predicting(), own_loop(steps=40)) == {
        ("before_training", None): 1.0,
        ("epoch_start", "making the iterator"): 0.2,
        # The first wait of each epoch.
        ("epoch_start", None): 0.02,
        # Forty times 30 ms, and the waits in between; what follows the last `predict` of an epoch
        # is not told from its end.
        ("steps", None): pytest.approx(38 * 0.04 + 2 * 0.01),
        ("evaluation", "`predict`"): 2.0,
        ("epoch_end", None): pytest.approx(0.2 + 0.02),
        ("after_training", None): pytest.approx(0.2 + 0.02),
    }


def fits(*taken: int) -> Written:
    """Calls of one `fit`, each with so many epochs of 2 s."""
    run, now = Written(), 1.0
    run.span("script", 0.0, 1.0 + sum(3.0 * epochs + 1.0 for epochs in taken))
    for epochs in taken:
        run.span("fit", now, now + 3.0 * epochs, "fit", FIT_LINE)
        run.epochs(epochs, now, 0.5, 2.0, 0.5)
        now += 3.0 * epochs + 1.0
    return run


@pytest.mark.parametrize(
    ("count", "taken", "given", "of_loop", "planned"),
    [
        (1, 12, 100, {}, 100),  # as with EarlyStopping
        (5, 4, 4, {}, 20),
        (2, 3, 4, {"planned_rounds": 5}, 20),  # a loop around it that broke off
    ],
)
def test_a_run_that_is_over_had_the_epochs_that_were_seen(
    count: int, taken: int, given: int, of_loop: dict[str, Any], planned: int
) -> None:
    run = fits(*[taken] * count)
    end_ns = run.timeline.spans[0].end_ns
    assert end_ns is not None
    found = ledger(run, recording_of(fit_loop(epochs=given, **of_loop)), end_ns / 1e9)

    assert (found.epochs_seen, found.epochs_planned) == (count * taken, planned)
    assert found.epochs == count * taken


def test_what_interrupts_steps_ends_no_epoch() -> None:
    """As a callback that predicts every so many batches; an epoch has 200 steps of 10 ms."""
    step = in_doubt(ns(0.01), 1)
    each_half = [ns(0.5)] * 12
    loop = fit_loop(epochs=10)
    assert epochs_taken(Epochs(each_half, [], {}), loop, step) == 3.0
    assert epochs_taken(Epochs([ns(0.5)] * 2, [], {}), loop, step) == 1.0
    assert epochs_taken(Epochs([ns(2.0)] * 3, [], {}), loop, step) == 3.0
