from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.maps import PARALLEL_MAP, settled
from pipediag.rules.search import SEARCH
from pipediag.session.edits import AUTOTUNE, Edit, SetOptions, SetParameters
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.session.trials import Trial
from pipediag.vocabulary import TrialState
from tests.records import make_function, make_operation
from tests.rules.sessions import batch, keeps_up, run, session_of, source, straddles

TUNED = (SetParameters("map", {"num_parallel_calls": AUTOTUNE}),)
MANY = (
    SetParameters("map", {"num_parallel_calls": 16}),
    SetOptions({"threading.private_threadpool_size": 16}),
)
PYTHON = {"PyFunc": 1}
SLEEPS = {
    "python_calls_per_step": 32.0,
    "python_wall_ms_per_step": 8.0,
    "python_cpu_ms_per_step": 0.4,
}
COMPUTES = {**SLEEPS, "python_cpu_ms_per_step": 7.9}


def a_map(graph_ops: dict[str, int] | None = None, **overrides: Any) -> Operation:
    values: dict[str, Any] = {
        "elements": 32.0,
        "self_ms_per_step": 9.0,
        "function": make_function(stateful=True, graph_ops=graph_ops or PYTHON),
    }
    return make_operation("map", "map", **{**values, **overrides})


def session_with(op: Operation, **overrides: Any) -> Session:
    return session_of(source(), op, batch(), **overrides)


def check(op: Operation, **overrides: Any) -> list[Finding]:
    return run(PARALLEL_MAP, session_with(op, **overrides))


def changes(findings: list[Finding]) -> list[object]:
    return [finding.edit.changes for finding in findings if finding.edit is not None]


@pytest.mark.parametrize("measured", [{}, SLEEPS, COMPUTES])
def test_a_serial_map_with_python_is_tried_both_ways_whatever_was_measured(
    measured: dict[str, float],
) -> None:
    findings = check(a_map(**measured))

    assert [finding.status for finding in findings] == ["fail", "informative"]
    assert sorted(map(str, changes(findings))) == sorted(map(str, [TUNED, MANY]))


@pytest.mark.parametrize(("measured", "first"), [({}, TUNED), (SLEEPS, MANY), (COMPUTES, TUNED)])
def test_off_cpu_time_decides_which_goes_first(
    measured: dict[str, float], first: tuple[object, ...]
) -> None:
    assert changes(check(a_map(**measured)))[0] == first


def test_what_was_measured_is_said() -> None:
    finding = check(a_map(**SLEEPS))[0]

    assert finding.evidence["python_calls_per_step"] == 32.0
    assert finding.evidence["python_ms_per_call"] == 0.25
    assert finding.evidence["python_off_cpu_percent"] == 95.0


def test_any_stateful_function_is_tried_both_ways() -> None:
    findings = check(a_map({"LookupTableFindV2": 1}))

    assert changes(findings) == [TUNED, MANY]
    assert {finding.effect_on_results for finding in findings} == {"same results"}
    (drawn, _) = check(a_map({"RandomUniform": 1}))
    assert drawn.effect_on_results == "same up to order or rounding"


def test_one_call_of_a_stateless_function_is_given_more() -> None:
    op = a_map(function=make_function(), parameters={"num_parallel_calls": 1})
    (finding,) = check(op)

    assert (finding.status, changes([finding])) == ("fail", [TUNED])


def test_a_stateless_map_without_a_number_is_made_parallel_by_tensorflow() -> None:
    (finding,) = check(a_map(function=make_function()))
    assert finding.status == "pass"


def test_a_map_within_a_serial_flat_map_is_serial_too() -> None:
    outer = make_operation("outer", "flat_map", self_ms_per_step=9.0, function=make_function())
    inner = a_map(function=make_function(), inside_function_of="outer", self_ms_per_step=8.0)
    session = session_of(source(), inner, outer, batch())

    (finding,) = run(PARALLEL_MAP, session)

    assert (finding.status, changes([finding])) == ("fail", [TUNED])
    assert finding.edit is not None
    assert finding.edit.caveat is not None


