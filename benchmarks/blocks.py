"""Runs a training script with its `fit` replaced by blocks of the same `fit` on changed pipelines.

    python -m benchmarks.blocks SCHEDULE RESULTS SCRIPT [ARGS]...

The script runs up to its first `fit` on a dataset. There the arms of the schedule take turns: each
block builds its pipeline anew by `pipediag.capture.replay.rebuild`, fills the cache if the arm has
one, trains the script's own model on it for a while, and drops it, so that one arm is alive at a
time. RESULTS gets a JSON line a block.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pipediag.capture.guard import Guard
from pipediag.capture.pipelines.plan_recorder import PlanRecorder
from pipediag.capture.recorder import Recorder
from pipediag.session.edits import Change, adds_cache, changes_from_json

ENDLESS = 1_000_000
FEWEST_STEPS = 10
"""Of a warm-up and of a block, however slow the steps are."""


@dataclass(frozen=True)
class Schedule:
    """Which arms run in which order, and for how long."""

    arms: dict[str, list[dict[str, Any]]]
    """Changes of each arm, as `dataclasses.asdict` gives them."""
    rounds: list[list[str]]
    warmup_s: float
    block_s: float


@dataclass(frozen=True)
class BlockResult:
    """What one block gave, or why its arm was refused."""

    arm: str
    round: int
    examples_per_s: float | None
    steps: int = 0
    refused: str | None = None


def main() -> None:
    """Run the script of the command line; never returns."""
    schedule_path, results_path, script, *args = sys.argv[1:]
    schedule = Schedule(**json.loads(Path(schedule_path).read_text(encoding="utf-8")))
    _record_pipelines()
    import keras

    original = keras.Model.fit

    def fit(model: Any, dataset: Any, **given: Any) -> None:
        with Path(results_path).open("w", encoding="utf-8") as results:
            train = partial(_train, partial(original, model), given)
            blocks = Blocks(schedule, dataset, train)
            for result in blocks.run():
                results.write(json.dumps(asdict(result)) + "\n")
                results.flush()
        # A pipeline that calls Python may hang the interpreter's exit.
        os._exit(0)

    keras.Model.fit = fit
    sys.argv = [script, *args]
    sys.path[0] = str(Path(script).parent)
    runpy.run_path(script, run_name="__main__")
    sys.exit("The script never called fit on a dataset.")


def _record_pipelines() -> None:
    """Give each tf.data call the id that `pipediag analyze` gives it in the same script."""
    from tensorflow.python.data.ops import dataset_ops, readers

    scratch = Path(tempfile.mkdtemp(prefix="pipediag-blocks-"))
    recorder = Recorder(scratch / "recording.json")
    plan, guard = PlanRecorder(recorder), Guard(recorder.note)
    plan.install(dataset_ops.DatasetV2, guard)
    for name in ("TFRecordDatasetV2", "TextLineDatasetV2", "FixedLengthRecordDatasetV2"):
        plan.install_reader(getattr(readers, name), guard)


def _train(fit: Callable[..., Any], given: dict[str, Any], dataset: Any, clock: Clock) -> None:
    callbacks = [*(given.get("callbacks") or []), clock.as_callback()]
    fit(dataset, **{**given, "epochs": ENDLESS, "verbose": 0, "callbacks": callbacks})


class Clock:
    """Stamps the beginnings of steps after a warm-up, and ends the training after a block."""

    def __init__(self, warmup_s: float, block_s: float, now: Callable[[], float]) -> None:
        self._warmup_s = warmup_s
        self._block_s = block_s
        self._now = now
        self._first: float | None = None
        self._begin: float | None = None
        self._end = 0.0
        self._seen = 0
        self.steps = 0

    def step_begins(self) -> bool:
        """Note that a step begins; whether the block is over."""
        now = self._now()
        self._seen += 1
        if self._first is None:
            self._first = now
        if self._begin is None:
            if now - self._first >= self._warmup_s and self._seen > FEWEST_STEPS:
                self._begin = now
            return False
        self.steps += 1
        self._end = now
        return now - self._begin >= self._block_s and self.steps >= FEWEST_STEPS

    @property
    def elapsed_s(self) -> float:
        """From the first counted step's beginning to the beginning of the one after the last."""
        assert self._begin is not None
        return self._end - self._begin

    def as_callback(self) -> Any:
        """For Keras; at a batch's begin, since a hook at its end makes Keras fetch the logs."""
        import keras

        clock = self

        class Stamps(keras.callbacks.Callback):
            over = False

            def on_train_batch_begin(self, *_: object, **__: object) -> None:
                # Keras looks at stop_training after the step that begins here.
                if not self.over and clock.step_begins():
                    self.over = self.model.stop_training = True

        return Stamps()


class Blocks:
    """The blocks of a schedule, on the pipeline that a script gave to `fit`."""

    def __init__(
        self, schedule: Schedule, dataset: Any, train: Callable[[Any, Clock], None]
    ) -> None:
        self._schedule = schedule
        self._dataset = dataset
        self._train = train
        self._examples_per_step: dict[str, float] = {}
        self._refused: dict[str, str] = {}

    def run(self) -> Any:
        """Every block of every round, as it is done; an arm that fails is not tried again.

        Changes may fail in any way that TensorFlow knows; the script as written may not.
        """
        for number, names in enumerate(self._schedule.rounds, start=1):
            for name in names:
                if name not in self._refused:
                    yield self._block(name, number)
                gc.collect()

    def _block(self, name: str, number: int) -> BlockResult:
        try:
            return self._measured(name, number)
        except Exception as error:
            if not self._schedule.arms[name]:
                raise
            self._refused[name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            return BlockResult(name, number, None, refused=self._refused[name])

    def _measured(self, name: str, number: int) -> BlockResult:
        changes = changes_from_json(self._schedule.arms[name])
        dataset = _changed(self._dataset, changes)
        if name not in self._examples_per_step or any(map(adds_cache, changes)):
            self._examples_per_step[name] = _examples_per_step(dataset)
        clock = Clock(self._schedule.warmup_s, self._schedule.block_s, time.perf_counter)
        self._train(dataset, clock)
        rate = clock.steps * self._examples_per_step[name] / clock.elapsed_s
        return BlockResult(name, number, rate, clock.steps)


def _changed(dataset: Any, changes: tuple[Change, ...]) -> Any:
    if not changes:
        return dataset
    from pipediag.capture.replay import rebuild

    return rebuild(dataset, changes)


def _examples_per_step(dataset: Any) -> float:
    """By one pass over the data, which fills its cache too."""
    import tensorflow as tf

    sizes = [int(tf.shape(tf.nest.flatten(batch)[0])[0]) for batch in dataset]
    return sum(sizes) / len(sizes)


if __name__ == "__main__":
    main()
