"""When a block begins and ends, by a clock made by hand; and a failed arm is not tried again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import benchmarks.blocks as under_test
from benchmarks.blocks import BlockResult, Blocks, Clock, Schedule


def test_a_clock_counts_whole_steps_after_the_warm_up() -> None:
    now = iter([float(second) for second in range(0, 400, 2)])
    clock = Clock(warmup_s=30.0, block_s=50.0, now=lambda: next(now))
    while not clock.step_begins():
        pass
    assert clock.steps == 25
    assert clock.elapsed_s == 50.0


def test_a_clock_waits_for_enough_slow_steps() -> None:
    now = iter([float(second) for second in range(0, 4000, 20)])
    clock = Clock(warmup_s=1.0, block_s=1.0, now=lambda: next(now))
    while not clock.step_begins():
        pass
    assert clock.steps == under_test.FEWEST_STEPS
    assert clock.elapsed_s == 20.0 * under_test.FEWEST_STEPS


def test_the_clock_begins_with_the_first_step_however_long_it_was_waited_for() -> None:
    now = iter([1000.0 + second for second in range(100)])
    clock = Clock(warmup_s=15.0, block_s=20.0, now=lambda: next(now))
    while not clock.step_begins():
        pass
    assert clock.steps == 20


def test_rates_are_in_examples_and_a_refused_arm_is_not_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    insert = {"do": "insert", "after": "op1", "kind": "prefetch", "parameters": {}}
    schedule = Schedule(
        arms={"as written": [], "bad": [insert]},
        rounds=[["bad", "as written"], ["as written", "bad"]],
        warmup_s=1.0,
        block_s=1.0,
    )

    def changed(dataset: str, changes: tuple) -> str:
        if changes:
            raise ValueError("no operation op1\nand more")
        return dataset

    passes: list[str] = []

    def examples_per_step(dataset: str) -> float:
        passes.append(dataset)
        return 32.0

    monkeypatch.setattr(under_test, "_changed", changed)
    monkeypatch.setattr(under_test, "_examples_per_step", examples_per_step)

    def train(_: str, clock: Clock) -> None:
        clock.steps, clock._begin, clock._end = 10, 0.0, 2.0

    results = list(Blocks(schedule, "dataset", train).run())
    assert [(r.arm, r.round, r.examples_per_s) for r in results] == [
        ("bad", 1, None),
        ("as written", 1, 160.0),
        ("as written", 2, 160.0),
    ]
    assert results[0].refused == "ValueError: no operation op1"
    assert passes == ["dataset"]


SCRIPT = """
import keras
import tensorflow as tf

data = tf.data.Dataset.range(100).map(lambda n: (tf.cast(n, tf.float32)[None], 1.0)).batch(8)
model = keras.Sequential([keras.Input(shape=(1,)), keras.layers.Dense(1)])
model.compile(optimizer="sgd", loss="mse")
model.fit(data, epochs=3)
raise SystemExit("fit came back")
"""


@pytest.mark.tensorflow
def test_a_script_trains_in_blocks(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    schedule = {
        "arms": {"as written": []},
        "rounds": [["as written"], ["as written"]],
        "warmup_s": 0.0,
        "block_s": 0.1,
    }
    (tmp_path / "schedule.json").write_text(json.dumps(schedule), encoding="utf-8")
    files = [tmp_path / "schedule.json", tmp_path / "results", tmp_path / "train.py"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.blocks", *map(str, files)],
        cwd=Path(under_test.__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = (tmp_path / "results").read_text(encoding="utf-8").splitlines()
    results = [BlockResult(**json.loads(line)) for line in lines]
    assert [(result.arm, result.round) for result in results] == [
        ("as written", 1),
        ("as written", 2),
    ]
    assert all(result.steps >= under_test.FEWEST_STEPS for result in results)
    assert all(result.examples_per_s for result in results)
