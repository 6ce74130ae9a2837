"""Shares at the limits themselves, and what is said on either side of them."""

from __future__ import annotations

import pytest

from pipediag.measures.verdict.decision import decide
from pipediag.session.findings import Verdict
from pipediag.session.host import HotLine
from pipediag.session.steps import Perturbation
from tests.factories import make_host
from tests.measures.verdict.test_decision import between_epochs, session, with_interval
from tests.records import make_breakdown, make_pipeline, make_steps

ON_MAIN = HotLine(file="train.py", line=40, function="on_batch", percent=60.0, thread="main")


def verdict_of(**percents: float) -> Verdict:
    return decide(session(breakdown=make_breakdown(**percents)))


@pytest.mark.parametrize(("percent", "severity"), [(4.9, "ok"), (5.0, "moderate")])
def test_input_is_mentioned_from_five_percent(percent: float, severity: str) -> None:
    verdict = verdict_of(input_wait=percent, device_compute=80.0)
    assert (verdict.bottleneck, verdict.severity) == ("compute", severity)
    said = f" Moderately input-bound as well: input wait is {percent:.0f} % of the step."
    assert verdict.summary.endswith(said) is (severity == "moderate")


@pytest.mark.parametrize(("overhead", "bottleneck"), [(40.0, "compute"), (40.5, "balanced")])
def test_five_points_apart_is_no_balance(overhead: float, bottleneck: str) -> None:
    shares = make_breakdown(device_compute=45.0, dispatch=overhead)
    assert decide(session(breakdown=shares, perturbation=None)).bottleneck == bottleneck


def test_what_the_profiler_adds_may_belong_to_either_group() -> None:
    shares = make_breakdown(device_compute=55.0, dispatch=40.0)
    slowed = Perturbation(baseline_step_ms=10.0, profiled_step_ms=12.0, ratio=1.2)
    verdict = decide(session(breakdown=shares, perturbation=slowed))
    assert verdict.bottleneck == "balanced"
    assert verdict.summary == (
        "Balanced: compute 55 % and overhead 40 % of each step, neither of which limits it alone."
    )


def test_a_balance_names_both_groups() -> None:
    summary = verdict_of(device_copy=46.0, dispatch=44.0).summary
    assert summary.startswith("Balanced: transfer 46 % and overhead 44 % of each step")


@pytest.mark.parametrize(
    ("overhead", "severity"),
    [(15.0, "high"), (14.9, "moderate"), (3.0, "moderate"), (2.9, "ok")],
)
def test_a_balance_is_as_bad_as_its_overhead(overhead: float, severity: str) -> None:
    verdict = verdict_of(device_compute=42.0, device_copy=40.0, dispatch=overhead)
    assert (verdict.bottleneck, verdict.severity) == ("balanced", severity)


def test_a_balance_with_moderate_input_is_moderate() -> None:
    verdict = verdict_of(input_wait=8.0, device_compute=45.0, device_copy=43.0, dispatch=1.0)
    assert (verdict.bottleneck, verdict.severity) == ("balanced", "moderate")
    assert "Moderately input-bound as well" in verdict.summary


def test_compute_is_no_cost_however_much_it_is() -> None:
    assert verdict_of(device_compute=99.0).severity == "ok"


def test_a_line_of_python_is_blamed_for_overhead_alone() -> None:
    host = make_host(hot_python=[ON_MAIN])
    # Python is more than dispatch in both.
    overhead = make_breakdown(device_compute=30.0, python=50.0, dispatch=5.0)
    compute = make_breakdown(device_compute=70.0, python=10.0, dispatch=5.0)
    assert decide(session(breakdown=overhead, host=host)).line == 40
    verdict = decide(session(breakdown=compute, host=host))
    assert (verdict.bottleneck, verdict.file, verdict.line) == ("compute", None, None)


