"""What Keras tells, played by code that is compiled under the names of its files."""

from __future__ import annotations

import inspect
import sys
from functools import partial
from types import FrameType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pipediag.capture.callsites import frames
from pipediag.capture.frameworks.keras.facts import (
    COMPILED,
    MADE,
    batch_size,
    describe,
    fed_model,
    known_tables,
    passes_a_batch_on,
    phase_of,
    planned_steps,
    settings_of,
    variable_bytes,
)
from pipediag.capture.guard import Guard

KERAS = "/lib/site-packages/keras/src/trainer.py"
LEGACY = "/lib/site-packages/tf_keras/src/engine/training.py"
USERS = "/home/me/train.py"


def method(name: str, filename: str = KERAS) -> Any:
    names: dict[str, Any] = {}
    exec(compile(f"def {name}(inner):\n    return inner()\n", filename, "exec"), names)
    return names[name]


def seen() -> tuple[str, str] | None:
    # This file stands for Keras's own code between its methods.
    phase = phase_of(frame for frame in frames() if frame.f_code.co_filename != __file__)
    return (phase.role, phase.method) if phase is not None else None


@pytest.mark.parametrize("filename", [KERAS, LEGACY])
@pytest.mark.parametrize(
    ("name", "role"),
    [("fit", "training"), ("evaluate", "evaluate"), ("predict", "predict"), ("adapt", "adapt")],
)
def test_phases(name: str, role: str, filename: str) -> None:
    assert method(name, filename)(seen) == (role, name)
    assert method(name, USERS)(seen) is None
    inside_fit = method("fit", filename)(lambda: method(name, filename)(seen))
    validation = ("validation", "evaluate inside fit")
    assert inside_fit == (validation if name == "evaluate" else (role, name))


def test_what_the_scripts_own_code_iterates_over_within_a_fit_is_none_of_keras() -> None:
    callback = method("on_epoch_end", USERS)
    assert method("fit")(lambda: callback(seen)) is None
    validation = ("validation", "evaluate inside fit")
    assert method("fit")(lambda: callback(lambda: method("evaluate")(seen))) == validation


def made(*inward: Any) -> bool:
    asked: Any = partial(passes_a_batch_on, frames())
    for outer in reversed(inward):
        asked = partial(outer, asked)
    return bool(asked())


def test_an_iterator_of_one_batch_is_made_for_it_by_keras_2_alone() -> None:
    tensorflow = method("__iter__", "/lib/site-packages/tensorflow/python/data/ops/dataset_ops.py")
    one_batch = method("single_batch_iterator", LEGACY)
    assert made(method("train_on_batch", LEGACY), one_batch, tensorflow)
    assert not made(method("fit", LEGACY), tensorflow)
    assert not made(one_batch, method("loads", USERS), tensorflow)
    assert not made(method("single_batch_iterator", USERS), tensorflow)
    assert not made()


@pytest.mark.parametrize("filename", [KERAS, LEGACY])
def test_the_model_that_is_trained_on_a_batch_of_the_scripts(filename: str) -> None:
    names: dict[str, Any] = {}
    source = "def train_on_batch(self, inner):\n    return inner()\n"
    exec(compile(source, filename, "exec"), names)
    users_step = method("train_step", USERS)

    assert names["train_on_batch"]("model", lambda: fed_model(frames())) == "model"
    assert names["train_on_batch"]("model", lambda: users_step(lambda: fed_model(frames())))
    assert method("train_on_batch", USERS)(lambda: fed_model(frames())) is None
    assert method("fit", filename)(lambda: fed_model(frames())) is None


@pytest.mark.parametrize(("epochs", "left"), [(100, 10), (90, 0), (None, None)])
def test_a_fit_that_is_resumed_has_the_epochs_that_are_left(
    epochs: int | None, left: int | None
) -> None:
    frame = fit(model(), x=Rows(), epochs=epochs, steps_per_epoch=40, initial_epoch=90)
    assert describe(frame).epochs == left
    assert planned_steps(frame) == (None if left is None else 40 * left)


