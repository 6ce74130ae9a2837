"""Trials in a real training loop: the child does what it is asked for, between two steps."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from pipediag.runner.child_connection import Ask
from pipediag.runner.child_process import supervise
from pipediag.session.edits import Change, Check, Insert, Move, SetModel, SetParameters
from pipediag.session.messages import (
    RECORDING_FILE,
    Answer,
    BlockRun,
    ChildResult,
    Prepare,
    Prepared,
    RunBlock,
    RunSettings,
    TrialsAwaited,
    VariantRefused,
)
from pipediag.session.store import read_recording

pytestmark = pytest.mark.tensorflow

Talk = Callable[[TrialsAwaited, "Voice"], None]

FIT = """
    import keras
    import numpy as np
    import tensorflow as tf

    class Kept(keras.callbacks.Callback):
        begun = ended = 0

        def on_train_batch_begin(self, batch, logs=None):
            assert self.begun == self.ended
            self.begun += 1

        def on_train_batch_end(self, batch, logs=None):
            self.ended += 1
            assert self.begun == self.ended

    keras.utils.set_random_seed(11)
    words = np.minimum(np.random.default_rng(2).zipf(1.5, (480, 6)) - 1, 99)
    dataset = tf.data.Dataset.from_tensor_slices((words, words[:, :1] / 100))
    dataset = dataset.map(lambda x, y: (x, y * 2.0), num_parallel_calls=1)
    dataset = dataset.batch(16, drop_remainder=True)
    model = keras.Sequential(
        [
            keras.Input((6,), dtype="int32"),
            keras.layers.Embedding(100, 4, mask_zero=True, embeddings_regularizer="l2"),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(1),
        ]
    )
    model.compile("adam", "mse")
    model.fit(dataset, epochs=2000, verbose=0, callbacks=[Kept()])
"""

CUSTOM = """
    import tensorflow as tf

    table = tf.Variable(tf.zeros([100, 2]))

    @tf.function
    def train(ids):
        table.scatter_nd_add(ids[:, None], tf.ones([8, 2]))

    dataset = tf.data.Dataset.range(4000).map(lambda i: i % 100).batch(8, drop_remainder=True)
    for epoch in range(1000):
        for ids in dataset:
            train(ids)
"""


VALIDATED = """
    import keras
    import numpy as np
    import tensorflow as tf

    def main():
        features = np.zeros((1280, 4), "float32")
        slices = tf.data.Dataset.from_tensor_slices((features, features[:, :1]))
        training = slices.take(160).batch(16)
        validation = slices.map(lambda x, y: (tf.sort(x), y)).batch(16)
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
        model.compile("adam", "mse")
        model.fit(training, validation_data=validation, epochs=2000, verbose=0)

    main()
"""


class Voice:
    """Asks the child, and keeps what it answered."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def prepare(self, variant: str, *changes: Change, check: Check | None = None) -> Answer:
        return self._ask(Prepare(variant, changes, check), 60)

    def block(self, variant: str) -> Answer:
        return self._ask(RunBlock(variant, 0.1), 60)

    def pull(self, variant: str) -> Answer:
        return self._ask(RunBlock(variant, 0.1, alone=True), 60)


def block_of(answer: Answer) -> BlockRun:
    assert isinstance(answer, BlockRun), answer
    return answer


def refusal_of(answer: Answer) -> str:
    assert isinstance(answer, VariantRefused), answer
    return answer.reason


def tried(directory: Path, text: str, talk: Talk, **settings: Any) -> ChildResult:
    script = directory / "script.py"
    script.write_text(dedent(text), encoding="utf-8")
    asked = {"steps": 20, "warmup": 5, "profile_steps": 5, **settings}
    return supervise(
        RunSettings(str(script), (), False, str(directory), **asked),
        timeout_s=120,
        on_started=lambda pid: None,
        on_progress=lambda event: None,
        on_trials=lambda waiting, ask: talk(waiting, Voice(ask)),
    )


@dataclass(frozen=True)
class Tried:
    """What came of trials in a fit."""

    result: ChildResult
    held: list[TrialsAwaited]
    answers: dict[str, Answer]


VARIANTS = ("base", "wide", "vectorised", "large", "long", "short", "rows")


