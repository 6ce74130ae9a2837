from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations

import pytest

from pipediag.facts.run_gain import gain_for_run
from pipediag.rules import registry
from pipediag.rules.cache_places import MISPLACED_CACHE
from pipediag.rules.device_idle import INPUT_GAP, LAUNCH_BOUND, PYTHON_GAP, SYNC_POINT
from pipediag.rules.gpu import GPU_UNUSED
from pipediag.rules.maps import PARALLEL_MAP
from pipediag.rules.registry import DEVICE_RULES, RULES, run_device_rules, run_rules, yields_to
from pipediag.rules.rule import Meta, Rule
from pipediag.rules.tracing import REPEATED_COMPILE, RETRACING
from pipediag.session.findings import Finding
from pipediag.session.ledger import Run
from pipediag.session.model import Session
from pipediag.session.trials import NOT_TRIED
from pipediag.vocabulary import Framework, GapCause
from tests.factories import make_compute_bound_session, make_session
from tests.ledgers import make_part, make_run
from tests.records import make_environment
from tests.rules.devices import copies, gpu, launches
from tests.rules.sessions import rule_of

LISTED = [rule.meta for rule in RULES]


def every_part() -> Run:
    """A run that is slow in each of its parts."""
    return make_run(
        make_part("before_training", 20.0, what="in `read`", file="train.py", line=5),
        make_part("compile", 20.0, what="train_step", file="train.py", line=7, count=9),
        make_part("evaluation", 20.0, what="`evaluate`", file="train.py", line=30, count=9),
        make_part("epoch_end", 20.0, what="in `draw`", file="train.py", line=40),
    )


def test_rules_on_parts_say_what_they_come_to_in_the_run() -> None:
    session = make_session(run=every_part())
    failed = [f for f in run_rules(session) if f.status == "fail" and f.part != "steps"]
    assert {f.part for f in failed} == {"before_training", "compile", "evaluation", "epoch_end"}
    gains = [gain_for_run(session, finding) for finding in failed]
    assert all(gain is not None and 1.15 < gain.speedup <= 1.25 for gain in gains)


def test_a_rules_id_is_a_noun() -> None:
    for rule in RULES:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.meta.id)


def test_every_threshold_says_where_it_comes_from() -> None:
    for rule in RULES:
        for threshold in rule.meta.thresholds:
            assert threshold.unit
            assert len(threshold.source) > 10


def test_every_rule_speaks_once_or_more() -> None:
    findings = run_rules(make_session())
    assert {finding.rule for finding in findings} == {rule.meta.id for rule in RULES}
    assert not [finding for finding in findings if finding.status == "error"]


