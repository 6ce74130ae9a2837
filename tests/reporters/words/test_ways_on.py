"""No report is a dead end: where no rule has a change, it says what to try or to measure next."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from pipediag.reporters.words.ways_on import ways_on
from pipediag.session.embedding_cost import CostPart, EmbeddingCost
from pipediag.session.host import HotLine
from pipediag.session.run import Device, Script
from pipediag.session.trials import NO_BUDGET
from pipediag.vocabulary import Bottleneck, RunPartName
from tests import factories, records
from tests.reporters import sessions, trial_sessions


def said(verdict: dict[str, Any], **overrides: Any) -> list[str]:
    made = factories.make_verdict(**verdict)
    session = factories.make_session(**{"verdict": made, "findings": [], **overrides})
    return [way.replace("\xa0", " ") for way in ways_on(session)]


@pytest.mark.parametrize("severity", ["high", "moderate"])
@pytest.mark.parametrize("bottleneck", get_args(Bottleneck))
def test_every_severe_verdict_leads_on(bottleneck: str, severity: str) -> None:
    assert said({"bottleneck": bottleneck, "severity": severity})
    assert said({"bottleneck": bottleneck, "severity": severity}, host=None, pipeline=None)


@pytest.mark.parametrize("part", sorted(set(get_args(RunPartName)) - {"steps"}))
def test_another_part_of_the_run_is_named_with_its_line(part: str) -> None:
    run = factories.make_run(parts=[factories.make_part(part, 8.0)])
    [first, *_] = said({"where": part, "where_file": factories.SCRIPT, "where_line": 31}, run=run)
    assert "8.00 s, most of it at train.py:31" in first


def test_the_operation_that_sets_the_pace_and_its_hot_line() -> None:
    hot = HotLine(
        file=factories.SCRIPT.replace("train", "data"),
        line=5,
        function="read",
        percent=80.0,
        thread="source",
    )
    host = factories.make_host(hot_python=[hot])
    first, second = said({}, host=host)
    assert "`map(" in first
    assert "train.py:12, which sets the pace" in first
    assert "data.py:5 runs in 80.0 % of the looks" in second


def test_overhead_begins_at_the_hot_line_of_the_loop() -> None:
    hot = HotLine(file=factories.SCRIPT, line=44, function="log", percent=61.0, thread="main")
    [way] = said({"bottleneck": "overhead"}, host=factories.make_host(hot_python=[hot]))
    assert "train.py:44 runs in 61.0 %" in way


def environment(*kinds: str) -> Any:
    devices = [Device(name=f"/device:{kind}:0", kind=kind) for kind in kinds]
    return factories.make_session().environment.model_copy(update={"devices": devices})


def test_kernels_are_looked_at_on_a_gpu_alone() -> None:
    [way] = said({"bottleneck": "compute"}, environment=environment("CPU", "GPU"))
    assert "Device idle time names the kernels" in way
    [way] = said({"bottleneck": "compute"}, environment=environment("CPU"))
    assert "What is left is the model itself" in way


def test_without_a_gpu_the_largest_part_of_the_compute_is_named() -> None:
    parts = [
        CostPart(part="update", layer="users", variable="users/embeddings", ms=1.0, percent=10.0),
        CostPart(part="rest", layer=None, variable=None, ms=9.0, percent=90.0),
    ]
    cost = EmbeddingCost(compute_ms=10.0, steps=20, overlap=1.0, parts=parts)
    [way] = said({"bottleneck": "compute"}, environment=environment("CPU"), embedding_cost=cost)
    assert "Most of it, 90.0 %, is the rest of the model:" in way


def test_what_was_left_open_gets_more_time() -> None:
    undecided = factories.make_finding(trial=trial_sessions.UNDECIDED)
    ways = said(
        {"severity": "ok"}, findings=[undecided], trials=trial_sessions.make_run(budget_s=60.0)
    )
    assert ways == [
        "1 change could not be decided in the time for trials: `--budget 180` gives them more."
    ]


def test_trials_that_nobody_asked_for_may_show_more() -> None:
    assert "`--budget 0`" in said({}, trials_missing=NO_BUDGET)[-1]


def test_an_inconclusive_run_is_measured_longer() -> None:
    ways = said(
        {"bottleneck": "inconclusive", "severity": "unknown"}, steps=records.make_steps(count=10)
    )
    assert ways == ["Measure longer: `--steps 200`."]


def test_of_a_script_that_failed_more_steps_tell_nothing() -> None:
    unknown = {"bottleneck": "inconclusive", "severity": "unknown"}
    raised = Script(path="train.py", args=[], outcome="raised", status=1)
    assert said(unknown, script=raised, breakdown=None) == []


def test_on_pytorch_its_own_profiler_says_more_than_more_steps() -> None:
    torch = factories.make_session().environment.model_copy(update={"keras_backend": "torch"})
    unknown = {"bottleneck": "inconclusive", "severity": "unknown"}
    shares = records.make_breakdown(input_wait=1.0)
    [way] = said(unknown, environment=torch, breakdown=shares)
    assert "torch.profiler" in way
    assert "--steps" not in way


def test_nothing_where_there_is_something_to_do_or_nothing_to_gain() -> None:
    assert ways_on(factories.make_session()) == []
    assert ways_on(factories.make_compute_bound_session()) == []
    assert ways_on(sessions.nothing_measured()) == []
