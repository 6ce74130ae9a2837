"""What an edit's trace takes more than that of the step as written."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.session.edits import Change, Remove, SetModel
from pipediag.session.trials import TrialBlock
from pipediag.trials.bench import FIRST_TRACE_S, NOT_KNOWN, RETRACED, FirstCalls
from pipediag.trials.executor import Preparation, Variant
from pipediag.trials.schedule import TrialOutcome
from pipediag.vocabulary import BASE
from tests.trials.bench import MODEL_CHANGE, FakeExecutor, make_edit, try_edits

SECOND = 1_000_000_000
XLA = SetModel({"jit_compile": True})
GRAPH = SetModel({"run_eagerly": False})
PREFETCHED = Remove("op2")


def block(arm: str, first_step_ms: float | None) -> TrialBlock:
    return TrialBlock(
        arm=arm,
        round=1,
        examples_per_s=1.0,
        batches=5,
        duration_ms=1.0,
        first_step_ms=first_step_ms,
    )


BLOCKS = [block("edit", 100.0), block("edit", 300.0), block(BASE, 500.0), block(BASE, 500.0)]


def first_calls(**seconds: float) -> FirstCalls:
    found = FirstCalls()
    for name, taken_s in seconds.items():
        variant = RETRACED if name == "anew" else Variant(name)
        found.note(variant, Preparation([], int(taken_s * SECOND)))
    return found


def test_it_is_what_later_first_steps_and_the_step_as_written_do_not_take() -> None:
    """Of 2 s, 0.2 s are the first batch; the step as written takes 1 s, of which 0.5 s are."""
    once = first_calls(edit=2.0, anew=1.0).once(Variant("edit", (XLA,)), BLOCKS)
    assert once["once_s"] == pytest.approx(1.8 - 0.5)
    off_s = (0.2**2 + 0.1**2 + 0.1**2) ** 0.5  # a tenth of each, and half of what waits span
    assert once["once_ci95_s"] == pytest.approx((1.3 - off_s, 1.3 + off_s), abs=1e-4)


def test_a_step_that_was_not_traced_at_all_has_the_first_trace_of_its_process() -> None:
    once = first_calls(edit=1.2).once(Variant("edit", (GRAPH,)), BLOCKS)
    assert once["once_s"] == pytest.approx(1.0 + FIRST_TRACE_S / 2)
    assert once["once_ci95_s"] is not None
    low, high = once["once_ci95_s"]
    assert low < 1.0
    assert high > 1.0 + FIRST_TRACE_S


@pytest.mark.parametrize(
    ("variant", "seconds", "blocks"),
    [
        (Variant("edit", (PREFETCHED,)), {"edit": 2.0, "anew": 1.0}, BLOCKS),
        (Variant("edit", (XLA,), runs_through=True), {"edit": 2.0, "anew": 1.0}, BLOCKS),
        (Variant("edit", (XLA,)), {"edit": 2.0}, BLOCKS),
        (Variant("edit", (XLA,)), {"anew": 1.0}, BLOCKS),
        (Variant("edit", (XLA,)), {"edit": 2.0, "anew": 1.0}, BLOCKS[2:]),
        (Variant("edit", (XLA,)), {"edit": 2.0, "anew": 1.0}, [block("edit", None), *BLOCKS[2:]]),
    ],
)
def test_it_is_not_known(
    variant: Variant, seconds: dict[str, float], blocks: list[TrialBlock]
) -> None:
    assert first_calls(**seconds).once(variant, blocks) == NOT_KNOWN


def tried(executor: FakeExecutor, changes: tuple[Change, ...] = MODEL_CHANGE) -> TrialOutcome:
    return try_edits(executor, [make_edit("a", changes=changes)])


def executor(**overrides: Any) -> FakeExecutor:
    made = {"a": 2 * SECOND, RETRACED.name: SECOND}
    values = {"speeds": {"a": 2.0}, "first_call_ns": made, "first_step_ns": SECOND // 4}
    return FakeExecutor(**{**values, **overrides})


def test_the_step_as_written_is_made_anew_once_for_all_edits() -> None:
    faster = executor(speeds={"a": 2.0, "b": 3.0})
    edits = [make_edit(name, changes=(SetModel({name: True}),)) for name in "ab"]
    try_edits(faster, edits)
    assert faster.count("prepare", RETRACED.name) == 1
    assert faster.count("block", RETRACED.name) == 0


def test_it_is_left_as_it_is_where_that_would_take_the_time_of_rounds() -> None:
    slow = executor(prepare_s=6.0)
    outcome = tried(slow)
    assert slow.count("prepare", RETRACED.name) == 0
    assert outcome.trials["a"].state == "confirmed"
    assert outcome.trials["a"].once_s is None
