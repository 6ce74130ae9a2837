from __future__ import annotations

import pytest

from pipediag.facts.step import (
    CALL_CLASSES,
    class_ms,
    class_percent,
    consumer_ms,
    group_percents,
    uneven,
)
from pipediag.session.steps import Ceiling
from tests.factories import make_session
from tests.records import make_breakdown, make_input_wait, make_steps


def test_groups_come_with_the_largest_first() -> None:
    breakdown = make_breakdown(input_wait=10.0, device_compute=20.0, dispatch=25.0, python=30.0)
    assert group_percents(breakdown) == {"overhead": 55.0, "compute": 20.0, "transfer": 0.0}
    assert next(iter(group_percents(breakdown))) == "overhead"


def test_classes_add_up() -> None:
    session = make_session(breakdown=make_breakdown(10.0, dispatch=25.0, python=30.0))
    assert class_percent(session, CALL_CLASSES) == pytest.approx(55.0)
    assert class_ms(session, CALL_CLASSES) == pytest.approx(5.5)


def test_without_a_breakdown_they_are_nothing() -> None:
    session = make_session(breakdown=None)
    assert class_percent(session, CALL_CLASSES) == class_ms(session, CALL_CLASSES) == 0.0


def test_the_consumer_takes_what_a_free_input_would_leave_of_the_step() -> None:
    session = make_session(breakdown=make_breakdown(10.0, input_wait=70.0), ceiling=None)
    assert consumer_ms(session) == pytest.approx(3.0)
    half = Ceiling(speedup_if_input_free=2.0, next_bottleneck=None)
    assert consumer_ms(session.model_copy(update={"ceiling": half})) == pytest.approx(5.0)


def test_beside_a_pipeline_on_its_cpus_it_takes_what_it_does_not_wait() -> None:
    wait = make_input_wait(native_percent=20.0, method="differential", contention="cpu")
    session = make_session(input_wait=wait, breakdown=make_breakdown(10.0, input_wait=60.0))
    assert consumer_ms(session) == pytest.approx(8.0)


@pytest.mark.parametrize("section", ["steps", "breakdown"])
def test_what_was_not_measured_has_no_consumer(section: str) -> None:
    assert consumer_ms(make_session(**{section: None})) is None


@pytest.mark.parametrize(
    ("mean_ms", "words"),
    [
        (12.1, "Few long steps"),
        (12.0, None),
        (10.0, None),
        (8.4, None),
        (8.3, "much shorter"),
    ],
)
def test_a_mean_far_from_the_median_speaks_of_other_steps(
    mean_ms: float, words: str | None
) -> None:
    said = uneven(make_steps(mean_ms=mean_ms, median_ms=10.0))
    assert said is None if words is None else words in str(said)


def test_steps_a_fifth_longer_than_the_mean_are_not_uneven_yet() -> None:
    assert uneven(make_steps(mean_ms=10.0, median_ms=12.0)) is None


def test_elsewhere_the_step_waits_in_get_next_as_long_as_for_its_input() -> None:
    waiting = make_breakdown(10.0, input_wait=60.0)
    for contention in (None, "python"):
        wait = make_input_wait(native_percent=20.0, contention=contention)
        session = make_session(input_wait=wait, breakdown=waiting, ceiling=None)
        assert consumer_ms(session) == pytest.approx(4.0)