def test_a_session_with_nothing_measured_is_no_error() -> None:
    bare = make_session(
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
    assert {finding.status for finding in run_rules(bare)} == {"not-applicable"}


def test_missing_sections_are_inconclusive_with_their_reason() -> None:
    session = make_session(breakdown=None, breakdown_missing="Only two steps were seen.")
    finding = next(f for f in run_rules(session) if f.rule == "parallel-map")
    assert finding.status == "inconclusive"
    assert finding.advice == "Only two steps were seen."


def test_nothing_fails_where_the_pipeline_keeps_up() -> None:
    assert not [f for f in run_rules(make_compute_bound_session()) if f.status == "fail"]


def test_one_broken_rule_costs_only_its_own_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken_check(_: Session) -> list[Finding]:
        raise KeyError("delay")

    rules = (Rule(PARALLEL_MAP, broken_check), rule_of(MISPLACED_CACHE))
    monkeypatch.setattr(registry, "RULES", rules)
    broken, other, *_ = run_rules(make_session())
    assert broken.status == "error"
    assert broken.evidence == {"exception": "KeyError", "message": "'delay'"}
    assert other.status == "not-applicable"


def test_a_missing_gpu_comes_first_and_before_all_other_advice() -> None:
    session = make_session(environment=make_environment(gpu_installed=["NVIDIA H200"]))
    findings = run_rules(session)
    assert findings[0].rule == GPU_UNUSED.id
    assert findings[0].needs_first is None
    others = [f for f in findings[1:] if f.status in ("fail", "informative")]
    assert others
    assert {f.needs_first for f in others} == {"gpu-unused"}
    assert {f.needs_first for f in findings if f.status == "pass"} == {None}


def test_no_prediction_goes_beyond_the_ceiling() -> None:
    session = make_session()
    assert session.ceiling is not None
    limit = session.ceiling.speedup_if_input_free
    assert limit is not None
    predicted = [f.speedup_at_most for f in run_rules(session) if f.speedup_at_most]
    assert predicted
    assert max(predicted) <= limit + 0.01


def test_every_rule_that_asks_devices_only_is_a_device_rule() -> None:
    asking = {rule.meta.id for rule in RULES if rule.check_devices is not None}
    assert asking == {rule.meta.id for rule in DEVICE_RULES}
    assert {rule.meta.needs for rule in DEVICE_RULES} == {("devices",)}


def test_a_gap_for_input_yields_to_whatever_frees_input() -> None:
    knowing = {meta.id for meta in LISTED if yields_to(INPUT_GAP, meta, LISTED)}
    assert {"misplaced-cache", "python-input", "epoch-start"} <= knowing


def test_no_two_rules_yield_to_each_other() -> None:
    for one, other in combinations(LISTED, 2):
        assert not (yields_to(one, other, LISTED) and yields_to(other, one, LISTED))


@pytest.mark.parametrize(
    ("meta", "first"),
    [
        (LAUNCH_BOUND, {"eager-execution", "device-idle", "host-overhead"}),
        (PYTHON_GAP, {"eager-execution", "python-in-step", "host-overhead", "python-input"}),
        (SYNC_POINT, {"eager-execution", "python-in-step", "host-overhead"}),
        (RETRACING, {"predict-in-step"}),
        (REPEATED_COMPILE, {"retracing", "predict-in-step"}),
    ],
)
def test_what_sees_a_class_of_time_yields_to_who_knows_why(meta: Meta, first: set[str]) -> None:
    assert first <= {other.id for other in LISTED if yields_to(meta, other, LISTED)}


def test_a_profile_gets_one_finding_of_each_device_rule() -> None:
    for devices in ([], [gpu()], [gpu(name="GPU:0"), gpu(name="GPU:1")]):
        findings = run_device_rules(devices)
        assert {found.rule for found in findings} == {rule.meta.id for rule in DEVICE_RULES}
        assert {found.status for found in findings} <= {"pass", "not-applicable", "inconclusive"}


def test_a_profile_s_findings_are_in_order_of_urgency() -> None:
    device = gpu({"launch": 40.0, "python": 17.0, "sync": 10.0}, gaps=[], launches=launches())
    failed = [found.rule for found in run_device_rules([device]) if found.status == "fail"]
    assert failed == ["device-idle", "device-idle", "device-idle"]


@pytest.mark.parametrize("framework", ["jax", "pytorch"])
def test_advice_on_other_frameworks_names_nothing_of_keras(framework: Framework) -> None:
    causes: dict[GapCause, float] = {"launch": 20.0, "python": 20.0, "sync": 10.0}
    slow = launches(shorter_than_launch_percent=80.0)
    host = gpu(causes, gaps=[], launches=slow, copies=[copies(gb_per_s=2.0, bytes=100_000_000)])
    products = gpu(launches=launches(), matmul_ms=80.0, tensor_core_ms=0.0)
    hungry = gpu({"input": 50.0}, gaps=[])
    idle = [gpu({"collective": wait}, name=f"GPU:{wait}") for wait in (60.0, 0.0)]
    bursts = gpu({"launch": 20.0}, launches=launches(median_delay_us=400.0))
    for devices in ([host], [products], [hungry], idle, [bursts]):
        told = run_device_rules(devices, framework)
        text = " ".join(each.advice for each in told)
        assert any(each.status in ("fail", "informative") for each in told)
        # tf.data may well feed another framework.
        text = text.replace("tf.data", "")
        for word in ("keras", "compile(...,", "steps_per_execution", "tf.", "TF_", "on_epoch_end"):
            assert word not in text


def test_a_broken_device_rule_costs_only_its_own_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(devices: object, framework: object) -> list[object]:
        raise ZeroDivisionError("span")

    rule = replace(DEVICE_RULES[1], check_devices=broken)
    monkeypatch.setattr(registry, "DEVICE_RULES", (rule, *DEVICE_RULES[2:]))
    findings = run_device_rules([gpu()])
    assert [found.rule for found in findings if found.status == "error"] == [rule.meta.id]


def test_a_failure_is_tried_or_says_why_not() -> None:
    sessions = [
        make_session(),
        make_session(devices=[gpu({"launch": 40.0, "python": 17.0}, gaps=[], launches=launches())]),
        make_session(environment=make_environment(gpu_installed=["NVIDIA H200"])),
        make_session(run=every_part()),
    ]
    failed = [f for session in sessions for f in run_rules(session) if f.status == "fail"]
    failed += run_device_rules([gpu({"input": 50.0}, gaps=[])])
    for finding in failed:
        if finding.status == "fail":
            assert (finding.edit is None) != (finding.trial == NOT_TRIED)
    assert any(finding.edit for finding in failed)


def test_edits_are_named_after_their_rule() -> None:
    edits = [(f.rule, f.edit) for f in run_rules(make_session()) if f.edit]
    assert edits
    for rule, edit in edits:
        assert edit.id.split(":")[0] == rule
