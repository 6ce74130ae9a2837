from __future__ import annotations

from pipediag.measures.verdict.decision import NOTHING_TRAINED, decide_input_alone
from tests import factories, records


def test_it_says_what_the_pipeline_gives_and_what_costs_most() -> None:
    verdict = factories.make_verdict(where="epoch_end", where_percent=60.0)
    session = factories.make_session(verdict=verdict)
    assert session.steps is not None

    decided = decide_input_alone(session)

    assert decided.summary.startswith(
        f"The pipeline alone takes {session.steps.mean_ms:.3g} ms for a batch"
    )
    assert "`map` at train.py:12 costs most" in decided.summary
    assert (decided.bottleneck, decided.severity) == ("input", "unknown")
    assert decided.reasons[-1] == NOTHING_TRAINED
    assert decided.where is None


def test_where_too_little_was_measured_it_stays_undecided() -> None:
    verdict = factories.make_verdict(bottleneck="inconclusive", summary="Too few steps.")
    few = records.make_steps(count=4)
    session = factories.make_session(verdict=verdict, steps=few)
    assert decide_input_alone(session) == verdict
    unmeasured = factories.make_session(steps=None)
    assert decide_input_alone(unmeasured) == unmeasured.verdict


def test_waits_that_are_in_doubt_are_no_doubt_of_a_pipeline_by_itself() -> None:
    verdict = factories.make_verdict(bottleneck="inconclusive", summary="Input wait lies somewhere")
    decided = decide_input_alone(factories.make_session(verdict=verdict))
    assert decided.bottleneck == "input"
    assert decided.summary.startswith("The pipeline alone takes")


def test_a_batch_of_unknown_size_has_no_rate() -> None:
    session = factories.make_session(steps=records.make_steps(examples_per_s=None))
    assert "examples" not in decide_input_alone(session).summary
