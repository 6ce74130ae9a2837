"""Lines that call a model or a metric, as their source names it."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

import pytest

from pipediag.capture.callsites import call_site, frames
from pipediag.capture.frameworks.keras.paired_calls import _named

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
