"""No severe verdict without advice: where no change helps, what remains is named and bounded."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from pipediag.facts.order import concluded, what_remains
from pipediag.session.findings import Finding
from pipediag.session.host import HotLine
from pipediag.session.run import Script
from pipediag.session.trials import Trial
from pipediag.vocabulary import Bottleneck, RunPartName
from tests import factories
from tests.trials.bench import make_edit


def severe(verdict: dict[str, Any], **overrides: Any) -> Any:
    made = factories.make_verdict(**{"severity": "high", **verdict})
    return factories.make_session(**{"verdict": made, "findings": [], **overrides})


REFUTED = factories.make_finding(
    edit=make_edit("edit"), trial=Trial(state="refuted", reason=None, speedup=1.0)
)
TOO_LITTLE = factories.make_finding(speedup_at_most=1.01)


@pytest.mark.parametrize("findings", [[], [REFUTED], [TOO_LITTLE]])
@pytest.mark.parametrize("severity", ["high", "moderate"])
@pytest.mark.parametrize("bottleneck", get_args(Bottleneck))
@pytest.mark.parametrize("missing", [{}, {"host": None, "pipeline": None}, {"breakdown": None}])
def test_every_severe_verdict_leads_on(
    bottleneck: str, severity: str, missing: dict[str, Any], findings: list[Finding]
) -> None:
    session = severe({"bottleneck": bottleneck, "severity": severity}, **missing)
    assert concluded(session, findings).verdict.next_steps


@pytest.mark.parametrize("part", sorted(get_args(RunPartName)))
def test_every_part_of_the_run_leads_on(part: str) -> None:
    run = factories.make_run(parts=[factories.make_part(part, 8.0)])
    session = severe({"where": part, "where_file": factories.SCRIPT, "where_line": 31}, run=run)
    assert concluded(session, []).verdict.next_steps


def test_a_script_that_failed_is_to_run_first() -> None:
    script = Script(path="t.py", args=[], outcome="raised", status=1, detail="ValueError: no rows")
    session = severe({}, script=script, steps=None, breakdown=None)
    [step] = concluded(session, []).verdict.next_steps
    assert "ValueError: no rows" in step


def test_the_operation_its_time_and_the_bound_are_named() -> None:
    hot = HotLine(file="/src/data.py", line=5, function="read", percent=80.0, thread="source")
    first, second = what_remains(severe({}, host=factories.make_host(hot_python=[hot])))
    assert "`map` at train.py:12" in first
    assert "7 ms of waiting in a step of 10 ms, so at most 3.33x" in first
    assert "data.py:5" in second


def test_overhead_begins_at_the_hot_line_of_the_loop() -> None:
    hot = HotLine(file="/src/fit.py", line=44, function="log", percent=61.0, thread="main")
    host = factories.make_host(hot_python=[hot])
    [step] = what_remains(severe({"bottleneck": "overhead"}, host=host))
    assert "fit.py:44" in step


@pytest.mark.parametrize("severity", ["ok", "unknown"])
def test_nothing_remains_of_what_is_not_severe(severity: str) -> None:
    assert what_remains(severe({"severity": severity})) == []
