"""Sentences on batches and losses of two versions."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipediag.errors import PipediagError
from pipediag.runner import native_runs
from pipediag.runner.native_runs import NativeRun, Seen, compared, native_run, of_batches, of_losses
from pipediag.session.messages import RunSettings

ROWS = [["a", 1.0, 2.0], ["b", 3.0, 4.0], ["c", 5.0, 6.0]]
SALARIES: list[Any] = [["a", 50_000.0, 0.0], ["a", 90_000.0, 1.0]]


def seen(rows: list[Any] = ROWS, losses: list[float] = (), **other: Any) -> Seen:  # type: ignore[assignment]
    return Seen(rows, other.get("problem"), list(losses))


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (seen(), "the first 3 rows are equal."),
        (seen([["a", 1.0, 2.0 + 1e-6], *ROWS[1:]]), "are equal up to rounding."),
        (seen(ROWS[::-1]), "are equal up to order."),
        (seen([["d", 1.0, 2.0], *ROWS[1:]]), "are different: 2 of them are in both"),
        (seen([["a", 1.0, 2.1], *ROWS[1:]]), "are different: 2 of them are in both"),
        (seen([["a", 1.0], *ROWS[1:]]), "are different: 2 of them are in both"),
        (seen(ROWS[:2]), "the first 2 rows are equal."),
        (seen([]), "the new version's could not be read: none was taken."),
        (seen(problem="no loop"), "the new version's could not be read: no loop."),
    ],
)
def test_batches_are_equal_or_the_sentence_says_how_they_differ(new: Seen, said: str) -> None:
    assert said in of_batches(seen(), new).sentence


def test_a_large_component_hides_no_other() -> None:
    flipped = [[*row[:2], 1.0 - row[2]] for row in SALARIES]
    assert "are different" in of_batches(seen(SALARIES), seen(flipped)).sentence
    rounded = [[row[0], row[1] + 1e-2, row[2]] for row in SALARIES]
    assert "up to rounding" in of_batches(seen(SALARIES), seen(rounded)).sentence


@pytest.mark.parametrize(
    ("new", "said"),
    [
        ([3.0, 2.0], "of the first 2 steps are equal."),
        ([3.0, 2.0 + 1e-6, 1.0], "are equal up to rounding."),
        ([3.1, 2.1, 1.1], "agree as closely as two seeds"),
        ([4.0, 3.0, 2.0], "differ by more than two seeds do"),
        ([], "were not compared"),
    ],
)
def test_losses_agree_within_what_another_seed_changes(new: list[float], said: str) -> None:
    old, other_seed = seen(losses=[3.0, 2.0, 1.0]), seen(losses=[3.1, 1.9, 1.1])
    assert said in of_losses(old, seen(losses=new), other_seed).sentence


def test_seeds_say_nothing_where_the_script_sets_its_own() -> None:
    old = seen(losses=[3.0, 2.0])
    said = of_losses(old, seen(losses=[3.1, 2.1]), seen(losses=[3.0, 2.0 + 1e-6])).sentence
    assert "by 0.1 on average" in said
    assert "sets its own seed" in said
    assert "more than two seeds" not in said


def test_a_run_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one is enough where nothing can be seen."""
    runs: list[tuple[str, float | None]] = []

    def wall_s(run: NativeRun, _env: Any, timeout_s: float | None) -> float:
        runs.append((run.name, timeout_s))
        Path(run.command[-2]).write_text('{"rows": [], "problem": "no step", "losses": []}')
        if run.name == "slow":
            raise PipediagError("slow had not ended.")
        return 1.0

    monkeypatch.setattr(native_runs, "wall_s", wall_s)
    fast, slow = (NativeRun(name, (str(tmp_path),), tmp_path) for name in ("fast", "slow"))
    assert all("not compared" in one.sentence for one in compared(fast, slow))
    assert [one.sentence for one in compared(slow, fast)] == [
        "Batches and losses were not compared: slow had not ended."
    ]
    assert runs == [("fast", native_runs.TIMEOUT_S), ("slow", native_runs.TIMEOUT_S)]


def two_versions(
    folder: Path, monkeypatch: pytest.MonkeyPatch, see: Callable[[NativeRun], dict[str, Any]]
) -> tuple[NativeRun, NativeRun]:
    """The old version and the new one, each run of which has seen that beside `ROWS`."""

    def wall_s(run: NativeRun, _env: Any, _timeout_s: float | None) -> float:
        found = {"rows": ROWS, "problem": None, "losses": [], **see(run)}
        Path(run.command[-2]).write_text(json.dumps(found), encoding="utf-8")
        return 1.0

    monkeypatch.setattr(native_runs, "wall_s", wall_s)
    command = ("start", "native", str(folder))
    return NativeRun("old", command, folder), NativeRun("new", command, folder)


