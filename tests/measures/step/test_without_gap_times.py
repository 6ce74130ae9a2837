from __future__ import annotations

import numpy as np

from pipediag.measures.bootstrap import Measured
from pipediag.measures.input_wait import believed_share, settle_input_wait
from pipediag.measures.steps import ConsumerAlone
from pipediag.measures.verdict.doubts import confidence_of, doubts
from pipediag.session.steps import Differential, Perturbation
from pipediag.vocabulary import Contention
from tests.factories import make_session
from tests.measures.traces import make_split

SLOWED = Perturbation(baseline_step_ms=0.48, profiled_step_ms=0.54, ratio=1.14)


def share(percent: float) -> Measured:
    return Measured(percent, np.array([percent - 1.0, percent, percent + 1.0]))


def alone(percent: float) -> ConsumerAlone:
    step_ms = 1.0 - percent / 100.0
    return ConsumerAlone(
        Differential(
            step_ms=step_ms,
            ci95_ms=(step_ms, step_ms),
            steps=1930,
            input_share_percent=percent,
        ),
        share(percent).draws,
    )


def test_what_warm_rows_explain_is_no_input_bound_verdict() -> None:
    split = make_split(input_wait=0.7, dispatch=9.3)
    settled = settle_input_wait(None, split, alone(24.0), None, SLOWED)
    assert settled.summary.method == "trace"
    assert settled.chosen is not None
    assert round(settled.chosen.percent) == 7
    assert settled.summary.unsettled
    assert "24 % shorter, but in the profile" in str(settled.summary.disagreement)
    assert "the profile is believed" in str(settled.summary.disagreement)


def test_more_than_warm_rows_explain_is_inputs_but_doubtful() -> None:
    believed = believed_share(alone(45.0), share(7.0), None)
    assert believed.method == "differential"
    assert "the repeated batch is believed" in str(believed.doubt)


def test_a_profile_with_more_wait_does_not_outweigh_a_step_that_needs_its_time_alone() -> None:
    believed = believed_share(alone(3.0), share(30.0), None)
    assert believed.method == "differential"
    assert believed.doubt is not None


def test_the_repeated_batch_stands_where_nothing_speaks_against_it() -> None:
    for trace in (None, share(60.0), share(23.0)):
        believed = believed_share(alone(24.0), trace, None)
        assert (believed.method, believed.doubt) == ("differential", None)


def test_on_the_same_side_of_the_limits_nothing_is_doubtful() -> None:
    believed = believed_share(alone(17.0), share(7.0), None)
    assert (believed.method, believed.doubt) == ("differential", None)


def test_what_is_fought_for_is_settled_by_the_consumer_alone() -> None:
    fights: tuple[Contention, ...] = ("python", "cpu")
    for contention in fights:
        believed = believed_share(alone(24.0), share(7.0), contention)
        assert (believed.method, believed.doubt) == ("differential", None)


def test_what_nothing_settles_is_no_high_confidence() -> None:
    settled = settle_input_wait(
        None, make_split(input_wait=0.7, dispatch=9.3), alone(45.0), None, None
    )
    session = make_session(input_wait=settled.summary, perturbation=None, loops=[])
    assert confidence_of(doubts(session, "input", [])) == "medium"
