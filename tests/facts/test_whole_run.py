"""What a gain of 1,000 steps, or of an epoch, comes to in a run that was timed by itself."""

from __future__ import annotations

import pytest

from pipediag.facts.run_gain import gain_of_whole
from pipediag.session.ledger import Run, RunGain, RunSpan
from pipediag.vocabulary import RunPartName, RunScope


def span(part: RunPartName | None, seconds: float) -> RunSpan:
    return RunSpan(part=part, start_ms=0.0, duration_ms=1000.0 * seconds)


def ledger(scope: RunScope = "1000_steps") -> Run:
    """Four seconds come once; what pipediag took is none of it."""
    spans = [span("startup", 3.0), span("compile", 1.0), span("steps", 5.0), span(None, 9.0)]
    return Run(scope=scope, total_s=9.0, pipediag_s=9.0, parts=[], spans=spans)


def gain(scope: RunScope = "1000_steps", speedup: float = 10.0) -> RunGain:
    return RunGain(
        speedup=speedup,
        ci95=(speedup / 2, speedup * 2),
        before_s=20.0,
        after_s=20.0 / speedup,
        basis="measured",
        scope=scope,
    )


@pytest.mark.parametrize("scope", ["1000_steps", "epoch"])
def test_what_comes_once_takes_what_it_took(scope: RunScope) -> None:
    whole = gain_of_whole(gain(scope), ledger(scope), 24.0)

    assert whole is not None
    assert (whole.before_s, whole.after_s, whole.scope) == (24.0, 6.0, "run")
    assert whole.speedup == pytest.approx(4.0)
    assert whole.ci95 is not None
    assert whole.ci95 == pytest.approx((3.0, 4.8))


def test_a_gain_of_the_run_is_as_it_is() -> None:
    of_run = gain("run")

    assert gain_of_whole(of_run, ledger("run"), 24.0) is of_run


def test_a_script_shorter_than_what_comes_once_is_promised_nothing() -> None:
    assert gain_of_whole(gain(), ledger(), 3.9) is None


def test_an_interval_that_is_not_known_stays_so() -> None:
    predicted = gain().model_copy(update={"ci95": None})
    whole = gain_of_whole(predicted, ledger(), 24.0)

    assert whole is not None
    assert whole.ci95 is None


def test_what_is_traced_once_more_is_added() -> None:
    """20 s get ten times as fast, 4 s come once, and 1 to 3 s once more."""
    traced = gain().model_copy(
        update={"once_s": 2.0, "once_ci95_s": (1.0, 3.0), "ci95": (10.0, 10.0)}
    )
    whole = gain_of_whole(traced, ledger(), 24.0)

    assert whole is not None
    assert whole.after_s == pytest.approx(8.0)
    assert whole.ci95 == pytest.approx((24.0 / 9.0, 24.0 / 7.0))
