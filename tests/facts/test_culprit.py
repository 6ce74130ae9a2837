"""One place to look at: what the verdict names before anything else."""

from __future__ import annotations

from typing import Any

from pipediag.facts.order import SourcePlace, culprit_place
from pipediag.session.trials import Trial
from tests import factories


def place(verdict: dict[str, Any], **session: Any) -> SourcePlace | None:
    blank: dict[str, Any] = {"file": None, "line": None, "op_id": None}
    made = factories.make_verdict(**{**blank, **verdict})
    return culprit_place(factories.make_session(**{"verdict": made, "findings": [], **session}))


NAMED = {"file": "/p/train.py", "line": 12, "op_id": "map_0"}
OF_RUN = {"where_file": "/p/train.py", "where_line": 40}


def test_the_operation_that_the_verdict_names() -> None:
    assert place({**NAMED, "where": "steps"}) == SourcePlace("/p/train.py", 12, "map_0")


def test_what_fills_before_an_epoch_is_more_than_the_call_that_waits() -> None:
    assert place({**NAMED, **OF_RUN, "where": "epoch_start"}) == SourcePlace(
        "/p/train.py", 12, "map_0"
    )


def test_where_another_part_of_the_run_weighs_more_its_line() -> None:
    assert place({**NAMED, **OF_RUN, "where": "epoch_end"}) == SourcePlace("/p/train.py", 40)


def test_else_what_the_first_advice_is_about() -> None:
    refuted = Trial(state="refuted", reason=None)
    findings = [
        factories.make_finding(file="/p/other.py", line=1, trial=refuted),
        factories.make_finding(file="/p/model.py", line=7, op_id=None),
    ]
    assert place({}, findings=findings) == SourcePlace("/p/model.py", 7)


def test_else_the_loop_if_it_is_slow() -> None:
    loop = factories.make_loop(file="/p/train.py", line=30)
    assert place({"severity": "high"}, loops=[loop]) == SourcePlace("/p/train.py", 30)
    assert place({"severity": "ok"}, loops=[loop]) is None
