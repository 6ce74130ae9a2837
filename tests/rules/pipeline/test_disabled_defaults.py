from __future__ import annotations

from pipediag.rules.pipeline import disabled_defaults
from pipediag.session.edits import Edit, SetOptions
from tests.factories import make_session
from tests.records import make_operation
from tests.rules.sessions import batch, keeps_up, only, session_of, source

OFF = {"options": {"optimization.apply_default_optimizations": False, "deterministic": False}}


def test_fails_and_names_the_options() -> None:
    options = make_operation("options", "with_options", line=10)
    finding = only(disabled_defaults, session_of(source(), batch(), options, pipeline=OFF))
    assert (finding.status, finding.line) == ("fail", 10)
    assert (
        "`options.experimental_optimization.apply_default_optimizations = False`" in finding.advice
    )
    assert "deterministic" not in finding.advice


def test_autotune_is_named_once() -> None:
    pipeline = {"options": {"autotune.enabled": False}, "autotune_enabled": False}
    finding = only(disabled_defaults, session_of(source(), batch(), pipeline=pipeline))
    assert finding.evidence["switched_off"] == "options.autotune.enabled = False"


def test_defaults_and_other_options_pass() -> None:
    pipeline = {"options": {"deterministic": False, "apply_default_optimizations": None}}
    session = session_of(source(), batch(), pipeline=pipeline)
    assert only(disabled_defaults, session).status == "pass"


def test_a_pipeline_of_the_framework_is_left_alone() -> None:
    session = session_of(source(made_by_framework=True), pipeline=OFF)
    assert only(disabled_defaults, session).status == "not-applicable"


def test_does_not_fail_where_the_step_does_not_wait() -> None:
    session = session_of(source(), batch(), pipeline=OFF, **keeps_up())
    assert only(disabled_defaults, session).status == "informative"


def test_missing_breakdown_is_inconclusive() -> None:
    assert only(disabled_defaults, make_session(breakdown=None)).status == "inconclusive"


def test_tries_the_defaults() -> None:
    assert only(disabled_defaults, session_of(source(), batch(), pipeline=OFF)).edit == Edit(
        id="disabled-defaults",
        label="optimization.apply_default_optimizations = True",
        changes=(SetOptions({"optimization.apply_default_optimizations": True}),),
    )


def test_several_are_tried_together() -> None:
    off = {"options": {"optimization.inject_prefetch": False}, "autotune_enabled": False}
    edit = only(disabled_defaults, session_of(source(), batch(), pipeline=off)).edit
    assert edit is not None
    assert edit.label == "tf.data's defaults switched on again"
    assert edit.changes == (
        SetOptions({"optimization.inject_prefetch": True, "autotune.enabled": True}),
    )
