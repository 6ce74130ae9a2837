from __future__ import annotations

import pytest

from pipediag.reporters.words.phases import agreement, phases
from pipediag.session.loops import Differential
from pipediag.session.model import Session
from pipediag.session.trials import PipelineAlone
from tests import factories, records
from tests.reporters import trial_sessions


def measured(consumer: float, pipeline: float, both: float, wait_percent: float) -> Session:
    return factories.make_session(
        steps=records.make_steps(mean_ms=both),
        breakdown=records.make_breakdown(
            both, input_wait=wait_percent, device_compute=100 - wait_percent
        ),
        differential=Differential(
            step_ms=consumer, ci95_ms=(consumer, consumer), steps=30, input_share_percent=0.0
        ),
        pipeline_alone=PipelineAlone(step_ms=pipeline, ci95_ms=None, blocks=4),
    )


@pytest.mark.parametrize(
    ("consumer", "pipeline", "both", "sentence"),
    [
        (3.0, 9.8, 10.0, "they overlap, and the pipeline sets the pace"),
        (9.0, 4.0, 9.3, "they overlap, and the consumer sets the pace"),
        (5.0, 6.0, 10.8, "they do not overlap"),
        (5.0, 6.0, 8.5, "overlap in part, or compete for the CPU"),
        (3.0, 4.0, 9.0, "they hinder each other"),
        (3.0, 12.0, 8.0, "the three do not fit together"),
    ],
)
def test_how_the_three_fit(consumer: float, pipeline: float, both: float, sentence: str) -> None:
    assert sentence in (agreement(measured(consumer, pipeline, both, 50.0)) or "")


def test_the_breakdown_is_held_against_the_consumer_alone() -> None:
    agrees = agreement(measured(3.0, 9.8, 10.0, 70.0)) or ""
    differs = agreement(measured(3.0, 9.8, 10.0, 20.0)) or ""

    assert "and the breakdown agrees (70.0" in agrees
    assert "but the breakdown believes what was seen without it (20.0" in differs


def test_a_breakdown_that_rests_on_the_same_batch_is_no_second_witness() -> None:
    session = measured(3.0, 9.8, 10.0, 70.0).model_copy(
        update={"input_wait": records.make_input_wait(method="differential")}
    )

    assert "breakdown" not in (agreement(session) or "")


def test_no_sentence_without_all_three() -> None:
    assert agreement(trial_sessions.no_budget()) is None
    assert agreement(trial_sessions.pipeline_only()) is None


def test_what_is_missing_has_its_reason() -> None:
    consumer, pipeline, both = phases(trial_sessions.lost_child())

    assert (consumer.ms, consumer.ci95_ms, consumer.basis) == (3.0, (2.9, 3.1), "30 steps")
    assert pipeline.ms is None
    assert pipeline.missing == "The process that ran the trials was killed by SIGKILL."
    assert both.ci95_ms == pytest.approx((10.0, 10.0))


def test_the_base_of_the_trials_is_a_second_look_at_both() -> None:
    assert [row.ms for row in phases(trial_sessions.everything_tried())] == [3.0, 9.8, 10.0, 10.2]
    assert phases(factories.make_session(steps=None)) == []
