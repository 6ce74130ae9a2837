"""A step of which much could not be attributed: when that forbids a verdict, and what is said."""

from __future__ import annotations

from pipediag.measures.verdict.decision import decide
from tests.measures.verdict.test_decision import session, with_interval
from tests.records import make_breakdown, make_environment


def test_as_much_unknown_as_known_still_names_the_known() -> None:
    shares = make_breakdown(input_wait=2.0, device_compute=49.0)
    assert shares["unattributed"].percent == 49.0
    assert decide(session(breakdown=shares)).bottleneck == "compute"


def test_more_unknown_than_any_cause_names_none() -> None:
    shares = make_breakdown(input_wait=2.0, device_compute=30.0, dispatch=19.0, python=15.0)
    assert shares["unattributed"].percent == 34.0
    # Dispatch and Python are one group, larger than what is unknown.
    assert decide(session(breakdown=shares)).bottleneck == "balanced"
    less = make_breakdown(input_wait=2.0, device_compute=30.0, dispatch=17.0, python=15.0)
    assert less["unattributed"].percent == 36.0
    verdict = decide(session(breakdown=less))
    assert (verdict.bottleneck, verdict.severity, verdict.confidence) == (
        "inconclusive",
        "unknown",
        "low",
    )
    assert verdict.summary == (
        "Not input-bound (input wait 2 % of the step), but what the rest is bound by is not known: "
        "36 % of the step could not be attributed."
    )
    assert (verdict.file, verdict.line, verdict.op_id) == (None, None, None)


def test_input_that_is_not_fine_is_not_said_to_be() -> None:
    at_the_limit = make_breakdown(input_wait=5.0, device_compute=20.0)
    assert decide(session(breakdown=at_the_limit)).summary.startswith(
        "Not mainly input-bound (input wait 5 % of the step)"
    )


def test_on_pytorch_what_is_known_is_said_and_why_no_more_is() -> None:
    torch = make_environment(keras_backend="torch")
    shares = make_breakdown(input_wait=1.0)
    wait = shares["input_wait"].model_copy(update={"ci95_percent": (0.4, 2.0)})
    verdict = decide(session(breakdown={**shares, "input_wait": wait}, environment=torch))
    assert (verdict.bottleneck, verdict.confidence) == ("inconclusive", "low")
    assert verdict.summary == (
        "The loop does not wait for input, which takes 1 % of each step (95 % interval 0 to 2 %). "
        "What is in the rest is not divided on this backend: PyTorch computes it, which "
        "TensorFlow's profiler does not see."
    )
    more = decide(session(breakdown=make_breakdown(input_wait=12.0), environment=torch))
    assert more.summary.startswith("The loop does not mainly wait for input, which takes 12 %")


def test_much_that_is_unknown_does_not_hide_input() -> None:
    shares = make_breakdown(input_wait=30.0, device_compute=5.0)
    assert decide(session(breakdown=shares)).bottleneck == "input"


def test_what_was_measured_and_what_is_in_doubt_is_said_all_the_same() -> None:
    shares = with_interval(3.0, 6.0, 9.0)
    unknown = shares["device_compute"]
    shares |= {"device_compute": shares["unattributed"], "unattributed": unknown}
    verdict = decide(session(breakdown=shares))
    assert verdict.bottleneck == "inconclusive"
    assert "steps without a profiler" in verdict.reasons[0]
    assert any("straddles" in reason for reason in verdict.reasons[1:])
