from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.defaults import DEBUG_MODE, DISABLED_DEFAULTS, MISSING_PREFETCH
from pipediag.session.edits import Edit, Insert, SetOptions
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_session
from tests.records import make_breakdown, make_environment, make_operation
from tests.rules.sessions import batch, keeps_up, only, session_of, source

PREFETCH_OFF = {"options": {"optimization.apply_default_optimizations": False}}


def injected() -> Operation:
    return make_operation("injected", "prefetch", inserted_by_tensorflow=True, file=None, line=None)


def kept() -> Operation:
    return make_operation("filter", "filter", iterator_name="ParallelFilter", parallelism=2)


@pytest.mark.parametrize(
    ("pipeline", "environment"),
    [
        (PREFETCH_OFF, {}),
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
    finding = only(MISSING_PREFETCH, session)
    assert (finding.status, finding.op_id) == ("fail", "batch")
    # 7 ms of input beside 3 ms of the rest: 7 ms remain.
    assert finding.speedup_at_most == pytest.approx(10 / 7, abs=0.001)


def test_the_options_themselves_are_not_the_end() -> None:
    options = make_operation("options", "with_options")
    finding = only(MISSING_PREFETCH, session_of(source(), batch(), options, pipeline=PREFETCH_OFF))
    assert finding.op_id == "batch"


def test_prediction_is_bound_by_the_longer_half() -> None:
    breakdown = make_breakdown(off=0.0, input_wait=30.0, device_compute=70.0)
    session = session_of(source(), batch(), pipeline=PREFETCH_OFF, breakdown=breakdown)
    assert only(MISSING_PREFETCH, session).speedup_at_most == pytest.approx(10 / 7, abs=0.001)


@pytest.mark.parametrize(
    ("session", "words"),
    [
        (session_of(source(), batch(), injected()), "has injected"),
        (
            session_of(source(), batch(), make_operation("p", "prefetch"), pipeline=PREFETCH_OFF),
            "its own",
        ),
        (
            session_of(source(), batch(iterator_name="MapAndBatch"), pipeline=PREFETCH_OFF),
            "MapAndBatch",
        ),
        (session_of(source(), kept(), pipeline=PREFETCH_OFF), "ParallelFilter"),
        (session_of(source(), batch()), "defaults are on"),
    ],
)
def test_is_silent_where_adding_one_gains_nothing(session: Session, words: str) -> None:
    finding = only(MISSING_PREFETCH, session)
    assert finding.status == "pass"


def test_prefetch_does_not_fail_where_the_step_does_not_wait() -> None:
    session = session_of(source(), batch(), pipeline=PREFETCH_OFF, **keeps_up())
    assert only(MISSING_PREFETCH, session).status == "informative"


def test_missing_data() -> None:
    framework = session_of(source(made_by_framework=True))
    assert only(MISSING_PREFETCH, framework).status == "not-applicable"
    assert only(MISSING_PREFETCH, make_session(breakdown=None)).status == "inconclusive"


def test_tries_a_prefetch_behind_everything() -> None:
    options = make_operation("options", "with_options")
    session = session_of(source(), batch(), options, pipeline=PREFETCH_OFF)
    assert only(MISSING_PREFETCH, session).edit == Edit(
        id="tf-data-defaults:batch",
        label="prefetch(AUTOTUNE) behind the batch in line 9",
        changes=(Insert("options", "prefetch", {"buffer_size": -1}),),
    )


def test_a_prefetch_in_debug_mode_is_not_tried() -> None:
    environment = make_environment(tf_data_debug_mode=True)
    finding = only(MISSING_PREFETCH, session_of(source(), batch(), environment=environment))
    assert finding.edit is None
    assert "Debug mode drops every prefetch" in str(finding.trial.reason)


OPTIONS_OFF = {
    "options": {"optimization.apply_default_optimizations": False, "deterministic": False}
}


def test_fails_and_names_the_options() -> None:
    options = make_operation("options", "with_options", line=10)
    finding = only(DISABLED_DEFAULTS, session_of(source(), batch(), options, pipeline=OPTIONS_OFF))
    assert (finding.status, finding.line) == ("fail", 10)


def test_autotune_is_named_once() -> None:
    pipeline = {"options": {"autotune.enabled": False}, "autotune_enabled": False}
    finding = only(DISABLED_DEFAULTS, session_of(source(), batch(), pipeline=pipeline))
    assert finding.evidence["switched_off"] == "options.autotune.enabled = False"


def test_defaults_and_other_options_pass() -> None:
    pipeline = {"options": {"deterministic": False, "apply_default_optimizations": None}}
    session = session_of(source(), batch(), pipeline=pipeline)
    assert only(DISABLED_DEFAULTS, session).status == "pass"


def test_a_pipeline_of_the_framework_is_left_alone() -> None:
    session = session_of(source(made_by_framework=True), pipeline=OPTIONS_OFF)
    assert only(DISABLED_DEFAULTS, session).status == "not-applicable"


def test_options_does_not_fail_where_the_step_does_not_wait() -> None:
    session = session_of(source(), batch(), pipeline=OPTIONS_OFF, **keeps_up())
    assert only(DISABLED_DEFAULTS, session).status == "informative"


def test_options_missing_breakdown_is_inconclusive() -> None:
    assert only(DISABLED_DEFAULTS, make_session(breakdown=None)).status == "inconclusive"


def test_tries_the_defaults() -> None:
    assert only(
        DISABLED_DEFAULTS, session_of(source(), batch(), pipeline=OPTIONS_OFF)
    ).edit == Edit(
        id="tf-data-defaults",
        label="optimization.apply_default_optimizations = True",
        changes=(SetOptions({"optimization.apply_default_optimizations": True}),),
    )


def test_several_are_tried_together() -> None:
    off = {"options": {"optimization.inject_prefetch": False}, "autotune_enabled": False}
    edit = only(DISABLED_DEFAULTS, session_of(source(), batch(), pipeline=off)).edit
    assert edit is not None
    assert edit.label == "tf.data's defaults switched on again"
    assert edit.changes == (
        SetOptions({"optimization.inject_prefetch": True, "autotune.enabled": True}),
    )


ON = make_environment(tf_data_debug_mode=True)


def test_fails_where_it_is_on() -> None:
    finding = only(DEBUG_MODE, make_session(environment=ON))
    assert finding.status == "fail"


def test_passes_where_it_is_off() -> None:
    assert only(DEBUG_MODE, make_session()).status == "pass"


def test_debug_does_not_fail_where_the_step_does_not_wait() -> None:
    assert only(DEBUG_MODE, make_session(environment=ON, **keeps_up())).status == "informative"


def test_debug_missing_breakdown_is_inconclusive() -> None:
    assert only(DEBUG_MODE, make_session(environment=ON, breakdown=None)).status == "inconclusive"


def test_says_why_it_is_not_tried() -> None:
    environment = make_environment(tf_data_debug_mode=True)
    finding = only(DEBUG_MODE, make_session(environment=environment))
    assert finding.edit is None
    assert "whole process" in str(finding.trial.reason)