@pytest.fixture(scope="module")
def fit(tmp_path_factory: pytest.TempPathFactory) -> Tried:
    directory = tmp_path_factory.mktemp("fit")
    held: list[TrialsAwaited] = []
    answers: dict[str, Answer] = {}

    def talk(waiting: TrialsAwaited, voice: Voice) -> None:
        held.append(waiting)
        answers["base"] = voice.prepare("base")
        answers["wide"] = voice.prepare("wide", SetParameters("op2", {"num_parallel_calls": 2}))
        answers["vectorised"] = voice.prepare("vectorised", Move("op2", "op3"), check="equal")
        answers["large"] = voice.prepare("large", SetParameters("op3", {"batch_size": 32}))
        answers["long"] = voice.prepare("long", SetModel({"steps_per_execution": 4}))
        answers["short"] = voice.prepare("short", SetModel({"dtype_policy": "mixed_bfloat16"}))
        answers["rows"] = voice.prepare("rows", SetModel({"optimizer": "row_wise"}))
        answers["absent"] = voice.prepare("absent", SetParameters("op99", {"buffer_size": 1}))
        for variant in VARIANTS:
            answers[f"{variant} block"] = voice.block(variant)
        answers["pull"] = voice.pull("base")

    return Tried(tried(directory, FIT, talk), held, answers)


def test_a_fit_is_the_consumer_of_every_variant_and_goes_on_for_as_long_as_needed(
    fit: Tried,
) -> None:
    held, answers = fit.held, fit.answers
    assert fit.result.outcome == "stopped", fit.result.detail
    assert held[0].since_ns < time.monotonic_ns()
    assert held == [replace(held[0], loop_id="loop1", alone=False, more_to_come=False)]
    for variant in VARIANTS:
        assert answers[variant] == Prepared(variant)
        block = block_of(answers[f"{variant} block"])
        assert block.examples == block.batches * (32 if variant == "large" else 16)
        assert block.elapsed_ns >= 100_000_000
    assert block_of(answers["long block"]).batches % 4 == 0
    assert block_of(answers["pull"]).batches >= 5
    assert refusal_of(answers["absent"]).endswith(".")


def test_a_custom_loop_runs_its_own_body_on_every_variant(tmp_path: Path) -> None:
    answers: dict[str, Answer] = {}

    def talk(waiting: TrialsAwaited, voice: Voice) -> None:
        answers["base"] = voice.prepare("base")
        # The body was written for eight ids, so that this one fails in it.
        answers["large"] = voice.prepare("large", SetParameters("op3", {"batch_size": 32}))
        answers["model"] = voice.prepare("model", SetModel({"jit_compile": True}))
        answers["block"] = voice.block("base")

    result = tried(tmp_path, CUSTOM, talk)

    assert answers["base"] == Prepared("base")
    assert "Keras" in refusal_of(answers["model"])
    assert refusal_of(answers["large"])
    assert block_of(answers["block"]).batches >= 5
    assert result.outcome == "stopped"


def test_behind_its_training_the_pipeline_of_a_validation_is_tried_alone(tmp_path: Path) -> None:
    """Though the script is stopped by then, and its function with all that it held has ended."""
    answers: dict[str, Answer] = {}
    held: list[TrialsAwaited] = []

    def talk(waiting: TrialsAwaited, voice: Voice) -> None:
        held.append(waiting)
        if not waiting.alone:
            return
        answers["base"] = voice.prepare("base")
        answers["cached"] = voice.prepare("cached", Insert("op5", "cache", {"elements": 40}))
        for variant in ("base", "cached"):
            answers[f"{variant} pull"] = voice.pull(variant)
        answers["block"] = voice.block("base")

    result = tried(tmp_path, VALIDATED, talk)

    assert result.outcome == "stopped"
    assert [(one.loop_id, one.alone) for one in held] == [("loop1", False), ("loop2", True)]
    assert answers["cached"] == Prepared("cached")
    for variant in ("base", "cached"):
        pull = block_of(answers[f"{variant} pull"])
        assert pull.examples == 16 * pull.batches
    assert "nothing consumes its batches" in refusal_of(answers["block"])
    recording = read_recording(tmp_path / RECORDING_FILE)
    evaluation = recording.loops[1].evaluation
    assert evaluation.steps == 32
    assert evaluation.consumer_ms is not None
