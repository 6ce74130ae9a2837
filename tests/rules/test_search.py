"""Edits that no rule calls for, tried where rules are silent or wrong."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.search import SEARCH, after_trials, beyond, search
from pipediag.session.edits import Edit, Insert, Replace, SetModel, SetOptions, SetParameters
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.session.trials import Trial
from pipediag.vocabulary import TrialState
from tests.factories import make_finding, make_keras, make_loop, make_verdict
from tests.records import make_operation
from tests.rules.sessions import batch, session_of, source
from tests.trials.bench import make_edit


def a_map(**overrides: Any) -> Operation:
    return make_operation("map", "map", line=5, **{"parallelism": 1, **overrides})


def slow(*ops: Operation, **overrides: Any) -> Session:
    """Input-bound, in an operation's place that no rule was asked about."""
    verdict = {"bottleneck": "input", "severity": "high", **overrides.pop("verdict", {})}
    chain = ops or (source(), a_map(), batch())
    return session_of(*chain, verdict=make_verdict(**verdict), **overrides)


def found(session: Session, id: str) -> Finding | None:
    every = search(session, [])
    assert all(one.status == "informative" and one.edit is not None for one in every)
    return next((one for one in every if one.edit and one.edit.id == f"search:{id}"), None)


CALLS = SetParameters("map", {"num_parallel_calls": -1})
AHEAD = make_operation("ahead", "prefetch", line=10)
PARTS = make_operation("parts", "flat_map", line=6)
SEVERAL = slow(source(), a_map(parallelism=4), batch())


@pytest.mark.parametrize(
    ("session", "id", "change"),
    [
        (slow(), "parallel:map", CALLS),
        (SEVERAL, "parallel:map", None),
        (slow(), "prefetch", Insert("batch", "prefetch", {"buffer_size": -1})),
        (slow(source(), a_map(), batch(), AHEAD), "prefetch", None),
        (slow(), "threads", SetOptions({"threading.private_threadpool_size": 8})),
        (SEVERAL, "deterministic", SetOptions({"deterministic": False})),
        (slow(), "deterministic", None),
        (
            slow(source(), PARTS, batch()),
            "interleave:parts",
            Replace("parts", "interleave", {"cycle_length": 4, "num_parallel_calls": -1}),
        ),
    ],
)
def test_what_fits_the_pipeline_is_tried(session: Session, id: str, change: object) -> None:
    finding = found(session, id)
    assert (finding is None) == (change is None)
    if finding is not None and finding.edit is not None:
        assert finding.edit.changes == (change,)
        assert (finding.condition is not None) == (id == "deterministic")


def test_where_starting_steps_takes_the_time_the_model_is_tried() -> None:
    loop = make_loop(keras=make_keras(steps_per_execution=1, jit_compile=False))
    verdict = {"bottleneck": "overhead", "severity": "moderate"}
    edits = [one.edit for one in search(slow(verdict=verdict, loops=[loop]), [])]
    assert [edit.changes for edit in edits if edit] == [
        (SetModel({"steps_per_execution": 16}),),
    ]


SAME = make_edit("same", changes=(CALLS,))


@pytest.mark.parametrize(
    ("session", "findings", "searches"),
    [
        (slow(verdict={"severity": "ok"}), [], False),
        (slow(verdict={"severity": "unknown"}), [], False),
        (slow(), [make_finding("a-rule", edit=make_edit("other"))], False),
        (slow(), [make_finding("a-rule", edit=None)], True),
        (
            slow(),
            [
                make_finding("a-rule", edit=make_edit("unsafe"), effect_on_results="not safe here"),
                make_finding("a-rule", edit=make_edit("other", loop_id="loop_1")),
            ],
            True,
        ),
        (slow(), [make_finding("a-rule", status="informative", edit=SAME)], True),
    ],
)
def test_a_rule_with_something_to_try_comes_alone_and_nothing_is_tried_twice(
    session: Session, findings: list[Finding], searches: bool
) -> None:
    edits = [one.edit.changes for one in search(session, findings) if one.edit]
    assert bool(edits) is searches
    known = [one.edit.changes for one in findings if one.edit]
    assert not any(edit in known for edit in edits)


def test_beyond_what_the_rules_tried_stands_what_they_did_not_and_only_once() -> None:
    session = slow()
    further = beyond(session, [make_finding("a-rule", edit=SAME)])
    assert further
    assert SAME.changes not in [one.edit.changes for one in further if one.edit]
    assert beyond(session, search(session, [])) == []


def after(name: str, state: TrialState) -> Finding:
    trial = Trial(state=state, reason=None, speedup=1.0)
    edit: Edit = make_edit(name)
    return make_finding(SEARCH.id, status="informative", edit=edit, trial=trial)


def test_what_did_not_help_is_told_in_one_finding_beside_what_was_confirmed() -> None:
    other, confirmed = make_finding("a-rule"), after("one", "confirmed")
    refuted = [after("two", "refuted"), after("three", "inconclusive")]
    kept, helped, counted = after_trials([confirmed, *refuted, other])
    assert (kept, helped) == (other, confirmed)
    assert (counted.status, counted.edit, counted.evidence) == ("informative", None, {"tried": 2})
    assert after_trials([after("one", "not_tried")]) == after_trials([]) == []
