from __future__ import annotations

from benchmarks.bounds import bounded, markdown, summary
from pipediag.session.model import Session
from pipediag.session.trials import Trial
from tests.factories import make_finding, make_session
from tests.trials.bench import make_edit


def session(*measured: tuple[str, float, float]) -> Session:
    """Findings by the edit's id, its bound, and what was measured, give or take a tenth."""
    return make_session(
        findings=[
            make_finding(
                edit=make_edit(edit),
                speedup_at_most=at_most,
                trial=Trial(
                    state="confirmed",
                    reason=None,
                    speedup=speedup,
                    ci95=(speedup - 0.1, speedup + 0.1),
                    basis="step",
                ),
            )
            for edit, at_most, speedup in measured
        ]
    )


def test_a_bound_is_broken_where_the_whole_interval_lies_above_it() -> None:
    found = list(bounded(session(("a", 2.0, 1.9), ("b", 2.0, 2.05), ("c", 2.0, 2.2))))
    assert [one.held for one in found] == [True, True, False]
    assert summary(found).startswith("2 of 3 bounds held")
    assert markdown(found, "a machine").count("\n| ") == 4


def test_only_measured_steps_with_a_bound_are_counted_each_once() -> None:
    twice = session(("a", 2.0, 1.5), ("a", 3.0, 1.5))
    assert [one.at_most for one in bounded(twice)] == [2.0]
    untried = make_session(findings=[make_finding(edit=make_edit("a"))])
    assert list(bounded(untried)) == []