def test_a_map_within_a_parallel_interleave_is_left_alone() -> None:
    parameters = {"num_parallel_calls": -1}
    outer = make_operation("outer", "interleave", function=make_function(), parameters=parameters)
    session = session_of(source(), a_map(inside_function_of="outer"), outer, batch())

    (finding,) = run(PARALLEL_MAP, session)

    assert finding.status == "pass"


def test_parallel_python_gets_as_many_threads_as_calls() -> None:
    op = a_map(parameters={"num_parallel_calls": -1}, parallelism=2)
    (finding,) = check(op)
    assert (finding.status, changes([finding])) == ("fail", [MANY])
    options = {"options": {"threading.private_threadpool_size": 16}}
    (finding,) = run(PARALLEL_MAP, session_with(op, pipeline=options))
    assert finding.status == "pass"


@pytest.mark.parametrize("overrides", [keeps_up(), straddles()])
def test_nothing_is_tried_where_input_does_not_matter(overrides: dict[str, Any]) -> None:
    (finding,) = check(a_map(**SLEEPS), **overrides)
    assert (finding.status, finding.edit) == ("informative", None)


def test_no_map_at_all() -> None:
    (finding,) = run(PARALLEL_MAP, session_of(source(), batch()))
    assert finding.status == "not-applicable"


def trial(state: TrialState, speedup: float) -> Trial:
    return Trial(state=state, reason=None, speedup=speedup, ci95=(speedup / 1.1, speedup * 1.1))


def tried(*trials: tuple[TrialState, float], op: Operation | None = None) -> list[Finding]:
    """The two ways of a sleeping function, 16 calls first, with what their trials showed."""
    session = session_with(op or a_map(**SLEEPS))
    findings = [
        finding.model_copy(update={"trial": trial(state=state, speedup=speedup)})
        for finding, (state, speedup) in zip(run(PARALLEL_MAP, session), trials, strict=True)
    ]
    return settled(session, findings)


def test_the_fastest_confirmed_way_is_the_one_advice() -> None:
    (finding,) = tried(("confirmed", 6.7), ("confirmed", 1.8))

    assert changes([finding]) == [MANY]
    assert "1.8x" in str(finding.evidence["also_tried"])


def test_the_second_way_takes_the_place_of_a_refuted_first() -> None:
    (finding,) = tried(("refuted", 1.0), ("confirmed", 1.8))

    assert (finding.status, finding.severity) == ("fail", PARALLEL_MAP.severity)
    assert changes([finding]) == [TUNED]


def test_where_all_are_refuted_what_remains_is_advised() -> None:
    remains, refuted = tried(("refuted", 1.0), ("refuted", 0.97))

    assert (remains.status, remains.edit, remains.trial.state) == ("fail", None, "not_tried")
    assert refuted.trial.state == "refuted"


def test_a_table_that_gains_nothing_needs_no_processes() -> None:
    lookup = a_map({"LookupTableFindV2": 1})
    findings = tried(("refuted", 1.0), ("refuted", 0.97), op=lookup)

    assert [finding.trial.state for finding in findings] == ["refuted", "refuted"]


def test_what_is_open_stays_as_it_is() -> None:
    findings = tried(("inconclusive", 1.1), ("refuted", 0.97))

    assert [finding.trial.state for finding in findings] == ["inconclusive", "refuted"]


def test_no_word_against_parallel_calls_stands_beside_a_confirmed_trial_of_them() -> None:
    session = session_with(a_map(**SLEEPS))
    refuted = [
        finding.model_copy(update={"trial": trial(state="refuted", speedup=1.0)})
        for finding in run(PARALLEL_MAP, session)
    ]
    calls = (SetParameters("map", {"num_parallel_calls": 8}),)
    other = SEARCH.finding("informative", "", edit=Edit("search:x", "8 calls", calls))
    other = other.model_copy(update={"trial": trial(state="confirmed", speedup=2.0)})

    findings = settled(session, [*refuted, other])

    assert findings == [*refuted, other]
