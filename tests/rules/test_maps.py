"""Maps that run for each row instead of each batch, or too few calls at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipediag.rules.maps import PER_ELEMENT_MAP, PYTHON_EACH_ROW
from pipediag.rules.parallel_maps import EACH_ROW, PARALLEL_MAP, settled
from pipediag.session.edits import (
    AUTOTUNE,
    IN_BATCHES,
    IN_PROCESSES,
    Edit,
    Move,
    Replace,
    SetOptions,
    SetParameters,
)
from pipediag.session.findings import Finding
from pipediag.session.loops import Differential
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.session.recording import RecordedFunction
from pipediag.session.trials import NOT_TRIED, Trial
from pipediag.vocabulary import TrialState
from tests.factories import make_keras, make_loop
from tests.ledgers import make_waits
from tests.records import make_function, make_input_wait, make_operation, make_steps
from tests.rules.sessions import (
    batch,
    cases,
    changes,
    decides,
    keeps_up,
    only,
    run,
    session_of,
    source,
)


def cheap(graph_ops: dict[str, int] | None = None, **overrides: Any) -> Operation:
    values: dict[str, Any] = {
        "elements": 256.0,
        "self_ms_per_step": 5.0,
        "function": make_function(graph_ops=graph_ops or {"Cast": 1, "Mul": 2}),
    }
    return make_operation("map", "map", **{**values, **overrides})


def looking_up(**more: int) -> RecordedFunction:
    graph_ops = {"Placeholder": 4, "Const": 4, "NotEqual": 1, "LookupTableFindV2": 1, **more}
    return make_function(stateful=True, graph_ops=graph_ops)


def varying(**more: int) -> RecordedFunction:
    """A function that parses one feature whose length varies."""
    return make_function(graph_ops={"ParseExampleV2": 1, **more}, padded_features=1)


def splitting(*calls: str) -> RecordedFunction:
    graph_ops = {"StringLower": 1, "StringSplitV2": 1, "LookupTableFindV2": 1}
    return make_function(stateful=True, graph_ops=graph_ops, python_calls=list(calls))


def rows(*ops: Operation, **overrides: Any) -> Session:
    return session_of(source(), *ops, batch(256), **overrides)


def filtered(graph_ops: dict[str, int] | None = None) -> Operation:
    function = make_function(graph_ops=graph_ops or {"GreaterEqual": 1, "Const": 1})
    return make_operation("filter", "filter", function=function)


def ending(last: Operation) -> Session:
    return session_of(source(), cheap(), filtered(), last)


MOVED = (Move("map", "batch"),)


def second_map(self_ms: float) -> Operation:
    return replace(cheap(self_ms_per_step=self_ms), id="more", line=13)


def in_batches(*ids: str) -> tuple[Replace, ...]:
    ends = [{"first": one == ids[0], "last": one == ids[-1]} for one in ids]
    pairs = zip(ids, ends, strict=True)
    return tuple(Replace(one, IN_BATCHES, {"elements": 64, **values}) for one, values in pairs)


ALONE = (Replace("map", IN_BATCHES, {"elements": 64}),)
APART = in_batches("map", "filter")
VECTORIZED = (Move("map", "batch", vectorized=True),)
HASHES = {"StringToHashBucketFast": 1}
BESIDE, LITTLE = (
    {
        "input_wait": make_input_wait(native_percent=1.0, contention="cpu"),
        "differential": Differential(
            step_ms=8.0, ci95_ms=(7.5, 8.5), steps=20, input_share_percent=share
        ),
    }
    for share in (20.0, 2.0)
)
LABELS = make_function(graph_ops={"Cast": 1, "Const": 1}, returns_constant=True)


test_a_map_of_short_calls_is_moved_behind_the_batch = decides(
    PER_ELEMENT_MAP,
    {
        "cast": (rows(cheap()), ("fail", MOVED)),
        "lookup": (rows(cheap(function=looking_up(SelectV2=2))), ("fail", MOVED)),
        "parses": (rows(cheap({"ParseExampleV2": 1, "Const": 3})), ("fail", VECTORIZED)),
        "a constant label": (rows(cheap(function=LABELS)), ("fail", VECTORIZED)),
        "split": (rows(cheap(function=splitting("tf.strings.string_split_v2"))), "fail"),
        "split by a layer": (rows(cheap(function=splitting("builtins.len"))), ("fail", MOVED)),
        "along an axis": (rows(cheap({"MatMul": 1, "Mul": 1})), ("fail", VECTORIZED)),
        "may not broadcast": (rows(cheap({"Cumsum": 1, **HASHES})), ("informative", MOVED)),
        "few calls": (rows(cheap(elements=4.0)), ("informative", MOVED)),
        "keeps up": (rows(cheap(), **keeps_up()), "pass"),
        "takes the step's CPUs": (rows(cheap(), **keeps_up(), **BESIDE), ("informative", MOVED)),
        "fills a table": (rows(cheap(function=looking_up(LookupTableInsertV2=1))), "pass"),
        "calls Python": (rows(cheap(function=looking_up(EagerPyFunc=1))), "pass"),
        "filter between": (rows(cheap(), make_operation("f", "filter")), ("fail", ALONE)),
        "filter that broadcasts": (rows(cheap(), filtered()), ("fail", APART)),
        "may not broadcast, filter": (rows(cheap({"Cumsum": 1}), filtered()), "pass"),
        "a constant label, filter": (rows(cheap(function=LABELS), filtered()), "pass"),
        "known length": (ending(replace(batch(256), cardinality=9)), "pass"),
        "errors left out behind a filter": (
            rows(cheap(), filtered(), make_operation("i", "ignore_errors")),
            "pass",
        ),
        "rows made dense": (rows(cheap({"SparseToDense": 1}), filtered()), "pass"),
        "and cut": (
            rows(cheap({"SparseToDense": 1, "StridedSlice": 1}), filtered()),
            ("fail", APART),
        ),
        "lengths that vary": (rows(cheap(function=varying()), filtered()), "pass"),
        "and their cut": (
            rows(cheap(function=varying(StridedSlice=1)), filtered()),
            ("fail", APART),
        ),
        "endless": (ending(replace(batch(256), cardinality=-1)), ("fail", APART)),
    },
)


def before_cache(finding: Finding) -> tuple[Any, ...]:
    assert finding.edit is not None
    return finding.edit.before_cache


def test_a_map_gets_batches_of_its_own_before_a_cache_that_is_to_follow_it() -> None:
    several, mixed = replace(cheap(), id="more", line=13), make_operation("shuffle", "shuffle")
    assert before_cache(only(PER_ELEMENT_MAP, rows(mixed, cheap()))) == ALONE
    assert before_cache(only(PER_ELEMENT_MAP, rows(cheap()))) == ()  # batches may be kept
    once = rows(mixed, cheap(), loops=[make_loop(keras=make_keras(epochs=1))])
    assert before_cache(only(PER_ELEMENT_MAP, once)) == ()
    both = run(PER_ELEMENT_MAP, rows(mixed, cheap(), several))[0]
    assert before_cache(both) == in_batches("map", "more")
    held = run(PER_ELEMENT_MAP, rows(mixed, replace(cheap(), cardinality=900), several))[0]
    assert before_cache(held) == ()  # the length of several is not kept
    vectorized = only(PER_ELEMENT_MAP, rows(mixed, cheap({"MatMul": 1, "Mul": 1})))
    assert (changes(vectorized), before_cache(vectorized)) == (VECTORIZED, ())


def test_batches_are_handed_on_to_maps_that_matter_and_read_nowhere_else() -> None:
    session = rows(cheap(), second_map(5.0), filtered())
    first, behind = run(PER_ELEMENT_MAP, session)
    assert changes(first) == in_batches("map", "more", "filter")
    assert changes(behind) is None
    session.ops.append(make_operation("other", "batch", parent_ids=["map"]))
    assert changes(run(PER_ELEMENT_MAP, session)[0]) == ALONE


def test_what_batching_buys_is_bounded_and_batches_must_come_out_equal() -> None:
    finding = only(PER_ELEMENT_MAP, rows(cheap()))
    # Of 7 ms of wait 5.2 ms are explained: the map's 5 ms go, and what nothing explains.
    assert finding.speedup_at_most == pytest.approx(10 / (10 - 7.1), abs=0.001)
    assert finding.evidence["call_us"] == pytest.approx(19.53)
    assert finding.evidence["wait_not_counted_ms"] == pytest.approx(7 - 0.2 - 5)
    assert changes(finding) == MOVED
    assert finding.edit.check == "equal"


UNSEEN: dict[str, Any] = {"elements": None, "self_ms_per_step": None}
GENERATOR = make_operation("generator", "from_generator")
CACHED = make_operation("cache", "cache")


def filling(*above: Operation, buffer_size: int = 5_000, first_batches_s: float = 16.0) -> Session:
    """Epochs of which most is a wait of 1.6 s for the first batch, in which a shuffle is filled."""
    values = {
        "loops": [make_loop(epoch_ends=10)],
        "steps": make_steps(fill_ms=1_600.0),
        "run": make_waits(first_batches_s),
    }
    shuffle = make_operation("shuffle", "shuffle", parameters={"buffer_size": buffer_size})
    ops = [replace(one, **UNSEEN) for one in (source(), *above)]
    return session_of(*ops, shuffle, batch(256), **values, **keeps_up())


@cases(
    {
        "fills a shuffle": (filling(cheap()), ("fail", MOVED)),
        "may not broadcast": (filling(cheap({"Cumsum": 1, **HASHES})), ("informative", MOVED)),
        "behind a generator": (filling(GENERATOR, cheap()), ("pass", None)),
        "before a cache": (filling(cheap(), CACHED), ("pass", None)),
        "long calls": (filling(cheap(), buffer_size=3_999), ("pass", None)),
        "short waits": (filling(cheap(), first_batches_s=0.01), ("pass", None)),
    },
    "session, expected",
)
def test_a_map_that_fills_a_shuffle_is_waited_for_by_first_batches(
    session: Session, expected: tuple[str, object]
) -> None:
    finding = only(PER_ELEMENT_MAP, session)
    assert (finding.status, changes(finding)) == expected
    assert finding.edit is None or (finding.edit.whole_epoch and finding.part == "epoch_start")


def second(graph_ops: dict[str, int] | None = None) -> Operation:
    return replace(cheap(graph_ops), id="second", line=13)


BOTH = (Move("map", "batch"), Move("second", "map"))


@pytest.mark.parametrize(
    ("maps", "first_changes", "second_changes"),
    [
        ((cheap(function=looking_up()), second()), BOTH, None),
        ((cheap({"ParseExampleV2": 1, **HASHES}), second()), BOTH, None),
        (
            (cheap(), second({"MatMul": 1})),
            (Move("map", "batch"), Move("second", "map", vectorized=True)),
            None,
        ),
        ((cheap(), second({"Cumsum": 1, **HASHES})), ALONE, (Move("second", "batch"),)),
    ],
)
def test_maps_that_use_its_results_move_with_it_if_all_broadcast(
    maps: tuple[Operation, ...], first_changes: object, second_changes: object
) -> None:
    first, behind = run(PER_ELEMENT_MAP, rows(*maps))
    assert (first.status, changes(first), changes(behind)) == (
        "fail",
        first_changes,
        second_changes,
    )


# Calls at once

TUNED = (SetParameters("map", {"num_parallel_calls": AUTOTUNE}),)
MANY = (
    SetParameters("map", {"num_parallel_calls": 16}),
    SetOptions({"threading.private_threadpool_size": 16}),
)
SLEEPS = {
    "python_calls_per_step": 32.0,
    "python_wall_ms_per_step": 8.0,
    "python_cpu_ms_per_step": 0.4,
}
COMPUTES = {**SLEEPS, "python_cpu_ms_per_step": 7.9}
LOOKUP = {"LookupTableFindV2": 1}


def a_map(graph_ops: dict[str, int] | None = None, **overrides: Any) -> Operation:
    values: dict[str, Any] = {
        "elements": 32.0,
        "self_ms_per_step": 9.0,
        "function": make_function(stateful=True, graph_ops=graph_ops or {"PyFunc": 1}),
    }
    values |= overrides
    return make_operation(values.pop("id", "map"), "map", **values)


def session_with(*ops: Operation, **overrides: Any) -> Session:
    return session_of(source(), *ops, batch(), **overrides)


def outer(kind: str, calls: int | None = None) -> Operation:
    parameters = {"num_parallel_calls": calls}
    return make_operation(
        "outer", kind, self_ms_per_step=9.0, function=make_function(), parameters=parameters
    )


@pytest.mark.parametrize(
    ("op", "first"), [(a_map(), TUNED), (a_map(**SLEEPS), MANY), (a_map(**COMPUTES), TUNED)]
)
def test_a_serial_map_with_python_is_tried_both_ways_and_off_cpu_time_orders_them(
    op: Operation, first: object
) -> None:
    findings = run(PARALLEL_MAP, session_with(op))
    assert [finding.status for finding in findings] == ["fail", "informative"]
    found = [changes(finding) for finding in findings]
    assert found[0] == first
    assert all(way in found for way in (TUNED, MANY))


@pytest.mark.parametrize(
    ("graph_ops", "effect"),
    [(LOOKUP, "same results"), ({"RandomUniform": 1}, "same up to order or rounding")],
)
def test_only_a_lookup_keeps_its_results_in_parallel(
    graph_ops: dict[str, int], effect: str
) -> None:
    findings = run(PARALLEL_MAP, session_with(a_map(graph_ops)))
    assert [changes(finding) for finding in findings] == [TUNED, MANY]
    assert {finding.effect_on_results for finding in findings} == {effect}


def test_maps_of_one_line_are_weighed_and_changed_together() -> None:
    """Of five maps of 0.3 ms on a line, three of which are serial; a step waits for 7 of 10 ms."""
    serial = [a_map(LOOKUP, id=f"serial{n}", line=5, self_ms_per_step=0.3) for n in range(3)]
    plain = [a_map(function=STATELESS, id=f"plain{n}", line=5) for n in range(2)]
    other = a_map(LOOKUP, id="other", line=6, self_ms_per_step=0.3)

    alike = run(PARALLEL_MAP, session_with(*serial, *plain))
    assert [one.status for one in alike] == ["fail", "informative"]
    assert alike[0].evidence["delay_ms_per_step"] == pytest.approx(0.9)
    changed = changes(alike[0])
    assert changed is not None
    assert {one.op_id for one in changed if isinstance(one, SetParameters)} == {
        one.id for one in (*serial, *plain)
    }
    apart = run(PARALLEL_MAP, session_with(serial[0], other))
    assert {one.status for one in apart} == {"pass"}
    fused = [serial[0], *(replace(one, fused_into="serial0") for one in serial[1:])]
    assert {one.status for one in run(PARALLEL_MAP, session_with(*fused, *plain))} == {"pass"}


def test_a_serial_map_that_fills_a_shuffle_is_tried_in_whole_epochs() -> None:
    finding = only(PARALLEL_MAP, filling(a_map(LOOKUP)))
    assert (finding.status, finding.part, changes(finding)) == ("fail", "epoch_start", TUNED)
    assert finding.edit.whole_epoch


STATELESS = make_function()
PARALLEL = a_map(parameters={"num_parallel_calls": -1}, parallelism=2)
INNER = a_map(function=STATELESS, inside_function_of="outer", self_ms_per_step=8.0)


test_which_maps_are_given_more_calls = decides(
    PARALLEL_MAP,
    {
        "one call": (
            session_with(a_map(function=STATELESS, parameters={"num_parallel_calls": 1})),
            ("fail", TUNED),
        ),
        "in parallel": (
            session_with(a_map(inside_function_of="outer"), outer("interleave", -1)),
            "pass",
        ),
        "few threads": (session_with(PARALLEL), ("fail", MANY)),
        "keeps up": (session_with(a_map(**SLEEPS), **keeps_up()), "pass"),
    },
)


def trial(state: TrialState, speedup: float) -> Trial:
    return Trial(state=state, reason=None, speedup=speedup, ci95=(speedup / 1.1, speedup * 1.1))


PROCESSES = (Replace("map", IN_PROCESSES, {"processes": 2}),)
LONG = {**COMPUTES, "python_calls_per_step": 2.0}
LONG_IN_PARALLEL = replace(PARALLEL, **LONG)
COUNTS = make_function(stateful=True, graph_ops={"PyFunc": 1}, side_effect="it counts")


@cases(
    {
        "computes": (a_map(**LONG), True),
        "in parallel": (LONG_IN_PARALLEL, True),
        "short calls": (a_map(**COMPUTES), False),
        "waits": (a_map(**{**LONG, "python_cpu_ms_per_step": 4.4}), False),
        "changes something": (a_map(function=COUNTS, **LONG), False),
    },
    "op, tried",
)
def test_python_that_computes_for_long_is_tried_in_processes(op: Operation, tried: bool) -> None:
    assert (PROCESSES in map(changes, run(PARALLEL_MAP, session_with(op)))) is tried


def after(
    *trials: tuple[TrialState, float],
    python: dict[str, float] = SLEEPS,
    graph_ops: dict[str, int] | None = None,
) -> tuple[Session, list[Finding]]:
    """The ways of a function, 16 calls first where it sleeps, with what their trials showed."""
    session = session_with(a_map(graph_ops, **python))
    findings = [
        finding.but(trial=trial(state, speedup))
        for finding, (state, speedup) in zip(run(PARALLEL_MAP, session), trials, strict=True)
    ]
    return session, findings


@pytest.mark.parametrize(
    ("python", "trials", "way"),
    [
        (SLEEPS, [("confirmed", 6.7), ("confirmed", 1.8)], MANY),
        (SLEEPS, [("refuted", 1.0), ("confirmed", 1.8)], TUNED),
        (LONG, [("refuted", 1.0), ("confirmed", 1.8), ("refuted", 1.0)], PROCESSES),
        (LONG, [("confirmed", 1.9), ("confirmed", 1.8), ("refuted", 1.0)], TUNED),
    ],
)
def test_the_fastest_confirmed_way_is_the_one_advice(
    python: dict[str, float], trials: list[tuple[TrialState, float]], way: object
) -> None:
    session, findings = after(*trials, python=python)
    (finding,) = settled(session, findings)
    assert (finding.status, finding.severity) == ("fail", PARALLEL_MAP.severity)
    assert changes(finding) == way
    assert all(one.edit and one.edit.label in str(finding.evidence) for one in findings)


def test_where_all_are_refuted_what_remains_is_advised() -> None:
    remains, refuted = settled(*after(("refuted", 1.0), ("refuted", 0.97)))
    assert (remains.status, remains.edit, remains.trial.state) == ("fail", None, "not_tried")
    assert refuted.trial.state == "refuted"


REFUTED = Trial(state="refuted", reason=None, speedup=1.0)
ROW_BY_ROW = PYTHON_EACH_ROW.finding("fail", op=a_map(), edit=Edit(EACH_ROW, "moved", MOVED))


@cases(
    {
        "open": (after(("inconclusive", 1.1), ("refuted", 0.97)),),
        "no Python": (after(("refuted", 1.0), ("refuted", 0.97), graph_ops=LOOKUP),),
        "processes do not help either": (after(*[("refuted", 1.0)] * 3, python=LONG),),
        "for each row": ((session_with(a_map()), [ROW_BY_ROW.but(trial=REFUTED)]),),
    },
    "tried",
)
def test_what_is_open_or_needs_no_processes_stays_as_it_is(
    tried: tuple[Session, list[Finding]],
) -> None:
    assert settled(*tried) == tried[1]


def test_a_way_that_was_tried_takes_the_place_of_one_that_was_not() -> None:
    session, (open_, other) = after(("inconclusive", 1.1), ("refuted", 0.97))
    untried = other.but(trial=NOT_TRIED)
    assert settled(session, [open_, untried]) == [open_]
    assert settled(session, [untried]) == [untried]
