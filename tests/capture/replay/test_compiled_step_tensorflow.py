"""Steps of a script's own that run as `tf.functions` while that is tried."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capture.conftest import Capturing

pytestmark = pytest.mark.tensorflow

SCRIPT = """
    import json
    import tensorflow as tf
    from pipediag.capture.replay import NotReplayableError
    from pipediag.capture.replay.rewriting import Rewritten
    from pipediag.session.edits import CompileFunction

    total = tf.Variable(0.0)

    def step(x, *, rate=2.0):
        total.assign_add(rate * x)
        return tf.executing_eagerly()

    def maker(rate, other):
        def closed(x):
            total.assign_add(rate * x + other)
            return tf.executing_eagerly()
        return closed

    class Trainer:
        def __init__(self):
            self.losses = []
        def keeps(self, x):
            self.losses.append(x)
        def step(self, x):
            total.assign_add(x)
            return tf.executing_eagerly()

    def reads(x):
        return (total + x).numpy()

    failures = []

    def tried(function, called, *more):
        code = function.__code__
        change = CompileFunction(code.co_filename, code.co_firstlineno, code.co_name)
        try:
            rewritten = Rewritten([change], {}, failures.append)
        except NotReplayableError as refused:
            return str(refused)
        total.assign(0.0)
        with rewritten.patched():
            eager = called(tf.constant(3.0))
        assert function.__code__ is code
        return [bool(eager), float(total)]

    class Lengthy:
        def __init__(self):
            self.total = None
        @tf.function
        def step(self, x):
            if self.total is None:
                self.total = tf.Variable(0.0)
            self.total.assign_add(tf.reduce_sum(x))
            return self.total

    def lengths(lengthy):
        return [float(lengthy.step(tf.ones([length]))) for length in range(2, 8)]

    lengthy = Lengthy()
    lengths(lengthy)
    code = vars(Lengthy)["step"].python_function.__code__
    change = CompileFunction(code.co_filename, code.co_firstlineno, "step", reduce_retracing=True)
    rewritten = Rewritten([change], {}, lambda error: None)
    own = lengthy.step.experimental_get_tracing_count()
    with rewritten.patched():
        totals = lengths(lengthy)

    closed, trainer = maker(4.0, 1.0), Trainer()
    results = {
        "function": tried(step, step),
        "closed": tried(closed, closed),
        "method": tried(Trainer.step, trainer.step),
        "keeps": tried(Trainer.keeps, trainer.keeps),
        "reads": tried(reads, reads),
        "own": own,
        "relaxed": rewritten.traces(),
        "after": lengthy.step.experimental_get_tracing_count(),
        "totals": totals,
        "failures": len(failures),
    }
    print("RESULTS", json.dumps(results))
"""


@pytest.fixture(scope="module")
def results(capturing: Capturing) -> dict[str, Any]:
    return capturing(SCRIPT).results


def test_a_step_is_a_graph_while_that_is_tried(results: dict[str, Any]) -> None:
    assert results["function"] == [False, 6.0]
    assert results["closed"] == [False, 13.0]
    assert results["method"] == [False, 3.0]
    assert "`self.losses`" in results["keeps"]
    assert results["reads"] == [True, 0.0]
    assert results["failures"] == 1


def test_a_function_is_traced_for_all_shapes_while_that_is_tried(results: dict[str, Any]) -> None:
    assert results["own"] == results["after"]
    assert results["own"] >= 6
    assert results["relaxed"] == 2
    assert results["totals"] == [29.0, 32.0, 36.0, 41.0, 47.0, 54.0]
