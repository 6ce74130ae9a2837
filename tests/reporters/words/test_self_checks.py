"""What was measured in two ways is held against itself, with figures and with reasons."""

from __future__ import annotations

from typing import Any

from pipediag.reporters.words.self_checks import SelfCheck, self_checks
from tests import factories, records
from tests.reporters import sessions, trial_sessions


def checks(**overrides: Any) -> list[SelfCheck]:
    return self_checks(factories.make_session(**overrides))


def test_three_pairs_with_how_far_they_are_apart() -> None:
    time = factories.make_loop_time(total_s=20.0, unexplained_s=4.0)
    loop, base, ledger = checks(
        loops=[factories.make_loop(time=time)],
        steps=records.make_steps(mean_ms=10.0),
        trials=trial_sessions.make_run(base_step_ms=10.5),
        run=factories.make_run(total_s=8.0, pipediag_s=1.5),
        wall_s=9.4,
    )

    assert (loop.word, loop.off) == ("differ", "+25.0\xa0%")
    assert (loop.here, loop.there) == (
        "16.0\xa0s by the steps' mean, waits and epochs' ends",
        "20.0\xa0s in the loop",
    )
    assert (base.word, base.off) == ("agree", "+5.0\xa0%")
    assert (base.here[:7], base.there[:7]) == ("10.0\xa0ms", "10.5\xa0ms")
    assert (ledger.word, ledger.off) == ("agree", "-1.1\xa0%")
    assert (ledger.here[:6], ledger.there[:6]) == ("9.50\xa0s", "9.40\xa0s")
    assert all(check.means for check in (loop, base, ledger))


def test_a_difference_that_rounds_to_nothing_has_no_sign() -> None:
    offs = [SelfCheck("", "", "", off, "").off for off in (0.04, -0.04, 0.06, None)]
    assert offs == ["0.0\xa0%", "0.0\xa0%", "+0.1\xa0%", "\u2013"]


def test_what_can_not_be_compared_has_a_reason_and_no_figure() -> None:
    loop, base, ledger = checks(
        loops=[factories.make_loop(time=None, time_missing="no-time-reason")],
        trials=None,
        trials_missing="no-trials-reason",
        run=None,
        run_missing="no-run-reason",
    )
    assert [check.means for check in (loop, base, ledger)] == [
        "no-time-reason",
        "no-trials-reason",
        "no-run-reason",
    ]
    assert {(c.here, c.off_percent, c.word) for c in (loop, base, ledger)} == {
        ("", None, "not compared")
    }


def test_the_pipeline_alone_has_no_step_to_compare() -> None:
    _, base, _ = self_checks(trial_sessions.pipeline_only())
    assert base.word == "not compared"
    assert "pipeline alone" in base.means


def test_nothing_without_steps() -> None:
    assert self_checks(sessions.nothing_measured()) == []
