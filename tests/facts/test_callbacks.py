from __future__ import annotations

from pipediag.facts.python_callables import (
    callback_percent,
    callbacks_percent,
    lines_of,
    per_batch_callbacks,
)
from pipediag.session.model import HotLine, Session
from pipediag.session.recorded_loops import Callback
from tests.factories import make_host, make_keras, make_loop, make_session
from tests.records import SCRIPT

LOGGER = Callback(name="Logger", file=SCRIPT, line=30, batch_hooks=["on_train_batch_end"])
METER = Callback(name="Meter", file=SCRIPT, line=40, batch_hooks=["on_train_batch_end"])
SAVER = Callback(name="Saver", file=SCRIPT, line=50, batch_hooks=[])


def hot(line: int, function: str, percent: float, **overrides: str) -> HotLine:
    values = {"file": SCRIPT, "thread": "main", **overrides}
    return HotLine(line=line, function=function, percent=percent, **values)


IN_HOOK = hot(31, "Logger.on_train_batch_end", 12.0)
ALSO_IN_HOOK = hot(33, "on_train_batch_end", 5.0)
HOT = [
    IN_HOOK,
    ALSO_IN_HOOK,
    hot(52, "Saver.on_epoch_end", 20.0),
    hot(31, "Logger.on_train_batch_end", 40.0, thread="source"),
    hot(31, "Logger.on_train_batch_end", 40.0, file="other.py"),
    hot(8, "on_train_batch_end.<locals>.inner", 40.0),
]


def session(*callbacks: Callback) -> Session:
    loop = make_loop(keras=make_keras(callbacks=list(callbacks)))
    return make_session(loops=[loop], host=make_host(hot_python=HOT))


def test_a_callback_without_a_method_for_each_batch_is_not_asked_about() -> None:
    assert per_batch_callbacks(session(LOGGER, SAVER)) == [LOGGER]


def test_its_lines_are_those_of_its_methods_on_the_training_thread() -> None:
    assert lines_of(session(LOGGER), LOGGER) == [IN_HOOK, ALSO_IN_HOOK]
    assert lines_of(make_session(host=None), LOGGER) == []
    assert callback_percent(session(LOGGER), LOGGER) == 17.0


def test_a_line_that_two_callbacks_of_one_file_may_own_counts_once() -> None:
    assert callbacks_percent(session(LOGGER, METER)) == 17.0
    assert callbacks_percent(session(SAVER)) == 0
