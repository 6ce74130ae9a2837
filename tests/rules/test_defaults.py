"""Optimisations of tf.data's own that are switched off."""

from __future__ import annotations

from typing import Any

from pipediag.rules.defaults import DEBUG_MODE, DISABLED_DEFAULTS, MISSING_PREFETCH
from pipediag.session.edits import Insert, SetOptions
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_session
from tests.records import make_environment, make_operation
from tests.rules.sessions import batch, cases, decided, keeps_up, only, session_of, source

DEFAULTS = "optimization.apply_default_optimizations"
OFF = {"options": {DEFAULTS: False, "deterministic": False}}
DEBUG = {"environment": make_environment(tf_data_debug_mode=True)}
FRAMEWORK = source(made_by_framework=True)
OPTIONS = make_operation("options", "with_options", line=10)


def of(*ops: Operation, pipeline: dict[str, Any] | None = None, **overrides: Any) -> Session:
    return session_of(source(), *(ops or (batch(),)), pipeline=pipeline, **overrides)


def ahead(after: str) -> object:
    return ("fail", (Insert(after, "prefetch", {"buffer_size": -1}),))


@cases(
    {
        "defaults off": (of(pipeline=OFF), ahead("batch")),
        "not tuned": (of(pipeline={"autotune_enabled": False}), ahead("batch")),
        "debug mode": (of(**DEBUG), ("fail", None)),
        "behind the options": (of(batch(), OPTIONS, pipeline=OFF), ahead("options")),
        "keeps up": (of(pipeline=OFF, **keeps_up()), ("informative", None)),
        "injected": (
            of(batch(), make_operation("p", "prefetch", inserted_by_tensorflow=True)),
            ("pass", None),
        ),
        "its own": (of(batch(), make_operation("p", "prefetch"), pipeline=OFF), ("pass", None)),
        "fused": (of(batch(iterator_name="MapAndBatch"), pipeline=OFF), ("pass", None)),
        "parallel": (
            of(make_operation("f", "filter", iterator_name="ParallelFilter"), pipeline=OFF),
            ("pass", None),
        ),
        "defaults on": (of(), ("pass", None)),
        "of the framework": (session_of(FRAMEWORK), ("pass", None)),
    },
    "session, expected",
)
def test_a_prefetch_that_tensorflow_was_kept_from(session: Session, expected: object) -> None:
    assert decided(MISSING_PREFETCH, session) == expected


def on(*names: str) -> object:
    return ("fail", (SetOptions(dict.fromkeys(names, True)),))


INJECT = "optimization.inject_prefetch"


@cases(
    {
        "defaults": (of(pipeline=OFF), on(DEFAULTS)),
        "tuning": (
            of(pipeline={"options": {"autotune.enabled": False}, "autotune_enabled": False}),
            on("autotune.enabled"),
        ),
        "several": (
            of(pipeline={"options": {INJECT: False}, "autotune_enabled": False}),
            on(INJECT, "autotune.enabled"),
        ),
        "other options": (
            of(pipeline={"options": {"deterministic": False, DEFAULTS: None}}),
            ("pass", None),
        ),
        "keeps up": (of(pipeline=OFF, **keeps_up()), ("informative", None)),
        "of the framework": (session_of(FRAMEWORK, pipeline=OFF), ("pass", None)),
    },
    "session, expected",
)
def test_options_that_are_switched_off(session: Session, expected: object) -> None:
    assert decided(DISABLED_DEFAULTS, session) == expected


@cases(
    {
        "on": (make_session(**DEBUG), "fail"),
        "keeps up": (make_session(**DEBUG, **keeps_up()), "informative"),
        "off": (make_session(), "pass"),
    },
    "session, status",
)
def test_debug_mode_is_never_tried(session: Session, status: str) -> None:
    finding = only(DEBUG_MODE, session)
    assert (finding.status, finding.edit) == (status, None)
