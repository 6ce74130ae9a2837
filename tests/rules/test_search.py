from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.registry import run_rules
from pipediag.rules.search import MOST, SEARCH, beyond, search, told
from pipediag.session.edits import Insert, Replace, SetModel, SetOptions, SetParameters
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.trials import Trial
from pipediag.vocabulary import TrialState
from tests.factories import make_finding, make_keras, make_loop, make_verdict
from tests.records import make_function, make_operation
from tests.rules.sessions import batch, session_of, source
from tests.trials.bench import make_edit


def a_map(**overrides: Any) -> Any:
    return make_operation("map", "map", line=5, **{"parallelism": 1, **overrides})


def slow(*ops: Any, **overrides: Any) -> Session:
    """Input-bound, in an operation's place that no rule was asked about."""
    verdict = overrides.pop("verdict", {})
    return session_of(
        *(ops or (source(), a_map(), batch())),
        verdict=make_verdict(**{"bottleneck": "input", "severity": "high", **verdict}),
        **overrides,
    )


def changes(session: Session) -> list[object]:
    found = search(session, [])
    assert all(one.status == "informative" and one.edit is not None for one in found)
    return [change for one in found if one.edit is not None for change in one.edit.changes]


def test_a_serial_map_a_prefetch_and_threads_are_tried() -> None:
    tried = changes(slow())

    assert SetParameters("map", {"num_parallel_calls": -1}) in tried
    assert Insert("batch", "prefetch", {"buffer_size": -1}) in tried
    assert any(isinstance(change, SetOptions) for change in tried)


def test_a_map_with_calls_side_by_side_may_hand_on_in_any_order() -> None:
    tried = changes(slow(source(), a_map(parallelism=4), batch()))

    assert SetOptions({"deterministic": False}) in tried
    assert not any(isinstance(change, SetParameters) for change in tried)


def test_an_order_that_is_not_kept_is_the_users_to_accept() -> None:
    found = search(slow(source(), a_map(parallelism=4), batch()), [])
    on_condition = {one.edit.id for one in found if one.edit and one.condition is not None}
    assert on_condition == {"search:deterministic"}


@pytest.mark.parametrize(
    ("graph_ops", "effect"),
    [
        (None, "same results"),
        ({"LookupTableFindV2": 1}, "same results"),
        ({"PyFunc": 1}, "same up to order or rounding"),
        ({"RandomUniform": 1}, "same up to order or rounding"),
    ],
)
def test_parallel_calls_of_a_stateful_map_are_not_promised_the_same_results(
    graph_ops: dict[str, int] | None, effect: str
) -> None:
    function = make_function(stateful=graph_ops is not None, graph_ops=graph_ops or {})
    found = search(slow(source(), a_map(function=function), batch()), [])
    parallel = next(one for one in found if one.edit and one.edit.id == "search:parallel:map")
    assert parallel.effect_on_results == effect


def test_a_cache_behind_python_is_tried_on_its_condition() -> None:
    function = make_function(stateful=True, graph_ops={"PyFunc": 1})
    looped = [make_loop(keras=make_keras(epochs=3))]
    session = slow(source(), a_map(function=function, elements=32.0), batch(), loops=looped)
    found = search(session, [])
    cache = next(one for one in found if one.edit and one.edit.id == "search:cache:map")
    assert cache.condition is not None
    assert cache.effect_on_results == "not known"


@pytest.mark.parametrize(("reshuffles", "kept"), [(None, False), (True, False), (False, True)])
def test_a_cache_that_would_freeze_a_shuffles_order_is_never_tried(
    reshuffles: bool | None, kept: bool
) -> None:
    shuffled = make_operation(
        "shuffled", "shuffle", line=4, parameters={"reshuffle_each_iteration": reshuffles}
    )
    mapped = a_map(function=make_function(), parent_ids=["shuffled"])
    loop = make_loop(keras=make_keras(epochs=5))
    tried = changes(slow(source(), shuffled, mapped, batch(), loops=[loop]))

    assert any(isinstance(one, Insert) and one.kind == "cache" for one in tried) is kept


