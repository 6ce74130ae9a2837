from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.step import batch_callback
from pipediag.session.edits import Edit, SkipCallback
from pipediag.session.host import HotLine
from pipediag.session.loops import Callback
from pipediag.session.model import Session
from pipediag.session.trials import NOT_TRIED
from tests.factories import (
    make_compute_bound_session,
    make_host,
    make_keras,
    make_loop,
    make_session,
)
from tests.records import make_breakdown
from tests.rules.sessions import only

SLOW = Callback(name="Logger", file="train.py", line=30, batch_hooks=["on_train_batch_end"])
EPOCHS = Callback(name="Saver", file="train.py", line=40, batch_hooks=[])


def line(percent: float, **overrides: Any) -> HotLine:
    values: dict[str, Any] = {
        "file": "train.py",
        "line": 33,
        "function": "on_train_batch_end",
        "thread": "main",
    }
    return HotLine(percent=percent, **{**values, **overrides})


def session_with(*lines: HotLine, callback: Callback = SLOW) -> Session:
    loop = make_loop(keras=make_keras(callbacks=[callback]))
    host = make_host(hot_python=list(lines))
    return make_compute_bound_session(loops=[loop], host=host)


def test_fails_at_the_callback_and_names_its_hottest_line() -> None:
    fit = line(40.0, line=50, function="<module>")
    finding = only(batch_callback, session_with(line(15.0), line(35.0, line=34), fit))
    assert (finding.status, finding.file, finding.line) == ("fail", "train.py", 30)
    assert "50 % of the time" in finding.advice
    assert "train.py:34" in finding.advice
    # All but the input may get shorter on the same CPUs.
    assert finding.speedup_at_most == 100.0


def test_the_steps_are_tried_without_its_batch_hooks() -> None:
    finding = only(batch_callback, session_with(line(50.0)))
    assert finding.edit == Edit(
        id="batch-callback:Logger:30",
        label="the batch hooks of Logger left out",
        changes=(SkipCallback("Logger", "train.py", 30),),
        caveat=batch_callback.CAVEAT,
    )
    assert finding.effect_on_results == "same results"
    assert finding.trial.reason == NOT_TRIED.reason


def test_qualified_names_count() -> None:
    hot = line(50.0, function="Logger.on_train_batch_end")
    assert only(batch_callback, session_with(hot)).status == "fail"


@pytest.mark.parametrize(
    "lines",
    [
        [line(3.0)],
        [line(80.0, function="<module>")],
        [line(80.0, thread="source")],
        [line(80.0, file="other.py")],
        [],
    ],
)
def test_near_misses_pass(lines: list[HotLine]) -> None:
    assert only(batch_callback, session_with(*lines)).status == "pass"


def test_while_the_input_is_the_bottleneck_it_only_informs() -> None:
    session = session_with(line(50.0)).model_copy(update={"breakdown": make_breakdown()})
    finding = only(batch_callback, session)
    assert (finding.status, finding.edit is not None) == ("informative", True)
    assert "deal with the input first" in finding.advice


def test_an_epoch_callback_is_none_of_its_business() -> None:
    session = session_with(line(80.0), callback=EPOCHS)
    assert only(batch_callback, session).status == "not-applicable"


def test_a_custom_loop_has_no_callbacks() -> None:
    session = make_session(loops=[make_loop(kind="eager", keras=None)])
    assert only(batch_callback, session).status == "not-applicable"


def test_without_stack_samples_it_is_inconclusive() -> None:
    loop = make_loop(keras=make_keras(callbacks=[SLOW]))
    session = make_session(loops=[loop], host=None, host_missing="Stacks were not sampled.")
    finding = only(batch_callback, session)
    assert (finding.status, finding.advice) == ("inconclusive", "Stacks were not sampled.")


def test_all_of_its_hooks_are_named() -> None:
    both = ["on_train_batch_begin", "on_train_batch_end"]
    session = session_with(line(50.0), callback=SLOW.model_copy(update={"batch_hooks": both}))
    words = "Logger (on_train_batch_begin, on_train_batch_end) runs for 50 % of the time"
    assert words in only(batch_callback, session).advice


def test_without_a_reason_it_says_that_stacks_were_not_sampled() -> None:
    loop = make_loop(keras=make_keras(callbacks=[SLOW]))
    finding = only(batch_callback, make_session(loops=[loop], host=None))
    assert finding.advice == "The Python stacks were not sampled."


def test_the_clock_tells_what_samples_have_missed() -> None:
    clocked = SLOW.model_copy(update={"step_percent": 27.0})
    finding = only(batch_callback, session_with(line(2.9), callback=clocked))
    assert finding.status == "fail"
    assert "runs for 27 % of the time" in finding.advice
    assert finding.evidence["callback_percent_of_step"] == 27.0
    assert finding.evidence["callback_percent_of_samples"] == 2.9
