"""A script's parts, run with each entry of the guard failing in turn; prints what came of it.

Run as a script in a process of its own. Each part gives facts that must be those of a native run.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipediag.capture.capture import Capture
from pipediag.capture.guard import Entry, Guard
from pipediag.capture.link import Teller
from pipediag.capture.watching import loop_choice
from pipediag.session.messages import RunSettings


def own_loop(tf: Any, **_: Any) -> list[Any]:
    """A loop of the script's own, with a file reader, a map, and an error of the script's."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("1\n2\n3\n4\n")
        file.flush()
        weight = tf.Variable(1.0)
        lines = tf.data.TextLineDataset(file.name)
        seen = []
        for value in lines.map(lambda line: tf.strings.to_number(line) * 2).repeat(3):
            weight.assign_add(value)
            seen.append(float(weight))
    try:
        tf.data.Dataset.range(3).batch(2, drop_remainder="no such thing", nothing=1)
    except TypeError as error:
        seen.append(str(error))
    return seen


def step_function(tf: Any, **_: Any) -> list[Any]:
    """A tf.function that is given the iterator, until that is exhausted, and traced again."""
    weight = tf.Variable(1.0)

    @tf.function
    def step(iterator: Any, factor: Any) -> Any:
        value = tf.cast(next(iterator), tf.float32)
        weight.assign_add(value * factor)
        return value

    iterator, seen = iter(tf.data.Dataset.range(6)), []
    try:
        for factor in (1, 1, 2, 2, 3, 3, 4):
            seen.append(float(step(iterator, factor)))
    except tf.errors.OutOfRangeError:
        seen.append("exhausted")
    return [*seen, float(weight.numpy())]


def loop_in_graph(tf: Any, **_: Any) -> list[Any]:
    """Loops over a dataset and over an iterator inside tf.functions, and one that fails."""
    weight = tf.Variable(0.0)

    @tf.function
    def over_dataset(dataset: Any) -> None:
        for value in dataset:
            weight.assign_add(tf.cast(value, tf.float32))

    @tf.function
    def over_iterator(iterator: Any) -> None:
        for value in iterator:
            weight.assign_add(tf.cast(value, tf.float32))

    numbers = tf.data.Dataset.range(5)
    over_dataset(numbers)
    over_iterator(iter(numbers))
    seen: list[Any] = [float(weight)]
    try:
        inverses = numbers.map(lambda value: 1.0 / tf.cast(3 - value, tf.float32))
        over_dataset(inverses.map(lambda value: tf.debugging.check_numerics(value, "three")))
    except tf.errors.InvalidArgumentError as error:
        seen.append(type(error).__name__)
    return seen


def keras_fit(tf: Any, keras: Any) -> list[Any]:
    keras.utils.set_random_seed(3)
    inputs = tf.reshape(tf.range(48, dtype=tf.float32), (12, 4)) / 48
    dataset = tf.data.Dataset.from_tensor_slices((inputs, tf.reduce_sum(inputs, 1))).batch(4)
    model = keras.Sequential([keras.layers.Dense(2), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    told: list[int] = []
    callback = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: told.append(epoch))
    history = model.fit(
        dataset, epochs=2, validation_data=dataset, callbacks=[callback], verbose=0
    ).history
    weights = b"".join(weight.tobytes() for weight in model.get_weights())
    predicted = model.predict(inputs[:1], verbose=0).tolist()
    loss = model.evaluate(dataset, verbose=0)
    return [history, told, loss, predicted, hashlib.sha256(weights).hexdigest()]


def fit_of_a_pydataset(keras: Any, **_: Any) -> list[Any]:
    """A `fit` of an Embedding on a class of the script's, which does something at epochs' ends."""
    import numpy as np

    keras.utils.set_random_seed(4)

    class Rows(keras.utils.PyDataset):  # type: ignore[misc]
        ends = 0

        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> Any:
            return np.full((4, 2), index, np.float32), np.ones((4, 1), np.float32)

        def on_epoch_end(self) -> None:
            self.ends += 1

    rows = Rows()
    layers = keras.layers
    model = keras.Sequential([layers.Embedding(4, 2), layers.Flatten(), layers.Dense(1)])
    model.compile("sgd", "mse")
    history = model.fit(rows, epochs=2, shuffle=False, verbose=0).history
    return [history, rows.ends]


def fit_that_fails(keras: Any, **_: Any) -> list[Any]:
    import numpy as np

    keras.utils.set_random_seed(5)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")

    def fails(batch: int, logs: Any) -> None:
        if batch == 1:
            raise ValueError("of the script's")

    callback = keras.callbacks.LambdaCallback(on_train_batch_end=fails)
    seen: list[Any] = []
    try:
        model.fit(np.ones((8, 2)), np.ones((8, 1)), batch_size=2, callbacks=[callback], verbose=0)
    except ValueError as error:
        seen.append(str(error))
    return [*seen, hashlib.sha256(model.get_weights()[0].tobytes()).hexdigest()]


def distributed(tf: Any, **_: Any) -> list[Any]:
    """Steps on a strategy's iterator, and one that its replicas make."""
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        weight = tf.Variable(0.0)
        total = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)
    strategy.run(lambda: total.assign_add(1.0))
    seen = [float(total.numpy())]
    for value in strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(2)):
        seen.append(value.numpy().tolist())
        weight.assign_add(1.0)
    iterator = iter(strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(2)))
    seen.append(iterator.get_next().numpy().tolist())
    return [*seen, float(weight.numpy())]