def test_an_interval_from_fine_to_bottleneck_says_what_to_do_and_what_was_measured() -> None:
    verdict = decide(session(breakdown=with_interval(3.0, 12.0, 22.0)))
    assert verdict.summary == (
        "Input wait lies somewhere from 3 to 22 % of the step, so it may be fine or the "
        "bottleneck. Measure longer with --steps."
    )
    assert "steps without a profiler" in verdict.reasons[0]


def test_waits_between_epochs_without_a_shuffle_name_what_costs_most() -> None:
    waiting = between_epochs()
    verdict = decide(session(loops=waiting.loops, breakdown=waiting.breakdown))
    assert (verdict.bottleneck, verdict.file, verdict.line, verdict.op_id) == (
        "input",
        "train.py",
        12,
        "map_0",
    )
    assert "first batch of each epoch" in verdict.summary


def test_waits_between_epochs_of_a_pipeline_that_was_not_seen_name_nothing() -> None:
    waiting = between_epochs()
    unseen = make_pipeline(ops=[], bottleneck_op_id=None)
    verdict = decide(session(loops=waiting.loops, breakdown=waiting.breakdown, pipeline=unseen))
    assert (verdict.bottleneck, verdict.severity) == ("input", "high")
    assert (verdict.file, verdict.line, verdict.op_id) == (None, None, None)


def test_two_ends_of_epochs_are_no_doubt() -> None:
    reasons = decide(between_epochs(epoch_ends_seen=2)).reasons
    assert not any("of an epoch" in reason and "seen" in reason for reason in reasons)


@pytest.mark.parametrize(("percent", "bottleneck"), [(20.0, "input"), (19.9, "compute")])
def test_input_is_the_bottleneck_from_a_fifth_of_the_step_on(
    percent: float, bottleneck: str
) -> None:
    shares = with_interval(percent, percent, percent)
    assert decide(session(breakdown=shares)).bottleneck == bottleneck


@pytest.mark.parametrize(
    ("low", "high", "straddles"),
    [(19.0, 20.0, True), (20.0, 21.0, False), (4.9, 5.0, True), (5.0, 5.1, False)],
)
def test_a_limit_is_straddled_by_what_begins_beneath_it(
    low: float, high: float, straddles: bool
) -> None:
    reasons = decide(session(breakdown=with_interval(low, high, high))).reasons
    assert any("straddles the limit" in reason for reason in reasons) is straddles


def slowed(ratio: float | None, missing: str | None = None) -> Perturbation:
    profiled = None if ratio is None else 10.0 * ratio
    return Perturbation(
        baseline_step_ms=10.0, profiled_step_ms=profiled, ratio=ratio, missing=missing
    )


@pytest.mark.parametrize(
    ("input_wait", "compute", "confidence"), [(70.0, 20.0, "high"), (1.0, 90.0, "medium")]
)
@pytest.mark.parametrize(
    ("profile", "words"),
    [
        (slowed(1.5), "The profiler made steps 1.5 times as long; the consumer's classes are its "),
        (slowed(None, "No step was profiled."), "No step was profiled. Consumer time is not attri"),
    ],
)
def test_what_the_profile_did_to_the_consumer_is_a_doubt_only_where_that_is_the_verdict(
    input_wait: float, compute: float, confidence: str, profile: Perturbation, words: str
) -> None:
    shares = make_breakdown(input_wait=input_wait, device_compute=compute)
    verdict = decide(session(breakdown=shares, perturbation=profile))
    assert verdict.confidence == confidence
    assert any(reason.startswith(words) for reason in verdict.reasons)


def test_a_profile_that_slowed_steps_by_less_than_half_is_believed() -> None:
    verdict = decide(session(perturbation=slowed(1.49)))
    assert not any("profiler made" in reason for reason in verdict.reasons)


@pytest.mark.parametrize(("count", "confidence"), [(19, "medium"), (20, "high")])
def test_twenty_steps_make_the_interval_reliable(count: int, confidence: str) -> None:
    assert decide(session(steps=make_steps(count=count))).confidence == confidence


def test_five_steps_are_enough_for_a_verdict() -> None:
    assert decide(session(steps=make_steps(count=5))).bottleneck == "input"