@pytest.mark.parametrize(
    ("held", "steps", "planned"),
    [(63, 62, 315), (1000, 100, 1000), (1000, 300, 2600), (50, 60, 500), (None, 60, 600)],
)
def test_an_epoch_of_fewer_steps_than_the_data_has_goes_on_where_the_last_one_ended(
    held: int | None, steps: int, planned: int
) -> None:
    """And ends where the data does: epochs of 62 and of 1 step, by turns."""
    walker = SimpleNamespace(num_batches=steps, _num_batches=held)
    frame = fit(model(), x=Rows(), epochs=10, steps_per_epoch=steps, epoch_iterator=walker)
    assert planned_steps(frame) == planned


class Rows:
    def __getitem__(self, index: int) -> int:
        return index


def fit(
    self: Any,
    x: Any,
    epochs: int | None = None,
    steps_per_epoch: int | None = None,
    callbacks: Any = None,
    epoch_iterator: Any = None,
    initial_epoch: int = 0,
) -> FrameType:
    return sys._getframe()


def model(**facts: Any) -> Any:
    usual: dict[str, Any] = {"layers": [], "optimizer": None}
    return SimpleNamespace(**{**usual, **facts})


def test_facts_of_a_fit() -> None:
    epoch_iterator = SimpleNamespace(
        data_adapter=SimpleNamespace(
            py_dataset=SimpleNamespace(workers=3, use_multiprocessing=True)
        ),
        num_batches=40,
    )
    trained = model(steps_per_execution=4, run_eagerly=True, jit_compile=False)

    facts = describe(fit(trained, x=Rows(), epochs=2, epoch_iterator=epoch_iterator))

    assert facts.optimizer is None
    assert (facts.steps_per_execution, facts.run_eagerly, facts.jit_compile) == (4, True, False)
    assert (facts.epochs, facts.steps_per_epoch) == (2, 40)
    assert (facts.workers, facts.use_multiprocessing) == (3, True)
    line = Rows.__getitem__.__code__.co_firstlineno
    assert (facts.source, facts.source_file, facts.source_line) == ("Rows", __file__, line)


class LambdaCallback:
    __module__ = "keras.src.callbacks.lambda_callback"

    def __init__(self, **hooks: Any) -> None:
        self.__dict__.update(hooks)


class Anneals(LambdaCallback):
    pass


def test_functions_that_keras_calls_at_batches_for_a_callback_of_its_own_are_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, LambdaCallback.__module__, SimpleNamespace(__file__=KERAS))
    anneal = lambda batch, logs=None: None  # noqa: E731
    of_keras = method("on_train_batch_begin")
    callbacks = [
        LambdaCallback(on_train_batch_begin=of_keras, on_train_batch_end=anneal),
        LambdaCallback(on_train_batch_begin=of_keras, on_epoch_end=anneal),
        Anneals(on_train_batch_begin=partial(anneal, 0)),
        Anneals(),
    ]

    own, derived, idle = describe(fit(model(), x=Rows(), callbacks=callbacks)).callbacks

    line = anneal.__code__.co_firstlineno
    for one in (own, derived):
        assert (one.file, one.line) == (__file__, line)
    assert (own.name, own.batch_hooks) == ("LambdaCallback", ["on_train_batch_end"])
    assert (derived.name, derived.batch_hooks) == ("Anneals", ["on_train_batch_begin"])
    assert (idle.name, idle.batch_hooks) == ("Anneals", [])


class ModelCheckpoint:
    def __init__(self, save_best_only: bool) -> None:
        self.save_best_only = save_best_only


class Saves(ModelCheckpoint):
    pass


@pytest.mark.parametrize(("best", "names"), [(True, ["ModelCheckpoint"]), (False, [])])
def test_a_callback_that_keeps_the_best_model_decides_by_the_validation(
    best: bool, names: list[str]
) -> None:
    for callback in (ModelCheckpoint(best), Saves(best)):
        facts = describe(fit(model(), x=Rows(), callbacks=[Anneals(), callback]))
        assert facts.deciding_callbacks == names


@pytest.mark.parametrize(
    ("facts", "size"),
    [
        ({"batch_size": 32}, 32),
        ({"batch_size": lambda: 16}, 16),
        ({"batch_size": None, "py_dataset": SimpleNamespace(batch_size=8)}, 8),
        ({"_first_batches": [({"a": np.zeros((4, 2))}, np.zeros(4))]}, 4),
        ({"py_dataset": object()}, None),
    ],
)
def test_batch_size_as_the_adapter_knows_it(facts: dict[str, Any], size: int | None) -> None:
    iterator = SimpleNamespace(data_adapter=SimpleNamespace(**facts))
    assert batch_size(fit(model(), x=1, epoch_iterator=iterator)) == size


