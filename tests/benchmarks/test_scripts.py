"""The scripts of the benchmarks and what is expected of them fit together; no script is run."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.diagnosis import SCRIPTS, labelled
from benchmarks.public_scripts.made_data import KINDS
from benchmarks.public_scripts.scripts import SourceError, changed, from_notebook, public_scripts
from benchmarks.run_ledger import SCRIPTS as RUN_SCRIPTS
from benchmarks.run_ledger import chosen
from tests.samples.expectation import Expectation, all_expectations, marked_lines


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.py")), ids=lambda script: script.stem)
def test_a_labelled_script_has_a_docstring_and_an_expectation(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text))
    assert "import pipediag" not in text
    assert script.with_suffix(".expect.toml").exists()


@pytest.mark.parametrize("expected", all_expectations(SCRIPTS), ids=lambda expected: expected.name)
def test_an_expectation_fits_its_script_and_itself(expected: Expectation) -> None:
    lines = (expected.verdict_line, expected.where_line, expected.loop_line)
    named = {*lines, *expected.rule_lines.values()} - {None}
    assert named <= set(marked_lines(expected.script))
    trials = expected.trials
    assert not set(trials.confirmed) & {*expected.must_be_silent, *expected.must_not_fail}
    assert trials.none or trials.confirmed or trials.not_confirmed


def test_each_name_is_used_once() -> None:
    names = [expected.name for expected in labelled()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("script", chosen(), ids=lambda script: script.stem)
def test_a_script_that_stamps_its_run_starts_its_clock_first(script: Path) -> None:
    tree = ast.parse(script.read_text(encoding="utf-8"))
    imported = [node.names[0].name for node in tree.body if isinstance(node, ast.Import)]
    assert next(name for name in imported if name not in sys.stdlib_module_names) == "clock"


def test_the_clock_of_a_run_has_every_second_in_one_part(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(RUN_SCRIPTS)
    keras = SimpleNamespace(callbacks=SimpleNamespace(Callback=object))
    monkeypatch.setitem(sys.modules, "keras", keras)
    import clock
    from clock.fits import FitClock

    now = 0.0
    monkeypatch.setattr(clock, "time", SimpleNamespace(monotonic=lambda: now))
    run = clock.RunClock()
    now += 2.0
    run.imported()
    own = FitClock(run)
    own.on_train_begin()
    for epoch, steps in enumerate([[8.0, 1.0, 1.0], [3.0, 1.0, 1.0]]):
        own.on_epoch_begin(epoch)
        for batch, seconds in enumerate(steps):
            own.on_train_batch_begin(batch)
            now += seconds
        own.on_epoch_end(epoch)
        now += 0.125
    own.on_train_end()
    now += 0.5
    run.write(tmp_path / "stamps.json")
    first, last = json.loads((tmp_path / "stamps.json").read_text(encoding="utf-8"))["legs"]
    # The first step of an epoch waits for 2 s; that of the first epoch builds the function, too.
    assert (first["startup"], first["compile"], first["epoch_start"]) == (2.0, 5.0, 4.0)
    assert (first["steps"], first["epoch_end"]) == (6.0, 0.25)
    assert last == {"after_training": 0.5}


def test_the_table_of_public_scripts_is_whole() -> None:
    for script in public_scripts():
        assert len(script.sha256) == 64
        assert len(script.commit) == 40
        truth = script.truth
        assert all([script.changed, truth.bottleneck, truth.advice, truth.how]), script.name
        assert {word.partition(":")[0] for word in script.data} <= set(KINDS)
    with pytest.raises(SourceError, match="nobody"):
        public_scripts(["nobody"])


def test_what_stays_of_a_public_script_keeps_its_line() -> None:
    cells = [["%load_ext x\n", "a = 1"], ["!pip install x\n", "b = a % 2"]]
    notebook = {"cells": [{"cell_type": "code", "source": lines} for lines in cells]}
    text = from_notebook(json.dumps(notebook))
    assert text.split("\n") == ["# %load_ext x", "a = 1", "", "# !pip install x", "b = a % 2", ""]
    script = SimpleNamespace(name="x", put=((2, 3, "ours"),), swap=((4, "old", "new"),), until=5)
    assert changed(script, "a\nb\nc\nd = old\ne") == "a\nours\n\nd = new\n"
    script.put = ((1, 1, "x\ny"),)
    with pytest.raises(SourceError, match="too few"):
        changed(script, "a\nb")
