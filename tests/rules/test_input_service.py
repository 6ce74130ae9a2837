"""A tf.data service: where it is the last candidate, and what it can't take over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipediag.rules.input_service import RULE, last_resort
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.session.recording import RecordedFunction
from tests.factories import make_loop, make_verdict
from tests.records import make_operation
from tests.rules.sessions import batch, cases, chain, session_of, source
from tests.trials.bench import make_finding


def function(*graph_ops: str) -> RecordedFunction:
    return RecordedFunction("f", "train.py", 3, False, dict.fromkeys(graph_ops, 1))


def a_map(*graph_ops: str, **overrides: Any) -> Operation:
    return make_operation("map", "map", line=5, function=function(*graph_ops), **overrides)


SHUFFLE = make_operation("shuffle", "shuffle", line=2, parameters={"buffer_size": 100})
AHEAD = make_operation("ahead", "prefetch", line=10)


def slow(*ops: Operation, **overrides: Any) -> Session:
    verdict = make_verdict(bottleneck="input", severity="high")
    chain = ops or (source(), SHUFFLE, a_map(), batch(), AHEAD)
    return session_of(*chain, **{"verdict": verdict, **overrides})


CACHE = make_operation("cache", "cache", line=7)
TAKE = make_operation("take", "take", line=7)


@cases(
    {
        "Python": ([a_map("EagerPyFunc")],),
        "a table": ([a_map("LookupTableFindV2")],),
        "a variable": ([a_map("ReadVariableOp")],),
        "a cache": ([CACHE, a_map()],),
        "a count": ([TAKE, a_map()],),
        "a seed": ([replace(SHUFFLE, parameters={"seed": 3}), a_map()],),
        "one order": ([replace(SHUFFLE, parameters={"reshuffle_each_iteration": False}), a_map()],),
    },
    "above",
)
def test_what_other_hosts_cannot_take_over_stays_here(above: list[Operation]) -> None:
    session = slow(source(), *above, batch(), pipeline={"bottleneck_op_id": "map"})
    assert last_resort(session, []) == []


BEHIND = slow(source(), SHUFFLE, a_map(), batch(), TAKE, pipeline={"bottleneck_op_id": "map"})


def limited_within(outer: str) -> Session:
    """A pipeline whose slowest operation is in the function of this one; `take` stays here."""
    first, second = (make_operation(id, "flat_map", line=4) for id in ("first", "second"))
    ops = chain(source(), SHUFFLE, first, batch(), TAKE, second)
    inner = make_operation("inner", "map", inside_function_of=outer, function=function())
    return slow(pipeline={"ops": [*ops, inner], "bottleneck_op_id": "inner"})


@pytest.mark.parametrize(
    ("session", "in_order"),
    [
        (slow(), False),
        # An order that nothing shuffled is for the user to give up.
        (slow(source(), a_map(), batch()), True),
        # What stands behind the costly part stays with the training.
        (BEHIND, False),
        (limited_within("first"), False),
    ],
)
def test_all_up_to_the_last_batch_is_made_elsewhere(session: Session, in_order: bool) -> None:
    (finding,) = last_resort(session, [])
    assert finding.status == "informative"
    assert ("another order" in finding.advice) is in_order


@pytest.mark.parametrize(
    "session",
    [
        slow(verdict=make_verdict(bottleneck="compute")),
        slow(verdict=make_verdict(bottleneck="input", severity="ok")),
        slow(loops=[make_loop(replicas=2)]),
        slow(pipeline={"options": {"deterministic": True}}),
        limited_within("second"),
    ],
)
def test_nothing_is_said_where_it_is_no_candidate(session: Session) -> None:
    assert last_resort(session, []) == []


def test_a_cheaper_change_goes_first_and_it_follows_where_that_failed() -> None:
    cheaper = make_finding("a")
    assert last_resort(slow(), [cheaper]) == []
    assert [one.rule for one in last_resort(slow(), [cheaper], failed=True)] == [RULE.id]
