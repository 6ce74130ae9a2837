"""The part of the step that the user's own per-batch callbacks take."""

from __future__ import annotations

from pipediag.session.host import HotLine
from pipediag.session.loops import Callback
from pipediag.session.model import Session


def per_batch_callbacks(session: Session) -> list[Callback]:
    """Callbacks of the diagnosed loop that override a per-batch method."""
    loop = session.diagnosed_loop()
    callbacks = loop.keras.callbacks if loop and loop.keras else []
    return [callback for callback in callbacks if callback.batch_hooks]


def lines_of(session: Session, callback: Callback) -> list[HotLine]:
    """The hot lines of the training thread that lie within the callback's per-batch methods."""
    hot = session.host.hot_python if session.host else []
    return [
        line
        for line in hot
        if line.file == callback.file
        and line.thread == "main"
        and line.function.rsplit(".", 1)[-1] in callback.batch_hooks
    ]


def callback_percent(session: Session, callback: Callback) -> float:
    """Percent of the step in the callback's per-batch methods: by a clock, or the stack samples
    where Keras calls it on another thread, which the clock does not see."""
    return max(callback.step_percent or 0.0, sampled_percent(session, callback))


def sampled_percent(session: Session, callback: Callback) -> float:
    """Percent of the stack samples in the callback's per-batch methods."""
    return sum(line.percent for line in lines_of(session, callback))


def callbacks_percent(session: Session) -> float:
    """Percent of the step in any per-batch callback, by the clock or by the stack samples."""
    callbacks = per_batch_callbacks(session)
    lines = [line for cb in callbacks for line in lines_of(session, cb)]
    unique = {(line.file, line.line, line.function): line.percent for line in lines}
    clocked = {(cb.name, cb.file, cb.line): cb.step_percent or 0.0 for cb in callbacks}
    return max(sum(clocked.values()), sum(unique.values()))