def test_settings_of_an_optimizer() -> None:
    sgd = SimpleNamespace(momentum=0.9, weight_decay="much", use_ema=True, learning_rate=0.1)
    around = SimpleNamespace(inner_optimizer=sgd, momentum=0.5)

    assert settings_of(around) == settings_of(sgd) == {"momentum": 0.9, "use_ema": True}
    assert settings_of(None) == settings_of(SimpleNamespace(momentum=0.0)) == {}


def owner(*variables: tuple[tuple[int, ...], Any]) -> Any:
    listed = [SimpleNamespace(shape=shape, dtype=dtype) for shape, dtype in variables]
    return SimpleNamespace(variables=listed, called=lambda: listed)


@pytest.mark.parametrize(
    ("dtype", "size"), [(SimpleNamespace(size=4), 4), ("bfloat16", 2), ("float8_e4m3fn", 1)]
)
def test_types_as_keras_names_them(dtype: Any, size: int) -> None:
    assert variable_bytes(owner(((10, 3), dtype)), "variables") == 30 * size
    assert variable_bytes(owner(((None, 3), dtype)), "variables") is None


class Embedding:
    __module__ = "keras.src.layers.core.embedding"
    built = True

    def __init__(self, name: str, trainable: bool = True) -> None:
        self.name, self.trainable = name, trainable
        self.input_dim: Any = 100
        self.output_dim: Any = 8
        self.embeddings: Any = SimpleNamespace(dtype="float32")
        self._embeddings: Any = self.embeddings


def test_tables_of_a_model() -> None:
    tied = type("Tied", (Embedding,), {"mask_zero": True})("tied", trainable=False)
    tied._embeddings = SimpleNamespace(dtype="float32", path="model/tied/embeddings")
    theirs = type("Embedding", (), {"built": True, "name": "theirs"})()
    nested = SimpleNamespace(_flatten_layers=lambda: [Embedding("words"), tied, theirs, object()])

    words, frozen = [
        record for _, record in known_tables(SimpleNamespace(**vars(nested), layers=[]))
    ]

    assert (words.layer, words.rows, words.dim, words.dtype) == ("words", 100, 8, "float32")
    assert (words.trainable, words.mask_zero) == (True, False)
    assert (frozen.layer, frozen.trainable) == ("tied", False)
    assert (frozen.mask_zero, frozen.path) == (True, "model/tied/embeddings")


def test_sizes_of_a_table_that_numpy_counted_are_numbers_of_python() -> None:
    counted = Embedding("words")
    counted.input_dim, counted.output_dim = np.int64(100), np.int32(8)
    ((_, record),) = known_tables(SimpleNamespace(layers=[counted]))

    assert (type(record.rows), type(record.dim)) == (int, int)


class Layer:
    def __init__(self, rows: int, dim: int = 4, *, name: str = "words") -> None:
        self.made_by = (rows, dim, name)


@pytest.fixture
def layers() -> Any:
    class Watched(Layer):
        def __init__(self, rows: int, dim: int = 4, *, name: str = "words") -> None:
            super().__init__(rows, dim, name=name)

    return Watched


def test_the_line_is_known_and_the_layer_is_what_it_would_be(layers: Any) -> None:
    natively = inspect.getfullargspec(layers.__init__)
    MADE.watch(layers, "__init__", Guard(print))
    layer = layers(10, name="tokens")

    file, line = MADE.of(layer)
    assert file == __file__
    assert line == MADE.of(layers(3))[1] - 4  # type: ignore[operator]
    assert layer.made_by == (10, 4, "tokens")
    assert inspect.getfullargspec(layers.__init__) == natively


def test_the_last_line_that_compiled_a_model_is_known() -> None:
    class Trainer:
        def compile(self, optimizer: str) -> str:
            return optimizer

    model = Trainer()
    assert COMPILED.of(model) == (None, None)
    COMPILED.watch(Trainer, "compile", Guard(print))
    assert model.compile("sgd") == "sgd"
    first = COMPILED.of(model)
    assert model.compile("adam") == "adam"

    assert first[0] == __file__
    assert COMPILED.of(model)[1] == first[1] + 2  # type: ignore[operator]