def test_sources_that_are_read_in_turn_are_tried_side_by_side() -> None:
    parts = make_operation("parts", "flat_map", line=6)
    calls = {"cycle_length": 4, "num_parallel_calls": -1}

    assert Replace("parts", "interleave", calls) in changes(slow(source(), parts, batch()))


def test_what_ends_in_a_prefetch_needs_no_other() -> None:
    ahead = make_operation("ahead", "prefetch", line=10)
    tried = changes(slow(source(), a_map(), batch(), ahead))

    assert not any(isinstance(change, Insert) and change.kind == "prefetch" for change in tried)


def test_where_starting_steps_takes_the_time_the_model_is_tried() -> None:
    session = slow(
        verdict={"bottleneck": "overhead", "severity": "moderate"},
        loops=[make_loop(keras=make_keras(steps_per_execution=1, jit_compile=False))],
    )
    assert changes(session) == [
        SetModel({"steps_per_execution": 16}),
        SetModel({"jit_compile": True}),
    ]


@pytest.mark.parametrize("severity", ["ok", "unknown"])
def test_where_nothing_is_to_be_had_nothing_is_tried(severity: str) -> None:
    assert search(slow(verdict={"severity": severity}), []) == []


def test_a_rule_that_has_something_to_try_comes_alone() -> None:
    assert search(slow(), [make_finding("a-rule", edit=make_edit("other"))]) == []
    assert search(slow(), [make_finding("a-rule", edit=None)]) != []


def test_an_advice_that_no_trial_of_the_training_can_settle_keeps_nothing_back() -> None:
    unsafe = make_finding("a-rule", edit=make_edit("unsafe"), effect_on_results="not safe here")
    of_validation = make_finding("a-rule", edit=make_edit("other", loop_id="loop_1"))

    assert search(slow(), [unsafe, of_validation]) != []


def test_beyond_what_the_rules_tried_stands_what_they_did_not() -> None:
    same = make_edit("same", changes=(SetParameters("map", {"num_parallel_calls": -1}),))
    further = beyond(slow(), [make_finding("a-rule", edit=same)])

    assert further
    assert same.changes not in [one.edit.changes for one in further if one.edit is not None]


def test_a_search_that_was_made_is_not_made_again() -> None:
    session = slow()
    assert beyond(session, search(session, [])) == []


def test_what_a_rule_tries_by_itself_is_not_tried_twice() -> None:
    same = make_edit("same", changes=(SetParameters("map", {"num_parallel_calls": -1}),))
    informs = make_finding("a-rule", status="informative", edit=same)
    edits = [one.edit.changes for one in search(slow(), [informs]) if one.edit is not None]

    assert same.changes not in edits
    assert edits


def test_no_more_are_tried_than_a_minute_decides() -> None:
    maps = [make_operation(f"map{number}", "map", parallelism=1) for number in range(2 * MOST)]
    assert len(search(slow(source(), *maps, batch()), [])) == MOST


def test_the_registry_asks_where_its_rules_have_nothing() -> None:
    session = slow(source(), make_operation("parts", "zip", line=6), batch())
    assert SEARCH.id in {finding.rule for finding in run_rules(session)}


def settled(name: str, state: TrialState) -> Finding:
    known = Trial(state=state, reason=None, speedup=1.0)
    return make_finding(SEARCH.id, status="informative", edit=make_edit(name), trial=known)


def test_what_did_not_help_is_told_in_one_sentence() -> None:
    other = make_finding("a-rule")
    findings = [other, settled("one", "refuted"), settled("two", "refuted")]
    kept, counted = told(findings)

    assert kept is other
    assert counted.status == "informative"
    assert counted.edit is None or counted.trial.state == "not_tried"


def test_what_was_confirmed_stays_a_finding() -> None:
    found = settled("one", "confirmed")
    kept, _counted = told([found, settled("two", "inconclusive")])

    assert kept is found


@pytest.mark.parametrize("findings", [[], [settled("one", "not_tried")]])
def test_what_was_not_tried_is_not_told(findings: list[Finding]) -> None:
    assert told(findings) == []