def test_two_versions_are_compared_beside_another_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[str, str]] = []

    def see(run: NativeRun) -> dict[str, Any]:
        seed = run.command[-3]
        ran.append((run.name, seed))
        return {"losses": [3.0, 2.0, 1.0] if seed == ran[0][1] else [3.1, 1.9, 1.1]}

    batches, losses = compared(*two_versions(tmp_path, monkeypatch, see))
    assert (batches.found, losses.found) == ("equal", "equal")
    assert sorted(name for name, _ in ran) == ["new", "old", "old"]
    assert len(set(ran)) == 3


@pytest.mark.parametrize(("by_chance", "found"), [(False, "different"), (True, None)])
def test_batches_that_differ_from_run_to_run_say_nothing_of_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_chance: bool, found: str | None
) -> None:
    ran: list[str] = []

    def see(run: NativeRun) -> dict[str, Any]:
        ran.append(run.name)
        draw = float(len(ran)) if by_chance or run.name == "new" else 0.0
        return {"rows": [["a", draw], ["b", draw]]}

    assert compared(*two_versions(tmp_path, monkeypatch, see))[0].found == found
    assert ran.count("old") == 3


@pytest.mark.parametrize(
    ("of_new", "repeated", "found"),
    [(0.3, 0.2, None), (0.5, 0.2, "different"), (0.3, 0.0, "different")],
)
def test_losses_that_differ_as_much_from_run_to_run_say_nothing_of_a_change(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    of_new: float,
    repeated: float,
    found: str | None,
) -> None:
    """Of a script with a seed of its own, two runs may by chance be much alike."""
    by_run = iter((0.0, of_new, 0.1, repeated))
    both = two_versions(tmp_path, monkeypatch, lambda _: {"losses": [3.0 + next(by_run)]})
    batches, losses = compared(*both)
    assert (batches.found, losses.found) == ("equal", found)


def test_losses_that_are_no_numbers_without_the_change_say_nothing_of_it() -> None:
    lost = seen(losses=[3.0, math.nan])
    good, other = seen(losses=[3.0, 2.0]), seen(losses=[3.1, 2.1])
    assert of_losses(lost, good, other).found is None
    assert of_losses(good, lost, other).found == "different"


TRAIN = """
import numpy as np
import tensorflow as tf

devices = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], devices)
x = np.random.rand(200, 8).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((x, x.sum(1)))
dataset = dataset.map(lambda a, b: (a * 2.0, b)).shuffle(200).batch(8)
"""
PREVIEWS = """
for a, b in dataset.take(1):
    print(a.shape)
normalization = tf.keras.layers.Normalization()
normalization.adapt(dataset.map(lambda a, b: a))
held_out = iter(dataset.take(3))
next(held_out)
weights = tf.Variable(tf.zeros([8, 1]))

@tf.function(jit_compile=True)
def step(a, b):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((a @ weights - b[:, None]) ** 2)
    weights.assign_sub(0.01 * tape.gradient(loss, weights))

for a, b in dataset:
    step(a, b)
"""
GRAPH = """
next(iter(dataset))
weights = tf.Variable(tf.zeros([8, 1]))

@tf.function
def epoch():
    for a, b in dataset:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((a @ weights - b[:, None]) ** 2)
        weights.assign_sub(0.01 * tape.gradient(loss, weights))

epoch()
"""
DISTRIBUTED = """
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
model.fit(dataset, epochs=2, verbose=0)
"""


def version(folder: Path, text: str) -> NativeRun:
    folder.mkdir()
    (folder / "train.py").write_text(text, encoding="utf-8")
    settings = RunSettings("train.py", (), module=False, capture_directory="")
    return native_run(folder.name, settings, folder, folder / "settings.json")


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("training", "rows", "problem"),
    [
        (PREVIEWS, 200, ""),
        (GRAPH, 0, "step by step"),
        (DISTRIBUTED, 0, "distributed"),
    ],
    ids=["previews", "graph", "distributed"],
)
def test_losses_are_seen_also_where_batches_are_not(
    tmp_path: Path, training: str, rows: int, problem: str
) -> None:
    run, place = version(tmp_path / "one", TRAIN + training), tmp_path / "results.json"
    found = native_runs._seen(run, 1, place, native_runs.TIMEOUT_S, lambda *_: None)
    assert len(found.rows) == rows
    assert problem in (found.problem or "")
    assert len(found.losses) >= 25


def test_a_program_is_over_though_what_it_has_started_runs_on(tmp_path: Path) -> None:
    helper = "import time; time.sleep(60)"
    program = (
        f"import subprocess, sys; helper = subprocess.Popen([sys.executable, '-c', {helper!r}]); "
        "sys.exit(f'left {helper.pid}.')"
    )
    run = NativeRun("it", (sys.executable, "-c", program), tmp_path)
    with pytest.raises(PipediagError, match=r"status 1: left \d+\.$") as raised:
        native_runs.wall_s(run, None, 50.0)
    os.kill(int(re.findall(r"left (\d+)", str(raised.value))[0]), signal.SIGKILL)
