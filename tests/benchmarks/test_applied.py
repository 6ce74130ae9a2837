"""Confirmed edits, applied: that they still fit the samples, and what counts as a kept promise."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from benchmarks.applied import EDITS, Applied, edited, line, markdown, promise, summary
from pipediag.session.ledger import RunGain
from pipediag.session.trials import Combined, Trial
from pipediag.trials.statistics import Estimate
from tests.factories import make_finding, make_session
from tests.trials.bench import make_edit

KNOWN: dict[str, Any] = tomllib.loads(EDITS.read_text(encoding="utf-8"))


def gain(speedup: float, low: float, high: float) -> RunGain:
    return RunGain(
        speedup=speedup,
        ci95=(low, high),
        before_s=10.0,
        after_s=10.0 / speedup,
        basis="measured",
        scope="run",
    )


@pytest.mark.parametrize("name", KNOWN)
def test_an_edit_fits_its_sample(name: str) -> None:
    compile(edited(name, KNOWN[name]["edits"]), name, "exec")


def test_ten_scripts_or_more_are_edited() -> None:
    assert len(KNOWN) >= 10


def test_what_does_not_stand_there_once_is_refused() -> None:
    with pytest.raises(ValueError, match="has not once"):
        edited("missing_cache", [{"old": "import", "new": ""}])


@pytest.mark.parametrize(
    ("obtained", "kept"), [((1.9, 2.1), True), ((1.5, 1.8), True), ((1.4, 1.7), False)]
)
def test_a_promise_is_kept_where_the_intervals_meet(
    obtained: tuple[float, float], kept: bool
) -> None:
    value = Estimate(1.6, *obtained, rounds=3)
    assert Applied("one", gain(2.0, 1.8, 2.2), value).kept is kept


def test_what_was_not_confirmed_promises_nothing() -> None:
    one = Applied("one", None, Estimate(1.6, 1.5, 1.7, rounds=3))
    assert (one.kept, one.error) == (False, None)
    assert line(one).startswith("none one: not promised")


def test_a_bound_is_kept_where_no_more_is_obtained() -> None:
    bound = gain(1.5, 1.5, 1.5).model_copy(update={"basis": "at most", "ci95": None})
    less = Applied("one", bound, Estimate(1.2, 1.1, 1.3, rounds=3))
    more = Applied("two", bound, Estimate(1.7, 1.6, 1.8, rounds=3))

    assert (less.kept, more.kept) == (True, False)
    assert less.error is None
    assert line(less) == f"kept one: at most 1.50, obtained {less.obtained}"
    assert summary([less, more]).startswith("0 of 2 promised, 0 kept; median error of the run's ga")
    assert summary([less, more]).endswith("1 of 2 bounds held.")


def test_the_totals() -> None:
    value = Estimate(2.0, 1.9, 2.1, rounds=3)
    found = [
        Applied("one", gain(2.2, 2.0, 2.4), value),
        Applied("two", gain(1.0, 0.9, 1.1), value),
        Applied("three", None, value),
    ]
    assert summary(found).startswith("2 of 3 promised, 1 kept; median error of the run's gain 30.0")
    assert "| `two` | 1.00 [0.90, 1.10] | trials | 2.00 [1.90, 2.10] | 50.0% | no |" in markdown(
        found, "A machine", 3
    )


def confirmed(rule: str, for_run: RunGain | None) -> Any:
    trial = Trial(state="confirmed", reason=None, speedup=2.0)
    return make_finding(rule, edit=make_edit(rule), trial=trial, for_run=for_run)


def test_one_edit_promises_what_its_finding_says() -> None:
    whole = gain(1.5, 1.4, 1.6)
    session = make_session(findings=[confirmed("one", whole), make_finding("two")])

    assert promise(session, ["one"]) == whole
    assert promise(session, ["two"]) is None


def test_what_no_trial_can_try_promises_what_is_predicted() -> None:
    whole = gain(1.5, 1.4, 1.6).model_copy(update={"basis": "predicted"})
    session = make_session(findings=[make_finding("one", for_run=whole)])

    assert promise(session, ["one"], "predicted") == whole
    assert promise(session, ["one"], "at most") is None
    assert promise(session, ["one"]) is None


def test_several_edits_promise_what_they_came_to_together() -> None:
    whole = gain(3.0, 2.8, 3.2)
    together = Combined(findings=["one", "two"], speedup=4.0, ci95=None, for_run=whole)
    session = make_session(
        findings=[confirmed("one", None), confirmed("two", None)], combined=together
    )

    assert promise(session, ["one", "two"]) == whole
    assert promise(session.model_copy(update={"combined": None}), ["one", "two"]) is None
