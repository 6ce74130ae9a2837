from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.pipeline import missing_prefetch
from pipediag.session.edits import Edit, Insert
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_session
from tests.records import make_breakdown, make_environment, make_operation
from tests.rules.sessions import batch, keeps_up, only, session_of, source

OFF = {"options": {"optimization.apply_default_optimizations": False}}


def injected() -> Operation:
    return make_operation("injected", "prefetch", inserted_by_tensorflow=True, file=None, line=None)


def kept() -> Operation:
    return make_operation("filter", "filter", iterator_name="ParallelFilter", parallelism=2)


@pytest.mark.parametrize(
    ("pipeline", "environment"),
    [
        (OFF, {}),
        ({"options": {"inject_prefetch": False}}, {}),
        ({"options": {"autotune.enabled": False}}, {}),
        ({"autotune_enabled": False}, {}),
        ({}, {"tf_data_debug_mode": True}),
    ],
)
def test_fails_only_where_tensorflow_was_told_not_to(
    pipeline: dict[str, Any], environment: dict[str, Any]
) -> None:
    session = session_of(
        source(), batch(), pipeline=pipeline, environment=make_environment(**environment)
    )
    finding = only(missing_prefetch, session)
    assert (finding.status, finding.op_id) == ("fail", "batch")
    # 7 ms of input beside 3 ms of the rest: 7 ms remain.
    assert finding.speedup_at_most == pytest.approx(10 / 7, abs=0.001)


def test_the_options_themselves_are_not_the_end() -> None:
    options = make_operation("options", "with_options")
    finding = only(missing_prefetch, session_of(source(), batch(), options, pipeline=OFF))
    assert finding.op_id == "batch"


def test_prediction_is_bound_by_the_longer_half() -> None:
    breakdown = make_breakdown(off=0.0, input_wait=30.0, device_compute=70.0)
    session = session_of(source(), batch(), pipeline=OFF, breakdown=breakdown)
    assert only(missing_prefetch, session).speedup_at_most == pytest.approx(10 / 7, abs=0.001)


@pytest.mark.parametrize(
    ("session", "words"),
    [
        (session_of(source(), batch(), injected()), "has injected"),
        (session_of(source(), batch(), make_operation("p", "prefetch"), pipeline=OFF), "its own"),
        (session_of(source(), batch(iterator_name="MapAndBatch"), pipeline=OFF), "MapAndBatch"),
        (session_of(source(), kept(), pipeline=OFF), "ParallelFilter"),
        (session_of(source(), batch()), "defaults are on"),
    ],
)
def test_is_silent_where_adding_one_gains_nothing(session: Session, words: str) -> None:
    finding = only(missing_prefetch, session)
    assert finding.status == "pass"
    assert words in finding.advice


def test_does_not_fail_where_the_step_does_not_wait() -> None:
    session = session_of(source(), batch(), pipeline=OFF, **keeps_up())
    assert only(missing_prefetch, session).status == "informative"


def test_missing_data() -> None:
    framework = session_of(source(made_by_framework=True))
    assert only(missing_prefetch, framework).status == "not-applicable"
    assert only(missing_prefetch, make_session(breakdown=None)).status == "inconclusive"


def test_tries_a_prefetch_behind_everything() -> None:
    options = make_operation("options", "with_options")
    session = session_of(source(), batch(), options, pipeline=OFF)
    assert only(missing_prefetch, session).edit == Edit(
        id="missing-prefetch:batch",
        label="prefetch(AUTOTUNE) behind the batch in line 9",
        changes=(Insert("options", "prefetch", {"buffer_size": -1}),),
    )


def test_a_prefetch_in_debug_mode_is_not_tried() -> None:
    environment = make_environment(tf_data_debug_mode=True)
    finding = only(missing_prefetch, session_of(source(), batch(), environment=environment))
    assert finding.edit is None
    assert "Debug mode drops every prefetch" in str(finding.trial.reason)
