"""Lines that call a model or a metric: how the source names that, and what is timed there."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent
from unittest.mock import Mock

import numpy as np
import pytest

from pipediag.capture.callsites import call_site, frames
from pipediag.capture.frameworks.keras.paired_calls import PairedCalls, _named
from pipediag.capture.loops.loop import Stage
from pipediag.session.recording import Prediction

SCRIPT = """
    def evaluate(given):
        {local}
        for x in range(2):
            {line}

    auc, metrics = Metric(), [Metric(), Metric()]
    for epoch in range(2):
        {each}
        {call}
    {behind}
"""


@pytest.mark.parametrize(
    ("parts", "named"),
    [
        ({"line": "auc.update()"}, ("auc", False)),
        ({"line": "auc.update()", "each": "auc = Metric()"}, ("auc", True)),
        ({"line": "auc.update()", "behind": "auc = Metric(); evaluate(auc)"}, ("auc", False)),
        ({"line": "given.update()"}, ("given", False)),
        ({"line": "given.update()", "each": "auc = Metric()"}, ("given", True)),
        ({"line": "given.update()", "call": "evaluate(Metric())"}, ("given", True)),
        ({"line": "own.update()", "local": "own = Metric()"}, ("own", True)),
        ({"line": "auc.rows.update()", "local": "auc.rows = Metric()"}, ("auc.rows", True)),
        ({"line": "for one in metrics: one.update()"}, ("one", False)),
        ({"line": "Metric().update()"}, (None, False)),
    ],
)
def test_the_object_of_a_line_and_whether_each_epoch_has_another(
    parts: dict[str, str], named: tuple[str | None, bool], tmp_path: Path
) -> None:
    given = {"local": "pass", "each": "pass", "call": "evaluate(auc)", "behind": "pass", **parts}
    script, source = tmp_path / "train.py", dedent(SCRIPT.format(**given))
    script.write_text(source, encoding="utf-8")
    found = list[tuple[str | None, bool]]()

    class Metric:
        def update(self) -> None:
            # The test's own frames are the script's, too, for what asks.
            site = call_site(frames(sys._getframe(1)))
            assert site is not None
            found.append(_named(self, "update", site))

    exec(compile(source, str(script), "exec"), {"Metric": Metric})
    assert found[0] == named


@pytest.mark.parametrize(("interruption", "of_step"), [(None, 8), (Mock(), 0)])
def test_a_pair_for_a_prediction_in_a_step_is_no_time_of_that_step(
    interruption: object, of_step: int
) -> None:
    last = Mock(stage=Stage.OWN)
    last.loop.last_ns = 0
    last.loop.interruption = interruption
    predictions, steps = list[Prediction](), Mock(last_here=last)
    calls, rows = PairedCalls(predictions, Mock(), steps), np.ones((4, 2))
    model = Mock(predict_on_batch=lambda x: x)
    for _ in range(20):
        calls.predicted(1_000_000, rows, model, (rows,), {})
    (found,) = predictions
    assert (found.calls, len(found.other_ms), found.lacking) == (20, 8, None)
    assert steps.interrupted_by_us.call_count == of_step
