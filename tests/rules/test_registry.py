"""All rules together: what they lack, which of two goes first, and their upper bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipediag.facts.devices import NO_DEVICE
from pipediag.rules.devices import GPU_UNUSED, LAUNCH_BOUND
from pipediag.rules.parallel_maps import PARALLEL_MAP
from pipediag.rules.python_input import PYTHON_INPUT
from pipediag.rules.reference import PAGE, markdown
from pipediag.rules.registry import RULES, reinstated, run_device_rules, run_rules, yielding
from pipediag.rules.relevance import at_most_without, less_input, limited, parallel
from pipediag.rules.rule import Section
from pipediag.rules.step_overhead import HOST_OVERHEAD
from pipediag.session.edits import Edit, Remove
from pipediag.session.findings import Finding
from pipediag.session.ledger import Run
from pipediag.session.loops import Ceiling
from pipediag.session.model import Session
from pipediag.session.recording import Device
from pipediag.session.trials import NOT_TRIED, Trial
from pipediag.vocabulary import StepClass, TrialState
from tests.factories import make_compute_bound_session, make_device, make_loop, make_session
from tests.ledgers import make_part, make_run
from tests.records import (
    make_breakdown,
    make_environment,
    make_input_wait,
    make_operation,
    make_pipeline,
)
from tests.rules.sessions import LAUNCHES, cases, copies, gap, gpu

BARE = make_session(
    steps=None,
    breakdown=None,
    pipeline=None,
    host=None,
    differential=None,
    ceiling=None,
    input_wait=None,
    loops=[],
    devices=[],
)
NO_GPU = make_session(environment=make_environment(gpu_installed=["NVIDIA H200"]))
BUSY_HOST = gpu(
    {"launch": 18.0, "python": 17.0, "sync": 10.0, "copy": 4.0},
    gaps=[gap("python", 2.0, step=step, doing="train.py:9 log") for step in range(4)],
    **LAUNCHES,
    copies=[copies(exposed_ms=8.0, gb_per_s=2.0, bytes=100_000_000)],
    matmul_ms=40.0,
    tensor_core_ms=0.0,
)


def every_part() -> Run:
    """A run that is slow in each of its parts."""
    return make_run(
        make_part("before_training", 20.0, what="in `read`", file="train.py", line=5),
        make_part("compile", 20.0, what="train_step", file="train.py", line=7, count=9),
        make_part("evaluation", 20.0, what="`evaluate`", file="train.py", line=30, count=9),
        make_part("epoch_end", 20.0, what="in `draw`", file="train.py", line=40),
    )


@cases(
    {
        "input-bound": (make_session(),),
        "compute-bound": (make_compute_bound_session(),),
        "no GPU": (NO_GPU,),
        "held up by the host": (make_compute_bound_session(devices=[BUSY_HOST]),),
        "little known": (make_session(ceiling=None, differential=None, host=None),),
        "slow in each part": (make_session(run=every_part()),),
    },
    "session",
)
def test_on_any_session_every_rule_speaks_and_a_failure_is_tried_or_says_why_not(
    session: Session,
) -> None:
    findings = run_rules(session)
    assert {finding.rule for finding in findings} >= {rule.id for rule in RULES}
    for finding in findings:
        assert finding.status != "error", finding.title
        if finding.status == "fail":
            assert (finding.edit is None) != (finding.trial == NOT_TRIED)
        if finding.edit is not None:
            assert finding.edit.id.split(":")[0] == finding.rule


def test_a_session_with_nothing_measured_is_no_error_and_what_keeps_up_fails_nowhere() -> None:
    assert {finding.status for finding in run_rules(BARE)} == {"not-applicable", "pass"}
    assert not [f for f in run_rules(make_compute_bound_session()) if f.status == "fail"]


def test_a_missing_gpu_comes_first_and_before_all_other_advice() -> None:
    findings = run_rules(NO_GPU)
    assert (findings[0].rule, findings[0].needs_first) == (GPU_UNUSED.id, None)
    others = [f for f in findings[1:] if f.status in ("fail", "informative")]
    assert others
    assert {f.needs_first for f in others} == {"gpu-unused"}
    assert {f.needs_first for f in findings if f.status == "pass"} == {None}


# A profile without a session


def test_a_profile_gets_the_findings_of_device_rules_in_order_of_urgency() -> None:
    device_rules = [rule for rule in RULES if rule.check_devices is not None]
    assert {rule.needs for rule in device_rules} == {("devices",)}
    for devices in ([], [gpu()], [gpu(name="GPU:0"), gpu(name="GPU:1")]):
        findings = run_device_rules(devices)
        assert {found.rule for found in findings} == {rule.id for rule in device_rules}
        assert {found.status for found in findings} <= {"pass", "not-applicable", "inconclusive"}
    device = gpu({"launch": 40.0, "python": 17.0, "sync": 10.0}, gaps=[], **LAUNCHES)
    failed = [found.rule for found in run_device_rules([device]) if found.status == "fail"]
    assert failed == ["device-idle", "device-idle", "device-idle"]


def test_one_broken_rule_costs_only_its_own_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> list[Finding]:
        raise KeyError("delay")

    monkeypatch.setattr(PARALLEL_MAP, "check", broken)
    monkeypatch.setattr(LAUNCH_BOUND, "check_devices", broken)
    for findings in (run_rules(make_session()), run_device_rules([gpu()])):
        (failed,) = (found for found in findings if found.status == "error")
        assert failed.evidence == {"exception": "KeyError", "message": "'delay'"}


# Which of two goes first


FIRST = HOST_OVERHEAD.finding("fail", "Share them.")
SECOND = LAUNCH_BOUND.finding(
    "fail",
    "Launch less.",
    op_id="map_0",
    place=("train.py", 12),
    evidence={"idle": 3.0},
    title="It waits for GPU:1",
    part="compile",
    edit=Edit("device-idle", "less", (Remove("map_0"),)),
)


def yielded(first: Finding, second: Finding) -> Finding:
    return yielding([(HOST_OVERHEAD, [first]), (LAUNCH_BOUND, [second])])[1][1][0]


def test_what_yields_stays_where_it_was_and_only_informs() -> None:
    informs = {"status": "informative", "severity": "info", "needs_first": "host-overhead"}
    assert yielded(FIRST, SECOND) == SECOND.but(**informs)
    assert yielded(HOST_OVERHEAD.finding("informative", "A few."), SECOND) == SECOND
    passed = LAUNCH_BOUND.finding("pass")
    assert yielded(FIRST, passed) == passed


@pytest.mark.parametrize(("state", "fails"), [("refuted", True), ("confirmed", False)])
def test_it_fails_again_where_a_trial_refuted_what_it_yielded_to(
    state: TrialState, fails: bool
) -> None:
    waits = yielded(FIRST, SECOND)
    tried = FIRST.but(trial=Trial(state=state, reason=None))
    found = reinstated([tried, waits])[1]
    assert found == (SECOND if fails else waits)


# What a finding keeps

EDIT = Edit("python-input", "without the map", (Remove("map"),))


def test_an_edit_is_kept_by_what_fails_or_informs() -> None:
    failed, informs = (PYTHON_INPUT.finding(one, edit=EDIT) for one in ("fail", "informative"))
    assert (failed.edit, failed.trial) == (EDIT, NOT_TRIED)
    assert (informs.edit, informs.severity) == (EDIT, "info")
    assert informs.effect_on_results == PYTHON_INPUT.effect
    assert PYTHON_INPUT.finding("pass", edit=EDIT).edit is None


# What a rule lacks


SHORT = "It was too short."


@pytest.mark.parametrize(
    ("needs", "overrides", "status", "advice"),
    [
        (("steps",), {"steps": None, "steps_missing": SHORT}, "inconclusive", SHORT),
        (("pipeline",), {"pipeline": None, "pipeline_missing": SHORT}, "inconclusive", SHORT),
        (("pipeline",), {"pipeline": make_pipeline(ops=[], missing=SHORT)}, "inconclusive", SHORT),
        (("pipeline",), {"pipeline": make_pipeline(ops=[])}, "not-applicable", None),
        (
            ("pipeline",),
            {"pipeline": None, "loops": [make_loop(keras=None, from_python=True)]},
            "not-applicable",
            None,
        ),
        (("keras",), {"loops": [make_loop(keras=None)]}, "not-applicable", None),
        (("devices",), {"devices": [make_device(kind="CPU")]}, "not-applicable", None),
        (("devices",), {"devices": [], "loops": []}, "not-applicable", None),
        (("devices",), {"devices": []}, "inconclusive", NO_DEVICE),
        # The first that is missing is named.
        (("steps", "loop"), {"steps": None, "loops": []}, "inconclusive", None),
    ],
)
def test_what_is_missing_is_said(
    needs: tuple[Section, ...], overrides: dict[str, Any], status: str, advice: str | None
) -> None:
    (found,) = replace(HOST_OVERHEAD, needs=needs).findings(make_session(**overrides))
    assert found.status == status
    assert advice is None or found.advice == advice


# Rules in words


def test_the_committed_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == markdown(), "run python -m pipediag.rules.reference"


LOW = {"ceiling": Ceiling(speedup_if_input_free=1.5, ci95=None, next_bottleneck=None)}


def wait_of(ms: float, **overrides: Any) -> Session:
    """A step of 10 ms that waits so long, behind a map of as much."""
    return make_session(**{"breakdown": make_breakdown(off=0.0, input_wait=10.0 * ms), **overrides})


@pytest.mark.parametrize(
    ("session", "saved_ms", "on_cpu", "speedup"),
    [
        (wait_of(6.0), 5.0, False, 2.0),
        # Never more than the ceiling, nor less than nothing.
        (wait_of(6.0), 8.0, False, 3.5),
        (wait_of(6.0), -1.0, False, 1.0),
        (wait_of(6.0, **LOW, differential=None), 5.0, False, 1.5),
        # 1.2 of two CPUs are busy: 6 ms of the step remain, whatever is spread.
        (wait_of(6.0), 5.0, True, 1.667),
        (wait_of(6.0), 2.0, True, 1.25),
        (wait_of(6.0, host=None), 5.0, True, 2.0),
        (wait_of(6.0, ceiling=None), 5.0, False, None),
        (wait_of(6.0, steps=None), 5.0, False, None),
    ],
)
def test_less_input_leaves_the_rest_of_the_step(
    session: Session, saved_ms: float, on_cpu: bool, speedup: float | None
) -> None:
    assert less_input(session, saved_ms, on_cpu=on_cpu) == speedup


def failed(**overrides: Any) -> Finding:
    return HOST_OVERHEAD.finding("fail", "Do it.").but(**overrides)


PYTHON = make_session(breakdown=make_breakdown(off=0.0, dispatch=20.0, python=30.0))
ALL = make_session(breakdown=make_breakdown(off=0.0, python=100.0))
TWICE = Ceiling(speedup_if_input_free=2.0, next_bottleneck=None)
FOUGHT_FOR = make_session(input_wait=make_input_wait(contention="cpu"), ceiling=TWICE)


@cases(
    {
        "two classes": (PYTHON, ["dispatch", "python"], failed(), 2.0),
        "all of it": (ALL, ["python"], failed(), 100.0),
        "nothing": (make_session(), [], failed(), None),
        # The ceiling counts for input where there is one.
        "input": (make_session(), ["input_wait"], failed(), 3.5),
        "input on the same CPUs": (FOUGHT_FOR, ["input_wait"], failed(), 3.448),
        "input without a ceiling": (make_session(ceiling=None), ["input_wait"], failed(), 3.448),
        "input and dispatch": (make_session(), ["input_wait", "dispatch"], failed(), 100 / 22),
        "correctness": (make_session(), ["input_wait"], failed(subject="correctness"), None),
        "a bound of its own": (make_session(), ["input_wait"], failed(speedup_at_most=1.5), 1.5),
    },
    "session, frees, finding, at_most",
)
def test_a_limit_is_the_step_without_the_classes_that_the_advice_frees(
    session: Session, frees: list[StepClass], finding: Finding, at_most: float | None
) -> None:
    limit = limited(session, finding, frees).speedup_at_most
    assert limit == (at_most and pytest.approx(at_most, abs=0.001))


def test_a_bound_rests_on_the_upper_ends_of_what_was_measured() -> None:
    """As in a run whose ceiling was 7.33x (4.63 to 12.5x) and in which 9.36x were measured."""
    ceiling = Ceiling(speedup_if_input_free=7.33, ci95=(4.63, 12.5), next_bottleneck=None)
    shares = make_breakdown(off=0.0, input_wait=86.4, device_compute=13.6)
    wide = shares["input_wait"].but(ci95_percent=(78.4, 92.0))
    session = wait_of(8.64, ceiling=ceiling, breakdown={**shares, "input_wait": wide})
    op = make_operation("m", latency_ms_per_step=8.64)
    assert limited(session, failed(), ["input_wait"]).speedup_at_most == 12.5
    assert (parallel(session, op, 16.0, on_cpu=False) or 0.0) > 9.36
    overhead = shares["device_compute"].but(ci95_percent=(10.0, 20.0))
    computing = make_session(breakdown={**shares, "device_compute": overhead})
    found = limited(computing, failed(), ["device_compute"])
    assert found.speedup_at_most == pytest.approx(100 / 80, abs=0.001)


@pytest.mark.parametrize(
    ("overrides", "at_most"),
    [
        # Of a step that computes for 60 %: dispatch goes along where CPUs do both.
        ({}, 100 / 25),
        # So does input whose threads compute on the same CPUs.
        ({"input_wait": make_input_wait(contention="cpu")}, 100 / 15),
        ({"environment": make_environment(devices=[Device(name="/GPU:0", kind="GPU")])}, 100 / 40),
    ],
)
def test_what_waits_for_the_compute_on_the_same_cpus_goes_along_with_it(
    overrides: dict[str, Any], at_most: float
) -> None:
    breakdown = make_breakdown(
        off=0.0, input_wait=10.0, device_compute=60.0, dispatch=15.0, python=15.0
    )
    session = make_session(**{"breakdown": breakdown, **overrides})
    limit = limited(session, failed(), ["device_compute"]).speedup_at_most
    assert limit == pytest.approx(at_most, abs=0.001)
    assert at_most_without(session, 60.0) == limit
    assert at_most_without(session, 0.0) is None