def steps_fed_by_python(tf: Any, keras: Any) -> list[Any]:
    """Steps without an iterator: of a Keras optimizer, of a tf.function and of `train_on_batch`."""
    import numpy as np

    keras.utils.set_random_seed(5)
    weight = tf.Variable(1.0)
    optimizer = keras.optimizers.SGD(0.1)
    seen = []
    for number in range(4):
        optimizer.apply([tf.constant(float(number))], [weight])
        seen.append(float(weight))

    @tf.function
    def step(value: Any) -> Any:
        return weight.assign_add(value)

    for number in range(4):
        seen.append(float(step(tf.constant(float(number)))))
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    rows = np.ones((4, 2), np.float32)
    for _ in range(4):
        seen.append(float(model.train_on_batch(model.predict(rows, verbose=0) * rows, rows[:, :1])))
    return seen


def session_of_tensorflow_1(tf: Any, **_: Any) -> list[Any]:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        weight = tf.compat.v1.get_variable("w", initializer=3.0, use_resource=True)
        train = tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(weight * weight)
        session.run(tf.compat.v1.global_variables_initializer())
        session.run(train)
        return [float(session.run(weight))]


def saved_model(tf: Any, **_: Any) -> list[Any]:
    module = tf.Module()
    module.doubled = tf.function(lambda x: 2 * x, input_signature=[tf.TensorSpec([], tf.int32)])
    with tempfile.TemporaryDirectory() as directory:
        tf.saved_model.save(module, directory)
        return [int(tf.saved_model.load(directory).doubled(tf.constant(3)))]


def own_profile(tf: Any, **_: Any) -> list[Any]:
    with tempfile.TemporaryDirectory() as directory:
        tf.profiler.experimental.start(directory)
        tf.constant(1.0) + 1.0
        tf.profiler.experimental.stop()
        return [len(list(Path(directory).rglob("*.xplane.pb")))]


PARTS: list[Callable[..., list[Any]]] = [
    own_loop,
    step_function,
    loop_in_graph,
    keras_fit,
    fit_of_a_pydataset,
    fit_that_fails,
    distributed,
    steps_fed_by_python,
    session_of_tensorflow_1,
    saved_model,
    own_profile,
]


def facts() -> dict[str, Any]:
    import keras
    import tensorflow as tf

    return {part.__name__: part(tf=tf, keras=keras) for part in PARTS}


class BugError(Exception):
    """An error of pipediag."""


def fail(*_: Any, **__: Any) -> None:
    raise BugError("of ours")


class Trial:
    """Runs the parts under a guard, whole and with one entry failing."""

    def __init__(self, directory: str) -> None:
        settings = RunSettings("script.py", (), False, directory, run_to_end=True)
        # The same loops come again and again, and are measured by then.
        loop_choice._SPARE_ONCE_MEASURED = 0
        self.capture = Capture(settings, Teller(None))
        self.guard: Guard = self.capture._guard
        self.capture.install()

    @property
    def notes(self) -> list[str]:
        return self.capture._recorder.recording.notes

    def watched(self) -> tuple[dict[str, Any], dict[Entry, str]]:
        """The facts with all entries at work, and which part was the first to reach an entry."""
        import keras
        import tensorflow as tf

        seen, reached = {}, {}
        for part in PARTS:
            with self._put_back():
                for entry in self.guard.entries:
                    entry.ours = _telling(entry, reached, part.__name__)
                seen[part.__name__] = part(tf=tf, keras=keras)
        return seen, reached

    def broken(self, entry: Entry, part: str) -> dict[str, Any]:
        import keras
        import tensorflow as tf

        self.notes.clear()
        calls: list[None] = []

        def fails(*_: Any, **__: Any) -> None:
            calls.append(None)
            fail()

        with self._put_back():
            entry.ours = fails
            seen = globals()[part](tf=tf, keras=keras)
            aside = self.guard.aside
        return {
            "what": entry.what,
            "part": part,
            "called": bool(calls),
            "facts": seen,
            "aside": aside == entry.vital,
            "notes": list(self.notes),
        }

    @contextmanager
    def _put_back(self) -> Iterator[None]:
        kept = {one: one.ours for one in self.guard.entries}
        try:
            yield
        finally:
            self.guard.aside = False
            for one, ours in kept.items():
                one.ours = ours
            # What an entry that failed had no chance to end.
            self.capture._updates._threads.here.functions.clear()
            timeline = self.capture._timeline
            timeline._over, timeline._takes_more = False, True
            timeline._open.clear()


def _telling(entry: Entry, reached: dict[Entry, str], part: str) -> Callable[..., Any]:
    ours = entry.ours

    def tell(*args: Any, **kwargs: Any) -> Any:
        reached.setdefault(entry, part)
        return ours(*args, **kwargs)

    return tell


def each_entry(directory: str) -> dict[str, Any]:
    trial = Trial(directory)
    before = list(trial.guard.entries)
    import keras  # noqa: F401
    import tensorflow as tf  # noqa: F401

    installing = {entry for entry in trial.guard.entries if entry.what.startswith("hooking")}
    watched, reached = trial.watched()
    unreached = set(trial.guard.entries) - set(reached) - set(before) - installing
    return {
        "facts": watched,
        "unreached": sorted(entry.what for entry in unreached),
        "broken": [trial.broken(entry, part) for entry, part in reached.items()],
    }


def unhooked(directory: str) -> dict[str, Any]:
    entry = Guard.entry

    def broken(guard: Guard, what: str, ours: Any, *rest: Any, **named: Any) -> Any:
        return entry(guard, what, fail if "hooking" in what else ours, *rest, **named)

    Guard.entry = broken  # type: ignore[method-assign]
    trial = Trial(directory)
    return {"facts": facts(), "notes": trial.notes}


if __name__ == "__main__":
    how, where = sys.argv[1:]
    ways = {"each": each_entry, "unhooked": unhooked, "natively": lambda _: {"facts": facts()}}
    print("RESULT", json.dumps(ways[how](where)))
