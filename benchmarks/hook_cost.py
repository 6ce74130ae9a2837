"""What pipediag's hooks take of each step, in one process whose hooks are switched off and on.

    python -m benchmarks.hook_cost [--steps N] [WORKLOAD...]

One process has steps with and without hooks, in turn, so that neither its memory's layout nor the
machine's drift makes a difference; the loop is measured all the time. What the parent does beside
the script, sampling ten times a second, is left out.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from pipediag.capture.capture import Capture
from pipediag.capture.link import Teller
from pipediag.capture.measuring.pace import Pace
from pipediag.estimates import interval, resampled_medians
from pipediag.session.messages import RunSettings

GOAL = 1.02
"""The ratio of step times that pipediag sets itself as a limit."""
STRETCH_NS = 60_000_000
"""Time between switches: long against a step, short against the drift of a machine."""
WARM_STEPS = 1000
AT_THE_SWITCH = 3
"""Steps left out on either side of a switch: the first ones after it have cold caches."""


def loop(stamp: Callable[[], None], steps: int) -> None:
    """Run a loop of one's own over a dataset, a step of about 2 ms."""
    import keras
    import tensorflow as tf

    rng = np.random.default_rng(8)
    features = rng.normal(size=(8192, 64)).astype(np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((features, features[:, :1]))
    dense = [keras.layers.Dense(256, activation="relu") for _ in range(2)]
    model = keras.Sequential([keras.Input(shape=(64,)), *dense, keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.001)

    @tf.function
    def train_step(x: Any, y: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)

    for x, y in dataset.shuffle(8192).batch(416).repeat().take(steps):
        stamp()
        train_step(x, y)


def fit(stamp: Callable[[], None], steps: int) -> None:
    """Run Keras `fit` on a dataset, a step of about 2 ms."""
    import keras
    import tensorflow as tf

    rng = np.random.default_rng(7)
    features = rng.normal(size=(8192, 64)).astype(np.float32)
    labels = rng.integers(0, 10, size=8192)
    dataset = tf.data.Dataset.from_tensor_slices((features, labels)).shuffle(8192).batch(512)
    dense = [keras.layers.Dense(width, activation="relu") for width in (256, 128)]
    model = keras.Sequential([keras.Input(shape=(64,)), *dense, keras.layers.Dense(10)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss)

    class Stamping(keras.callbacks.Callback):
        # At the end of a batch, a hook would make Keras fetch the logs each time.
        def on_train_batch_begin(self, *_: Any, **__: Any) -> None:
            stamp()

    model.fit(dataset.repeat(), steps_per_epoch=steps, verbose=0, callbacks=[Stamping()])


WORKLOADS: dict[str, Callable[[Callable[[], None], int], None]] = {"loop": loop, "fit": fit}


def stamped(name: str, steps: int, directory: str) -> tuple[list[int], list[bool]]:
    """Run a workload under capture; return when each step began, and if hooks were off in it."""
    settings = RunSettings(__file__, (), False, directory, warmup=100, run_to_end=True)
    capture = Capture(settings, Teller(None))
    capture.install()
    _let_the_baseline_last()
    guard, lengths = capture._guard, random.Random(1)
    stamps: list[int] = []
    off: list[bool] = []
    until_ns = 0

    def stamp() -> None:
        nonlocal until_ns
        now_ns = time.monotonic_ns()
        if now_ns > until_ns:
            guard.aside = not guard.aside
            # Stretches of differing length, so that nothing periodic falls into one kind.
            until_ns = now_ns + int(STRETCH_NS * lengths.uniform(0.7, 1.3))
        stamps.append(now_ns)
        off.append(guard.aside)

    WORKLOADS[name](stamp, steps)
    guard.aside = False
    return stamps, off


def _let_the_baseline_last() -> None:
    """Let the loop ask as often as in any run if the baseline is over, which it never is."""
    baseline_done = Pace.baseline_done

    def never(pace: Pace, *args: Any) -> bool:
        baseline_done(pace, *args)
        return False

    Pace.baseline_done = never  # type: ignore[method-assign]


def paired_medians(stamps: NDArray[np.int64], off: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the median step of each stretch without hooks beside that of the next one with them.

    Raises:
        click.ClickException: there are too few stretches.
    """
    durations, off = np.diff(stamps), off[:-1]
    switches = np.flatnonzero(np.diff(off.astype(np.int8))) + 1
    stretches = [
        steps
        for steps in np.split(np.arange(len(durations)), switches)
        if steps[0] >= WARM_STEPS and len(steps) > 4 * AT_THE_SWITCH
    ]
    medians = [float(np.median(durations[s[AT_THE_SWITCH:-AT_THE_SWITCH]])) for s in stretches]
    pairs = [
        (one, other) if off[steps[0]] else (other, one)
        for steps, one, other in zip(stretches[::2], medians[::2], medians[1::2], strict=False)
    ]
    if len(pairs) < 10:
        raise click.ClickException(f"only {len(pairs)} pairs to compare: give it more --steps")
    return np.array(pairs)


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--steps", type=click.IntRange(min=2000), default=40_000, show_default=True)
@click.argument("names", type=click.Choice(list(WORKLOADS)), nargs=-1)
def main(steps: int, names: tuple[str, ...]) -> None:
    """Measure each workload in a process of its own, and print what its hooks cost."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    click.echo(f"Step with hooks over step without; goal {GOAL} or less; 95 % interval over pairs.")
    fresh = multiprocessing.get_context("spawn")
    for name in names or WORKLOADS:
        with (
            tempfile.TemporaryDirectory(prefix="pipediag-hooks-") as directory,
            ProcessPoolExecutor(1, fresh) as process,
        ):
            stamps, off = process.submit(stamped, name, steps, directory).result()
        without, hooked = paired_medians(np.array(stamps), np.array(off)).T
        low, high = interval(resampled_medians(list(hooked / without)))
        goal = "met" if high <= GOAL else "missed" if low > GOAL else "undecided"
        click.echo(
            f"{name}: native step {np.median(without) / 1e6:.3f} ms, hooks "
            f"{np.median(hooked - without) / 1e3:+.0f} us, {np.median(hooked / without):.4f} "
            f"[{low:.4f}, {high:.4f}] over {len(without)} pairs: goal {goal}"
        )


if __name__ == "__main__":
    main()
